"""Device function that sends one row of static contributions into the slots of the FCL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_stay, make_wait_for_last
from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Chunks, Fcl, Rows, Steering, Turn
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import CONSUMED, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.entries import make_amount_of, make_target_of
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.variant import Variant

_AT_ONCE = 4


def make_send_part(variant: Variant) -> Callable[..., Any]:
    """``send_part(source, entry, end, spacing, slot, rows, fcl)``: a part of the row of ``source``.

    Sends entries ``entry``, ``entry + spacing``, ... below ``end``. Four are loaded before the first is added, so that
    their latencies overlap. ``slot`` is that of the burst.
    """
    if variant.target_bits:
        return _make_send_words(variant)
    delayed, uniform_rows, placed, deliver = variant.rings, variant.uniform_rows, variant.placed, make_deliver(variant)
    number, offset, read_once = variant.accumulator, variant.offset, make_read_once()

    def place_of(entry: np.unsignedinteger, slot: np.uint32, following: np.uint64, rows: Rows, fcl: Fcl) -> Any:
        place = np.uint64(read_once(rows.targets, entry))
        if delayed:
            arrival = np.uint32(slot + np.uint32(read_once(rows.delays, entry)))
            if arrival >= fcl.ring:
                arrival = np.uint32(arrival - fcl.ring)
            return np.uint64(place + np.uint64(arrival) * np.uint64(fcl.stride))
        return np.uint64(place + following)

    def amount_of(entry: np.unsignedinteger, shared: Amount, rows: Rows) -> Any:
        if uniform_rows:
            return shared
        if placed:
            return number(rows.palette[read_once(rows.contributions, entry)])
        return number(read_once(rows.contributions, entry))

    place_of, amount_of = cuda.jit(device=True)(place_of), cuda.jit(device=True)(amount_of)

    def send_part(
        source: np.uint32,
        entry: np.unsignedinteger,
        end: np.unsignedinteger,
        spacing: np.uint32,
        slot: np.uint32,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        after = np.uint32(slot + np.uint32(1))
        if after == fcl.ring:
            after = np.uint32(0)
        following = np.uint64(np.uint64(after) * np.uint64(fcl.stride))
        shared = number(0)
        if uniform_rows:
            shared = number(rows.contributions[source])
        step = offset(spacing)
        while entry < end:
            second = offset(entry + step)
            third = offset(second + step)
            fourth = offset(third + step)
            place = place_of(entry, slot, following, rows, fcl)
            amount = amount_of(entry, shared, rows)
            place_2, place_3, place_4 = place, place, place
            amount_2, amount_3, amount_4 = amount, amount, amount
            if second < end:
                place_2 = place_of(second, slot, following, rows, fcl)
                amount_2 = amount_of(second, shared, rows)
            if third < end:
                place_3 = place_of(third, slot, following, rows, fcl)
                amount_3 = amount_of(third, shared, rows)
            if fourth < end:
                place_4 = place_of(fourth, slot, following, rows, fcl)
                amount_4 = amount_of(fourth, shared, rows)
            deliver(place, amount, fcl)
            if second < end:
                deliver(place_2, amount_2, fcl)
            if third < end:
                deliver(place_3, amount_3, fcl)
            if fourth < end:
                deliver(place_4, amount_4, fcl)
            entry = offset(fourth + step)

    return cuda.jit(device=True)(send_part)  # type: ignore[no-any-return]


def _make_send_words(variant: Variant) -> Callable[..., Any]:
    """``send_part`` of rows whose entries are one word: what four say is known before the first is added."""
    delayed, deliver, offset, read_once = variant.rings, make_deliver(variant), variant.offset, make_read_once()
    target_of, amount_of, number = make_target_of(variant), make_amount_of(variant), variant.accumulator
    zero = np.int32(0)

    def send_part(
        source: np.uint32,
        entry: np.unsignedinteger,
        end: np.unsignedinteger,
        spacing: np.uint32,
        slot: np.uint32,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        words = cuda.local.array(_AT_ONCE, np.int32)
        delays = cuda.local.array(_AT_ONCE, np.uint32)
        amounts = cuda.local.array(_AT_ONCE, number)
        step = offset(spacing)
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn) * step)
                words[turn], delays[turn] = zero, np.uint32(1)
                if at < end:
                    words[turn] = read_once(rows.targets, at)
                    if delayed:
                        delays[turn] = np.uint32(read_once(rows.delays, at))
            for turn in range(_AT_ONCE):
                amounts[turn] = amount_of(words[turn], rows)
            for turn in range(_AT_ONCE):
                if offset(entry + offset(turn) * step) < end:
                    arrival = np.uint32(slot + delays[turn])
                    if arrival >= fcl.ring:
                        arrival = np.uint32(arrival - fcl.ring)
                    first = np.uint64(np.uint64(arrival) * np.uint64(fcl.stride))
                    deliver(np.uint64(first + np.uint64(target_of(words[turn]))), amounts[turn], fcl)
            entry = offset(entry + offset(_AT_ONCE) * step)

    return cuda.jit(device=True)(send_part)  # type: ignore[no-any-return]


def make_bounds(variant: Variant) -> Callable[..., Any]:
    """``bounds(source, rows)``: first entry of the row of ``source``, and the one after its last."""
    offset = variant.offset
    equal_rows, length = variant.row_length > 0, offset(variant.row_length)

    def bounds_read(source: np.uint32, rows: Rows) -> Any:
        return offset(rows.offsets[source]), offset(rows.offsets[np.uint32(source + np.uint32(1))])

    def bounds_computed(source: np.uint32, rows: Rows) -> Any:
        start = offset(offset(source) * length)
        return start, offset(start + length)

    return cuda.jit(device=True)(bounds_computed if equal_rows else bounds_read)  # type: ignore[no-any-return]


def make_send_row(variant: Variant, share: int) -> Callable[..., Any]:
    """``send_row(source, part, slot, rows, fcl)``: thread ``part`` of the ``share`` that send a row."""
    send_part, bounds, offset, spacing = make_send_part(variant), make_bounds(variant), variant.offset, np.uint32(share)

    def send_row(source: np.uint32, part: np.uint32, slot: np.uint32, rows: Rows, fcl: Fcl) -> None:
        start, end = bounds(source, rows)
        send_part(source, offset(start + offset(part)), end, spacing, slot, rows, fcl)

    return cuda.jit(device=True)(send_row)  # type: ignore[no-any-return]


def make_load_piece() -> Callable[..., Any]:
    """``load_piece(item, count, chunks)`` -> uint64, uint64: piece number ``item``, if there are more; else 0.

    A piece is its source times 2^32, plus its number in the row, and where it lies: its first entry times twice
    ``LONG_ROW``, plus its length. Whoever sends rows in host memory finds them there.
    """

    def load_piece(item: np.uint32, count: np.uint32, chunks: Chunks) -> Any:
        if item < count:
            at = np.uint64(np.uint64(2) * np.uint64(item))
            return np.uint64(chunks.pieces[at]), np.uint64(chunks.pieces[at + np.uint64(1)])
        return np.uint64(0), np.uint64(0)

    return cuda.jit(device=True)(load_piece)  # type: ignore[no-any-return]


def make_send_piece(variant: Variant) -> Callable[..., Any]:
    """``send_piece(piece, where, slot, rows, fcl)``: a piece of a long row, by a block; see ``make_load_piece``."""
    send_part, offset, upper = make_send_part(variant), variant.offset, np.uint64(32)
    per_entry = np.uint64(2 * LONG_ROW)

    def send_piece(piece: np.uint64, where: np.uint64, slot: np.uint32, rows: Rows, fcl: Fcl) -> None:
        start, length = offset(where // per_entry), offset(where % per_entry)
        entry, block = offset(start + offset(cuda.threadIdx.x)), np.uint32(cuda.blockDim.x)
        send_part(np.uint32(piece >> upper), entry, offset(start + length), block, slot, rows, fcl)

    return cuda.jit(device=True)(send_piece)  # type: ignore[no-any-return]


def make_send_long(variant: Variant, send_piece: Callable[..., Any]) -> Callable[..., None]:
    """``send_long(...)``: the pieces of long rows that the burst of the turn fired, a block a piece.

    A block loads its first before it knows how many there are, and the next one while it sends one.
    """
    one, load_piece, stay = np.uint32(1), make_load_piece(), make_stay()
    wait_for_last, let_next_start = make_wait_for_last(variant.overlapped), make_let_next_start(variant.overlapped)

    def send_long(steering: Steering, chunks: Chunks, rows: Rows, fcl: Fcl, turn: Turn) -> None:
        report, item, step = steering.report, np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
        let_next_start()
        wait_for_last()
        index, origin, slot = report[INDEX], np.uint32(report[ORIGIN]), np.uint32(report[CONSUMED])
        even, odd, room = chunks.piece_counts[0], chunks.piece_counts[1], np.uint32(chunks.pieces.size // 2)
        piece, where = load_piece(item, room, chunks)
        stay()
        count = odd if np.uint32(origin + turn.place + one) & one else even
        if index != np.int64(turn.place):
            return
        while item < count:
            item = np.uint32(item + step)
            following, following_where = load_piece(item, count, chunks)
            stay()
            send_piece(piece, where, slot, rows, fcl)
            piece, where = following, following_where

    return send_long
