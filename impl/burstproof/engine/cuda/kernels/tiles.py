"""Propagation where the FCL exceeds the L2 cache: rows are sorted by target, and sent in one pass per tile of targets.

In each pass all firings add only to one tile of each slot, which stays in the cache. A *cursor* per firing holds where
the next pass continues: the index of the entry times 2^16, plus the entries left.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Cursors, Fcl, Ids, Log, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import ACTIVE, CLAMPED, COUNT, SLOT, START
from burstproof.engine.cuda.kernels.entries import make_target_of
from burstproof.engine.cuda.plan.block_size import LONG_ROW, WARP
from burstproof.engine.cuda.plan.variant import Variant

SORT_THREADS = 128
_ALL = 0xFFFFFFFF
_LEFT = 16


def _make_note_starts(variant: Variant) -> Callable[..., Any]:
    """``note_starts(source, thread, count, row_delays, recall)``: fill a row's ``Recall.delay_starts``."""
    places, step = np.int64((variant.recalled or variant.calendar) + 1), np.int64(WARP if SIMULATED else SORT_THREADS)

    def note_starts(source: np.uint64, thread: np.int64, count: np.int64, row_delays: Ids, recall: Recall) -> None:
        delay = thread
        while delay < places:
            entries = np.uint16(0)
            for entry in range(count):
                if np.int64(row_delays[entry]) <= delay:
                    entries = np.uint16(entries + np.uint16(1))
            recall.delay_starts[np.uint64(source * np.uint64(places) + np.uint64(delay))] = entries
            delay += step

    return cuda.jit(device=True)(note_starts)  # type: ignore[no-any-return]


def make_sort_rows(variant: Variant) -> Callable[..., None]:
    """``sort_rows(rows, recall, sources)``: sort every row by target, or by delay and tile (``kernels.calendar``).

    A block takes a row, of at most ``LONG_ROW`` entries. It is a rank sort: an entry's new place is the number of
    entries that come before it.
    """
    by_delay, note_starts = variant.recalled > 0 or variant.calendar > 0, _make_note_starts(variant)
    threads = WARP if SIMULATED else SORT_THREADS
    delayed, carries = variant.delays, not (variant.uniform_rows or variant.target_bits)
    notes, by_tile = by_delay and not variant.calendar_tiles, variant.calendar_tiles > 1
    tiles, target, target_of = np.uint32(variant.calendar_tiles), variant.target, make_target_of(variant)
    in_words, number, offset = variant.target_bits > 0, variant.contribution, variant.offset
    room, step = LONG_ROW, np.int64(threads)

    def sort_rows(rows: Rows, recall: Recall, sources: np.uint32) -> None:
        offsets, targets, contributions, delays = rows.offsets, rows.targets, rows.contributions, rows.delays
        row_targets = cuda.shared.array(room, target)
        keys = cuda.shared.array(room, np.uint32)
        row_contributions = cuda.shared.array(room, number)
        row_delays = cuda.shared.array(room, np.uint8)
        source = np.uint64(cuda.blockIdx.x)
        thread = np.int64(cuda.threadIdx.x)
        while source < np.uint64(sources):
            start = offset(offsets[source])
            count = np.int64(offsets[source + np.uint64(1)] - start)
            own = thread
            while own < count:
                row_targets[own] = targets[start + offset(own)]
                if carries:
                    row_contributions[own] = contributions[start + offset(own)]
                if delayed:
                    row_delays[own] = delays[start + offset(own)]
                keys[own] = row_delays[own] if by_delay else row_targets[own]
                if by_tile:
                    neuron = target_of(row_targets[own]) if in_words else np.uint32(row_targets[own])
                    keys[own] = np.uint32(keys[own] * tiles + (neuron >> recall.calendar_shift))
                own += step
            cuda.syncthreads()
            if notes:
                note_starts(source, thread, count, keys, recall)
            own = thread
            while own < count:
                key = keys[own]
                rank = np.int64(0)
                for other in range(count):
                    if keys[other] < key or (keys[other] == key and other < own):
                        rank += 1
                place = offset(start + offset(rank))
                targets[place] = row_targets[own]
                if carries:
                    contributions[place] = row_contributions[own]
                if delayed:
                    delays[place] = row_delays[own]
                own += step
            cuda.syncthreads()
            source = np.uint64(source + np.uint64(cuda.gridDim.x))

    return sort_rows


