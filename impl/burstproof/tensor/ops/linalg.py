"""Matrix products on NumPy and CuPy arrays; on a device through cuBLAS (``cublasGemmEx``, strided batches).

cuBLAS is column-major: a row-major product is the column-major product of the exchanged factors.

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

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_same_dtype
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, checked_dtype
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import nn_reference

RESULTS: dict[np.dtype[Any], tuple[np.dtype[Any], ...]] = {
    FLOAT32: (FLOAT32,),
    FLOAT64: (FLOAT64,),
    COMPLEX128: (COMPLEX128,),
    FLOAT16: (FLOAT16, FLOAT32),
    BFLOAT16: (BFLOAT16, FLOAT32),
    INT8: (INT32,),
}
"""Element types of factors, and those that their product may have; the first is the default."""


_DATA_TYPES = {FLOAT32: 0, FLOAT64: 1, FLOAT16: 2, INT8: 3, COMPLEX128: 5, INT32: 10, BFLOAT16: 14}
"""cudaDataType: CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_C_64F, CUDA_R_32I, CUDA_R_16BF."""

_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32I, _COMPUTE_FAST_TF32 = 68, 70, 72, 77
"""cublasComputeType_t."""

_HOST_POINTERS = 0
_DEFAULT_ALGORITHM = -1
_INT8_MULTIPLE = 4


@dataclass(frozen=True)
class _Product:
    """Leading axes of a product, and its matrices: (rows, inner) times (inner, columns), factors stored transposed."""

    batch: tuple[int, ...]
    rows: int
    columns: int
    inner: int
    transpose_a: bool
    transpose_b: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the result."""
        return (*self.batch, self.rows, self.columns)


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
    if out is not None:
        check(out, "matmul, out", dtypes=(kind,), shape=product.shape)
    result = place.empty(product.shape, kind) if out is None else out
    if not product.inner or not result.size:
        if not accumulate:
            with place.use():
                result.fill(0)
        return result
    if place.device is None:
        _on_host(result, a, b, product, accumulate)
        return result
    with place.use():
        _on_device(result, a, b, product, tf32, accumulate)
    return result


def _checked(a: Array, b: Array, transpose_a: bool, transpose_b: bool) -> _Product:
    for name, factor in (("a", a), ("b", b)):
        check(factor, f"matmul, {name}", dtypes=RESULTS, axes=2)
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
    return _Product(batch_a or batch_b, rows, columns, inner, transpose_a, transpose_b)


def _result_dtype(a: Array, dtype: np.dtype[Any] | str | None) -> np.dtype[Any]:
    allowed = RESULTS[a.dtype]
    kind = allowed[0] if dtype is None else checked_dtype(dtype, "matmul, dtype")
    if kind not in allowed:
        raise ArrayError("no such result for these factors", where="matmul, dtype", got=kind, allowed=str(allowed))
    return kind


def _on_host(result: Array, a: Array, b: Array, product: _Product, accumulate: bool) -> None:
    first, second = _computable(a), _computable(b)
    first = first.swapaxes(-1, -2) if product.transpose_a else first
    second = second.swapaxes(-1, -2) if product.transpose_b else second
    value = np.matmul(first, second)
    if accumulate:
        value = value + nn_reference.widened(result)
    result[...] = nn_reference.narrowed(value, result.dtype)


def _computable(factor: Array) -> Array:
    """int8 as float64, whose products and sums are exact up to 2^39 terms and which BLAS knows; halves as float32."""
    return factor.astype(FLOAT64) if factor.dtype == INT8 else nn_reference.widened(factor)


def _on_device(result: Array, a: Array, b: Array, product: _Product, tf32: bool, accumulate: bool) -> None:
    """Queue ``result = a b`` (or ``result += a b``); all checked, not empty, on the current device."""
    from cupy import ascontiguousarray
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    if a.dtype == INT8:
        _check_int8(product)
        # The tensor cores' int8 product is fast in one layout only: both factors run along the inner extent.
        a = ascontiguousarray(a.swapaxes(-1, -2)) if product.transpose_a else a
        b = b if product.transpose_b else ascontiguousarray(b.swapaxes(-1, -2))
        product = replace(product, transpose_a=False, transpose_b=True)
    compute, factors = _computation(a.dtype, tf32)
    one, other = factors.ctypes.data, factors.ctypes.data + (0 if accumulate else factors.itemsize)
    kind, made = _DATA_TYPES[a.dtype], _DATA_TYPES[result.dtype]
    columns, rows, handle = product.columns, product.rows, device.get_cublas_handle()
    head = (handle, int(product.transpose_b), int(product.transpose_a), columns, rows, product.inner, one)
    first, second = (b.data.ptr, kind, b.shape[-1]), (a.data.ptr, kind, a.shape[-1])
    target = (other, result.data.ptr, made, columns)
    mode = cublas.getPointerMode(handle)
    if mode != _HOST_POINTERS:
        cublas.setPointerMode(handle, _HOST_POINTERS)
    try:
        if not product.batch:
            cublas.gemmEx(*head, *first, *second, *target, compute, _DEFAULT_ALGORITHM)
            return
        batch = rows * columns, math.prod(product.batch), compute, _DEFAULT_ALGORITHM
        cublas.gemmStridedBatchedEx(*head, *first, _stride(b), *second, _stride(a), *target, *batch)
    finally:
        if mode != _HOST_POINTERS:
            cublas.setPointerMode(handle, mode)


@lru_cache(maxsize=16)
def _computation(dtype: np.dtype[Any], tf32: bool) -> tuple[int, np.ndarray[Any, np.dtype[Any]]]:
    """cuBLAS's compute type, and 1 and 0 in the type of its factors of proportion, which it reads from the host."""
    if dtype == INT8:
        return _COMPUTE_32I, np.array([1, 0], np.int32)
    if dtype in (FLOAT64, COMPLEX128):
        return _COMPUTE_64F, np.array([1, 0], dtype)
    return (_COMPUTE_FAST_TF32 if tf32 else _COMPUTE_32F), np.array([1, 0], np.float32)


def _stride(factor: Array) -> int:
    """Elements between two matrices of a batch; 0 for one matrix that serves all."""
    return int(factor.shape[-1] * factor.shape[-2]) if factor.ndim > 2 else 0


def _check_int8(product: _Product) -> None:
    if any(extent % _INT8_MULTIPLE for extent in (product.rows, product.columns, product.inner)):
        raise ArrayError(
            "cuBLAS multiplies int8 matrices whose extents are multiples of 4 only",
            where="matmul",
            got=(product.rows, product.inner, product.columns),
            cure="Pad with zeros",
        )
