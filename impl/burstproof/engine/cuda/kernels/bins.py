"""Bins in shared memory, one for each owner: entries go in by the window, and leave in whole lines for the queues."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Fcl, Ids, Queues
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.queue_entries import make_pack_entry, make_told, make_unpack_entry
from burstproof.engine.cuda.kernels.warp import ALL
from burstproof.engine.cuda.kernels.windows import entries_per_thread
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import SPACING, OwnerQueues, Variant

_LINE = 32
"""Entries of a bin that are written together, at most."""
_FEWEST_LANES = 8
"""Lanes that write a bin, at least: four bytes of each make a sector."""
_MOST_AT_ONCE = 12
"""Entries of a bin that a thread writes to a queue without a loop, at most."""
_SLACK, _LITTLE_SLACK, _LARGE_BIN = 4, 1, 128
"""A bin is emptied once its free room is below a window's mean share and so many standard deviations: the first for
bins of more than ``_LARGE_BIN`` entries; the second for smaller ones, which else would be emptied half full."""


def make_put(variant: Variant, queues: OwnerQueues, threads: int, *, every: bool) -> Callable[..., Any]:
    """``put(pending, owned, values, counts, bins)`` -> (those that found no room, whether a bin is nearly full).

    Entry i of a thread goes into the bin of its owner if bit i of ``pending`` is set. With ``every``, all entries go;
    all bits of ``pending`` must be set then. All places are asked for before the first is used.
    """
    per_thread, span, room = entries_per_thread(variant, queues), np.uint32(queues.span), np.uint32(queues.bin_room)
    mean, pack, one, zero = threads * per_thread / queues.owners, make_pack_entry(queues), np.uint32(1), np.uint32(0)
    slack = _SLACK if queues.bin_room > _LARGE_BIN else _LITTLE_SLACK
    brim = np.uint32(max(unit_of(queues), int(queues.bin_room - mean - slack * mean**0.5)))
    told = make_told(variant)

    def put(pending: np.uint32, owned: Any, values: Any, counts: Ids, bins: Any) -> Any:
        owners, places = cuda.local.array(per_thread, np.uint32), cuda.local.array(per_thread, np.uint32)
        for i in range(per_thread):
            target, _ = told(owned[i], values[i])
            owners[i], places[i] = np.uint32(target // span), zero
            if every or np.uint32(pending & np.uint32(one << np.uint32(i))) != zero:
                places[i] = cuda.atomic.add(counts, owners[i], one)
        crowded = np.int32(0)
        for i in range(per_thread):
            target, amount = told(owned[i], values[i])
            at, entry = np.uint32(owners[i] * room + places[i]), pack(np.uint32(target - owners[i] * span), amount)
            bit = np.uint32(one << np.uint32(i))
            if places[i] >= brim:
                crowded = np.int32(1)
            if (every or np.uint32(pending & bit) != zero) and places[i] < room:
                bins[at] = entry
                if not every:
                    pending = np.uint32(pending ^ bit)
        if every and crowded != 0:
            for i in range(per_thread):
                if places[i] < room:
                    pending = np.uint32(pending ^ np.uint32(one << np.uint32(i)))
        elif every:
            pending = zero
        return pending, crowded

    return cuda.jit(device=True)(put)  # type: ignore[no-any-return]


def unit_of(queues: OwnerQueues) -> int:
    """Entries of a bin that are written together: the rest waits for more."""
    unit = _LINE
    while unit > 1 and 2 * unit > queues.bin_room:
        unit //= 2
    return unit


def make_empty_bins(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``empty_bins(unit, counts, bins, queue, fcl)``: multiples of ``unit`` entries of each bin into its queue.

    All threads of the block call it, between barriers. A warp reserves places for the bins of as many owners at once as
    it has lanes, and writes as many of those that are full enough at a time as it has lanes for a ``unit_of`` each.
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
        """Entries in a bin, those that leave it, and where these go."""
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
        """Entries ``place``, ``place + lanes``, ... of those ``leaving`` a bin to where they go, from ``at`` on."""
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
                turn = np.uint32(np.uint32(cuda.ffs(rest)) - one) & last_lane
                count = np.uint32(cuda.shfl_sync(ALL, np.int32(own_count), np.int32(turn)))
                at = np.uint32(cuda.shfl_sync(ALL, np.int32(own_at), np.int32(turn)))
                leaving = np.uint32(cuda.shfl_sync(ALL, np.int32(own_leaving), np.int32(turn)))
                if rest == zero:
                    leaving = zero
                owner = np.uint32(first_owner + turn * warps)
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
