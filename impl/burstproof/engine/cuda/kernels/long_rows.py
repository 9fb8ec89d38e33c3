"""Long rows: the blocks of a burst list them in pieces, and further blocks of the same kernel, *helpers*, send these.

A row of thousands of entries is too much for a warp, and a separate kernel would start only after the burst has ended.
Blocks reserve places in the list with an atomic addition and store a piece as two words; a helper polls its next place.
Both words contain the burst number, so a helper that reads the right numbers has the right piece: no fence is needed.
Once all pieces of a chunk have places, the chunk counts as noted. A helper ends when all chunks are noted and no piece
is left for it. Helpers are the last blocks of the grid: they start after all blocks with chunks, so what they wait for
is running. In the CUDA simulator the only block helps after its chunks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_stay
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Chunks, Fcl, Identity, Rows
from burstproof.engine.cuda.kernels.consume import PIECES, Fired
from burstproof.engine.cuda.kernels.control import NOTED, PROGRESS_SIDE
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.kernels.lines import make_send_piece_over_link
from burstproof.engine.cuda.kernels.relay import make_relay
from burstproof.engine.cuda.kernels.rows import make_send_piece
from burstproof.engine.cuda.plan.block_size import PIECE
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant

_CHUNK_SHIFT = 32
"""Bit from which on a burst's progress counts the chunks that are noted; the bits below count their pieces."""
_START_SHIFT, _BURST_SHIFT = 11, 48
"""Bits of a piece's second word: its length, from the first number on its first entry, from the second the burst."""


