"""Alignment of arrays: what threads write on separate cache lines, sums and potentials half a page apart.

If two threads write to one cache line, each write takes the line from the other thread (false sharing), and several
threads are slower than one. If a load agrees in the last 12 bits of its address with a store shortly before, the
processor assumes that it depends on the store (4K aliasing); the dynamics of a burst then take up to twice as long.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LINE = 8
"""Entries of 64 bits in a cache line."""

PAGE = 4096
SUMS, OTHERS, POTENTIALS = 0, PAGE // 4, PAGE // 2
"""Offsets in a page: of sums and scratch memory, of the other neuron columns, and of potentials."""


def lines(*shape: int) -> npt.NDArray[np.int64]:
    """Zeros, int64, aligned to a cache line; the last length of ``shape`` is rounded up to a multiple of ``LINE``."""
    whole = *shape[:-1], -(-shape[-1] // LINE) * LINE
    return zeros_at(0, int(np.prod(whole)), np.int64).reshape(whole)


def zeros_at(offset: int, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros (count,), ``offset`` bytes after a page boundary."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(size + PAGE, np.uint8)
    first = (offset - raw.ctypes.data) % PAGE
    return raw[first : first + size].view(dtype)


def copy_at(offset: int, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A copy of ``array``, (N,), ``offset`` bytes after a page boundary."""
    copy = zeros_at(offset, len(array), array.dtype)
    copy[:] = array
    return copy
