"""A calendar for delays above 1: contributions wait in a bucket for each burst to come.

A row is read once, when its neuron fires. Contributions of delay 1 are added to the next slot of the FCL; all others
are appended to the buckets of their bursts. The kernel of a burst also adds the bucket of the next burst, which no more
contributions can reach, to the next slot. So two slots are enough, and fired lists are not read again. Rows are sorted
by delay, so that neighbouring threads append to the same bucket. A word of a bucket holds contribution and target. A
bucket has room for every synapse, since each contributes to a burst once at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Amount, Fcl, Ids, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.entries import make_amount_of, make_target_of
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.kernels.tiled_calendar import calendar_masks, make_deliver_due_tiles, make_put_off_tiles
from burstproof.engine.cuda.kernels.warp import make_sync_warp
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant

_AT_ONCE = 4
"""Entries of a row that a thread loads at once."""


def _make_word_at(variant: Variant) -> Callable[..., Any]:
    """``word_at(entry, shared, rows, recall)``: the word that an entry of a row puts into a bucket."""
    number, noted, uniform_rows, read_once = variant.accumulator, variant.noted, variant.uniform_rows, make_read_once()

    def whole_word(entry: np.unsignedinteger, shared: Amount, rows: Rows, recall: Recall) -> Any:
        return read_once(rows.targets, entry)

    def packed(entry: np.unsignedinteger, shared: Amount, rows: Rows, recall: Recall) -> Any:
        amount = shared
        if not uniform_rows:
            amount = number(read_once(rows.contributions, entry))
        return noted(noted(noted(amount) << recall.calendar_shift) | noted(read_once(rows.targets, entry)))

    return cuda.jit(device=True)(whole_word if variant.target_bits else packed)  # type: ignore[no-any-return]


def _make_split_word(variant: Variant) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``target_in(word, recall)`` and ``amount_in(word, rows, recall)``: target and contribution in a bucket's word."""
    number, one = variant.accumulator, np.uint32(1)
    in_words, target_of, amount_of = variant.target_bits > 0, make_target_of(variant), make_amount_of(variant)

    def target_in(word: Any, recall: Recall) -> Any:
        if in_words:
            return np.uint64(target_of(word))
        return np.uint64(np.uint32(word) & np.uint32(np.uint32(one << recall.calendar_shift) - one))

    def amount_in(word: Any, rows: Rows, recall: Recall) -> Any:
        if in_words:
            return amount_of(word, rows)
        return number(word >> recall.calendar_shift)

    return cuda.jit(device=True)(target_in), cuda.jit(device=True)(amount_in)


def make_deliver_due(variant: Variant, at_once: int) -> Callable[..., Any]:
    """``deliver_due(burst, slot, recall, rows, fcl)``: add the next burst's bucket to the slot after ``slot``.

    All threads of the grid call it once; each loads ``at_once`` words before it adds them. Buckets are used cyclically.
    There are twice as many counts as buckets, so that the count of ``burst`` can be cleared. A bucket has at most 2^31
    words, so that places in it, and those behind its end, take one register each.
    """
    if variant.calendar_tiles:
        return make_deliver_due_tiles(variant)
    bucket_mask, count_mask = calendar_masks(variant)
    deliver, number, one, noted = make_deliver(variant), variant.accumulator, np.uint32(1), variant.noted
    (target_in, amount_in), zero = _make_split_word(variant), noted(0)

    def deliver_due(burst: np.uint32, slot: np.uint32, recall: Recall, rows: Rows, fcl: Fcl) -> None:
        due = np.uint32(burst + one)
        count = recall.calendar_counts[due & count_mask]
        first = np.uint64(np.uint64(due & bucket_mask) * recall.calendar_room)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        words, amounts = cuda.local.array(at_once, noted), cuda.local.array(at_once, number)
        item, step = np.uint32(cuda.grid(1)), np.uint32(cuda.gridsize(1))
        if item == np.uint32(0):
            recall.calendar_counts[burst & count_mask] = np.uint32(0)
        while item < count:
            for turn in range(at_once):
                at = np.uint32(item + np.uint32(turn) * step)
                words[turn] = recall.calendar_words[np.uint64(first + np.uint64(at))] if at < count else zero
            for turn in range(at_once):
                amounts[turn] = amount_in(words[turn], rows, recall)
            for turn in range(at_once):
                if np.uint32(item + np.uint32(turn) * step) < count:
                    deliver(np.uint64(following + target_in(words[turn], recall)), amounts[turn], fcl)
            item = np.uint32(item + np.uint32(at_once) * step)

    return cuda.jit(device=True)(deliver_due)  # type: ignore[no-any-return]


