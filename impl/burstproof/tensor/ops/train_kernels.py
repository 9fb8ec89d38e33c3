"""The kernels of training: linear layers' biases, embeddings, cross entropy, AdamW. Nothing is checked here."""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT32
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.nn_kernels import computing_dtype, multiprocessors, reduce_columns
from burstproof.tensor.ops.row_plan import KINDS, vector_width

_THREADS = 256
_CROSS_ENTROPY_THREADS = 512
_SUM_LANES = 32
_WAVES = 8

_FILES = {
    "add_columns": "train_columns.cu",
    "sum_rows": "train_columns.cu",
    "cross_entropy": "cross_entropy.cu",
    "adamw": "adamw.cu",
    "embed": "embedding.cu",
    "embed_backward_tokens": "embedding.cu",
    "embed_backward_places": "embedding.cu",
}
_PARAMETERS = {
    "add_columns": "{s}[] {s}[]? {s}[] {n}[]? int64 int32",
    "sum_rows": "{n}[] {s}[] int32 int32",
    "cross_entropy": "{s}[] int32[] {n}[] int32 int32 {n}",
    "adamw": "float32[] float32[] float32[] float32[] {s}[]? int64 int64 int64" + " float32" * 6,
    "embed": "{s}[] int32[] {s}[] {s}[] int32 int32",
    "embed_backward_tokens": "{n}[] {s}[] int32[] int32[] int32 int32",
    "embed_backward_places": "{n}[] {s}[] int32 int32 int32",
}


@lru_cache(maxsize=128)
def train_entry(function: str, dtype: np.dtype[Any], vector: int = 1) -> Entry:
    """The kernel ``function`` for rows of ``dtype``, accessed ``vector`` elements at a time."""
    threads = _CROSS_ENTROPY_THREADS if function == "cross_entropy" else _THREADS
    defines = (("KIND", KINDS[dtype]), ("VEC", str(vector)), ("THREADS", str(threads)), ("HINTS", "0"))
    source = CudaSource.beside(__file__, "element.cuh", _FILES[function], options=SourceOptions(defines=defines))
    stored = "bfloat16" if dtype == BFLOAT16 else str(dtype)
    return Entry(source, function, _PARAMETERS[function].format(s=stored, n=computing_dtype(dtype)), threads)


CATALOGUE: tuple[Entry, ...] = tuple(train_entry(function, BFLOAT16, 8) for function in _FILES)


def _vector(columns: int, *arrays: Array) -> int:
    """Widest access that rows of ``columns`` elements at these addresses allow."""
    return vector_width(arrays[0].dtype, columns, reduce(or_, (int(array.data.ptr) for array in arrays)))


def add_columns(result: Array, residual: Array | None, source: Array, bias: Array | None) -> None:
    """Queue ``source (+ residual) (+ bias of each column)``."""
    columns = source.shape[-1]
    arrays = [result, source] if residual is None else [result, source, residual]
    vector = _vector(columns, *arrays)
    kernel = train_entry("add_columns", source.dtype, vector).on(source.device.id)
    packs = source.size // vector
    blocks = min(-(-packs // _THREADS), multiprocessors(kernel.device_id) * _WAVES)
    kernel(blocks, _THREADS, result, residual, source, bias, packs, columns)


def sum_rows(result: Array, source: Array) -> None:
    """Queue the sums over all axes but the last of ``source``, in a fixed order."""
    import cupy

    columns = source.shape[-1]
    rows = source.size // columns
    vector = _vector(columns, source)
    kernel = train_entry("sum_rows", source.dtype, vector).on(source.device.id)
    across = -(-columns // (_SUM_LANES * vector))
    pieces = max(1, min(rows // 8, multiprocessors(kernel.device_id) * 2 // across))
    partial = cupy.empty((pieces, columns), result.dtype)
    kernel((across, pieces), _THREADS, partial, source, rows, columns)
    reduce_columns(result, partial)


def cross_entropy(losses: Array, logits: Array, targets: Array, classes: int, factor: float) -> None:
    """Queue losses of the rows, and their gradient times ``factor`` in place of ``logits`` (rows, columns)."""
    rows, columns = logits.shape
    kernel = train_entry("cross_entropy", logits.dtype, _vector(columns, logits)).on(logits.device.id)
    kernel(rows, _CROSS_ENTROPY_THREADS, logits, targets, losses, classes, columns, factor)


def embed(rows: Array, tokens: Array, table: Array, places: Array) -> None:
    """Queue ``table[token] + places[position]``; ``tokens`` is (batch, length)."""
    length, width = tokens.shape[1], table.shape[1]
    kernel = train_entry("embed", table.dtype, _vector(width, rows, table, places)).on(rows.device.id)
    kernel(tokens.size, 128, rows, tokens, table, places, length, width)


def embed_backward(
    table_gradient: Array, place_gradient: Array, gradient: Array, shape: tuple[int, int], order: Array, ordered: Array
) -> None:
    """Queue the gradients; that of the table is added, that of the places written. ``shape`` is (batch, length)."""
    batch, length = shape
    width = table_gradient.shape[1]
    vector = _vector(width, gradient)
    by_token = train_entry("embed_backward_tokens", gradient.dtype, vector).on(gradient.device.id)
    by_token(order.size, 128, table_gradient, gradient, order, ordered, order.size, width)
    by_place = train_entry("embed_backward_places", gradient.dtype, vector).on(gradient.device.id)
    by_place(length, 128, place_gradient, gradient, batch, length, width)


def adamw(
    weights: Array,
    gradients: Array,
    moments: tuple[Array, Array],
    copy: Array | None,
    decayed: int,
    rates: tuple[float, float, float, float, float, float],
) -> None:
    """Queue one step; ``rates`` as the kernel has them: step, betas, epsilon, decay, second correction."""
    copied = 0 if copy is None else copy.size
    kernel = train_entry("adamw", FLOAT32 if copy is None else copy.dtype).on(weights.device.id)
    blocks = -(-weights.size // (4 * _THREADS))
    kernel(blocks, _THREADS, weights, gradients, *moments, copy, weights.size, decayed, copied, *rates)
