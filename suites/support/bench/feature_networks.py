"""Networks with features, for the rows of stage 6: all that change neurons, memories, and rules with factors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.network.features import (
    AreaFeatures,
    AssociativeMapping,
    Features,
    Homeostat,
    MemoryArea,
    Modulator,
    ModulatorKind,
    RuleFeatures,
)
from burstproof.network.model import FIRST_OWN_AREA_INDEX, Area, Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.spec import SyntheticSpec

AREAS = 8
TRAINED = 0.11
"""What the excitability is multiplied with where a firing starts a train, so that as many neurons fire; found by
running 1 M neurons of *parameters*."""

UPSTREAM, REACHED, MEMORY = FIRST_OWN_AREA_INDEX + 1, FIRST_OWN_AREA_INDEX + 2, FIRST_OWN_AREA_INDEX + 3
AREA_NEURONS = 1000
"""Neurons that memories are made from, and as many that they reach."""

_OF_NEURONS = (ModulatorKind.FIRING_THRESHOLD, ModulatorKind.LEAK, ModulatorKind.FIRING_PROBABILITY)
_OF_RULES = (ModulatorKind.TRANSMISSION_GAIN, ModulatorKind.TRANSMISSION_GAIN, ModulatorKind.GATE)
_MAGNITUDES = 5.0, -10.0, 5.0
_DRIVER_LIMIT, _DRIVER_SNOOZE = 3, 4
_LONG = 1_000_000
_HALF = 0.5
"""Weight where contributions follow potentials: these die out, so that none is clamped."""


def with_every_feature(network: Network, excitability: float = TRAINED) -> Network:
    """``network`` in ``AREAS`` areas: a homeostat, a modulator of each kind, and spike trains for every neuron.

    The last three neurons are areas of their own, which drive the modulators in short trains of firings.
    """
    table, count = network.neurons, network.neuron_count
    drivers, driving = _drivers(count)
    areas = FIRST_OWN_AREA_INDEX + np.arange(count, dtype=np.int64) * AREAS // count
    areas[drivers] = driving
    columns = {
        "thresholds": np.float32(1),
        "refractory_periods": 0,
        "consecutive_fire_limits": _DRIVER_LIMIT,
        "snooze_periods": _DRIVER_SNOOZE,
        "excitabilities": 1,
    }
    changed = {name: np.array(getattr(table, name)) for name in columns}
    changed["excitabilities"] *= np.float32(excitability)
    for name, value in columns.items():
        changed[name][drivers] = value
    neurons = replace(table, cortical_areas=areas.astype(table.cortical_areas.dtype), **changed)
    every = AreaFeatures(Homeostat(target=0.01, leak_min=0.05), (0, 1, 2), spike_train=True)
    features = Features(_modulators(_OF_NEURONS, driving), {int(one): every for one in np.unique(areas)})
    return network.replace(neurons=neurons, features=features)


def with_memories(network: Network, live: int, associative: bool = False) -> Network:
    """``network`` with a memory area that holds ``live`` memories after so many bursts: one comes and one goes in each.

    A pattern is what fires of ``AREA_NEURONS`` neurons. With ``associative`` every memory that fires gets synapses to
    what fires then of as many others.
    """
    areas = np.array(network.neurons.cortical_areas)
    areas[:AREA_NEURONS], areas[AREA_NEURONS : 2 * AREA_NEURONS], areas[-1] = UPSTREAM, REACHED, MEMORY
    memory = MemoryArea((UPSTREAM,), init_lifespan=live, longterm_threshold=_LONG)
    features = Features(areas={MEMORY: AreaFeatures(memory=memory)})
    mappings: tuple[PlasticMapping, ...] = ()
    if associative:
        features = replace(features, associative=(AssociativeMapping(MEMORY, REACHED, 0),))
        mappings = (PlasticMapping(np.empty(0, np.int64)),)
    neurons = replace(network.neurons, cortical_areas=areas)
    return network.replace(neurons=neurons, features=features, plastic_mappings=mappings)


def with_rules(spec: SyntheticSpec) -> Network:
    """A network of ``spec`` whose synapses belong to a rule with two gains and a gate; all candidates may fire."""
    network = synthesize(replace(spec, threshold=0.0, weights=_HALF))
    drivers, driving = _drivers(network.neuron_count)
    areas = np.array(network.neurons.cortical_areas)
    areas[drivers] = driving
    features = Features(_modulators(_OF_RULES, driving), rules=(RuleFeatures((0, 1), (2,)),))
    return network.replace(
        neurons=replace(network.neurons, cortical_areas=areas),
        synapses=replace(network.synapses, rules=np.ones(network.synapse_count, np.uint16)),
        features=features,
    )


def mp_driven(spec: SyntheticSpec) -> Network:
    """The same network without a rule, whose synapses contribute the potentials of their sources."""
    network = synthesize(replace(spec, threshold=0.0, weights=_HALF))
    areas = np.unique(network.neurons.cortical_areas).tolist()
    flagged = tuple(Area(one, f"c{one}", psp_uniform_distribution=True, mp_driven_psp=True) for one in areas)
    return network.replace(areas=flagged)


def _drivers(neurons: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Three neurons that drive modulators, and their areas."""
    return np.arange(neurons - 3, neurons), FIRST_OWN_AREA_INDEX + AREAS + np.arange(3)


def _modulators(kinds: tuple[ModulatorKind, ...], areas: npt.NDArray[np.int64]) -> tuple[Modulator, ...]:
    given = zip(kinds, areas.tolist(), _MAGNITUDES, strict=True)
    return tuple(Modulator(f"{kind.value} {driver}", kind, driver, percent) for kind, driver, percent in given)
