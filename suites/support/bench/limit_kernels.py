"""Plain kernels that show what the card allows. Importing this module imports numba-cuda."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from burstproof.compile.code import NumbaCode
from burstproof.device.numba_cuda import cuda

_WORDS, _NUMBERS = types.Array(types.int32, 1, "C"), types.Array(types.uint32, 1, "C")


def nothing(sums: Any) -> None:
    """A kernel that does nothing to its buffer."""


def reduce(places: Any, sums: Any, count: Any) -> None:
    """Add 1 at each of ``count`` places, coalesced reads of the places, random additions."""
    item = np.int64(cuda.grid(1))
    step = np.int64(cuda.gridsize(1))
    while item < count:
        cuda.atomic.add(sums, np.uint64(places[item]), np.int32(1))
        item += step


def number_words(words: Any) -> None:
    """Give each word its place as value."""
    item = np.int64(cuda.grid(1))
    while item < words.size:
        words[item] = np.int32(item & np.int64(0x7FFFFFFF))
        item += np.int64(cuda.gridsize(1))


def _read_row(words: Any, row: Any, length: Any, lane: Any) -> Any:
    """Sum of this lane's words of a row, read as the burst reads: from multiples of 32 words on, four at once."""
    begin = np.int64(row * length)
    end = np.int64(begin + length)
    low = np.int64(begin - begin % np.int64(32))
    total = np.uint32(0)
    while low < end:
        first, second, third, fourth = np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0)
        entry = np.int64(low + lane)
        if entry >= begin and entry < end:
            first = np.uint32(words[entry])
        entry = np.int64(entry + np.int64(32))
        if entry >= begin and entry < end:
            second = np.uint32(words[entry])
        entry = np.int64(entry + np.int64(32))
        if entry < end:
            third = np.uint32(words[entry])
        entry = np.int64(entry + np.int64(32))
        if entry < end:
            fourth = np.uint32(words[entry])
        total = np.uint32(total + first + second + third + fourth)
        low = np.int64(low + np.int64(128))
    return total


_read_row = cuda.jit(device=True)(_read_row)


def read_rows(rows: Any, first: Any, second: Any, third: Any, lengths: Any, sums: Any) -> None:
    """Read the listed ``rows`` of three arrays of words, a warp a row; ``lengths`` are the words of a row of each.

    ``sums`` (threads,) takes the sum of what each thread read, mod 2^32.
    """
    thread = np.int64(cuda.grid(1))
    lane, item = np.int64(thread % np.int64(32)), np.int64(thread // np.int64(32))
    total = np.uint32(0)
    while item < rows.size:
        row = np.int64(rows[item])
        total = np.uint32(total + _read_row(first, row, lengths[0], lane))
        total = np.uint32(total + _read_row(second, row, lengths[1], lane))
        total = np.uint32(total + _read_row(third, row, lengths[2], lane))
        item += np.int64(cuda.gridsize(1) // 32)
    sums[thread] = total


NOTHING = NumbaCode(nothing, types.void(_WORDS))
NUMBER_WORDS = NumbaCode(number_words, types.void(_WORDS))
READ_ROWS = NumbaCode(
    read_rows, types.void(_NUMBERS, _WORDS, _WORDS, _WORDS, types.Array(types.int64, 1, "C"), _NUMBERS)
)
REDUCE = NumbaCode(reduce, types.void(_NUMBERS, _WORDS, types.int64))