def make_open_rows(variant: Variant) -> Callable[..., None]:
    """``open_rows(...)``: set a cursor for each firing of the burst; note the row's contribution if it has only one."""
    uniform_rows, clamps, number = variant.uniform_rows, variant.clamps, variant.accumulator
    left_bits = np.uint64(_LEFT)

    def open_rows(steering: Steering, log: Log, rows: Rows, cursors: Cursors) -> None:
        control = steering.control
        if control[ACTIVE] == 0:
            return
        start, count = control[START], control[COUNT]
        item = np.int64(cuda.grid(1))
        while item < count:
            source = log.log_ids[start + item]
            first = np.uint64(rows.offsets[source])
            left = np.uint64(np.uint64(rows.offsets[np.uint32(source + np.uint32(1))]) - first)
            cursors.cursors[item] = np.uint64((first << left_bits) | left)
            if uniform_rows:
                cursors.amounts[item] = number(rows.contributions[source])
            if clamps and rows.clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item += np.int64(cuda.gridsize(1))

    return open_rows


def make_send_tile(variant: Variant) -> Callable[..., None]:
    """``send_tile(...)``: send the entries of every firing from its cursor on, up to targets below ``tile_end``.

    ``tile_share`` threads, a power of two up to 32, take a firing.
    """
    delayed, uniform_rows, deliver = variant.delays, variant.uniform_rows, make_deliver(variant)
    number = variant.accumulator
    share = 1 if SIMULATED else variant.tile_share
    threads, in_warp = np.uint32(share), np.uint32(WARP - 1)
    low_lanes = np.uint32((1 << share) - 1)
    left_bits, left_mask = np.uint64(_LEFT), np.uint64((1 << _LEFT) - 1)
    everything = share == WARP

    def vote_by_thread(value: bool, lane: np.uint32) -> Any:
        return np.uint32(1) if value else np.uint32(0)

    def vote_by_warp(value: bool, lane: np.uint32) -> Any:
        votes = np.uint32(cuda.ballot_sync(_ALL, value))
        if everything:
            return np.uint32(cuda.popc(votes))
        shift = np.uint32(lane - (lane & np.uint32(threads - np.uint32(1))))
        return np.uint32(cuda.popc(np.uint32((votes >> shift) & low_lanes)))

    def any_by_thread(value: bool) -> Any:
        return value

    def any_by_warp(value: bool) -> Any:
        return cuda.ballot_sync(_ALL, value) != 0

    vote = cuda.jit(device=True)(vote_by_thread if SIMULATED else vote_by_warp)
    any_of = cuda.jit(device=True)(any_by_thread if SIMULATED else any_by_warp)

    def send_tile(steering: Steering, cursors: Cursors, rows: Rows, fcl: Fcl, tile_end: np.uint32) -> None:
        control = steering.control
        if control[ACTIVE] == 0:
            return
        count = control[COUNT]
        slot = np.uint32(control[SLOT])
        after = np.uint32(slot + np.uint32(1))
        if after == fcl.ring:
            after = np.uint32(0)
        following = np.uint64(np.uint64(after) * np.uint64(fcl.stride))
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & in_warp)
        own = np.uint64(thread & np.uint32(threads - np.uint32(1)))
        item = np.int64(thread // threads)
        items = np.int64(np.uint32(cuda.gridsize(1)) // threads)
        while any_of(item < count):
            going = item < count
            cursor = np.uint64(0)
            amount = number(0)
            if going:
                cursor = cursors.cursors[item]
                if uniform_rows:
                    amount = cursors.amounts[item]
            entry = np.uint64(cursor >> left_bits)
            left = np.uint64(cursor & left_mask)
            before = left
            while any_of(going):
                inside = False
                target = np.uint32(0)
                if going and own < left:
                    target = rows.targets[np.uint64(entry + own)]
                    inside = target < tile_end
                if inside:
                    place = np.uint64(np.uint64(target) + following)
                    if delayed:
                        arrival = np.uint32(slot + np.uint32(rows.delays[np.uint64(entry + own)]))
                        if arrival >= fcl.ring:
                            arrival = np.uint32(arrival - fcl.ring)
                        place = np.uint64(np.uint64(target) + np.uint64(arrival) * np.uint64(fcl.stride))
                    if not uniform_rows:
                        amount = number(rows.contributions[np.uint64(entry + own)])
                    deliver(place, amount, fcl)
                sent = np.uint64(vote(inside, lane))
                entry = np.uint64(entry + sent)
                left = np.uint64(left - sent)
                going = sent == np.uint64(threads) and left > np.uint64(0)
            if own == np.uint64(0) and left != before:
                cursors.cursors[item] = np.uint64((entry << left_bits) | left)
            item += items

    return send_tile
