"""Device functions that send rows from host memory: they are read over the link in chunks of whole lines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Fcl, Rows
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.streaming import CHUNK, line_entries
from burstproof.engine.cuda.plan.variant import Variant, packed_contributions

_ALL = 0xFFFFFFFF
_TURNS = CHUNK // WARP


@cache
def make_part_of_word(bits: int) -> Callable[..., Any]:
    """``part_of_word(word, words, low, turn, lane)`` -> entry ``low + WARP * turn + lane`` of ``bits`` bits, unsigned.

    Entries are packed in 32-bit words, which consecutive lanes have loaded (``load_word``); ``word`` is this lane's, of
    the group that holds the turn's entries. The result is 0 beyond the end of ``words``.
    """
    per_word = 32 // bits
    share, mask = np.uint32(per_word), np.int32((1 << bits) - 1)
    group = np.uint32(WARP // per_word)

    def by_thread(word: np.int32, words: npt.NDArray[np.int32], low: np.int64, turn: int, lane: np.uint32) -> Any:
        place = np.uint64(low) + np.uint64(np.uint32(turn) * np.uint32(WARP) + lane)
        if place >= np.uint64(words.size) * np.uint64(share):
            return np.int32(0)
        shift = np.uint32(np.uint32(place % np.uint64(share)) * np.uint32(bits))
        return np.int32((np.int64(words[place // np.uint64(share)]) >> np.int64(shift)) & np.int64(mask))

    def by_warp(word: np.int32, words: npt.NDArray[np.int32], low: np.int64, turn: int, lane: np.uint32) -> Any:
        holder = np.uint32((np.uint32(turn) % share) * group + lane // share)
        shift = np.int32(np.uint32(lane % share) * np.uint32(bits))
        return np.int32((cuda.shfl_sync(_ALL, word, holder) >> shift) & mask)

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_load_word(bits: int) -> Callable[..., Any]:
    """``load_word(words, low, group, begin, end, lane)`` -> this lane's word of a group of WARP words.

    Words without an entry in ``begin`` to ``end`` are not read, as they would cross the link for nothing; they are 0.
    """
    per_word = 32 // bits
    share, last = np.uint64(per_word), np.uint64(per_word - 1)

    def load_word(
        words: npt.NDArray[np.int32], low: np.int64, group: int, begin: np.int64, end: np.int64, lane: np.uint32
    ) -> Any:
        place = np.uint64(np.uint64(low) // share + np.uint64(np.uint32(group) * np.uint32(WARP) + lane))
        first = np.uint64(place * share)
        if first + last >= np.uint64(begin) and first < np.uint64(end):
            return words[place]
        return np.int32(0)

    return cuda.jit(device=True)(load_word)  # type: ignore[no-any-return]


def make_send_lines(variant: Variant) -> Callable[..., Any]:
    """``send_lines(source, begin, low, end, step, lane, slot, ...)``: send a part of the row of ``source``, by a warp.

    Chunks start at ``low`` and every ``step`` entries from there; their entries from ``begin`` to ``end`` are sent.
    ``slot`` is that of the burst. A chunk is loaded whole before any of it is added. If ``low`` is a multiple of
    ``line_entries``, chunks are aligned to lines of the link, so each line crosses once. ``contributions`` are words of
    two if ``packed_contributions``, else one per entry, or one per source; ``delays`` are words of four.
    """
    delayed, deliver = variant.delays, make_deliver(variant)
    uniform_rows, paired = variant.uniform_rows, packed_contributions(variant)
    separate = not uniform_rows and not paired
    number = variant.accumulator
    load_pair, pair_part = make_load_word(16), make_part_of_word(16)
    load_bytes, byte_part = make_load_word(8), make_part_of_word(8)
    turns, sign_bit = _TURNS, np.int32(0x8000)

    def send_lines(
        source: np.uint32,
        begin: np.int64,
        low: np.int64,
        end: np.int64,
        step: np.int64,
        lane: np.uint32,
        slot: np.uint32,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        target = cuda.local.array(turns, np.uint32)
        amount = cuda.local.array(turns, number)
        inside = cuda.local.array(turns, np.uint8)
        following = np.uint32(slot + np.uint32(1))
        if following >= fcl.ring:
            following = np.uint32(0)
        shared = number(0)
        if uniform_rows and low < end:
            shared = number(rows.contributions[source])
        while low < end:
            pair_0, pair_1, bytes_0 = np.int32(0), np.int32(0), np.int32(0)
            for turn in range(turns):
                entry = np.int64(low + np.int64(turn * WARP) + np.int64(lane))
                inside[turn] = np.uint8(entry >= begin and entry < end)
                target[turn] = np.uint32(0)
                amount[turn] = shared
                if inside[turn] != 0:
                    target[turn] = rows.targets[entry]
                    if separate:
                        amount[turn] = number(rows.contributions[entry])
            if paired:
                pair_0 = load_pair(rows.contributions, low, 0, begin, end, lane)
                pair_1 = load_pair(rows.contributions, low, 1, begin, end, lane)
            if delayed:
                bytes_0 = load_bytes(rows.delays, low, 0, begin, end, lane)
            for turn in range(turns):
                place = np.uint64(target[turn])
                if paired:
                    bits = pair_part(pair_0 if turn < 2 else pair_1, rows.contributions, low, turn, lane)
                    amount[turn] = number(bits - ((bits & sign_bit) << 1))
                arrival = following
                if delayed:
                    delay = np.uint32(byte_part(bytes_0, rows.delays, low, turn, lane))
                    arrival = np.uint32(slot + delay)
                    if arrival >= fcl.ring:
                        arrival = np.uint32(arrival - fcl.ring)
                place = np.uint64(place + np.uint64(arrival) * np.uint64(fcl.stride))
                if inside[turn] != 0:
                    deliver(place, amount[turn], fcl)
            low = np.int64(low + step)

    return cuda.jit(device=True)(send_lines)  # type: ignore[no-any-return]


def make_send_over_link(variant: Variant) -> Callable[..., Any]:
    """``send(source, lane, slot, rows, fcl)``: send a row in host memory, by a warp, as ``rows.make_send_row``."""
    bounds, send_lines = make_bounds(variant), make_send_lines(variant)
    line, chunk = np.int64(line_entries(variant)), np.int64(CHUNK)

    def send(source: np.uint32, lane: np.uint32, slot: np.uint32, rows: Rows, fcl: Fcl) -> None:
        first, last = bounds(source, rows)
        begin, end = np.int64(first), np.int64(last)
        low = np.int64(begin - begin % line)
        send_lines(source, begin, low, end, chunk, lane, slot, rows, fcl)

    return cuda.jit(device=True)(send)  # type: ignore[no-any-return]


def make_send_piece_over_link(variant: Variant) -> Callable[..., Any]:
    """``send_piece(source, start, length, slot, ...)``: as ``rows.make_send_piece``, for a row in host memory.

    Each piece is moved back to the start of a line. So the last piece of a row is up to a line longer than the others.
    """
    send_lines = make_send_lines(variant)
    line, chunk = np.int64(line_entries(variant)), np.int64(CHUNK)
    lanes, warp = np.uint32(WARP - 1), np.uint32(WARP)

    def send_piece(
        source: np.uint32, start: np.uint64, length: np.uint32, slot: np.uint32, rows: Rows, fcl: Fcl
    ) -> None:
        begin, last = np.int64(rows.offsets[source]), np.int64(rows.offsets[np.uint32(source + np.uint32(1))])
        low = np.int64(np.int64(start) - begin % line)
        if np.int64(start) + np.int64(length) < last:
            last = np.int64(low + np.int64(length))
        thread = np.uint32(cuda.threadIdx.x)
        low = np.int64(low + np.int64(thread // warp) * chunk)
        step = np.int64(np.int64(np.uint32(cuda.blockDim.x) // warp) * chunk)
        lane = np.uint32(thread & lanes)
        send_lines(source, begin, low, last, step, lane, slot, rows, fcl)

    return cuda.jit(device=True)(send_piece)  # type: ignore[no-any-return]
