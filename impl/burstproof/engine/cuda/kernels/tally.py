"""Device function: what the threads of a block counted, added up in shared memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.kernels.warp import Counters

_ALL = 0xFFFFFFFF


@cache
def make_block_tally() -> Callable[..., Any]:
    """``block_tally(seen, lane, tallies, place)``: add the int32 ``seen`` of all threads to ``tallies[place]``.

    All threads of a warp call it.
    """

    def by_thread(seen: np.int32, lane: np.uint32, tallies: Counters, place: int) -> None:
        cuda.atomic.add(tallies, place, seen)

    def by_warp(seen: np.int32, lane: np.uint32, tallies: Counters, place: int) -> None:
        total = np.int32(seen)
        step = 16
        while step > 0:
            total = np.int32(total + cuda.shfl_down_sync(_ALL, total, step))
            step >>= 1
        if lane == np.uint32(0):
            cuda.atomic.add(tallies, place, total)

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]
