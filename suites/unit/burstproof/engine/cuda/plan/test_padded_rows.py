"""Padded rows on the host: every row comes back, and the width follows from the rows' lengths."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.cuda.plan.padded_rows import choose_words, pad_rows, row_lengths, table_words
from burstproof.engine.layout import StaticRows
from suites.support.shards.padded_checks import unpadded

pytestmark = pytest.mark.requirement("MG-1", "MG-2")


@pytest.mark.parametrize("words", [8, 16, 32])
@pytest.mark.parametrize("mean", [0, 3, 14, 40])
def test_every_row_comes_back(mean: int, words: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without entries, rows that just fit, rows with a rest, and one that is hundreds of entries long."""
    monkeypatch.setattr("burstproof.engine.cuda.plan.padded_rows._SOURCES_AT_ONCE", 64)
    rng = np.random.default_rng(mean)
    counts = rng.poisson(mean, 500)
    counts[[3, 4, 5, 6]] = words - 2, words - 1, words, 700
    offsets = np.concatenate([[0], np.cumsum(counts)])
    targets = rng.integers(0, 2**32, offsets[-1], dtype=np.uint32)
    amounts = rng.integers(-(2**15), 2**15, 500).astype(np.int16)
    rows = StaticRows(offsets, targets, np.repeat(amounts, counts), None, None)
    table = pad_rows(rows, amounts, words)
    assert 2 * len(table) == table_words(row_lengths(offsets), words)
    found, contributions = unpadded(table, 500, words)
    for source in range(500):
        assert found[source] == targets[offsets[source] : offsets[source + 1]].tolist()
    assert contributions == amounts.tolist()


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (np.full(1000, 25), 32),
        (np.full(1000, 31), 32),
        (np.full(1000, 32), 48),
        (np.random.default_rng(1).binomial(100, 0.25, 100_000), 32),
        (np.random.default_rng(1).binomial(100, 0.5, 100_000), 64),
        (np.random.default_rng(1).binomial(100, 0.125, 100_000), 16),
        (np.full(1000, 200), 0),
        (np.zeros(1000, np.int64), 0),
        (np.where(np.arange(1000) % 4 == 0, 60, 0), 0),
        (np.where(np.arange(1000) % 8 == 0, 100, 0), 0),
        (np.where(np.arange(1000) == 0, 1 << 16, 20), 0),
        (np.empty(0, np.int64), 0),
    ],
    ids=[
        *("25", "just fits", "one too many", "quarter", "half", "eighth"),
        *("long", "empty", "mostly empty", "entries in few rows", "beyond the header", "no rows"),
    ],
)
def test_width(counts: np.ndarray[tuple[int], np.dtype[np.int64]], words: int) -> None:
    """Short rows of like length are padded; others lie behind offsets."""
    assert choose_words(row_lengths(np.concatenate([[0], np.cumsum(counts)]))) == words
