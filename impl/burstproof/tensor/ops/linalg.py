"""Matrix products on NumPy and CuPy arrays; on a device through cuBLAS (``cublasGemmEx``, strided batches).

=================  =====================  ==================================================================
Elements           Result                 Computed in
=================  =====================  ==================================================================
float32            float32                float32; TF32 on tensor cores if ``tf32`` is set
float64            float64                float64
complex128         complex128             complex128
float16, bfloat16  same, or float32       products exact, sums in float32 (tensor cores where there are some)
int8               int32                  int32, exact
=================  =====================  ==================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import (
    check_contiguous,
    check_dimensions,
    check_dtype,
    check_same_dtype,
    check_shape,
)
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, checked_dtype
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import linalg_cublas, nn_reference
from burstproof.tensor.ops.product import Product

RESULTS: dict[np.dtype[Any], tuple[np.dtype[Any], ...]] = {
    FLOAT32: (FLOAT32,),
    FLOAT64: (FLOAT64,),
    COMPLEX128: (COMPLEX128,),
    FLOAT16: (FLOAT16, FLOAT32),
    BFLOAT16: (BFLOAT16, FLOAT32),
    INT8: (INT32,),
}
"""Element types of factors, and those that their product may have; the first is the default."""


def matmul(
    a: Array,
    b: Array,
    *,
    transpose_a: bool = False,
    transpose_b: bool = False,
    tf32: bool = False,
    dtype: np.dtype[Any] | str | None = None,
    out: Array | None = None,
    accumulate: bool = False,
) -> Array:
    """Matrix product of the last two axes.

    Parameters
    ----------
    a, b : array, (..., rows, inner) and (..., inner, columns), contiguous
        Factors of one dtype and device; leading axes are equal, or one factor has none and serves all.
    transpose_a, transpose_b : bool
        The factor is stored with its last two axes exchanged.
    tf32 : bool
        Round float32 factors to TF32 (10 bits of mantissa) and use tensor cores; the CPU computes in float32.
    dtype : dtype, optional
        Element type of the result, see the table above.
    out : array, optional
        Takes the result.
    accumulate : bool
        Add the product to what ``out`` holds.

    Returns
    -------
    array, (..., rows, columns)

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit; ``tf32`` for other types than float32; ``accumulate`` without
        ``out``.
    OutOfMemoryError
        No memory for the result.
    """
    place = backend_of(a, b, *([] if out is None else [out]))
    product = _checked(a, b, transpose_a, transpose_b)
    kind = _result_dtype(a, dtype)
    if tf32 and a.dtype != FLOAT32:
        raise ArrayError("TF32 is a way to multiply float32", where="matmul, tf32", got=str(a.dtype))
    if accumulate and out is None:
        raise ArrayError("there is nothing to add the product to", where="matmul, accumulate", cure="Pass out")
    result = place.empty(product.shape, kind) if out is None else _checked_out(out, product, kind)
    if not product.inner or not result.size:
        if not accumulate:
            result.fill(0)
        return result
    if place.name == "numpy":
        _on_host(result, a, b, transpose_a, transpose_b, accumulate)
        return result
    with place.use():
        linalg_cublas.multiply(result, a, b, product, transpose_a, transpose_b, tf32, accumulate)
    return result


def _checked(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> Product:
    for name, factor in (("a", a), ("b", b)):
        check_dtype(factor, RESULTS, f"matmul, {name}")
        check_dimensions(factor, 2, f"matmul, {name}")
        check_contiguous(factor, f"matmul, {name}")
    check_same_dtype(a, b, "matmul")
    rows, inner = a.shape[-2:] if not transpose_a else a.shape[:-3:-1]
    inner_b, columns = b.shape[-2:] if not transpose_b else b.shape[:-3:-1]
    if inner != inner_b:
        raise ArrayError(
            "the inner extents differ", where="matmul", got=f"({rows}, {inner}) times ({inner_b}, {columns})"
        )
    batch_a, batch_b = tuple(a.shape[:-2]), tuple(b.shape[:-2])
    if batch_a and batch_b and batch_a != batch_b:
        raise ArrayError(
            "the leading axes differ",
            where="matmul",
            got=(batch_a, batch_b),
            allowed="equal ones, or none for one factor",
        )
    return Product(batch_a or batch_b, rows, columns, inner)


def _result_dtype(a: Array, dtype: np.dtype[Any] | str | None) -> np.dtype[Any]:
    allowed = RESULTS[a.dtype]
    kind = allowed[0] if dtype is None else checked_dtype(dtype, "matmul, dtype")
    if kind not in allowed:
        raise ArrayError("no such result for these factors", where="matmul, dtype", got=kind, allowed=str(allowed))
    return kind


def _checked_out(out: Array, product: Product, kind: np.dtype[Any]) -> Array:
    check_shape(out, product.shape, "matmul, out")
    check_dtype(out, (kind,), "matmul, out")
    check_contiguous(out, "matmul, out")
    return out


def _on_host(result: Array, a: Array, b: Array, transpose_a: bool, transpose_b: bool, accumulate: bool) -> None:
    first, second = _computable(a), _computable(b)
    first = first.swapaxes(-1, -2) if transpose_a else first
    second = second.swapaxes(-1, -2) if transpose_b else second
    value = np.matmul(first, second)
    if accumulate:
        value = value + nn_reference.widened(result)
    result[...] = nn_reference.narrowed(value, result.dtype)


def _computable(factor: Array) -> Array:
    """int8 as float64, whose products and sums are exact up to 2^39 terms and which BLAS knows; halves as float32."""
    return factor.astype(FLOAT64) if factor.dtype == INT8 else nn_reference.widened(factor)