def make_note_long(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``note_long(count, burst, fired, identity, rows, chunks)``: list the pieces of a chunk's long rows.

    ``count`` neurons of the chunk fired. All threads of the block call it. It does nothing where no row is long.
    """
    note, id_of, one = _make_note(), make_id_of(shard), np.uint32(1)
    long_row, block, spacing = np.uint32(shard.variant.long_rows), np.uint32(threads), np.uint32(PROGRESS_SIDE)
    noted, a_chunk = np.uint32(NOTED), np.int64(1 << _CHUNK_SHIFT)

    def note_long(
        count: np.uint32, burst: np.uint32, fired: Fired, identity: Identity, rows: Rows, chunks: Chunks
    ) -> None:
        entry = np.uint32(cuda.threadIdx.x)
        while entry < count:
            source = np.uint32(id_of(fired.ids[entry], identity))
            start = np.uint64(rows.offsets[source])
            length = np.uint32(np.uint64(rows.offsets[np.uint32(source + one)]) - start)
            if length > long_row:
                cuda.atomic.add(fired.found, PIECES, np.int32(note(source, start, length, burst, chunks)))
            entry = np.uint32(entry + block)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            pieces = np.int64(fired.found[PIECES])
            cuda.atomic.add(chunks.progress, np.uint32((burst & one) * spacing + noted), pieces + a_chunk)

    def nothing(
        count: np.uint32, burst: np.uint32, fired: Fired, identity: Identity, rows: Rows, chunks: Chunks
    ) -> None:
        return

    return cuda.jit(device=True)(note_long if shard.variant.long_rows else nothing)  # type: ignore[no-any-return]


def _make_note() -> Callable[..., Any]:
    """``note(source, start, length, burst, chunks)`` -> int64 pieces of the row, each stored as a pair of words."""
    most, one, store = np.uint32(PIECE), np.uint32(1), make_relay().pair
    half, start_shift, burst_shift = np.uint64(32), np.uint64(_START_SHIFT), np.uint64(_BURST_SHIFT)
    spacing = np.uint32(PROGRESS_SIDE)

    def note(source: np.uint32, start: np.uint64, length: np.uint32, burst: np.uint32, chunks: Chunks) -> Any:
        parts = np.int64((length + most - one) // most)
        at = np.int64(cuda.atomic.add(chunks.progress, np.uint32((burst & one) * spacing), parts))
        origin = np.uint64((np.uint64(source) << half) | np.uint64(burst))
        while length > np.uint32(0):
            own = min(length, most)
            extent = np.uint64((start << start_shift) | np.uint64(own) | (np.uint64(burst) << burst_shift))
            store(chunks.pieces, np.int64(2) * at, np.int64(origin), np.int64(extent))
            at, start, length = np.int64(at + np.int64(1)), np.uint64(start + np.uint64(own)), np.uint32(length - own)
        return parts

    return cuda.jit(device=True)(note)  # type: ignore[no-any-return]


def _make_send_words(variant: Variant) -> Callable[..., Any]:
    """``send_words(origin, extent, slot, rows, fcl)``: send the piece that these two words describe, by a block."""
    send_piece = (make_send_piece_over_link if variant.streamed else make_send_piece)(variant)
    half, shift, length_of = np.uint64(32), np.uint64(_START_SHIFT), np.uint64((1 << _START_SHIFT) - 1)
    start_of = np.uint64((1 << (_BURST_SHIFT - _START_SHIFT)) - 1)

    def send_words(origin: np.uint64, extent: np.uint64, slot: np.uint32, rows: Rows, fcl: Fcl) -> None:
        start = np.uint64((extent >> shift) & start_of)
        send_piece(np.uint32(origin >> half), start, np.uint32(extent & length_of), slot, rows, fcl)

    return cuda.jit(device=True)(send_words)  # type: ignore[no-any-return]


def make_help(shard: ShardVariant) -> Callable[..., Any]:
    """``help_out(burst, slot, items, rows, chunks, fcl)``: as a helper, send pieces until none is left.

    ``items`` is the number of chunks. All threads of the grid call it. It does nothing where no row is long, or in a
    block that had a chunk, except that the first block resets the progress of the next burst.
    """
    next_piece, send_words, one = _make_next_piece(), _make_send_words(shard.variant), np.uint32(1)
    clear_progress = make_clear_progress()

    def help_out(burst: np.uint32, slot: np.uint32, items: np.uint32, rows: Rows, chunks: Chunks, fcl: Fcl) -> None:
        found = cuda.shared.array(2, np.uint64)
        item, step = np.uint32(0), one
        if not SIMULATED:
            item, step = np.uint32(cuda.blockIdx.x) - items - one, np.uint32(cuda.gridDim.x) - items - one
        if cuda.grid(1) == 0:
            clear_progress(np.uint32(burst + one), chunks)
        going = SIMULATED or np.uint32(cuda.blockIdx.x) > items
        while going:
            if cuda.threadIdx.x == 0:
                found[0], found[1] = next_piece(item, burst, items, chunks)
            cuda.syncthreads()
            origin, extent = found[0], found[1]
            going = extent != np.uint64(0)
            if going:
                send_words(origin, extent, slot, rows, fcl)
            cuda.syncthreads()
            item = np.uint32(item + step)

    def nothing(burst: np.uint32, slot: np.uint32, items: np.uint32, rows: Rows, chunks: Chunks, fcl: Fcl) -> None:
        return

    return cuda.jit(device=True)(help_out if shard.variant.long_rows else nothing)  # type: ignore[no-any-return]


def _make_next_piece() -> Callable[..., Any]:
    """``next_piece(item, burst, items, chunks)`` -> words of piece ``item`` once stored; zeros if none is."""
    glance, one, half, shift = make_relay().glance, np.uint32(1), np.uint64(32), np.uint64(_BURST_SHIFT)
    of_burst, low = np.uint64((1 << (64 - _BURST_SHIFT)) - 1), np.uint64(0xFFFFFFFF)
    spacing, noted, nothing = np.int64(PROGRESS_SIDE), np.int64(NOTED), np.uint64(0)

    def next_piece(item: np.uint32, burst: np.uint32, items: np.uint32, chunks: Chunks) -> Any:
        count = np.int64(burst & one) * spacing
        mine, room = np.uint64(np.uint64(burst) & of_burst), np.uint32(chunks.pieces.size // 2)
        at = np.int64(2) * np.int64(min(item, np.uint32(room - one)))
        while True:
            origin, extent = np.uint64(glance(chunks.pieces, at)), np.uint64(glance(chunks.pieces, at + 1))
            done = np.uint64(glance(chunks.progress, count + noted))
            is_there = np.uint32(origin & low) == burst and np.uint64(extent >> shift) == mine and extent != nothing
            if item < room and is_there:
                return origin, extent
            if np.uint32(done >> half) == items and item >= np.uint32(done & low):
                return nothing, nothing

    return cuda.jit(device=True)(next_piece)  # type: ignore[no-any-return]


def make_clear_progress() -> Callable[..., Any]:
    """``clear_progress(burst, chunks)``, one thread: reset the progress of ``burst``."""
    one, spacing, noted = np.uint32(1), np.uint32(PROGRESS_SIDE), np.uint32(NOTED)

    def clear_progress(burst: np.uint32, chunks: Chunks) -> None:
        place = np.uint32((burst & one) * spacing)
        chunks.progress[place], chunks.progress[np.uint32(place + noted)] = np.int64(0), np.int64(0)

    return cuda.jit(device=True)(clear_progress)  # type: ignore[no-any-return]


def make_send_noted(variant: Variant) -> Callable[..., Any]:
    """``send_noted(burst, slot, rows, chunks, fcl)``: send all pieces of a burst once all are noted, by all blocks.

    A block loads its next piece while it sends one.
    """
    send_words, stay, one, two = _make_send_words(variant), make_stay(), np.uint32(1), np.uint64(2)
    spacing = np.uint32(PROGRESS_SIDE)

    def load(item: np.uint32, count: np.uint32, chunks: Chunks) -> Any:
        if item < count:
            at = np.uint64(two * np.uint64(item))
            return np.uint64(chunks.pieces[at]), np.uint64(chunks.pieces[at + np.uint64(1)])
        return np.uint64(0), np.uint64(0)

    load = cuda.jit(device=True)(load)

    def send_noted(burst: np.uint32, slot: np.uint32, rows: Rows, chunks: Chunks, fcl: Fcl) -> None:
        item, step = np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
        origin, extent = load(item, np.uint32(chunks.pieces.size // 2), chunks)
        stay()
        count = np.uint32(chunks.progress[np.uint32((burst & one) * spacing)])
        while item < count:
            item = np.uint32(item + step)
            next_origin, next_extent = load(item, count, chunks)
            stay()
            send_words(origin, extent, slot, rows, fcl)
            origin, extent = next_origin, next_extent

    return cuda.jit(device=True)(send_noted)  # type: ignore[no-any-return]
