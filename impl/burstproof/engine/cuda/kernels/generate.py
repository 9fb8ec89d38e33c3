"""Kernels that make the synapses of a synthetic network where the engine lives: survey first, then fill (BE-3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Doubles, Draw, Ids, Longs, Rows, Scale
from burstproof.engine.cuda.kernels.propagate import make_quantise
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.network.synthetic.build import SyntheticSpec, make_generator

DEGREE, DELAY, DIGITS = 0, 1, 2
"""Places in the survey's summary: largest in-degree, largest delay, least k with contributions multiples of 2^-k."""
SUMMARY_LENGTH = 4


def survey_kernels(spec: SyntheticSpec) -> tuple[KernelSpec, KernelSpec]:
    """``survey`` counts what reaches each neuron, ``largest`` finds the maxima."""
    return (
        kernel_spec("survey", _make_survey(spec)),
        kernel_spec("largest", _make_largest(isinstance(spec.weights, tuple))),
    )


@cache
def make_finer() -> Callable[..., Any]:
    """``finer(contribution, k, scale)`` -> (the least k, not below the given one, for which the contribution is a
    multiple of 2^-k; 2^k); ``scale`` is 2^k as float64."""
    integers_from = np.float64(1 << 53)

    def finer(contribution: np.float32, k: np.int64, scale: np.float64) -> Any:
        value = abs(np.float64(contribution)) * scale
        while value < integers_from and np.float64(np.int64(value)) != value:
            value, scale, k = value + value, scale + scale, k + np.int64(1)
        return k, scale

    return cuda.jit(device=True)(finer)  # type: ignore[no-any-return]


def _make_survey(spec: SyntheticSpec) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of = generator.target, generator.weight, generator.delay
    varied = isinstance(spec.weights, tuple)
    psp = np.float32(spec.postsynaptic_potential)
    lanes, finer = np.uint32(WARP - 1), make_finer()

    def survey(degrees: Ids, totals: Doubles, summary: Longs, draw: Draw) -> None:
        fan = draw.fan
        thread = np.uint32(cuda.grid(1))
        source = np.uint64(thread // np.uint32(WARP))
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        longest = np.int64(1)
        digits, scale = np.int64(0), np.float64(1)
        while source < draw.sources:
            item = np.uint32(thread & lanes)
            while item < fan:
                target = target_of(np.uint32(source), item)
                cuda.atomic.add(degrees, target, np.uint32(1))
                longest = max(longest, np.int64(delay_of(np.uint32(source), item)))
                contribution = np.float32(weight_of(np.uint32(source), item) * psp)
                digits, scale = finer(contribution, digits, scale)
                if varied:
                    cuda.atomic.add(totals, target, np.float64(contribution))
                item = np.uint32(item + np.uint32(WARP))
            source = np.uint64(source + sources)
        cuda.atomic.max(summary, DELAY, longest)
        cuda.atomic.max(summary, DIGITS, digits)

    return survey


def _make_largest(varied: bool) -> Callable[..., None]:
    def largest(degrees: Ids, totals: Doubles, summary: Longs, total: Doubles, sources: np.uint64) -> None:
        neuron = np.uint64(cuda.grid(1))
        step = np.uint64(cuda.gridsize(1))
        degree, most = np.int64(0), np.float64(0)
        while neuron < sources:
            degree = max(degree, np.int64(degrees[neuron]))
            if varied:
                most = max(most, totals[neuron])
            neuron = np.uint64(neuron + step)
        cuda.atomic.max(summary, DEGREE, degree)
        if varied:
            cuda.atomic.max(total, 0, most)

    return largest


def fill_kernel(spec: SyntheticSpec, variant: Variant) -> KernelSpec:
    """``fill`` writes the packed rows of the network's synapses."""
    return kernel_spec("fill", _make_fill(spec, variant), variant)


def _make_fill(spec: SyntheticSpec, variant: Variant) -> Callable[..., None]:
    generator = make_generator(spec, cuda.jit(device=True))
    target_of, weight_of, delay_of, type_of = generator.target, generator.weight, generator.delay, generator.type
    quantise = make_quantise()
    number, offset, delayed = variant.contribution, variant.offset, variant.delays
    uniform_rows = variant.uniform_rows
    psp = np.float32(spec.postsynaptic_potential)
    lanes = np.uint32(WARP - 1)

    def fill(rows: Rows, scale: Scale, draw: Draw) -> None:
        fan = draw.fan
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & lanes)
        source = np.uint64(thread // np.uint32(WARP))
        sources = np.uint64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        while source <= draw.sources:
            row = np.uint64(source * np.uint64(fan))
            if lane == np.uint32(0):
                rows.offsets[source] = offset(row)
            if source < draw.sources:
                inhibitory = type_of(np.uint32(source), np.uint32(0)) != 0
                item = lane
                while item < fan:
                    place = np.uint64(row + np.uint64(item))
                    rows.targets[place] = target_of(np.uint32(source), item)
                    contribution = np.float32(weight_of(np.uint32(source), item) * psp)
                    units, _ = quantise(contribution, scale)
                    signed = number(-units if inhibitory else units)
                    if not uniform_rows:
                        rows.contributions[place] = signed
                    elif item == np.uint32(0):
                        rows.contributions[source] = signed
                    if delayed:
                        rows.delays[place] = delay_of(np.uint32(source), item)
                    item = np.uint32(item + np.uint32(WARP))
            source = np.uint64(source + sources)

    return fill
