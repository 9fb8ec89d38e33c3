"""Padded rows (ELLPACK, ``plan.padded_rows``): the device function that sends one, and a kernel that generates them.

A row's place follows from its source, so its threads load header and entries at once, two words each. That is one
memory latency; with offsets, contribution and entries it would be two or three, one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Amount, Draw, Fcl, Ids, Own, Rows, Scale
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.generate import ROW_THREADS, make_place, make_ranks
from burstproof.engine.cuda.kernels.propagate import make_quantise
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.plan.padded_rows import HEADER_AND_LINK, UNIT
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.network.synthetic.build import SyntheticSpec, make_generator

_ALL = 0xFFFFFFFF
_LENGTH = 0xFFFF
_AMOUNT_SHIFT = 16


def make_send_padded(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``send_padded(source, part, slot, rows, fcl)``: as ``rows.make_send_row``; padded rows have no delays."""
    variant = shard.variant
    deliver, number = make_deliver(variant), variant.accumulator
    words, pairs = np.uint32(shard.row_words), np.uint64(shard.row_words // 2)
    per_thread, share = shard.row_words // 2 // threads, np.uint32(threads)
    zero, one, two, half = np.uint32(0), np.uint32(1), np.uint32(2), np.uint64(32)
    low, amount_shift = np.uint32(_LENGTH), np.int32(_AMOUNT_SHIFT)
    kept_of_long, unit = np.uint32(shard.row_words - HEADER_AND_LINK), np.uint64(UNIT // 2)

    def send_both(
        both: np.uint64, first: np.uint32, length: np.uint32, following: np.uint64, amount: Amount, fcl: Fcl
    ) -> None:
        """Deliver to the two targets of ``both``, which are entries ``first`` and ``first + 1`` of ``length``."""
        if first < length:
            deliver(np.uint64(np.uint64(np.uint32(both)) + following), amount, fcl)
        if np.uint32(first + one) < length:
            deliver(np.uint64(np.uint64(both >> half) + following), amount, fcl)

    send_both = cuda.jit(device=True)(send_both)

    def send_padded(source: np.uint32, part: np.uint32, slot: np.uint32, rows: Rows, fcl: Fcl) -> None:
        targets = rows.targets
        held = cuda.local.array(per_thread, np.uint64)
        at = np.uint64(np.uint64(source) * pairs)
        header = np.uint32(targets[at])
        for p in range(per_thread):
            held[p] = targets[np.uint64(at + np.uint64(np.uint32(part + np.uint32(p) * share)))]
        after = np.uint32(slot + one)
        if after == fcl.ring:
            after = zero
        following = np.uint64(np.uint64(after) * np.uint64(fcl.stride))
        length, amount = np.uint32(header & low), number(np.int32(header) >> amount_shift)
        inside = length
        if length >= words:
            inside = kept_of_long
        for p in range(per_thread):
            entry = np.uint32(np.uint32(part + np.uint32(p) * share) * two)
            if entry > zero:
                # Word 0 is the header, so word w is entry w - 1.
                send_both(held[p], np.uint32(entry - one), inside, following, amount, fcl)
            elif inside > zero:
                deliver(np.uint64(np.uint64(held[p] >> half) + following), amount, fcl)
        if length >= words:
            link = np.uint64(np.uint32(targets[np.uint64(at + pairs - np.uint64(1))]))
            rest = np.uint64(link * unit)
            pair = np.uint32(part)
            left = np.uint32(length - inside)
            while np.uint32(pair * two) < left:
                both = targets[np.uint64(rest + np.uint64(pair))]
                send_both(both, np.uint32(pair * two), left, following, amount, fcl)
                pair = np.uint32(pair + share)

    return cuda.jit(device=True)(send_padded)  # type: ignore[no-any-return]


def fill_padded_kernel(spec: SyntheticSpec, words: int, strategy: str) -> KernelSpec:
    """``fill`` writes a shard's padded rows, of the lengths that the survey counted; rests are in any order."""
    return kernel_spec("fill", _make_fill(spec, words, strategy))


def _make_fill(spec: SyntheticSpec, words: int, strategy: str) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, type_of = generator.target, generator.weight, generator.type
    place_of, ranks, quantise = make_place(strategy), make_ranks(strategy), make_quantise()
    psp = np.float32(spec.postsynaptic_potential)
    width = np.uint32(ROW_THREADS)
    zero, one = np.uint32(0), np.uint32(1)
    row_words, unit, link_word = np.uint32(words), np.uint32(UNIT), np.uint64(words - 2)
    kept_of_long = np.uint32(words - HEADER_AND_LINK)

    def header_of(source: np.uint32, length: np.uint32, scale: Scale) -> Any:
        """The row's header: its length, and the contribution that all its entries share."""
        units, _ = quantise(np.float32(weight_of(source, zero) * psp), scale)
        if type_of(source, zero) != 0:
            units = -units
        return np.int32(np.uint32(np.uint32(units) << np.uint32(_AMOUNT_SHIFT)) | length)

    def rest_of(length: np.uint32, lane: np.uint32, following: Ids) -> Any:
        """Reserve room for the rest of a long row; its place in units, the same for all threads of the warp."""
        start = np.int32(0)
        if lane == zero:
            units = np.uint32(np.uint32(length + unit - one) // unit)
            start = np.int32(cuda.atomic.add(following, 0, units))
        return start if SIMULATED else cuda.shfl_sync(_ALL, start, 0)

    header_of, rest_of = cuda.jit(device=True)(header_of), cuda.jit(device=True)(rest_of)

    def fill(
        row_counts: Ids, table: npt.NDArray[np.int32], following: Ids, scale: Scale, draw: Draw, members: Own
    ) -> None:
        fan = draw.fan
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(width - one))
        source = np.uint64(thread // width)
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // width)
        while source < draw.sources:
            row = np.uint64(source * np.uint64(row_words))
            length = np.uint32(row_counts[source])
            inside, rest = length, np.uint64(0)
            if length >= row_words:
                inside = kept_of_long
                link = rest_of(np.uint32(length - inside), lane, following)
                rest = np.uint64(np.uint64(np.uint32(link)) * np.uint64(unit))
                if lane == zero:
                    table[np.uint64(row + link_word)] = link
            if lane == zero:
                table[row] = header_of(np.uint32(source), length, scale)
            kept = zero
            start = zero
            while start < fan:
                item = np.uint32(start + lane)
                own, place = False, zero
                if item < fan:
                    own, place = place_of(target_of(np.uint32(source), item), members)
                before, together = ranks(own, lane)
                if own:
                    entry = np.uint32(kept + before)
                    at = np.uint64(row + np.uint64(one) + np.uint64(entry))
                    if entry >= inside:
                        at = np.uint64(rest + np.uint64(np.uint32(entry - inside)))
                    table[at] = np.int32(place)
                kept = np.uint32(kept + together)
                start = np.uint32(start + width)
            source = np.uint64(source + sources)

    return fill
