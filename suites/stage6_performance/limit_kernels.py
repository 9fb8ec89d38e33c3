"""Plain kernels that show what the card allows. Importing this module imports numba-cuda."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from burstproof.kernels.numba_cuda import cuda

NOTHING_SIGNATURE = types.void(types.Array(types.int32, 1, "C"))
REDUCE_SIGNATURE = types.void(types.Array(types.uint32, 1, "C"), types.Array(types.int32, 1, "C"), types.int64)


def nothing(sums: Any) -> None:
    """A kernel that does nothing to its buffer."""


def reduce(places: Any, sums: Any, count: Any) -> None:
    """Add 1 at each of ``count`` places, coalesced reads of the places, random additions."""
    item = np.int64(cuda.grid(1))
    step = np.int64(cuda.gridsize(1))
    while item < count:
        cuda.atomic.add(sums, np.uint64(places[item]), np.int32(1))
        item += step
