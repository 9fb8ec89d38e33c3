"""Fixed-point accumulation: one scale for a network and its options, on every backend (SEMANTICS section 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError

if TYPE_CHECKING:
    from burstproof.burst.engine import EngineOptions
    from burstproof.network.model import Network

_CHUNK = 1 << 22
_SMALLEST_K = 20
_LARGEST_K = 30
_UNBOUNDED = 1 << 63


@dataclass(frozen=True)
class FixedPoint:
    """A contribution c becomes the integer round-half-even(c * 2^k), clamped to +-``clamp``.

    ``bits`` is the accumulator width (32 or 64). ``clamp`` is the largest magnitude of one integer contribution.
    ``largest_sum`` bounds the magnitude of what the synapses onto one neuron can add up to in a burst.
    """

    k: int
    bits: int
    clamp: int
    largest_sum: int = _UNBOUNDED

    @property
    def dtype(self) -> np.dtype[Any]:
        """Integer dtype of the accumulator."""
        return np.dtype(np.int32 if self.bits == 32 else np.int64)

    @property
    def scale(self) -> float:
        """2^k, exact."""
        return float(1 << self.k)

    @property
    def unit(self) -> np.float32:
        """2^-k as float32, exact."""
        return np.float32(1.0 / self.scale)

    @property
    def clamp_float(self) -> float:
        """The largest float64 that does not exceed ``clamp``: an integer-valued float64 above it is clamped."""
        value = float(self.clamp)
        return value if int(value) <= self.clamp else float(np.nextafter(value, 0.0))

    def quantise(self, contributions: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int64], bool]:
        """Integers of float32 contributions, any shape, and whether one was clamped."""
        scaled = np.rint(contributions.astype(np.float64) * self.scale)
        outside = np.abs(scaled) > self.clamp_float
        integers = np.where(outside, 0.0, scaled).astype(np.int64)
        integers[outside] = np.where(scaled[outside] > 0, self.clamp, -self.clamp)
        return integers, bool(outside.any())

    def to_float32(self, sums: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        """Integer sums as float32: converted directly to nearest even, then scaled by 2^-k."""
        converted: npt.NDArray[np.float32] = sums.astype(np.float32) * self.unit
        return converted


def outgoing_counts(network: Network) -> npt.NDArray[np.int64]:
    """Valid outgoing synapses of each neuron, all delays, (N,) int64: the divisor of SEMANTICS section 2."""
    synapses = network.synapses
    valid = synapses.valid_mask
    sources = synapses.source_neurons if valid.all() else synapses.source_neurons[valid]
    return np.bincount(sources, minlength=network.neuron_count)


def static_contributions(
    network: Network, rows: slice, divisors: npt.NDArray[np.float32] | None
) -> npt.NDArray[np.float32]:
    """Unsigned contributions weight x psp / divisor of the synapses in ``rows``, float32; 0 where invalid.

    ``divisors`` (N,) float32 per source, or ``None`` when nothing is divided.

    Raises
    ------
    NetworkError
        A product that is not finite, or a negative weight or psp.
    """
    synapses = network.synapses
    weights = synapses.weights[rows]
    psps = synapses.postsynaptic_potentials[rows]
    valid = synapses.valid_mask[rows]
    with np.errstate(over="ignore", invalid="ignore"):
        products = weights * psps
    bad = valid & ~(np.isfinite(products) & (products >= 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise NetworkError(
            "weight x psp of a synapse is not a finite number >= 0",
            where=f"synapse {row + (rows.start or 0)}",
            got=(float(weights[row]), float(psps[row])),
            cure="Correct the weight or the postsynaptic potential of that synapse",
        )
    if divisors is not None:
        products = products / divisors[synapses.source_neurons[rows]]
    return np.where(valid, products, np.float32(0))


def division(network: Network) -> npt.NDArray[np.float32] | None:
    """Divisor of each source's contributions, (N,) float32 (1 where nothing is divided), or ``None``."""
    if not network.flags_registered:
        return None
    counts = np.maximum(outgoing_counts(network), 1)
    divisors = np.where(network.area_flag("psp_uniform_distribution"), 1, counts).astype(np.float32)
    return divisors if bool((divisors != 1).any()) else None


