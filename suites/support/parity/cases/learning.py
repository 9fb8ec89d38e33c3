"""Cases for plasticity (SEMANTICS section 5); expectations are worked out by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from burstproof.network.plasticity import PlasticMapping
from suites.support.parity.builder import Case, network, stimulate, synapse

BETA = EngineOptions(profile=FEAGI_BETA)


def learning_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _windows()
    yield from _pairs()
    yield from _steps()


def _windows() -> Iterator[Case]:
    pair = network(2, [synapse(0, 1, weight=3)], thresholds=99)

    def plastic(window: int) -> PlasticMapping:
        return PlasticMapping(np.array([0]), window, constant=2, ltp_multiplier=1, ltd_multiplier=1)

    yield Case(
        "window 1: both fire, +c ltp; one fires, -c ltd, not below 0; none, unchanged; forced ones count",
        replace(pair, plastic_mappings=(plastic(1),)),
        plan={1: stimulate({}, 0, 1), 2: stimulate({}, 0), 4: stimulate({}, 1), 5: stimulate({}, 0)},
        fired=[[0, 1], [0], [], [1], [0]],
        states={
            b: {"weights": {0: w}, "eligibility_traces": {0: e}}
            for b, w, e in ((1, 5, 2), (2, 3, -2), (3, 3, 0), (4, 1, -2), (5, 0, -2))
        },
    )
    yield Case(
        "a contribution uses the weight before the update of the burst in which the source fired",
        replace(pair, plastic_mappings=(plastic(1),)),
        plan={1: stimulate({}, 0, 1)},
        fired=[[0, 1], []],
        states={2: {"membrane_potentials": {1: 3.0}, "weights": {0: 5.0}}},
    )
    yield Case(
        "window 2: firings of two bursts pair up, and nothing changes before two bursts are known",
        replace(pair, plastic_mappings=(plastic(2),)),
        plan={1: stimulate({}, 0), 2: stimulate({}, 1), 3: stimulate({}, 0)},
        fired=[[0], [1], [0], [], []],
        states={b: {"weights": {0: w}} for b, w in ((1, 3), (2, 5), (3, 7), (4, 5), (5, 5))},
    )
    silent = network(3, [synapse(0, 1, weight=100), synapse(2, 1, weight=100)], thresholds=999)
    ends = {2: [0], 4: [1], 60: [1], 262: [1], 290: [1], 300: [0]}
    yield Case(
        "window 3: sources silent for 298 bursts, and for good: their synapses learn all the while",
        replace(silent, plastic_mappings=(PlasticMapping(np.array([0]), 3, 1.0, 2.0, 1.0),)),
        plan={burst: stimulate({}, *ids) for burst, ids in ends.items()},
        fired=[ends.get(burst, []) for burst in range(1, 303)],
        states={
            301: {"membrane_potentials": {1: 190}, "weights": {0: 88, 1: 88}, "eligibility_traces": {0: -1, 1: 0}},
            302: {"weights": {0: 87, 1: 88}, "eligibility_traces": {0: -1, 1: 0}},
        },
    )
    yield Case(
        "feagi-beta: potentiation needs both sides in the whole window, weights end at 255",
        replace(
            network(2, [synapse(0, 1, weight=254)], thresholds=999),
            plastic_mappings=(plastic(2),),
        ),
        plan={1: stimulate({}, 0, 1), 2: stimulate({}, 0, 1), 3: stimulate({}, 0)},
        fired=[[0, 1], [0, 1], [0], [], []],
        states={b: {"weights": {0: w}} for b, w in ((1, 254), (2, 255), (3, 253), (4, 251), (5, 251))},
        options=BETA,
    )


def _pairs() -> Iterator[Case]:
    made_by_rules = (
        synapse(0, 2, weight=10),
        synapse(1, 3, weight=10),
        synapse(0, 3, weight=10),
        synapse(1, 2, weight=10, type=1),
        synapse(0, 4, weight=10),
        synapse(2, 0, weight=10),
        synapse(0, 2, weight=10, valid=False),
    )
    areas = network(5, made_by_rules, thresholds=999, cortical_areas=[7, 7, 8, 8, 9])
    first, last = PlasticMapping(np.array([0])), PlasticMapping(np.array([1]), 1, 2.0, 3.0, 2.0)
    untouched = {4: 10, 5: 10, 6: 10}
    yield Case(
        "the last plastic rule of a pair teaches all its valid synapses, inhibitory and of any rule, and no other pair",
        replace(areas, plastic_mappings=(first, last)),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 1, 3)},
        fired=[[0, 2], [1, 3]],
        states={
            1: {"weights": {0: 16, 1: 10, 2: 6, 3: 6, **untouched}, "eligibility_traces": {0: 6, 1: 0, 2: -4, 3: -4}},
            2: {"weights": {0: 16, 1: 16, 2: 2, 3: 2, **untouched}, "eligibility_traces": {0: 0, 1: 6, 2: -4, 6: 0}},
        },
    )
    yield Case(
        "the window of the last plastic rule of a pair counts, not that of the first",
        replace(areas, plastic_mappings=(first, replace(last, window=2))),
        plan={1: stimulate({}, 0), 2: stimulate({}, 2)},
        fired=[[0], [2]],
        states={1: {"weights": {0: 10, 2: 10}}, 2: {"weights": {0: 16, 2: 6, 3: 6, **untouched}}},
    )
    yield Case(
        "rules of a pair and of its reverse teach each their own synapses",
        replace(areas, plastic_mappings=(first, PlasticMapping(np.array([5]), 1, 2.0, 3.0, 2.0))),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 2)},
        fired=[[0, 2], [2]],
        states={1: {"weights": {0: 11, 5: 16, 4: 10}}, 2: {"weights": {0: 10, 3: 8, 5: 12, 4: 10}}},
    )


def _steps() -> Iterator[Case]:
    """Both ends fire in burst 1, the source alone in burst 2."""
    table = (
        ("a constant of 2.5 is 2", (2.5, 1.0, 1.0), 10, 12, 10),
        ("a potentiation of 2.9 is 2", (1.0, 2.9, 1.0), 10, 12, 11),
        ("a depression of 2.9 is 2", (1.0, 1.0, 2.9), 10, 11, 9),
        (
            "constant, potentiation and depression are each truncated before they are multiplied",
            (2.5, 2.5, 1.5),
            10,
            14,
            12,
        ),
        ("a constant of 0.9 is 0", (0.9, 3.0, 3.0), 10, 10, 10),
        ("a potentiation of 0.9 is 0", (2.0, 0.9, 1.0), 10, 10, 8),
        ("a depression of 0.9 is 0", (2.0, 1.0, 0.9), 10, 12, 12),
        ("-1.5 is -1, and two of them make 1", (-1.5, -1.5, -1.5), 10, 11, 10),
        ("a negative constant teaches nothing", (-2.0, 1.0, 3.0), 10, 10, 10),
        ("a negative potentiation is 0", (2.0, -1.0, 1.0), 10, 10, 8),
        ("a negative depression is 0", (2.0, 1.0, -1.0), 10, 12, 12),
        ("a step of potentiation ends at 255", (20.0, 20.0, 1.0), 10, 265, 245),
        ("a step of depression ends at 255", (20.0, 1.0, 20.0), 300, 320, 65),
        ("a step of potentiation raises a negative weight, one of depression ends at 0", (1.0, 2.0, 1.0), -9, -7, 0),
        ("a step of depression of 0 leaves a negative weight as it is", (1.0, 2.0, 0.9), -9, -7, -7),
    )
    for name, parameters, weight, after_both, after_one in table:
        yield Case(
            f"plastic steps: {name}",
            replace(
                network(2, [synapse(0, 1, weight=weight)], thresholds=99999),
                plastic_mappings=(PlasticMapping(np.array([0]), 1, *parameters),),
            ),
            plan={1: stimulate({}, 0, 1), 2: stimulate({}, 0)},
            fired=[[0, 1], [0]],
            states={
                1: {"weights": {0: after_both}, "eligibility_traces": {0: after_both - weight}},
                2: {"weights": {0: after_one}},
            },
        )
