"""Queues per owner: what fired is sorted by the blocks that own its targets, which add it up in shared memory.

An owner is a range of neurons (``plan.queues``). Blocks take entries of rows by the thousand, sort them by owner in
shared memory, and append each owner's run to its queue in device memory with one reservation; an entry is the target
within the owner, and the contribution above it. What a full queue has no room for is added to the FCL. As with delays
on the sender's side (``kernels.recall``), rows are those of the fired lists of the last bursts, each for one delay.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Amount, Fcl, Ids, Network, Queues, Recall, Rows, Steering, Turn
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import CLAMPED, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.rows import make_bounds, make_read_once
from burstproof.engine.cuda.kernels.steer import make_fired_of
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.queues import LOCAL_BITS
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, lists_kept

ENQUEUE_THREADS = 512
_PER_THREAD, _WIDE_PER_THREAD = 8, 6
"""Entries of 32 and of 64 bits that a thread takes at a time: so many loads are in flight, and so many registers."""
_FILLED, _MOST_PARTS = 0.96, 1024
_ALL = 0xFFFFFFFF


@cache
def make_scan() -> Callable[..., Any]:
    """``scan(values, count, totals)``: make the first ``count`` uint32 of a shared array their running sums.

    All threads of a block call it; ``totals`` has a place for each warp.
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
                    below = cuda.shfl_up_sync(_ALL, own, step)
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


def make_pack_entry(queues: OwnerQueues) -> Callable[..., Any]:
    """``pack_entry(local, amount)``: an entry of a queue."""
    shift, wide_shift = np.uint32(LOCAL_BITS), np.uint64(LOCAL_BITS)

    def narrow(local: np.uint32, amount: Amount) -> Any:
        return np.uint32(local | np.uint32(np.uint32(amount) << shift))

    def wide(local: np.uint32, amount: Amount) -> Any:
        return np.uint64(np.uint64(local) | np.uint64(np.uint64(amount) << wide_shift))

    return cuda.jit(device=True)(wide if queues.wide else narrow)  # type: ignore[no-any-return]


def make_unpack_entry(variant: Variant, queues: OwnerQueues) -> Callable[..., Any]:
    """``unpack_entry(entry)`` -> (uint32 target within the owner, its contribution)."""
    shift, wide_shift, number = np.int32(LOCAL_BITS), np.int64(LOCAL_BITS), variant.accumulator
    low, wide_low = np.uint32((1 << LOCAL_BITS) - 1), np.uint64((1 << LOCAL_BITS) - 1)

    def narrow(entry: Any) -> Any:
        return np.uint32(entry & low), number(np.int32(entry) >> shift)

    def wide(entry: Any) -> Any:
        return np.uint32(entry & wide_low), number(np.int64(entry) >> wide_shift)

    return cuda.jit(device=True)(wide if queues.wide else narrow)  # type: ignore[no-any-return]


def _parts(queues: OwnerQueues, threads: int) -> int:
    """Parts that a block takes at a time: what they deliver fills a window and seldom more."""
    fitting = int(_FILLED * threads * _per_thread(queues) / queues.part)
    return max(1, min(fitting, _MOST_PARTS))


def _per_thread(queues: OwnerQueues) -> int:
    return _WIDE_PER_THREAD if queues.wide else _PER_THREAD


def make_part_of(variant: Variant) -> Callable[..., Any]:
    """``part_of(source, age, rows, recall)`` -> (first entry, entries) of what a row delivers ``age`` bursts later."""
    bounds, offset, places = make_bounds(variant), variant.offset, np.uint64(variant.recalled + 1)
    one = np.uint64(1)

    def whole(source: np.uint32, age: np.uint32, rows: Rows, recall: Recall) -> Any:
        start, end = bounds(source, rows)
        return start, np.uint32(end - start)

    def one_delay(source: np.uint32, age: np.uint32, rows: Rows, recall: Recall) -> Any:
        start, _ = bounds(source, rows)
        at = np.uint64(np.uint64(source) * places + np.uint64(age))
        low, high = recall.delay_starts[at], recall.delay_starts[np.uint64(at + one)]
        return offset(start + offset(low)), np.uint32(np.uint32(high) - np.uint32(low))

    return cuda.jit(device=True)(one_delay if variant.recalled > 1 else whole)  # type: ignore[no-any-return]


