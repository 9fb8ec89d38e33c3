"""A calendar for large networks: its buckets are divided into tiles of targets, and their room is bounded.

It differs from ``kernels.calendar`` in three ways. Each bucket has a part for each tile of targets, so that blocks that
run at the same time add to one tile, which stays in the L2 cache. Each burst has a *spare* slot of the FCL, behind the
two that alternate: it takes what a part has no room for, and the contributions under way of a restored state. The
kernel that adds the bucket adds this slot as well, if anything is in it. With several tiles a block puts off the rows
of several chunks together. A word holds the target's index within its tile, and above it the contribution or its place
in the palette.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Fcl, Ids, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.entries import make_target_of
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.buffers import FIRST_SPARE
from burstproof.engine.cuda.plan.variant import Variant

_AT_ONCE = 4


def calendar_masks(variant: Variant) -> tuple[np.uint32, np.uint32]:
    """Masks that map a burst number to its bucket, and to the bucket's counts."""
    buckets = max(1, variant.calendar)
    return np.uint32(buckets - 1), np.uint32(2 * buckets - 1)


def _make_amount_of(variant: Variant) -> Callable[..., Any]:
    """``amount_of(high, rows)``: the contribution that the high bits of a word stand for."""
    number = variant.accumulator

    def itself(high: Any, rows: Rows) -> Any:
        return number(high)

    def looked_up(high: Any, rows: Rows) -> Any:
        return number(rows.palette[np.uint32(high)])

    return cuda.jit(device=True)(looked_up if variant.palette else itself)  # type: ignore[no-any-return]


def _make_high_of(variant: Variant) -> Callable[..., Any]:
    """``high_of(word, shift)``: the bits of ``word`` above ``shift``; a place in the palette is unsigned."""
    noted = variant.noted

    def signed(word: Any, shift: np.uint32) -> Any:
        return noted(word >> shift)

    def unsigned(word: Any, shift: np.uint32) -> Any:
        return noted(np.uint32(np.uint32(word) >> shift))

    return cuda.jit(device=True)(unsigned if variant.palette else signed)  # type: ignore[no-any-return]


def _make_entry_at(variant: Variant) -> tuple[Callable[..., Any], ...]:
    """``entry_at(entry, shared, rows)``, ``target_in(first, second)`` and ``high_in(first, second)``.

    ``entry_at`` loads two values of an entry: its word and 0, or its target and contribution. The others take these
    and return the target, and the high bits for the bucket's word.
    """
    noted, uniform_rows, bits = variant.noted, variant.uniform_rows, np.uint32(variant.target_bits)
    target_of, high_of = make_target_of(variant), _make_high_of(variant)

    def in_words(entry: np.unsignedinteger, shared: Amount, rows: Rows) -> Any:
        return rows.targets[entry], np.int32(0)

    def target_in_word(word: np.int32, beside: np.int32) -> Any:
        return target_of(word)

    def high_in_word(word: np.int32, beside: np.int32) -> Any:
        return high_of(word, bits)

    def in_columns(entry: np.unsignedinteger, shared: Amount, rows: Rows) -> Any:
        high = noted(shared)
        if not uniform_rows:
            high = noted(rows.contributions[entry])
        return np.uint32(rows.targets[entry]), high

    def target_itself(target: np.uint32, high: Any) -> Any:
        return target

    def high_itself(target: np.uint32, high: Any) -> Any:
        return high

    words, columns = (in_words, target_in_word, high_in_word), (in_columns, target_itself, high_itself)
    return tuple(cuda.jit(device=True)(function) for function in (words if variant.target_bits else columns))


