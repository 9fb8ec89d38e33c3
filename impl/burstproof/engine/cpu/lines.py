"""Arrays in which each thread has a part that it alone writes: no two parts share a cache line.

Where they do, every write of one thread takes the line from the other, and several threads are slower than one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LINE = 8
"""Entries of 64 bits in a cache line."""

_BYTES = 8 * LINE


def lines(*shape: int) -> npt.NDArray[np.int64]:
    """Zeros (..., N), int64, that begin a cache line; N is the last length rounded up to a multiple of ``LINE``."""
    whole = *shape[:-1], -(-shape[-1] // LINE) * LINE
    size = 8 * int(np.prod(whole))
    raw = np.zeros(size + _BYTES, np.uint8)
    first = -raw.ctypes.data % _BYTES
    return raw[first : first + size].view(np.int64).reshape(whole)
