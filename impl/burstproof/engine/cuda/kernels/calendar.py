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

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Fcl, Ids, Longs, Recall, Rows, Steering
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

_AT_ONCE, _AT_ONCE_BESIDE = 4, 2
"""Words of a bucket that a thread loads at once; the second number where it also holds loaded values of its neurons."""


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


def make_deliver_due(shard: ShardVariant) -> Callable[..., Any]:
    """``deliver_due(burst, slot, recall, rows, fcl)``: add the next burst's bucket to the slot after ``slot``.

    All threads of the grid call it. Buckets are used cyclically. There are twice as many counts as buckets, so that the
    count of ``burst`` can be cleared. A bucket has at most 2^31 words, so that places in it, and those behind its end,
    take one register each.
    """
    variant, at_once = shard.variant, _AT_ONCE_BESIDE if shard.words_ahead else _AT_ONCE
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


def _make_reserve(variant: Variant) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``count_row(source, places, recall)`` and ``place_row(source, burst, base, places, firsts, recall)``, by a warp.

    A row's entries of one delay are adjacent (``delay_starts``), so one addition to ``places`` counts them, and another
    one reserves their places in the bucket. ``firsts[base + delay]`` gets the place of the row's first entry of that
    delay minus its index in the row: added to the index of any entry of that delay, it gives its place.
    """
    bucket_mask, _ = calendar_masks(variant)
    lanes, warp, delays = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(variant.calendar + 1)
    zero, one, two, sync_warp = np.uint32(0), np.uint64(1), np.uint32(2), make_sync_warp()

    def entries_of(source: np.uint32, delay: np.uint32, recall: Recall) -> Any:
        at = np.uint64(np.uint64(source) * np.uint64(delays) + np.uint64(delay))
        before = np.uint32(recall.delay_starts[np.uint64(at - one)])
        return before, np.uint32(np.uint32(recall.delay_starts[at]) - before)

    entries_of = cuda.jit(device=True)(entries_of)

    def count_row(source: np.uint32, places: Ids, recall: Recall) -> None:
        delay = np.uint32((np.uint32(cuda.threadIdx.x) & lanes) + two)
        while delay < delays:
            _, entries = entries_of(source, delay, recall)
            if entries != zero:
                cuda.atomic.add(places, delay, entries)
            delay = np.uint32(delay + warp)

    def place_row(
        source: np.uint32, burst: np.uint32, base: np.uint32, places: Ids, firsts: Longs, recall: Recall
    ) -> None:
        delay = np.uint32((np.uint32(cuda.threadIdx.x) & lanes) + two)
        sync_warp()
        while delay < delays:
            before, entries = entries_of(source, delay, recall)
            if entries != zero:
                place = np.int64(cuda.atomic.add(places, delay, entries))
                bucket = np.uint64(np.uint64(np.uint32(burst + delay) & bucket_mask) * recall.calendar_room)
                firsts[np.uint32(base + delay)] = np.int64(np.int64(bucket) + place - np.int64(before))
            delay = np.uint32(delay + warp)
        sync_warp()

    return cuda.jit(device=True)(count_row), cuda.jit(device=True)(place_row)


def make_put_off(variant: Variant, threads: int) -> Callable[..., Any]:
    """``put_off(count, slot, burst, sources, ...)``: send the rows of what fired in a chunk; a warp takes a row.

    Contributions of delay 1 go to the slot after ``slot``, all others to buckets. Entries are first counted by delay,
    so that the block reserves its places in each bucket once. All threads of the block call it.
    """
    if variant.calendar_tiles:
        return make_put_off_tiles(variant, threads)
    _, count_mask = calendar_masks(variant)
    bounds, offset, read_once, deliver = make_bounds(variant), variant.offset, make_read_once(), make_deliver(variant)
    word_at, (target_in, amount_in) = _make_word_at(variant), _make_split_word(variant)
    count_row, place_row = _make_reserve(variant)
    uniform_rows, clamps, number, noted = variant.uniform_rows, variant.clamps, variant.accumulator, variant.noted
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    room, delays, block = variant.calendar + 1, np.uint32(variant.calendar + 1), np.uint32(threads)
    rooms = room * max(1, threads // WARP)
    zero, one, two = np.uint32(0), np.uint32(1), np.uint32(2)

    def send_row(
        source: np.uint32, slot: np.uint32, base: np.uint32, firsts: Longs, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        words, delay = cuda.local.array(_AT_ONCE, noted), cuda.local.array(_AT_ONCE, np.uint32)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        shared = number(rows.contributions[source]) if uniform_rows else number(0)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                words[turn], delay[turn] = noted(0), zero
                if at < end:
                    words[turn] = word_at(at, shared, rows, recall)
                    delay[turn] = np.uint32(read_once(rows.delays, at))
            for turn in range(_AT_ONCE):
                word = words[turn]
                if delay[turn] == one:
                    deliver(np.uint64(following + target_in(word, recall)), amount_in(word, rows, recall), fcl)
                elif delay[turn] != zero:
                    place = np.int64(np.uint32(entry - start) + np.uint32(turn * WARP))
                    recall.calendar_words[np.uint64(firsts[np.uint32(base + delay[turn])] + place)] = word
            entry = offset(entry + offset(_AT_ONCE * WARP))

    send_row = cuda.jit(device=True)(send_row)

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
        firsts = cuda.shared.array(rooms, np.int64)
        thread = np.uint32(cuda.threadIdx.x)
        if count == zero:
            return
        delay = thread
        while delay < delays:
            places[delay] = zero
            delay = np.uint32(delay + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        while item < count:
            source = sources[item]
            count_row(source, places, recall)
            if clamps and (thread & lanes) == zero and rows.clamped_sources[source] != 0:
                steering.control[CLAMPED] = 1
            item = np.uint32(item + warps)
        cuda.syncthreads()
        delay = np.uint32(thread + two)
        while delay < delays:
            entries = places[delay]
            if entries != zero:
                bucket = np.uint32(np.uint32(burst + delay) & count_mask)
                places[delay] = cuda.atomic.add(recall.calendar_counts, bucket, entries)
            delay = np.uint32(delay + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        base = np.uint32(item * delays)
        while item < count:
            place_row(sources[item], burst, base, places, firsts, recall)
            send_row(sources[item], slot, base, firsts, recall, rows, fcl)
            item = np.uint32(item + warps)

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]