def _make_deliver_spare(variant: Variant) -> Callable[..., Any]:
    """``deliver_spare(due, following, fcl)``: move the spare slot of burst ``due`` to its slot, at ``following``.

    Whole words are added, however many cells they hold. All threads of the grid call it.
    """
    (bucket_mask, _), spare = calendar_masks(variant), np.uint32(FIRST_SPARE)
    per_word, nothing = np.uint64(max(1, 32 // variant.word.bits)), variant.word.added(0)

    def deliver_spare(due: np.uint32, following: np.uint64, fcl: Fcl) -> None:
        slot = np.uint64(np.uint64(np.uint32(spare + (due & bucket_mask))) * np.uint64(fcl.stride))
        source, target = np.uint64(slot // per_word), np.uint64(following // per_word)
        words, item = np.uint64(np.uint64(fcl.stride) // per_word), np.uint64(cuda.grid(1))
        while item < words:
            word = fcl.sums[np.uint64(source + item)]
            if word != nothing:
                fcl.sums[np.uint64(source + item)] = nothing
                cuda.atomic.add(fcl.sums, np.uint64(target + item), word)
            item = np.uint64(item + np.uint64(cuda.gridsize(1)))

    return cuda.jit(device=True)(deliver_spare)  # type: ignore[no-any-return]


def make_deliver_due_tiles(variant: Variant) -> Callable[..., Any]:
    """``deliver_due(burst, slot, recall, rows, fcl)``: add the next burst's bucket to the slot after ``slot``.

    All threads of the grid call it. Each block takes a contiguous share of the words of all tiles, so that blocks that
    run at the same time add to the same tile. Buckets are used cyclically. There are twice as many counts, so that
    those of ``burst`` can be cleared.
    """
    bucket_mask, count_mask = calendar_masks(variant)
    deliver, deliver_spare = make_deliver(variant), _make_deliver_spare(variant)
    amount_of, high_of = _make_amount_of(variant), _make_high_of(variant)
    number, noted, tiles = variant.accumulator, variant.noted, variant.calendar_tiles
    per_burst, none, zero, one = np.uint32(tiles), variant.noted(0), np.uint32(0), np.uint32(1)

    def clear(burst: np.uint32, recall: Recall) -> None:
        """One thread: reset the counts of a burst whose bucket has been delivered."""
        turn = np.uint32(burst & count_mask)
        for tile in range(tiles):
            recall.calendar_counts[np.uint32(turn * per_burst + np.uint32(tile))] = zero
        recall.calendar_spares[turn] = zero

    clear = cuda.jit(device=True)(clear)

    def deliver_part(
        item: np.uint32, end: np.uint32, first: np.uint64, base: np.uint64, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        words, amounts = cuda.local.array(_AT_ONCE, noted), cuda.local.array(_AT_ONCE, number)
        step, shift = np.uint32(cuda.blockDim.x), recall.calendar_shift
        mask = np.uint32(np.uint32(one << shift) - one)
        while item < end:
            for turn in range(_AT_ONCE):
                at = np.uint32(item + np.uint32(turn) * step)
                words[turn] = recall.calendar_words[np.uint64(first + np.uint64(at))] if at < end else none
            for turn in range(_AT_ONCE):
                amounts[turn] = amount_of(high_of(words[turn], shift), rows)
            for turn in range(_AT_ONCE):
                if np.uint32(item + np.uint32(turn) * step) < end:
                    deliver(np.uint64(base + np.uint64(np.uint32(words[turn]) & mask)), amounts[turn], fcl)
            item = np.uint32(item + np.uint32(_AT_ONCE) * step)

    deliver_part = cuda.jit(device=True)(deliver_part)

    def deliver_due(burst: np.uint32, slot: np.uint32, recall: Recall, rows: Rows, fcl: Fcl) -> None:
        due, room = np.uint32(burst + one), np.uint32(recall.calendar_room)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        counts, bucket = np.uint32((due & count_mask) * per_burst), np.uint32((due & bucket_mask) * per_burst)
        if cuda.grid(1) == 0:
            clear(burst, recall)
        total, before = zero, zero
        for tile in range(tiles):
            total = np.uint32(total + min(recall.calendar_counts[np.uint32(counts + np.uint32(tile))], room))
        share = np.uint32((total + np.uint32(cuda.gridDim.x) - one) // np.uint32(cuda.gridDim.x))
        low = np.uint32(share * np.uint32(cuda.blockIdx.x))
        for tile in range(tiles):
            ends = np.uint32(before + min(recall.calendar_counts[np.uint32(counts + np.uint32(tile))], room))
            first = np.uint64(np.uint64(np.uint32(bucket + np.uint32(tile))) * np.uint64(room) - np.uint64(before))
            base = np.uint64(following + (np.uint64(tile) << np.uint64(recall.calendar_shift)))
            item = np.uint32(max(low, before) + np.uint32(cuda.threadIdx.x))
            deliver_part(item, min(ends, np.uint32(low + share)), first, base, recall, rows, fcl)
            before = ends
        if recall.calendar_spares[due & count_mask] != zero:
            deliver_spare(due, following, fcl)

    return cuda.jit(device=True)(deliver_due)  # type: ignore[no-any-return]


def _make_bin_of(variant: Variant) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``bin_of(delay, target, recall)`` and ``bin_at(entry, recall, rows)``: bin of an entry by delay and tile."""
    tiles, several, target_of = np.uint32(variant.calendar_tiles), variant.calendar_tiles > 1, make_target_of(variant)
    in_words = variant.target_bits > 0

    def bin_of(delay: np.uint32, target: np.uint32, recall: Recall) -> Any:
        if several:
            return np.uint32(delay * tiles + (target >> recall.calendar_shift))
        return delay

    bin_of = cuda.jit(device=True)(bin_of)

    def bin_at(entry: np.unsignedinteger, recall: Recall, rows: Rows) -> Any:
        delay, target = np.uint32(rows.delays[entry]), np.uint32(0)
        if several:
            target = target_of(rows.targets[entry]) if in_words else np.uint32(rows.targets[entry])
        return bin_of(delay, target, recall)

    return bin_of, cuda.jit(device=True)(bin_at)


def _make_put(variant: Variant) -> Callable[..., Any]:
    """``put(target, high, entry_bin, burst, places, ...)``: add an entry to its bucket, or to the spare slot."""
    bucket_mask, count_mask = calendar_masks(variant)
    deliver, amount_of, noted = make_deliver(variant), _make_amount_of(variant), variant.noted
    tiles, one, spare = np.uint32(variant.calendar_tiles), np.uint32(1), np.uint32(FIRST_SPARE)

    def put(
        target: np.uint32,
        high: Any,
        entry_bin: np.uint32,
        burst: np.uint32,
        places: Ids,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        place, shift = cuda.atomic.add(places, entry_bin, one), recall.calendar_shift
        delay = np.uint32(entry_bin // tiles)
        due = np.uint32(burst + delay)
        if np.uint64(place) < recall.calendar_room:
            part = np.uint32((due & bucket_mask) * tiles + np.uint32(entry_bin - delay * tiles))
            local = np.uint32(target & np.uint32(np.uint32(one << shift) - one))
            at = np.uint64(np.uint64(part) * recall.calendar_room + np.uint64(place))
            recall.calendar_words[at] = noted(noted(high << shift) | noted(local))
        else:
            slot = np.uint64(np.uint32(spare + (due & bucket_mask)))
            at = np.uint64(slot * np.uint64(fcl.stride) + np.uint64(target))
            deliver(at, amount_of(high, rows), fcl)
            recall.calendar_spares[due & count_mask] = one

    return cuda.jit(device=True)(put)  # type: ignore[no-any-return]


def make_put_off_tiles(variant: Variant, threads: int) -> Callable[..., Any]:
    """``put_off(count, slot, burst, sources, steering, ...)``: send the rows of ``sources``; a warp takes a row.

    Contributions of delay 1 go to the slot after ``slot``, all others to buckets. Entries are first counted by delay
    and tile, so that the block reserves its places in each part once. All threads of the block call it.
    """
    (_, count_mask), (bin_of, bin_at), put = calendar_masks(variant), _make_bin_of(variant), _make_put(variant)
    bounds, offset, deliver = make_bounds(variant), variant.offset, make_deliver(variant)
    (entry_at, target_in, high_in), amount_of = _make_entry_at(variant), _make_amount_of(variant)
    first_kind, second_kind = variant.target, np.int32 if variant.target_bits else variant.noted
    uniform_rows, clamps, number = variant.uniform_rows, variant.clamps, variant.accumulator
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    tiles, room = np.uint32(variant.calendar_tiles), variant.calendar_tiles * (variant.calendar + 1)
    bins, first_waiting, block = np.uint32(room), np.uint32(2 * tiles), np.uint32(threads)
    zero, one = np.uint32(0), np.uint32(1)

    def count_row(source: np.uint32, places: Ids, recall: Recall, rows: Rows) -> None:
        entry_bins = cuda.local.array(_AT_ONCE, np.uint32)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                entry_bins[turn] = bin_at(at, recall, rows) if at < end else zero
            for turn in range(_AT_ONCE):
                if entry_bins[turn] >= first_waiting:
                    cuda.atomic.add(places, entry_bins[turn], one)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    def send_row(
        source: np.uint32, slot: np.uint32, burst: np.uint32, places: Ids, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        first, second = cuda.local.array(_AT_ONCE, first_kind), cuda.local.array(_AT_ONCE, second_kind)
        entry_bins = cuda.local.array(_AT_ONCE, np.uint32)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        shared = number(rows.contributions[source]) if uniform_rows else number(0)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                first[turn], second[turn], entry_bins[turn] = first_kind(0), second_kind(0), zero
                if at < end:
                    first[turn], second[turn] = entry_at(at, shared, rows)
                    entry_bins[turn] = bin_of(np.uint32(rows.delays[at]), target_in(first[turn], second[turn]), recall)
            for turn in range(_AT_ONCE):
                target, high = target_in(first[turn], second[turn]), high_in(first[turn], second[turn])
                if entry_bins[turn] >= first_waiting:
                    put(target, high, entry_bins[turn], burst, places, recall, rows, fcl)
                elif entry_bins[turn] != zero:
                    deliver(np.uint64(following + np.uint64(target)), amount_of(high, rows), fcl)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    count_row, send_row = cuda.jit(device=True)(count_row), cuda.jit(device=True)(send_row)

    def put_off(
        count: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        sources: Ids,
        steering: Steering,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        places = cuda.shared.array(room, np.uint32)
        thread = np.uint32(cuda.threadIdx.x)
        if count == zero:
            return
        own = thread
        while own < bins:
            places[own] = zero
            own = np.uint32(own + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        while item < count:
            source = sources[item]
            count_row(source, places, recall, rows)
            if clamps and (thread & lanes) == zero and rows.clamped_sources[source] != 0:
                steering.control[CLAMPED] = 1
            item = np.uint32(item + warps)
        cuda.syncthreads()
        own = np.uint32(thread + first_waiting)
        while own < bins:
            entries = places[own]
            if entries != zero:
                delay = np.uint32(own // tiles)
                due = np.uint32(np.uint32(burst + delay) & count_mask)
                part = np.uint32(due * tiles + np.uint32(own - delay * tiles))
                places[own] = cuda.atomic.add(recall.calendar_counts, part, entries)
            own = np.uint32(own + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        while item < count:
            send_row(sources[item], slot, burst, places, recall, rows, fcl)
            item = np.uint32(item + warps)

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]
