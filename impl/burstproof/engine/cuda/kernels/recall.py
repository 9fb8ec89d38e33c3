"""Delays on the sender's side: each burst reads the fired lists of the last bursts again, each for one delay.

Rows are sorted by delay, so a source's entries of one delay are adjacent. One slot of the FCL is enough. A ring with a
slot for every delay would exceed the L2 cache, where additions are several times faster than in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Fcl, Recall, Rows, Steering, Turn
from burstproof.engine.cuda.kernels.consume import Fired
from burstproof.engine.cuda.kernels.control import BURST, CLAMPED, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.rows import make_bounds, make_send_part
from burstproof.engine.cuda.kernels.steer import make_fired_of
from burstproof.engine.cuda.plan.variant import Variant, lists_kept


def make_keep_recalled(variant: Variant, block: int) -> Callable[..., Any]:
    """``keep_recalled(place, burst, count, fired, recall)``: copy a chunk's firings into the burst's list."""
    list_mask, step = np.uint32(lists_kept(variant) - 1), np.uint32(block)

    def keep_recalled(place: np.int64, burst: np.uint32, count: np.uint32, fired: Fired, recall: Recall) -> None:
        first = np.uint64(np.uint64(burst & list_mask) * recall.list_room + np.uint64(place))
        entry = np.uint32(cuda.threadIdx.x)
        while entry < count:
            recall.recalled_ids[np.uint64(first + np.uint64(entry))] = fired.ids[entry]
            entry = np.uint32(entry + step)

    return cuda.jit(device=True)(keep_recalled)  # type: ignore[no-any-return]


def _make_send_lists(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_lists(burst, latest, ahead, ...)``: send all contributions that arrive in burst + 1 + ``ahead``.

    They come from the fired lists up to that of ``burst``, which has ``latest`` firings. All threads of the grid call
    it; ``share`` of them take a row.
    """
    longest, list_mask = np.uint32(variant.recalled), np.uint32(lists_kept(variant) - 1)
    send_part, bounds, offset, clamps = make_send_part(variant), make_bounds(variant), variant.offset, variant.clamps
    team, zero, one, room = np.uint32(share), np.uint32(0), np.uint32(1), variant.recalled
    by_delay = variant.recalled > 1

    def send_lists(
        burst: np.uint32,
        latest: np.uint32,
        ahead: np.uint32,
        steering: Steering,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        lengths = cuda.shared.array(room, np.uint32)
        ends = cuda.shared.array(room, np.uint32)
        thread, lists = np.uint32(cuda.threadIdx.x), np.uint32(longest - ahead)
        block, own = np.uint32(cuda.blockDim.x), thread
        while own < lists:
            lengths[own] = recall.recalled_counts[np.uint32(burst - own) & list_mask] if own > zero else latest
            own = np.uint32(own + block)
        cuda.syncthreads()
        own = thread
        while own < lists:
            total = zero
            for earlier in range(np.uint32(own + one)):
                total = np.uint32(total + lengths[earlier])
            ends[own] = total
            own = np.uint32(own + block)
        cuda.syncthreads()
        total = ends[np.uint32(lists - one)]
        item, items = np.uint32(cuda.grid(1)) // team, np.uint32(cuda.gridsize(1)) // team
        part = np.uint32(thread % team)
        age, first = zero, zero
        while item < total:
            while item >= ends[age]:
                first = ends[age]
                age = np.uint32(age + one)
            place = np.uint64(np.uint64(np.uint32(burst - age) & list_mask) * recall.list_room)
            source = recall.recalled_ids[np.uint64(place + np.uint64(np.uint32(item - first)))]
            start, last = bounds(source, rows)
            at = np.uint64(np.uint64(source) * np.uint64(longest + one) + np.uint64(np.uint32(age + ahead)))
            low, high = zero, np.uint32(last - start)
            if by_delay:
                low = np.uint32(recall.delay_starts[at])
                high = np.uint32(recall.delay_starts[np.uint64(at + np.uint64(1))])
            entry, end = offset(start + offset(low) + offset(part)), offset(start + offset(high))
            send_part(source, entry, end, team, zero, rows, fcl)
            if clamps and age == zero and part == zero and rows.clamped_sources[source] != 0:
                steering.control[CLAMPED] = 1
            item = np.uint32(item + items)

    return cuda.jit(device=True)(send_lists)  # type: ignore[no-any-return]


def make_send_recalled(variant: Variant) -> Callable[..., None]:
    """``send_recalled(...)``: send all contributions that arrive in the burst after that of ``turn``."""
    send_lists, fired_of = _make_send_lists(variant, _share(variant)), make_fired_of()
    list_mask, one, zero = np.uint32(lists_kept(variant) - 1), np.uint32(1), np.uint32(0)

    def send_recalled(steering: Steering, recall: Recall, rows: Rows, fcl: Fcl, turn: Turn) -> None:
        report = steering.report
        if report[INDEX] != np.int64(turn.place):
            return
        burst = np.uint32(np.uint32(report[ORIGIN]) + turn.place + one)
        latest = fired_of(steering.tallies, burst)
        if cuda.grid(1) == 0:
            recall.recalled_counts[burst & list_mask] = latest
        send_lists(burst, latest, zero, steering, recall, rows, fcl)

    return send_recalled


def make_send_ahead(variant: Variant) -> Callable[..., None]:
    """``send_ahead(...)``: send what arrives ``ahead`` bursts after the next one, for the state between bursts."""
    send_lists = _make_send_lists(variant, _share(variant))
    list_mask = np.uint32(lists_kept(variant) - 1)

    def send_ahead(steering: Steering, recall: Recall, rows: Rows, fcl: Fcl, ahead: np.uint32) -> None:
        burst = np.uint32(steering.control[BURST])
        send_lists(burst, recall.recalled_counts[burst & list_mask], ahead, steering, recall, rows, fcl)

    return send_ahead


def _share(variant: Variant) -> int:
    return 1 if SIMULATED else variant.tile_share
