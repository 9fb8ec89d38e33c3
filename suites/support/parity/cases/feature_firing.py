"""Cases for spike trains and degeneration: FEATURES.md sections 3 and 5."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burstproof.engine.options import EngineOptions
from burstproof.network.features import AreaFeatures, RuleFeatures
from burstproof.network.model import Network
from suites.support.parity.builder import Case, flags, network, stimulate, synapse
from suites.support.parity.cases.feature_parameters import GATE, QUICK, featured, modulator

BATCH = 10_000
TRAIN = AreaFeatures(spike_train=True)


def firing_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _trains()
    yield from _trains_with_others()
    yield from _degeneration()


def training(**columns: Any) -> Network:
    """One neuron in an area with spike trains."""
    return featured(network(1, cortical_areas=8, **columns), {8: TRAIN})


def _trains() -> Iterator[Case]:
    yield Case(
        "trains: as many firings as the limit, with the potential of the first; input is lost; then a long rest",
        training(consecutive_fire_limits=3, refractory_periods=2, snooze_periods=1),
        plan={
            1: stimulate({0: 5}),
            2: stimulate({0: 4}),
            4: stimulate({0: 1}),
            6: stimulate({0: 1}),
            7: stimulate({0: 2}),
        },
        fired=[{0: 5}, {0: 5}, {0: 5}, [], [], [], {0: 2}],
        states={
            1: {"features.trains": [True], "features.held_potentials": [5], "refractory_countdowns": [1]},
            2: {"consecutive_fire_counts": [2], "refractory_countdowns": [1], "membrane_potentials": [0]},
            3: {"features.trains": [False], "features.held_potentials": [0], "refractory_countdowns": [3]},
            4: {"consecutive_fire_counts": [3], "refractory_countdowns": [2]},
            6: {"consecutive_fire_counts": [0], "refractory_countdowns": [0], "membrane_potentials": [0]},
        },
    )
    yield Case(
        "trains: a limit of 1 makes none, and without a rest every second attempt fires",
        training(consecutive_fire_limits=1),
        plan={b: stimulate({0: 1}) for b in (1, 2, 3)},
        fired=[{0: 1}, [], {0: 2}],
    )
    yield Case(
        "trains: manual stimulation starts one at a limit of 1, too",
        training(consecutive_fire_limits=1),
        plan={1: stimulate({}, 0)},
        fired=[{0: 100}, {0: 100}, []],
    )
    yield Case(
        "trains: 65534 is the longest limit that is finite",
        training(consecutive_fire_limits=65534),
        plan={1: stimulate({0: 1})},
        fired=[{0: 1}, {0: 1}],
    )
    yield Case(
        "trains: the rest after one is at most 65535 bursts",
        training(consecutive_fire_limits=2, refractory_periods=65535, snooze_periods=9),
        plan={1: stimulate({0: 1})},
        fired=[{0: 1}, {0: 1}, []],
        states={2: {"refractory_countdowns": [65535]}, 3: {"refractory_countdowns": [65534]}},
    )
    yield Case(
        "trains: without a finite limit there are none",
        featured(network(2, cortical_areas=8, consecutive_fire_limits=[0, 65535]), {8: TRAIN}),
        plan={1: stimulate({0: 1, 1: 1})},
        fired=[[0, 1], []],
    )
    yield Case(
        "trains: one that a manual stimulation starts has a firing more, unless the count is above 0",
        featured(network(2, cortical_areas=8, consecutive_fire_limits=2, consecutive_fire_counts=[0, 1]), {8: TRAIN}),
        plan={1: stimulate({}, 0, 1)},
        fired=[{0: 100, 1: 100}, {0: 100, 1: 100}, {0: 100}, []],
    )
    yield Case(
        "trains: after one without a rest the next attempt is blocked, and its input stays",
        training(consecutive_fire_limits=2),
        plan={b: stimulate({0: 1}) for b in (1, 3, 4)},
        fired=[{0: 1}, {0: 1}, [], {0: 2}],
        states={2: {"refractory_countdowns": [0], "consecutive_fire_counts": [2]}, 3: {"membrane_potentials": [1]}},
    )
    yield Case(
        "trains: manual stimulation of a neuron in its train changes nothing",
        training(consecutive_fire_limits=3, refractory_periods=9),
        plan={1: stimulate({0: 5}), 2: stimulate({}, 0)},
        fired=[{0: 5}, {0: 5}, {0: 5}, []],
    )
    yield Case(
        "trains: a potential is left alone, and no leak acts",
        training(consecutive_fire_limits=2, membrane_potentials=-3, leak_coefficients=0.5, refractory_periods=1),
        plan={1: stimulate({}, 0), 2: stimulate({0: 1})},
        fired=[[0], [0], [0]],
        states={3: {"membrane_potentials": [-3]}},
    )
    crowd = network(
        BATCH + 1,
        cortical_areas=[8] + [9] * BATCH,
        thresholds=[1] + [99] * BATCH,
        consecutive_fire_limits=2,
        refractory_periods=1,
        snooze_periods=3,
    )
    everyone = stimulate(dict.fromkeys(range(BATCH + 1), 1))
    yield Case(
        "trains: in the batch path too a train ends with snooze",
        featured(crowd, {8: TRAIN}),
        plan={1: everyone, 2: everyone},
        fired=[[0], [0]],
        states={2: {"refractory_countdowns": {0: 4}}},
        options=EngineOptions(emulate_batch_path=True),
    )


def _trains_with_others() -> Iterator[Case]:
    driven = network(
        2,
        [synapse(0, 1, weight=2)],
        cortical_areas=[8, 9],
        thresholds=[1, 99],
        consecutive_fire_limits=[2, 65535],
        areas=(flags(8, uniform=True, mp_driven=True),),
    )
    yield Case(
        "trains: each firing of a train passes on the potential that it holds",
        featured(driven, {8: TRAIN}),
        plan={1: stimulate({0: 3})},
        fired=[{0: 3}, {0: 3}, []],
        states={2: {"membrane_potentials": {1: 6}}, 3: {"membrane_potentials": {1: 12}}},
    )
    gate = network(
        3,
        [synapse(1, 2, rule=1)],
        cortical_areas=[8, 9, 10],
        thresholds=[1, 1, 99],
        leak_coefficients=[0, 0.5, 0],
        consecutive_fire_limits=[2, 65535, 65535],
    )
    yield Case(
        "a train on the driver of a gate behind an area with a homeostat",
        featured(
            gate,
            {8: TRAIN, 9: AreaFeatures(QUICK)},
            rules=(RuleFeatures(gates=(0,)),),
            modulators=(modulator(GATE, 50),),
        ),
        plan={1: stimulate({0: 1}, 1), 2: stimulate({}, 1), 3: stimulate({}, 1), 4: stimulate({}, 1)},
        fired=[[0, 1], [0, 1], [1], [1], []],
        states={
            2: {"membrane_potentials": {2: 0}, "features.leak_coefficients": {1: 1}},
            3: {"membrane_potentials": {2: 0.5}, "features.signals": [0]},
            4: {"membrane_potentials": {2: 1}},
            5: {"membrane_potentials": {2: 1}, "features.leak_coefficients": {1: 0.75}},
        },
    )


def _degeneration() -> Iterator[Case]:
    fading = [synapse(0, 2, psp=3), synapse(1, 3, psp=3), synapse(0, 3, psp=-1), synapse(0, 3, psp=4, valid=False)]
    base = network(4, fading, cortical_areas=[8, 9, 10, 10], thresholds=[1, 1, 5, 7.5])
    yield Case(
        "degeneration: psp falls after each firing, not below 0, in its area alone",
        featured(base, {8: AreaFeatures(degeneration=1.25)}),
        plan={b: stimulate({}, 0, 1) for b in (1, 2, 3)},
        fired=[[0, 1], [0, 1], [0, 1], {2: 5.25, 3: 8}],
        states={
            1: {"features.postsynaptic_potentials": [1.75, 3, 0, 4]},
            2: {"features.postsynaptic_potentials": [0.5, 3, 0, 4], "membrane_potentials": {2: 3}},
            3: {"features.postsynaptic_potentials": [0, 3, 0, 4]},
        },
    )
    below = network(3, [synapse(0, 2, psp=-1), synapse(1, 2, psp=3)], cortical_areas=[8, 9, 10], thresholds=[1, 1, 99])
    yield Case(
        "degeneration: where there is none, a psp below 0 stays",
        featured(below, {8: AreaFeatures(), 9: AreaFeatures(degeneration=1)}),
        plan={1: stimulate({}, 0, 1)},
        fired=[[0, 1]],
        states={1: {"features.postsynaptic_potentials": [-1, 2]}},
    )
    turning = network(2, [synapse(0, 1, type=1)], cortical_areas=[8, 9], thresholds=[1, 2])
    yield Case(
        "degeneration: a psp of 0 stays 0, so inhibition never turns into excitation",
        featured(turning, {8: AreaFeatures(degeneration=3)}),
        plan={1: stimulate({}, 0), 2: stimulate({}, 0)},
        fired=[[0], [0], []],
    )
    late = network(2, [synapse(0, 1, psp=2, delay=2)], cortical_areas=[8, 9], thresholds=[1, 2])
    yield Case(
        "degeneration: what is under way keeps its value",
        featured(late, {8: AreaFeatures(degeneration=1)}),
        plan={1: stimulate({}, 0), 2: stimulate({}, 0)},
        fired=[[0], [0], {1: 2}, []],
        states={4: {"membrane_potentials": {1: 1}}},
    )
