"""How the CUDA C++ beside these modules is built for an element type, and what launches share. Nothing is checked."""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import or_
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array

KINDS: dict[np.dtype[Any], str] = {
    FLOAT32: "FLOAT32",
    FLOAT64: "FLOAT64",
    FLOAT16: "FLOAT16",
    BFLOAT16: "BFLOAT16",
}
"""Names in element.cuh of the element types that rows have."""

VECTOR_BYTES = 16
COLUMN_THREADS = 128
COLUMN_UNROLL = 4
_REDUCE_COLUMNS = 32
_REDUCE_THREADS = 1024

_COLUMN_PARAMETERS = {
    "bias_gelu_forward": "{s}[] {s}[] {n}[] int64 int32",
    "bias_gelu_backward": "{s}[] {n}[] {s}[] {s}[] {n}[] int64 int32",
    "reduce_columns": "{n}[] {n}[] int32 int32",
}


def computing_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Type in which rows of ``dtype`` are computed, and that of scale, shift, bias and their gradients."""
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def build(
    files: tuple[str, ...], function: str, parameters: str, dtype: np.dtype[Any], threads: int, **macros: int
) -> Entry:
    """The kernel ``function`` of ``files`` for elements of ``dtype``.

    Parameters
    ----------
    files : tuple of str
        Joined behind element.cuh.
    function : str
    parameters : str
        As ``Entry`` takes them, with ``{s}`` for the type of stored elements and ``{n}`` for the computing type.
    dtype : dtype
    threads : int
        Threads per block.
    **macros : int
    """
    defines = (("KIND", KINDS[dtype]), *((name, str(int(value))) for name, value in macros.items()))
    source = CudaSource.beside(__file__, "element.cuh", *files, options=SourceOptions(defines=defines))
    stored = "bfloat16" if dtype == BFLOAT16 else str(dtype)
    return Entry(source, function, parameters.format(s=stored, n=computing_dtype(dtype)), threads)


@lru_cache(maxsize=64)
def column_entry(function: str, dtype: np.dtype[Any], vector: int, tanh: bool) -> Entry:
    """A kernel of columns.cu for accesses of ``vector`` elements."""
    block = _REDUCE_THREADS if function == "reduce_columns" else COLUMN_THREADS
    macros = {"VEC": vector, "THREADS": COLUMN_THREADS, "UNROLL": COLUMN_UNROLL, "TANH": tanh, "HINTS": 1}
    return build(("columns.cu",), function, _COLUMN_PARAMETERS[function], dtype, block, **macros)


def reduce_columns(result: Array, partial: Array) -> None:
    """Queue the sums over the last but one axis of ``partial`` ([sets,] groups, columns), in a fixed order."""
    groups, columns = partial.shape[-2:]
    sets = partial.shape[0] if partial.ndim == 3 else 1
    kernel = column_entry("reduce_columns", result.dtype, 1, True).on(result.device.id)
    kernel((-(-columns // _REDUCE_COLUMNS), sets), _REDUCE_THREADS, result, partial, groups, columns)


def joined_address(*arrays: Array) -> int:
    """Bitwise or of the addresses: aligned as the least aligned of them."""
    return reduce(or_, (int(array.data.ptr) for array in arrays))


def vector_width(dtype: np.dtype[Any], columns: int, address: int) -> int:
    """Elements that one access of at most 16 bytes may take: rows and addresses stay aligned to it."""
    width = VECTOR_BYTES // dtype.itemsize
    while width > 1 and (columns % width or address % (width * dtype.itemsize)):
        width //= 2
    return width
