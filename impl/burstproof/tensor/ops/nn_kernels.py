"""Launches of the fused kernels: softmax.cu, layer_norm.cu and columns.cu."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.row_plan import KINDS, VECTOR_BYTES, RowPlan, plan_rows, vector_width

_COLUMN_THREADS = 128
_COLUMN_WAVES = 8
_COLUMN_UNROLL = 4
_SETS = {"layer_norm_backward": 2}
_STAGED_BYTES = 40 << 10
"""Most shared memory that rows may wait in: with what reductions need, a kernel stays below 48 KiB."""

_HOISTING_BLOCK = 512
_ROW_ITEMS = 4
_NORMED_ITEMS = 2
_GRADIENT_ITEMS = 4
_LARGEST_GRID_Y = 65535
_REDUCE_COLUMNS = 32
_REDUCE_THREADS = 1024


@lru_cache(maxsize=256)
def row_entry(file: str, function: str, dtype: np.dtype[Any], plan: RowPlan) -> Entry:
    """A kernel of softmax.cu or layer_norm.cu, built for ``plan``."""
    options = SourceOptions(defines=plan.defines(dtype, _SETS.get(function, 1)))
    source = CudaSource.beside(__file__, "element.cuh", "rows.cuh", file, options=options)
    return Entry(source, function, _declared(function, dtype), plan.block)


@lru_cache(maxsize=64)
def column_entry(function: str, dtype: np.dtype[Any], vector: int, tanh: bool) -> Entry:
    """A kernel of columns.cu for accesses of ``vector`` elements."""
    defines = (
        ("KIND", KINDS[dtype]),
        ("VEC", str(vector)),
        ("THREADS", str(_COLUMN_THREADS)),
        ("UNROLL", str(_COLUMN_UNROLL)),
        ("TANH", str(int(tanh))),
        ("HINTS", "1"),
    )
    source = CudaSource.beside(__file__, "element.cuh", "columns.cu", options=SourceOptions(defines=defines))
    block = _REDUCE_THREADS if function == "reduce_columns" else _COLUMN_THREADS
    return Entry(source, function, _declared(function, dtype), block)


def computing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type in which rows of ``dtype`` are computed, and that of scale, shift, bias and their gradients."""
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def _declared(function: str, dtype: np.dtype[Any]) -> str:
    stored = "bfloat16[]" if dtype == BFLOAT16 else f"{dtype}[]"
    number = str(computing_dtype(dtype))
    numbers = f"{number}[]"
    words = {
        "softmax_forward": (stored, stored),
        "softmax_backward": (stored, stored, stored),
        "layer_norm_forward": (stored, numbers, numbers, stored, numbers, numbers, number),
        "layer_norm_backward": (stored, numbers, numbers, stored, stored, numbers, numbers, numbers),
        "bias_gelu_forward": (stored, stored, numbers),
        "bias_gelu_backward": (stored, numbers, stored, stored, numbers),
        "reduce_columns": (numbers, numbers),
    }[function]
    rows = "int32" if function == "reduce_columns" else "int64"
    return " ".join((*words, rows, "int32"))


_MULTIPROCESSOR_COUNT = 16
"""cudaDevAttrMultiProcessorCount."""


@lru_cache(maxsize=64)
def multiprocessors(device: int) -> int:
    """Number of multiprocessors of a device."""
    import cupy

    return int(cupy.cuda.runtime.deviceGetAttribute(_MULTIPROCESSOR_COUNT, device))


@lru_cache(maxsize=256)
def _resident_blocks(entry: Entry, device: int, block: int) -> int:
    """Blocks of a kernel that the whole device holds at once."""
    return multiprocessors(device) * max(1, entry.on(device).blocks_per_multiprocessor(block))


def _addresses(*arrays: Array) -> int:
    joined = 0
    for array in arrays:
        joined |= int(array.data.ptr)
    return joined


