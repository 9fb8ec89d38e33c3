"""Made synapses: found by source, none made twice, places used again after memories went."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.made import Made, Synapses
from burstproof.network.features import FIRST_MEMORY_ID

pytestmark = pytest.mark.requirement("BE-4")

M, OTHER = FIRST_MEMORY_ID, FIRST_MEMORY_ID + 1
"""Memories, which alone can go."""
ONE = np.float32(1)


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def synapses(*ends: tuple[int, int]) -> Synapses:
    """Synapses with these ends; the trace says which."""
    sources, targets = (ids(*(pair[at] for pair in ends)) for at in (0, 1))
    ones = np.ones(len(ends), np.float32)
    return Synapses(sources, targets, ones, ones, (sources % 1000 + targets % 1000).astype(np.float32))


def pairs(made: Made) -> list[tuple[int, int]]:
    """The ends of all synapses."""
    return sorted(zip(made.all().sources.tolist(), made.all().targets.tolist(), strict=True))


def test_what_fired_finds_its_bundles_and_its_place() -> None:
    made = Made(ids(1), ids(7))
    made.add_missing([1], ids(2, 3), np.float32(5), ONE)
    made.add_missing([1, 4], ids(2, 8), np.float32(6), ONE)
    found = [(at, bundle.targets.tolist(), made.weights[bundle.place]) for at, bundle in made.sending([0, 1, 4])]
    assert found == [(1, [2, 3], 5), (1, [8], 6), (2, [2, 8], 6)]
    assert list(made.sending([2, 3])) == []


def test_only_pairs_without_a_synapse_are_made_dense_ones_count() -> None:
    made = Made(ids(1), ids(7))
    assert made.add_missing([1, 4], ids(2, 7), ONE, ONE) == {1: 1, 4: 2}
    assert made.add_missing([1, 4], ids(2, 7, 8), ONE, ONE) == {1: 1, 4: 1}
    assert made.add_missing([1, 4], ids(2, 7, 8), ONE, ONE) == {}
    assert pairs(made) == [(1, 2), (1, 8), (4, 2), (4, 7), (4, 8)]
    assert [made.outgoing(source) for source in (1, 4, 5)] == [2, 3, 0]
    assert len(made) == 5


def test_a_memory_that_goes_takes_synapses_from_it_and_to_it() -> None:
    made = Made(ids(), ids())
    made.add(synapses((1, 2), (1, M), (M, 2), (M, M), (5, 6), (OTHER, M), (OTHER, 3), (M, OTHER)))
    assert made.remove([M, OTHER]) == {1}
    assert pairs(made) == [(1, 2), (5, 6)]
    assert made.add_missing([1, M], ids(2, M), ONE, ONE) == {1: 1, M: 2}
    assert made.remove([M + 99]) == set()


def test_synapses_of_a_state_keep_their_values() -> None:
    made, given = Made(ids(), ids()), synapses((1, 2), (4, 2), (1, 3), (1, M), (1, 1002))
    made.add(given)
    found, orders = made.all(), []
    for one in (given, found):
        orders.append(np.lexsort((one.targets, one.sources)))
    for column, other in zip(given, found, strict=True):
        assert column[orders[0]].tolist() == other[orders[1]].tolist()


def test_places_are_used_again_and_more_are_made_when_they_run_out() -> None:
    made = Made(ids(), ids())
    for turn in range(100):
        made.add_missing([M + turn], ids(*range(1000, 1010)), ONE, ONE)
        made.remove([M + turn])
    assert len(made.weights) < 100
    for turn in range(500):
        made.add_missing([1], ids(turn), np.float32(turn), ONE)
    assert sorted(made.all().weights.tolist()) == list(range(500))
    assert len(list(made.sending([1]))) == 500
