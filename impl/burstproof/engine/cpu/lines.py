"""Where arrays begin in memory: parts of threads at cache lines of their own, arrays written side by side apart.

Where two threads write to one cache line, every write takes it from the other, and several threads are slower than one.
Where a loop loads from one array what lies at the same place of a page as what it has just stored to another, the
processor takes it for the same, since it compares the last 12 bits of addresses, and waits: up to twice as long in all.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 8
"""Entries of 64 bits in a cache line."""

_PAGE = 4096
SUMS, READ, POTENTIALS = 0, _PAGE // 4, _PAGE // 2
"""Where in a page sums and scratch memory begin, what is read beside them, and potentials."""


def lines(*shape: int) -> npt.NDArray[np.int64]:
    """Zeros (..., N), int64, that begin a cache line; N is the last length rounded up to a multiple of ``LINE``."""
    whole = *shape[:-1], -(-shape[-1] // LINE) * LINE
    return zeros_at(0, int(np.prod(whole)), np.int64).reshape(whole)


def zeros_at(place: int, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros (count,) that begin ``place`` bytes behind the beginning of a page."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(size + _PAGE, np.uint8)
    first = (place - raw.ctypes.data) % _PAGE
    return raw[first : first + size].view(dtype)


def copy_at(place: int, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of ``array``, (N,), that begins ``place`` bytes behind the beginning of a page."""
    copy = zeros_at(place, len(array), array.dtype)
    copy[:] = array
    return copy
