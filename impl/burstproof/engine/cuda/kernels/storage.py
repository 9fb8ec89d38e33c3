"""Potentials stored on the device in 4, 2 or 1 bytes: device functions that convert them from and to float32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.precision import BRAIN_NAN, LARGEST_BRAIN, LARGEST_HALF, LEVELS, Precision, Storage

_TO_INTEGER = np.float32(12582912)
"""1.5 * 2^23: adding and subtracting it rounds a small float32 to an integer, half to even."""


def make_widen(storage: Storage) -> Callable[..., Any]:
    """``widen(stored)`` -> float32 potential."""
    step, upper = np.float32(storage.step), np.uint32(16)

    def plain(stored: Any) -> Any:
        return np.float32(stored)

    def brain(stored: Any) -> Any:
        return np.uint32(np.uint32(stored) << upper).view(np.float32)

    def levels(stored: Any) -> Any:
        return np.float32(stored) * step

    forms = {Precision.BF16: brain, Precision.INT8: levels}
    return cuda.jit(device=True)(forms.get(storage.precision, plain))  # type: ignore[no-any-return]


def make_narrow(storage: Storage) -> Callable[..., Any]:
    """``narrow(v)`` -> what is stored for the float32 potential v; see ``precision.Storage``."""
    forms = {Precision.FP16: _half, Precision.BF16: _brain, Precision.INT8: _make_levels(storage.step)}
    return cuda.jit(device=True)(forms.get(storage.precision, _plain))  # type: ignore[no-any-return]


def _plain(v: np.float32) -> Any:
    return v


def _half(v: np.float32) -> Any:
    if v > LARGEST_HALF:
        v = LARGEST_HALF
    if v < -LARGEST_HALF:
        v = -LARGEST_HALF
    return np.float16(v)


def _brain(v: np.float32) -> Any:
    if v != v:
        return BRAIN_NAN
    if v > LARGEST_BRAIN:
        v = LARGEST_BRAIN
    if v < -LARGEST_BRAIN:
        v = -LARGEST_BRAIN
    bits = v.view(np.uint32)
    odd = np.uint32((bits >> np.uint32(16)) & np.uint32(1))
    return np.uint16(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))


def _make_levels(step: float) -> Callable[..., Any]:
    inverse, most, zero = np.float32(1 / step), np.float32(LEVELS * step), np.float32(0)

    def levels(v: np.float32) -> Any:
        if v != v:
            v = zero
        if v > most:
            v = most
        if v < -most:
            v = -most
        return np.int8((v * inverse + _TO_INTEGER) - _TO_INTEGER)

    return levels
