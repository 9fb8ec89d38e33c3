"""Token and position embeddings, and their gradients, summed in ascending order of the rows on every backend."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_same_dtype
from burstproof.tensor.array.dtypes import INT32
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.kernels import KINDS, build, computing_dtype, joined_address, vector_width
from burstproof.tensor.ops.nn_reference import narrowed, widened

_THREADS = 128
_PARAMETERS = {
    "embed": "{s}[] int32[] {s}[] {s}[] int32 int32",
    "embed_backward_tokens": "{n}[] {s}[] int32[] int32[] int32 int32",
    "embed_backward_places": "{n}[] {s}[] int32 int32 int32",
}


@lru_cache(maxsize=64)
def entry(function: str, dtype: np.dtype[Any], vector: int) -> Entry:
    """A kernel of embedding.cu for accesses of ``vector`` elements."""
    macros = {"VEC": vector, "THREADS": 256, "HINTS": 0}
    return build(("embedding.cu",), function, _PARAMETERS[function], dtype, 256, **macros)


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
        length, width = tokens.shape[1], table.shape[1]
        rows = place.empty((*tokens.shape, width), table.dtype)
        vector = vector_width(table.dtype, width, joined_address(rows, table, places))
        kernel = entry("embed", table.dtype, vector).on(place.device)
        kernel(tokens.size, _THREADS, rows, tokens, table, places, length, width)
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
    (batch, length), width = tokens.shape, table_gradient.shape[1]
    check(gradient, f"{where}, gradient", dtypes=KINDS, shape=(batch, length, width))
    check(table_gradient, f"{where}, table_gradient", dtypes=(computing_dtype(gradient.dtype),))
    with place.use():
        place_gradient[length:] = 0
    if place.device is None:
        _check_range(where, tokens, table_gradient.shape[0])
        wide = widened(gradient)
        np.add.at(table_gradient, tokens, wide)
        place_gradient[:length] = wide.sum(axis=0)
        return
    for array in order or ():
        check(array, f"{where}, order", dtypes=(INT32,), shape=(tokens.size,))
    with place.use():
        rows = order or _sorted(tokens)
        vector = vector_width(gradient.dtype, width, joined_address(gradient))
        by_token = entry("embed_backward_tokens", gradient.dtype, vector).on(place.device)
        by_token(tokens.size, _THREADS, table_gradient, gradient, *rows, tokens.size, width)
        by_place = entry("embed_backward_places", gradient.dtype, vector).on(place.device)
        by_place(length, _THREADS, place_gradient, gradient, batch, length, width)


def _sorted(tokens: Array) -> tuple[Array, Array]:
    """Rows by token and their tokens, on the device."""
    flat = tokens.ravel()
    order = backend_of(tokens).xp.argsort(flat, kind="stable").astype(INT32)
    return order, flat[order]


def _check(where: str, tokens: Array, table: Array, places: Array) -> None:
    check_same_dtype(table, places, f"{where}, places")
    for name, array, dtypes in (("tokens", tokens, (INT32,)), ("table", table, KINDS), ("places", places, KINDS)):
        check(array, f"{where}, {name}", dtypes=dtypes)
        if array.ndim != 2 or 0 in array.shape:
            raise ArrayError("must have two axes and not be empty", where=f"{where}, {name}", got=tuple(array.shape))
    if places.shape[0] < tokens.shape[1] or places.shape[1] != table.shape[1]:
        raise ArrayError(
            "the positions do not fit the tokens and the table",
            where=f"{where}, places",
            got=tuple(places.shape),
            allowed=f"at least {tokens.shape[1]} x {table.shape[1]}",
        )


def _check_range(where: str, tokens: Array, entries: int) -> None:
    if int(tokens.min()) < 0 or int(tokens.max()) >= entries:
        raise ArrayError(
            "a token is not in the table",
            where=where,
            got=(int(tokens.min()), int(tokens.max())),
            allowed=f"0 to {entries - 1}",
        )
