"""Inputs of the proof kernels, and their results in float64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]

UNIT_ROUNDOFF = 2.0**-24


def matrices(rows: int, columns: int, depth: int) -> tuple[Matrix, Matrix]:
    random = np.random.default_rng([rows, columns, depth])
    return random.standard_normal((rows, depth), np.float32), random.standard_normal((depth, columns), np.float32)


def assert_within_rounding(product: Matrix, a: Matrix, b: Matrix) -> None:
    """Error bound of a sum of products in any order: depth times the unit roundoff of the sum of magnitudes.

    Source: Higham, Accuracy and Stability of Numerical Algorithms, section 3.1.
    """
    exact = a.astype(np.float64) @ b.astype(np.float64)
    bound = (a.shape[1] + 1) * UNIT_ROUNDOFF * (np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64))
    assert product.dtype == np.float32
    assert product.shape == exact.shape
    assert np.all(np.abs(product - exact) <= bound)


def classifier(samples: int, features: int, hidden: int, classes: int) -> tuple[Matrix, ...]:
    random = np.random.default_rng([samples, hidden])
    shapes = ((samples, features), (features, hidden), (hidden,), (hidden, classes), (classes,))
    scales = (1.0, features**-0.5, 1.0, hidden**-0.5, 1.0)
    return tuple(
        random.standard_normal(shape, np.float32) * np.float32(s) for shape, s in zip(shapes, scales, strict=True)
    )


def exact_probabilities(x: Matrix, w1: Matrix, b1: Matrix, w2: Matrix, b2: Matrix) -> npt.NDArray[np.float64]:
    """The formula in float64."""
    scores = np.maximum(x.astype(np.float64) @ w1 + b1, 0.0) @ w2.astype(np.float64) + b2
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
