"""What a linear layer does besides its matrix products: bias, residual sum, gradient of the bias."""

from __future__ import annotations

from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import (
    check_contiguous,
    check_dimensions,
    check_dtype,
    check_same_dtype,
    check_shape,
)
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import train_kernels
from burstproof.tensor.ops.nn_kernels import computing_dtype
from burstproof.tensor.ops.nn_reference import narrowed, widened
from burstproof.tensor.ops.row_plan import KINDS


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
    if place.device is None or not gradient.size:
        out[...] = widened(gradient).reshape(-1, gradient.shape[-1]).sum(axis=0)
        return
    with place.use():
        train_kernels.sum_rows(out, gradient)


def _add(where: str, out: Array | None, residual: Array | None, x: Array, bias: Array | None) -> Array:
    others = [array for array in (residual, bias) if array is not None]
    place = backend_of(x, *others)
    _check(where, x, bias)
    if residual is not None:
        check_same_dtype(x, residual, where)
        check_shape(residual, tuple(x.shape), where)
        check_contiguous(residual, where)
    if place.device is None or not x.size:
        total = widened(x) if bias is None else widened(x) + bias
        total = total if residual is None else total + widened(residual)
        if out is None:
            return narrowed(total, x.dtype)
        out[...] = narrowed(total, x.dtype)
        return out
    with place.use():
        result = place.empty(x.shape, x.dtype) if out is None else out
        train_kernels.add_columns(result, residual, x, bias)
    return result


def _check(where: str, x: Array, bias: Array | None) -> None:
    check_dtype(x, KINDS, where)
    check_dimensions(x, 1, where)
    check_contiguous(x, where)
    if bias is not None:
        check_dtype(bias, (computing_dtype(x.dtype),), f"{where}, columns")
        check_shape(bias, (x.shape[-1],), f"{where}, columns")
        check_contiguous(bias, f"{where}, columns")