def _is_integer(values: npt.NDArray[np.float32]) -> bool:
    return bool((np.rint(values) == values).all())


def _largest_input(network: Network) -> tuple[float, bool]:
    """Largest sum of |contribution| over one target, and whether every contribution is an integer."""
    divisors = division(network)
    totals = np.zeros(network.neuron_count, np.float64)
    integer = True
    for start in range(0, network.synapse_count, _CHUNK):
        rows = slice(start, min(start + _CHUNK, network.synapse_count))
        values = static_contributions(network, rows, divisors)
        integer = integer and _is_integer(values)
        targets = network.synapses.target_neurons[rows]
        totals += np.bincount(targets, weights=values, minlength=network.neuron_count)
    return float(totals.max(initial=0.0)), integer


def _plastic_integer(network: Network) -> bool:
    """Whether weights stay integers whose contributions are integers, whatever the plastic rules do."""
    divisors = division(network)
    for mapping in network.plastic_mappings:
        steps = np.array([mapping.ltp_multiplier, mapping.ltd_multiplier], np.float32) * np.float32(mapping.constant)
        rows = mapping.synapses
        synapses = network.synapses
        if not (_is_integer(steps) and _is_integer(synapses.weights[rows])):
            return False
        if not _is_integer(synapses.postsynaptic_potentials[rows]):
            return False
        if divisors is not None and bool((divisors[synapses.source_neurons[rows]] != 1).any()):
            return False
    return True


def plan_fixed_point(network: Network, options: EngineOptions) -> FixedPoint:
    """The scale and width for ``network`` under ``options``; a function of nothing else.

    With plastic synapses the largest input has no bound, so integers take 64 bit as well.

    Raises
    ------
    NetworkError
        A contribution that is not finite.
    """
    largest, integer = _largest_input(network)
    valid = network.synapses.valid_mask
    targets = network.synapses.target_neurons if valid.all() else network.synapses.target_neurons[valid]
    in_degree = int(np.bincount(targets).max(initial=0)) if len(targets) else 0
    mp_driven = network.flags_registered and bool(network.area_flag("mp_driven_psp").any())
    if not mp_driven and not network.plastic_mappings:
        return static_fixed_point(largest, integer, in_degree, network.power_amount, options)
    integer = integer and _outside_integer(network.power_amount, options)
    k = 0 if integer and not mp_driven and _plastic_integer(network) else _SMALLEST_K
    return FixedPoint(k, 64, _clamp64(in_degree))


def static_fixed_point(
    largest_input: float, integer: bool, in_degree: int, power_amount: float, options: EngineOptions
) -> FixedPoint:
    """The scale and width for a network without mp-driven and plastic synapses.

    Parameters
    ----------
    largest_input : float
        Largest sum of |contribution| over one target, exact.
    integer : bool
        Whether every contribution is an integer.
    in_degree : int
        Largest number of valid synapses onto one neuron.
    """
    largest = largest_input + (abs(power_amount) + options.max_stimulus)
    clamp64 = _clamp64(in_degree)
    if integer and _outside_integer(power_amount, options):
        if largest < 2.0**31:
            return FixedPoint(0, 32, (1 << 31) - 1, int(largest_input))
        return FixedPoint(0, 64, clamp64)
    for bits, limit in ((32, 2.0**31), (64, 2.0**62)):
        for k in range(_LARGEST_K, _SMALLEST_K - 1, -1):
            if largest * 2.0**k < limit:
                return FixedPoint(k, bits, (1 << 31) - 1 if bits == 32 else clamp64)
    return FixedPoint(_SMALLEST_K, 64, clamp64)


def _outside_integer(power_amount: float, options: EngineOptions) -> bool:
    """Whether power and declared stimulus are integers."""
    return float(power_amount).is_integer() and not options.fractional_stimulus


def _clamp64(in_degree: int) -> int:
    return (1 << 62) // (in_degree + 2)
