"""The proof kernels' twins on the host, in NumPy: same shapes, same float32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Float32s = npt.NDArray[np.float32]


def vector_add(a: Float32s, b: Float32s) -> Float32s:
    """``a + b`` in float32."""
    total: Float32s = np.add(a, b, dtype=np.float32)
    return total


def matrix_product(a: Float32s, b: Float32s) -> Float32s:
    """``a @ b``, (m, k) by (k, n), through NumPy's BLAS."""
    product: Float32s = np.matmul(a, b)
    return product


def neural_forward(
    inputs: Float32s, hidden_weights: Float32s, hidden_bias: Float32s, weights: Float32s, bias: Float32s
) -> Float32s:
    """Class probabilities (samples, classes): softmax(relu(x W1 + b1) W2 + b2)."""
    hidden = np.maximum(inputs @ hidden_weights + hidden_bias, np.float32(0.0))
    scores = hidden @ weights + bias
    raised = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
    probabilities: Float32s = raised / raised.sum(axis=1, keepdims=True)
    return probabilities