def _groups(entry: Entry, device: int, plan: RowPlan, rows: int, persistent: bool) -> int:
    """Blocks of a launch: one per row (or ``plan.rows`` rows), or as many as the device holds at once."""
    needed = -(-rows // plan.rows)
    return min(needed, _resident_blocks(entry, device, plan.block)) if persistent else needed


def _launch_rows(file: str, function: str, plan: RowPlan, arrays: tuple[Any, ...], rows: int, columns: int) -> None:
    device = arrays[0].device.id
    entry = row_entry(file, function, arrays[0].dtype, plan)
    blocks = _groups(entry, device, plan, rows, plan.persistent)
    entry.on(device)(blocks, plan.block, *arrays, rows, columns)


def plan_softmax(result: Array, *others: Array) -> RowPlan | None:
    """Build for softmax over the last axis of arrays of one shape and dtype; ``None``: rows are too long."""
    held = 1 + len(others) // 2
    return plan_rows(
        result.dtype, result.shape[-1], _addresses(result, *others), held_rows=held, preferred_items=_ROW_ITEMS
    )


def softmax_forward(result: Array, source: Array, plan: RowPlan) -> None:
    """Queue softmax of the rows of ``source`` into ``result``, both (..., columns) and contiguous."""
    columns = source.shape[-1]
    _launch_rows("softmax.cu", "softmax_forward", plan, (result, source), source.size // columns, columns)


def softmax_backward(result: Array, gradient: Array, output: Array, plan: RowPlan) -> None:
    """Queue the gradient of softmax from its ``output`` and the gradient of that."""
    columns = output.shape[-1]
    arrays = (result, gradient, output)
    _launch_rows("softmax.cu", "softmax_backward", plan, arrays, output.size // columns, columns)


def plan_layer_norm(result: Array, *others: Array, backward: bool) -> RowPlan | None:
    """Build for layer norm over the last axis; ``None``: rows are too long."""
    held, items = (5, _GRADIENT_ITEMS) if backward else (1, _NORMED_ITEMS)
    address = _addresses(result, *others)
    plan = plan_rows(result.dtype, result.shape[-1], address, held_rows=held, preferred_items=items)
    return None if plan is None else _persistent(plan, result.dtype, backward)


@lru_cache(maxsize=256)
def _persistent(plan: RowPlan, dtype: np.dtype[Any], backward: bool) -> RowPlan:
    """The plan with rows staged, and scale and shift in registers, where block and accesses allow."""
    full = plan.vector * dtype.itemsize == VECTOR_BYTES
    staged = full and plan.staged_bytes(2 if backward else 1) <= _STAGED_BYTES
    return replace(plan, staged=staged, hoist=plan.block <= _HOISTING_BLOCK and not backward)


def layer_norm_forward(
    result: Array, mean: Array, inverse: Array, source: Array, scale: Array, shift: Array, epsilon: float, plan: RowPlan
) -> None:
    """Queue layer norm of the rows of ``source``; ``mean`` and ``inverse`` (1 / deviation) get one number per row."""
    columns = source.shape[-1]
    arrays = (result, mean, inverse, source, scale, shift, epsilon)
    _launch_rows("layer_norm.cu", "layer_norm_forward", plan, arrays, source.size // columns, columns)


def layer_norm_backward(
    result: Array,
    parameter_gradients: Array,
    gradient: Array,
    source: Array,
    mean: Array,
    inverse: Array,
    scale: Array,
    plan: RowPlan,
) -> None:
    """Queue the gradients of layer norm: one pass over the rows, then the sums over what its blocks left.

    ``parameter_gradients`` (2, columns) gets those of scale and shift.
    """
    import cupy

    columns = source.shape[-1]
    rows = source.size // columns
    device = source.device.id
    entry = row_entry("layer_norm.cu", "layer_norm_backward", source.dtype, plan)
    blocks = _groups(entry, device, plan, rows, persistent=True)
    partial = cupy.empty((2, blocks * plan.rows, columns), scale.dtype)
    arrays = (result, partial[0], partial[1], gradient, source, mean, inverse, scale)
    entry.on(device)(blocks, plan.block, *arrays, rows, columns)
    reduce_columns(parameter_gradients, partial)


def reduce_columns(result: Array, partial: Array) -> None:
    """Queue the sums over the last but one axis of ``partial`` ([sets,] groups, columns), in a fixed order."""
    groups, columns = partial.shape[-2:]
    sets = partial.shape[0] if partial.ndim == 3 else 1
    kernel = column_entry("reduce_columns", result.dtype, 1, True).on(result.device.id)
    kernel((-(-columns // _REDUCE_COLUMNS), sets), _REDUCE_THREADS, result, partial, groups, columns)


def _column_vector(bias: Array, *arrays: Array) -> int:
    """Elements per access, with the bias aligned for accesses of as many."""
    width = vector_width(arrays[0].dtype, bias.size, _addresses(*arrays))
    while width > 1 and int(bias.data.ptr) % min(VECTOR_BYTES, width * bias.dtype.itemsize):
        width //= 2
    return width


def bias_gelu_forward(result: Array, source: Array, bias: Array, tanh: bool) -> None:
    """Queue ``gelu(source + bias)``; ``source`` is (..., columns) and contiguous, ``bias`` (columns,)."""
    columns = source.shape[-1]
    rows = source.size // columns
    vector = _column_vector(bias, source, result)
    kernel = column_entry("bias_gelu_forward", source.dtype, vector, tanh).on(source.device.id)
    blocks = -(-source.size // (vector * _COLUMN_THREADS * _COLUMN_UNROLL))
    kernel(blocks, _COLUMN_THREADS, result, source, bias, rows, columns)


def bias_gelu_backward(
    result: Array,
    bias_gradient: Array,
    gradient: Array,
    source: Array,
    bias: Array,
    tanh: bool,
    waves: int = _COLUMN_WAVES,
) -> None:
    """Queue the gradients of ``gelu(source + bias)``."""
    import cupy

    columns = source.shape[-1]
    rows = source.size // columns
    vector = _column_vector(bias, source, gradient, result)
    kernel = column_entry("bias_gelu_backward", source.dtype, vector, tanh).on(source.device.id)
    across = -(-columns // (_COLUMN_THREADS * vector))
    down = max(1, multiprocessors(kernel.device_id) * waves // across)
    grid = across, min(down, rows, _LARGEST_GRID_Y)
    partial = cupy.empty((grid[1], columns), bias.dtype)
    kernel(grid, _COLUMN_THREADS, result, partial, gradient, source, bias, rows, columns)
    reduce_columns(bias_gradient, partial)
