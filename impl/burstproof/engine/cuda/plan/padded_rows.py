"""ELLPACK rows: a fixed width, so a source's row is found without an offset table.

A row takes ``words`` 32-bit words. The first is its header: the number of its entries in the lower half, the
contribution that all of them make in the upper. Entries follow. A row that is too long keeps ``words - 3`` of them in
place. The rest lies behind all rows, and the second last word of the row says where in the table, in units of 8 words.
This is the hybrid format of N. Bell and M. Garland (Implementing sparse matrix-vector multiplication on
throughput-oriented processors, SC 2009).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.layout import StaticRows

UNIT = 8
"""Words of a 32-byte sector: the rest of a long row begins at a multiple of it."""
HEADER_AND_LINK = 3
"""Words without an entry in a row that has a rest: the header, the place of the rest, and one that is unused."""
FURTHEST = UNIT << 32
"""Words of a table up to which 32 bits can say where a rest begins."""

_WIDTHS = (8, 16, 24, 32, 48, 64, 96, 128)
_IN_PLACE = 0.8
_MOST_MEMORY = 1.5
_LONGEST = (1 << 16) - 1
_SOURCES_AT_ONCE = 1 << 13
_BYTES_OF_SOURCE = 10
_BYTES_OF_ENTRY = 4


def row_lengths(offsets: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """Number of rows of 0, 1, ... entries, int64 (longest + 1,), of rows behind ``offsets`` (N + 1,)."""
    return np.bincount(np.diff(offsets).astype(np.int64), minlength=1).astype(np.int64)


def choose_words(lengths: npt.NDArray[np.int64]) -> int:
    """Words of a row for rows of these ``lengths`` (see ``row_lengths``), or 0 if offsets are better.

    The narrowest width with room for four rows of five, and for four entries of five in place. 0 if no width has that,
    if a row is longer than a header can say, or if padded rows take more than 1.5 times the memory of offsets,
    contributions and targets.
    """
    rows = int(lengths.sum())
    if rows == 0 or len(lengths) - 1 > _LONGEST:
        return 0
    sizes = np.arange(len(lengths))
    entries = int((lengths * sizes).sum())
    fitting = np.cumsum(lengths)
    for words in _WIDTHS:
        kept = int((lengths * np.where(sizes < words, sizes, words - HEADER_AND_LINK)).sum())
        if fitting[min(words, len(lengths)) - 1] >= _IN_PLACE * rows and kept >= _IN_PLACE * entries:
            compressed = _BYTES_OF_SOURCE * rows + _BYTES_OF_ENTRY * entries
            return words if 4 * table_words(lengths, words) <= _MOST_MEMORY * compressed else 0
    return 0


def table_words(lengths: npt.NDArray[np.int64], words: int) -> int:
    """32-bit words of the whole table."""
    over = np.arange(words, len(lengths))
    rests = -(-(over - (words - HEADER_AND_LINK)) // UNIT) * UNIT
    return int(lengths.sum()) * words + int((lengths[words:] * rests).sum())


def pad_rows(rows: StaticRows, contributions: npt.NDArray[np.integer], words: int) -> npt.NDArray[np.uint64]:
    """The table of ``rows``, uint64 (words of the table / 2,), low word first.

    Parameters
    ----------
    contributions : int16 (N,)
        The contribution of every entry of each row.
    words : int
        As ``choose_words`` says.
    """
    counts = np.diff(rows.offsets).astype(np.int64)
    sources = len(counts)
    table = np.zeros(table_words(row_lengths(rows.offsets), words), np.uint32)
    in_place = table[: sources * words].reshape(sources, words)
    in_place[:, 0] = counts.astype(np.uint32) | (contributions.astype(np.int64) << 16).astype(np.uint32)
    long_rows = counts >= words
    kept = np.where(long_rows, words - HEADER_AND_LINK, counts)
    units = -(-(counts - kept) // UNIT)
    starts = sources * words // UNIT + np.cumsum(units) - units
    in_place[long_rows, words - 2] = starts[long_rows]
    columns = np.arange(words - 1)
    for first in range(0, sources, _SOURCES_AT_ONCE):
        part = slice(first, min(first + _SOURCES_AT_ONCE, sources))
        begin, end = int(rows.offsets[part.start]), int(rows.offsets[part.stop])
        targets = rows.targets[begin:end]
        if long_rows[part].any():
            index_in_row = np.arange(begin, end) - np.repeat(rows.offsets[part].astype(np.int64), counts[part])
            rest = np.flatnonzero(index_in_row >= np.repeat(kept[part], counts[part]))
            shifts = np.repeat(starts[part] * UNIT - kept[part], counts[part])
            table[(index_in_row + shifts)[rest]] = targets[rest]
            targets = np.delete(targets, rest)
        in_place[part, 1:][columns < kept[part, None]] = targets
    return table.view(np.uint64)
