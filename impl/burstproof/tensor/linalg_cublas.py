"""Calls of cuBLAS for row-major arrays: a row-major product is the column-major product of the exchanged factors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.backend import Array
from burstproof.tensor.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT32

if TYPE_CHECKING:
    from burstproof.tensor.linalg import Product

_DATA_TYPES = {FLOAT32: 0, FLOAT64: 1, FLOAT16: 2, INT8: 3, COMPLEX128: 5, INT32: 10, BFLOAT16: 14}
"""cudaDataType: CUDA_R_32F, CUDA_R_64F, CUDA_R_16F, CUDA_R_8I, CUDA_C_64F, CUDA_R_32I, CUDA_R_16BF."""

_COMPUTE_32F, _COMPUTE_64F, _COMPUTE_32I, _COMPUTE_FAST_TF32 = 68, 70, 72, 77
"""cublasComputeType_t."""

_KEEP, _EXCHANGE = 0, 1
_HOST_POINTERS = 0
_DEFAULT_ALGORITHM = -1
_INT8_MULTIPLE = 4


@dataclass(frozen=True)
class _Factor:
    """A factor as cuBLAS sees it: address, leading dimension, whether to transpose, elements between two of a batch."""

    address: int
    leading: int
    operation: int
    stride: int


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
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    if a.dtype == INT8:
        _check_int8(product)
    compute, scalar = _computation(a.dtype, tf32)
    one, other = np.array(1, scalar), np.array(int(accumulate), scalar)
    first, second = _factor(b, transpose_b), _factor(a, transpose_a)
    kind, made = _DATA_TYPES[a.dtype], _DATA_TYPES[result.dtype]
    extents = (product.columns, product.rows, product.inner)
    handle = device.get_cublas_handle()
    mode = cublas.getPointerMode(handle)
    cublas.setPointerMode(handle, _HOST_POINTERS)
    head = (handle, first.operation, second.operation, *extents, one.ctypes.data)
    try:
        if not product.batch:
            factors: tuple[Any, ...] = (first.address, kind, first.leading, second.address, kind, second.leading)
            target = (other.ctypes.data, result.data.ptr, made, product.columns)
            cublas.gemmEx(*head, *factors, *target, compute, _DEFAULT_ALGORITHM)
        else:
            factors = (first.address, kind, first.leading, first.stride)
            factors += (second.address, kind, second.leading, second.stride)
            target = (other.ctypes.data, result.data.ptr, made, product.columns)
            stride = product.rows * product.columns
            count = math.prod(product.batch)
            cublas.gemmStridedBatchedEx(*head, *factors, *target, stride, count, compute, _DEFAULT_ALGORITHM)
    finally:
        cublas.setPointerMode(handle, mode)


def _computation(dtype: np.dtype[Any], tf32: bool) -> tuple[int, type[np.generic]]:
    """cuBLAS's compute type, and the type of its two factors of proportion."""
    if dtype == INT8:
        return _COMPUTE_32I, np.int32
    if dtype in (FLOAT64, COMPLEX128):
        return _COMPUTE_64F, dtype.type
    return (_COMPUTE_FAST_TF32 if tf32 else _COMPUTE_32F), np.float32


def _factor(array: Array, transpose: bool) -> _Factor:
    stride = array.shape[-1] * array.shape[-2] if array.ndim > 2 else 0
    return _Factor(int(array.data.ptr), array.shape[-1], _EXCHANGE if transpose else _KEEP, stride)


def _check_int8(product: Product) -> None:
    if any(extent % _INT8_MULTIPLE for extent in (product.rows, product.columns, product.inner)):
        raise ArrayError(
            "cuBLAS multiplies int8 matrices whose extents are multiples of 4 only",
            where="matmul",
            got=(product.rows, product.inner, product.columns),
            cure="Pad with zeros",
        )
