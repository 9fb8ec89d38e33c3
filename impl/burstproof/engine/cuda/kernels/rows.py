"""Device functions that add the static contributions of a row, or of a piece of one, to the slots of the FCL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Fcl, Rows
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.entries import make_amount_of, make_target_of
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.plan.variant import Variant, in_columns

_AT_ONCE = 4


def make_send_part(variant: Variant) -> Callable[..., Any]:
    """``send_part(source, entry, end, spacing, slot, rows, fcl)``: send a part of the row of ``source``.

    The part is entries ``entry``, ``entry + spacing``, ... below ``end``; ``slot`` is that of the burst. A thread loads
    all columns of four entries before it uses the first, so that their latencies overlap.
    """
    delayed, uniform_rows, columns = variant.rings, variant.uniform_rows, in_columns(variant)
    equal_rows = variant.equal_rows
    target, stored, number, offset = variant.target, variant.read_contribution, variant.accumulator, variant.offset
    target_of, contribution_of, read_once = make_target_of(variant), _make_contribution_of(variant), make_read_once()
    deliver = make_deliver(variant)

    def send_part(
        source: np.uint32,
        entry: np.unsignedinteger,
        end: np.unsignedinteger,
        spacing: np.uint32,
        slot: np.uint32,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        words, delays = cuda.local.array(_AT_ONCE, target), cuda.local.array(_AT_ONCE, np.uint32)
        values, amounts = cuda.local.array(_AT_ONCE, stored), cuda.local.array(_AT_ONCE, number)
        step, shared = offset(spacing), number(0)
        if equal_rows:
            shared = number(rows.common_contribution)
        elif uniform_rows:
            shared = number(rows.contributions[source])
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn) * step)
                words[turn], values[turn], delays[turn] = target(0), stored(0), np.uint32(1)
                if at < end:
                    words[turn] = read_once(rows.targets, at)
                    if columns:
                        values[turn] = read_once(rows.contributions, at)
                    if delayed:
                        delays[turn] = np.uint32(read_once(rows.delays, at))
            for turn in range(_AT_ONCE):
                amounts[turn] = contribution_of(words[turn], values[turn], shared, rows)
            for turn in range(_AT_ONCE):
                if offset(entry + offset(turn) * step) < end:
                    arrival = np.uint32(slot + delays[turn])
                    if arrival >= fcl.ring:
                        arrival = np.uint32(arrival - fcl.ring)
                    first = np.uint64(np.uint64(arrival) * np.uint64(fcl.stride))
                    deliver(np.uint64(first + np.uint64(target_of(words[turn]))), amounts[turn], fcl)
            entry = offset(entry + offset(_AT_ONCE) * step)

    return cuda.jit(device=True)(send_part)  # type: ignore[no-any-return]


def _make_contribution_of(variant: Variant) -> Callable[..., Any]:
    """``contribution_of(word, value, shared, rows)``: the contribution of an entry, in the accumulator's type.

    It comes from the entry's ``word``, from its ``value`` in the column of contributions, or is ``shared`` by the row.
    """
    number, in_word = variant.accumulator, make_amount_of(variant)

    def of_row(word: Any, value: Any, shared: Amount, rows: Rows) -> Any:
        return shared

    def of_column(word: Any, value: Any, shared: Amount, rows: Rows) -> Any:
        return number(value)

    def looked_up(word: Any, value: Any, shared: Amount, rows: Rows) -> Any:
        return number(rows.palette[value])

    def of_word(word: Any, value: Any, shared: Amount, rows: Rows) -> Any:
        return in_word(word, rows)

    if variant.uniform_rows:
        made = of_row
    elif variant.target_bits:
        made = of_word
    else:
        made = looked_up if variant.placed else of_column
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]


def make_bounds(variant: Variant) -> Callable[..., Any]:
    """``bounds(source, rows)`` -> (first entry, end) of the row of ``source``."""
    offset = variant.offset
    equally_long, length = variant.row_length > 0, offset(variant.row_length)

    def bounds_read(source: np.uint32, rows: Rows) -> Any:
        return offset(rows.offsets[source]), offset(rows.offsets[np.uint32(source + np.uint32(1))])

    def bounds_computed(source: np.uint32, rows: Rows) -> Any:
        start = offset(offset(source) * length)
        return start, offset(start + length)

    return cuda.jit(device=True)(bounds_computed if equally_long else bounds_read)  # type: ignore[no-any-return]


def make_send_row(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_row(source, part, slot, rows, fcl)``: send a row, as thread ``part`` of ``share``."""
    send_part, bounds, offset, spacing = make_send_part(variant), make_bounds(variant), variant.offset, np.uint32(share)

    def send_row(source: np.uint32, part: np.uint32, slot: np.uint32, rows: Rows, fcl: Fcl) -> None:
        start, end = bounds(source, rows)
        send_part(source, offset(start + offset(part)), end, spacing, slot, rows, fcl)

    return cuda.jit(device=True)(send_row)  # type: ignore[no-any-return]


def make_send_piece(variant: Variant) -> Callable[..., Any]:
    """``send_piece(source, start, length, slot, rows, fcl)``: send ``length`` entries from ``start`` on, by a block."""
    send_part, offset = make_send_part(variant), variant.offset

    def send_piece(
        source: np.uint32, start: np.uint64, length: np.uint32, slot: np.uint32, rows: Rows, fcl: Fcl
    ) -> None:
        entry, block = offset(offset(start) + offset(cuda.threadIdx.x)), np.uint32(cuda.blockDim.x)
        send_part(source, entry, offset(offset(start) + offset(length)), block, slot, rows, fcl)

    return cuda.jit(device=True)(send_piece)  # type: ignore[no-any-return]
