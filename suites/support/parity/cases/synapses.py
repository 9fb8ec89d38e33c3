"""Cases for contributions and delays (SEMANTICS section 2); expectations are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from suites.support.parity.builder import Case, flags, network, stimulate, synapse

BETA = EngineOptions(profile=FEAGI_BETA)
FRACTIONS = EngineOptions(fractional_stimulus=True)


def synapse_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _sums()
    yield from _division()
    yield from _mp_driven()
    yield from _delays()


def _sums() -> Iterator[Case]:
    yield Case(
        "a sum of 0 still makes a candidate: it leaks and its count restarts",
        network(
            3,
            [synapse(0, 2, weight=3), synapse(1, 2, weight=3, type=1)],
            thresholds=[1, 1, 99],
            membrane_potentials=[0, 0, 8],
            leak_coefficients=[0, 0, 0.5],
            consecutive_fire_limits=3,
            consecutive_fire_counts=[0, 0, 2],
        ),
        plan={1: stimulate({}, 0, 1)},
        fired=[[0, 1], []],
        states={2: {"membrane_potentials": {2: 4.0}, "consecutive_fire_counts": {2: 0}}},
    )
    yield Case(
        "a contribution of weight 0 makes its target a candidate",
        network(2, [synapse(0, 1, weight=0)], membrane_potentials=[0, 8], thresholds=99, leak_coefficients=0.5),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={2: {"membrane_potentials": {1: 4.0}}},
    )
    yield Case(
        "a net negative sum counts as 0 where the neuron accumulates and is added where it does not",
        network(
            3,
            [synapse(0, 1, weight=5, type=1), synapse(0, 2, weight=5, type=1)],
            thresholds=99,
            membrane_potentials=[0, 8, 8],
            leak_coefficients=[0, 0.5, 0],
            mp_charge_accumulation=[True, True, False],
        ),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={2: {"membrane_potentials": {1: 4.0, 2: 3.0}}},
    )
    yield Case(
        "feagi-beta: a net negative sum lowers the potential of an accumulating neuron",
        network(2, [synapse(0, 1, weight=5, type=1)], thresholds=99, membrane_potentials=[0, 8]),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={2: {"membrane_potentials": {1: 3.0}}},
        options=BETA,
    )
    full, sources = 255 * 255, 40
    yield Case(
        "40 full-strength synapses onto one neuron add up without overflow",
        network(
            sources + 1,
            [synapse(i, sources, weight=255, psp=255) for i in range(sources)],
            thresholds=[1] * sources + [full * sources],
        ),
        plan={1: stimulate({}, *range(sources))},
        fired=[list(range(sources)), {sources: float(full * sources)}],
    )
    yield Case(
        "an invalid synapse contributes nothing",
        network(3, [synapse(0, 1, valid=False), synapse(0, 2)]),
        plan={1: stimulate({}, 0)},
        fired=[[0], [2]],
        states={2: {"membrane_potentials": {1: 0.0}}},
    )
    clustered = 4096
    yield Case(
        "no synapse of thousands of neighbouring sources is lost",
        network(2 * clustered, [synapse(i, clustered + i) for i in range(clustered)]),
        plan={1: stimulate({}, *range(clustered))},
        fired=[list(range(clustered)), list(range(clustered, 2 * clustered))],
    )


def _division() -> Iterator[Case]:
    yield Case(
        "a source in a non-uniform area divides among all its valid synapses",
        network(
            5,
            [synapse(0, t, weight=2, psp=3) for t in (1, 2, 3, 4)] + [synapse(0, 1, valid=False)],
            thresholds=[1, 9, 9, 9, 1.5],
            areas=[flags(uniform=False)],
        ),
        plan={1: stimulate({}, 0)},
        fired=[[0], {4: 1.5}],
        states={2: {"membrane_potentials": {1: 1.5}}},
    )
    yield Case(
        "a source in a uniform area contributes in full, and so does any where no flag is registered",
        network(3, [synapse(0, 1, weight=2, psp=3), synapse(0, 2)], thresholds=99, areas=[flags(uniform=True)]),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={2: {"membrane_potentials": {1: 6.0, 2: 1.0}}},
    )
    yield Case(
        "an area without flags divides as soon as another area has one",
        network(3, [synapse(0, 1), synapse(0, 2)], thresholds=99, areas=[flags(9, uniform=True)]),
        plan={1: stimulate({}, 0)},
        fired=[[0], []],
        states={2: {"membrane_potentials": {1: 0.5}}},
    )
    weight, psp, count = _rounding_order()
    product = np.float32(weight * psp) / np.float32(count)
    yield Case(
        "the division follows the product, in float32",
        network(
            count + 1,
            [synapse(0, t, weight=weight, psp=psp) for t in range(1, count + 1)],
            thresholds=[1] + [float(product)] * count,
            areas=[flags(uniform=False)],
        ),
        plan={1: stimulate({}, 0)},
        fired=[[0], list(range(1, count + 1))],
        options=FRACTIONS,
    )


def _rounding_order() -> tuple[np.float32, np.float32, int]:
    """A weight, psp and fan-out for which (w x psp) / n exceeds w x (psp / n) in float32."""
    for count in (3, 5, 6, 7):
        for tenths in range(10001, 10400):
            weight, psp = np.float32(tenths / 100), np.float32(7.3)
            if weight * psp / np.float32(count) > weight * (psp / np.float32(count)):
                return weight, psp, count
    raise AssertionError("float32 has no such numbers")


def _mp_driven() -> Iterator[Case]:
    yield Case(
        "in an mp-driven area the potential at firing replaces psp",
        network(2, [synapse(0, 1, weight=2, psp=5)], thresholds=[1, 99], areas=[flags(uniform=True, mp_driven=True)]),
        plan={1: stimulate({0: 7.25})},
        fired=[{0: 7.25}, []],
        states={2: {"membrane_potentials": {1: 14.5}}},
        options=FRACTIONS,
    )
    yield Case(
        "a negative mp-driven potential counts as 0, and its targets are still candidates",
        network(
            3,
            [synapse(0, 1, weight=2), synapse(0, 2, weight=2)],
            thresholds=[-5, 99, 99],
            membrane_potentials=[0, 8, 8],
            mp_charge_accumulation=[False, True, False],
            leak_coefficients=[0, 0.5, 0.5],
            areas=[flags(uniform=True, mp_driven=True)],
        ),
        plan={1: stimulate({0: -3})},
        fired=[{0: -3.0}, []],
        states={2: {"membrane_potentials": {1: 4.0, 2: 4.0}}},
    )
    yield Case(
        "feagi-beta: the mp-driven potential is rounded half away from zero and capped at 255",
        network(
            4,
            [synapse(0, 2), synapse(1, 3)],
            thresholds=[1, 1, 999, 999],
            membrane_potentials=[2.5, 300, 0, 0],
            areas=[flags(uniform=True, mp_driven=True)],
        ),
        plan={1: stimulate({0: 0, 1: 0})},
        fired=[{0: 2.5, 1: 300.0}, []],
        states={2: {"membrane_potentials": {2: 3.0, 3: 255.0}}},
        options=BETA,
    )


def _delays() -> Iterator[Case]:
    delays = (1, 2, 3, 255)
    bursts = 257
    arrivals = {1 + delay: [1 + i] for i, delay in enumerate(delays)}
    yield Case(
        "a contribution arrives after its delay of 1 to 255 bursts",
        network(5, [synapse(0, 1 + i, delay=d) for i, d in enumerate(delays)]),
        plan={1: stimulate({}, 0)},
        fired=[[0]] + [arrivals.get(b, []) for b in range(2, bursts + 1)],
    )
    yield Case(
        "contributions of several bursts that arrive together add up",
        network(3, [synapse(0, 2, delay=3), synapse(1, 2, delay=1, weight=2)], thresholds=[1, 1, 3]),
        plan={1: stimulate({}, 0), 3: stimulate({}, 1)},
        fired=[[0], [], [1], {2: 3.0}, []],
    )
