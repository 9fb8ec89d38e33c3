"""Where arrays begin in memory: parts of threads at cache lines of their own, sums and potentials half a page apart.

Where two threads write to one cache line, every write takes it from the other, and several threads are slower than one.
Where the address of a load agrees in its last 12 bits with that of a store shortly before, the processor takes the one
for the other and waits (4K aliasing): the dynamics of a burst then take up to twice as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 8
"""Entries of 64 bits in a cache line."""

PAGE = 4096
SUMS, OTHERS, POTENTIALS = 0, PAGE // 4, PAGE // 2
"""Offsets in a page of sums and scratch memory, of other columns of neurons, and of potentials."""


def lines(*shape: int) -> npt.NDArray[np.int64]:
    """Zeros (..., N), int64, that begin a cache line; N is the last length rounded up to a multiple of ``LINE``."""
    whole = *shape[:-1], -(-shape[-1] // LINE) * LINE
    return zeros_at(0, int(np.prod(whole)), np.int64).reshape(whole)


def zeros_at(offset: int, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros (count,) that begin ``offset`` bytes behind the beginning of a page."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(size + PAGE, np.uint8)
    first = (offset - raw.ctypes.data) % PAGE
    return raw[first : first + size].view(dtype)


def copy_at(offset: int, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of ``array``, (N,), that begins ``offset`` bytes behind the beginning of a page."""
    copy = zeros_at(offset, len(array), array.dtype)
    copy[:] = array
    return copy
