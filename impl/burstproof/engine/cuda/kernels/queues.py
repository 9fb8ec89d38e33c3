"""Queues per owner: what fired is sorted by the blocks that own its targets, which add it up in shared memory.

An owner is a range of neurons (``plan.queues``). A block keeps a bin for each owner in shared memory. It reads entries
of rows by the thousand, always a window ahead, and puts each into its owner's bin; an entry is the target within the
owner, and above it the contribution, or its place in the palette. Once a bin is nearly full, all are emptied into the
queues in device memory, in whole lines, with one reservation a bin. What a full queue has no room for is added to the
FCL. Which entries a block reads is up to ``kernels.enqueue``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Amount, Fcl, Ids, Queues, Recall, Rows
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.entries import make_target_of
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.queues import LOCAL_BITS
from burstproof.engine.cuda.plan.variant import SPACING, OwnerQueues, Variant, in_columns

_PER_THREAD = {16: 8, 32: 6, 64: 4}
"""Entries of so many bits that a thread takes at a time; one less where rows are in parts.

So many loads are in flight, and so many registers, of which a thread may have 64.
"""
_LINE = 32
"""Entries of a bin that are written together, at most."""
_FEWEST_LANES = 8
"""Lanes that write a bin, at least: four bytes of each make a sector."""
_MOST_AT_ONCE = 12
"""Entries of a bin that a thread writes to a queue without a loop, at most."""
_SLACK, _LITTLE_SLACK, _LARGE_BIN = 4, 1, 128
"""A bin is emptied once its free room is below a window's mean share and so many standard deviations: the first for
bins of more than ``_LARGE_BIN`` entries; the second for smaller ones, which else would be emptied half full."""
_FILLED, _MOST_PARTS, _MOST_WIDE_PARTS = 0.96, 2048, 1024
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

    def alone(local: np.uint32, amount: Amount) -> Any:
        return np.uint16(local)

    def narrow(local: np.uint32, amount: Amount) -> Any:
        return np.uint32(local | np.uint32(np.uint32(amount) << shift))

    def wide(local: np.uint32, amount: Amount) -> Any:
        return np.uint64(np.uint64(local) | np.uint64(np.uint64(amount) << wide_shift))

    made = {16: alone, 32: narrow, 64: wide}[queues.entry_bits]
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]


def amounts_of_sources(variant: Variant, queues: OwnerQueues) -> bool:
    """Whether the entries of a row need the contribution of its source: not where an entry is a target alone."""
    return variant.uniform_rows and queues.entry_bits > LOCAL_BITS


def make_unpack_entry(variant: Variant, queues: OwnerQueues) -> Callable[..., Any]:
    """``unpack_entry(entry, queue)`` -> (uint32 target within the owner, its contribution)."""
    shift, wide_shift, number = np.int32(LOCAL_BITS), np.int64(LOCAL_BITS), variant.accumulator
    low, wide_low = np.uint32((1 << LOCAL_BITS) - 1), np.uint64((1 << LOCAL_BITS) - 1)
    place_shift = np.uint32(LOCAL_BITS)

    def narrow(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry & low), number(np.int32(entry) >> shift)

    def wide(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry & wide_low), number(np.int64(entry) >> wide_shift)

    def looked_up(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry & low), number(queue.palette[np.uint32(entry >> place_shift)])

    def alone(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry), number(queue.common_contribution)

    made = {16: alone, 32: looked_up if variant.palette else narrow, 64: wide}[queues.entry_bits]
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]


def parts_at_once(variant: Variant, queues: OwnerQueues, threads: int) -> int:
    """Parts that a block takes at a time: what they deliver fills windows and seldom more."""
    most = _MOST_WIDE_PARTS if variant.uniform_rows or variant.offset_bits > 32 else _MOST_PARTS
    per_window = _FILLED * threads * _per_thread(variant, queues) / queues.part
    windows = max(1, int(most / per_window))
    return max(1, min(int(windows * per_window), most))


def divides(variant: Variant) -> bool:
    """Whether all parts are rows of one length, so that the part of an entry follows from its number."""
    return variant.recalled == 1 and variant.row_length > 0


def _per_thread(variant: Variant, queues: OwnerQueues) -> int:
    return _PER_THREAD[queues.entry_bits] - int(variant.recalled > 1)


def _stored(variant: Variant) -> type[np.integer]:
    """Scalar type of a contribution as it is loaded: to widen it at once would be to wait for it at once."""
    return variant.accumulator if variant.uniform_rows else variant.read_contribution


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


def make_find(variant: Variant, queues: OwnerQueues, threads: int) -> tuple[Callable[..., Any], ...]:
    """``note(base, end, parts, ends, part_of)`` and ``find(place, base, part, parts, ends, part_of)``.

    ``find`` says which of a block's parts holds the entry at ``place``, from a part before it on; for short parts
    ``note``, which all threads call first, writes it down for all places from ``base`` on.
    """
    zero, one, block = np.uint32(0), np.uint32(1), np.uint32(threads)
    widest, length = (
        np.uint32(1 << (parts_at_once(variant, queues, threads).bit_length() - 1)),
        np.uint32(max(1, variant.row_length)),
    )

    def note_nothing(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> None:
        """The part of a place follows from its number."""

    def note_all(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> None:
        cuda.syncthreads()  # the last window's places have been looked up by all
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

    if divides(variant):
        made = note_nothing, divided
    elif queues.notes_parts:
        made = note_all, noted
    else:
        made = note_nothing, sought
    return tuple(cuda.jit(device=True)(function) for function in made)


def _make_find_first() -> tuple[Callable[..., Any], ...]:
    """``make_find`` of a part that is alone."""

    def note(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> None:
        """There is nothing to write down."""

    def find(place: np.uint32, base: np.uint32, part: np.uint32, parts: np.uint32, ends: Ids, part_of: Any) -> Any:
        return np.uint32(0)

    return cuda.jit(device=True)(note), cuda.jit(device=True)(find)


def make_load_window(variant: Variant, queues: OwnerQueues, threads: int, whole: bool) -> Callable[..., Any]:
    """``load_window(base, total, ...)``: a thread's targets and contributions of the window of entries at ``base``.

    ``total`` are those of a block's parts, or of one alone if that is ``whole``. Part i ends before the ``ends[i]``-th
    of all, and the one at ``place`` is entry ``firsts[i] + place``. Nothing stands between the loads, so that all are
    in flight at once; beyond the last place the last is read again.
    """
    offset, columns = variant.offset, in_columns(variant)
    of_sources = amounts_of_sources(variant, queues)
    per_thread, read_once = _per_thread(variant, queues), make_read_once()
    warp, window, one, zero = np.uint32(WARP), np.uint32(threads * per_thread), np.uint32(1), np.uint32(0)
    note, find = _make_find_first() if whole else make_find(variant, queues, threads)

    def load_window(
        base: np.uint32,
        total: np.uint32,
        parts: np.uint32,
        firsts: Any,
        ends: Ids,
        amounts: Any,
        part_of: Any,
        targets: Any,
        contributions: Any,
        owned: Any,
        values: Any,
    ) -> None:
        sought = cuda.local.array(per_thread, offset)
        thread = np.uint32(cuda.threadIdx.x)
        own_first = np.uint32(base + np.uint32(thread // warp) * np.uint32(WARP * per_thread) + thread % warp)
        part, last = zero, np.uint32(min(np.uint32(base + window), total) - one)
        note(base, np.uint32(last + one), parts, ends, part_of)
        for i in range(per_thread):
            place = min(np.uint32(own_first + np.uint32(i) * warp), last)
            part = find(place, base, part, parts, ends, part_of)
            sought[i] = offset(firsts[part] + offset(place))
            if of_sources:
                values[i] = amounts[part]
        for i in range(per_thread):
            owned[i] = read_once(targets, sought[i])
            if columns:
                values[i] = read_once(contributions, sought[i])

    return cuda.jit(device=True)(load_window)  # type: ignore[no-any-return]


def make_told(variant: Variant) -> Callable[..., Any]:
    """``told(word, value)``: a target, and what the entry of a queue keeps of its contribution."""
    target_of, bits = make_target_of(variant), variant.target_bits
    shift, place_shift = np.int32(bits), np.uint32(bits)

    def columns(word: np.uint32, value: Any) -> Any:
        return word, value

    def beside(word: np.int32, value: Any) -> Any:
        return target_of(word), np.int32(np.int32(word) >> shift)

    def looked_up(word: np.int32, value: Any) -> Any:
        return target_of(word), np.uint32(np.uint32(word) >> place_shift)

    made = columns if not variant.target_bits else looked_up if variant.palette else beside
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]


def make_put(variant: Variant, queues: OwnerQueues, threads: int, *, every: bool) -> Callable[..., Any]:
    """``put(pending, owned, values, counts, bins)`` -> (those that found no room, whether a bin is nearly full).

    Entry i of a thread goes into the bin of its owner if bit i of ``pending`` is set. With ``every``, all entries go;
    all bits of ``pending`` must be set then. All places are asked for before the first is used.
    """
    per_thread, span, room = _per_thread(variant, queues), np.uint32(queues.span), np.uint32(queues.bin_room)
    mean, pack, one, zero = threads * per_thread / queues.owners, make_pack_entry(queues), np.uint32(1), np.uint32(0)
    slack = _SLACK if queues.bin_room > _LARGE_BIN else _LITTLE_SLACK
    brim = np.uint32(max(_unit(queues), int(queues.bin_room - mean - slack * mean**0.5)))
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


def _unit(queues: OwnerQueues) -> int:
    """Entries of a bin that are written together: the rest waits for more."""
    unit = _LINE
    while unit > 1 and 2 * unit > queues.bin_room:
        unit //= 2
    return unit


def make_empty_bins(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``empty_bins(unit, counts, bins, queue, fcl)``: multiples of ``unit`` entries of each bin into its queue.

    All threads of the block call it, between barriers. A warp reserves places for the bins of as many owners at once as
    it has lanes, and writes as many of those that are full enough at a time as it has lanes for a ``_unit`` each.
    """
    owners, span, room = np.uint32(queues.owners), np.uint32(queues.span), np.uint32(queues.bin_room)
    deliver, unpack = make_deliver(variant), make_unpack_entry(variant, queues)
    warp, warps, one, zero = np.uint32(WARP), np.uint32(max(1, threads // WARP)), np.uint32(1), np.uint32(0)
    nothing, spacing = variant.queued(0), np.uint32(SPACING)
    lanes = np.uint32(max(_FEWEST_LANES, _unit(queues)))
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
            todo = np.uint32(cuda.ballot_sync(_ALL, own_leaving > zero))
            while todo != zero:
                rest = todo
                for earlier in range(teams):
                    if np.uint32(earlier) < team:
                        rest = np.uint32(rest & np.uint32(rest - one))
                    todo = np.uint32(todo & np.uint32(todo - one))
                turn = np.uint32(np.uint32(cuda.ffs(rest)) - one) & last_lane
                count = np.uint32(cuda.shfl_sync(_ALL, np.int32(own_count), np.int32(turn)))
                at = np.uint32(cuda.shfl_sync(_ALL, np.int32(own_at), np.int32(turn)))
                leaving = np.uint32(cuda.shfl_sync(_ALL, np.int32(own_leaving), np.int32(turn)))
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


def make_sort_parts(variant: Variant, queues: OwnerQueues, threads: int, whole: bool = False) -> Callable[..., Any]:
    """``sort_parts(total, ...)``: all ``total`` entries of a block's parts into bins, window by window.

    ``whole``: there is one part, of a bucket. The next window is loaded before this one is put, whether there is one or
    not; as long as no bin is nearly full, nothing waits for it but the next turn: what comes in a branch or crosses
    the head of a loop, the assembler waits for at once.
    """
    target, stored = variant.target, _stored(variant)
    per_thread, unit = _per_thread(variant, queues), np.uint32(_unit(queues))
    load_window = make_load_window(variant, queues, threads, whole)
    put, put_every = (make_put(variant, queues, threads, every=every) for every in (False, True))
    empty_bins, short = make_empty_bins(variant, queues, threads), queues.notes_parts and not whole
    places = threads * per_thread if short else 1
    warp, window, one, zero = np.uint32(WARP), np.uint32(threads * per_thread), np.uint32(1), np.uint32(0)
    all_of_thread = np.uint32((1 << per_thread) - 1)

    def sort_parts(
        total: np.uint32,
        parts: np.uint32,
        firsts: Any,
        ends: Ids,
        amounts: Any,
        counts: Ids,
        bins: Any,
        targets: Any,
        contributions: Any,
        fcl: Fcl,
        queue: Queues,
    ) -> None:
        part_of = cuda.shared.array(places, np.uint16)
        owned, values = cuda.local.array(per_thread, target), cuda.local.array(per_thread, stored)
        coming, amounts_coming = cuda.local.array(per_thread, target), cuda.local.array(per_thread, stored)
        thread, base = np.uint32(cuda.threadIdx.x), zero
        own_first = np.uint32(np.uint32(thread // warp) * np.uint32(WARP * per_thread) + thread % warp)
        load_window(zero, total, parts, firsts, ends, amounts, part_of, targets, contributions, owned, values)
        while base < total:
            following = np.uint32(base + window)
            after = min(following, np.uint32(total - one))
            load_window(
                after, total, parts, firsts, ends, amounts, part_of, targets, contributions, coming, amounts_coming
            )
            pending, placed, full, waits = zero, bool(following <= total), True, True
            if placed:
                pending, crowded = put_every(all_of_thread, owned, values, counts, bins)
                waits = cuda.syncthreads_or(crowded) != 0
            else:
                for i in range(per_thread):
                    if np.uint32(base + own_first + np.uint32(i) * warp) < total:
                        pending = np.uint32(pending | np.uint32(one << np.uint32(i)))
            while waits:
                if not placed:
                    pending, crowded = put(pending, owned, values, counts, bins)
                    full = cuda.syncthreads_or(crowded) != 0
                placed, waits = False, False
                if full:
                    empty_bins(unit, counts, bins, queue, fcl)
                    waits = cuda.syncthreads_or(np.int32(pending)) != 0
            for i in range(per_thread):
                owned[i], values[i] = coming[i], amounts_coming[i]
            base = following

    return cuda.jit(device=True)(sort_parts)  # type: ignore[no-any-return]
