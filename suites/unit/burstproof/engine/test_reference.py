"""What the hand-worked cases of stage 5 leave open about the executable specification."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from burstproof.engine import reference_associative
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from burstproof.engine.reference import ReferenceEngine, draw
from burstproof.engine.reference_associative import MadeSynapses, check_room
from burstproof.engine.reference_memory import Memories, half_away
from burstproof.engine.state import NO_STIMULUS
from burstproof.errors import BurstproofError, InputError, NetworkError
from burstproof.network.features import FIRST_MEMORY_ID, Features, MemoryArea, MemoryChange
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NO_LIMIT
from suites.support.parity.builder import network, stimulate, synapse
from suites.support.parity.cases.feature_learning import associating
from suites.support.parity.cases.feature_memory import remembering, replaying
from suites.support.parity.recordings import recording

pytestmark = pytest.mark.requirement("BE-4")


def plastic(synapses: list[int], window: int) -> PlasticMapping:
    return PlasticMapping(np.array(synapses, np.int64), window, constant=2, ltp_multiplier=1, ltd_multiplier=1)


def test_the_specification_says_what_it_refuses() -> None:
    engine = ReferenceEngine.create(network(2), EngineOptions())
    with pytest.raises(BurstproofError, match="9"):
        engine.step(stimulate({9: 1.0}))
    with pytest.raises(NetworkError, match="a delay of 0"):
        ReferenceEngine.create(network(2, [synapse(0, 1, delay=0)]), EngineOptions())


def test_a_plan_is_checked_before_its_first_burst() -> None:
    engine = ReferenceEngine.create(network(2), EngineOptions())
    with pytest.raises(BurstproofError, match="9"):
        engine.run(3, {1: stimulate({0: 1.0}), 3: stimulate({9: 1.0})})
    assert engine.burst_count == 0
    engine.run(2, {3: stimulate({9: 1.0})})
    assert engine.burst_count == 2


def test_an_interrupted_restore_leaves_no_state() -> None:
    engine = ReferenceEngine.create(network(2, [synapse(0, 1)]), EngineOptions())
    state = engine.state()
    with mock.patch.object(engine, "_stored", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        engine.restore(replace(state, burst_count=5))
    for ask in (engine.state, engine.step):
        with pytest.raises(InputError, match="interrupted within a burst"):
            ask()
    engine.restore(state)
    assert engine.step().number == 1


def test_the_specification_begins_with_nothing_under_way() -> None:
    """No firing, one slot where all delays are 1, and no history where nothing learns."""
    engine = ReferenceEngine.create(network(2, [synapse(0, 1)]), EngineOptions())
    fresh = engine.state()
    assert (fresh.fired_ids.size, fresh.fired_potentials.size, fresh.pending.shape) == (0, 0, (1, 2))
    engine.step(stimulate({0: 1.0}))
    assert engine.state().history_bursts == 0
    features = ReferenceEngine.create(remembering(), EngineOptions()).state().features
    assert features is not None
    assert features.bursts_since_load == 0


def test_memory_neurons_are_candidates_too() -> None:
    """From burst 2 on the same seven neurons are driven; in some bursts a memory neuron is, and fires."""
    found = recording("features/mem1_11")
    engine = ReferenceEngine.create(found.network, EngineOptions())
    bursts = [engine.step(found.plan.get(number, NO_STIMULUS)) for number in found.bursts.tolist()][1:]
    memories = [int((burst.fired_ids >= FIRST_MEMORY_ID).sum()) for burst in bursts]
    assert set(memories) == {0, 1}
    assert [burst.candidates for burst in bursts] == [7 + count for count in memories]


@pytest.mark.parametrize(("count", "fires"), [(999_999, False), (1_000_000, True)])
def test_in_a_large_network_only_who_fired_restarts(count: int, fires: bool) -> None:
    """Section 3 under feagi-beta: a neuron that does not accumulate keeps its potential from a million neurons on.

    One that fired begins at 0 in both.
    """
    large = network(count, mp_charge_accumulation=False, thresholds=2)
    engine = ReferenceEngine.create(large, EngineOptions(FEAGI_BETA))
    engine.step(stimulate({5: 1.0}))
    assert engine.step(stimulate({5: 1.0})).fired_ids.tolist() == [5] * fires
    assert engine.step(stimulate({5: 1.0})).fired_ids.tolist() == []


def test_a_weight_falls_to_0_where_all_of_the_window_learns() -> None:
    pair = replace(network(2, [synapse(0, 1, weight=1)], thresholds=99), plastic_mappings=(plastic([0], 1),))
    engine = ReferenceEngine.create(pair, EngineOptions(FEAGI_BETA))
    engine.step(stimulate({}, 0))
    assert engine.state().weights.tolist() == [0]


def test_an_excitability_of_0_999_needs_no_draw_in_the_specification() -> None:
    """Of 5000 neurons some draw more than that, and fire all the same."""
    count = 5000
    assert draw(np.arange(count), 1).max() > 0.9995
    engine = ReferenceEngine.create(network(count, excitabilities=np.full(count, 0.999)), EngineOptions())
    assert len(engine.step(stimulate(dict.fromkeys(range(count), 1.0))).fired_ids) == count


def test_a_streak_begins_anew_after_a_gap_in_the_specification() -> None:
    pair = replace(network(2, [synapse(0, 1)], thresholds=99), plastic_mappings=(plastic([0], 3),))
    engine = ReferenceEngine.create(pair, EngineOptions())
    streaks = []
    for fires in (True, True, False, True, True, True, True):
        engine.step(stimulate({}, *([0] if fires else [])))
        streaks.append(int(engine.state().fire_streak[0]))
    assert streaks[:2] == [1, 2]
    assert streaks[3:] == [1, 2, 3, 3]


def test_a_rule_without_synapses_keeps_its_history_in_the_specification() -> None:
    pair = replace(network(2, [synapse(0, 1)]), plastic_mappings=(plastic([0], 2), plastic([], 5)))
    engine = ReferenceEngine.create(pair, EngineOptions())
    known = []
    for _ in range(6):
        engine.step()
        known.append(engine.state().history_bursts)
    assert known == [1, 2, 3, 4, 4, 4]


def test_state_that_no_burst_can_see_is_not_kept_by_the_specification() -> None:
    """With a window of 3, what fired more than two bursts ago."""
    pair = replace(network(2, [synapse(0, 1)], thresholds=99), plastic_mappings=(plastic([0], 3),))
    engine = ReferenceEngine.create(pair, EngineOptions())
    engine.step(stimulate({}, 0))
    kept = [int(engine.state().last_fired[0])]
    for _ in range(4):
        engine.step()
        kept.append(int(engine.state().last_fired[0]))
    assert kept == [1, 1, 0, 0, 0]


def test_a_memory_keeps_a_firing_while_a_burst_can_see_it() -> None:
    """With a window of 3 in burst 4 that of burst 3, and not in burst 5; nothing arrives at it in between."""
    engine = ReferenceEngine.create(remembering().replace(plastic_mappings=(plastic([], 3),)), EngineOptions())
    engine.step(stimulate({}, 0))
    seen = []
    for _ in range(4):
        engine.step()
        features = engine.state().features
        assert features is not None
        seen.append((features.memory.last_fired.tolist(), features.memory.arriving.tolist()))
    assert seen == [([0], [0]), ([3], [0]), ([3], [0]), ([0], [0])]


def test_a_sum_that_just_fits_is_not_clamped_by_the_specification() -> None:
    """Two amounts of half the clamp, where no scale has room for what is declared."""
    options = EngineOptions(max_stimulus=1e19)
    engine = ReferenceEngine.create(network(1, thresholds=3e38), options)
    half = float(engine.fixed_point.clamp) / engine.fixed_point.scale / 2
    stimulus = replace(stimulate({}), ids=np.zeros(2, np.uint32), amounts=np.full(2, half, np.float32))
    engine.step(stimulus)
    assert (engine.state().membrane_potentials[0], engine.clamped) == (2 * half, False)


def test_the_specification_injects_into_the_state_given() -> None:
    """Not into its own."""
    pair = network(2, [synapse(0, 1, weight=3)], thresholds=[1, 99])
    first, second = (ReferenceEngine.create(pair, EngineOptions()) for _ in range(2))
    first.step(stimulate({0: 1.0, 1: 5.0}))
    given = first.state()
    found = second.inject(given)
    assert found.membrane_potentials.tolist() == [0.0, 5.0]
    assert found.burst_count == 1
    assert (found.pending.sum() > given.pending.sum(), found.pending_candidate.any()) == (True, True)


@pytest.mark.parametrize(("incoming", "target", "room"), [([0], 0, 65536), ([2, 3], 1, 65536), ([2, 3], 0, 65537)])
def test_so_many_synapses_may_appear_at_a_neuron_of_the_specification(
    incoming: list[int], target: int, room: int
) -> None:
    """As many as the largest in-degree and 2^16 more; neurons beyond the table have none but those that appeared."""
    static, beyond = np.array(incoming), np.array([len(incoming)])
    made = MadeSynapses()
    ends = np.full(room, target)
    made.make(0, ends, ends, np.float32(1), np.float32(1))
    made.make(0, beyond, beyond, np.float32(1), np.float32(1))
    check_room(ends[:1], static, made)
    made.make(0, ends[:1], ends[:1], np.float32(1), np.float32(1))
    check_room(beyond, static, made)
    with pytest.raises(NetworkError, match=f"{max(incoming) + 65537}.*{max(incoming) + 65536}"):
        check_room(ends[:1], static, made)


def test_a_memory_neuron_has_no_synapses_but_those_that_appeared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_associative, "ROOM", 1)
    made, memory = MadeSynapses(), np.array([9, 9])
    made.make(0, memory, memory, np.float32(1), np.float32(1))
    check_room(memory, np.array([1]), made)


def test_the_specification_counts_the_synapses_that_appear_at_a_neuron(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference_associative, "ROOM", 1)
    engine = ReferenceEngine.create(associating(), EngineOptions())
    engine.step(stimulate({}, 0, 2))
    with pytest.raises(NetworkError, match="neuron 2"):
        engine.step(stimulate({}, 1, 2))


def test_the_specification_goes_on_while_a_memory_learns() -> None:
    """Restored when an injection is under way that will average the potentials of two neurons in two bursts."""
    pattern = replaying(mp_learning=True, temporal_depth=2)
    first, second = (ReferenceEngine.create(pattern, EngineOptions()) for _ in range(2))
    for burst in (1, 2, 3):
        first.step(stimulate({0: 4 * burst, 1: 5 * burst}))
    before = first.state()
    assert before.features is not None
    assert before.features.memory.learnt_potentials.tolist() == [8, 10, 12, 15]
    second.restore(before)
    for _ in range(4):
        assert second.state().differences(first.state()) == ()
        assert first.step().fired_ids.tolist() == second.step().fired_ids.tolist()


def test_the_specification_goes_back_to_before_its_first_twin() -> None:
    engine = ReferenceEngine.create(remembering(init_lifespan=3, longterm_threshold=3), EngineOptions())
    start = engine.state()
    runs = []
    for _ in range(2):
        engine.restore(start)
        assert engine.state().differences(start) == ()
        runs.append([engine.step(stimulate({}, *one)).fired_ids.tolist() for one in ([0], [], [], [], [])])
    assert runs[0] == runs[1]
    assert runs[0][3] == [4]


def test_a_twin_adds_a_column_and_its_absent_threshold_limit_is_0() -> None:
    lasting = remembering(init_lifespan=3, lifespan_growth=2, longterm_threshold=5)
    limits = np.array([1e9, 1e9, NO_LIMIT, 1e9], np.float32)
    engine = ReferenceEngine.create(
        lasting.replace(neurons=replace(lasting.neurons, threshold_limits=limits)), EngineOptions()
    )
    for forced in [0], [0], [], []:
        engine.step(stimulate({}, *forced))
    assert engine.state().pending.shape == (1, 5)
    assert engine.neurons.threshold_limits[4] == 0


def test_an_injection_is_all_that_a_memory_gets_from_it() -> None:
    """In the units of the sums, of which a float32 shows few where the scale is large."""
    engine = ReferenceEngine.create(remembering(), EngineOptions())
    engine.fixed_point = replace(engine.fixed_point, k=4)
    engine.step(stimulate({}, 0))
    engine.step()
    assert engine.step().fired_potentials.tolist() == [1.5]


def test_a_ratio_is_of_potentials_above_0() -> None:
    """ln(after / before) in steps of ln 1.5."""
    area = MemoryArea(upstream=(7,), change=MemoryChange.RATIO, ratio_quantization=50)
    ids = np.array([3, 4, 5])
    old, new = ({7: (ids, np.array(potentials, np.float32))} for potentials in ([2, 0, 0.25], [0.5, 1, 0.5]))
    assert Memories(Features()).step_of(area, old, new) == [[(3, -3), (5, 2)]]


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (0.5, 1),
        (-0.5, -1),
        (2.4999, 2),
        (-2.5, -3),
        (float("nan"), 0),
        (2.0**63, 2**63 - 1),
        (-(2.0**63), -(2**63)),
        (float("inf"), 2**63 - 1),
        (-1e300, -(2**63)),
    ],
)
def test_the_specification_rounds_halves_away_from_0_into_64_bits(value: float, whole: int) -> None:
    assert half_away(value) == whole
