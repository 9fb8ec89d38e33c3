"""Kernels that make a shard's part of a synthetic network: every target is drawn, only the shard's own are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.kernels.catalogue import KernelSpec
from burstproof.engine.cuda.kernels.generate import DELAY, DIGITS, make_finer
from burstproof.engine.cuda.kernels.propagate import make_quantise
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.network.synthetic.build import SyntheticSpec, make_generator

_ALL = 0xFFFFFFFF


def make_place(contiguous: bool) -> Callable[..., Any]:
    """``place(target, first, step, count)`` -> (whether the target is the shard's, its place there)."""

    def in_range(target: Any, first: Any, step: Any, count: Any) -> Any:
        place = np.uint32(target - first)
        return target >= first and place < count, place

    def in_turn(target: Any, first: Any, step: Any, count: Any) -> Any:
        place = np.uint32(np.uint32(target - first) // step)
        return target >= first and np.uint32(target - first) % step == 0 and place < count, place

    return cuda.jit(device=True)(in_range if contiguous else in_turn)  # type: ignore[no-any-return]


def make_ranks() -> Callable[..., Any]:
    """``ranks(own, lane)`` -> (own ones among the warp's threads before this one, in all)."""

    def alone(own: Any, lane: Any) -> Any:
        return np.uint32(0), np.uint32(1 if own else 0)

    def by_warp(own: Any, lane: Any) -> Any:
        votes = np.uint32(cuda.ballot_sync(_ALL, own))
        before = np.uint32(votes & np.uint32(np.uint32(np.uint32(1) << lane) - np.uint32(1)))
        return np.uint32(cuda.popc(before)), np.uint32(cuda.popc(votes))

    return cuda.jit(device=True)(alone if SIMULATED else by_warp)  # type: ignore[no-any-return]


def survey_kernel(spec: SyntheticSpec, contiguous: bool) -> KernelSpec:
    """``survey`` counts the shard's synapses by source and by target, and finds what the fixed-point scale needs."""
    ids, floats, longs = (types.Array(t, 1, "C") for t in (types.uint32, types.float64, types.int64))
    numbers = (types.uint64, *(types.uint32,) * 4)
    signature = types.void(ids, ids, floats, longs, *numbers)
    return KernelSpec("survey", _make_survey(spec, contiguous), signature)


def _make_survey(spec: SyntheticSpec, contiguous: bool) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of = generator.target, generator.weight, generator.delay
    place_of, ranks = make_place(contiguous), make_ranks()
    varied = isinstance(spec.weights, tuple)
    psp, finer = np.float32(spec.postsynaptic_potential), make_finer()
    width = np.uint32(1 if SIMULATED else WARP)

    def survey(
        row_counts: Any,
        degrees: Any,
        totals: Any,
        summary: Any,
        neurons: Any,
        fan: Any,
        first: Any,
        step: Any,
        count: Any,
    ) -> None:
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(width - np.uint32(1)))
        source = np.uint64(thread // width)
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // width)
        longest = np.int64(1)
        digits, scale = np.int64(0), np.float64(1)
        while source < neurons:
            kept = np.uint32(0)
            start = np.uint32(0)
            while start < fan:
                item = np.uint32(start + lane)
                own, place = False, np.uint32(0)
                if item < fan:
                    own, place = place_of(target_of(np.uint32(source), item), first, step, count)
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
    contributions = {16: types.int16, 32: types.int32, 64: types.int64}[variant.contribution_bits]
    signature = types.void(
        types.Array(types.uint32 if variant.offset_bits == 32 else types.uint64, 1, "C"),
        types.Array(types.uint32, 1, "C"),
        types.Array(contributions, 1, "C"),
        types.Array(types.uint8, 1, "C"),
        *(types.float64, types.int64, types.float64),
        *(types.uint64, *(types.uint32,) * 4),
    )
    return KernelSpec("fill", _make_fill(spec, variant, contiguous), signature)


def _make_fill(spec: SyntheticSpec, variant: Variant, contiguous: bool) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of, type_of = generator.target, generator.weight, generator.delay, generator.type
    place_of, ranks, quantise = make_place(contiguous), make_ranks(), make_quantise()
    number, delayed, uniform_rows = variant.contribution, variant.delays, variant.uniform_rows
    psp = np.float32(spec.postsynaptic_potential)
    width = np.uint32(1 if SIMULATED else WARP)

    def fill(
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        scale: Any,
        clamp: Any,
        clamp_float: Any,
        neurons: Any,
        fan: Any,
        first: Any,
        step: Any,
        count: Any,
    ) -> None:
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(width - np.uint32(1)))
        source = np.uint64(thread // width)
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // width)
        while source < neurons:
            following = np.uint64(offsets[source])
            inhibitory = type_of(np.uint32(source), np.uint32(0)) != 0
            start = np.uint32(0)
            while start < fan:
                item = np.uint32(start + lane)
                own, place = False, np.uint32(0)
                if item < fan:
                    own, place = place_of(target_of(np.uint32(source), item), first, step, count)
                before, together = ranks(own, lane)
                if own:
                    at = np.uint64(following + np.uint64(before))
                    targets[at] = place
                    contribution = np.float32(weight_of(np.uint32(source), item) * psp)
                    units, _ = quantise(contribution, scale, clamp, clamp_float)
                    signed = number(-units if inhibitory else units)
                    if uniform_rows:
                        contributions[source] = signed
                    else:
                        contributions[at] = signed
                    if delayed:
                        delays[at] = delay_of(np.uint32(source), item)
                following = np.uint64(following + np.uint64(together))
                start = np.uint32(start + width)
            source = np.uint64(source + sources)

    return fill
