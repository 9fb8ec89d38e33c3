"""What a synthetic network is: sizes, seed and laws as one frozen, checked value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.errors import NetworkError
from burstproof.network.schema import NO_LIMIT, UNLIMITED_FIRES
from burstproof.network.synthetic.counter_random import LARGEST_ITEM, LARGEST_SEED

CONNECTIVITIES = ("uniform", "fixed_in_degree", "distance", "block")
LARGEST_EXACT_WEIGHT = 1 << 24
"""Largest integer up to which every integer is a float32."""

LARGEST_DISTANCE_SCALE = 9_000_000.0
FLOAT_LAWS = ("threshold", "threshold_limit", "leak", "excitability")
INTEGER_LAWS = ("refractory_period", "consecutive_fire_limit", "snooze_period")
"""Fields that are one value for all neurons, or a pair that each neuron's is drawn from."""

_LARGEST_DEVIATION = 0.15
_CERTAIN = 0.999
"""From this excitability on a neuron always fires (``engine.rules``)."""

_LARGEST_NEURONS = (1 << 32) - 1
_LEAST_RING = 16
_LEAST_DISTANCE_SCALE = 0.25
_LARGEST_BLOCKS = 1 << 16


def _require(condition: bool, field: str, got: object, allowed: str, cure: str = "Correct the value") -> None:
    if not condition:
        raise NetworkError(
            "a synthetic network cannot have this value",
            where=f"SyntheticSpec.{field}",
            got=got,
            allowed=allowed,
            cure=cure,
        )


def _is_integer(value: object, lowest: int, highest: int) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and lowest <= int(value) <= highest


