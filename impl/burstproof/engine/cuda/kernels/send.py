"""Sends a row of any format: plain, padded (ELLPACK) or in host memory. Long rows are left to ``kernels.long_rows``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Fcl, Longs, Rows
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.lines import make_send_over_link
from burstproof.engine.cuda.kernels.padded import make_send_padded
from burstproof.engine.cuda.kernels.rows import make_send_row
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


def make_send(shard: ShardVariant, share: int) -> Callable[..., Any]:
    """``send(source, part, slot, control, rows, fcl)``: send the row of ``source``, as thread ``part`` of ``share``.

    ``slot`` is that of the burst. Rows of more entries than a warp sends are left to helpers (``kernels.long_rows``).
    """
    variant = shard.variant
    clamps, zero, one = variant.clamps, np.uint32(0), np.uint32(1)
    long_rows, longest = variant.long_rows > 0, np.uint32(variant.long_rows)
    if shard.row_words:
        send_row = make_send_padded(shard, 1 if SIMULATED else share)
    elif variant.streamed:
        send_row = make_send_over_link(variant)
    else:
        send_row = make_send_row(variant, share)

    def send(source: np.uint32, part: np.uint32, slot: np.uint32, control: Longs, rows: Rows, fcl: Fcl) -> None:
        length = zero
        if long_rows:
            length = np.uint32(rows.offsets[np.uint32(source + one)] - rows.offsets[source])
        if length <= longest:
            send_row(source, part, slot, rows, fcl)
        if clamps and part == zero and rows.clamped_sources[source] != 0:
            control[CLAMPED] = 1

    return cuda.jit(device=True)(send)  # type: ignore[no-any-return]
