"""The kernel that sends static rows from host memory, for networks with plastic or mp-driven synapses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, Log, Rows, Steering
from burstproof.engine.cuda.kernels.control import ACTIVE, CLAMPED, COUNT, SLOT, START
from burstproof.engine.cuda.kernels.lines import make_send_lines
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.streaming import CHUNK, line_entries
from burstproof.engine.cuda.plan.variant import Variant


def make_propagate_streamed(variant: Variant) -> Callable[..., None]:
    """``propagate_streamed(...)``: send the static contributions of the burst's fired list; a warp takes a piece.

    A row has ``most_pieces`` pieces of ``piece`` entries, the last ones often empty.
    """
    clamps, send_lines = variant.clamps, make_send_lines(variant)
    lanes, chunk, line = np.uint32(WARP - 1), np.int64(CHUNK), np.int64(line_entries(variant))

    def propagate_streamed(
        steering: Steering, log: Log, rows: Rows, fcl: Fcl, piece: np.int64, most_pieces: np.int64
    ) -> None:
        control = steering.control
        if control[ACTIVE] == 0:
            return
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & lanes)
        item = np.int64(thread // np.uint32(WARP))
        items = np.int64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        start, total = control[START], control[COUNT] * most_pieces
        slot = np.uint32(control[SLOT])
        while item < total:
            row = np.int64(item // most_pieces)
            part = np.int64(item - row * most_pieces)
            source = log.log_ids[start + row]
            begin = np.int64(rows.offsets[source])
            end = np.int64(rows.offsets[np.uint32(source + np.uint32(1))])
            low = np.int64(begin - begin % line + part * piece)
            end = min(end, low + piece)
            send_lines(source, begin, low, end, chunk, lane, slot, rows, fcl)
            if clamps and part == 0 and lane == np.uint32(0) and rows.clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item += items

    return propagate_streamed
