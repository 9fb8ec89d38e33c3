"""The kernel that follows each burst of a network with queues per owner: it fills the queues for the next burst.

Without buckets it reads the rows of the last fired lists, each for one delay, as ``kernels.recall`` does. With buckets
(``kernels.buckets``) it first puts the rows of what has just fired into them. It then bins the block's own part and the
bucket of the next burst; if that bucket overflowed, it reads the older lists instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Exchange, Fcl, Ids, Queues, Recall, Rows, Steering, Turn
from burstproof.engine.cuda.exchange.words import MOST_SHARDS
from burstproof.engine.cuda.kernels.bins import make_flush_bins
from burstproof.engine.cuda.kernels.buckets import bucket_masks, make_own_part, make_put_off
from burstproof.engine.cuda.kernels.control import CLAMPED, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.latest_list import Latest, make_open_latest, make_source_of
from burstproof.engine.cuda.kernels.queue_entries import needs_source_amount
from burstproof.engine.cuda.kernels.queues import make_sort_parts
from burstproof.engine.cuda.kernels.warp import make_scan
from burstproof.engine.cuda.kernels.windows import (
    Parts,
    make_part_of,
    make_places_of,
    parts_are_equal,
    parts_at_once,
    vector_width,
)
from burstproof.engine.cuda.plan.block_size import ENQUEUE_THREADS, WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, lists_kept


def _make_sort_lists(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``sort_lists(burst, lists, list_ends, latest, ...)``: bin a block's share of what ``lists`` lists deliver.

    These are the fired lists of the last bursts; ``list_ends[i]`` counts the firings of the first i + 1 of them, from
    the ``latest`` on. All threads of the grid call it.
    """
    variant = shard.variant
    clamps, offset, number = variant.clamps, variant.offset, variant.accumulator
    part_of, source_of, scan = make_part_of(variant), make_source_of(shard), make_scan()
    sort_parts, items = make_sort_parts(variant, queues, threads), parts_at_once(variant, queues, threads)
    places_of, width = make_places_of(variant, queues), vector_width(variant, queues)
    equal_length, wide = np.uint32(variant.row_length // width if parts_are_equal(variant) else 0), offset(width)
    of_sources = needs_source_amount(variant, queues)
    amount_places, warps = items if of_sources else 1, max(1, threads // WARP)
    one, zero, most, block = np.uint32(1), np.uint32(0), np.uint32(items), np.uint32(threads)

    def sort_lists(
        burst: np.uint32,
        lists: np.uint32,
        list_ends: Ids,
        latest: Latest,
        counts: Ids,
        bins: Any,
        steering: Steering,
        exchange: Exchange,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
        queue: Queues,
    ) -> None:
        firsts = cuda.shared.array(items, offset)
        ends = cuda.shared.array(items, np.uint32)
        tails = cuda.shared.array(items, np.uint8)
        amounts = cuda.shared.array(amount_places, number)
        totals = cuda.shared.array(warps, np.uint32)
        parts = Parts(firsts, ends, tails, amounts)
        thread, everything = np.uint32(cuda.threadIdx.x), list_ends[np.uint32(lists - one)]
        blocks, item_0 = np.uint32(cuda.gridDim.x), np.uint32(cuda.blockIdx.x)
        share = zero
        if item_0 < everything:
            share = np.uint32((everything - item_0 + blocks - one) // blocks)
        groups = np.uint32((share + most - one) // most)
        low, group = zero, most
        if groups > zero:
            group = np.uint32((share + groups - one) // groups)
        while low < share:
            parts_here, own = min(group, np.uint32(share - low)), thread
            while own < parts_here:
                item, age, before = np.uint32(item_0 + np.uint32(low + own) * blocks), zero, zero
                while item >= list_ends[age]:
                    before = list_ends[age]
                    age = np.uint32(age + one)
                source = source_of(burst, age, np.uint32(item - before), latest, exchange, recall)
                first, length = part_of(source, age, rows, recall)
                firsts[own] = first
                ends[own], tails[own] = places_of(first, length)
                if of_sources:
                    amounts[own] = number(rows.contributions[source])
                if clamps and age == zero and rows.clamped_sources[source] != 0:
                    steering.control[CLAMPED] = 1
                own = np.uint32(own + block)
            cuda.syncthreads()
            if equal_length == zero:
                scan(ends, parts_here, totals)
            own = thread
            while own < parts_here:
                before = np.uint32(own * equal_length)
                if own > zero and equal_length == zero:
                    before = ends[np.uint32(own - one)]
                firsts[own] = offset(firsts[own] - wide * offset(before))
                own = np.uint32(own + block)
            total = np.uint32(parts_here * equal_length)
            if equal_length == zero:
                total = ends[np.uint32(parts_here - one)]
            cuda.syncthreads()
            if total > zero:
                targets, contributions = rows.targets, rows.contributions
                sort_parts(total, parts_here, parts, counts, bins, targets, contributions, fcl, queue)
            low = np.uint32(low + parts_here)
            cuda.syncthreads()

    return cuda.jit(device=True)(sort_lists)  # type: ignore[no-any-return]


def _make_sort_buckets(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``sort_buckets(burst, count, kept, ...)``: bin what has been put off to the next burst, ``burst``.

    First the ``kept`` entries of the block's own part, then its piece of the ``count`` entries of the burst's bucket.
    All threads of the grid call it. A piece's bounds pass through shared memory and a barrier, so that the block reads
    its own part, which it has just written, after the barrier.
    """
    sort_parts, (bucket_mask, _) = make_sort_parts(variant, queues, threads, whole=True), bucket_masks(variant)
    own_part, places_of = make_own_part(variant), make_places_of(variant, queues, whole=True)
    offset, number = variant.offset, variant.accumulator
    zero, one, two, lanes = np.uint32(0), np.uint32(1), np.uint32(2), np.uint32(WARP - 1)

    def piece_of(burst: np.uint32, count: np.uint32, queue: Queues) -> Any:
        blocks = np.uint32(cuda.gridDim.x)
        share = np.uint32(np.uint32((count + blocks - one) // blocks + lanes) & ~lanes)
        low = min(np.uint32(share * np.uint32(cuda.blockIdx.x)), count)
        begin = np.uint64(np.uint64(burst & bucket_mask) * np.uint64(queue.bucket_room))
        return np.uint64(begin + np.uint64(low)), min(share, np.uint32(count - low))

    piece_of = cuda.jit(device=True)(piece_of)

    def sort_buckets(
        burst: np.uint32, count: np.uint32, kept: np.uint32, counts: Ids, bins: Any, fcl: Fcl, queue: Queues
    ) -> None:
        first = cuda.shared.array(1, offset)
        end = cuda.shared.array(1, np.uint32)
        tail = cuda.shared.array(1, np.uint8)
        amount = cuda.shared.array(1, number)
        part = Parts(first, end, tail, amount)
        targets, contributions, piece = queue.bucket_targets, queue.bucket_contributions, zero
        while piece < two:
            begin, total = own_part(queue)
            total = min(total, kept)
            if piece == one:
                begin, total = piece_of(burst, count, queue)
            places, others = places_of(begin, total)
            if cuda.threadIdx.x == 0:
                first[0], end[0], tail[0], amount[0] = offset(begin), places, others, number(0)
            cuda.syncthreads()
            if places > zero:
                sort_parts(places, one, part, counts, bins, targets, contributions, fcl, queue)
            cuda.syncthreads()
            piece = np.uint32(piece + one)

    return cuda.jit(device=True)(sort_buckets)  # type: ignore[no-any-return]


def make_enqueue(shard: ShardVariant) -> Callable[..., None]:
    """``enqueue(...)``: append the contributions that arrive in the burst after that of ``turn`` to the queues."""
    variant, queues = shard.variant, shard.variant.queues
    assert queues is not None
    threads, puts_off = WARP if SIMULATED else ENQUEUE_THREADS, queues.rows_put_off > 0
    longest, list_mask = np.uint32(variant.recalled), np.uint32(lists_kept(variant) - 1)
    _, count_mask = bucket_masks(variant)
    open_latest, scan, flush_bins = make_open_latest(shard), make_scan(), make_flush_bins(variant, queues, threads)
    sort_lists, sort_buckets = _make_sort_lists(shard, queues, threads), _make_sort_buckets(variant, queues, threads)
    put_off = make_put_off(shard, queues, threads)
    wait_for_last, let_next_start = make_wait_for_last(variant.overlapped), make_let_next_start(variant.overlapped)
    bins_kept, lists, warps = queues.owners, variant.recalled, max(1, threads // WARP)
    shards = MOST_SHARDS if shard.exchanges else 1
    entry_kind, all_owners = from_dtype(np.dtype(variant.queued)), np.uint32(queues.owners)
    one, zero, block = np.uint32(1), np.uint32(0), np.uint32(threads)

    def enqueue(
        steering: Steering, exchange: Exchange, recall: Recall, rows: Rows, fcl: Fcl, queue: Queues, turn: Turn
    ) -> None:
        bins = cuda.shared.array(0, entry_kind)
        counts = cuda.shared.array(bins_kept, np.uint32)
        list_ends = cuda.shared.array(lists, np.uint32)
        totals = cuda.shared.array(warps, np.uint32)
        kept = cuda.shared.array(1, np.uint32)
        shard_counts = cuda.shared.array(shards, np.uint32)
        routes = cuda.shared.array(shards, np.uint64)
        thread = np.uint32(cuda.threadIdx.x)
        let_next_start()
        own = thread
        while own < all_owners:
            counts[own] = zero
            own = np.uint32(own + block)
        wait_for_last()
        report = steering.report
        if report[INDEX] != np.int64(turn.place):
            return
        burst = np.uint32(np.uint32(report[ORIGIN]) + turn.place + one)
        lists_read, waiting = longest, zero
        latest = open_latest(burst, shard_counts, routes, steering, exchange, recall, turn)
        next_burst = np.uint32(burst + one)
        if puts_off:
            waiting = queue.bucket_counts[next_burst & count_mask]
            if waiting <= queue.bucket_room:
                lists_read = zero
            else:
                waiting = zero
        if puts_off and cuda.grid(1) == 0:
            queue.bucket_counts[burst & count_mask] = zero
        own = thread
        while own < lists_read:
            length = zero if puts_off else latest.total
            if own > zero:
                length = recall.recalled_counts[np.uint32(burst - own) & list_mask]
            list_ends[own] = length
            own = np.uint32(own + block)
        if thread == zero:
            kept[0] = zero
        cuda.syncthreads()
        if puts_off:
            put_off(burst, latest, bins, kept, steering, exchange, recall, rows, fcl, queue)
        if lists_read > zero:
            scan(list_ends, lists_read, totals)
            sort_lists(burst, lists_read, list_ends, latest, counts, bins, steering, exchange, recall, rows, fcl, queue)
        if puts_off:
            sort_buckets(next_burst, waiting, kept[0], counts, bins, fcl, queue)
        flush_bins(one, counts, bins, queue, fcl)

    return enqueue
