"""Kernels of a network with plastic or mp-driven synapses whose rows lie in host memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.kernels.catalogue import KernelSpec, catalogue
from burstproof.engine.cuda.kernels.control import ACTIVE, CLAMPED, COUNT, SLOT, START
from burstproof.engine.cuda.kernels.lines import make_send_lines
from burstproof.engine.cuda.kernels.propagate import make_propagate_computed
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.streaming import CHUNK, line_entries, packed_contributions
from burstproof.engine.cuda.plan.variant import Variant


def streaming_catalogue(variant: Variant) -> tuple[KernelSpec, ...]:
    """Every kernel that a network of ``variant`` launches in separate kernels if its synapses lie in host memory."""
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


def make_propagate_streamed(variant: Variant) -> Callable[..., None]:
    """``propagate_streamed(...)``: static contributions of everything in the burst's fired list, a warp per piece.

    Arrays as ``make_send_lines`` takes them.
    """
    clamps, send_lines = variant.clamps, make_send_lines(variant)
    lanes, chunk, line = np.uint32(WARP - 1), np.int64(CHUNK), np.int64(line_entries(variant))

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
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & lanes)
        item = np.int64(thread // np.uint32(WARP))
        items = np.int64(np.uint32(cuda.gridsize(1)) // np.uint32(WARP))
        start, total = control[START], control[COUNT] * pieces
        slot = np.uint32(control[SLOT])
        while item < total:
            row = np.int64(item // pieces)
            part = np.int64(item - row * pieces)
            source = log_ids[start + row]
            begin = np.int64(offsets[source])
            end = np.int64(offsets[np.uint32(source + np.uint32(1))])
            low = np.int64(begin - begin % line + part * piece)
            end = min(end, low + piece)
            send_lines(
                source, begin, low, end, chunk, lane, slot, targets, contributions, delays, sums, flags, stride, ring
            )
            if clamps and part == 0 and lane == np.uint32(0) and clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item += items

    return propagate_streamed