def _is_number(value: object, lowest: float, highest: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    return bool(lowest <= value <= highest)


def _is_range(value: object, is_end: Callable[[object], bool]) -> bool:
    """A pair (low, high) of ends, low <= high."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return False
    return all(is_end(end) for end in value) and bool(value[0] <= value[1])


def _is_law(value: object, is_end: Callable[[object], bool]) -> bool:
    """One value, or a pair of them."""
    return is_end(value) or _is_range(value, is_end)


@dataclass(frozen=True)
class SyntheticSpec:
    """A network made from a seed; equal specifications give equal networks on every backend.

    Attributes
    ----------
    neurons : int
        Number of neurons N.
    synapses_per_neuron : int
        Outgoing synapses K of each neuron (incoming ones with ``fixed_in_degree``). A pair may be joined more than
        once, and a neuron to itself.
    seed : int
        0...2^32 - 1.
    connectivity : str
        ``uniform``: every target equally likely. ``fixed_in_degree``: each neuron has exactly K incoming synapses,
        every source equally likely. ``distance``: neurons lie on a ring in the order of their ids; the offset from
        source to target is bell-shaped (the sum of four uniform numbers) with standard deviation
        ``distance_scale`` before it is rounded, and at most 2 sqrt(3) of these away. ``block``: ``blocks`` runs of
        ceil(N / blocks) ids; a synapse stays in its source's block with probability ``inside_fraction``, otherwise
        every neuron of the network is equally likely.
    weights, delays : number or (low, high)
        One value for all synapses, or integers uniform in low...high.
    inhibitory_fraction : float
        Probability that a neuron is inhibitory; all its outgoing synapses then are (type 1).
    distance_scale : float
        In neurons, for ``distance``: 0.25...N / 8, at most 9 million.
    blocks, inside_fraction : int, float
        For ``block``; each block is an area of its own.
    postsynaptic_potential : float
        One value for all synapses.
    threshold, threshold_limit, leak, excitability : float or (low, high)
        As the columns of the network: one value for all neurons, or drawn for each, uniform in low...high.
    refractory_period, consecutive_fire_limit, snooze_period : int or (low, high)
        Likewise, in bursts: one value, or integers uniform in low...high.
    accumulates : bool or float
        ``mp_charge_accumulation`` of all neurons, or the probability that a neuron has it.
    initial_firing : float
        Fraction of neurons that ``initial_stimulus`` forces to fire.

    Raises
    ------
    NetworkError
        A value out of range; the message names the field.
    """

    neurons: int
    synapses_per_neuron: int
    seed: int = 0
    connectivity: str = "uniform"
    weights: float | tuple[int, int] = 1.0
    delays: int | tuple[int, int] = 1
    inhibitory_fraction: float = 0.0
    distance_scale: float = 0.0
    blocks: int = 1
    inside_fraction: float = 1.0
    postsynaptic_potential: float = 1.0
    threshold: float | tuple[float, float] = 1.0
    threshold_limit: float | tuple[float, float] = float(NO_LIMIT)
    leak: float | tuple[float, float] = 0.0
    refractory_period: int | tuple[int, int] = 0
    consecutive_fire_limit: int | tuple[int, int] = UNLIMITED_FIRES
    snooze_period: int | tuple[int, int] = 0
    excitability: float | tuple[float, float] = 1.0
    accumulates: bool | float = True
    initial_firing: float = 0.0

    def __post_init__(self) -> None:
        self._check_sizes()
        self._check_connectivity()
        self._check_synapses()
        self._check_neurons()

    def _check_sizes(self) -> None:
        _require(_is_integer(self.neurons, 1, _LARGEST_NEURONS), "neurons", self.neurons, f"1...{_LARGEST_NEURONS}")
        fan = self.synapses_per_neuron
        _require(_is_integer(fan, 0, LARGEST_ITEM), "synapses_per_neuron", fan, f"0...{LARGEST_ITEM}")
        _require(_is_integer(self.seed, 0, LARGEST_SEED), "seed", self.seed, f"0...{LARGEST_SEED}")

    def _check_connectivity(self) -> None:
        _require(self.connectivity in CONNECTIVITIES, "connectivity", self.connectivity, ", ".join(CONNECTIVITIES))
        if self.connectivity == "distance":
            largest = min(self.neurons / 8, LARGEST_DISTANCE_SCALE)
            _require(self.neurons >= _LEAST_RING, "neurons", self.neurons, f"at least {_LEAST_RING} on a ring")
            scale, allowed = self.distance_scale, f"{_LEAST_DISTANCE_SCALE}...{largest} neurons"
            _require(_is_number(scale, _LEAST_DISTANCE_SCALE, largest), "distance_scale", scale, allowed)
        largest_blocks = min(self.neurons, _LARGEST_BLOCKS)
        _require(_is_integer(self.blocks, 1, largest_blocks), "blocks", self.blocks, f"1...{largest_blocks}")

    def _check_synapses(self) -> None:
        weights, delays = self.weights, self.delays
        fixed = not isinstance(weights, tuple) and _is_number(weights, 0.0, float(NO_LIMIT))
        allowed = f"a number >= 0, or integers (low, high) within 0...{LARGEST_EXACT_WEIGHT}"
        drawn = _is_range(weights, lambda end: _is_integer(end, 0, LARGEST_EXACT_WEIGHT))
        _require(fixed or drawn, "weights", weights, allowed)
        allowed = "1...255 bursts, or integers (low, high) within it"
        _require(_is_law(delays, lambda end: _is_integer(end, 1, 255)), "delays", delays, allowed)
        psp = self.postsynaptic_potential
        _require(_is_number(psp, 0.0, float(NO_LIMIT)), "postsynaptic_potential", psp, "a finite number >= 0")
        product = float(weights[1] if isinstance(weights, tuple) else weights) * float(psp)
        allowed = "weight x psp within float32"
        _require(_is_number(product, 0.0, float(NO_LIMIT)), "postsynaptic_potential", psp, allowed)
        for field in ("inhibitory_fraction", "inside_fraction", "initial_firing"):
            _require(_is_number(getattr(self, field), 0.0, 1.0), field, getattr(self, field), "0...1")

    def _check_neurons(self) -> None:
        for field in FLOAT_LAWS:
            value = getattr(self, field)
            fine = _is_law(value, lambda end: _is_number(end, -float(NO_LIMIT), float(NO_LIMIT)))
            _require(fine, field, value, "a finite float32, or (low, high)")
        for field in INTEGER_LAWS:
            value = getattr(self, field)
            _require(_is_law(value, lambda end: _is_integer(end, 0, 65535)), field, value, "0...65535, or (low, high)")
        share = self.accumulates
        _require(isinstance(share, bool) or _is_number(share, 0.0, 1.0), "accumulates", share, "True, False or 0...1")

    @property
    def alike(self) -> bool:
        """Whether all neurons have the same parameters."""
        drawn = any(isinstance(getattr(self, field), tuple) for field in (*FLOAT_LAWS, *INTEGER_LAWS))
        return not drawn and isinstance(self.accumulates, bool)

    @property
    def block_size(self) -> int:
        """Neurons per block; all of them unless the connectivity is ``block``."""
        return -(-self.neurons // self.blocks) if self.connectivity == "block" else self.neurons

    @property
    def longest_delay(self) -> int:
        """Largest delay in bursts that a synapse can have."""
        return int(self.delays[1] if isinstance(self.delays, tuple) else self.delays)


def _excitability(rate: float, fan: int, refractory_period: int) -> float:
    """The excitability e of ``driven_spec``, which grows with the rate."""
    free = 1.0 - refractory_period * rate
    return rate / (free * -math.expm1(-fan * rate)) if free > 0 else math.inf


def _largest_rate(fan: int, refractory_period: int) -> float:
    """The largest rate that ``driven_spec`` holds, rounded down to three digits; 0 if it holds none."""
    below, above = 1e-9, 1.0
    if _excitability(below, fan, refractory_period) >= _CERTAIN:
        return 0.0
    for _ in range(60):
        middle = (below + above) / 2
        held = _excitability(middle, fan, refractory_period) < _CERTAIN
        below, above = (middle, above) if held else (below, middle)
    step = 10.0 ** (math.floor(math.log10(below)) - 2)
    return math.floor(below / step) * step


def driven_spec(
    neurons: int,
    synapses_per_neuron: int,
    firing_rate: float,
    seed: int = 0,
    *,
    refractory_period: int = 1,
    leak: float = 0.1,
) -> SyntheticSpec:
    """A network that fires about ``firing_rate`` x ``neurons`` neurons in every burst, by itself, under the full rules.

    Parameters
    ----------
    neurons, synapses_per_neuron, seed : int
        N, K and seed; targets are uniform, every contribution is 1.
    firing_rate : float
        Fraction r of the neurons that fire in a burst, in 0...1.
    refractory_period : int
        Bursts R that a neuron is blocked for after it fired.
    leak : float
        0...1; it shapes the potentials, not the rate.

    Raises
    ------
    NetworkError
        The rate cannot be held: it needs an excitability of 0.999 or more, or so few neurons fire in a burst that
        their number fluctuates by more than 15 %.

    Notes
    -----
    The threshold is one contribution, so that every candidate that is not refractory is in its window, and the
    excitability e alone decides. A neuron has at least one of about Poisson(K r) inputs with probability 1 - exp(-K r)
    and is not refractory with probability 1 - R r, hence r = (1 - R r) e (1 - exp(-K r)), which is solved for e.

    The state is stable: at r, the derivative of the next rate by this one is K r / (exp(K r) - 1) =: a < 1
    (refractoriness lowers it further). The number of firings fluctuates with a relative deviation of at most
    1 / sqrt(N r (1 - a^2)). The network rests until ``initial_stimulus`` starts it at the rate.
    """
    _require(_is_number(firing_rate, 1e-9, 1.0), "firing_rate", firing_rate, "1e-9...1")
    _require(_is_integer(refractory_period, 0, 65535), "refractory_period", refractory_period, "0...65535")
    allowed = f"1...{LARGEST_ITEM}"
    _require(_is_integer(synapses_per_neuron, 1, LARGEST_ITEM), "synapses_per_neuron", synapses_per_neuron, allowed)
    _require(_is_number(leak, 0.0, 1.0), "leak", leak, "0...1")
    excitability = _excitability(firing_rate, synapses_per_neuron, refractory_period)
    if excitability >= _CERTAIN:
        largest = _largest_rate(synapses_per_neuron, refractory_period)
        synapses = "1 synapse" if synapses_per_neuron == 1 else f"{synapses_per_neuron} synapses"
        where = f"with {synapses} each and a refractory period of {refractory_period}"
        allowed = f"at most {largest:g} {where}" if largest else f"no rate holds {where}"
        cure = "Lower firing_rate, or take more synapses" if largest else "Take more synapses"
        _require(False, "firing_rate", firing_rate, allowed, cure)
    spec: dict[str, Any] = {"seed": seed, "excitability": excitability, "initial_firing": float(firing_rate)}
    made = SyntheticSpec(neurons, synapses_per_neuron, refractory_period=refractory_period, leak=float(leak), **spec)
    inputs = synapses_per_neuron * firing_rate
    slope = inputs / math.expm1(inputs) if inputs < 700 else 0.0
    deviation = 1.0 / math.sqrt(neurons * firing_rate * (1.0 - slope * slope))
    least = math.floor(neurons * (deviation / _LARGEST_DEVIATION) ** 2) + 1
    allowed = f"{least} or more at this rate, so that the number of firings fluctuates by less than 15 %"
    cure = "Raise firing_rate, or take more neurons; more synapses each help little"
    _require(deviation < _LARGEST_DEVIATION, "neurons", neurons, allowed, cure)
    return made
