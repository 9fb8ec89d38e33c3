"""Delays with queues per owner: contributions wait in buckets, one for each burst to come, and are *put off* to them.

A row is read once, when its neuron fires. A block sorts the entries of its rows by delay in shared memory, then copies
them unchanged to the buckets of their bursts, with one reservation a bucket. ``kernels.enqueue``, which bins a burst's
contributions by owner, reads the burst's bucket in one piece. Contributions of the next burst go to one more bucket,
which is divided among the blocks: each block bins its own part at once, and adds what exceeds it to the FCL.

The fired lists of the last bursts are kept as well (``kernels.recall``). If another bucket overflows, all contributions
of its burst are read from these lists instead, and so is the state between bursts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Exchange, Fcl, Ids, Queues, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.latest_list import Latest, make_source_of
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.kernels.queue_entries import make_queue_entry, make_split_entry, make_unpack_entry
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, in_columns, lists_kept

_AT_ONCE, _ROWS = 4, 2
"""Entries that a thread loads before it stores the first: of each of so many rows, or of a bucket."""
_TEAM = 2
"""Warps that copy the entries of one delay."""


def bucket_masks(variant: Variant) -> tuple[np.uint32, np.uint32]:
    """Masks that map a burst number to its bucket, and to the bucket's count.

    There are twice as many counts as buckets, so that the count of the burst before can be cleared.
    """
    buckets = lists_kept(variant)
    return np.uint32(buckets - 1), np.uint32(2 * buckets - 1)


def _make_place_rows(variant: Variant, threads: int) -> Callable[..., Any]:
    """``place_rows(rows_here, places, store, recall)``: find where each row's entries go among those of equal delay.

    ``store`` begins with the sources of the rows. ``place_rows`` adds a number for each row and delay ``1 + age``,
    wrapping around: an entry's index in its row plus this number is its place. It adds the entries to ``places[age]``.
    """
    per_row, ages = lists_kept(variant), np.uint32(variant.recalled)
    row_shift, row_mask = np.uint32(per_row.bit_length() - 1), np.uint32(per_row - 1)
    zero, one, block, per_source = np.uint32(0), np.uint32(1), np.uint32(threads), np.uint64(variant.recalled + 1)

    def place_rows(rows_here: np.uint32, places: Ids, store: Any, recall: Recall) -> None:
        before, after = cuda.local.array(_AT_ONCE, np.uint32), cuda.local.array(_AT_ONCE, np.uint32)
        pair, pairs = np.uint32(cuda.threadIdx.x), np.uint32(rows_here << row_shift)
        while pair < pairs:
            for turn in range(_AT_ONCE):
                own = np.uint32(pair + np.uint32(turn) * block)
                age = np.uint32(own & row_mask)
                before[turn], after[turn] = zero, zero
                if own < pairs and age < ages:
                    source = np.uint64(store[np.uint32(own >> row_shift)])
                    at = np.uint64(source * per_source + np.uint64(age))
                    before[turn] = np.uint32(recall.delay_starts[at])
                    after[turn] = np.uint32(recall.delay_starts[np.uint64(at + np.uint64(one))])
            for turn in range(_AT_ONCE):
                own = np.uint32(pair + np.uint32(turn) * block)
                if after[turn] > before[turn]:
                    place = cuda.atomic.add(places, np.uint32(own & row_mask), np.uint32(after[turn] - before[turn]))
                    store[np.uint32(rows_here + own)] = np.uint32(place - before[turn])
            pair = np.uint32(pair + np.uint32(_AT_ONCE) * block)

    return cuda.jit(device=True)(place_rows)  # type: ignore[no-any-return]


def _make_order_rows(variant: Variant, threads: int) -> Callable[..., Any]:
    """``order_rows(rows_here, begins, total, store, rows)``: copy the entries of rows to ``store``, sorted by delay.

    Entries of delay ``1 + age`` begin at ``begins[age]``; a column of contributions lies ``total`` behind the targets.
    A warp takes two rows at a time. Beyond the end of a row a lane loads the last entry again and does not store it. So
    no branch stands before a load, and all places are known before the first store.
    """
    bounds, offset, read_once, columns = make_bounds(variant), variant.offset, make_read_once(), in_columns(variant)
    row_shift, target = np.uint32(lists_kept(variant).bit_length() - 1), variant.target
    number = variant.read_contribution
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    zero, one, at_once = np.uint32(0), np.uint32(1), _ROWS * _AT_ONCE

    def order_rows(rows_here: np.uint32, begins: Ids, total: np.uint32, store: Any, rows: Rows) -> None:
        words, amounts = cuda.local.array(at_once, target), cuda.local.array(at_once, number)
        delays, bases = cuda.local.array(at_once, np.uint8), cuda.local.array(at_once, np.uint32)
        starts, lengths = cuda.local.array(_ROWS, offset), cuda.local.array(_ROWS, np.uint32)
        lasts, rows_at = cuda.local.array(_ROWS, np.uint32), cuda.local.array(_ROWS, np.uint32)
        row = np.uint32(np.uint32(cuda.threadIdx.x) // warp)
        while row < rows_here:
            longest = zero
            for which in range(_ROWS):
                asked = np.uint32(row + np.uint32(which) * warps)
                own = min(asked, np.uint32(rows_here - one))
                rows_at[which] = np.uint32(rows_here + np.uint32(own << row_shift))
                start, end = bounds(np.uint32(store[own]), rows)
                starts[which], lengths[which], lasts[which] = offset(0), zero, zero
                if start < end:
                    starts[which], lasts[which] = start, np.uint32(np.uint32(end - start) - one)
                    lengths[which] = np.uint32(end - start) if asked == own else zero
                longest = max(longest, lengths[which])
            entry = np.uint32(np.uint32(cuda.threadIdx.x) & lanes)
            while entry < longest:
                for turn in range(at_once):
                    which, at = turn // _AT_ONCE, np.uint32(entry + np.uint32(turn % _AT_ONCE * WARP))
                    place = offset(starts[which] + offset(min(at, lasts[which])))
                    words[turn], delays[turn] = read_once(rows.targets, place), read_once(rows.delays, place)
                    if columns:
                        amounts[turn] = read_once(rows.contributions, place)
                for turn in range(at_once):
                    age = np.uint32(np.uint32(delays[turn]) - one)
                    bases[turn] = np.uint32(begins[age] + np.uint32(store[np.uint32(rows_at[turn // _AT_ONCE] + age)]))
                for turn in range(at_once):
                    which, at = turn // _AT_ONCE, np.uint32(entry + np.uint32(turn % _AT_ONCE * WARP))
                    if at < lengths[which]:
                        store[np.uint32(bases[turn] + at)] = words[turn]
                        if columns:
                            store[np.uint32(bases[turn] + np.uint32(at + total))] = amounts[turn]
                entry = np.uint32(entry + np.uint32(_AT_ONCE * WARP))
            row = np.uint32(row + np.uint32(_ROWS) * warps)

    return cuda.jit(device=True)(order_rows)  # type: ignore[no-any-return]


def _make_bypass(variant: Variant, queues: OwnerQueues) -> Callable[..., Any]:
    """``bypass(word, amount, fcl, queue)``: add an entry of the next burst to the FCL, where its owner reads it."""
    split_entry, queue_entry = make_split_entry(variant), make_queue_entry(variant, queues)
    unpack = make_unpack_entry(variant, queues)
    deliver, span, one = make_deliver(variant), np.uint32(queues.span), np.uint32(1)

    def bypass(word: Any, amount: Any, fcl: Fcl, queue: Queues) -> None:
        target, _ = split_entry(word, amount)
        owner = np.uint32(target // span)
        _, contribution = unpack(queue_entry(word, amount, np.uint32(owner * span)), queue)
        deliver(np.uint64(target), contribution, fcl)
        queue.queue_spills[owner] = one

    return cuda.jit(device=True)(bypass)  # type: ignore[no-any-return]


def _make_copy_out(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``copy_out(burst, begins, places, firsts, total, store, fcl, queue)``: copy the sorted entries to the buckets.

    For age i these are ``places[i]`` entries from ``begins[i]`` of ``store`` on, and go to the bucket's places from
    ``firsts[i]`` on as far as it has room; ``total`` as for ``order_rows``. Entries of age 0 go to the block's own
    part, and to the FCL where that is full. Threads beyond the last entry write the last one again, in the same place.
    """
    columns, bucket_mask, bypass = in_columns(variant), bucket_masks(variant)[0], _make_bypass(variant, queues)
    own_part, target, number, stored = make_own_part(variant), variant.target, variant.read_contribution, variant.queued
    ages, one, zero = np.uint32(variant.recalled), np.uint32(1), np.uint32(0)
    teams = np.uint32(max(1, threads // WARP // _TEAM))
    team_threads = np.uint32(threads if threads < _TEAM * WARP else _TEAM * WARP)

    def copy_out(
        burst: np.uint32, begins: Ids, places: Ids, firsts: Ids, total: np.uint32, store: Any, fcl: Fcl, queue: Queues
    ) -> None:
        words, amounts = cuda.local.array(_AT_ONCE, stored), cuda.local.array(_AT_ONCE, stored)
        indices = cuda.local.array(_AT_ONCE, np.uint32)
        thread = np.uint32(cuda.threadIdx.x)
        age = np.uint32(thread // team_threads)
        while age < ages:
            begin, first = begins[age], firsts[age]
            bucket = np.uint64(np.uint64(np.uint32(burst + one + age) & bucket_mask) * np.uint64(queue.bucket_room))
            room = queue.bucket_room
            if age == zero:
                bucket, room = own_part(queue)
            count = np.uint32(max(first, min(np.uint32(first + places[age]), room)) - first)
            entry = np.uint32(thread % team_threads)
            while entry < count:
                for turn in range(_AT_ONCE):
                    indices[turn] = min(np.uint32(entry + np.uint32(turn) * team_threads), np.uint32(count - one))
                    words[turn] = store[np.uint32(begin + indices[turn])]
                    if columns:
                        amounts[turn] = store[np.uint32(np.uint32(begin + indices[turn]) + total)]
                for turn in range(_AT_ONCE):
                    place = np.uint64(bucket + np.uint64(np.uint32(first + indices[turn])))
                    queue.bucket_targets[place] = target(words[turn])
                    if columns:
                        queue.bucket_contributions[place] = number(amounts[turn])
                entry = np.uint32(entry + np.uint32(_AT_ONCE) * team_threads)
            entry = np.uint32(count + thread % team_threads)
            while age == zero and entry < places[zero]:
                amount = number(0)
                if columns:
                    amount = number(store[np.uint32(np.uint32(begin + entry) + total)])
                bypass(target(store[np.uint32(begin + entry)]), amount, fcl, queue)
                entry = np.uint32(entry + team_threads)
            age = np.uint32(age + teams)

    return cuda.jit(device=True)(copy_out)  # type: ignore[no-any-return]


def make_own_part(variant: Variant) -> Callable[..., Any]:
    """``own_part(queue)`` -> (uint64 first place, uint32 room) of a block's part of the bucket of the next burst."""
    buckets = np.uint64(lists_kept(variant))

    def own_part(queue: Queues) -> Any:
        room = np.uint32(queue.bucket_room // np.uint32(cuda.gridDim.x))
        behind_all = np.uint64(buckets * np.uint64(queue.bucket_room))
        return np.uint64(behind_all + np.uint64(cuda.blockIdx.x) * np.uint64(room)), room

    return cuda.jit(device=True)(own_part)  # type: ignore[no-any-return]


def make_put_off(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``put_off(burst, latest, store, kept, ...)``: put the rows of what fired in ``burst`` into the buckets.

    All threads of the grid call it. ``latest`` is the burst's fired list, ``store`` shared memory as large as the bins.
    ``kept[0]``, 0 at first, counts the entries for the block's own part, including those that find no room there.
    """
    variant, source_of = shard.variant, make_source_of(shard)
    place_rows, order_rows = _make_place_rows(variant, threads), _make_order_rows(variant, threads)
    copy_out = _make_copy_out(variant, queues, threads)
    per_row, (_, count_mask), clamps = lists_kept(variant), bucket_masks(variant), variant.clamps
    most, ages, block = np.uint32(queues.rows_put_off), np.uint32(variant.recalled), np.uint32(threads)
    zero, one, row_size, last = np.uint32(0), np.uint32(1), np.uint32(per_row + 1), np.uint32(variant.recalled - 1)

    def put_off(
        burst: np.uint32,
        latest: Latest,
        store: Any,
        kept: Ids,
        steering: Steering,
        exchange: Exchange,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
        queue: Queues,
    ) -> None:
        places = cuda.shared.array(per_row, np.uint32)
        begins = cuda.shared.array(per_row, np.uint32)
        firsts = cuda.shared.array(per_row, np.uint32)
        total = cuda.shared.array(1, np.uint32)
        thread, blocks, low = np.uint32(cuda.threadIdx.x), np.uint32(cuda.gridDim.x), np.uint32(cuda.blockIdx.x)
        while low < latest.total:
            rows_here = min(np.uint32((latest.total - low + blocks - one) // blocks), most)
            age = thread
            while age < ages:
                places[age] = zero
                age = np.uint32(age + block)
            own = thread
            while own < rows_here:
                source = source_of(burst, zero, np.uint32(low + own * blocks), latest, exchange, recall)
                store[own] = source
                if clamps and rows.clamped_sources[source] != 0:
                    steering.control[CLAMPED] = 1
                own = np.uint32(own + block)
            cuda.syncthreads()
            place_rows(rows_here, places, store, recall)
            cuda.syncthreads()
            age = thread
            while age < ages:
                begin = zero
                for earlier in range(age):
                    begin = np.uint32(begin + places[earlier])
                begins[age] = np.uint32(rows_here * row_size + begin)
                if age == last:
                    total[0] = np.uint32(begin + places[age])
                if age == zero:
                    firsts[age], kept[0] = kept[0], np.uint32(kept[0] + places[age])
                elif places[age] > zero:
                    due = np.uint32(np.uint32(burst + one + age) & count_mask)
                    firsts[age] = cuda.atomic.add(queue.bucket_counts, due, places[age])
                age = np.uint32(age + block)
            cuda.syncthreads()
            order_rows(rows_here, begins, total[0], store, rows)
            cuda.syncthreads()
            copy_out(burst, begins, places, firsts, total[0], store, fcl, queue)
            low = np.uint32(low + rows_here * blocks)
            cuda.syncthreads()

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]
