"""The error function on arrays of the CPU, which NumPy lacks: the C library's, through numba."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy.typing as npt


def erf(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """erf of each element, computed in float64.

    Parameters
    ----------
    x : ndarray of float32 or float64
        Any shape.

    Returns
    -------
    ndarray
        Shape and dtype of ``x``.
    """
    values: npt.NDArray[Any] = _compiled()(x)
    return values


@lru_cache(maxsize=1)
def _compiled() -> Any:
    import numba

    return numba.vectorize(["float32(float32)", "float64(float64)"])(_erf)


def _erf(x: float) -> float:
    return math.erf(x)
