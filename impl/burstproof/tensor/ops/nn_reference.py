"""Formulas of ``nn`` in operations that NumPy and CuPy share: the CPU's way, and the kernels' specification.

Half-precision rows are computed in float32 and rounded once at the end, as the kernels do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, from_bfloat16, to_bfloat16
from burstproof.tensor.array.protocol import Array

TANH_SCALE = math.sqrt(2 / math.pi)
TANH_CUBIC = 0.044715


def module_of(array: Array) -> ModuleType:
    """``numpy`` or ``cupy``."""
    if isinstance(array, np.ndarray):
        return np
    import cupy

    return cupy  # type: ignore[no-any-return]


def widened(x: Array) -> Array:
    """Rows in the type in which they are computed: float32 for half precision, else unchanged."""
    if x.dtype == FLOAT16:
        return x.astype(FLOAT32)
    if x.dtype != BFLOAT16:
        return x
    if isinstance(x, np.ndarray):
        return from_bfloat16(x)
    return (x.astype(np.uint32) << 16).view(np.float32)


def narrowed(values: Array, dtype: np.dtype[Any]) -> Array:
    """Computed values rounded to the element type of the rows."""
    if dtype != BFLOAT16:
        return values.astype(dtype, copy=False)
    if isinstance(values, np.ndarray):
        return to_bfloat16(values)
    bits = values.astype(FLOAT32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return module_of(values).where(values != values, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def softmax(x: Array) -> Array:
    """Softmax along the last axis."""
    if not x.size:
        return x.copy()
    xp, values = module_of(x), widened(x)
    with np.errstate(invalid="ignore"):
        powers = xp.exp(values - values.max(axis=-1, keepdims=True))
        return narrowed(powers / powers.sum(axis=-1, keepdims=True), x.dtype)


def softmax_backward(gradient: Array, output: Array) -> Array:
    """Gradient of softmax."""
    y, dy = widened(output), widened(gradient)
    return narrowed(y * (dy - (dy * y).sum(axis=-1, keepdims=True)), output.dtype)


def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float) -> tuple[Array, Array, Array]:
    """Rows, means and inverse deviations of layer norm."""
    values = widened(x)
    mean = values.mean(axis=-1, keepdims=True)
    centred = values - mean
    inverse = 1 / module_of(x).sqrt((centred * centred).mean(axis=-1, keepdims=True) + scale.dtype.type(epsilon))
    return narrowed(centred * inverse * scale + shift, x.dtype), mean[..., 0], inverse[..., 0]


def layer_norm_backward(
    gradient: Array, x: Array, scale: Array, mean: Array, inverse: Array
) -> tuple[Array, Array, Array]:
    """Gradients with respect to rows, scale and shift."""
    dy = widened(gradient)
    normed = (widened(x) - mean[..., None]) * inverse[..., None]
    inner = dy * scale
    centred = inner - inner.mean(axis=-1, keepdims=True) - normed * (inner * normed).mean(axis=-1, keepdims=True)
    return narrowed(centred * inverse[..., None], x.dtype), sum_rows(dy * normed), sum_rows(dy)


def sum_rows(values: Array) -> Array:
    """Sums over all axes but the last."""
    return (
        values.reshape(-1, values.shape[-1]).sum(axis=0)
        if values.size
        else values.sum(axis=tuple(range(values.ndim - 1)))
    )


def gelu(x: Array, tanh: bool) -> Array:
    """GELU of float32 or float64 values."""
    return x * _gate(x, tanh)


def gelu_slope(x: Array, tanh: bool) -> Array:
    """Derivative of GELU."""
    xp, gate = module_of(x), _gate(x, tanh)
    kind = x.dtype.type
    if not tanh:
        return gate + x * kind(1 / math.sqrt(2 * math.pi)) * xp.exp(kind(-0.5) * x * x)
    return gate + x * gate * (1 - gate) * kind(2 * TANH_SCALE) * (1 + kind(3 * TANH_CUBIC) * x * x)


def _gate(x: Array, tanh: bool) -> Array:
    kind = x.dtype.type
    if not tanh:
        return kind(0.5) * (1 + error_function(x * kind(math.sqrt(0.5))))
    with np.errstate(over="ignore"):
        return 1 / (1 + module_of(x).exp(kind(-2 * TANH_SCALE) * (x + kind(TANH_CUBIC) * x * x * x)))


def error_function(x: Array) -> Array:
    """erf, by the C library on the CPU and by CuPy on a device; computed in float64 on the CPU."""
    if isinstance(x, np.ndarray):
        return _host_erf()(x)
    from cupyx.scipy.special import erf

    return erf(x)


@lru_cache(maxsize=1)
def _host_erf() -> Callable[[Array], Array]:
    import numba

    return numba.vectorize(["float32(float32)", "float64(float64)"])(_erf)  # type: ignore[no-any-return]


def _erf(x: float) -> float:
    return math.erf(x)


def bias_gelu(x: Array, bias: Array, tanh: bool) -> Array:
    """gelu(x + bias)."""
    return narrowed(gelu(widened(x) + bias, tanh), x.dtype)


def bias_gelu_backward(gradient: Array, x: Array, bias: Array, tanh: bool) -> tuple[Array, Array]:
    """Gradients with respect to input and bias."""
    slope = widened(gradient) * gelu_slope(widened(x) + bias, tanh)
    return narrowed(slope, x.dtype), sum_rows(slope)
