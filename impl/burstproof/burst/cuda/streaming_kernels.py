"""Kernels that send rows of synapses straight from host memory, in chunks of whole lines of the link."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import types

from burstproof.burst.cuda.control import ACTIVE, CLAMPED, COUNT, SLOT, START
from burstproof.burst.cuda.kernels import KernelSpec, catalogue
from burstproof.burst.cuda.kernels_propagate import make_propagate_computed
from burstproof.burst.cuda.kernels_rows import make_deliver
from burstproof.burst.cuda.streaming import CHUNK, line_entries, packed_contributions
from burstproof.burst.cuda.variant import Variant
from burstproof.burst.cuda.warp import WARP
from burstproof.kernels.numba_cuda import SIMULATED, cuda

_ALL = 0xFFFFFFFF
_TURNS = CHUNK // WARP


def streaming_catalogue(variant: Variant) -> tuple[KernelSpec, ...]:
    """Every kernel that a network of ``variant`` launches if its synapses lie in host memory."""
    if variant.fused is not None:
        return (*catalogue(variant), _sending(variant))
    return tuple(_over_the_link(spec, variant) for spec in catalogue(variant))


def _sending(variant: Variant) -> KernelSpec:
    return KernelSpec("propagate_streamed", make_propagate_streamed(variant), _signature(variant))


def _over_the_link(spec: KernelSpec, variant: Variant) -> KernelSpec:
    """``spec``, or what takes its place where rows are read from host memory."""
    if spec.name == "propagate":
        return _sending(variant)
    if spec.name == "propagate_computed":
        return KernelSpec(spec.name, make_propagate_computed(variant, aligned=True), spec.signature)
    return spec


def _signature(variant: Variant) -> Any:
    def array(dtype: Any) -> Any:
        return types.Array(dtype, 1, "C")

    typed = {16: types.int16, 32: types.int32, 64: types.int64}[variant.contribution_bits]
    number = types.int32 if variant.accumulator_bits == 32 else types.int64
    rows = (
        array(types.uint32 if variant.offset_bits == 32 else types.uint64),
        array(types.uint32),
        array(types.int32 if packed_contributions(variant) else typed),
        array(types.int32 if variant.delays else types.uint8),
        array(types.uint8),
    )
    slots = (array(number), array(types.uint8), types.uint32, types.uint32)
    return types.void(array(types.int64), array(types.uint32), *rows, *slots, types.int64, types.int64)


@cache
def make_part_of_word(bits: int) -> Callable[..., Any]:
    """``part_of_word(word, words, low, turn, lane)`` -> entry ``low + WARP * turn + lane`` of ``bits`` bits, unsigned.

    The words of a chunk were loaded by the lanes one after another; ``word`` is what this lane has of those that hold
    the turn's entries. 0 for what lies beyond ``words``.
    """
    per_word = 32 // bits
    share, mask = np.uint32(per_word), np.int32((1 << bits) - 1)
    group = np.uint32(WARP // per_word)

    def by_thread(word: Any, words: Any, low: Any, turn: Any, lane: Any) -> Any:
        place = np.uint64(low) + np.uint64(np.uint32(turn) * np.uint32(WARP) + lane)
        if place >= np.uint64(words.size) * np.uint64(share):
            return np.int32(0)
        shift = np.uint32(np.uint32(place % np.uint64(share)) * np.uint32(bits))
        return np.int32((np.int64(words[place // np.uint64(share)]) >> np.int64(shift)) & np.int64(mask))

    def by_warp(word: Any, words: Any, low: Any, turn: Any, lane: Any) -> Any:
        holder = np.uint32((np.uint32(turn) % share) * group + lane // share)
        shift = np.int32(np.uint32(lane % share) * np.uint32(bits))
        return np.int32((cuda.shfl_sync(_ALL, word, holder) >> shift) & mask)

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_load_word(bits: int) -> Callable[..., Any]:
    """``load_word(words, low, group, begin, end, lane)`` -> this lane's word of a group of WARP, 0 where not needed.

    Words without an entry in ``begin`` to ``end`` are left alone: they would cross the link for nothing.
    """
    per_word = 32 // bits
    share, last = np.uint64(per_word), np.uint64(per_word - 1)

    def load_word(words: Any, low: Any, group: Any, begin: Any, end: Any, lane: Any) -> Any:
        place = np.uint64(np.uint64(low) // share + np.uint64(np.uint32(group) * np.uint32(WARP) + lane))
        first = np.uint64(place * share)
        if first + last >= np.uint64(begin) and first < np.uint64(end):
            return words[place]
        return np.int32(0)

    return cuda.jit(device=True)(load_word)  # type: ignore[no-any-return]


def make_propagate_streamed(variant: Variant) -> Callable[..., None]:
    """``propagate_streamed(...)``: static contributions of everything in the burst's fired list, a warp per piece.

    Rows are read in the order of the list: where it ascends, what is read at a time lies close together. A chunk is
    loaded whole before any of it is added, from addresses that are multiples of the link's lines, so that each line
    crosses once. ``contributions`` are words of two if ``packed_contributions``, else one per entry, or one per source;
    ``delays`` are words of four. Slots are ``stride`` cells apart.
    """
    delayed, clamps, deliver = variant.delays, variant.clamps, make_deliver(variant)
    uniform_rows, paired = variant.uniform_rows, packed_contributions(variant)
    separate = not uniform_rows and not paired
    number = variant.accumulator
    load_pair, pair_part = make_load_word(16), make_part_of_word(16)
    load_bytes, byte_part = make_load_word(8), make_part_of_word(8)
    lanes, chunk, line = np.uint32(WARP - 1), np.int64(CHUNK), np.int64(line_entries(variant))
    turns = _TURNS
    sign_bit = np.int32(0x8000)

    def propagate_streamed(
        control: Any,
        log_ids: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        clamped_sources: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
        piece: Any,
        pieces: Any,
    ) -> None:
        if control[ACTIVE] == 0:
            return
        target = cuda.local.array(turns, np.uint32)
        amount = cuda.local.array(turns, number)
        inside = cuda.local.array(turns, np.uint8)
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & lanes)
        item = np.int64(thread // np.uint32(WARP))
        items = np.int64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        start, total = control[START], control[COUNT] * pieces
        slot = np.uint32(control[SLOT])
        following = np.uint32(slot + np.uint32(1))
        if following >= ring:
            following = np.uint32(0)
        while item < total:
            row = np.int64(item // pieces)
            part = np.int64(item - row * pieces)
            source = log_ids[start + row]
            begin = np.int64(offsets[source])
            end = np.int64(offsets[np.uint32(source + np.uint32(1))])
            low = np.int64(begin - begin % line + part * piece)
            end = min(end, low + piece)
            shared = number(0)
            if uniform_rows and low < end:
                shared = number(contributions[source])
            while low < end:
                pair_0, pair_1, bytes_0 = np.int32(0), np.int32(0), np.int32(0)
                for turn in range(turns):
                    entry = np.int64(low + np.int64(turn * WARP) + np.int64(lane))
                    inside[turn] = np.uint8(entry >= begin and entry < end)
                    target[turn] = np.uint32(0)
                    amount[turn] = shared
                    if inside[turn] != 0:
                        target[turn] = targets[entry]
                        if separate:
                            amount[turn] = number(contributions[entry])
                if paired:
                    pair_0 = load_pair(contributions, low, 0, begin, end, lane)
                    pair_1 = load_pair(contributions, low, 1, begin, end, lane)
                if delayed:
                    bytes_0 = load_bytes(delays, low, 0, begin, end, lane)
                for turn in range(turns):
                    place = np.uint64(target[turn])
                    if paired:
                        bits = pair_part(pair_0 if turn < 2 else pair_1, contributions, low, turn, lane)
                        amount[turn] = number(bits - ((bits & sign_bit) << 1))
                    arrival = following
                    if delayed:
                        delay = np.uint32(byte_part(bytes_0, delays, low, turn, lane))
                        arrival = np.uint32(slot + delay)
                        if arrival >= ring:
                            arrival = np.uint32(arrival - ring)
                    place = np.uint64(place + np.uint64(arrival) * np.uint64(stride))
                    if inside[turn] != 0:
                        deliver(place, amount[turn], sums, flags)
                low = np.int64(low + chunk)
            if clamps and part == 0 and lane == np.uint32(0) and clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item += items

    return propagate_streamed
