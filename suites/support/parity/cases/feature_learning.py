"""Cases for plasticity modes and associative mappings: FEATURES.md sections 4 and 8."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burstproof.network.features import AreaFeatures, AssociativeMapping, Modulator, ModulatorKind, RuleFeatures
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from suites.support.parity.builder import Case, flags, network, stimulate, synapse
from suites.support.parity.cases.feature_parameters import GAIN, featured, modulator

REWARD, RATE = ModulatorKind.REWARD, ModulatorKind.LEARNING_RATE


def teaching_cases() -> Iterator[Case]:
    """All cases of this module."""
    yield from _rewards()
    yield from _bounds()
    yield from _traces()
    yield from _associations()
    yield from _associations_with_others()


def pair(
    *modulators: Modulator,
    trace: float = 0.0,
    window: int = 1,
    constant: float = 2,
    threshold: float = 99,
    **values: Any,
) -> Network:
    """0 -> 1 of weight 3, which learns in steps of 2, and the driver 2; 1 fires if the weight reaches its threshold."""
    columns = {"thresholds": [99, threshold, 99], "mp_charge_accumulation": False}
    base = network(3, [synapse(0, 1, weight=3)], cortical_areas=[9, 10, 8], **columns)
    base = base.replace(synapses=replace(base.synapses, eligibility_traces=np.array([trace], np.float32)))
    mapping = PlasticMapping(np.array([0]), window, constant, 1.0, 1.0, **values)
    return featured(base, modulators=modulators).replace(plastic_mappings=(mapping,))


def learnt(*values: tuple[int, float, float]) -> dict[int, dict[str, Sequence[float]]]:
    """Weight and trace by burst."""
    return {burst: {"weights": [weight], "eligibility_traces": [trace]} for burst, weight, trace in values}


def _rewards() -> Iterator[Case]:
    both, all_three = stimulate({}, 0, 1), stimulate({}, 0, 1, 2)
    yield Case(
        "rewards: without one the trace changes and the weight does not",
        pair(rewarded=True, threshold=4),
        plan={1: both, 2: stimulate({}, 0)},
        fired=[[0, 1], [0], []],
        states=learnt((1, 3, 2), (2, 3, -2), (3, 3, 0)),
    )
    yield Case(
        "rewards: one acts on the burst after its driver fired",
        pair(modulator(REWARD, 100), rewarded=True, rewards=(0,), threshold=5),
        plan={1: all_three, 2: both, 3: both},
        fired=[[0, 1, 2], [0, 1], [0, 1], {1: 5}],
        states=learnt((1, 3, 2), (2, 5, 2), (3, 5, 2)),
    )
    yield Case(
        "rewards: a negative one lowers the weight by a positive trace, and does nothing with a negative one",
        pair(modulator(REWARD, -50), rewarded=True, rewards=(0,)),
        plan={1: all_three, 2: all_three, 3: stimulate({}, 0)},
        fired=[[0, 1, 2], [0, 1, 2], [0]],
        states=learnt((1, 3, 2), (2, 2, 2), (3, 2, -2)),
    )
    decay = np.float32(np.exp(-0.5))
    yield Case(
        "rewards: a negative one leaves the weight of a negative trace alone, so the target stays silent",
        pair(modulator(REWARD, -50), rewarded=True, rewards=(0,), trace=-4, eligibility_decay=2, threshold=3.5),
        plan={1: stimulate({}, 2), 3: stimulate({}, 0)},
        fired=[[2], [], [0], []],
        states=learnt((2, 3, np.float32(-4) * decay * decay)),
    )
    reward = (np.float32(0) + np.float32(1)) + np.float32(-40) / np.float32(100)
    change = np.float32(0.75) * (reward * np.float32(1.5)) * np.float32(2)
    yield Case(
        "rewards add up, learning rates multiply them, then eta and the trace",
        pair(
            modulator(REWARD, 100),
            modulator(REWARD, -40),
            modulator(RATE, 50),
            rewarded=True,
            eta=0.75,
            rewards=(0, 1),
            learning_rates=(2,),
            threshold=5,
        ),
        plan={1: stimulate({}, 2), 2: both, 3: stimulate({}, 0)},
        fired=[[2], [0, 1], [0], []],
        states=learnt((2, np.float32(3) + change, 2)),
    )
    yield Case(
        "rewards: those of a mapping that is not reward-modulated count for nothing",
        pair(modulator(REWARD, -50), rewards=(0,)),
        plan={1: stimulate({}, 2), 2: both},
        fired=[[2], [0, 1]],
        states=learnt((2, 5, 2)),
    )
    yield Case(
        "learning rates: at -100 % traces change and weights do not",
        pair(modulator(RATE, -100), learning_rates=(0,), threshold=6),
        plan={1: all_three, 2: both, 3: both},
        fired=[[0, 1, 2], [0, 1], [0, 1], []],
        states=learnt((1, 5, 2), (2, 5, 2), (3, 7, 2)),
    )


def _bounds() -> Iterator[Case]:
    both = stimulate({}, 0, 1)
    yield Case(
        "eta scales a step, so the target stays silent",
        pair(eta=0.5, threshold=4.5),
        plan={1: both, 2: stimulate({}, 0)},
        fired=[[0, 1], [0], []],
    )
    yield Case(
        "a weight ends at its largest, so the target stays silent",
        pair(max_weight=4.5, threshold=4.75),
        plan={1: both, 2: stimulate({}, 0)},
        fired=[[0, 1], [0], []],
    )
    yield Case(
        "eta scales a step, and a weight ends at its largest; a greater one comes down at the next rise",
        pair(eta=0.5, max_weight=4.5),
        plan={1: both, 2: both, 3: stimulate({}, 0)},
        fired=[[0, 1], [0, 1], [0]],
        states=learnt((1, 4, 2), (2, 4.5, 2), (3, 3.5, -2)),
    )
    yield Case(
        "a change too small for a float32 is a rise by 0, at which a greater weight comes down to the largest",
        pair(modulator(REWARD, 1e-30), rewarded=True, rewards=(0,), eta=1e-30, max_weight=2),
        plan={1: stimulate({}, 2), 2: both},
        fired=[[2], [0, 1]],
        states=learnt((1, 3, 0), (2, 2, 2)),
    )
    yield Case(
        "a frozen mapping changes neither weights nor traces",
        pair(trace=4, frozen=True, threshold=4),
        plan={1: both, 2: stimulate({}, 0)},
        fired=[[0, 1], [0], []],
        states=learnt((1, 3, 4), (2, 3, 4)),
    )


def _traces() -> Iterator[Case]:
    decay = np.float32(np.exp(-0.5))
    yield Case(
        "traces decay over bursts, before the step of the burst is added",
        pair(rewarded=True, eligibility_decay=2),
        plan={1: stimulate({}, 0, 1), 3: stimulate({}, 0, 1)},
        fired=[[0, 1], [], [0, 1]],
        states=learnt((1, 3, 2), (2, 3, np.float32(2) * decay), (3, 3, np.float32(2) * decay * decay + np.float32(2))),
    )
    yield Case(
        "traces: a decay over one burst leaves 1/e of them",
        pair(rewarded=True, eligibility_decay=1, trace=4),
        fired=[[]],
        states=learnt((1, 3, np.float32(4) * np.float32(np.exp(-1.0)))),
    )
    yield Case(
        "traces: without rewards nothing is left of them, whatever the decay",
        pair(eligibility_decay=2, trace=4),
        fired=[[]],
        states=learnt((1, 3, 0)),
    )
    yield Case(
        "traces: nothing happens before the window is known, not even the decay",
        pair(
            modulator(REWARD, 100),
            rewarded=True,
            rewards=(0,),
            eligibility_decay=2,
            window=2,
            trace=4,
            threshold=5,
        ),
        plan={1: stimulate({}, 2), 3: stimulate({}, 0)},
        fired=[[2], [], [0], [1]],
        states=learnt((1, 3, 4), (2, np.float32(3) + np.float32(4) * decay, np.float32(4) * decay)),
    )
    yield Case(
        "traces do not even decay where there are neither steps nor a reward",
        pair(
            modulator(REWARD, 100),
            rewarded=True,
            rewards=(0,),
            eligibility_decay=2,
            trace=4,
            constant=0,
            threshold=5,
        ),
        plan={1: stimulate({}, 2), 3: stimulate({}, 0)},
        fired=[[2], [], [0], [1]],
        states=learnt((1, 3, 4), (2, np.float32(3) + np.float32(4) * decay, np.float32(4) * decay)),
    )
    yield Case(
        "traces: a reward works on what is left of an old trace",
        pair(modulator(REWARD, 100), rewarded=True, eligibility_decay=2, rewards=(0,), threshold=3.5),
        plan={1: stimulate({}, 0, 1), 2: stimulate({}, 2), 4: stimulate({}, 0)},
        fired=[[0, 1], [2], [], [0], [1]],
        states=learnt(
            (2, 3, np.float32(2) * decay),
            (3, np.float32(3) + np.float32(2) * decay * decay, np.float32(2) * decay * decay),
        ),
    )


def associating(
    synapses: Sequence[dict[str, Any]] = (), *, window: int = 1, psp: float = 3, areas: Any = (), **values: Any
) -> Network:
    """Neurons 0 and 1 of area 9, 2 and 3 of area 10 with threshold 5, the driver 4; a mapping from area 9 to 10.

    With ``forgets`` the neurons do not accumulate, and the threshold is 7.
    """
    forgets = values.pop("forgets", False)
    reach = 7 if forgets else 5
    columns = {"thresholds": [1, 1, reach, reach, 1], "mp_charge_accumulation": not forgets}
    base = network(5, synapses, cortical_areas=[9, 9, 10, 10, 8], areas=areas, **columns)
    keys = ("inhibitory", "rule")
    mapping = AssociativeMapping(9, 10, 0, psp, **{key: values.pop(key) for key in keys if key in values})
    others = {key: values.pop(key) for key in ("modulators", "rules") if key in values}
    plastic = PlasticMapping(np.arange(len(synapses)), window, 2.0, 1.0, 1.0, **values)
    return featured(base, associative=(mapping,), **others).replace(plastic_mappings=(plastic,))


def made(sources: Sequence[int], targets: Sequence[int], weights: Sequence[float], **others: Any) -> dict[str, Any]:
    """Synapses that are there."""
    columns = {"sources": sources, "targets": targets, "weights": weights, **others}
    return {f"features.made.{name}": values for name, values in columns.items()}


def _associations() -> Iterator[Case]:
    yield Case(
        "associations: made where both areas fired, not updated in that burst; later by the activity of the areas",
        associating(),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0), 4: stimulate({}, 1, 3), 5: stimulate({}, 0)},
        fired=[[0, 2], [0], {2: 6}, [1, 3], [0], {2: 12}],
        states={
            1: made([0], [2], [2], eligibility_traces=[0], postsynaptic_potentials=[3]),
            2: made([0], [2], [2], eligibility_traces=[0]),
            4: made([0, 1], [2, 3], [4, 2], eligibility_traces=[2, 0]),
            5: made([0, 1], [2, 3], [4, 2], eligibility_traces=[0, 0]),
        },
    )
    yield Case(
        "associations: firings of the whole window meet, once so many bursts are known",
        associating(window=2),
        plan={1: stimulate({}, 0, 2), 3: stimulate({}, 1), 4: stimulate({}, 3)},
        fired=[[0, 2], [], [1], [3]],
        states={1: made([], [], []), 2: made([0], [2], [2]), 3: made([0], [2], [2]), 4: made([0, 1], [2, 3], [4, 2])},
    )
    yield Case(
        "associations: every source meets every target",
        associating(),
        plan={1: stimulate({}, 0, 1, 2, 3)},
        fired=[[0, 1, 2, 3]],
        states={1: made([0, 0, 1, 1], [2, 3, 2, 3], [2, 2, 2, 2])},
    )
    yield Case(
        "associations: a synapse of the network takes part, and no second one is made beside it",
        associating([synapse(0, 2)]),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 1, 2)},
        fired=[[0, 2], [1, 2]],
        states={1: made([], [], []) | {"weights": [3]}, 2: made([1], [2], [2]) | {"weights": [5]}},
    )
    yield Case(
        "associations: inhibitory ones lower a potential",
        associating(inhibitory=True, forgets=True),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0)},
        fired=[[0, 2], [0], []],
        states={3: {"membrane_potentials": {2: -6}}},
    )
    yield Case(
        "associations: one that is made does not learn at once; later it does although its own ends are silent",
        associating(forgets=True),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0), 3: stimulate({}, 1, 3), 4: stimulate({}, 0)},
        fired=[[0, 2], [0], [1, 3], [0], {2: 12}],
    )
    yield Case(
        "associations: beside a synapse of the network nothing is made that would add to it",
        associating([synapse(0, 2)], forgets=True),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0)},
        fired=[[0, 2], [0], []],
        states={3: {"membrane_potentials": {2: 3}}},
    )


def _associations_with_others() -> Iterator[Case]:
    reward = (modulator(REWARD, 100),)
    yield Case(
        "associations: under rewards one is made only where the factor is above 0",
        associating(rewarded=True, rewards=(0,), modulators=reward),
        plan={1: stimulate({}, 0, 2, 4), 2: stimulate({}, 0, 2), 3: stimulate({}, 0, 2)},
        fired=[[0, 2, 4], [0, 2], [0, 2]],
        states={
            1: made([], [], []),
            2: made([0], [2], [2], eligibility_traces=[0]),
            3: made([0], [2], [2], eligibility_traces=[2]),
        },
    )
    yield Case(
        "associations: without a reward none is made that would fire the target",
        associating(rewarded=True, rewards=(0,), modulators=reward),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0)},
        fired=[[0, 2], [0], []],
    )
    yield Case(
        "associations: a source that is not uniform divides by all its synapses of that moment",
        associating([{**synapse(0, 4, weight=4), "source": 0}], areas=(flags(9, uniform=False),)).replace(
            plastic_mappings=(PlasticMapping(np.empty(0, np.int64), 1, 2.0, 1.0, 1.0),)
        ),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0), 3: stimulate({}, 0)},
        fired=[[0, 2], {0: 100, 4: 4}, {0: 100, 4: 2}, {2: 6, 4: 2}],
    )
    still = associating([synapse(0, 2)], rewarded=True, eligibility_decay=2)
    still = still.replace(
        synapses=replace(still.synapses, eligibility_traces=np.array([4], np.float32)),
        plastic_mappings=(replace(still.plastic_mappings[0], constant=0),),
    )
    yield Case(
        "associations: where there are neither steps nor a reward, traces do not even decay",
        still,
        fired=[[]],
        states={1: {"eligibility_traces": [4]}},
    )
    driven = associating(areas=(flags(9, uniform=True, mp_driven=True),), forgets=True)
    driven = driven.replace(
        neurons=replace(
            driven.neurons,
            thresholds=np.array([-9, -9, 7, 7, 1], np.float32),
            mp_charge_accumulation=np.ones(5, np.bool_),
            membrane_potentials=np.array([-2, 0.25, 0, 0, 0], np.float32),
        )
    )
    yield Case(
        "associations: a potential that drives them counts from 0 on",
        driven,
        plan={1: stimulate({}, 0, 1, 2, 3), 2: stimulate({0: 0, 1: 0})},
        fired=[[0, 1, 2, 3], {0: -2, 1: 0.25}, []],
        states={3: {"membrane_potentials": {2: 0.5, 3: 0.5}}},
    )
    yield Case(
        "associations: the factor of their rule scales them",
        associating(rule=1, rules=(RuleFeatures(gains=(0,)),), modulators=(modulator(GAIN, 100),)),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 4), 3: stimulate({}, 0)},
        fired=[[0, 2], [4], [0], {2: 12}],
    )
    fading = associating()
    yield Case(
        "associations: degeneration wears them",
        fading.replace(features=replace(fading.features, areas={9: AreaFeatures(degeneration=1)})),
        plan={1: stimulate({}, 0, 2), 2: stimulate({}, 0), 3: stimulate({}, 0)},
        fired=[[0, 2], [0], {0: 100, 2: 6}, []],
        states={
            2: made([0], [2], [2], postsynaptic_potentials=[2]),
            3: made([0], [2], [4], postsynaptic_potentials=[1]),
            4: {"membrane_potentials": {2: 4}},
        },
    )
    yield Case(
        "associations: a frozen mapping makes none",
        associating(frozen=True),
        plan={1: stimulate({}, 0, 2)},
        fired=[[0, 2]],
        states={1: made([], [], [])},
    )
