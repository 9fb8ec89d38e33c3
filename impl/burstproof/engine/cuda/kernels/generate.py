"""Kernels that generate the synapses of a synthetic network on the device, in two passes: survey, then fill (BE-3).

Every device draws all synapses and keeps those onto its own neurons. ``strategy`` says which neurons are its own. It is
``None`` for all of them: then all rows have the same length, and no counts are needed to place them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Doubles, Draw, Ids, Longs, Own, Rows, Scale
from burstproof.engine.cuda.kernels.entries import make_entry_of
from burstproof.engine.cuda.kernels.propagate import make_quantise
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.network.synthetic.build import SyntheticSpec, make_generator
from burstproof.network.synthetic.laws import integer_law

DELAY, DIGITS = 0, 1
"""Indices in the survey's summary: largest delay; least k for which all contributions are multiples of 2^-k."""
SUMMARY_LENGTH = 2

ROW_THREADS = 1 if SIMULATED else WARP
"""Threads that draw one row together."""

_ALL = 0xFFFFFFFF


def make_place(strategy: str | None) -> Callable[..., Any]:
    """``place(target, members)`` -> (whether the device has the target, the target's index there)."""

    def anywhere(target: np.uint32, members: Own) -> Any:
        return True, target

    def in_range(target: np.uint32, members: Own) -> Any:
        place = np.uint32(target - members.first)
        return target >= members.first and place < members.number, place

    def in_turn(target: np.uint32, members: Own) -> Any:
        distance = np.uint32(target - members.first)
        place = np.uint32(distance // members.step)
        return target >= members.first and distance % members.step == 0 and place < members.number, place

    places = {None: anywhere, "contiguous": in_range, "round_robin": in_turn}
    return cuda.jit(device=True)(places[strategy])  # type: ignore[no-any-return]


def make_ranks(strategy: str | None) -> Callable[..., Any]:
    """``ranks(own, lane)`` -> (lower lanes of the warp with ``own`` set, all lanes with ``own`` set)."""

    def alone(own: bool, lane: np.uint32) -> Any:
        return np.uint32(0), np.uint32(1 if own else 0)

    def all_own(own: bool, lane: np.uint32) -> Any:
        return lane, np.uint32(WARP)

    def by_warp(own: bool, lane: np.uint32) -> Any:
        votes = np.uint32(cuda.ballot_sync(_ALL, own))
        before = np.uint32(votes & np.uint32(np.uint32(np.uint32(1) << lane) - np.uint32(1)))
        return np.uint32(cuda.popc(before)), np.uint32(cuda.popc(votes))

    ranks = alone if SIMULATED else all_own if strategy is None else by_warp
    return cuda.jit(device=True)(ranks)  # type: ignore[no-any-return]


@cache
def make_finer() -> Callable[..., Any]:
    """``finer(contribution, k, scale)`` -> (least k, not below the given one, with the contribution a multiple of 2^-k;
    2^k as float64). ``scale`` is 2^k of the given k."""
    integers_from = np.float64(1 << 53)

    def finer(contribution: np.float32, k: np.int64, scale: np.float64) -> Any:
        value = abs(np.float64(contribution)) * scale
        while value < integers_from and np.float64(np.int64(value)) != value:
            value, scale, k = value + value, scale + scale, k + np.int64(1)
        return k, scale

    return cuda.jit(device=True)(finer)  # type: ignore[no-any-return]


def survey_kernel(spec: SyntheticSpec, strategy: str | None) -> KernelSpec:
    """``survey`` counts the device's synapses by target, and by source if there is a ``strategy``.

    It also finds the largest delay and what the fixed-point scale needs.
    """
    return kernel_spec("survey", _make_survey(spec, strategy))


def _make_survey(spec: SyntheticSpec, strategy: str | None) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of = generator.target, generator.weight, generator.delay
    place_of, ranks, finer = make_place(strategy), make_ranks(strategy), make_finer()
    varied, counted = isinstance(spec.weights, tuple), strategy is not None
    psp, width = np.float32(spec.postsynaptic_potential), np.uint32(ROW_THREADS)

    def survey(row_counts: Ids, degrees: Ids, totals: Doubles, summary: Longs, draw: Draw, members: Own) -> None:
        fan = draw.fan
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(width - np.uint32(1)))
        source = np.uint64(thread // width)
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // width)
        longest = np.int64(1)
        digits, scale = np.int64(0), np.float64(1)
        while source < draw.sources:
            kept = np.uint32(0)
            start = np.uint32(0)
            while start < fan:
                item = np.uint32(start + lane)
                own, place = False, np.uint32(0)
                if item < fan:
                    own, place = place_of(target_of(np.uint32(source), item), members)
                if own:
                    cuda.atomic.add(degrees, place, np.uint32(1))
                    longest = max(longest, np.int64(delay_of(np.uint32(source), item)))
                    contribution = np.float32(weight_of(np.uint32(source), item) * psp)
                    digits, scale = finer(contribution, digits, scale)
                    if varied:
                        cuda.atomic.add(totals, place, np.float64(contribution))
                _, together = ranks(own, lane)
                kept = np.uint32(kept + together)
                start = np.uint32(start + width)
            if counted and lane == np.uint32(0):
                row_counts[source] = kept
            source = np.uint64(source + sources)
        cuda.atomic.max(summary, DELAY, longest)
        cuda.atomic.max(summary, DIGITS, digits)

    return survey


def fill_kernel(spec: SyntheticSpec, variant: Variant, strategy: str | None) -> KernelSpec:
    """``fill`` writes the device's rows at ``offsets``, which follow from the counts of the survey.

    Without a ``strategy`` it also writes the offsets, except the first, which is 0.
    """
    return kernel_spec("fill", _make_fill(spec, variant, strategy), variant)


def _make_fill(spec: SyntheticSpec, variant: Variant, strategy: str | None) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of, type_of = generator.target, generator.weight, generator.delay, generator.type
    place_of, ranks, quantise = make_place(strategy), make_ranks(strategy), make_quantise()
    number, offset, delayed = variant.contribution, variant.offset, variant.delays
    uniform_rows, counted, column = variant.uniform_rows, strategy is not None, variant.column
    in_words, paletted, entry_of = variant.target_bits > 0, variant.palette, make_entry_of(variant)
    lowest, weights = (np.int32(number if paletted else 0) for number in integer_law(spec.weights))
    psp, width = np.float32(spec.postsynaptic_potential), np.uint32(ROW_THREADS)

    def fill(rows: Rows, scale: Scale, draw: Draw, members: Own) -> None:
        fan = draw.fan
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(width - np.uint32(1)))
        source = np.uint64(thread // width)
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // width)
        while source < draw.sources:
            if counted:
                following = np.uint64(rows.offsets[source])
            else:
                following = np.uint64(source * np.uint64(fan))
                if lane == np.uint32(0):
                    rows.offsets[np.uint64(source + np.uint64(1))] = offset(following + np.uint64(fan))
            inhibitory = type_of(np.uint32(source), np.uint32(0)) != 0
            start = np.uint32(0)
            while start < fan:
                item = np.uint32(start + lane)
                own, place = False, np.uint32(0)
                if item < fan:
                    own, place = place_of(target_of(np.uint32(source), item), members)
                before, together = ranks(own, lane)
                if own:
                    at = np.uint64(following + np.uint64(before))
                    contribution = np.float32(weight_of(np.uint32(source), item) * psp)
                    units, _ = quantise(contribution, scale)
                    signed = number(-units if inhibitory else units)
                    entry = signed
                    if paletted:
                        weight_index = np.int32(np.int32(weight_of(np.uint32(source), item)) - lowest)
                        entry = np.int32(weight_index + weights) if inhibitory else weight_index
                    rows.targets[at] = entry_of(place, entry) if in_words else place
                    if not uniform_rows and not in_words:
                        rows.contributions[at] = column(entry)
                    elif uniform_rows and before == np.uint32(0):
                        rows.contributions[source] = signed
                    if delayed:
                        rows.delays[at] = delay_of(np.uint32(source), item)
                following = np.uint64(following + np.uint64(together))
                start = np.uint32(start + width)
            source = np.uint64(source + sources)

    return fill
