"""Life of memories on the host: ends that are known beforehand, promotion, and who makes room at the cap."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from burstproof.engine.features.memories import Memories
from burstproof.engine.features.patterns import Fired
from burstproof.network.features import FIRST_MEMORY_ID, AreaFeatures, Features, MemoryArea
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-4")

UPSTREAM, MEMORY = 8, 9
NO_SIGNALS = np.empty(0, np.float32)


def memories_of(**parameters: int) -> Memories:
    """One memory area over an area of ten neurons."""
    neurons = NeuronTable.build(11, cortical_areas=[UPSTREAM] * 10 + [MEMORY])
    features = Features(areas={MEMORY: AreaFeatures(memory=MemoryArea((UPSTREAM,), **parameters))})
    network = Network(neurons, SynapseTable.build([], []), features=features)
    return Memories(network, FixedPoint(20, 64, 1 << 40, False))


def live_after(memories: Memories, patterns: Iterable[int | None]) -> list[list[int]]:
    """Numbers of the memories that live after each burst, counted from 0; a pattern is one neuron, or nothing."""
    found = []
    for burst, pattern in enumerate(patterns, 1):
        frame = {} if pattern is None else {UPSTREAM: Fired(np.array([pattern], np.uint32), np.ones(1, np.float32))}
        memories.after(burst, frame, NO_SIGNALS, ())
        found.append([number - FIRST_MEMORY_ID for number in sorted(memories.live)])
    return found


def test_a_memory_lives_as_many_bursts_as_its_lifespan_says() -> None:
    assert live_after(memories_of(init_lifespan=2), [1, None, None, None]) == [[0], [0], [], []]


def test_a_lifespan_of_0_ends_in_the_next_burst() -> None:
    assert live_after(memories_of(init_lifespan=0), [1, None]) == [[0], []]


def test_an_activation_postpones_the_end_and_the_old_one_is_passed_over() -> None:
    found = live_after(memories_of(init_lifespan=2, lifespan_growth=2), [1, 1, None, None, None, None])
    assert found == [[0], [0], [0], [0], [0], []]


def test_a_number_is_not_used_again() -> None:
    assert live_after(memories_of(init_lifespan=1), [1, None, 1]) == [[0], [], [1]]


def test_the_lifespan_of_the_burst_before_decides_and_long_term_memories_stay() -> None:
    memories = memories_of(init_lifespan=3, longterm_threshold=3)
    assert live_after(memories, [1, None, None, None, None, None]) == [[0]] * 6
    assert memories.live[FIRST_MEMORY_ID].lifespan(6) == 3


def test_at_the_cap_the_shortest_lifespan_goes_first() -> None:
    memories = memories_of(init_lifespan=9, lifespan_growth=3, neuron_cap=2, longterm_threshold=100)
    assert live_after(memories, [1, 2, 1, 3, 4]) == [[0], [0, 1], [0, 1], [0, 2], [0, 3]]


def test_long_term_memories_go_last_and_by_their_last_activation() -> None:
    memories = memories_of(init_lifespan=3, longterm_threshold=3, neuron_cap=2)
    assert live_after(memories, [1, 2, None, 1, 3])[-1] == [0, 2]


def test_at_the_cap_nothing_is_formed_where_nothing_is_evicted() -> None:
    memories = memories_of(init_lifespan=9, neuron_cap=1)
    life = memories.areas[MEMORY]
    life.area = MemoryArea((UPSTREAM,), neuron_cap=1, evicts=False)
    assert live_after(memories, [1, 2, 1])[-1] == [0]
    assert memories.next_id == FIRST_MEMORY_ID + 1
