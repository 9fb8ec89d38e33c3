"""One burst in one kernel: dynamics of a chunk of neurons, and at once the rows of those of it that fired.

The FCL has a slot more than the largest delay, so that no contribution of a burst can reach the slot that the burst
consumes: dynamics and propagation of different blocks need no order. The last block to finish does the bookkeeping.
No fence is used anywhere: it would turn the reductions into atomics that read back. All that the last block has to know
comes with one counter instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.burst.cuda.block_size import CHUNKS_PER_SPAN, LONG_ROW
from burstproof.burst.cuda.control import (
    ACTIVE,
    BURST,
    CLAMPED,
    COUNT,
    HALTED,
    INDEX,
    KEEP,
    LIMIT,
    REPORT_HEAD,
    SLOT,
    START,
    USED,
)
from burstproof.burst.cuda.kernels_neuron import make_neuron
from burstproof.burst.cuda.kernels_rows import make_send
from burstproof.burst.cuda.kernels_stimulus import cancelled
from burstproof.burst.cuda.kernels_storage import make_widen
from burstproof.burst.cuda.variant import Variant
from burstproof.burst.cuda.warp import WARP, make_append, make_block_tally
from burstproof.kernels.numba_cuda import SIMULATED, cuda


def make_finish() -> Callable[..., Any]:
    """``finish(...)``: enter a burst that was done into report and control, and see whether another can follow."""

    def finish(
        control: Any, report: Any, index: Any, slot: Any, fired: Any, seen: Any, neurons: Any, capacity: Any, fresh: Any
    ) -> None:
        if fresh != 0:
            report[LIMIT] = 1
            report[KEEP] = 1
            report[USED] = 0
        used = report[USED]
        report[REPORT_HEAD + 2 * index] = fired
        report[REPORT_HEAD + 2 * index + 1] = seen
        control[START] = used
        control[COUNT] = fired
        control[ACTIVE] = 1
        cuda.atomic.add(control, BURST, np.int64(1))
        control[SLOT] = np.int64(slot)
        report[INDEX] = index
        if report[KEEP] != 0:
            report[USED] = used + fired
            if index + 1 < report[LIMIT] and used + fired + np.int64(neurons) > capacity:
                control[HALTED] = 1

    return cuda.jit(device=True)(finish)  # type: ignore[no-any-return]


def make_note() -> Callable[..., Any]:
    """``note(source, length, burst, piece_counts, pieces)``: leave a long row to ``send_long``, in pieces."""

    def note(source: Any, length: Any, burst: Any, piece_counts: Any, pieces: Any) -> None:
        parts = np.uint32((length + np.uint32(LONG_ROW - 1)) // np.uint32(LONG_ROW))
        place = np.uint32(cuda.atomic.add(piece_counts, np.uint32(burst & np.uint32(1)), parts))
        for part in range(parts):
            pieces[np.uint32(place + np.uint32(part))] = np.uint64(
                (np.uint64(source) << np.uint64(32)) | np.uint64(part)
            )

    return cuda.jit(device=True)(note)  # type: ignore[no-any-return]


def make_fused(variant: Variant) -> Callable[..., None]:
    """``fused(...)``: one burst.

    ``cells`` holds a sum per neuron and slot; ``sums`` is the same memory as what contributions are added to, which
    differs where sums are packed. Then stimulus lies in ``outside`` (N,), not in the slot.
    ``chunk_ids`` and ``chunk_potentials`` (N,) take what fired in each chunk from the chunk's first neuron on,
    ``chunk_counts`` how many. ``span_counts`` adds them up over ``CHUNKS_PER_SPAN`` chunks: one half for this burst,
    while the other is cleared for the next. ``stimulated`` is 1 where ``forced`` may hold marks, ``fresh`` 1 where the
    burst is a train of its own that nothing began. Rows longer than ``LONG_ROW`` are left to ``send_long``.
    ``done`` counts blocks, firings and candidates in one number, the latter two in ``bits`` bits each. The values
    ``common_...`` stand for parameters that are one for all neurons.
    """
    assert variant.fused is not None
    chunk = variant.fused.chunk
    threads = WARP if SIMULATED else variant.fused.threads
    per_thread = chunk // threads
    loops = SIMULATED or variant.fused.loops
    neuron_burst, send, finish = make_neuron(variant), make_send(variant), make_finish()
    append, block_tally = make_append(), make_block_tally()
    flagged, clamps, refractory = variant.flags, variant.clamps, variant.features.refractory
    widen = make_widen(variant.features.storage)
    number, zero, marker = variant.accumulator, variant.accumulator(0), cancelled(variant)
    cell, packed = variant.cell, variant.packed_sums
    silent, lanes, warp = np.float32(0), np.uint32(WARP - 1), np.uint32(WARP)
    block, size, warps = np.uint32(threads), np.uint32(chunk), np.uint32(threads // WARP)
    one, per_span = np.uint32(1), np.uint32(CHUNKS_PER_SPAN)
    sends = variant.tiles == 0 and not variant.streamed
    long_rows, long_row, note = variant.long_rows, np.uint32(LONG_ROW), make_note()

    def fetch(neuron: Any, neurons: Any, base: Any, cells: Any, potentials: Any, countdowns: Any) -> Any:
        if neuron >= neurons:
            return zero, silent, np.int32(0)
        rc = np.int32(0)
        if refractory:
            rc = np.int32(countdowns[neuron])
        return number(cells[np.uint64(base + np.uint64(neuron))]), widen(potentials[neuron]), rc

    fetch = cuda.jit(device=True)(fetch)

    def fused(
        control: Any,
        report: Any,
        done: Any,
        forced: Any,
        chunk_counts: Any,
        span_counts: Any,
        chunk_ids: Any,
        chunk_potentials: Any,
        cells: Any,
        sums: Any,
        outside: Any,
        flags: Any,
        potentials: Any,
        countdowns: Any,
        counts: Any,
        marks: Any,
        accumulates: Any,
        thresholds: Any,
        threshold_limits: Any,
        keep: Any,
        refractory_periods: Any,
        fire_limit: Any,
        snooze_periods: Any,
        excitabilities: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        clamped_sources: Any,
        piece_counts: Any,
        pieces: Any,
        unit: Any,
        power_neuron: Any,
        power_amount: Any,
        neurons: Any,
        stride: Any,
        ring: Any,
        capacity: Any,
        stimulated: Any,
        fresh: Any,
        bits: Any,
        common_threshold: Any,
        common_threshold_limit: Any,
        common_keep: Any,
        common_refractory_period: Any,
        common_fire_limit: Any,
        common_snooze_period: Any,
        common_excitability: Any,
    ) -> None:
        fired_ids = cuda.shared.array(chunk, np.uint32)
        fired_potentials = cuda.shared.array(chunk, np.float32)
        tallies = cuda.shared.array(4, np.int32)
        total = cuda.local.array(per_thread, number)
        v = cuda.local.array(per_thread, np.float32)
        rc = cuda.local.array(per_thread, np.int32)
        common = (
            common_threshold,
            common_threshold_limit,
            common_keep,
            common_refractory_period,
            common_fire_limit,
            common_snooze_period,
            common_excitability,
        )
        thread = np.uint32(cuda.threadIdx.x)
        lane, own_warp = np.uint32(thread & lanes), np.uint32(thread // warp)
        index, limit = np.int32(report[INDEX] + 1), np.int32(report[LIMIT])
        burst, last_slot, halted = np.int32(control[BURST] + 1), np.int32(control[SLOT]), np.int32(control[HALTED])
        # A slot is never negative: asking has the compiler read it with the others, not after them.
        if fresh != 0:
            index, limit, halted = np.int32(0), np.int32(1), np.int32(0)
        if (np.int32(index >= limit) | halted | (last_slot >> np.int32(31))) != 0:
            if cuda.grid(1) == 0:
                control[ACTIVE] = 0
            return
        slot = np.uint32(np.uint32(last_slot) + one)
        if slot == ring:
            slot = np.uint32(0)
        base = np.uint64(np.uint64(slot) * np.uint64(stride))
        burst_seed = np.uint32(burst)
        if long_rows and cuda.grid(1) == 0:
            piece_counts[np.uint32((burst_seed + one) & one)] = np.uint32(0)
        seen, fired_here = np.int32(0), np.int64(0)
        side = np.uint32(0)
        item = np.uint32(cuda.blockIdx.x)
        items = np.uint32((np.uint64(neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        spans = np.uint32((items + per_span - one) // per_span)
        current = np.uint32(spans if burst_seed & one else np.uint32(0))
        following = np.uint32(spans - current)
        for p in range(per_thread):
            neuron = np.uint32(item * size + thread + np.uint32(p) * block)
            total[p], v[p], rc[p] = fetch(neuron, neurons, base, cells, potentials, countdowns)
        if thread < np.uint32(4):
            tallies[thread] = 0
        cuda.syncthreads()
        while item < items:
            first = np.uint32(item * size)
            for p in range(per_thread):
                neuron = np.uint32(first + thread + np.uint32(p) * block)
                joins, potential = False, silent
                if neuron < neurons:
                    place = np.uint64(base + np.uint64(neuron))
                    arrived = total[p]
                    is_candidate = flags[place] != 0 if flagged else arrived != zero
                    if is_candidate:
                        cells[place] = cell(0)
                        if flagged:
                            flags[place] = np.uint8(0)
                        elif not packed and arrived == marker:
                            arrived = zero
                    if packed and stimulated != 0:
                        amount = outside[neuron]
                        if amount != zero:
                            outside[neuron] = zero
                            is_candidate = True
                            if amount != marker:
                                arrived = number(arrived + amount)
                    if np.int64(neuron) == power_neuron:
                        arrived = number(arrived + power_amount)
                        is_candidate = True
                    is_forced = False
                    if stimulated != 0:
                        is_forced = forced[neuron] != 0
                        if is_forced:
                            forced[neuron] = np.uint8(0)
                    if is_candidate:
                        seen = np.int32(seen + 1)
                    joins, potential = neuron_burst(
                        neuron,
                        burst_seed,
                        is_candidate,
                        is_forced,
                        False,
                        arrived,
                        v[p],
                        rc[p],
                        potentials,
                        countdowns,
                        counts,
                        marks,
                        accumulates,
                        thresholds,
                        threshold_limits,
                        keep,
                        refractory_periods,
                        fire_limit,
                        snooze_periods,
                        excitabilities,
                        common,
                        unit,
                    )
                append(joins, lane, tallies, side, neuron, potential, fired_ids, fired_potentials)
            cuda.syncthreads()
            count = np.uint32(tallies[side])
            side = np.uint32(one - side)
            if thread == np.uint32(0):
                tallies[side] = 0
                fired_here += np.int64(count)
                chunk_counts[item] = count
                if count > np.uint32(0):
                    cuda.atomic.add(span_counts, np.uint32(current + item // per_span), count)
                if item % per_span == np.uint32(0):
                    span_counts[np.uint32(following + item // per_span)] = np.uint32(0)
            following_item = items
            if loops:
                following_item = np.uint32(item + np.uint32(cuda.gridDim.x))
            if following_item < items:
                for p in range(per_thread):
                    neuron = np.uint32(following_item * size + thread + np.uint32(p) * block)
                    total[p], v[p], rc[p] = fetch(neuron, neurons, base, cells, potentials, countdowns)
            entry = own_warp
            while sends and entry < count:
                source = fired_ids[entry]
                length = np.uint32(0)
                if long_rows:
                    length = np.uint32(offsets[np.uint32(source + one)] - offsets[source])
                if length > long_row:
                    if lane == np.uint32(0):
                        note(source, length, burst_seed, piece_counts, pieces)
                else:
                    send(source, lane, slot, offsets, targets, contributions, delays, sums, flags, stride, ring)
                if clamps and lane == np.uint32(0) and clamped_sources[source] != 0:
                    control[CLAMPED] = 1
                entry = np.uint32(entry + warps)
            entry = thread
            while entry < count:
                chunk_ids[np.uint32(first + entry)] = fired_ids[entry]
                chunk_potentials[np.uint32(first + entry)] = fired_potentials[entry]
                entry = np.uint32(entry + block)
            item = following_item
            if item < items:
                cuda.syncthreads()
        block_tally(seen, lane, tallies, 2)
        cuda.syncthreads()
        if thread == np.uint32(0):
            width = np.uint64(bits)
            twice = np.uint64(width + width)
            mask = np.uint64((np.uint64(1) << width) - np.uint64(1))
            blocks = np.uint64(np.uint64(1) << twice)
            mine = np.uint64(blocks + (np.uint64(fired_here) << width) + np.uint64(tallies[2]))
            before = np.uint64(cuda.atomic.add(done, 0, mine))
            if np.uint64(before >> twice) == np.uint64(cuda.gridDim.x) - np.uint64(1):
                everything = np.uint64(before + mine)
                done[0] = np.uint64(0)
                fired = np.int64(np.uint64(everything >> width) & mask)
                candidates = np.int64(everything & mask)
                finish(control, report, np.int64(index), slot, fired, candidates, neurons, capacity, fresh)

    return fused
