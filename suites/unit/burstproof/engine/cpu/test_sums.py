"""How the CPU engine keeps sums: a sum of 0 is told from nothing at all, at both ends of each type (BE-5)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burstproof.engine.compiler import compiler
from burstproof.engine.cpu.sums import decoded, encoded, make_add, make_read

pytestmark = pytest.mark.requirement("BE-5")

Column = np.ndarray[Any, Any]

WIDTHS = pytest.mark.parametrize("kind", [np.int32, np.int64])


def ends_of(kind: type[np.signedinteger[Any]]) -> list[int]:
    """The largest sums of either sign: 64 bit ones end at 2^62."""
    largest = (1 << 31) - 1 if kind is np.int32 else 1 << 62
    return [-largest, -1, 0, 1, largest]


@WIDTHS
def test_sums_are_decoded_as_they_were_encoded(kind: type[np.signedinteger[Any]]) -> None:
    """Where nothing has arrived the code is 0, whatever the sum there."""
    sums = np.array([*ends_of(kind), 7], np.int64)
    arrived = np.array([True] * 5 + [False])
    codes = encoded(sums, arrived, np.dtype(kind))
    assert codes.dtype == kind
    assert (codes != 0).tolist() == arrived.tolist()
    again, there = decoded(codes)
    assert again.tolist() == [*ends_of(kind), 0]
    assert there.tolist() == arrived.tolist()


@pytest.mark.thorough("compiles kernels of its own")
@WIDTHS
def test_arrivals_add_up(kind: type[np.signedinteger[Any]]) -> None:
    """Each end of the type in one step and in two, sums that cancel, and an arrival of 0."""
    add, read = make_add(), make_read()

    @compiler
    def deliver(sums: Column, places: Column, amounts: Column, found: Column) -> None:
        for j in range(len(places)):
            add(sums, places[j], amounts[j])
        for j in range(len(found)):
            found[j] = read(sums, j)

    low, _, _, _, high = ends_of(kind)
    arrivals = [(0, low), (1, high), (2, low), (2, high), (3, 0), (4, high - 1), (4, 1), (5, 3), (5, -3)]
    places, amounts = (np.array(column, np.int64) for column in zip(*arrivals, strict=True))
    sums, found = np.zeros(7, kind), np.empty(6, np.int64)
    deliver(sums, places, amounts, found)
    totals, arrived = decoded(sums)
    assert found.tolist() == [low, high, 0, 0, high, 0]
    assert totals.tolist() == [*found.tolist(), 0]
    assert arrived.tolist() == [True] * 6 + [False]
