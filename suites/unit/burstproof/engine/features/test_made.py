"""Columns of made synapses: found by source, none made twice, rows used again after neurons went."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.made import MadeColumns, Synapses

pytestmark = pytest.mark.requirement("BE-4")


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def synapses(*ends: tuple[int, int]) -> Synapses:
    """Synapses with these ends; the weight says which."""
    sources, targets = (ids(*(pair[at] for pair in ends)) for at in (0, 1))
    ones = np.ones(len(ends), np.float32)
    return Synapses(sources, targets, (100 * sources + targets).astype(np.float32), ones, ones)


def columns(*ends: tuple[int, int]) -> MadeColumns:
    made = MadeColumns(ids(1), ids(7))
    made.add(synapses(*ends))
    return made


def test_what_fired_finds_its_rows_and_its_place() -> None:
    made = columns((1, 2), (1, 3), (4, 2))
    rows, places = made.sending(np.array([0, 1, 4], np.uint32))
    assert sorted(zip(made.weights[rows].tolist(), places.tolist(), strict=True)) == [(102, 1), (103, 1), (402, 2)]
    assert len(made.sending(np.array([2, 3], np.uint32))[0]) == 0


def test_only_pairs_without_a_synapse_are_missing_dense_ones_count() -> None:
    made = columns((1, 2), (4, 2))
    found = made.missing(ids(1, 4), ids(2, 7, 8))
    assert list(zip(*(end.tolist() for end in found), strict=True)) == [(1, 8), (4, 7), (4, 8)]


def test_a_neuron_that_goes_takes_synapses_from_it_and_to_it() -> None:
    made = columns((1, 2), (1, 4), (4, 2), (4, 4), (5, 6))
    gone = made.remove([4, 99])
    assert sorted(zip(*(end.tolist() for end in gone), strict=True)) == [(1, 4), (4, 2), (4, 4)]
    assert sorted(made.all().weights.tolist()) == [102, 506]
    assert len(made) == 2
    found = made.missing(ids(1, 4), ids(2, 4))
    assert list(zip(*(end.tolist() for end in found), strict=True)) == [(1, 4), (4, 2), (4, 4)]


def test_rows_are_used_again_and_more_are_made_when_they_run_out() -> None:
    made = MadeColumns(ids(), ids())
    for turn in range(50):
        made.add(synapses(*((turn, target) for target in range(1000, 1010))))
        made.remove([turn])
    assert len(made.sources) < 100
    made.add(synapses(*((1, target) for target in range(500))))
    assert sorted(made.all().targets.tolist()) == list(range(500))
    assert len(made.sending(np.array([1], np.uint32))[0]) == 500
