"""The kinds of rows behind one name: as they lie, padded, over the link, or long ones left to a kernel of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Chunks, Fcl, Longs, Rows
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.lines import make_send_over_link
from burstproof.engine.cuda.kernels.padded import make_send_padded
from burstproof.engine.cuda.kernels.rows import make_send_row
from burstproof.engine.cuda.plan.block_size import LONG_ROW, WARP_ROW
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


def make_send(shard: ShardVariant, share: int) -> Callable[..., Any]:
    """``send(source, part, slot, burst, control, rows, chunks, fcl)``: what the row of ``source`` contributes.

    This is thread ``part`` of the ``share`` that send the row; ``slot`` is that of the burst. Where rows are
    long, those of more than ``WARP_ROW`` entries are left to ``send_long`` in pieces.
    """
    variant = shard.variant
    clamps, long_rows, zero, one = variant.clamps, variant.long_rows, np.uint32(0), np.uint32(1)
    long_row, note = np.uint32(WARP_ROW), make_note()
    if shard.row_words:
        send_row = make_send_padded(shard, 1 if SIMULATED else share)
    elif variant.streamed:
        send_row = make_send_over_link(variant)
    else:
        send_row = make_send_row(variant, share)

    def send(
        source: np.uint32,
        part: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        control: Longs,
        rows: Rows,
        chunks: Chunks,
        fcl: Fcl,
    ) -> None:
        start, length = np.uint64(0), zero
        if long_rows:
            start = np.uint64(rows.offsets[source])
            length = np.uint32(np.uint64(rows.offsets[np.uint32(source + one)]) - start)
        if long_rows and length > long_row:
            if part == zero:
                note(source, start, length, burst, chunks)
        else:
            send_row(source, part, slot, rows, fcl)
        if clamps and part == zero and rows.clamped_sources[source] != 0:
            control[CLAMPED] = 1

    return cuda.jit(device=True)(send)  # type: ignore[no-any-return]


def make_note() -> Callable[..., Any]:
    """``note(source, start, length, burst, chunks)``: leave a row to ``send_long``, see ``rows.make_load_piece``."""
    most, two, parity = np.uint32(LONG_ROW), np.uint64(2), np.uint32(1)

    def note(source: np.uint32, start: np.uint64, length: np.uint32, burst: np.uint32, chunks: Chunks) -> None:
        parts = np.uint32((length + most - parity) // most)
        at = np.uint64(np.uint64(cuda.atomic.add(chunks.piece_counts, np.uint32(burst & parity), parts)) * two)
        for part in range(parts):
            piece = np.uint64((np.uint64(source) << np.uint64(32)) | np.uint64(part))
            own = min(length, most)
            chunks.pieces[at], chunks.pieces[at + np.uint64(1)] = piece, np.uint64(start * two * most + own)
            at, start, length = np.uint64(at + two), np.uint64(start + np.uint64(own)), np.uint32(length - own)

    return cuda.jit(device=True)(note)  # type: ignore[no-any-return]
