"""What a linear layer does besides its matrix products: bias, residual sum, gradient of the bias."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.device.cupy_door import multiprocessors
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_alike
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.kernels import KINDS, build, computing_dtype, joined_address, reduce_columns, vector_width
from burstproof.tensor.ops.nn_reference import narrowed, widened

_THREADS = 256
_SUM_LANES = 32
_WAVES = 8
_PARAMETERS = {
    "add_columns": "{s}[] {s}[]? {s}[] {n}[]? int64 int32",
    "sum_rows": "{n}[] {s}[] int32 int32",
}


@lru_cache(maxsize=64)
def entry(function: str, dtype: np.dtype[Any], vector: int) -> Entry:
    """A kernel of train_columns.cu for accesses of ``vector`` elements."""
    macros = {"VEC": vector, "THREADS": _THREADS, "HINTS": 0}
    return build(("train_columns.cu",), function, _PARAMETERS[function], dtype, _THREADS, **macros)


def add_bias(x: Array, bias: Array) -> Array:
    """``x + bias`` with one bias per column, in place of ``x``.

    Parameters
    ----------
    x : array, (..., columns), float32, float64, float16 or bfloat16, contiguous
    bias : array, (columns,)
        float64 for float64, else float32.

    Returns
    -------
    array
        ``x`` itself.

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit.
    """
    return _add("add_bias", x, None, x, bias)


def add_residual(residual: Array, x: Array, bias: Array | None = None) -> Array:
    """``residual + x (+ bias)`` in one pass, as a new array.

    Parameters
    ----------
    residual, x : array, (..., columns), contiguous
        One shape, dtype and device.
    bias : array, (columns,), optional
        float64 for float64, else float32.

    Raises
    ------
    ArrayError
        As ``add_bias``.
    OutOfMemoryError
        No memory for the result.
    """
    return _add("add_residual", None, residual, x, bias)


def bias_gradient(gradient: Array, out: Array) -> None:
    """Sum of ``gradient`` over all axes but the last, in an order that is always the same, into ``out``.

    Parameters
    ----------
    gradient : array, (..., columns), contiguous
    out : array, (columns,), contiguous
        float64 for float64, else float32.

    Raises
    ------
    ArrayError
        As ``add_bias``.
    """
    where = "bias_gradient"
    place = backend_of(gradient, out)
    _check(where, gradient, out)
    columns = gradient.shape[-1]
    with place.use():
        if place.device is None or not gradient.size:
            out[...] = widened(gradient).reshape(-1, columns).sum(axis=0)
            return
        rows = gradient.size // columns
        vector = vector_width(gradient.dtype, columns, joined_address(gradient))
        across = -(-columns // (_SUM_LANES * vector))
        pieces = max(1, min(rows // 8, multiprocessors(place.device) * 2 // across))
        partial = place.xp.empty((pieces, columns), out.dtype)
        kernel = entry("sum_rows", gradient.dtype, vector).on(place.device)
        kernel((across, pieces), _THREADS, partial, gradient, rows, columns)
        reduce_columns(out, partial)


def _add(where: str, out: Array | None, residual: Array | None, x: Array, bias: Array | None) -> Array:
    others = [array for array in (residual, bias) if array is not None]
    place = backend_of(x, *others)
    _check(where, x, bias)
    if residual is not None:
        check_alike(residual, x, where)
    with place.use():
        if place.device is None or not x.size:
            total = widened(x) if bias is None else widened(x) + bias
            total = total if residual is None else total + widened(residual)
            if out is None:
                return narrowed(total, x.dtype)
            out[...] = narrowed(total, x.dtype)
            return out
        result = place.empty(x.shape, x.dtype) if out is None else out
        address = joined_address(result, x, *(() if residual is None else (residual,)))
        vector = vector_width(x.dtype, x.shape[-1], address)
        packs = x.size // vector
        blocks = min(-(-packs // _THREADS), multiprocessors(place.device) * _WAVES)
        kernel = entry("add_columns", x.dtype, vector).on(place.device)
        kernel(blocks, _THREADS, result, residual, x, bias, packs, x.shape[-1])
    return result


def _check(where: str, x: Array, bias: Array | None) -> None:
    check(x, where, dtypes=KINDS, axes=1)
    if bias is not None:
        check(bias, f"{where}, columns", dtypes=(computing_dtype(x.dtype),), shape=(x.shape[-1],))
