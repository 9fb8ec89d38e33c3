"""Contributions that arrive later than in the next burst wait in a calendar: a bucket for each burst to come.

A block appends what its firings contribute with delays above 1; rows are read once, when they fire. The kernel of a
burst adds the bucket of the next burst to the slot, word after word, beside its own contributions of delay 1: nothing
can be put into that bucket any more. So two slots of the FCL are enough, and no entry of a row is looked for. Rows
are sorted by delay, so that neighbouring threads append to the same bucket. A word holds amount and target. A bucket
has room for every synapse, which contributes to a burst once at most.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Fcl, Ids, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.consume import Fired
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.entries import make_amount_of, make_target_of
from burstproof.engine.cuda.kernels.rows import make_bounds, make_read_once
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant

_AT_ONCE = 4


def _turns(variant: Variant) -> tuple[np.uint32, np.uint32]:
    """What burst numbers are masked with for the buckets, and for their counts."""
    buckets = max(1, variant.calendar)
    return np.uint32(buckets - 1), np.uint32(2 * buckets - 1)


def make_deliver_due(variant: Variant) -> Callable[..., Any]:
    """``deliver_due(burst, slot, recall, rows, fcl)``: the bucket of the next burst into the slot after ``slot``.

    All threads of the grid call it. Buckets take turns; twice as many counts do, so that one can be cleared.
    """
    turns, count_turns = _turns(variant)
    deliver, number, one, zero = make_deliver(variant), variant.accumulator, np.uint32(1), variant.noted(0)
    noted, in_words = variant.noted, variant.target_bits > 0
    target_of, amount_of = make_target_of(variant), make_amount_of(variant)

    def deliver_due(burst: np.uint32, slot: np.uint32, recall: Recall, rows: Rows, fcl: Fcl) -> None:
        coming, shift = np.uint32(burst + one), recall.calendar_shift
        count = np.uint64(recall.calendar_counts[coming & count_turns])
        first = np.uint64(np.uint64(coming & turns) * recall.calendar_room)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        mask = np.uint32(np.uint32(one << shift) - one)
        words = cuda.local.array(_AT_ONCE, noted)
        amounts = cuda.local.array(_AT_ONCE, number)
        item, step = np.uint64(cuda.grid(1)), np.uint64(cuda.gridsize(1))
        if item == np.uint64(0):
            recall.calendar_counts[burst & count_turns] = np.uint32(0)
        while item < count:
            for turn in range(_AT_ONCE):
                at = np.uint64(item + np.uint64(turn) * step)
                words[turn] = recall.calendar_words[np.uint64(first + at)] if at < count else zero
            for turn in range(_AT_ONCE):
                if in_words:
                    amounts[turn] = amount_of(words[turn], rows)
            for turn in range(_AT_ONCE):
                if np.uint64(item + np.uint64(turn) * step) < count:
                    word = words[turn]
                    if in_words:
                        deliver(np.uint64(following + np.uint64(target_of(word))), amounts[turn], fcl)
                    else:
                        place = np.uint64(following + np.uint64(np.uint32(word) & mask))
                        deliver(place, number(word >> shift), fcl)
            item = np.uint64(item + np.uint64(_AT_ONCE) * step)

    return cuda.jit(device=True)(deliver_due)  # type: ignore[no-any-return]


def make_put_off(variant: Variant, threads: int) -> Callable[..., Any]:
    """``put_off(count, slot, burst, fired, ...)``: the rows of what fired in a chunk, a warp to each.

    Contributions of delay 1 go to the slot after ``slot``, all others to buckets. Entries are counted by delay, so that
    the block asks for its places in each bucket once. All threads of the block call it.
    """
    turns, count_turns = _turns(variant)
    bounds, offset, read_once, deliver = make_bounds(variant), variant.offset, make_read_once(), make_deliver(variant)
    uniform_rows, clamps, number, noted = variant.uniform_rows, variant.clamps, variant.accumulator, variant.noted
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    target_of, amount_of = make_target_of(variant), make_amount_of(variant)
    room, delays, block = variant.calendar + 1, np.uint32(variant.calendar + 1), np.uint32(threads)
    zero, one, two = np.uint32(0), np.uint32(1), np.uint32(2)

    def count_row(source: np.uint32, places: Ids, rows: Rows) -> None:
        found = cuda.local.array(_AT_ONCE, np.uint32)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                found[turn] = np.uint32(rows.delays[at]) if at < end else zero
            for turn in range(_AT_ONCE):
                if found[turn] > one:
                    cuda.atomic.add(places, found[turn], one)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    def put(target: np.uint32, amount: Amount, delay: np.uint32, burst: np.uint32, places: Ids, recall: Recall) -> None:
        place = np.uint64(cuda.atomic.add(places, delay, one))
        first = np.uint64(np.uint64(np.uint32(burst + delay) & turns) * recall.calendar_room)
        word = noted(noted(noted(amount) << recall.calendar_shift) | noted(target))
        recall.calendar_words[np.uint64(first + place)] = word

    put = cuda.jit(device=True)(put)

    def send_row(
        source: np.uint32, slot: np.uint32, burst: np.uint32, places: Ids, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        target = cuda.local.array(_AT_ONCE, np.uint32)
        amount = cuda.local.array(_AT_ONCE, number)
        delay = cuda.local.array(_AT_ONCE, np.uint32)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        shared = number(rows.contributions[source]) if uniform_rows else number(0)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                target[turn], delay[turn], amount[turn] = zero, zero, shared
                if at < end:
                    target[turn], delay[turn] = read_once(rows.targets, at), np.uint32(rows.delays[at])
                    if not uniform_rows:
                        amount[turn] = number(read_once(rows.contributions, at))
            for turn in range(_AT_ONCE):
                if delay[turn] == one:
                    deliver(np.uint64(following + np.uint64(target[turn])), amount[turn], fcl)
                elif delay[turn] != zero:
                    put(target[turn], amount[turn], delay[turn], burst, places, recall)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    def copy(word: np.int32, delay: np.uint32, burst: np.uint32, places: Ids, recall: Recall) -> None:
        place = np.uint64(cuda.atomic.add(places, delay, one))
        first = np.uint64(np.uint64(np.uint32(burst + delay) & turns) * recall.calendar_room)
        recall.calendar_words[np.uint64(first + place)] = word

    copy = cuda.jit(device=True)(copy)

    def send_words(
        source: np.uint32, slot: np.uint32, burst: np.uint32, places: Ids, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        words = cuda.local.array(_AT_ONCE, np.int32)
        delay = cuda.local.array(_AT_ONCE, np.uint32)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                words[turn], delay[turn] = np.int32(0), zero
                if at < end:
                    words[turn], delay[turn] = read_once(rows.targets, at), np.uint32(rows.delays[at])
            for turn in range(_AT_ONCE):
                if delay[turn] == one:
                    place = np.uint64(following + np.uint64(target_of(words[turn])))
                    deliver(place, amount_of(words[turn], rows), fcl)
                elif delay[turn] != zero:
                    copy(words[turn], delay[turn], burst, places, recall)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    count_row = cuda.jit(device=True)(count_row)
    send_row = cuda.jit(device=True)(send_words if variant.target_bits else send_row)

    def put_off(
        count: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        fired: Fired,
        steering: Steering,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        places = cuda.shared.array(room, np.uint32)
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
            source = fired.ids[item]
            count_row(source, places, rows)
            if clamps and (thread & lanes) == zero and rows.clamped_sources[source] != 0:
                steering.control[CLAMPED] = 1
            item = np.uint32(item + warps)
        cuda.syncthreads()
        delay = np.uint32(thread + two)
        while delay < delays:
            entries = places[delay]
            if entries != zero:
                bucket = np.uint32(np.uint32(burst + delay) & count_turns)
                places[delay] = cuda.atomic.add(recall.calendar_counts, bucket, entries)
            delay = np.uint32(delay + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        while item < count:
            send_row(fired.ids[item], slot, burst, places, recall, rows, fcl)
            item = np.uint32(item + warps)

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]