def make_append_runs(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``append_runs(count, places, ordered, owned_by, queue, fcl)``: a block's entries to the queues they belong to.

    The i-th of ``count`` goes to place ``places[o] + i`` of the queue of its owner o, ``owned_by[i]``.
    """
    per_thread, span, entry_kind = _per_thread(queues), np.uint32(queues.span), variant.queued
    block, one = np.uint32(threads), np.uint32(1)
    deliver, unpack = make_deliver(variant), make_unpack_entry(variant, queues)

    def append_runs(count: np.uint32, places: Ids, ordered: Any, owned_by: Any, queue: Queues, fcl: Fcl) -> None:
        owners = cuda.local.array(per_thread, np.uint32)
        at = cuda.local.array(per_thread, np.uint32)
        entries = cuda.local.array(per_thread, entry_kind)
        thread, last = np.uint32(cuda.threadIdx.x), np.uint32(count - one)
        for i in range(per_thread):
            own = min(np.uint32(thread + np.uint32(i) * block), last)
            owners[i], entries[i] = np.uint32(owned_by[own]), ordered[own]
        for i in range(per_thread):
            at[i] = np.uint32(places[owners[i]] + thread + np.uint32(i) * block)
        for i in range(per_thread):
            if np.uint32(thread + np.uint32(i) * block) < count:
                owner = owners[i]
                if at[i] < queue.queue_room:
                    base = np.uint64(np.uint64(owner) * np.uint64(queue.queue_room))
                    queue.queue_entries[np.uint64(base + np.uint64(at[i]))] = entries[i]
                else:
                    local, amount = unpack(entries[i])
                    deliver(np.uint64(np.uint32(owner * span + local)), amount, fcl)
                    queue.queue_spills[owner] = np.uint32(1)

    return cuda.jit(device=True)(append_runs)  # type: ignore[no-any-return]


def make_find(variant: Variant, queues: OwnerQueues, threads: int) -> tuple[Callable[..., Any], ...]:
    """``note(base, end, parts, ends, part_of)`` and ``find(place, base, part, parts, ends, part_of)``.

    ``find`` says which of a block's parts holds the entry at ``place``, from a part before it on; for short parts
    ``note``, which all threads call first, writes it down for all places from ``base`` on.
    """
    zero, one, block = np.uint32(0), np.uint32(1), np.uint32(threads)
    widest, length = np.uint32(1 << (_parts(queues, threads).bit_length() - 1)), np.uint32(max(1, variant.row_length))

    def note_nothing(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> None:
        """The part of a place follows from its number."""

    def note_all(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> None:
        part = np.uint32(cuda.threadIdx.x)
        while part < parts:
            place, after = base, min(ends[part], end)
            if part > zero:
                place = max(base, ends[np.uint32(part - one)])
            while place < after:
                part_of[np.uint32(place - base)] = np.uint16(part)
                place = np.uint32(place + one)
            part = np.uint32(part + block)
        cuda.syncthreads()

    def noted(place: np.uint32, base: np.uint32, part: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> Any:
        return np.uint32(part_of[np.uint32(place - base)])

    def divided(place: np.uint32, base: np.uint32, part: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> Any:
        return np.uint32(place // length)

    def sought(place: np.uint32, base: np.uint32, part: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> Any:
        if part == zero:
            step = widest
            while step > zero:
                if np.uint32(part + step) <= parts and ends[np.uint32(part + step - one)] <= place:
                    part = np.uint32(part + step)
                step = np.uint32(step >> one)
        while ends[part] <= place:
            part = np.uint32(part + one)
        return part

    if variant.recalled == 1 and variant.row_length > 0:
        made = note_nothing, divided
    elif queues.part < WARP:
        made = note_all, noted
    else:
        made = note_nothing, sought
    return tuple(cuda.jit(device=True)(function) for function in made)


def make_sort_window(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``sort_window(base, total, ...)``: entries from ``base`` on, of the ``total`` of a block's parts, to the queues.

    Part i ends before the ``ends[i]``-th of all, and the one at ``place`` is entry ``firsts[i] + place`` of the rows.
    Nothing stands between the loads, so that all are in flight at once; beyond the last place the last is read again.
    """
    number, offset, uniform_rows, read_once = (
        variant.accumulator,
        variant.offset,
        variant.uniform_rows,
        make_read_once(),
    )
    pack, append_runs, scan = make_pack_entry(queues), make_append_runs(variant, queues, threads), make_scan()
    per_thread, room = _per_thread(queues), threads * _per_thread(queues)
    owners, span, entry_kind = queues.owners, np.uint32(queues.span), variant.queued
    all_owners, block, warp, window = np.uint32(owners), np.uint32(threads), np.uint32(WARP), np.uint32(room)
    one, zero, (note, find) = np.uint32(1), np.uint32(0), make_find(variant, queues, threads)

    def sort_window(
        base: np.uint32,
        total: np.uint32,
        parts: np.uint32,
        firsts: Any,
        ends: Ids,
        amounts: Any,
        totals: Ids,
        rows: Rows,
        fcl: Fcl,
        queue: Queues,
    ) -> None:
        counts = cuda.shared.array(owners, np.uint32)
        starts = cuda.shared.array(owners, np.uint32)
        places = cuda.shared.array(owners, np.uint32)
        ordered = cuda.shared.array(room, entry_kind)
        owned_by = cuda.shared.array(room, np.uint16)
        owned, ranks = cuda.local.array(per_thread, np.uint32), cuda.local.array(per_thread, np.uint32)
        sought, values = cuda.local.array(per_thread, offset), cuda.local.array(per_thread, number)
        thread = np.uint32(cuda.threadIdx.x)
        own = thread
        while own < all_owners:
            counts[own] = zero
            own = np.uint32(own + block)
        own_first = np.uint32(base + np.uint32(thread // warp) * np.uint32(WARP * per_thread) + thread % warp)
        part, last = zero, np.uint32(min(np.uint32(base + window), total) - one)
        note(base, np.uint32(last + one), parts, ends, owned_by)
        for i in range(per_thread):
            place = min(np.uint32(own_first + np.uint32(i) * warp), last)
            part = find(place, base, part, parts, ends, owned_by)
            sought[i] = offset(firsts[part] + offset(place))
            if uniform_rows:
                values[i] = amounts[part]
        for i in range(per_thread):
            owned[i] = read_once(rows.targets, sought[i])
            if not uniform_rows:
                values[i] = number(read_once(rows.contributions, sought[i]))
        cuda.syncthreads()
        for i in range(per_thread):
            place = np.uint32(own_first + np.uint32(i) * warp)
            if place < total:
                ranks[i] = cuda.atomic.add(counts, np.uint32(owned[i] // span), one)
        cuda.syncthreads()
        own = thread
        while own < all_owners:
            count = counts[own]
            starts[own] = count
            if count > zero:
                places[own] = np.uint32(cuda.atomic.add(queue.queue_lengths, own, count))
            own = np.uint32(own + block)
        cuda.syncthreads()
        scan(starts, all_owners, totals)
        own = thread
        while own < all_owners:
            start = np.uint32(starts[own] - counts[own])
            starts[own], places[own] = start, np.uint32(places[own] - start)
            own = np.uint32(own + block)
        cuda.syncthreads()
        for i in range(per_thread):
            place = np.uint32(own_first + np.uint32(i) * warp)
            if place < total:
                owner = np.uint32(owned[i] // span)
                at = np.uint32(starts[owner] + ranks[i])
                ordered[at] = pack(np.uint32(owned[i] - owner * span), values[i])
                owned_by[at] = np.uint16(owner)
        cuda.syncthreads()
        append_runs(min(np.uint32(total - base), window), places, ordered, owned_by, queue, fcl)
        cuda.syncthreads()

    return cuda.jit(device=True)(sort_window)  # type: ignore[no-any-return]


def make_enqueue(variant: Variant) -> Callable[..., None]:
    """``enqueue(...)``: what arrives in the burst after that of the turn, into the queues of its owners."""
    queues = variant.queues
    assert queues is not None
    threads = WARP if SIMULATED else ENQUEUE_THREADS
    longest, turns = np.uint32(variant.recalled), np.uint32(lists_kept(variant) - 1)
    clamps, uniform_rows, offset, number = variant.clamps, variant.uniform_rows, variant.offset, variant.accumulator
    part_of, fired_of, scan = make_part_of(variant), make_fired_of(), make_scan()
    sort_window = make_sort_window(variant, queues, threads)
    wait_for_last, let_next_start = make_wait_for_last(variant.overlapped), make_let_next_start(variant.overlapped)
    lists, items = variant.recalled, _parts(queues, threads)
    amount_places, warps = items if uniform_rows else 1, max(1, threads // WARP)
    one, zero, most, window = np.uint32(1), np.uint32(0), np.uint32(items), np.uint32(threads * _per_thread(queues))
    block = np.uint32(threads)

    def enqueue(
        steering: Steering, network: Network, recall: Recall, rows: Rows, fcl: Fcl, queue: Queues, turn: Turn
    ) -> None:
        list_ends = cuda.shared.array(lists, np.uint32)
        firsts = cuda.shared.array(items, offset)
        ends = cuda.shared.array(items, np.uint32)
        amounts = cuda.shared.array(amount_places, number)
        totals = cuda.shared.array(warps, np.uint32)
        let_next_start()
        wait_for_last()
        report, thread = steering.report, np.uint32(cuda.threadIdx.x)
        if report[INDEX] != np.int64(turn.place):
            return
        burst = np.uint32(np.uint32(report[ORIGIN]) + turn.place + one)
        latest = fired_of(steering.tallies, burst)
        if cuda.grid(1) == 0:
            recall.recalled_counts[burst & turns] = latest
        own = thread
        while own < longest:
            length = latest
            if own > zero:
                length = recall.recalled_counts[np.uint32(burst - own) & turns]
            list_ends[own] = length
            own = np.uint32(own + block)
        cuda.syncthreads()
        scan(list_ends, longest, totals)
        everything = list_ends[np.uint32(longest - one)]
        blocks = np.uint32(cuda.gridDim.x)
        share = np.uint32((everything + blocks - one) // blocks)
        groups = np.uint32((share + most - one) // most)
        low = np.uint32(np.uint32(cuda.blockIdx.x) * share)
        high = min(np.uint32(low + share), everything)
        group = most
        if groups > zero:
            group = np.uint32((share + groups - one) // groups)
        while low < high:
            parts, own = min(group, np.uint32(high - low)), thread
            while own < parts:
                item, age, before = np.uint32(low + own), zero, zero
                while item >= list_ends[age]:
                    before = list_ends[age]
                    age = np.uint32(age + one)
                at = np.uint64(np.uint64(np.uint32(burst - age) & turns) * np.uint64(network.neurons))
                source = recall.recalled_ids[np.uint64(at + np.uint64(np.uint32(item - before)))]
                firsts[own], ends[own] = part_of(source, age, rows, recall)
                if uniform_rows:
                    amounts[own] = number(rows.contributions[source])
                if clamps and age == zero and rows.clamped_sources[source] != 0:
                    steering.control[CLAMPED] = 1
                own = np.uint32(own + block)
            cuda.syncthreads()
            scan(ends, parts, totals)
            own = thread
            while own < parts:
                if own > zero:
                    firsts[own] = offset(firsts[own] - offset(ends[np.uint32(own - one)]))
                own = np.uint32(own + block)
            cuda.syncthreads()
            total = ends[np.uint32(parts - one)]
            base = zero
            while base < total:
                sort_window(base, total, parts, firsts, ends, amounts, totals, rows, fcl, queue)
                base = np.uint32(base + window)
            low = np.uint32(low + parts)

    return enqueue
