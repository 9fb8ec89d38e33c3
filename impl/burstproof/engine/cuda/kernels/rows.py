"""Device function that sends one row of static contributions into the slots of the FCL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.control import CONSUMED, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.variant import Variant


def make_deliver(variant: Variant) -> Callable[..., Any]:
    """``deliver(place, amount, sums, flags)``: add one contribution to the cell ``place`` of the ring.

    Packed cells share a 32-bit word; none overflows, so that none reaches its neighbour.
    """
    flagged, packed = variant.flags, variant.packed_sums
    per_word = max(1, 32 // variant.sum_bits)
    shift, low, bits = np.uint64(per_word.bit_length() - 1), np.uint64(per_word - 1), np.uint32(variant.sum_bits)

    def deliver(place: Any, amount: Any, sums: Any, flags: Any) -> None:
        if packed:
            amount = np.int32(np.uint32(amount) << np.uint32(np.uint32(place & low) * bits))
            cuda.atomic.add(sums, np.uint64(place >> shift), amount)
        else:
            cuda.atomic.add(sums, place, amount)
        if flagged:
            flags[place] = np.uint8(1)

    return cuda.jit(device=True)(deliver)  # type: ignore[no-any-return]


def make_send_part(variant: Variant) -> Callable[..., Any]:
    """``send_part(source, entry, end, spacing, slot, ...)``: entries ``entry``, ``entry + spacing``, ... below ``end``.

    All are of the row of ``source``. Four are loaded before the first is added, so that their latencies overlap.
    ``slot`` is that of the burst; slots are ``stride`` cells apart.
    """
    delayed, uniform_rows, deliver = variant.delays, variant.uniform_rows, make_deliver(variant)
    number, offset = variant.accumulator, variant.offset

    def place_of(entry: Any, slot: Any, following: Any, targets: Any, delays: Any, stride: Any, ring: Any) -> Any:
        place = np.uint64(targets[entry])
        if delayed:
            arrival = np.uint32(slot + np.uint32(delays[entry]))
            if arrival >= ring:
                arrival = np.uint32(arrival - ring)
            return np.uint64(place + np.uint64(arrival) * np.uint64(stride))
        return np.uint64(place + following)

    def amount_of(entry: Any, shared: Any, contributions: Any) -> Any:
        if uniform_rows:
            return shared
        return number(contributions[entry])

    place_of, amount_of = cuda.jit(device=True)(place_of), cuda.jit(device=True)(amount_of)

    def send_part(
        source: Any,
        entry: Any,
        end: Any,
        spacing: Any,
        slot: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
    ) -> None:
        after = np.uint32(slot + np.uint32(1))
        if after == ring:
            after = np.uint32(0)
        following = np.uint64(np.uint64(after) * np.uint64(stride))
        shared = number(0)
        if uniform_rows:
            shared = number(contributions[source])
        step = offset(spacing)
        while entry < end:
            second = offset(entry + step)
            third = offset(second + step)
            fourth = offset(third + step)
            place = place_of(entry, slot, following, targets, delays, stride, ring)
            amount = amount_of(entry, shared, contributions)
            place_2, place_3, place_4 = place, place, place
            amount_2, amount_3, amount_4 = amount, amount, amount
            if second < end:
                place_2 = place_of(second, slot, following, targets, delays, stride, ring)
                amount_2 = amount_of(second, shared, contributions)
            if third < end:
                place_3 = place_of(third, slot, following, targets, delays, stride, ring)
                amount_3 = amount_of(third, shared, contributions)
            if fourth < end:
                place_4 = place_of(fourth, slot, following, targets, delays, stride, ring)
                amount_4 = amount_of(fourth, shared, contributions)
            deliver(place, amount, sums, flags)
            if second < end:
                deliver(place_2, amount_2, sums, flags)
            if third < end:
                deliver(place_3, amount_3, sums, flags)
            if fourth < end:
                deliver(place_4, amount_4, sums, flags)
            entry = offset(fourth + step)

    return cuda.jit(device=True)(send_part)  # type: ignore[no-any-return]


def make_bounds(variant: Variant) -> Callable[..., Any]:
    """``bounds(source, offsets)``: first entry of the row of ``source``, and the one after its last."""
    offset = variant.offset
    equal_rows, length = variant.row_length > 0, offset(variant.row_length)

    def bounds_read(source: Any, offsets: Any) -> Any:
        return offset(offsets[source]), offset(offsets[np.uint32(source + np.uint32(1))])

    def bounds_computed(source: Any, offsets: Any) -> Any:
        start = offset(offset(source) * length)
        return start, offset(start + length)

    return cuda.jit(device=True)(bounds_computed if equal_rows else bounds_read)  # type: ignore[no-any-return]


def make_send(variant: Variant) -> Callable[..., Any]:
    """``send(source, lane, slot, ...)``: the whole row of ``source`` by a warp, of which this is thread ``lane``."""
    send_part, bounds, offset, warp = make_send_part(variant), make_bounds(variant), variant.offset, np.uint32(WARP)

    def send(
        source: Any,
        lane: Any,
        slot: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
    ) -> None:
        start, end = bounds(source, offsets)
        send_part(
            source,
            offset(start + offset(lane)),
            end,
            warp,
            slot,
            targets,
            contributions,
            delays,
            sums,
            flags,
            stride,
            ring,
        )

    return cuda.jit(device=True)(send)  # type: ignore[no-any-return]


def make_send_piece(variant: Variant) -> Callable[..., Any]:
    """``send_piece(source, part, slot, ...)``: piece ``part`` of ``LONG_ROW`` entries of a long row, by a block."""
    send_part, offset = make_send_part(variant), variant.offset
    length, one = offset(LONG_ROW), np.uint32(1)

    def send_piece(
        source: Any,
        part: Any,
        slot: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
    ) -> None:
        start = offset(offsets[source] + offset(part) * length)
        end = min(offset(start + length), offsets[np.uint32(source + one)])
        entry, block = offset(start + offset(cuda.threadIdx.x)), np.uint32(cuda.blockDim.x)
        send_part(source, entry, end, block, slot, targets, contributions, delays, sums, flags, stride, ring)

    return cuda.jit(device=True)(send_piece)  # type: ignore[no-any-return]


def make_send_long(send_piece: Callable[..., Any]) -> Callable[..., None]:
    """``send_long(...)``: the pieces of long rows that the burst at ``place`` fired, a block a piece.

    ``pieces`` holds the source times 2^32, plus the number of the piece of ``LONG_ROW`` entries in its row;
    ``piece_counts`` how many there are, in bursts of even and of odd number.
    """
    one, low = np.uint32(1), np.uint64(0xFFFFFFFF)

    def send_long(
        report: Any,
        piece_counts: Any,
        pieces: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
        place: Any,
    ) -> None:
        if report[INDEX] != np.int64(place):
            return
        burst = np.uint32(np.uint32(report[ORIGIN]) + place + one)
        slot = np.uint32(report[CONSUMED])
        count = piece_counts[np.uint32(burst & one)]
        item = np.uint32(cuda.blockIdx.x)
        while item < count:
            piece = pieces[item]
            source = np.uint32(piece >> np.uint64(32))
            part = np.uint32(piece & low)
            send_piece(source, part, slot, offsets, targets, contributions, delays, sums, flags, stride, ring)
            item = np.uint32(item + np.uint32(cuda.gridDim.x))

    return send_long
