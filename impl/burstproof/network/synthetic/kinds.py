"""Kinds of seeded networks by name: each keeps firing by itself at a steady rate, and adds some work to a burst."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.synthetic import microcircuit
from burstproof.network.synthetic.build import initial_stimulus, synthesize
from burstproof.network.synthetic.power_law import check_fans, power_law_network
from burstproof.network.synthetic.spec import SyntheticSpec, driven_spec

UNIFORM, MICROCIRCUIT, _POWER_LAW = "uniform", microcircuit.NAME, "power-law"
AREA_NEURONS = 1000
LOCAL_SHARE = 0.8
LARGEST_FAN = 100_000
DEFAULT_RATE = 0.01
"""Share of the neurons that fire in a burst, unless told."""
FRACTION = 0.01
"""The psp of *fractions*: what dividing a psp of 1 by 100 synapses gives."""

WINDOW = 3
_WEIGHTS, _DELAYS, _INHIBITORY = (1, 255), (1, 16), 0.2
_THRESHOLDS, _LIMITS = (1.0, 128.0), (2000.0, 8000.0)


@dataclass(frozen=True)
class SeededNetwork:
    """A network of a kind: what it is made from.

    Attributes
    ----------
    kind : str
        One of ``KINDS``.
    spec : SyntheticSpec
        Its laws. Of ``power-law`` all but the out-degrees; of ``plastic`` all but the plastic mapping; of
        ``microcircuit`` size, seed and rate only.
    """

    kind: str
    spec: SyntheticSpec

    @property
    def plain(self) -> bool:
        """Whether the specification says it all, so that a device can make the synapses itself."""
        return self.kind not in _BUILDERS

    def network(self) -> Network:
        """The network on the host.

        Raises
        ------
        OutOfMemoryError
            The arrays do not fit the host's memory.
        """
        return _BUILDERS.get(self.kind, synthesize)(self.spec)

    def start(self) -> Mapping[int, npt.NDArray[np.uint32]]:
        """Ids to force by burst number, one burst for each delay, so that the network starts at its rate."""
        bursts = range(1, self.spec.longest_delay + 1)
        return {burst: initial_stimulus(self.spec, burst) for burst in bursts}


def seeded_network(
    kind: str,
    neurons: int,
    synapses_per_neuron: int | None = None,
    firing_rate: float | None = None,
    seed: int = 0,
) -> SeededNetwork:
    """A network of ``kind`` in which about ``firing_rate`` x ``neurons`` neurons fire in every burst, by itself.

    Parameters
    ----------
    kind : str
        ``uniform``: random targets, every contribution 1. ``weights``: integers 1...255. ``inhibition``: and 20 % of
        the neurons are inhibitory. ``parameters``: and threshold, limit, leak, refractory period, excitability,
        consecutive-fire limit and snooze are drawn for each neuron, and 30 % do not accumulate. ``fractions``: and
        contributions are hundredths. ``delays``: ``inhibition`` with delays 1...16. ``everything``: ``fractions`` with
        delays 1...16. ``plastic``: all synapses learn, with a window of 3. ``power-law``: out-degrees from a few to
        100 000, of smaller networks a tenth of the neurons. ``areas``: of 1000 neurons, 80 % of the targets local.
        ``microcircuit``: see :mod:`burstproof.network.synthetic.microcircuit`.
    neurons : int
        Of the microcircuit 77 169.
    synapses_per_neuron : int, optional
        100; the microcircuit has its own.
    firing_rate : float, optional
        0...1, by default 0.01; the microcircuit has its own. Uniform networks hold it as ``driven_spec`` says, the
        others within 10 % up to rates of 0.05. ``parameters``, ``fractions`` and ``everything`` fire less at higher
        ones: at 0.083 instead of 0.1.
    seed : int

    Raises
    ------
    NetworkError
        No such kind, or sizes between which the rate cannot be held.

    Notes
    -----
    As in ``driven_spec`` the excitability decides who fires. Inhibition, thresholds and limits keep some candidates
    out of the window, for which the excitability makes up by a factor found by running the networks. ``weights`` and
    ``plastic`` fire exactly as ``uniform``, and ``fractions`` as ``parameters``: potentials and state show an error of
    weights, fired lists do not. The microcircuit starts with more firings than it settles at: 54 in each of bursts
    11-50, 38 in 51-100, 27 in 101-200, 25.8 (nominally 25) from 1001 on.
    """
    if kind == MICROCIRCUIT:
        return SeededNetwork(kind, _checked_circuit(neurons, synapses_per_neuron, firing_rate, seed))
    if kind not in _LAWS:
        raise NetworkError("no such kind of network", where="kind", got=kind, allowed=", ".join(KINDS))
    fan, rate = (
        100 if synapses_per_neuron is None else synapses_per_neuron,
        DEFAULT_RATE if firing_rate is None else firing_rate,
    )
    driven = driven_spec(neurons, fan, rate, seed)
    if kind == _POWER_LAW:
        check_fans(fan, largest_fan(neurons))
    return SeededNetwork(kind, _LAWS[kind](driven))


def _checked_circuit(neurons: int, synapses: int | None, rate: float | None, seed: int) -> SyntheticSpec:
    """The laws of the microcircuit, whose size is not to be chosen."""
    spec = microcircuit.microcircuit_spec(seed)
    if neurons != spec.neurons or synapses is not None or rate is not None:
        given = [f"{neurons} neurons"]
        given += [] if synapses is None else [f"{synapses} synapses each"]
        given += [] if rate is None else [f"the rate {rate}"]
        raise NetworkError(
            "the microcircuit has one size and one rate",
            where="kind",
            got=", ".join(given),
            allowed=f"{spec.neurons} neurons, synapses and rate not given",
            cure=f"Ask for {spec.neurons} neurons and nothing else, or for another kind",
        )
    return spec


def _uniform(spec: SyntheticSpec) -> SyntheticSpec:
    return spec


def _weights(spec: SyntheticSpec) -> SyntheticSpec:
    return replace(spec, weights=_WEIGHTS)


def _inhibition(spec: SyntheticSpec) -> SyntheticSpec:
    return _excited(replace(_weights(spec), inhibitory_fraction=_INHIBITORY), 1.005)


def _parameters(spec: SyntheticSpec) -> SyntheticSpec:
    drawn = replace(
        _inhibition(spec),
        threshold=_THRESHOLDS,
        threshold_limit=_LIMITS,
        leak=(0.05, 0.5),
        refractory_period=(0, 5),
        consecutive_fire_limit=(1, 20),
        snooze_period=(0, 10),
        accumulates=0.7,
    )
    return _excited(drawn, 1.165, 0.5)


def _fractions(spec: SyntheticSpec) -> SyntheticSpec:
    thresholds, limits = _scaled(_THRESHOLDS, FRACTION), _scaled(_LIMITS, FRACTION)
    return replace(_parameters(spec), postsynaptic_potential=FRACTION, threshold=thresholds, threshold_limit=limits)


def _delayed(laws: Callable[[SyntheticSpec], SyntheticSpec], spec: SyntheticSpec) -> SyntheticSpec:
    return replace(laws(spec), delays=_DELAYS)


def _plastic(spec: SyntheticSpec) -> SyntheticSpec:
    """A threshold of 0, so that the rate does not depend on what the synapses learn."""
    return replace(spec, weights=_WEIGHTS, threshold=0.0)


def _areas(spec: SyntheticSpec) -> SyntheticSpec:
    blocks = -(-spec.neurons // AREA_NEURONS)
    local = replace(spec, connectivity="block", blocks=blocks, inside_fraction=LOCAL_SHARE)
    return _excited(local, 1.03)


def _excited(spec: SyntheticSpec, factor: float, spread: float = 0.0) -> SyntheticSpec:
    """``spec`` with ``factor`` times its excitability, drawn from (1 - spread)...(1 + spread) times that."""
    law = spec.excitability
    mean = factor * (sum(law) / 2 if isinstance(law, tuple) else law)
    return replace(spec, excitability=(mean * (1 - spread), mean * (1 + spread)) if spread else mean)


def _scaled(law: tuple[float, float], factor: float) -> tuple[float, float]:
    return law[0] * factor, law[1] * factor


def _plastic_network(spec: SyntheticSpec) -> Network:
    network = synthesize(spec)
    rule = PlasticMapping(np.zeros(1, np.int64), window=WINDOW)
    return dataclasses.replace(network, plastic_mappings=(rule,))


def largest_fan(neurons: int) -> int:
    """Largest out-degree of a power-law network of so many neurons."""
    return min(LARGEST_FAN, neurons // 10)


_LAWS: Mapping[str, Callable[[SyntheticSpec], SyntheticSpec]] = {
    UNIFORM: _uniform,
    "weights": _weights,
    "inhibition": _inhibition,
    "parameters": _parameters,
    "fractions": _fractions,
    "delays": partial(_delayed, _inhibition),
    "everything": partial(_delayed, _fractions),
    "plastic": _plastic,
    _POWER_LAW: _uniform,
    "areas": _areas,
}
_BUILDERS: Mapping[str, Callable[[SyntheticSpec], Network]] = {
    "plastic": _plastic_network,
    _POWER_LAW: lambda spec: power_law_network(spec, largest_fan(spec.neurons)),
    MICROCIRCUIT: microcircuit.microcircuit_network,
}
KINDS = (*_LAWS, MICROCIRCUIT)
