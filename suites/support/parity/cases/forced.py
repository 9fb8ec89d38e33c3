"""Cases for forced firing (SEMANTICS section 4); expectations are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from suites.support.parity.builder import Case, flags, network, stimulate, synapse


def forced_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _fired_list()
    yield from _countdown()
    yield from _restart()


def _fired_list() -> Iterator[Case]:
    yield Case(
        "a forced firing has potential 100 and leaves potential, countdown and count untouched",
        network(2, [synapse(0, 1)], membrane_potentials=[0.5, 0], refractory_countdowns=[4, 0], refractory_periods=2),
        plan={1: stimulate({}, 0)},
        fired=[{0: 100.0}, [1]],
        states={
            1: {
                "membrane_potentials": {0: 0.5},
                "refractory_countdowns": {0: 4},
                "consecutive_fire_counts": {0: 0},
            },
            2: {"refractory_countdowns": {0: 3}},
        },
    )
    yield Case(
        "an id that fires anyway is not added twice and keeps its own potential",
        network(2, [synapse(0, 1, weight=1)], thresholds=[1, 2]),
        plan={1: stimulate({0: 3}, 0)},
        fired=[{0: 3.0}, []],
        states={1: {"membrane_potentials": {0: 0.0}}, 2: {"membrane_potentials": {1: 1.0}}},
    )
    yield Case(
        "in an mp-driven area a forced firing contributes 100",
        network(2, [synapse(0, 1)], thresholds=999, areas=[flags(uniform=True, mp_driven=True)]),
        plan={1: stimulate({}, 0)},
        fired=[{0: 100.0}, []],
        states={2: {"membrane_potentials": {1: 100.0}}},
    )
    yield Case(
        "a forced candidate below its threshold leaks and restarts its count like any other",
        network(
            1,
            thresholds=9,
            membrane_potentials=4,
            leak_coefficients=0.5,
            consecutive_fire_limits=3,
            consecutive_fire_counts=1,
        ),
        plan={1: stimulate({0: 2}, 0)},
        fired=[{0: 100.0}],
        states={1: {"membrane_potentials": {0: 3.0}, "consecutive_fire_counts": {0: 0}}},
    )


def _countdown() -> Iterator[Case]:
    amounts = {0: 1, 1: 1}
    yield Case(
        "a forced firing stops the countdown for its burst, candidate or not; a refractory candidate loses its input",
        network(2, thresholds=2, membrane_potentials=1, refractory_countdowns=2),
        plan={1: stimulate({1: 3}, 0, 1), 3: stimulate(amounts), 4: stimulate(amounts)},
        fired=[{0: 100.0, 1: 100.0}, [], [], {0: 2.0, 1: 2.0}],
        states={
            1: {"refractory_countdowns": {0: 2, 1: 2}, "membrane_potentials": {0: 1.0, 1: 1.0}},
            2: {"refractory_countdowns": {0: 1, 1: 1}},
            3: {"refractory_countdowns": {0: 0, 1: 0}, "membrane_potentials": {0: 1.0, 1: 1.0}},
        },
    )
    yield Case(
        "a forced firing keeps the count that the end of the countdown would have reset",
        network(1, refractory_countdowns=1, consecutive_fire_limits=2, consecutive_fire_counts=2, thresholds=9),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={
            1: {"refractory_countdowns": {0: 1}, "consecutive_fire_counts": {0: 2}},
            2: {"refractory_countdowns": {0: 0}, "consecutive_fire_counts": {0: 0}},
        },
    )
    yield Case(
        "the longest countdown stands still too",
        network(1, refractory_countdowns=65535),
        plan={1: stimulate({}, 0), 2: stimulate({0: 1}, 0)},
        fired=[[0], [0], []],
        states={b: {"refractory_countdowns": {0: rc}} for b, rc in ((1, 65535), (2, 65535), (3, 65534))},
    )
    yield Case(
        "feagi-beta: the countdown of a forced candidate stands still",
        network(1, refractory_countdowns=2),
        plan={1: stimulate({0: 1}, 0), 2: stimulate({0: 1})},
        fired=[[0], []],
        states={b: {"refractory_countdowns": {0: rc}} for b, rc in ((1, 2), (2, 1))},
        options=EngineOptions(profile=FEAGI_BETA),
    )


def _restart() -> Iterator[Case]:
    yield Case(
        "a non-accumulating candidate that was forced to fire keeps its potential, and restarts a burst later",
        network(1, thresholds=11, mp_charge_accumulation=False, membrane_potentials=5),
        plan={1: stimulate({0: 4}, 0), 2: stimulate({0: 1}), 3: stimulate({0: 3})},
        fired=[{0: 100.0}, [], []],
        states={b: {"membrane_potentials": {0: v}} for b, v in ((1, 9.0), (2, 10.0), (3, 3.0))},
    )
    yield Case(
        "a non-accumulating neuron fires with the potential that it kept over a forced firing",
        network(1, thresholds=11, mp_charge_accumulation=False, membrane_potentials=5),
        plan={1: stimulate({0: 4}, 0), 2: stimulate({0: 2})},
        fired=[{0: 100.0}, {0: 11.0}],
    )
    yield Case(
        "a non-accumulating candidate that is refractory and forced waits, then restarts after its last blocked burst",
        network(1, thresholds=99, mp_charge_accumulation=False, membrane_potentials=5, refractory_countdowns=1),
        plan={1: stimulate({0: 3}, 0), 2: stimulate({0: 3}), 3: stimulate({0: 3})},
        fired=[{0: 100.0}, [], []],
        states={
            1: {"membrane_potentials": {0: 5.0}, "refractory_countdowns": {0: 1}},
            2: {"membrane_potentials": {0: 5.0}, "refractory_countdowns": {0: 0}},
            3: {"membrane_potentials": {0: 3.0}},
        },
    )
