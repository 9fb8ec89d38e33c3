"""Cross entropy with its gradient in place of the logits: one kernel reads a row twice and keeps nothing else."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check
from burstproof.tensor.array.dtypes import INT32
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.kernels import KINDS, build, computing_dtype, joined_address, vector_width
from burstproof.tensor.ops.nn_reference import narrowed, widened

_THREADS = 512


@lru_cache(maxsize=32)
def entry(dtype: np.dtype[Any], vector: int) -> Entry:
    """The kernel of cross_entropy.cu for accesses of ``vector`` elements."""
    declared = "{s}[] int32[] {n}[] int32 int32 {n}"
    macros = {"VEC": vector, "THREADS": _THREADS, "HINTS": 0}
    return build(("cross_entropy.cu",), "cross_entropy", declared, dtype, _THREADS, **macros)


def cross_entropy_in_place(logits: Array, targets: Array, classes: int | None = None, factor: float = 1.0) -> Array:
    """-log softmax of each row at its target; the row becomes ``factor * (softmax - one-hot)``.

    Source: the derivative of -log(exp(x_t) / sum(exp(x))) with respect to x.

    Parameters
    ----------
    logits : array, (rows, columns), float32, float64, float16 or bfloat16, contiguous
        Overwritten by its gradient.
    targets : array, (rows,), int32
        Class of each row. A negative one leaves its row out: loss and gradient 0. One that is no class is refused on
        the CPU; on a device, where looking would mean waiting, it makes loss and gradient of its row NaN.
    classes : int, optional
        Columns that are classes; the rest is padding, which does not count and whose gradient is 0. Default: all.
    factor : float
        What the gradient is multiplied by: 1 / rows for the mean.

    Returns
    -------
    array, (rows,)
        Losses, float32 (float64 for float64).

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit, no rows, or targets that are no classes.
    """
    where = "cross_entropy_in_place"
    place = backend_of(logits, targets)
    count = _checked_classes(where, logits, classes)
    check(targets, f"{where}, targets", dtypes=(INT32,), shape=logits.shape[:1])
    if place.device is None:
        return _on_cpu(where, logits, targets, count, factor)
    with place.use():
        losses = place.empty(logits.shape[:1], computing_dtype(logits.dtype))
        rows, columns = logits.shape
        vector = vector_width(logits.dtype, columns, joined_address(logits))
        kernel = entry(logits.dtype, vector).on(place.device)
        kernel(rows, _THREADS, logits, targets, losses, count, columns, factor)
    return losses


def _checked_classes(where: str, logits: Array, classes: int | None) -> int:
    check(logits, f"{where}, logits", dtypes=KINDS)
    if logits.ndim != 2 or 0 in logits.shape:
        raise ArrayError(
            "the logits are empty" if 0 in logits.shape else "the logits must have two axes",
            where=f"{where}, logits",
            got=tuple(logits.shape),
            allowed="(rows, columns), each at least 1",
        )
    count = logits.shape[1] if classes is None else int(classes)
    if not 1 <= count <= logits.shape[1]:
        raise ArrayError(
            "number of classes out of range", where=where, got=classes, allowed=f"1 to {logits.shape[1]} columns"
        )
    return count


def _on_cpu(where: str, logits: Array, targets: Array, classes: int, factor: float) -> Array:
    """The same by NumPy."""
    if int(targets.max()) >= classes:
        raise ArrayError("a target is no class", where=where, got=int(targets.max()), allowed=f"below {classes}")
    wide = widened(logits[:, :classes])
    top = wide.max(axis=1, keepdims=True)
    powers = np.exp(wide - top)
    total = powers.sum(axis=1, keepdims=True)
    counts = targets >= 0
    rows, columns = np.nonzero(counts)[0], targets[counts]
    losses = np.zeros(len(targets), wide.dtype)
    losses[rows] = (np.log(total) + top)[rows, 0] - wide[rows, columns]
    powers *= np.where(counts, factor, 0.0).astype(wide.dtype)[:, None] / total
    powers[rows, columns] -= wide.dtype.type(factor)
    logits[:, :classes] = narrowed(powers, logits.dtype)
    logits[:, classes:] = 0
    return losses
