"""What operations check of their arguments before any work is queued; every refusal is an ``ArrayError``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.dtypes import dtype_name, names_of
from burstproof.tensor.array.protocol import Array, Shape


def checked_shape(shape: Shape, where: str) -> tuple[int, ...]:
    """``shape`` as a tuple of non-negative integers.

    Raises
    ------
    ArrayError
        Something else.
    """
    if type(shape) is tuple:
        for extent in shape:
            if type(extent) is not int or extent < 0:
                break
        else:
            return shape
    extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if any(isinstance(extent, bool) or not isinstance(extent, int | np.integer) or extent < 0 for extent in extents):
        raise ArrayError("extents must be integers of at least 0", where=where, got=shape)
    return tuple(int(extent) for extent in extents)


def check(
    array: Array,
    where: str,
    *,
    dtypes: Collection[np.dtype[Any]] | None = None,
    axes: int = 0,
    shape: tuple[int, ...] | None = None,
) -> None:
    """Refuse an array of another dtype or shape, with fewer than ``axes`` axes, or not C-contiguous.

    A hidden conversion or copy would cost more than the operation.
    """
    if dtypes is not None:
        check_dtype(array, dtypes, where)
    if array.ndim < axes:
        raise ArrayError(
            "the array has too few dimensions", where=where, got=tuple(array.shape), allowed=f"{axes} or more"
        )
    if shape is not None:
        check_shape(array, shape, where)
    check_contiguous(array, where)


def check_alike(array: Array, model: Array, where: str) -> None:
    """Refuse an array without the dtype and shape of ``model``, or not C-contiguous."""
    check_same_dtype(model, array, where)
    check(array, where, shape=tuple(model.shape))


def check_dtype(array: Array, allowed: Collection[np.dtype[Any]], where: str) -> None:
    """Refuse an array whose dtype is not among ``allowed``."""
    if array.dtype not in allowed:
        raise ArrayError(
            "the operation does not take this element type",
            where=where,
            got=dtype_name(array.dtype),
            allowed=names_of(allowed),
            cure="Convert the array first",
        )


def check_same_dtype(first: Array, second: Array, where: str) -> None:
    """Refuse two arrays of different dtypes: nothing is converted silently."""
    if first.dtype != second.dtype:
        raise ArrayError(
            "the arrays have different element types",
            where=where,
            got=f"{dtype_name(first.dtype)} and {dtype_name(second.dtype)}",
            cure="Convert one of them first",
        )


def check_shape(array: Array, expected: tuple[int, ...], where: str) -> None:
    """Refuse an array whose shape is not ``expected``."""
    if tuple(array.shape) != expected:
        raise ArrayError("the array has the wrong shape", where=where, got=tuple(array.shape), allowed=str(expected))


def check_contiguous(array: Array, where: str) -> None:
    """Refuse an array that is not C-contiguous."""
    if not array.flags.c_contiguous:
        raise ArrayError(
            "the array is not contiguous in row-major order",
            where=where,
            got=f"strides {array.strides} of shape {tuple(array.shape)}",
            cure="Copy it with ascontiguousarray first",
        )
