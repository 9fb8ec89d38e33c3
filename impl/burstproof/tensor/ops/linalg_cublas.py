"""Calls of cuBLAS for row-major arrays: a row-major product is the column-major product of the exchanged factors."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT32
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.product import Product

_DATA_TYPES = {FLOAT32: 0, FLOAT64: 1, FLOAT16: 2, INT8: 3, COMPLEX128: 5, INT32: 10, BFLOAT16: 14}
"""cudaDataType: CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_C_64F, CUDA_R_32I, CUDA_R_16BF."""

_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32I, _COMPUTE_FAST_TF32 = 68, 70, 72, 77
"""cublasComputeType_t."""

_HOST_POINTERS = 0
_DEFAULT_ALGORITHM = -1
_INT8_MULTIPLE = 4


def multiply(
    result: Array,
    a: Array,
    b: Array,
    product: Product,
    transpose_a: bool,
    transpose_b: bool,
    tf32: bool,
    accumulate: bool,
) -> None:
    """Queue ``result = a b`` (or ``result += a b``); all checked, contiguous, not empty, on the current device.

    Raises
    ------
    ArrayError
        int8 factors whose extents are no multiples of 4, which tensor cores ask for.
    """
    if a.dtype == INT8:
        _check_int8(product)
        # The tensor cores' int8 product is fast in one layout only: both factors run along the inner extent.
        a = _exchanged(a) if transpose_a else a
        b = b if transpose_b else _exchanged(b)
        transpose_a, transpose_b = False, True
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    handle = device.get_cublas_handle()
    mode = cublas.getPointerMode(handle)
    if mode == _HOST_POINTERS:
        _call(cublas, handle, result, a, b, product, transpose_a, transpose_b, tf32, accumulate)
        return
    cublas.setPointerMode(handle, _HOST_POINTERS)
    try:
        _call(cublas, handle, result, a, b, product, transpose_a, transpose_b, tf32, accumulate)
    finally:
        cublas.setPointerMode(handle, mode)


def _call(
    cublas: Any,
    handle: int,
    result: Array,
    a: Array,
    b: Array,
    product: Product,
    transpose_a: bool,
    transpose_b: bool,
    tf32: bool,
    accumulate: bool,
) -> None:
    compute, factors = _computation(a.dtype, tf32)
    one, other = factors.ctypes.data, factors.ctypes.data + (0 if accumulate else factors.itemsize)
    kind, made = _DATA_TYPES[a.dtype], _DATA_TYPES[result.dtype]
    columns, rows = product.columns, product.rows
    head = (handle, int(transpose_b), int(transpose_a), columns, rows, product.inner, one)
    first, second = (b.data.ptr, kind, b.shape[-1]), (a.data.ptr, kind, a.shape[-1])
    target = (other, result.data.ptr, made, columns)
    if not product.batch:
        cublas.gemmEx(*head, *first, *second, *target, compute, _DEFAULT_ALGORITHM)
        return
    count = math.prod(product.batch)
    cublas.gemmStridedBatchedEx(
        *head, *first, _stride(b), *second, _stride(a), *target, rows * columns, count, compute, _DEFAULT_ALGORITHM
    )


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


def _exchanged(factor: Array) -> Array:
    import cupy

    return cupy.ascontiguousarray(factor.swapaxes(-1, -2))


def _check_int8(product: Product) -> None:
    if any(extent % _INT8_MULTIPLE for extent in (product.rows, product.columns, product.inner)):
        raise ArrayError(
            "cuBLAS multiplies int8 matrices whose extents are multiples of 4 only",
            where="matmul",
            got=(product.rows, product.inner, product.columns),
            cure="Pad with zeros",
        )
