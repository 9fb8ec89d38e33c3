"""Token and position embeddings, and their gradients, summed in ascending order of the rows on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check_contiguous, check_dtype, check_same_dtype, check_shape
from burstproof.tensor.array.dtypes import INT32
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import train_kernels
from burstproof.tensor.ops.nn_kernels import computing_dtype
from burstproof.tensor.ops.nn_reference import narrowed, widened
from burstproof.tensor.ops.row_plan import KINDS


def embed(tokens: Array, table: Array, places: Array) -> Array:
    """``table[token] + places[position]``.

    Parameters
    ----------
    tokens : array, (batch, length), int32
        Rows of ``table``. Checked on the CPU; on a device the caller answers for them.
    table : array, (entries, width), float32, float64, float16 or bfloat16
    places : array, (at least length, width)
        Same dtype.

    Returns
    -------
    array, (batch, length, width)

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit, no tokens, tokens beyond the table.
    """
    place = backend_of(tokens, table, places)
    _check("embed", tokens, table, places)
    if place.device is None:
        _check_range("embed", tokens, table.shape[0])
        return narrowed(widened(table)[tokens] + widened(places)[: tokens.shape[1]], table.dtype)
    with place.use():
        rows = place.empty((*tokens.shape, table.shape[1]), table.dtype)
        train_kernels.embed(rows, tokens, table, places)
    return rows


def embed_backward(
    gradient: Array,
    tokens: Array,
    table_gradient: Array,
    place_gradient: Array,
    *,
    order: tuple[Array, Array] | None = None,
) -> None:
    """Add the gradient of the table to ``table_gradient`` and write that of the positions.

    Parameters
    ----------
    gradient : array, (batch, length, width)
        Gradient of what ``embed`` returned.
    tokens : array, (batch, length), int32
        As given to ``embed``.
    table_gradient : array, (entries, width), float32 (float64 for float64)
    place_gradient : array, (at least length, width)
        Same dtype; positions beyond ``length`` get 0.
    order : two arrays, (tokens,), int32, optional
        Rows sorted by token, equal tokens in ascending order, and their tokens; sorted here by default.

    Raises
    ------
    ArrayError
        As ``embed``.
    """
    where = "embed_backward"
    place = backend_of(gradient, tokens, table_gradient, place_gradient)
    _check(where, tokens, table_gradient, place_gradient)
    check_dtype(gradient, KINDS, f"{where}, gradient")
    check_dtype(table_gradient, (computing_dtype(gradient.dtype),), f"{where}, table_gradient")
    check_shape(gradient, (*tokens.shape, table_gradient.shape[1]), f"{where}, gradient")
    check_contiguous(gradient, where)
    place_gradient[tokens.shape[1] :] = 0
    if place.device is None:
        _check_range(where, tokens, table_gradient.shape[0])
        wide = widened(gradient)
        np.add.at(table_gradient, tokens, wide)
        place_gradient[: tokens.shape[1]] = wide.sum(axis=0)
        return
    if order is not None:
        for array in order:
            check_dtype(array, (INT32,), f"{where}, order")
            check_shape(array, (tokens.size,), f"{where}, order")
            check_contiguous(array, f"{where}, order")
    with place.use():
        train_kernels.embed_backward(
            table_gradient, place_gradient, gradient, tuple(tokens.shape), *(order or _sorted(tokens))
        )


def _sorted(tokens: Array) -> tuple[Array, Array]:
    """Rows by token and their tokens, on the device."""
    flat = tokens.ravel()
    order = backend_of(tokens).xp.argsort(flat, kind="stable").astype(INT32)
    return order, flat[order]


def _check(where: str, tokens: Any, table: Any, places: Any) -> None:
    check_dtype(tokens, (INT32,), f"{where}, tokens")
    check_dtype(table, KINDS, f"{where}, table")
    check_same_dtype(table, places, f"{where}, places")
    for name, array in (("tokens", tokens), ("table", table), ("places", places)):
        check_contiguous(array, f"{where}, {name}")
        if array.ndim != 2 or 0 in array.shape:
            raise ArrayError("must have two axes and not be empty", where=f"{where}, {name}", got=tuple(array.shape))
    if places.shape[0] < tokens.shape[1] or places.shape[1] != table.shape[1]:
        raise ArrayError(
            "the positions do not fit the tokens and the table",
            where=f"{where}, places",
            got=tuple(places.shape),
            allowed=f"at least {tokens.shape[1]} x {table.shape[1]}",
        )


def _check_range(where: str, tokens: Any, entries: int) -> None:
    if int(tokens.min()) < 0 or int(tokens.max()) >= entries:
        raise ArrayError(
            "a token is not in the table",
            where=where,
            got=(int(tokens.min()), int(tokens.max())),
            allowed=f"0 to {entries - 1}",
        )
