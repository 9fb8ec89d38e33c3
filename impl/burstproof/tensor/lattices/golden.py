"""Recursions of the golden ratio, batched: additive recurrence, continued fraction, and rotation; exact CPU twins.

The kernels round every operation as IEEE arithmetic does, in the order written: CPU and device agree to the bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_alike
from burstproof.tensor.array.dtypes import FLOAT64, INT64
from burstproof.tensor.array.protocol import Array

GOLDEN_RATIO = (1 + 5**0.5) / 2
GOLDEN_BITS = 0x9E3779B97F4A7C15
"""Fractional part of the golden ratio times 2^64, rounded to the nearest integer."""

_BLOCK = 256
_SOURCE = CudaSource.beside(__file__, "golden.cu", options=SourceOptions(contract=False))
RECURRENCES = {
    FLOAT64: Entry(_SOURCE, "golden_recurrence_float64", "float64[] float64[] float64[] int32 int64", _BLOCK),
    INT64: Entry(_SOURCE, "golden_recurrence_int64", "int64[] int64[] int64[] int32 int64", _BLOCK),
}
FRACTION = Entry(_SOURCE, "golden_fraction", "float64[] float64[] int32 int64", _BLOCK)
ROTATION = Entry(_SOURCE, "golden_rotation", "float64[] int64[] uint64 int64", _BLOCK)

_LARGEST_INT64 = 2**63 - 1


def recurrence(first: Array, second: Array, steps: int) -> Array:
    """x(steps) of x(n + 1) = x(n) + x(n - 1) from x(0) = ``first`` and x(1) = ``second``.

    From 0 and 1 these are the Fibonacci numbers; every solution is a combination of powers of the golden ratio and of
    -1 / golden ratio (Binet).

    Parameters
    ----------
    first, second : array of float64 or int64
        One shape, dtype and device; contiguous.
    steps : int
        At least 0.

    Raises
    ------
    ArrayError
        Arrays that do not match, negative steps, or integers that might leave int64.
    """
    place = backend_of(first, second)
    check(first, "recurrence", dtypes=(FLOAT64, INT64))
    check_alike(second, first, "recurrence")
    _check_steps(steps, "recurrence")
    if first.dtype == INT64 and first.size:
        with place.use():  # CuPy reduces on the current device, wherever the array lies
            _check_range(first, second, steps)
    if place.device is None:
        before, now = first.copy(), second.copy()
        for _ in range(steps):
            before, now = now, before + now
        return before
    return _launch(RECURRENCES[first.dtype], first.dtype, first, (first, second, steps))


def continued_fraction(start: Array, steps: int) -> Array:
    """x of ``steps`` times x = 1 + 1 / x, from ``start``; tends to the golden ratio, the error times 0.38 each step.

    Parameters
    ----------
    start : array of float64, contiguous
    steps : int
        At least 0.

    Raises
    ------
    ArrayError
        Another dtype, or negative steps.
    """
    place = backend_of(start)
    check(start, "continued_fraction", dtypes=(FLOAT64,))
    _check_steps(steps, "continued_fraction")
    if place.device is None:
        x = start.copy()
        with np.errstate(divide="ignore"):
            for _ in range(steps):
                x = 1.0 + 1.0 / x
        return x
    return _launch(FRACTION, FLOAT64, start, (start, steps))


def rotation(index: Array) -> Array:
    """Fractional part of index times the golden ratio, in [0, 1): the sequence that fills a circle most evenly.

    From the first 64 bits of the golden ratio, in integers, cut to 53 bits: exact to 2^-53 + |index| 2^-65.

    Parameters
    ----------
    index : array of int64, contiguous

    Raises
    ------
    ArrayError
        Another dtype.
    """
    place = backend_of(index)
    check(index, "rotation", dtypes=(INT64,))
    if place.device is None:
        turned = index.view(np.uint64) * np.uint64(GOLDEN_BITS)
        return (turned >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return _launch(ROTATION, FLOAT64, index, (index, GOLDEN_BITS))


def _launch(entry: Entry, dtype: np.dtype[Any], like: Array, arguments: tuple[Any, ...]) -> Array:
    place = backend_of(like)
    result = place.empty(like.shape, dtype)
    if result.size:
        entry.on(like.device.id)(-(-result.size // _BLOCK), _BLOCK, result, *arguments, result.size)
    return result


def _check_steps(steps: int, where: str) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or not 0 <= steps < 2**31:
        raise ArrayError("the number of steps is out of range", where=where, got=steps, allowed="0...2^31 - 1")


def _check_range(first: Array, second: Array, steps: int) -> None:
    """|x(n)| is at most the n-th Fibonacci number of the sum of both magnitudes."""
    bound = max(abs(int(first.min())), abs(int(first.max()))) + max(abs(int(second.min())), abs(int(second.max())))
    before, now = 0, 1
    for _ in range(min(steps, 100)):
        before, now = now, before + now
    if bound * now > _LARGEST_INT64:
        raise ArrayError(
            "the recurrence might leave the range of int64",
            where="recurrence",
            got=f"{steps} steps from magnitudes that sum to {bound}",
            cure="Take fewer steps, or float64",
        )
