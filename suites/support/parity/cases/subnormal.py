"""Cases whose potentials, thresholds or limits are subnormal: they are compared and rounded like any others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from suites.support.parity.builder import Case, network, stimulate

TINY = 2.0**-149
"""The smallest positive float32."""


def _every(bursts: int, neurons: int = 1) -> dict[int, object]:
    """Candidates whose sum is 0, in each of the first bursts."""
    return {b: stimulate(dict.fromkeys(range(neurons), 0)) for b in range(1, bursts + 1)}


def subnormal_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _compared()
    yield from _decaying()


def _compared() -> Iterator[Case]:
    yield Case(
        "a subnormal potential reaches its own value, not the next one",
        network(2, membrane_potentials=[TINY, 2 * TINY], thresholds=2 * TINY),
        plan=_every(1, 2),
        fired=[{1: 2 * TINY}],
    )
    yield Case(
        "a subnormal potential is above a limit of 0",
        network(2, membrane_potentials=[TINY, 0], thresholds=-1, threshold_limits=0),
        plan=_every(1, 2),
        fired=[{1: 0.0}],
        states={1: {"membrane_potentials": {0: TINY}}},
    )
    yield Case(
        "a negative subnormal potential is below a threshold of 0, and halved it is -0",
        network(1, membrane_potentials=-TINY, thresholds=0, leak_coefficients=0.5),
        plan=_every(2),
        fired=[[], {0: 0.0}],
    )
    yield Case(
        "a subnormal excitability passes a draw of 0",
        network(6, excitabilities=TINY, burst_count=1250361617),
        plan={1: stimulate({4: 1, 5: 1})},
        fired=[{5: 1.0}],
    )
    yield Case(
        "a subnormal potential is lost in an input, and kept without",
        network(2, membrane_potentials=TINY, thresholds=1),
        plan={1: stimulate({0: 1, 1: 0})},
        fired=[{0: 1.0}],
        states={1: {"membrane_potentials": {1: TINY}}},
    )


def _decaying() -> Iterator[Case]:
    halves = {0: 2 * TINY, 1: 2 * TINY, 2: 0.0, 3: 2.0**-126, 4: 2.0**-127}
    yield Case(
        "halves of the last place of a subnormal go to the even one",
        network(
            5,
            membrane_potentials=[3 * TINY, 5 * TINY, TINY, 2.0**-125 - TINY, 2.0**-126],
            leak_coefficients=0.5,
        ),
        plan=_every(1, 5),
        fired=[[]],
        states={1: {"membrane_potentials": halves}},
    )
    yield Case(
        "a potential decays through subnormals until it is within its limit",
        network(1, membrane_potentials=2.0**-126, leak_coefficients=0.5, thresholds=0, threshold_limits=2.0**-128),
        plan=_every(3),
        fired=[[], [], {0: 2.0**-128}],
        states={1: {"membrane_potentials": {0: 2.0**-127}}},
    )
    yield Case(
        "a factor of 2^20 brings the smallest potential to its threshold",
        network(1, membrane_potentials=TINY, leak_coefficients=1 - 2.0**20, thresholds=2.0**-89),
        plan=_every(4),
        fired=[[], [], [], {0: 2.0**-89}],
        states={1: {"membrane_potentials": {0: 2.0**-129}}},
    )
    leak, v, bursts = np.float32(0.9), np.float32(1), 0
    while v > 0:
        v, bursts = v * (np.float32(1) - leak), bursts + 1
    yield Case(
        "with a limit of 0 a neuron fires when its potential has decayed to 0, and no burst before",
        network(1, membrane_potentials=1, leak_coefficients=leak, thresholds=0, threshold_limits=0),
        plan=_every(bursts + 1),
        fired=[*[[]] * bursts, {0: 0.0}],
    )