def _make_late_block() -> Callable[..., Any]:
    """``late_block(burst)`` -> bool: true for every other block; the simulator's only block takes turns."""
    one = np.uint32(1)

    def every_other_block(burst: np.uint32) -> Any:
        return (np.uint32(cuda.blockIdx.x) & one) == one

    def every_other_burst(burst: np.uint32) -> Any:
        return (burst & one) == one

    return cuda.jit(device=True)(every_other_burst if SIMULATED else every_other_block)  # type: ignore[no-any-return]


def make_deliver_halves(shard: ShardVariant) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``deliver_early`` and ``deliver_late``, before and after a block's chunk; arguments as of ``make_deliver_due``.

    Each block adds its part of the bucket in one of the two: the additions of one half of the blocks run while the
    other half waits. With tiles all blocks add early.
    """
    variant, in_halves = shard.variant, shard.variant.calendar > 0 and not shard.variant.calendar_tiles
    deliver_due, late_block = make_deliver_due(variant, at_once=1), _make_late_block()

    def deliver_early(burst: np.uint32, slot: np.uint32, recall: Recall, rows: Rows, fcl: Fcl) -> None:
        if not (in_halves and late_block(burst)):
            deliver_due(burst, slot, recall, rows, fcl)

    def deliver_late(burst: np.uint32, slot: np.uint32, recall: Recall, rows: Rows, fcl: Fcl) -> None:
        if in_halves and late_block(burst):
            deliver_due(burst, slot, recall, rows, fcl)

    return cuda.jit(device=True)(deliver_early), cuda.jit(device=True)(deliver_late)


def _make_entries_of(variant: Variant) -> Callable[..., Any]:
    """``entries_of(source, delay, recall)`` -> (entries of the row of lower delays, entries of ``delay``): adjacent."""
    one, delays = np.uint64(1), np.uint64(variant.calendar + 1)

    def entries_of(source: np.uint32, delay: np.uint32, recall: Recall) -> Any:
        at = np.uint64(np.uint64(source) * delays + np.uint64(delay))
        before = np.uint32(recall.delay_starts[np.uint64(at - one)])
        return before, np.uint32(np.uint32(recall.delay_starts[at]) - before)

    return cuda.jit(device=True)(entries_of)  # type: ignore[no-any-return]


def _make_reserve(variant: Variant, threads: int) -> Callable[..., Any]:
    """``reserve(count, burst, sources, firsts, places, recall)``, by a block: room for its rows in all buckets.

    Each warp counts the entries of its rows by delay; the block adds them up and reserves once per bucket, since
    additions to one address that return its value are slow. ``firsts[delay]`` gets the first place in the bucket,
    ``places[warp * (variant.calendar + 1) + delay]`` how many places after it are for warps before this one.
    """
    _, count_mask = calendar_masks(variant)
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    delays, block, entries_of = np.uint32(variant.calendar + 1), np.uint32(threads), _make_entries_of(variant)
    zero, two = np.uint32(0), np.uint32(2)

    def reserve(count: np.uint32, burst: np.uint32, sources: Ids, firsts: Ids, places: Ids, recall: Recall) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        first_item, delay = np.uint32(thread // warp), np.uint32((thread & lanes) + two)
        while first_item < count and delay < delays:
            entries, item = zero, first_item
            while item < count:
                entries = np.uint32(entries + entries_of(sources[item], delay, recall)[1])
                item = np.uint32(item + warps)
            places[np.uint32(first_item * delays + delay)] = entries
            delay = np.uint32(delay + warp)
        cuda.syncthreads()
        delay = np.uint32(thread + two)
        while delay < delays:
            before, at, end = zero, delay, np.uint32(min(count, warps) * delays)
            while at < end:
                entries = places[at]
                places[at] = before
                before, at = np.uint32(before + entries), np.uint32(at + delays)
            if before != zero:
                bucket = np.uint32(np.uint32(burst + delay) & count_mask)
                firsts[delay] = cuda.atomic.add(recall.calendar_counts, bucket, before)
            delay = np.uint32(delay + block)
        cuda.syncthreads()

    return cuda.jit(device=True)(reserve)  # type: ignore[no-any-return]


def _make_place_row(variant: Variant) -> Callable[..., Any]:
    """``place_row(source, base, firsts, places, shifts, recall)``, by a warp: take a row's places.

    ``places[base + delay]`` grows by its entries. ``shifts[base + delay]``, added modulo 2^32 to the index of any of
    the row's entries of that delay, gives its place in the bucket.
    """
    lanes, warp, delays = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(variant.calendar + 1)
    two, sync_warp, entries_of = np.uint32(2), make_sync_warp(), _make_entries_of(variant)

    def place_row(source: np.uint32, base: np.uint32, firsts: Ids, places: Ids, shifts: Ids, recall: Recall) -> None:
        delay = np.uint32((np.uint32(cuda.threadIdx.x) & lanes) + two)
        sync_warp()
        while delay < delays:
            before, entries = entries_of(source, delay, recall)
            at = np.uint32(base + delay)
            place = places[at]
            places[at] = np.uint32(place + entries)
            shifts[at] = np.uint32(firsts[delay] + place - before)
            delay = np.uint32(delay + warp)
        sync_warp()

    return cuda.jit(device=True)(place_row)  # type: ignore[no-any-return]


def _make_row_functions(variant: Variant) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``fetch_row(source, words, delays, ...)`` and ``send_row(source, slot, burst, base, shifts, ...)``, by a warp.

    The first loads a row's first ``_AT_ONCE`` entries per thread, which need no place yet; the second sends them, and
    the rest of the row, to the next slot and to the places that ``shifts`` gives them.
    """
    bounds, offset, read_once, deliver = make_bounds(variant), variant.offset, make_read_once(), make_deliver(variant)
    word_at, (target_in, amount_in) = _make_word_at(variant), _make_split_word(variant)
    uniform_rows, number, noted = variant.uniform_rows, variant.accumulator, variant.noted
    (bucket_mask, _), lanes, zero, one = calendar_masks(variant), np.uint32(WARP - 1), np.uint32(0), np.uint32(1)

    def fetch(entry: Any, end: Any, source: np.uint32, words: Any, delays: Ids, recall: Recall, rows: Rows) -> None:
        shared = number(rows.contributions[source]) if uniform_rows else number(0)
        for turn in range(_AT_ONCE):
            at = offset(entry + offset(turn * WARP))
            words[turn], delays[turn] = noted(0), zero
            if at < end:
                words[turn] = word_at(at, shared, rows, recall)
                delays[turn] = np.uint32(read_once(rows.delays, at))

    fetch = cuda.jit(device=True)(fetch)

    def fetch_row(source: np.uint32, words: Any, delays: Ids, recall: Recall, rows: Rows) -> None:
        start, end = bounds(source, rows)
        fetch(offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes)), end, source, words, delays, recall, rows)

    def send_row(
        source: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        base: np.uint32,
        shifts: Ids,
        words: Any,
        delays: Ids,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                word, delay = words[turn], delays[turn]
                if delay == one:
                    deliver(np.uint64(following + target_in(word, recall)), amount_in(word, rows, recall), fcl)
                elif delay != zero:
                    index = np.uint32(np.uint32(entry - start) + np.uint32(turn * WARP))
                    bucket = np.uint64(np.uint64(np.uint32(burst + delay) & bucket_mask) * recall.calendar_room)
                    place = np.uint32(shifts[np.uint32(base + delay)] + index)
                    recall.calendar_words[np.uint64(bucket + np.uint64(place))] = word
            entry = offset(entry + offset(_AT_ONCE * WARP))
            if entry < end:
                fetch(entry, end, source, words, delays, recall, rows)

    return cuda.jit(device=True)(fetch_row), cuda.jit(device=True)(send_row)


def make_put_off(variant: Variant, threads: int) -> Callable[..., Any]:
    """``put_off(count, slot, burst, sources, ...)``: send the rows of what fired in a chunk; a warp takes a row.

    Contributions of delay 1 go to the slot after ``slot``, all others to buckets. A warp loads the first entries of a
    row before it waits for places. All threads of the block call it.
    """
    if variant.calendar_tiles:
        return make_put_off_tiles(variant, threads)
    reserve, place_row = _make_reserve(variant, threads), _make_place_row(variant)
    fetch_row, send_row = _make_row_functions(variant)
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    room, clamps, noted, zero = variant.calendar + 1, variant.clamps, variant.noted, np.uint32(0)
    rooms = room * max(1, threads // WARP)

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
        firsts = cuda.shared.array(room, np.uint32)
        places = cuda.shared.array(rooms, np.uint32)
        shifts = cuda.shared.array(rooms, np.uint32)
        words, delays = cuda.local.array(_AT_ONCE, noted), cuda.local.array(_AT_ONCE, np.uint32)
        thread = np.uint32(cuda.threadIdx.x)
        item = np.uint32(thread // warp)
        base = np.uint32(item * np.uint32(room))
        if count == zero:
            return
        if item < count:
            fetch_row(sources[item], words, delays, recall, rows)
        reserve(count, burst, sources, firsts, places, recall)
        while item < count:
            source = sources[item]
            if clamps and (thread & lanes) == zero and rows.clamped_sources[source] != 0:
                steering.control[CLAMPED] = 1
            place_row(source, base, firsts, places, shifts, recall)
            send_row(source, slot, burst, base, shifts, words, delays, recall, rows, fcl)
            item = np.uint32(item + warps)
            if item < count:
                fetch_row(sources[item], words, delays, recall, rows)

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]
