"""Collective operations of a warp or block: append to a list, add up counts, make prefix sums.

The CUDA simulator has no warp operations: there each thread does its own atomic operation instead, and everything else
in the kernels stays the same. All functions must be called by all 32 threads of a warp.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Floats, Ids
from burstproof.engine.cuda.plan.block_size import WARP

ALL = 0xFFFFFFFF
"""Every lane of a warp."""

Counters: TypeAlias = npt.NDArray[np.int32]


@cache
def make_sync_warp() -> Callable[..., Any]:
    """``sync_warp()``: what any lane wrote to shared memory is visible to all lanes of the warp afterwards."""

    def by_block() -> None:
        cuda.syncthreads()

    def by_warp() -> None:
        cuda.syncwarp(ALL)

    return cuda.jit(device=True)(by_block if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_any_lane() -> Callable[..., Any]:
    """``any_lane(value)``: whether ``value`` is true in any lane of the warp; in the simulator, in this one."""

    def by_thread(value: bool) -> Any:
        return value

    def by_warp(value: bool) -> Any:
        return cuda.ballot_sync(ALL, value) != 0

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_block_tally() -> Callable[..., Any]:
    """``block_tally(seen, lane, tallies, place)``: add the int32 ``seen`` of all threads to ``tallies[place]``.

    All threads of a warp call it.
    """

    def by_thread(seen: np.int32, lane: np.uint32, tallies: Counters, place: np.uint32) -> None:
        cuda.atomic.add(tallies, place, seen)

    def by_warp(seen: np.int32, lane: np.uint32, tallies: Counters, place: np.uint32) -> None:
        total = np.int32(seen)
        step = 16
        while step > 0:
            total = np.int32(total + cuda.shfl_down_sync(ALL, total, step))
            step >>= 1
        if lane == np.uint32(0):
            cuda.atomic.add(tallies, place, total)

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_append() -> Callable[..., Any]:
    """``append(joins, lane, counts, side, neuron, potential, ids, potentials)``: add firings to the block's list.

    A thread that ``joins`` appends its own; ``counts[side]``, in shared memory, is the length of the list.
    """

    def by_thread(
        joins: bool,
        lane: np.uint32,
        counts: Counters,
        side: np.uint32,
        neuron: np.uint32,
        potential: np.float32,
        ids: Ids,
        potentials: Floats,
    ) -> None:
        if joins:
            place = np.uint32(cuda.atomic.add(counts, side, 1))
            ids[place] = neuron
            potentials[place] = potential

    def by_warp(
        joins: bool,
        lane: np.uint32,
        counts: Counters,
        side: np.uint32,
        neuron: np.uint32,
        potential: np.float32,
        ids: Ids,
        potentials: Floats,
    ) -> None:
        votes = np.uint32(cuda.ballot_sync(ALL, joins))
        if votes != np.uint32(0):
            first = np.int32(0)
            if lane == np.uint32(0):
                first = np.int32(cuda.atomic.add(counts, side, np.int32(cuda.popc(votes))))
            first = np.int32(cuda.shfl_sync(ALL, first, 0))
            if joins:
                before = np.uint32(votes & np.uint32(np.uint32(np.uint32(1) << lane) - np.uint32(1)))
                place = np.uint32(np.uint32(first) + np.uint32(cuda.popc(before)))
                ids[place] = neuron
                potentials[place] = potential

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_block_count() -> Callable[..., Any]:
    """``block_count(value, lane, counts, place)``: add the threads with a true ``value`` to ``counts[place]``."""

    def by_thread(value: bool, lane: np.uint32, counts: Counters, place: np.uint32) -> None:
        if value:
            cuda.atomic.add(counts, place, 1)

    def by_warp(value: bool, lane: np.uint32, counts: Counters, place: np.uint32) -> None:
        votes = np.uint32(cuda.ballot_sync(ALL, value))
        if lane == np.uint32(0) and votes != np.uint32(0):
            cuda.atomic.add(counts, place, np.int32(cuda.popc(votes)))

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_scan() -> Callable[..., Any]:
    """``scan(values, count, totals)``: inclusive prefix sums of the first ``count`` uint32 of a shared array, in place.

    All threads of a block call it; ``totals``, shared memory, has an element for each warp.
    """
    lanes, warp, one, zero = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(1), np.uint32(0)

    def by_thread(values: Ids, count: np.uint32, totals: Ids) -> None:
        if cuda.threadIdx.x == 0:
            for entry in range(1, count):
                values[entry] = np.uint32(values[entry] + values[entry - 1])
        cuda.syncthreads()

    def by_block(values: Ids, count: np.uint32, totals: Ids) -> None:
        thread, block = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
        lane, own_warp, first, carried = np.uint32(thread & lanes), np.uint32(thread // warp), zero, zero
        while first < count:
            place, own = np.uint32(first + thread), np.int32(0)
            works = np.uint32(first + own_warp * warp) < count
            if works:
                if place < count:
                    own = np.int32(values[place])
                step = one
                while step < warp:
                    below = cuda.shfl_up_sync(ALL, own, step)
                    if lane >= step:
                        own = np.int32(own + below)
                    step = np.uint32(step << one)
                if lane == lanes:
                    totals[own_warp] = np.uint32(own)
            cuda.syncthreads()
            if works:
                before = carried
                for earlier in range(own_warp):
                    before = np.uint32(before + totals[earlier])
                if place < count:
                    values[place] = np.uint32(before + np.uint32(own))
            first = np.uint32(first + block)
            if first < count:
                for earlier in range(block // warp):
                    carried = np.uint32(carried + totals[earlier])
            cuda.syncthreads()

    return cuda.jit(device=True)(by_thread if SIMULATED else by_block)  # type: ignore[no-any-return]
