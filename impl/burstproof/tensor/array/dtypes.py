"""Which element types the tensor operations know, and bfloat16, which NumPy lacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import ArrayError

FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
FLOAT16 = np.dtype(np.float16)
COMPLEX128 = np.dtype(np.complex128)
INT8 = np.dtype(np.int8)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)
BFLOAT16 = np.dtype(np.uint16)
"""bfloat16 is kept as its bit pattern in uint16: no operation of this package computes with 16-bit integers."""

DTYPES: tuple[np.dtype[Any], ...] = (FLOAT32, FLOAT64, COMPLEX128, FLOAT16, BFLOAT16, INT8, INT32, INT64, BOOL)
"""Every element type that a backend allocates."""

_KNOWN = frozenset(DTYPES)


def dtype_name(dtype: npt.DTypeLike) -> str:
    """Name for people: ``bfloat16`` for uint16, else NumPy's."""
    known = np.dtype(dtype)
    return "bfloat16" if known == BFLOAT16 else str(known)


def names_of(dtypes: Iterable[np.dtype[Any]]) -> str:
    """Names of several element types, for an error message."""
    return ", ".join(dtype_name(dtype) for dtype in dtypes)


def checked_dtype(dtype: npt.DTypeLike, where: str) -> np.dtype[Any]:
    """``dtype`` as one of ``DTYPES``; the string ``"bfloat16"`` and a foreign bfloat16 type are taken as uint16.

    Raises
    ------
    ArrayError
        Any other element type.
    """
    if isinstance(dtype, np.dtype) and dtype in _KNOWN:
        return dtype
    if dtype == "bfloat16" or getattr(dtype, "name", None) == "bfloat16":
        return BFLOAT16
    try:
        known = None if dtype is None else np.dtype(dtype)
    except TypeError:
        known = None
    if known is None or known not in DTYPES:
        raise ArrayError("element type that no operation knows", where=where, got=dtype, allowed=names_of(DTYPES))
    return known


def to_bfloat16(values: npt.NDArray[Any]) -> npt.NDArray[np.uint16]:
    """Bit patterns of the bfloat16 numbers nearest to ``values``, ties to even; a NaN stays a (quiet) NaN.

    Parameters
    ----------
    values : ndarray
        Real numbers of any shape; taken as float32 first.
    """
    single = np.ascontiguousarray(values, dtype=np.float32)
    bits = single.view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(single), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def from_bfloat16(bits: npt.NDArray[np.uint16]) -> npt.NDArray[np.float32]:
    """float32 values of bfloat16 bit patterns, exact; same shape."""
    return (np.ascontiguousarray(bits, dtype=np.uint16).astype(np.uint32) << 16).view(np.float32)
