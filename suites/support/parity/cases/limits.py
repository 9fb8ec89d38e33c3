"""Cases for limits of consecutive fires and the batch path (SEMANTICS 3, 3b); expectations are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burstproof.engine.options import EngineOptions
from suites.support.parity.builder import Case, network, stimulate, synapse
from suites.support.parity.cases.dynamics import every, python_draw

FULL = 65535
"""The count at which a neuron without a finite limit is blocked."""


def limit_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _finite()
    yield from _full_count()
    yield from _full_count_seldom()
    yield from _batch_path()


def _finite() -> Iterator[Case]:
    yield Case(
        "limit 2 with snooze 3 and period 1: two fires, then a long rest that resets the count",
        network(1, refractory_periods=1, consecutive_fire_limits=2, snooze_periods=3),
        plan=every(8, 1),
        fired=[[0], [], [0], [], [], [], [], [0]],
        states={
            3: {"refractory_countdowns": {0: 4}, "consecutive_fire_counts": {0: 2}},
            6: {"consecutive_fire_counts": {0: 2}},
            7: {"refractory_countdowns": {0: 0}, "consecutive_fire_counts": {0: 0}},
        },
    )
    yield Case(
        "limit 2 without a period: the third burst is blocked, keeps its potential, restarts the count",
        network(1, consecutive_fire_limits=2, thresholds=1, leak_coefficients=0.5),
        plan=every(4, 1),
        fired=[[0], [0], [], {0: 2.0}],
        states={3: {"membrane_potentials": {0: 1.0}, "consecutive_fire_counts": {0: 0}}},
    )
    yield Case(
        "the count restarts when the neuron does not fire",
        network(1, thresholds=2, consecutive_fire_limits=3),
        plan={1: stimulate({0: 2}), 2: stimulate({0: 1})},
        fired=[[0], []],
        states={1: {"consecutive_fire_counts": {0: 1}}, 2: {"consecutive_fire_counts": {0: 0}}},
    )
    yield Case(
        "an unlimited count goes on over bursts without a fire",
        network(1, thresholds=2, consecutive_fire_limits=0),
        plan={1: stimulate({0: 2}), 2: stimulate({0: 1}), 3: stimulate({0: 1})},
        fired=[[0], [], [0]],
        states={2: {"consecutive_fire_counts": {0: 1}}, 3: {"consecutive_fire_counts": {0: 2}}},
    )
    yield Case(
        "a snooze that overflows 16 bits saturates",
        network(1, refractory_periods=65000, consecutive_fire_limits=1, snooze_periods=1000),
        plan=every(1, 1),
        fired=[[0]],
        states={1: {"refractory_countdowns": {0: 65535}}},
    )


def _full_count() -> Iterator[Case]:
    """Neuron 0 has limit 0, neuron 1 limit 65535; what is beside them changes which rules an engine compiles."""
    limits, others = [0, FULL], {"snooze_periods": 7, "thresholds": 1, "leak_coefficients": 0.5}
    beside: dict[str, dict[str, Any]] = {
        "alone": {"excitabilities": [1, 1, 1], "consecutive_fire_limits": [*limits, 0]},
        "beside a finite limit": {"excitabilities": [1, 1, 1], "consecutive_fire_limits": [*limits, 3]},
        "beside an excitability below 1": {"excitabilities": [1, 1, 0.5], "consecutive_fire_limits": [*limits, 0]},
    }
    for name, columns in beside.items():
        for emulate in (False, True):
            yield Case(
                f"at a count of 65535 one burst is missed, then the input of two fires ({name}"
                f"{', batch path emulated' if emulate else ''})",
                network(
                    3,
                    consecutive_fire_counts=[FULL, FULL, 0],
                    membrane_potentials=[0.5, 0.5, 0],
                    **columns,
                    **others,
                ),
                plan={b: stimulate({0: 1, 1: 1}) for b in (1, 2, 3)},
                fired=[[], {0: 2.5, 1: 2.5}, {0: 1.0, 1: 1.0}],
                states={
                    1: {"membrane_potentials": {0: 1.5, 1: 1.5}, "consecutive_fire_counts": {0: 0, 1: 0}},
                    2: {"refractory_countdowns": {0: 0, 1: 0}, "consecutive_fire_counts": {0: 1, 1: 1}},
                },
                options=EngineOptions(emulate_batch_path=emulate),
            )
    count = 64
    everyone = {b: stimulate(dict.fromkeys(range(count), 1)) for b in (1, 2)}
    fires = [i for i in range(count) if python_draw(i, 2) < 0.5]
    assert any(python_draw(i, 1) < 0.5 for i in fires), "nobody is kept from firing by the count alone"
    quiet = next(i for i in range(count) if i not in fires)
    yield Case(
        "at a count of 65535 a neuron misses one burst whatever its excitability would have said",
        network(count, excitabilities=0.5, leak_coefficients=0.5, consecutive_fire_counts=FULL, membrane_potentials=4),
        plan=everyone,
        fired=[[], dict.fromkeys(fires, 6.0)],
        states={
            1: {"membrane_potentials": dict.fromkeys(range(count), 5.0)},
            2: {"consecutive_fire_counts": {quiet: 0, fires[0]: 1}, "membrane_potentials": {quiet: 3.0}},
        },
    )
    yield Case(
        "an excitability of 0 does not save the count of 65535",
        network(1, excitabilities=0, leak_coefficients=0.5, consecutive_fire_counts=FULL, membrane_potentials=4),
        plan=every(2, 1),
        fired=[[], []],
        states={
            1: {"membrane_potentials": {0: 5.0}, "consecutive_fire_counts": {0: 0}},
            2: {"membrane_potentials": {0: 3.0}, "consecutive_fire_counts": {0: 0}},
        },
    )


def _full_count_seldom() -> Iterator[Case]:
    yield Case(
        "a count of 65535 stays outside the firing window, and the neuron leaks",
        network(
            2,
            thresholds=[9, 1],
            threshold_limits=3,
            leak_coefficients=0.5,
            consecutive_fire_counts=FULL,
            consecutive_fire_limits=[0, FULL],
        ),
        plan={1: stimulate({0: 4, 1: 4})},
        fired=[[]],
        states={1: {"membrane_potentials": {0: 2.0, 1: 2.0}, "consecutive_fire_counts": {0: FULL, 1: FULL}}},
    )
    yield Case(
        "the fire that completes 65535 does not snooze, the end of its countdown keeps the count, and it blocks then",
        network(
            2,
            refractory_periods=2,
            snooze_periods=7,
            consecutive_fire_counts=FULL - 1,
            consecutive_fire_limits=[0, FULL],
        ),
        plan={b: stimulate({0: 1, 1: 1}) for b in range(1, 6)},
        fired=[[0, 1], [], [], [], {0: 2.0, 1: 2.0}],
        states={
            1: {"refractory_countdowns": {0: 2, 1: 2}, "consecutive_fire_counts": {0: FULL, 1: FULL}},
            3: {"refractory_countdowns": {0: 0, 1: 0}, "consecutive_fire_counts": {0: FULL, 1: FULL}},
            4: {"membrane_potentials": {0: 1.0, 1: 1.0}, "consecutive_fire_counts": {0: 0, 1: 0}},
        },
    )
    yield Case(
        "the power neuron misses the burst after 65535 fires and then fires with two amounts",
        network(2, [synapse(0, 1)], cortical_areas=[1, 7], consecutive_fire_counts=[FULL - 1, 0]),
        fired=[{0: 1.0}, [1], {0: 2.0}, {0: 1.0, 1: 1.0}],
        states={1: {"consecutive_fire_counts": {0: FULL}}, 3: {"consecutive_fire_counts": {0: 1}}},
    )


def _batch_path() -> Iterator[Case]:
    for count, emulate in ((10_000, True), (9_999, True), (10_000, False)):
        other = emulate and count >= 10_000
        yield Case(
            f"batch path emulated: {emulate}, {count} candidates: snooze and the leak of blocked neurons",
            network(
                count,
                refractory_periods=1,
                consecutive_fire_limits=[1] + [0] * (count - 1),
                snooze_periods=5,
                leak_coefficients=0.5,
                membrane_potentials=[4] + [0] * (count - 1),
                consecutive_fire_counts=[1] + [0] * (count - 1),
            ),
            plan={b: stimulate(dict.fromkeys(range(count), 1)) for b in (1, 2)},
            fired=[list(range(1, count)), [0]],
            states={
                1: {"membrane_potentials": {0: 2.5 if other else 5.0}},
                2: {"refractory_countdowns": {0: 1 if other else 6}},
            },
            options=EngineOptions(emulate_batch_path=emulate),
        )
        everyone = range(count)
        yield Case(
            f"batch path emulated: {emulate}, {count} candidates: what blocks a count, leaks and resets it",
            network(
                count,
                consecutive_fire_limits=[0, FULL, 1] + [0] * (count - 3),
                consecutive_fire_counts=[FULL, FULL, 1] + [0] * (count - 3),
                membrane_potentials=[4, 4, 4] + [0] * (count - 3),
                leak_coefficients=0.5,
            ),
            plan={b: stimulate(dict.fromkeys(everyone, 1)) for b in (1, 2)},
            fired=[everyone[3:], everyone[2:] if other else everyone],
            states={
                1: {
                    "membrane_potentials": dict.fromkeys(range(3), 2.5 if other else 5.0),
                    "consecutive_fire_counts": {0: FULL, 1: FULL, 2: 0} if other else dict.fromkeys(range(3), 0),
                },
                2: {
                    "membrane_potentials": dict.fromkeys(range(2), 1.75 if other else 0.0),
                    "consecutive_fire_counts": dict.fromkeys(range(2), FULL if other else 1),
                },
            },
            options=EngineOptions(emulate_batch_path=emulate),
        )
