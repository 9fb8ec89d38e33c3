"""Softmax, layer norm and bias + GELU, forward and backward, on NumPy and CuPy arrays.

On a CUDA device each is one kernel that reads and writes every element once (the gradients of parameters take a small
second one); rows too long for registers are left to CuPy. On the CPU, NumPy computes the same formulas.
Rows are float32, float64, float16 or bfloat16 (``dtypes.BFLOAT16``); scale, shift, bias and their gradients are
float64 for float64 rows, else float32.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.device.cupy_door import multiprocessors
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_alike
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.ops import nn_reference
from burstproof.tensor.ops.kernels import (
    COLUMN_THREADS,
    COLUMN_UNROLL,
    KINDS,
    VECTOR_BYTES,
    build,
    column_entry,
    computing_dtype,
    joined_address,
    reduce_columns,
    vector_width,
)
from burstproof.tensor.ops.row_plan import RowPlan, plan_rows

_COLUMN_WAVES = 8
_LARGEST_GRID_Y = 65535
_STAGED_BYTES = 40 << 10
"""Most shared memory that rows may wait in: with what reductions need, a kernel stays below 48 KiB."""

_HOISTING_BLOCK = 512
_PARAMETERS = {
    "softmax_forward": "{s}[] {s}[] int64 int32",
    "softmax_backward": "{s}[] {s}[] {s}[] int64 int32",
    "layer_norm_forward": "{s}[] {n}[] {n}[] {s}[] {n}[] {n}[] {n} int64 int32",
    "layer_norm_backward": "{s}[] {n}[] {n}[] {s}[] {s}[] {n}[] {n}[] {n}[] int64 int32",
}

GeluForm = Literal["erf", "tanh"]


@dataclass(frozen=True)
class LayerNorm:
    """Result of ``layer_norm``.

    Attributes
    ----------
    values : array
        Normalised, scaled and shifted rows; shape and dtype of the input.
    mean, inverse : array
        Mean and 1 / sqrt(variance + epsilon) of each row, (...,), which the backward pass needs.
    """

    values: Array
    mean: Array
    inverse: Array


@dataclass(frozen=True)
class LayerNormGradients:
    """Gradients with respect to the rows (their shape and dtype), the scale and the shift (columns,)."""

    values: Array
    scale: Array
    shift: Array


@dataclass(frozen=True)
class BiasGeluGradients:
    """Gradients with respect to the input (its shape and dtype) and the bias (columns,)."""

    values: Array
    bias: Array


def softmax(x: Array) -> Array:
    """exp(x - max) / sum(exp(x - max)) along the last axis.

    Parameters
    ----------
    x : array, (..., columns), float32, float64, float16 or bfloat16, contiguous
        Rows. A row with a NaN, with +inf or with nothing but -inf becomes NaN.

    Returns
    -------
    array
        Shape and dtype of ``x``.

    Raises
    ------
    ArrayError
        Another dtype, no axis, not contiguous.
    """
    place = backend_of(x)
    check(x, "softmax", dtypes=KINDS, axes=1)
    with place.use():
        planned = _planned(place, x, held_rows=1, preferred_items=4)
        if planned is None:
            return nn_reference.softmax(x)
        result, plan = planned
        _launch_rows("softmax_forward", plan, plan.persistent, result, x)
    return result


def softmax_backward(gradient: Array, output: Array) -> Array:
    """Gradient with respect to softmax's input: ``y * (dy - sum(dy * y))``.

    Parameters
    ----------
    gradient, output : array, (..., columns)
        Gradient of the result, and the result; one shape, dtype and device.

    Raises
    ------
    ArrayError
        As ``softmax``, or shapes or dtypes that differ.
    """
    place = backend_of(gradient, output)
    check(output, "softmax_backward", dtypes=KINDS, axes=1)
    check_alike(gradient, output, "softmax_backward")
    with place.use():
        planned = _planned(place, output, gradient, held_rows=2, preferred_items=4)
        if planned is None:
            return nn_reference.softmax_backward(gradient, output)
        result, plan = planned
        _launch_rows("softmax_backward", plan, plan.persistent, result, gradient, output)
    return result


def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float = 1e-5) -> LayerNorm:
    """(x - mean) / sqrt(variance + epsilon) * scale + shift along the last axis (Ba, Kiros and Hinton, 2016).

    Parameters
    ----------
    x : array, (..., columns), contiguous
        Rows.
    scale, shift : array, (columns,)
        float64 for float64 rows, else float32.
    epsilon : float
        Added to the variance; positive.

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit, rows without columns, an epsilon that is not positive.
    """
    place = backend_of(x, scale, shift)
    _check_normed(x, scale, "layer_norm")
    check(shift, "layer_norm, shift", dtypes=(scale.dtype,), shape=tuple(scale.shape))
    if not epsilon > 0:
        raise ArrayError("epsilon must be positive", where="layer_norm", got=epsilon)
    with place.use():
        planned = _planned(place, x, held_rows=1, preferred_items=2)
        if planned is None:
            return LayerNorm(*nn_reference.layer_norm(x, scale, shift, epsilon))
        result, plan = planned
        plan = _persistent(plan, x.dtype, backward=False)
        mean, inverse = (place.xp.empty(x.shape[:-1], scale.dtype) for _ in range(2))
        arguments = (result, mean, inverse, x, scale, shift, epsilon)
        _launch_rows("layer_norm_forward", plan, plan.persistent, *arguments)
    return LayerNorm(result, mean, inverse)


def layer_norm_backward(gradient: Array, x: Array, scale: Array, forward: LayerNorm) -> LayerNormGradients:
    """Gradients of ``layer_norm`` with respect to rows, scale and shift; sums in an order that is always the same.

    Parameters
    ----------
    gradient : array
        Gradient of the result; shape and dtype of ``x``.
    x, scale : array
        As they went into ``layer_norm``.
    forward : LayerNorm
        What it returned; only ``mean`` and ``inverse`` are read.

    Raises
    ------
    ArrayError
        As ``layer_norm``.
    """
    where = "layer_norm_backward"
    mean, inverse = forward.mean, forward.inverse
    place = backend_of(gradient, x, scale, mean, inverse)
    _check_normed(x, scale, where)
    check_alike(gradient, x, where)
    for statistic in (mean, inverse):
        check(statistic, where, dtypes=(scale.dtype,), shape=tuple(x.shape[:-1]))
    with place.use():
        planned = _planned(place, x, gradient, held_rows=5, preferred_items=4)
        if planned is None:
            return LayerNormGradients(*nn_reference.layer_norm_backward(gradient, x, scale, mean, inverse))
        result, plan = planned
        plan = _persistent(plan, x.dtype, backward=True)
        to_parameters = place.xp.empty((2, scale.size), scale.dtype)
        entry = row_entry("layer_norm_backward", x.dtype, plan)
        groups = _blocks(entry, x, plan, persistent=True) * plan.rows
        partial = place.xp.empty((2, groups, scale.size), scale.dtype)
        arguments = (result, partial[0], partial[1], gradient, x, mean, inverse, scale)
        _launch_rows("layer_norm_backward", plan, True, *arguments)
        reduce_columns(to_parameters, partial)
    return LayerNormGradients(result, to_parameters[0], to_parameters[1])


def bias_gelu(x: Array, bias: Array, form: GeluForm = "erf") -> Array:
    """``gelu(x + bias)`` with one bias per column.

    Parameters
    ----------
    x : array, (..., columns), contiguous
        Rows.
    bias : array, (columns,)
        float64 for float64 rows, else float32.
    form : {"erf", "tanh"}
        x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh, which GPT-2 uses (Hendrycks and Gimpel, 2016).

    Raises
    ------
    ArrayError
        Shapes, dtypes, devices or a form that do not fit.
    """
    place = backend_of(x, bias)
    _check_normed(x, bias, "bias_gelu")
    tanh = _is_tanh(form, "bias_gelu")
    with place.use():
        if place.device is None or not x.size:
            return nn_reference.bias_gelu(x, bias, tanh)
        result = place.xp.empty_like(x)
        vector = _column_vector(bias, x, result)
        blocks = -(-x.size // (vector * COLUMN_THREADS * COLUMN_UNROLL))
        kernel = column_entry("bias_gelu_forward", x.dtype, vector, tanh).on(place.device)
        kernel(blocks, COLUMN_THREADS, result, x, bias, x.size // bias.size, bias.size)
    return result


def bias_gelu_backward(gradient: Array, x: Array, bias: Array, form: GeluForm = "erf") -> BiasGeluGradients:
    """Gradients of ``bias_gelu`` with respect to ``x`` and ``bias``; the input is read again, nothing was kept.

    Raises
    ------
    ArrayError
        As ``bias_gelu``.
    """
    place = backend_of(gradient, x, bias)
    _check_normed(x, bias, "bias_gelu_backward")
    check_alike(gradient, x, "bias_gelu_backward")
    tanh = _is_tanh(form, "bias_gelu_backward")
    rows, columns = x.size // bias.size, bias.size
    with place.use():
        if place.device is None or not x.size:
            return BiasGeluGradients(*nn_reference.bias_gelu_backward(gradient, x, bias, tanh))
        result, to_bias = place.xp.empty_like(x), place.xp.empty_like(bias)
        vector = _column_vector(bias, x, gradient, result)
        across = -(-columns // (COLUMN_THREADS * vector))
        down = max(1, multiprocessors(place.device) * _COLUMN_WAVES // across)
        grid = across, min(down, rows, _LARGEST_GRID_Y)
        partial = place.xp.empty((grid[1], columns), bias.dtype)
        kernel = column_entry("bias_gelu_backward", x.dtype, vector, tanh).on(place.device)
        kernel(grid, COLUMN_THREADS, result, partial, gradient, x, bias, rows, columns)
        reduce_columns(to_bias, partial)
    return BiasGeluGradients(result, to_bias)


def _check_normed(x: Array, parameter: Array, where: str) -> None:
    check(x, where, dtypes=KINDS, axes=1)
    if not x.shape[-1]:
        raise ArrayError("rows without columns", where=where, got=tuple(x.shape), allowed="at least one column")
    columns = f"{where}, parameter of the columns"
    check(parameter, columns, dtypes=(computing_dtype(x.dtype),), shape=(x.shape[-1],))


def _is_tanh(form: str, where: str) -> bool:
    if form not in ("erf", "tanh"):
        raise ArrayError("there is no such form of GELU", where=where, got=form, allowed="erf, tanh")
    return form == "tanh"


@lru_cache(maxsize=256)
def row_entry(function: str, dtype: np.dtype[Any], plan: RowPlan) -> Entry:
    """A kernel of softmax.cu or layer_norm.cu, built for ``plan``."""
    file = "softmax.cu" if function.startswith("softmax") else "layer_norm.cu"
    macros = plan.macros(sets=2 if function == "layer_norm_backward" else 1)
    return build(("rows.cuh", file), function, _PARAMETERS[function], dtype, plan.block, **macros)


def _planned(place: Backend, *arrays: Array, held_rows: int, preferred_items: int) -> tuple[Array, RowPlan] | None:
    """A result like the first of ``arrays``, and how its rows are worked on; ``None`` where no kernel is launched."""
    first = arrays[0]
    if place.device is None or not first.size:
        return None
    result = place.xp.empty_like(first)
    misaligned_by = joined_address(result, *arrays) % VECTOR_BYTES
    plan = plan_rows(first.dtype, first.shape[-1], misaligned_by, held_rows, preferred_items)
    return None if plan is None else (result, plan)


@lru_cache(maxsize=256)
def _persistent(plan: RowPlan, dtype: np.dtype[Any], backward: bool) -> RowPlan:
    """The plan with rows staged, and scale and shift in registers, where block and accesses allow."""
    full = plan.vector * dtype.itemsize == VECTOR_BYTES
    staged = full and plan.staged_bytes(2 if backward else 1) <= _STAGED_BYTES
    return replace(plan, staged=staged, hoist=plan.block <= _HOISTING_BLOCK and not backward)


@lru_cache(maxsize=256)
def _resident_blocks(entry: Entry, device: int, block: int) -> int:
    """Blocks of a kernel that the whole device holds at once."""
    return multiprocessors(device) * max(1, entry.on(device).blocks_per_multiprocessor(block))


def _blocks(entry: Entry, x: Array, plan: RowPlan, persistent: bool) -> int:
    """Blocks of a launch: one per row (or ``plan.rows`` rows), or as many as the device holds at once."""
    needed: int = -(-(x.size // x.shape[-1]) // plan.rows)
    return min(needed, _resident_blocks(entry, x.device.id, plan.block)) if persistent else needed


def _launch_rows(function: str, plan: RowPlan, persistent: bool, result: Array, *arguments: Any) -> None:
    columns, device = result.shape[-1], result.device.id
    entry = row_entry(function, result.dtype, plan)
    blocks = _blocks(entry, result, plan, persistent)
    entry.on(device)(blocks, plan.block, result, *arguments, result.size // columns, columns)


def _column_vector(bias: Array, *arrays: Array) -> int:
    """Elements per access, with the bias aligned for accesses of as many."""
    width = vector_width(arrays[0].dtype, bias.size, joined_address(*arrays))
    while width > 1 and int(bias.data.ptr) % min(VECTOR_BYTES, width * bias.dtype.itemsize):
        width //= 2
    return width
