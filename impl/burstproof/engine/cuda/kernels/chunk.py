"""What a block does with the firings of its chunk: add them up, keep or log them, and send their rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Chunks, Fcl, Identity, Ids, Log, Longs, Recall, Rows, Steering
from burstproof.engine.cuda.kernels.calendar import make_put_off
from burstproof.engine.cuda.kernels.consume import Fired
from burstproof.engine.cuda.kernels.control import TALLIES
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.kernels.long_rows import make_note_long
from burstproof.engine.cuda.kernels.recall import make_keep_recalled
from burstproof.engine.cuda.kernels.send import make_send
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN, WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant


def make_count_chunk() -> Callable[..., Any]:
    """``count_chunk(item, burst, count, items, chunks)``, one thread: store how many fired in a chunk, for ``gather``.

    Totals of ``CHUNKS_PER_SPAN`` chunks are double-buffered: one half is for this burst, the other is cleared for the
    next one.
    """
    one, per_span = np.uint32(1), np.uint32(CHUNKS_PER_SPAN)

    def count_chunk(item: np.uint32, burst: np.uint32, count: np.uint32, items: np.uint32, chunks: Chunks) -> None:
        spans = np.uint32((items + per_span - one) // per_span)
        current = np.uint32(spans if burst & one else np.uint32(0))
        following = np.uint32(spans - current)
        chunks.chunk_counts[item] = count
        if count > np.uint32(0):
            cuda.atomic.add(chunks.span_counts, np.uint32(current + item // per_span), count)
        if item % per_span == np.uint32(0):
            chunks.span_counts[np.uint32(following + item // per_span)] = np.uint32(0)

    return cuda.jit(device=True)(count_chunk)  # type: ignore[no-any-return]


def make_keep_chunk(variant: Variant, block: int) -> Callable[..., Any]:
    """``keep_chunk(first, offset, burst, count, ...)``: store the firings of the chunk of neuron ``first``.

    They are for ``gather``. If fired lists are read again, they also go to the burst's list, from ``offset[0]`` on.
    """
    recalls, keep_recalled, step = variant.recalled > 0, make_keep_recalled(variant, block), np.uint32(block)

    def keep_chunk(
        first: np.uint32,
        offset: Longs,
        burst: np.uint32,
        count: np.uint32,
        fired: Fired,
        chunks: Chunks,
        recall: Recall,
    ) -> None:
        entry = np.uint32(cuda.threadIdx.x)
        while entry < count:
            chunks.chunk_ids[np.uint32(first + entry)] = fired.ids[entry]
            chunks.chunk_potentials[np.uint32(first + entry)] = fired.potentials[entry]
            entry = np.uint32(entry + step)
        if recalls and count > np.uint32(0):
            cuda.syncthreads()
            keep_recalled(offset[0], burst, count, fired, recall)

    return cuda.jit(device=True)(keep_chunk)  # type: ignore[no-any-return]


def make_log_chunk(shard: ShardVariant, block: int) -> Callable[..., Any]:
    """``log_chunk(start, count, fired, identity, log)``: write a chunk's firings to the log, from ``start`` on."""
    id_of, step = make_id_of(shard), np.uint32(block)

    def log_chunk(start: np.int64, count: np.uint32, fired: Fired, identity: Identity, log: Log) -> None:
        entry = np.uint32(cuda.threadIdx.x)
        while entry < count:
            logged = np.uint64(np.uint64(start) + np.uint64(entry))
            log.log_ids[logged] = id_of(fired.ids[entry], identity)
            log.log_potentials[logged] = fired.potentials[entry]
            entry = np.uint32(entry + step)

    return cuda.jit(device=True)(log_chunk)  # type: ignore[no-any-return]


def make_add_up(shard: ShardVariant) -> Callable[..., Any]:
    """``add_up(burst, count, candidates, listed, steering)`` -> int64, one thread: add a chunk's counts to the tally.

    Returns the firings that other chunks added before, if the burst's firings are ``listed`` or read again; else 0.
    """
    recalls, lists = shard.recalled > 0, shard.exchanges

    def add_up(burst: np.uint32, count: np.uint32, candidates: np.int32, listed: bool, steering: Steering) -> Any:
        counted = np.uint64((np.uint64(count) << np.uint64(32)) + np.uint64(candidates))
        tally = np.uint32(burst & np.uint32(TALLIES - 1))
        if (recalls or (lists and listed)) and count > np.uint32(0):
            return np.int64(np.uint64(cuda.atomic.add(steering.tallies, tally, counted)) >> np.uint64(32))
        if counted != np.uint64(0):
            cuda.atomic.add(steering.tallies, tally, counted)
        return np.int64(0)

    return cuda.jit(device=True)(add_up)  # type: ignore[no-any-return]


def make_send_fired(shard: ShardVariant, threads: int, share: int) -> Callable[..., Any]:
    """``send_fired(count, fired, ...)``: send the rows of a chunk's firings, ``share`` threads of the block to a row.

    With tiles, and if fired lists are read again, other kernels send rows; for a calendar in several tiles
    ``make_collect_rows`` does.
    """
    variant, id_of = shard.variant, make_id_of(shard)
    sends = variant.tiles == variant.recalled == variant.calendar == 0
    has_calendar = variant.calendar > 0 and not shard.strides
    send, put_off, note_long = make_send(shard, share), make_put_off(variant, threads), make_note_long(shard, threads)
    lanes, warp, team = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(share)
    per_warp, per_block = np.uint32(WARP // share), np.uint32(threads // share)

    def send_fired(
        count: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        fired: Fired,
        identity: Identity,
        steering: Steering,
        recall: Recall,
        rows: Rows,
        chunks: Chunks,
        fcl: Fcl,
    ) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        lane = np.uint32(thread & lanes)
        part = np.uint32(lane & np.uint32(team - np.uint32(1)))
        entry = np.uint32(thread // warp * per_warp + lane // team)
        note_long(count, burst, fired, identity, rows, chunks)
        while sends and entry < count:
            source = np.uint32(id_of(fired.ids[entry], identity))
            send(source, part, slot, steering.control, rows, fcl)
            entry = np.uint32(entry + per_block)
        if has_calendar:
            put_off(count, slot, burst, fired.ids, steering, recall, rows, fcl)

    return cuda.jit(device=True)(send_fired)  # type: ignore[no-any-return]


def make_collect_rows(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``collect_rows(listed, held, count, last, slot, burst, fired, ...)``, for a calendar in several tiles.

    Appends a chunk's firings to the ``held`` sources in ``listed``, shared memory with room for two chunks. The rows of
    all are put off once there may be no room for another chunk, and after the ``last``. Returns how many sources are
    held now. All threads of the block call it.
    """
    size, step, zero = np.uint32(shard.chunk), np.uint32(threads), np.uint32(0)
    put_off = make_put_off(shard.variant, threads)

    def collect_rows(
        listed: Ids,
        held: np.uint32,
        count: np.uint32,
        last: bool,
        slot: np.uint32,
        burst: np.uint32,
        fired: Fired,
        steering: Steering,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> Any:
        entry = np.uint32(cuda.threadIdx.x)
        while entry < count:
            listed[np.uint32(held + entry)] = fired.ids[entry]
            entry = np.uint32(entry + step)
        held = np.uint32(held + count)
        if held > size or last:
            cuda.syncthreads()
            put_off(held, slot, burst, listed, steering, recall, rows, fcl)
            held = zero
        return held

    return cuda.jit(device=True)(collect_rows)  # type: ignore[no-any-return]
