"""Cases for memory areas: FEATURES.md section 7, and section 8 where memories take part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burstproof.engine.state import Stimulus
from burstproof.network.features import (
    FIRST_MEMORY_ID,
    AreaFeatures,
    AssociativeMapping,
    Features,
    MemoryArea,
    MemoryChange,
    ModulatorKind,
)
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from suites.support.parity.builder import Case, flags, network, stimulate
from suites.support.parity.cases.feature_parameters import modulator

M0, M1, M2, M3 = range(FIRST_MEMORY_ID, FIRST_MEMORY_ID + 4)
FORMATION = ModulatorKind.MEMORY_FORMATION


def memory_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _patterns()
    yield from _life()
    yield from _caps()
    yield from _formation()
    yield from _twins()
    yield from _replays()
    yield from _potentials()
    yield from _synapses()


def remembering(*, modulators: Sequence[Any] = (), listening: tuple[int, ...] = (), **memory: Any) -> Network:
    """Neurons 0 and 1 upstream in area 7, the dense neuron 2 of memory area 8, the driver 3 in area 9."""
    columns = {"thresholds": [1, 1, 2, 1], "threshold_limits": [1e9, 1e9, 100, 1e9]}
    base = network(4, cortical_areas=[7, 7, 8, 9], coordinates=[[0, 0, 0], [1, 0, 0], [0] * 3, [0] * 3], **columns)
    area = AreaFeatures(modulators=listening, memory=MemoryArea(upstream=(7,), **memory))
    return base.replace(features=Features(areas={8: area}, modulators=tuple(modulators)))


def early(*forced: int, area: int = 8) -> Stimulus:
    """Forced firings whose pattern is injected in the next burst."""
    return replace(stimulate({}, *forced), memories_early=np.array([area], np.uint32))


def live(ids: Sequence[int], **columns: Sequence[float]) -> dict[str, Sequence[float]]:
    """Memories that are there."""
    return {"features.memory.ids": ids, **{f"features.memory.{name}": column for name, column in columns.items()}}


def _patterns() -> Iterator[Case]:
    yield Case(
        "memories: a pattern fires its neuron two bursts later, or one; two injections into a burst add up",
        remembering(),
        plan={
            1: stimulate({}, 0),
            4: early(1),
            6: stimulate({}, 0),
            7: early(0),
        },
        fired=[[0], [], {M0: 1.5}, [1], {M1: 1.5}, [0], [0], {M0: 3}],
        states={
            1: live([M0], lifespans=[9], activation_counts=[1], created=[1], last_activations=[1]),
            4: live([M0, M1], lifespans=[6, 9]),
            7: live([M0, M1], activation_counts=[3, 1], created=[1, 4], last_activations=[7, 4]),
        },
    )
    yield Case(
        "memories: a pattern is the bursts of its depth in order, once so many are known",
        remembering(temporal_depth=2),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1), 4: stimulate({}, 1)},
        fired=[[0], [1], [], [1, M0], [M1], [M2], [M1]],
        states={1: live([]), 2: live([M0]), 3: live([M0, M1]), 4: live([M0, M1, M2]), 5: live([M0, M1, M2])},
    )
    yield Case(
        "memories: no firing upstream, no pattern; other areas do not count",
        remembering(),
        plan={1: stimulate({}, 3), 2: stimulate({}, 0), 3: stimulate({}, 0, 1)},
        fired=[[3], [0], [0, 1], [M0], [M1]],
        states={1: live([]), 2: live([M0])},
    )
    yield Case(
        "memories: one neuron is enough, in an area that listens to itself and remembers its memories",
        network(1).replace(features=Features(areas={7: AreaFeatures(memory=MemoryArea(upstream=(7,)))})),
        plan={1: stimulate({}, 0)},
        fired=[[0], [], {M0: 1.5}, [], {M1: 1.5}],
    )
    two = remembering()
    second = network(
        5,
        cortical_areas=[7, 7, 8, 9, 10],
        thresholds=[1, 1, 2, 1, 2],
    )
    areas = {8: two.features.areas[8], 10: AreaFeatures(memory=MemoryArea(upstream=(7, 9)))}
    yield Case(
        "memories: areas have neurons of their own, and hand out ids in their order",
        second.replace(features=Features(areas=areas, memory_order=(10, 8))),
        plan={1: stimulate({}, 0), 2: stimulate({}, 3)},
        fired=[[0], [3], [M0, M1], [M2]],
        states={1: live([M0, M1], areas=[10, 8]), 2: live([M0, M1, M2], areas=[10, 8, 10])},
    )


def _life() -> Iterator[Case]:
    yield Case(
        "memories: at a lifespan of 0 a neuron is gone with its injection, and its id is not used again",
        remembering(init_lifespan=1),
        plan={1: stimulate({}, 0), 4: early(0)},
        fired=[[0], [], [], [0], [M1]],
        states={1: live([M0], lifespans=[1]), 2: live([]), 4: live([M1]), 5: live([])},
    )
    yield Case(
        "memories: lifespans grow by activation, and at the threshold a burst later a neuron is long-term",
        remembering(init_lifespan=3, lifespan_growth=2, longterm_threshold=5),
        plan={1: stimulate({}, 0), 2: stimulate({}, 0), 4: stimulate({}, 1), 6: stimulate({}, 0)},
        fired=[[0], [0], [M0], [1, M0], {4: 2}, [0, M1], [], [M0], {4: 2}],
        states={
            1: live([M0], lifespans=[3], longterm=[False]),
            2: live([M0], lifespans=[5], longterm=[False]),
            3: live([M0], lifespans=[5], longterm=[True], twins=[-1], twin_due=[True]),
            4: live([M0, M1], lifespans=[5, 3], longterm=[True, False], twins=[4, -1]),
            6: live([M0, M1], lifespans=[5, 1], activation_counts=[3, 1]),
            7: live([M0], lifespans=[5]),
        },
    )


def _caps() -> Iterator[Case]:
    yield Case(
        "memories: at a cap without eviction nothing is formed until there is room",
        remembering(init_lifespan=2, neuron_cap=1, evicts=False),
        plan={1: stimulate({}, 0), 2: early(1), 3: early(1), 4: early(1)},
        fired=[[0], [1], [1, M0], [1], [M1]],
        states={1: live([M0]), 2: live([M0]), 3: live([]), 4: live([M1])},
    )
    yield Case(
        "memories: at a cap the short-term neuron with the smallest lifespan goes, with its injection",
        remembering(init_lifespan=5, neuron_cap=2),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1), 3: stimulate({}, 0), 4: stimulate({}, 0, 1)},
        fired=[[0], [1], [0, M0], [0, 1, M1], [M0], [M2]],
        states={3: live([M0, M1], lifespans=[5, 4]), 4: live([M0, M2], lifespans=[4, 5])},
    )
    yield Case(
        "memories: an evicted neuron does not fire",
        remembering(neuron_cap=1),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1)},
        fired=[[0], [1], [], [M1]],
        states={2: live([M1])},
    )
    yield Case(
        "memories: a short-term neuron makes room before a long-term one",
        remembering(init_lifespan=3, longterm_threshold=4, neuron_cap=2),
        plan={1: stimulate({}, 0), 2: stimulate({}, 0), 3: stimulate({}, 1), 4: stimulate({}, 0, 1)},
        fired=[[0], [0], [1, M0], [0, 1, M0], [4], [M2]],
        states={3: live([M0, M1], longterm=[True, False]), 4: live([M0, M2], longterm=[True, False])},
    )
    yield Case(
        "memories: of long-term neurons the one whose activation is longest past makes room; its twin stays",
        remembering(init_lifespan=3, longterm_threshold=3, neuron_cap=2, lifespan_growth=0),
        plan={1: stimulate({}, 0), 3: stimulate({}, 1), 4: stimulate({}, 0, 1)},
        fired=[[0], [], [1, M0], [0, 1, 4], [M1], [5, M2]],
        states={
            2: live([M0], longterm=[True]),
            3: live([M0, M1], longterm=[True, False]),
            4: live([M1, M2], longterm=[True, False]) | {"features.memory.twin_memories": [M0]},
        },
    )


def _formation() -> Iterator[Case]:
    yield Case(
        "memory.formation: 0 % forms nothing in the burst of the driver itself, and reactivation goes on",
        remembering(modulators=(modulator(FORMATION, -100, driver=9),), listening=(0,)),
        plan={1: stimulate({}, 0, 3), 2: stimulate({}, 0), 3: stimulate({}, 0, 3)},
        fired=[[0, 3], [0], [0, 3], [M0], [M0]],
        states={1: live([]), 2: live([M0]), 3: live([M0], activation_counts=[2])},
    )
    yield Case(
        "memory.formation: half of it forms like all of it",
        remembering(modulators=(modulator(FORMATION, -50, driver=9),), listening=(0,)),
        plan={1: stimulate({}, 0, 3)},
        fired=[[0, 3], [], [M0]],
    )
    yield Case(
        "memory.formation: a memory neuron drives it, in the burst in which it fires and in that one alone",
        remembering(modulators=(modulator(FORMATION, -100, driver=8),), listening=(0,)),
        plan={1: stimulate({}, 0), 3: stimulate({}, 1), 4: stimulate({}, 1)},
        fired=[[0], [], [1, M0], [1], [], [M1]],
        states={3: live([M0]), 4: live([M0, M1])},
    )


def _twins() -> Iterator[Case]:
    lasting = remembering(init_lifespan=3, lifespan_growth=2, longterm_threshold=5)
    twice = {1: stimulate({}, 0), 2: stimulate({}, 0)}
    yield Case(
        "twins: added a burst after the neuron became long-term; they get its potential, at least their threshold",
        lasting,
        plan=twice,
        fired=[[0], [0], [M0], [M0], {4: 2}, []],
        states={
            3: {"features.memory.twin_areas": []},
            4: {"features.memory.twin_areas": [8], "features.memory.twin_memories": [M0]},
            5: {"membrane_potentials": [0, 0, 0, 0, 0]},
        },
    )
    yield Case(
        "twins: where the burst injects early they are added at once",
        lasting,
        plan={**twice, 3: early()},
        fired=[[0], [0], [M0], {4: 2, M0: 1.5}, {4: 2}, []],
    )
    limits = np.array([1e9, 1e9, 3.4028235e38, 1e9], np.float32)
    yield Case(
        "twins: an absent threshold limit is 0 for them, so they never fire",
        lasting.replace(neurons=replace(lasting.neurons, threshold_limits=limits)),
        plan=twice,
        fired=[[0], [0], [M0], [M0], [], []],
        states={5: {"membrane_potentials": [0, 0, 0, 0, 2]}},
    )
    low = np.array([1, 1, 0.5, 1], np.float32)
    yield Case(
        "twins: a potential above their threshold arrives as it is",
        lasting.replace(neurons=replace(lasting.neurons, thresholds=low)),
        plan=twice,
        fired=[[0], [0], [M0], [M0], {4: 1.5}, []],
    )


def replaying(**memory: Any) -> Network:
    """Neurons 0 and 1 of area 7, memory area 8, and the twins 3 and 4 in area 9, voxels in the other order."""
    base = network(
        5,
        cortical_areas=[7, 7, 8, 9, 9],
        coordinates=[[0, 0, 0], [1, 0, 0], [0, 0, 0], [1, 0, 0], [0, 0, 0]],
        thresholds=[1, 1, 1, 5, 5],
        areas=(flags(8, uniform=True, mp_driven=memory.pop("mp_driven", False)),),
    )
    area = AreaFeatures(memory=MemoryArea(upstream=(7,), twins={7: 9}, **memory))
    return base.replace(features=Features(areas={8: area}))


def _replays() -> Iterator[Case]:
    both = {1: stimulate({}, 0), 2: stimulate({}, 1)}
    yield Case(
        "replay: the voxels of each burst are forced one after another, each once",
        replaying(temporal_depth=2),
        plan=both,
        fired=[[0], [1], [], [M0], {4: 1, M1: 1.5}, {3: 1}, []],
    )
    yield Case(
        "replay: an mp-driven memory area passes on its neuron's potential, and manual stimulation comes first",
        replaying(temporal_depth=2, mp_driven=True),
        plan={**both, 6: stimulate({}, 3)},
        fired=[[0], [1], [], [M0], {4: 1.5, M1: 1.5}, {3: 100}, []],
    )
    yield Case(
        "replay: forced neurons keep their potential and their countdown",
        replaying(temporal_depth=1).replace(
            neurons=replace(
                replaying().neurons,
                membrane_potentials=np.array([0, 0, 0, 0, 3], np.float32),
                refractory_countdowns=np.array([0, 0, 0, 0, 9], np.uint16),
            )
        ),
        plan={1: stimulate({}, 0)},
        fired=[[0], [], [M0], [4], []],
        states={
            3: {"refractory_countdowns": {4: 6}},
            4: {"refractory_countdowns": {4: 6}, "membrane_potentials": {4: 3}},
            5: {"refractory_countdowns": {4: 5}},
        },
    )

    lasting = AreaFeatures(memory=MemoryArea(upstream=(7,), init_lifespan=3, longterm_threshold=3, lifespan_growth=0))
    yield Case(
        "replay: of neurons that appeared upstream, memories and twins, there is no voxel",
        network(4, cortical_areas=[7, 8, 10, 9], threshold_limits=[1e9, 100, 1e9, 1e9]).replace(
            features=Features(
                areas={8: lasting, 10: AreaFeatures(memory=MemoryArea(upstream=(8,), twins={8: 9}))},
            )
        ),
        plan={1: stimulate({}, 0)},
        fired=[[0], [], [M0], [4], [M1], [M2], []],
    )


def _potentials() -> Iterator[Case]:
    yield Case(
        "mp learning: stored potentials are added to the twins, averaged when the injection of a reactivation is due",
        replaying(mp_learning=True),
        plan={1: stimulate({0: 4}), 3: stimulate({0: 8})},
        fired=[{0: 4}, [], {0: 8, M0: 1.5}, [], {M0: 1.5}, {4: 10}],
        states={
            3: {"features.memory.frame_potentials": [4]},
            4: {"membrane_potentials": {4: 4}, "features.memory.frame_potentials": [4]},
            5: {"features.memory.frame_potentials": [6]},
        },
    )
    yield Case(
        "mp learning: a firing before the injection of a reactivation is due replays what was stored before",
        replaying(mp_learning=True),
        plan={1: stimulate({0: 4}), 2: stimulate({0: 8})},
        fired=[{0: 4}, {0: 8}, [M0], [M0], {4: 10}],
    )
    steps = {b: stimulate({0: a}) for b, a in ((1, 4), (2, 6), (4, 4), (5, 6))}
    yield Case(
        "mp_differential: the steps between bursts identify a pattern, absent is 0, halves go away from 0",
        remembering(temporal_depth=2, change=MemoryChange.DIFFERENTIAL, delta_quantization=4.0),
        plan=steps,
        fired=[[0], [0], [], [0, M0], [0, M1], [M0], [M0], [M1]],
        states={1: live([]), 2: live([M0]), 3: live([M0, M1]), 6: live([M0, M1], activation_counts=[3, 2])},
    )
    yield Case(
        "mp_differential: a depth of 1 has no step and forms nothing",
        remembering(change=MemoryChange.DIFFERENTIAL),
        plan=steps,
        fired=[[0], [0], [], [0], [0]],
        states={5: live([])},
    )
    yield Case(
        "mp learning: where no twin is to replay, nothing is stored and nothing averaged",
        remembering(mp_learning=True),
        plan={1: stimulate({0: 4}), 2: stimulate({0: 8})},
        fired=[[0], [0], [M0], [M0], []],
        states={2: {"features.memory.frame_potentials": []}},
    )
    ratios = remembering(temporal_depth=2, change=MemoryChange.RATIO, ratio_quantization=100.0)
    yield Case(
        "mp_ratio: a ratio of less than half a step, 24 to 17 where a step is a doubling, is none",
        ratios,
        plan={b: stimulate({0: a}) for b, a in ((1, 17), (2, 17), (3, 24))},
        fired=[[0], [0], [0], [M0], [M0]],
        states={3: live([M0], activation_counts=[2])},
    )
    yield Case(
        "mp_ratio: only potentials above 0 have a ratio",
        ratios.replace(neurons=replace(ratios.neurons, thresholds=np.array([-9, 1, 2, 1], np.float32))),
        plan={b: stimulate({0: a}) for b, a in ((1, 0), (2, 1), (3, 0), (5, 1), (6, 2))},
        fired=[{0: 0}, {0: 1}, {0: 0}, [], {0: 1}, {0: 2}, [], {M0: 1.5}],
        states={5: live([]), 6: live([M0])},
    )
    yield Case(
        "mp_ratio: equal ratios are one pattern, and who fired in one burst alone is in none",
        ratios,
        plan={b: stimulate({0: a}) for b, a in ((1, 4), (2, 8), (3, 16), (5, 4), (6, 4))},
        fired=[[0], [0], [0], [M0], [0, M0], [0], [], [M1]],
        states={2: live([M0]), 3: live([M0]), 5: live([M0]), 6: live([M0, M1])},
    )


def _synapses() -> Iterator[Case]:
    """Area 9 (neuron 3) has an associative mapping to the memory area, or the other way round."""

    def associated(source: int, target: int, psp: float, **memory: Any) -> Network:
        base = remembering(**memory)
        mapping = AssociativeMapping(source, target, 0, psp)
        learning = PlasticMapping(np.empty(0, np.int64), 1, 1.0, 1.0, 1.0)
        return base.replace(features=replace(base.features, associative=(mapping,)), plastic_mappings=(learning,))

    third, drive = 0.375, stimulate({}, 3)
    yield Case(
        "memories: contributions add up without a leak and fire at 1; an injection fires whatever the state",
        associated(9, 8, third, init_lifespan=30),
        plan={1: stimulate({}, 0), 3: drive, 4: drive, 5: drive, 6: drive, 7: stimulate({}, 0), 8: drive, 10: drive},
        fired=[
            [0],
            [],
            [3, M0],
            [3],
            [3],
            [3],
            {0: 100, M0: 3 * third},
            [3],
            {M0: 1.5 + third},
            [3],
            [],
        ],
        states={
            4: {"features.memory.arriving_candidate": [True]},
            5: live([M0], potentials=[third]),
            6: live([M0], potentials=[2 * third]),
            7: live([M0], potentials=[0]),
            11: live([M0], potentials=[third]),
        },
    )
    yield Case(
        "memories: an injection adds to the sum of its burst and leaves the potential alone",
        associated(9, 8, third, init_lifespan=30),
        plan={1: stimulate({}, 0), 3: drive, 4: stimulate({}, 0, 3), 5: drive, 7: drive, 8: drive},
        fired=[[0], [], [3, M0], [0, 3], [3], {M0: 1.5 + third}, [3], [3], {M0: 3 * third}],
    )
    yield Case(
        "memories: a neuron that goes takes its synapses and its firings with it",
        associated(8, 9, 3, init_lifespan=3),
        plan={1: stimulate({}, 0), 3: drive, 4: stimulate({}, 1), 6: drive},
        fired=[[0], [], [3, M0], [1], [], [3, M1]],
        states={
            3: {"features.made.sources": [M0], "features.made.targets": [3], "features.made.weights": [1]},
            4: {"features.made.sources": []} | live([M1]),
            6: {"features.made.sources": [M1]},
        },
    )
    waiting = associated(8, 9, 3)
    yield Case(
        "memories: one that has not fired yet makes no synapse, however long the window",
        waiting.replace(plastic_mappings=(replace(waiting.plastic_mappings[0], window=3),)),
        plan={2: stimulate({}, 0), 3: drive},
        fired=[[], [0], [3], [M0]],
        states={3: {"features.made.sources": []}, 4: {"features.made.sources": [M0]}},
    )
    yield Case(
        "memories: one sends through its synapses, in the next burst",
        associated(8, 9, 3),
        plan={1: stimulate({}, 0), 3: drive, 4: stimulate({}, 0)},
        fired=[[0], [], [3, M0], [0], [], [M0], {3: 3}],
    )
