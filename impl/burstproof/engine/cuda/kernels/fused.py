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
from burstproof.engine.cuda.args import (
    Chunks,
    Fcl,
    Identity,
    Network,
    Outside,
    Parameters,
    Pieces,
    Rows,
    State,
    Steering,
    Turn,
)
from burstproof.engine.cuda.kernels.consume import make_consume, make_fetch
from burstproof.engine.cuda.kernels.control import CLAMPED, TALLIES
from burstproof.engine.cuda.kernels.lines import make_send_over_link
from burstproof.engine.cuda.kernels.neuron import Found
from burstproof.engine.cuda.kernels.rows import make_send
from burstproof.engine.cuda.kernels.steer import make_enter, make_halt, make_steer
from burstproof.engine.cuda.kernels.warp import WARP, make_append, make_block_count
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN, LONG_ROW
from burstproof.engine.cuda.plan.variant import Variant


def make_own_seed() -> Callable[..., Any]:
    """``seed(neuron, burst_seed, identity)``: a neuron's place is its id, so that the burst says it all."""

    def seed(neuron: np.uint32, burst_seed: np.uint32, identity: Identity) -> Any:
        return burst_seed

    return cuda.jit(device=True)(seed)  # type: ignore[no-any-return]


def make_note() -> Callable[..., Any]:
    """``note(source, length, burst, pieces)``: leave a long row to ``send_long``, in pieces."""

    def note(source: np.uint32, length: np.uint32, burst: np.uint32, pieces: Pieces) -> None:
        parts = np.uint32((length + np.uint32(LONG_ROW - 1)) // np.uint32(LONG_ROW))
        place = np.uint32(cuda.atomic.add(pieces.piece_counts, np.uint32(burst & np.uint32(1)), parts))
        for part in range(parts):
            pieces.pieces[np.uint32(place + np.uint32(part))] = np.uint64(
                (np.uint64(source) << np.uint64(32)) | np.uint64(part)
            )

    return cuda.jit(device=True)(note)  # type: ignore[no-any-return]


def make_fused(variant: Variant) -> Callable[..., None]:
    """``fused(...)``: one burst.

    Where sums are packed, stimulus lies in ``outside``, not in the slot. Chunks take what fired; of their counts over
    ``CHUNKS_PER_SPAN``, one half is for this burst, while the other is cleared for the next. ``turn.stimulated`` is 1
    where marks may be set; mode and place in the train steer the burst (``kernels.steer``). The first block has no
    neurons: it keeps the books beside the others. Rows longer than ``LONG_ROW`` are left to ``send_long``.
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
        steering: Steering,
        chunks: Chunks,
        fcl: Fcl,
        outside: Outside,
        state: State,
        parameters: Parameters,
        rows: Rows,
        pieces: Pieces,
        network: Network,
        turn: Turn,
    ) -> None:
        fired_ids = cuda.shared.array(chunk, np.uint32)
        fired_potentials = cuda.shared.array(chunk, np.float32)
        found = cuda.shared.array(4, np.int32)
        total = cuda.local.array(per_thread, number)
        v = cuda.local.array(per_thread, np.float32)
        rc = cuda.local.array(per_thread, np.int32)
        neurons = network.neurons
        thread = np.uint32(cuda.threadIdx.x)
        lane, own_warp = np.uint32(thread & lanes), np.uint32(thread // warp)
        let_next_start()
        wait_for_last()
        done, burst_seed, slot = steer(steering, fcl, network, turn)
        if not done:
            if cuda.grid(1) == 0:
                halt(steering, turn)
            return
        if long_rows and cuda.grid(1) == 0:
            pieces.piece_counts[np.uint32((burst_seed + one) & one)] = np.uint32(0)
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        side = np.uint32(0)
        item = first_item()
        items = np.uint32((np.uint64(neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        spans = np.uint32((items + per_span - one) // per_span)
        current = np.uint32(spans if burst_seed & one else np.uint32(0))
        following = np.uint32(spans - current)
        for p in range(per_thread):
            neuron = np.uint32(item * size + thread + np.uint32(p) * block)
            total[p], v[p], rc[p] = fetch(neuron, neurons, base, fcl, state)
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
                        turn.stimulated,
                        Found(total[p], v[p], rc[p]),
                        fcl,
                        outside,
                        state,
                        parameters,
                        network,
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
                    cuda.atomic.add(steering.tallies, np.uint32(burst_seed & tally_places), counted)
                chunks.chunk_counts[item] = count
                if count > np.uint32(0):
                    cuda.atomic.add(chunks.span_counts, np.uint32(current + item // per_span), count)
                if item % per_span == np.uint32(0):
                    chunks.span_counts[np.uint32(following + item // per_span)] = np.uint32(0)
            side = np.uint32(one - side)
            following_item = items
            if SIMULATED:
                following_item = np.uint32(item + one)
            if following_item < items:
                for p in range(per_thread):
                    neuron = np.uint32(following_item * size + thread + np.uint32(p) * block)
                    total[p], v[p], rc[p] = fetch(neuron, neurons, base, fcl, state)
            entry = own_warp
            while sends and entry < count:
                source = fired_ids[entry]
                length = np.uint32(0)
                if long_rows:
                    length = np.uint32(rows.offsets[np.uint32(source + one)] - rows.offsets[source])
                if length > long_row:
                    if lane == np.uint32(0):
                        note(source, length, burst_seed, pieces)
                else:
                    send(source, lane, slot, rows, fcl)
                if clamps and lane == np.uint32(0) and rows.clamped_sources[source] != 0:
                    steering.control[CLAMPED] = 1
                entry = np.uint32(entry + warps)
            entry = thread
            while entry < count:
                chunks.chunk_ids[np.uint32(first + entry)] = fired_ids[entry]
                chunks.chunk_potentials[np.uint32(first + entry)] = fired_potentials[entry]
                entry = np.uint32(entry + block)
            item = following_item
            if item < items:
                cuda.syncthreads()
        if cuda.grid(1) == 0:
            enter(steering, turn, burst_seed, slot)

    return fused
