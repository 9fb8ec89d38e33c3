"""Cases for the dynamics of one neuron (SEMANTICS sections 1 and 3); expectations are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from burstproof.network.schema import NO_LIMIT
from suites.support.parity.builder import Case, network, stimulate, synapse

BETA = EngineOptions(profile=FEAGI_BETA)


def python_draw(neuron: int, burst: int) -> np.float32:
    """The excitability draw in Python integers."""
    mask = 0xFFFFFFFF
    seed = (neuron * 2654435761 + (burst & mask) * 1597334677) & mask
    state = (seed * 747796405 + 2891336453) & mask
    word = (((state >> ((state >> 28) + 4)) ^ state) * 277803737) & mask
    return np.float32(np.float32((word >> 22) ^ word) / np.float32(4294967296))


def every(bursts: int, amount: float, neuron: int = 0) -> dict[int, object]:
    """The same amount into one neuron in each of the first bursts."""
    return {b: stimulate({neuron: amount}) for b in range(1, bursts + 1)}


def dynamics_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _potential()
    yield from _refractory()
    yield from _excitability()
    yield from _restart()
    yield from _float32()
    yield from _infinite()
    yield from _invalid()


def _potential() -> Iterator[Case]:
    yield Case(
        "leak after the input, none without input, never towards the resting potential",
        network(1, thresholds=10, leak_coefficients=0.5, resting_potentials=1),
        plan={1: stimulate({0: 4}), 3: stimulate({0: 4})},
        fired=[[], [], []],
        states={i: {"membrane_potentials": {0: v}} for i, v in ((1, 2.0), (2, 2.0), (3, 3.0))},
    )
    yield Case(
        "reset to 0, not to the resting potential",
        network(1, thresholds=2, resting_potentials=5),
        plan={1: stimulate({0: 3})},
        fired=[{0: 3.0}],
        states={1: {"membrane_potentials": {0: 0.0}}},
    )
    yield Case(
        "shipped leak of 10: a factor of -9",
        network(1, thresholds=100, leak_coefficients=10),
        plan={1: stimulate({0: 2})},
        fired=[[]],
        states={1: {"membrane_potentials": {0: -18.0}}},
    )
    yield Case(
        "above the threshold limit it does not fire, at the limit it does",
        network(2, thresholds=1, threshold_limits=5),
        plan={1: stimulate({0: 6, 1: 5})},
        fired=[{1: 5.0}],
        states={1: {"membrane_potentials": {0: 6.0, 1: 0.0}}},
    )
    yield Case(
        "a negative threshold fires on a zero sum, not without being a candidate",
        network(2, thresholds=-1),
        plan={1: stimulate({0: 0})},
        fired=[{0: 0.0}, []],
    )
    yield Case(
        "potentials of six digits survive the way to the engine and back",
        network(1, thresholds=2, membrane_potentials=0.12345678),
        plan={2: stimulate({0: 2})},
        fired=[[], {0: float(np.float32(0.12345678) + np.float32(2))}],
        states={0: {"membrane_potentials": {0: 0.12345678}}, 1: {"membrane_potentials": {0: 0.12345678}}},
    )
    yield Case(
        "the power neuron gets its amount in every burst",
        network(2, [synapse(0, 1)], cortical_areas=[1, 7], thresholds=[1, 2]),
        fired=[[0], [0], [0, 1]],
        states={3: {"consecutive_fire_counts": {0: 3, 1: 1}}},
    )


def _refractory() -> Iterator[Case]:
    yield Case(
        "a period of 2 skips two bursts; the input of blocked bursts is lost",
        network(1, refractory_periods=2),
        plan=every(7, 1),
        fired=[[0], [], [], [0], [], [], [0]],
        states={
            1: {"refractory_countdowns": {0: 2}},
            2: {"refractory_countdowns": {0: 1}},
            3: {"refractory_countdowns": {0: 0}, "membrane_potentials": {0: 0.0}},
        },
    )
    yield Case(
        "no input and no leak while the countdown runs, which it does without being a candidate",
        network(1, thresholds=9, membrane_potentials=1, refractory_countdowns=3, leak_coefficients=0.5),
        plan={1: stimulate({0: 4}), 3: stimulate({0: 4}), 4: stimulate({0: 4})},
        fired=[[], [], [], []],
        states={
            1: {"membrane_potentials": {0: 1.0}, "refractory_countdowns": {0: 2}},
            2: {"refractory_countdowns": {0: 1}},
            3: {"membrane_potentials": {0: 1.0}, "refractory_countdowns": {0: 0}},
            4: {"membrane_potentials": {0: 2.5}},
        },
    )
    yield Case(
        "feagi-beta: the countdown waits for the neuron to be a candidate",
        network(1, refractory_countdowns=2),
        plan={2: stimulate({0: 1}), 4: stimulate({0: 1}), 5: stimulate({0: 1})},
        fired=[[], [], [], [], [0]],
        states={b: {"refractory_countdowns": {0: rc}} for b, rc in ((1, 2), (2, 1), (3, 1), (4, 0))},
        options=BETA,
    )


def _excitability() -> Iterator[Case]:
    count, bursts = 64, 8
    yield Case(
        "excitability 0.5: neurons fire exactly when their draw is below it",
        network(count, excitabilities=0.5),
        plan={b: stimulate(dict.fromkeys(range(count), 1)) for b in range(1, bursts + 1)},
        fired=[[i for i in range(count) if python_draw(i, b) < 0.5] for b in range(1, bursts + 1)],
    )
    yield Case(
        "excitability equal to the draw fails",
        network(8, excitabilities=[python_draw(i, 1) for i in range(8)]),
        plan={1: stimulate(dict.fromkeys(range(8), 1))},
        fired=[[]],
        states={1: {"membrane_potentials": {0: 1.0}}},
    )
    yield Case(
        "excitability 0 fails even where the draw is exactly 0",
        network(6, excitabilities=[1, 1, 1, 1, 1, 0], burst_count=1250361617),
        plan={1: stimulate({4: 1, 5: 1})},
        fired=[[4]],
    )
    yield Case(
        "excitability of 0.999 and of 100 always passes",
        network(2, excitabilities=[0.999, 100]),
        plan={b: stimulate({0: 1, 1: 1}) for b in range(1, 40)},
        fired=[[0, 1]] * 39,
    )


def _restart() -> Iterator[Case]:
    yield Case(
        "a non-accumulating neuron restarts from 0 after it was a candidate, and only then",
        network(1, thresholds=20, mp_charge_accumulation=False, membrane_potentials=3),
        plan={1: stimulate({0: 4}), 2: stimulate({0: 4})},
        fired=[[], [], [], []],
        states={b: {"membrane_potentials": {0: v}} for b, v in ((0, 3.0), (1, 7.0), (2, 4.0), (3, 0.0))},
    )
    refractory = network(1, thresholds=8, mp_charge_accumulation=False, membrane_potentials=5, refractory_countdowns=2)
    yield Case(
        "a non-accumulating neuron keeps its potential while its countdown runs, and restarts when it has ended",
        refractory,
        plan=every(3, 3),
        fired=[[], [], [], []],
        states={b: {"membrane_potentials": {0: v}} for b, v in ((1, 5.0), (2, 5.0), (3, 3.0), (4, 0.0))},
    )
    yield Case(
        "a non-accumulating neuron that was blocked once does not restart later: its potential meets the next input",
        refractory,
        plan={1: stimulate({0: 3}), 3: stimulate({0: 3})},
        fired=[[], [], {0: 8.0}],
        states={2: {"membrane_potentials": {0: 5.0}, "refractory_countdowns": {0: 0}}},
    )
    yield Case(
        "feagi-beta: every non-accumulating neuron restarts in every burst",
        network(1, thresholds=20, mp_charge_accumulation=False, membrane_potentials=3),
        fired=[[]],
        states={1: {"membrane_potentials": {0: 0.0}}},
        options=BETA,
    )


def _float32() -> Iterator[Case]:
    yield Case(
        "v + x is rounded to float32 before it is compared",
        network(1, membrane_potentials=16777216, thresholds=16777220),
        plan={1: stimulate({0: 3})},
        fired=[{0: 16777220.0}],
    )
    leak = np.float32(0.1)
    potential = next(
        float(v)
        for v in range(1, 1000)
        if np.float32(v) * (np.float32(1) - leak) != np.float32(v * (1.0 - float(leak)))
    )
    yield Case(
        "the leak factor is formed and applied in float32",
        network(1, thresholds=2000, membrane_potentials=potential, leak_coefficients=leak),
        plan={1: stimulate({0: 0})},
        fired=[[]],
        states={1: {"membrane_potentials": {0: float(np.float32(potential) * (np.float32(1) - leak))}}},
    )


def _infinite() -> Iterator[Case]:
    inf = float("inf")
    yield Case(
        "potentials become infinite, stay so without input and change their sign with a leak of 10",
        network(1, thresholds=1, membrane_potentials=-3e38, leak_coefficients=10),
        plan={1: stimulate({0: 0}), 3: stimulate({0: 1}), 4: stimulate({0: 1})},
        fired=[[], [], [], []],
        states={b: {"membrane_potentials": {0: v}} for b, v in ((1, inf), (2, inf), (3, -inf), (4, inf))},
    )
    yield Case(
        "an infinite potential is above every limit but an infinite one",
        network(2, thresholds=1, membrane_potentials=inf, threshold_limits=[NO_LIMIT, inf]),
        plan={1: stimulate({0: 1, 1: 1})},
        fired=[{1: inf}],
        states={1: {"membrane_potentials": {0: inf, 1: 0.0}}},
    )


def _invalid() -> Iterator[Case]:
    start = {
        "membrane_potentials": [2, 2],
        "refractory_countdowns": [3, 3],
        "consecutive_fire_limits": 2,
        "consecutive_fire_counts": [2, 2],
        "valid_mask": [True, False],
        "thresholds": 9,
    }
    yield Case(
        "an invalid neuron is never a candidate",
        network(2, [synapse(0, 1, weight=9)], valid_mask=[True, False]),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={2: {"membrane_potentials": {1: 0.0}}},
    )
    yield Case(
        "the countdown of an invalid neuron stands still, and its state stays",
        network(2, [synapse(0, 1)], **start),
        plan={4: stimulate({}, 0)},
        fired=[[], [], [], [0], []],
        states={
            b: {
                "refractory_countdowns": {0: max(3 - b, 0), 1: 3},
                "consecutive_fire_counts": {0: 2 if b < 3 else 0, 1: 2},
                "membrane_potentials": {0: 2.0, 1: 2.0},
            }
            for b in range(6)
        },
    )
    yield Case(
        "feagi-beta: the countdown of an invalid neuron stands still though contributions reach it",
        network(2, [synapse(0, 1)], refractory_countdowns=[0, 3], valid_mask=[True, False]),
        plan={1: stimulate({}, 0)},
        fired=[[0], [], []],
        states={3: {"refractory_countdowns": {1: 3}}},
        options=BETA,
    )
    yield Case(
        "an invalid power neuron never fires",
        network(2, [synapse(0, 1)], cortical_areas=[1, 7], valid_mask=[False, True]),
        fired=[[], []],
        states={2: {"membrane_potentials": {0: 0.0, 1: 0.0}}},
    )
