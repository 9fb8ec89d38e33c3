"""Proof kernels on a device: sum of vectors, tiled matrix product, a classifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource
from burstproof.device.cupy_door import multiprocessors
from burstproof.device.memory import adopt, allocate
from burstproof.errors import InputError

if TYPE_CHECKING:
    from cupy import ndarray

EDGES = (64, 128)
"""Edges of the tiles that a block of the matrix product makes."""

_THREADS = 256
_MOST_BLOCKS = 2**31 - 1
_DENSE_PARAMETERS = "float32[] float32[] float32[]? float32[] uint32 uint32 uint32 bool"


_DENSE_NAMES = {edge: f"dense<{edge}>" for edge in EDGES}
_SOURCE = CudaSource.beside(__file__, "proof.cu", templates=tuple(_DENSE_NAMES.values()))
VECTOR_ADD = Entry(_SOURCE, "vector_add", "float32[] float32[] float32[] uint64")
SOFTMAX_ROWS = Entry(_SOURCE, "softmax_rows", "float32[] uint32 uint32")
DENSE = {edge: Entry(_SOURCE, name, _DENSE_PARAMETERS) for edge, name in _DENSE_NAMES.items()}
CATALOGUE: tuple[Entry, ...] = (VECTOR_ADD, SOFTMAX_ROWS, *DENSE.values())


def vector_add(a: object, b: object) -> ndarray:
    """``a + b``, float32, any equal shape; rounded once, so equal to NumPy's bit for bit.

    Raises
    ------
    InputError
        Shapes differ, or an array is not contiguous float32 on one device.
    """
    left, right = adopt(a), adopt(b)
    if left.shape != right.shape:
        raise InputError("the shapes differ", where="vector_add", got=(left.shape, right.shape))
    total = allocate(left.shape, np.float32, left.device.id)
    count = total.size
    if count:
        blocks = min(max(1, count // (4 * _THREADS)), _MOST_BLOCKS)  # a thread adds four elements at once
        VECTOR_ADD.on(left.device.id)(blocks, _THREADS, left, right, total, count)
    return total


def matrix_product(a: object, b: object, *, edge: int | None = None) -> ndarray:
    """``a @ b`` in float32 through tiles in shared memory.

    Parameters
    ----------
    a : (m, k) float32
    b : (k, n) float32
    edge : int, optional
        Edge of the tiles, one of ``EDGES``; by default the largest that still gives every multiprocessor a tile.

    Returns
    -------
    ndarray
        (m, n) float32; each element within ``k`` roundings of the sum of ``|a| |b|``, in order of ``k``.

    Raises
    ------
    InputError
        Shapes that do not fit, or an array that is not contiguous float32 on one device.
    """
    return _product(adopt(a), adopt(b), None, False, edge)


def neural_forward(
    inputs: object,
    hidden_weights: object,
    hidden_bias: object,
    weights: object,
    bias: object,
) -> ndarray:
    """Class probabilities of a two-layer classifier: softmax(relu(x W1 + b1) W2 + b2), three kernels.

    Parameters
    ----------
    inputs : (samples, features) float32
    hidden_weights : (features, hidden) float32
    hidden_bias : (hidden,) float32
    weights : (hidden, classes) float32
    bias : (classes,) float32

    Returns
    -------
    ndarray
        (samples, classes) float32, rows that sum to one.

    Raises
    ------
    InputError
        Shapes that do not fit, or an array that is not contiguous float32 on one device.
    """
    hidden = _product(adopt(inputs), adopt(hidden_weights), adopt(hidden_bias), True)
    scores = _product(hidden, adopt(weights), adopt(bias), False)
    rows, columns = scores.shape
    if rows and columns:
        SOFTMAX_ROWS.on(scores.device.id)(-(-rows // (_THREADS // 32)), _THREADS, scores, rows, columns)
    return scores


def _product(a: ndarray, b: ndarray, bias: ndarray | None, rectify: bool, edge: int | None = None) -> ndarray:
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        raise InputError("not two matrices that fit", where="matrix product", got=(a.shape, b.shape))
    (rows, depth), columns = a.shape, b.shape[1]
    if bias is not None and bias.shape != (columns,):
        raise InputError("not a bias per column", where="matrix product", got=bias.shape, allowed=f"({columns},)")
    product = allocate((rows, columns), np.float32, a.device.id)
    if rows and columns:
        side = edge or _edge(rows, columns, a.device.id)
        if side not in EDGES:
            raise InputError("no such tile", where="matrix product", got=side, allowed=str(EDGES))
        grid = (-(-columns // side), -(-rows // side))
        DENSE[side].on(a.device.id)(grid, _THREADS, a, b, bias, product, rows, columns, depth, rectify)
    return product


def _edge(rows: int, columns: int, device_id: int) -> int:
    large = EDGES[-1]
    tiles = -(-rows // large) * -(-columns // large)
    return large if tiles >= multiprocessors(device_id) else EDGES[0]
