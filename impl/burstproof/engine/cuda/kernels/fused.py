"""One burst in one kernel: dynamics of a chunk of neurons, and at once the rows of those of it that fired.

The FCL has a slot more than the largest delay, so that no contribution of a burst can reach the slot that the burst
consumes: dynamics and propagation of different blocks need no order, and none waits for another. No fence is used
anywhere: it would turn the reductions into atomics that read back. What the burst counted is left to the next kernel
of the train (``kernels.steer``). Where the device can, that kernel's blocks come up while this one's last ones run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.kernels.consume import make_consume, make_fetch
from burstproof.engine.cuda.kernels.control import CLAMPED, TALLIES
from burstproof.engine.cuda.kernels.lines import make_send_over_link
from burstproof.engine.cuda.kernels.rows import make_send
from burstproof.engine.cuda.kernels.steer import make_enter, make_halt, make_steer
from burstproof.engine.cuda.kernels.warp import WARP, make_append, make_block_count
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN, LONG_ROW
from burstproof.engine.cuda.plan.variant import Variant


def make_own_seed() -> Callable[..., Any]:
    """``seed(neuron, burst_seed, identity)``: a neuron's place is its id, so that the burst says it all."""

    def seed(neuron: Any, burst_seed: Any, identity: Any) -> Any:
        return burst_seed

    return cuda.jit(device=True)(seed)  # type: ignore[no-any-return]


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
    while the other is cleared for the next. ``stimulated`` is 1 where ``forced`` may hold marks; ``mode`` and ``place``
    in the train steer the burst (``kernels.steer``). The first block has no neurons: it keeps the books beside the
    others. Rows longer than ``LONG_ROW`` are left to ``send_long``. The values ``common_...`` stand for parameters that
    are one for all neurons.
    """
    assert variant.fused is not None
    chunk = variant.fused.chunk
    threads = WARP if SIMULATED else variant.fused.threads
    per_thread = chunk // threads
    fetch, consume = make_fetch(variant), make_consume(variant, variant.packed_sums, make_own_seed)
    send = make_send_over_link(variant) if variant.streamed else make_send(variant)
    steer, enter, halt = make_steer(variant.delays), make_enter(), make_halt()
    append, block_count = make_append(), make_block_count()
    wait_for_last = make_wait_for_last(variant.overlapped)
    let_next_start = make_let_next_start(variant.overlapped and variant.fused.early)
    clamps, number = variant.clamps, variant.accumulator
    silent, lanes, warp = np.float32(0), np.uint32(WARP - 1), np.uint32(WARP)
    block, size, warps = np.uint32(threads), np.uint32(chunk), np.uint32(threads // WARP)
    one, two, per_span = np.uint32(1), np.uint32(2), np.uint32(CHUNKS_PER_SPAN)
    tally_places = np.uint32(TALLIES - 1)
    sends = variant.tiles == 0
    long_rows, long_row, note = variant.long_rows, np.uint32(LONG_ROW), make_note()

    def first_of_all() -> Any:
        return np.uint32(0)

    def own_item() -> Any:
        return np.uint32(np.uint32(cuda.blockIdx.x) - one)

    first_item = cuda.jit(device=True)(first_of_all if SIMULATED else own_item)

    def fused(
        control: Any,
        report: Any,
        tallies: Any,
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
        mode: Any,
        place: Any,
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
        found = cuda.shared.array(4, np.int32)
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
        let_next_start()
        wait_for_last()
        done, burst_seed, slot = steer(control, report, tallies, place, neurons, capacity, ring, mode)
        if not done:
            if cuda.grid(1) == 0:
                halt(control, report, place)
            return
        if long_rows and cuda.grid(1) == 0:
            piece_counts[np.uint32((burst_seed + one) & one)] = np.uint32(0)
        base = np.uint64(np.uint64(slot) * np.uint64(stride))
        side = np.uint32(0)
        item = first_item()
        items = np.uint32((np.uint64(neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        spans = np.uint32((items + per_span - one) // per_span)
        current = np.uint32(spans if burst_seed & one else np.uint32(0))
        following = np.uint32(spans - current)
        for p in range(per_thread):
            neuron = np.uint32(item * size + thread + np.uint32(p) * block)
            total[p], v[p], rc[p] = fetch(neuron, neurons, base, cells, potentials, countdowns)
        if thread < np.uint32(4):
            found[thread] = 0
        cuda.syncthreads()
        while item < items:
            first = np.uint32(item * size)
            for p in range(per_thread):
                neuron = np.uint32(first + thread + np.uint32(p) * block)
                joins, potential, is_candidate = False, silent, False
                if neuron < neurons:
                    joins, potential, is_candidate = consume(
                        neuron,
                        base,
                        burst_seed,
                        False,
                        stimulated,
                        total[p],
                        v[p],
                        rc[p],
                        forced,
                        outside,
                        cells,
                        flags,
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
                        power_neuron,
                        power_amount,
                        (),
                    )
                append(joins, lane, found, side, neuron, potential, fired_ids, fired_potentials)
                block_count(is_candidate, lane, found, np.uint32(side + two))
            cuda.syncthreads()
            count = np.uint32(found[side])
            if thread == np.uint32(0):
                seen = np.uint32(found[np.uint32(side + two)])
                found[np.uint32(one - side)] = 0
                found[np.uint32(np.uint32(one - side) + two)] = 0
                counted = np.uint64((np.uint64(count) << np.uint64(32)) + np.uint64(seen))
                if counted != np.uint64(0):
                    cuda.atomic.add(tallies, np.uint32(burst_seed & tally_places), counted)
                chunk_counts[item] = count
                if count > np.uint32(0):
                    cuda.atomic.add(span_counts, np.uint32(current + item // per_span), count)
                if item % per_span == np.uint32(0):
                    span_counts[np.uint32(following + item // per_span)] = np.uint32(0)
            side = np.uint32(one - side)
            following_item = items
            if SIMULATED:
                following_item = np.uint32(item + one)
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
        if cuda.grid(1) == 0:
            enter(control, report, tallies, place, burst_seed, slot, mode)

    return fused
