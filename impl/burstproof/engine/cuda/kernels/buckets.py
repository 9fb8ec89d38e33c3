"""Contributions that arrive later than in the next burst are put off to buckets, one for each burst to come.

A row is read once, when its neuron fires: a block copies its entries as they lie to the buckets of their bursts, behind
one reservation a bucket. Whoever sorts a burst's contributions by owner (``kernels.enqueue``) reads its bucket in one
piece. The fired lists of the last bursts are kept all the same (``kernels.recall``): what has no room in a bucket is
read from them, the whole burst, and so is the state between bursts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Ids, Network, Queues, Recall, Rows
from burstproof.engine.cuda.kernels.rows import make_bounds, make_read_once
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, lists_kept

_AT_ONCE = 4


def bucket_turns(variant: Variant) -> tuple[np.uint32, np.uint32]:
    """What burst numbers are masked with for the buckets, and for their counts: half of these can be cleared."""
    buckets = lists_kept(variant)
    return np.uint32(buckets - 1), np.uint32(2 * buckets - 1)


def make_source_at(variant: Variant) -> Callable[..., Any]:
    """``source_at(burst, item, network, recall)``: what fired in ``burst``, one of the last ones."""
    turns = np.uint32(lists_kept(variant) - 1)

    def source_at(burst: np.uint32, item: np.uint32, network: Network, recall: Recall) -> Any:
        first = np.uint64(np.uint64(burst & turns) * np.uint64(network.neurons))
        return recall.recalled_ids[np.uint64(first + np.uint64(item))]

    return cuda.jit(device=True)(source_at)  # type: ignore[no-any-return]


def _make_place_rows(variant: Variant, threads: int) -> Callable[..., Any]:
    """``place_rows(...)``: where the entries of rows go in each bucket, if the block began there.

    Of the i-th row and a delay of ``1 + age`` that is ``firsts[i * R + age]`` for entry 0 of the row, with R places a
    row. ``places[age]`` is what the block takes of the bucket.
    """
    per_row, ages, source_at = lists_kept(variant), np.uint32(variant.recalled), make_source_at(variant)
    row_shift, row_mask = np.uint32(per_row.bit_length() - 1), np.uint32(per_row - 1)
    zero, one, block, per_source = np.uint32(0), np.uint32(1), np.uint32(threads), np.uint64(variant.recalled + 1)

    def place_rows(
        burst: np.uint32,
        first: np.uint32,
        rows_here: np.uint32,
        places: Ids,
        firsts: Any,
        network: Network,
        recall: Recall,
    ) -> None:
        blocks, pair = np.uint32(cuda.gridDim.x), np.uint32(cuda.threadIdx.x)
        while pair < np.uint32(rows_here << row_shift):
            age = np.uint32(pair & row_mask)
            if age > zero and age < ages:
                source = source_at(burst, np.uint32(first + np.uint32(pair >> row_shift) * blocks), network, recall)
                at = np.uint64(np.uint64(source) * per_source + np.uint64(age))
                before = np.uint32(recall.delay_starts[at])
                entries = np.uint32(np.uint32(recall.delay_starts[np.uint64(at + np.uint64(one))]) - before)
                place = zero
                if entries > zero:
                    place = cuda.atomic.add(places, age, entries)
                firsts[pair] = np.uint32(place - before)
            pair = np.uint32(pair + block)

    return cuda.jit(device=True)(place_rows)  # type: ignore[no-any-return]


def _make_copy_row(variant: Variant, columns: bool) -> Callable[..., Any]:
    """``copy_row(source, burst, own, places, firsts, ...)``, a warp: a row's entries to their buckets, if these have room."""
    bounds, offset, read_once = make_bounds(variant), variant.offset, make_read_once()
    target, number, turns = variant.target, variant.read_contribution, bucket_turns(variant)[0]
    lanes, zero, one, first_delay = np.uint32(WARP - 1), np.uint32(0), np.uint32(1), np.uint64(1)
    per_source = np.uint64(variant.recalled + 1)

    def copy_row(
        source: np.uint32,
        burst: np.uint32,
        own: np.uint32,
        places: Ids,
        firsts: Any,
        recall: Recall,
        rows: Rows,
        queue: Queues,
    ) -> None:
        words, amounts = cuda.local.array(_AT_ONCE, target), cuda.local.array(_AT_ONCE, number)
        ages = cuda.local.array(_AT_ONCE, np.uint32)
        start, end = bounds(source, rows)
        put_off = np.uint32(recall.delay_starts[np.uint64(np.uint64(source) * per_source + first_delay)])
        entry = offset(start + offset(put_off) + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                words[turn], amounts[turn], ages[turn] = target(0), number(0), zero
                if at < end:
                    words[turn] = read_once(rows.targets, at)
                    ages[turn] = np.uint32(np.uint32(read_once(rows.delays, at)) - one)
                    if columns:
                        amounts[turn] = read_once(rows.contributions, at)
            for turn in range(_AT_ONCE):
                age = ages[turn]
                if age > zero:
                    before = np.uint32(np.uint32(entry - start) + np.uint32(turn * WARP))
                    place = np.uint32(places[age] + np.uint32(firsts[np.uint32(own + age)]) + before)
                    if place < queue.bucket_room:
                        bucket = np.uint64(np.uint32(burst + one + age) & turns)
                        put = np.uint64(bucket * np.uint64(queue.bucket_room) + np.uint64(place))
                        queue.bucket_targets[put] = words[turn]
                        if columns:
                            queue.bucket_contributions[put] = amounts[turn]
            entry = offset(entry + offset(_AT_ONCE * WARP))

    return cuda.jit(device=True)(copy_row)  # type: ignore[no-any-return]


def make_put_off(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``put_off(burst, latest, scratch, ...)``: the rows of the burst's list, of ``latest``, to the later buckets.

    All threads of the grid call it. ``scratch`` is shared memory as large as the bins.
    """
    columns = not (variant.uniform_rows or variant.target_bits)
    place_rows, copy_row, source_at = (
        _make_place_rows(variant, threads),
        _make_copy_row(variant, columns),
        make_source_at(variant),
    )
    per_row, (_, count_turns) = lists_kept(variant), bucket_turns(variant)
    row_shift, most = np.uint32(per_row.bit_length() - 1), np.uint32(queues.owners * queues.bin_room // per_row)
    warp, warps, ages = np.uint32(WARP), np.uint32(max(1, threads // WARP)), np.uint32(variant.recalled)
    zero, one = np.uint32(0), np.uint32(1)

    def put_off(
        burst: np.uint32, latest: np.uint32, scratch: Any, network: Network, recall: Recall, rows: Rows, queue: Queues
    ) -> None:
        places = cuda.shared.array(per_row, np.uint32)
        thread, blocks, low = np.uint32(cuda.threadIdx.x), np.uint32(cuda.gridDim.x), np.uint32(cuda.blockIdx.x)
        while low < latest:
            rows_here = min(np.uint32((latest - low + blocks - one) // blocks), most)
            cuda.syncthreads()
            if thread < ages:
                places[thread] = zero
            cuda.syncthreads()
            place_rows(burst, low, rows_here, places, scratch, network, recall)
            cuda.syncthreads()
            if thread < ages and places[thread] > zero:
                due = np.uint32(np.uint32(burst + one + thread) & count_turns)
                places[thread] = cuda.atomic.add(queue.bucket_counts, due, places[thread])
            cuda.syncthreads()
            row = np.uint32(thread // warp)
            while row < rows_here:
                source = source_at(burst, np.uint32(low + row * blocks), network, recall)
                copy_row(source, burst, np.uint32(row << row_shift), places, scratch, recall, rows, queue)
                row = np.uint32(row + warps)
            low = np.uint32(low + rows_here * blocks)

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]
