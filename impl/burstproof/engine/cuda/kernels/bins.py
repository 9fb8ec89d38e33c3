"""Bins in shared memory, one per owner: filled a window of entries at a time, flushed to the queues in whole lines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Fcl, Ids, Queues
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.queue_entries import make_queue_entry, make_split_entry, make_unpack_entry
from burstproof.engine.cuda.kernels.warp import ALL
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import SPACING, OwnerQueues, Variant

_LINE = 32
"""Largest granularity of a flush, in entries."""
_FEWEST_LANES = 8
"""Fewest lanes that flush a bin: with four bytes each they write a sector."""
_MOST_AT_ONCE = 14
"""Most entries of a bin that a thread writes in an unrolled loop."""
_SLACK, _LITTLE_SLACK, _LARGE_BIN = 4, 1, 128
"""Bins are flushed once one has less room than its mean share of a window plus so many standard deviations: the first
number for bins of more than ``_LARGE_BIN`` entries, the second for smaller bins, which would else leave half full."""


def make_put(variant: Variant, queues: OwnerQueues, threads: int, per_thread: int) -> Callable[..., Any]:
    """``put(pending, words, values, counts, bins)`` -> (bit mask of entries left over, 1 if a bin is nearly full).

    Adds a thread's entry i to the bin of its owner if bit i of ``pending`` is set; entries that find no room are left
    over. A thread reserves all its places before it uses the first. There are no branches: an entry that is not pending
    adds 0 to its owner's count, and what has no place in a bin is stored behind all bins, where each thread has one.
    """
    span, room = np.uint32(queues.span), np.uint32(queues.bin_room)
    bins_end = np.uint32(queues.owners * queues.bin_room)
    mean, one, zero = threads * per_thread / queues.owners, np.uint32(1), np.uint32(0)
    slack = _SLACK if queues.bin_room > _LARGE_BIN else _LITTLE_SLACK
    brim = np.uint32(max(unit_of(queues), int(queues.bin_room - mean - slack * mean**0.5)))
    split_entry, queue_entry = make_split_entry(variant), make_queue_entry(variant, queues)

    def put(pending: np.uint32, words: Any, values: Any, counts: Ids, bins: Any) -> Any:
        owners, places = cuda.local.array(per_thread, np.uint32), cuda.local.array(per_thread, np.uint32)
        for i in range(per_thread):
            target, _ = split_entry(words[i], values[i])
            owners[i] = np.uint32(target // span)
            places[i] = cuda.atomic.add(counts, owners[i], np.uint32(np.uint32(pending >> np.uint32(i)) & one))
        crowded, spare = np.int32(0), np.uint32(bins_end + np.uint32(cuda.threadIdx.x))
        for i in range(per_thread):
            at = np.uint32(owners[i] * room + places[i])
            if places[i] >= room or np.uint32(pending & np.uint32(one << np.uint32(i))) == zero:
                at = spare
            bins[at] = queue_entry(words[i], values[i], np.uint32(owners[i] * span))
            if places[i] >= brim:
                crowded = np.int32(1)
        left = zero
        if crowded != 0:
            for i in range(per_thread):
                if places[i] >= room:
                    left = np.uint32(left | np.uint32(pending & np.uint32(one << np.uint32(i))))
        return left, crowded

    return cuda.jit(device=True)(put)  # type: ignore[no-any-return]


def unit_of(queues: OwnerQueues) -> int:
    """Granularity of a flush, in entries: a bin keeps what exceeds a multiple of it until more arrive."""
    unit = _LINE
    while unit > 1 and 2 * unit > queues.bin_room:
        unit //= 2
    return unit


def make_flush_bins(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``flush_bins(unit, counts, bins, queue, fcl)``: append a multiple of ``unit`` entries of each bin to its queue.

    All threads of the block call it, between barriers. Each lane of a warp reserves queue room for one bin. The warp
    then writes the bins that have enough entries, several at a time: a team of lanes takes one bin.
    """
    owners, span, room = np.uint32(queues.owners), np.uint32(queues.span), np.uint32(queues.bin_room)
    deliver, unpack = make_deliver(variant), make_unpack_entry(variant, queues)
    warp, warps, one, zero = np.uint32(WARP), np.uint32(max(1, threads // WARP)), np.uint32(1), np.uint32(0)
    nothing, spacing = variant.queued(0), np.uint32(SPACING)
    lanes = np.uint32(max(_FEWEST_LANES, unit_of(queues)))
    teams, wide_lanes, turns = WARP // int(lanes), np.uint64(lanes), -(-queues.bin_room // int(lanes))
    last_lane = np.uint32(WARP - 1)
    at_once, wide_room = turns <= _MOST_AT_ONCE, np.uint64(queues.bin_room)

    def reserve(owner: np.uint32, unit: np.uint32, counts: Ids, queue: Queues) -> Any:
        """Entries in the bin, entries to flush, and the queue position reserved for them."""
        count, leaving, at = zero, zero, zero
        if owner < owners:
            count = min(counts[owner], room)
            leaving = np.uint32(count & ~np.uint32(unit - one))
            if leaving > zero:
                at = np.uint32(cuda.atomic.add(queue.queue_lengths, np.uint32(owner * spacing), leaving))
            counts[owner] = np.uint32(count - leaving)
        return count, leaving, at

    def append(owner: np.uint32, at: np.uint32, entry: Any, queue: Queues, fcl: Fcl) -> None:
        if at < queue.queue_room:
            base = np.uint64(np.uint64(owner) * np.uint64(queue.queue_room))
            queue.queue_entries[np.uint64(base + np.uint64(at))] = entry
        else:
            local, amount = unpack(entry, queue)
            deliver(np.uint64(np.uint32(owner * span + local)), amount, fcl)
            queue.queue_spills[owner] = one

    append = cuda.jit(device=True)(append)

    def write(
        owner: np.uint32, at: np.uint32, place: np.uint32, leaving: np.uint32, bins: Any, queue: Queues, fcl: Fcl
    ) -> None:
        """Write entries ``place``, ``place + lanes``, ... of the ``leaving`` ones of a bin to its queue from ``at``."""
        own = np.uint64(np.uint64(owner) * wide_room + np.uint64(place))
        if at_once and at < queue.queue_room and leaving <= np.uint32(queue.queue_room - at):
            start = np.uint64(np.uint64(owner) * np.uint64(queue.queue_room) + np.uint64(np.uint32(at + place)))
            for turn in range(turns):
                if np.uint32(place + np.uint32(turn) * lanes) < leaving:
                    beyond = np.uint64(np.uint64(turn) * wide_lanes)
                    queue.queue_entries[np.uint64(start + beyond)] = bins[np.uint64(own + beyond)]
            return
        while place < leaving:
            append(owner, np.uint32(at + place), bins[np.uint32(owner * room + place)], queue, fcl)
            place = np.uint32(place + lanes)

    reserve, write = cuda.jit(device=True)(reserve), cuda.jit(device=True)(write)

    def by_thread(unit: np.uint32, counts: Ids, bins: Any, queue: Queues, fcl: Fcl) -> None:
        owner = np.uint32(cuda.threadIdx.x)
        while owner < owners:
            count, leaving, at = reserve(owner, unit, counts, queue)
            first = np.uint32(owner * room)
            for member in range(min(leaving, lanes)):
                write(owner, at, np.uint32(member), leaving, bins, queue, fcl)
            for place in range(count - leaving):
                bins[np.uint32(first + place)] = bins[np.uint32(first + leaving + place)]
            owner = np.uint32(owner + np.uint32(cuda.blockDim.x))

    def by_warp(unit: np.uint32, counts: Ids, bins: Any, queue: Queues, fcl: Fcl) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        lane, first_owner = np.uint32(thread % warp), np.uint32(thread // warp)
        team, member = np.uint32(lane // lanes), np.uint32(lane % lanes)
        while first_owner < owners:
            own_count, own_leaving, own_at = reserve(np.uint32(first_owner + lane * warps), unit, counts, queue)
            todo = np.uint32(cuda.ballot_sync(ALL, own_leaving > zero))
            while todo != zero:
                rest = todo
                for earlier in range(teams):
                    if np.uint32(earlier) < team:
                        rest = np.uint32(rest & np.uint32(rest - one))
                    todo = np.uint32(todo & np.uint32(todo - one))
                holder = np.uint32(np.uint32(cuda.ffs(rest)) - one) & last_lane
                count = np.uint32(cuda.shfl_sync(ALL, np.int32(own_count), np.int32(holder)))
                at = np.uint32(cuda.shfl_sync(ALL, np.int32(own_at), np.int32(holder)))
                leaving = np.uint32(cuda.shfl_sync(ALL, np.int32(own_leaving), np.int32(holder)))
                if rest == zero:
                    leaving = zero
                owner = np.uint32(first_owner + holder * warps)
                write(owner, at, member, leaving, bins, queue, fcl)
                own = np.uint64(np.uint64(owner) * wide_room + np.uint64(member))
                stays, left = leaving > zero and np.uint32(leaving + member) < count, nothing
                if stays:
                    left = bins[np.uint64(own + np.uint64(leaving))]
                cuda.syncwarp()
                if stays:
                    bins[own] = left
            first_owner = np.uint32(first_owner + warp * warps)

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]
