"""Attention with the whole score matrix in memory: the definition, and the baseline of the flash kernels.

Formulas: Vaswani et al. 2017, "Attention Is All You Need", equation 1, and its derivatives. Computed in the dtype of
the arguments where NumPy and CuPy have it, 16-bit types in float32.
"""

from __future__ import annotations

import numpy as np

from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.nn_reference import narrowed, widened


def probabilities(q: Array, k: Array, causal: bool, scale: float, mask: Array | None = None) -> tuple[Array, Array]:
    """Softmax of the scaled scores, (batch, heads, queries, keys), and the logarithms of its sums, without the keys.

    float32, or float64 for float64. A row whose keys are all masked gets zeros and a logarithm of -infinity.
    """
    xp = backend_of(q, k).xp
    scores = xp.matmul(widened(q), widened(k).swapaxes(-1, -2))
    scores *= scores.dtype.type(scale)
    if mask is not None:
        scores += mask
    if causal:
        scores[..., ~xp.tri(q.shape[2], k.shape[2], dtype=bool)] = -np.inf
    top = scores.max(axis=-1, keepdims=True)
    top = xp.where(xp.isfinite(top), top, scores.dtype.type(0))
    scores -= top
    xp.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    scores /= xp.where(total > 0, total, scores.dtype.type(1))
    with np.errstate(divide="ignore"):
        return scores, (top + xp.log(total))[..., 0]


def forward(q: Array, k: Array, v: Array, causal: bool, scale: float, mask: Array | None = None) -> tuple[Array, Array]:
    """Output in the dtype of ``q`` and the logarithm of each row's sum of exponentials, float32 (float64 for float64).

    Parameters
    ----------
    q : ndarray, shape (batch, heads, queries, head)
    k, v : ndarray, shape (batch, heads, keys, head)
    causal : bool
    scale : float
        Factor of the scores.
    mask : ndarray, optional
        Added to the scaled scores; -infinity hides a key.
    """
    xp = backend_of(q, k, v).xp
    chances, lse = probabilities(q, k, causal, scale, mask)
    return narrowed(xp.matmul(chances, widened(v)), q.dtype), lse


def backward(dout: Array, q: Array, k: Array, v: Array, causal: bool, scale: float) -> tuple[Array, Array, Array]:
    """Gradients of q, k, v for the gradient ``dout`` of the output; shapes and dtype of q, k, v."""
    xp = backend_of(dout, q, k, v).xp
    chances, _ = probabilities(q, k, causal, scale)
    wide_q, wide_k, wide_v, wide_dout = (widened(array) for array in (q, k, v, dout))
    dv = xp.matmul(chances.swapaxes(-1, -2), wide_dout)
    dscores = xp.matmul(wide_dout, wide_v.swapaxes(-1, -2))
    dscores -= (dscores * chances).sum(axis=-1, keepdims=True)
    dscores *= chances
    dscores *= dscores.dtype.type(scale)
    dq, dk = xp.matmul(dscores, wide_k), xp.matmul(dscores.swapaxes(-1, -2), wide_q)
    return narrowed(dq, q.dtype), narrowed(dk, q.dtype), narrowed(dv, q.dtype)
