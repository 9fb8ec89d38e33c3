"""Kernels that make a shard's part of a synthetic network: every target is drawn, only the shard's own are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Doubles, Draw, Ids, Longs, Own, Rows, Scale
from burstproof.engine.cuda.kernels.generate import DELAY, DIGITS, make_finer
from burstproof.engine.cuda.kernels.propagate import make_quantise
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.network.synthetic.build import SyntheticSpec, make_generator

_ALL = 0xFFFFFFFF


def make_place(contiguous: bool) -> Callable[..., Any]:
    """``place(target, members)`` -> (whether the target is the shard's, its place there)."""

    def in_range(target: np.uint32, members: Own) -> Any:
        place = np.uint32(target - members.first)
        return target >= members.first and place < members.number, place

    def in_turn(target: np.uint32, members: Own) -> Any:
        distance = np.uint32(target - members.first)
        place = np.uint32(distance // members.step)
        return target >= members.first and distance % members.step == 0 and place < members.number, place

    return cuda.jit(device=True)(in_range if contiguous else in_turn)  # type: ignore[no-any-return]


def make_ranks() -> Callable[..., Any]:
    """``ranks(own, lane)`` -> (own ones among the warp's threads before this one, in all)."""

    def alone(own: bool, lane: np.uint32) -> Any:
        return np.uint32(0), np.uint32(1 if own else 0)

    def by_warp(own: bool, lane: np.uint32) -> Any:
        votes = np.uint32(cuda.ballot_sync(_ALL, own))
        before = np.uint32(votes & np.uint32(np.uint32(np.uint32(1) << lane) - np.uint32(1)))
        return np.uint32(cuda.popc(before)), np.uint32(cuda.popc(votes))

    return cuda.jit(device=True)(alone if SIMULATED else by_warp)  # type: ignore[no-any-return]


def survey_kernel(spec: SyntheticSpec, contiguous: bool) -> KernelSpec:
    """``survey`` counts the shard's synapses by source and by target, and finds what the fixed-point scale needs."""
    return kernel_spec("survey", _make_survey(spec, contiguous))


def _make_survey(spec: SyntheticSpec, contiguous: bool) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of = generator.target, generator.weight, generator.delay
    place_of, ranks = make_place(contiguous), make_ranks()
    varied = isinstance(spec.weights, tuple)
    psp, finer = np.float32(spec.postsynaptic_potential), make_finer()
    width = np.uint32(1 if SIMULATED else WARP)

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
            if lane == np.uint32(0):
                row_counts[source] = kept
            source = np.uint64(source + sources)
        cuda.atomic.max(summary, DELAY, longest)
        cuda.atomic.max(summary, DIGITS, digits)

    return survey


def fill_kernel(spec: SyntheticSpec, variant: Variant, contiguous: bool) -> KernelSpec:
    """``fill`` writes the shard's packed rows behind ``offsets``, which the counts of the survey give."""
    return kernel_spec("fill", _make_fill(spec, variant, contiguous), variant)


def _make_fill(spec: SyntheticSpec, variant: Variant, contiguous: bool) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of, type_of = generator.target, generator.weight, generator.delay, generator.type
    place_of, ranks, quantise = make_place(contiguous), make_ranks(), make_quantise()
    number, delayed, uniform_rows = variant.contribution, variant.delays, variant.uniform_rows
    psp = np.float32(spec.postsynaptic_potential)
    width = np.uint32(1 if SIMULATED else WARP)

    def fill(rows: Rows, scale: Scale, draw: Draw, members: Own) -> None:
        fan = draw.fan
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(width - np.uint32(1)))
        source = np.uint64(thread // width)
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // width)
        while source < draw.sources:
            following = np.uint64(rows.offsets[source])
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
                    rows.targets[at] = place
                    contribution = np.float32(weight_of(np.uint32(source), item) * psp)
                    units, _ = quantise(contribution, scale)
                    signed = number(-units if inhibitory else units)
                    if uniform_rows:
                        rows.contributions[source] = signed
                    else:
                        rows.contributions[at] = signed
                    if delayed:
                        rows.delays[at] = delay_of(np.uint32(source), item)
                following = np.uint64(following + np.uint64(together))
                start = np.uint32(start + width)
            source = np.uint64(source + sources)

    return fill
