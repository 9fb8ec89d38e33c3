"""Estimates the spreads of all figures of a page from run to run together, for smaller p-values.

A single figure has a handful of runs to estimate its spread from. Its p-value is therefore Student's, whose tails are
wide, and of hundreds of figures few changes are confirmed. Together the figures show how their spreads are distributed:
the distribution of greatest likelihood, of any form (Kiefer and Wolfowitz 1956), is found on a grid by expectation
maximisation. The p-value of a figure is then the mean of the tails over these spreads, each weighted by its likelihood
given the figure's own residuals.

Figures of one run vary together if the whole run is slow, and then say less than independent ones. The correlation of
their residuals gives the number of independent figures that they are worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_FIGURES = 100
"""Fewer figures say too little about each other: a rare noisy one would be taken for a quiet one."""

_CAUTION = 2.0
"""Factor on the p-values, since the distribution of the spreads is estimated, too."""

_STEP = 1.2
"""Ratio of neighbouring variances on the grid."""

_ROUNDS = 200


def shared_tails(
    shifts: Sequence[float], errors: Sequence[float], residuals: Sequence[Sequence[float]], freedom: int
) -> list[tuple[float, float]]:
    """One-sided p-values of the claims that the figures are higher, and that they are lower.

    Parameters
    ----------
    shifts : sequence of float
        Logarithms of the ratios.
    errors : sequence of float
        Their standard errors as each figure's own runs show them, above 0.
    residuals : sequence of sequence of float
        The residuals of each figure, run by run, from which its error was estimated.
    freedom : int
        Degrees of freedom of each.
    """
    shift, variance = np.asarray(shifts, np.float64), np.asarray(errors, np.float64) ** 2
    count = math.ceil(math.log(16.0 * float(variance.max() / variance.min())) / math.log(_STEP)) + 1
    grid = variance.min() / 4.0 * _STEP ** np.arange(count)
    weights = _posterior(variance, grid, freedom)
    scores = shift[:, None] / np.sqrt(grid)[None, :]
    tails = _tails(scores, freedom * _independent(np.asarray(residuals, np.float64), freedom))
    higher = (weights * tails).sum(axis=1).tolist()
    return [(min(_CAUTION * p, 1.0), min(_CAUTION * (1.0 - p), 1.0)) for p in higher]


def _independent(residuals: NDArray[np.float64], freedom: int) -> float:
    """The number of figures with independent residuals that these are worth; 1 if all vary together.

    The squared correlation of two independent figures is 1 / ``freedom`` on average.
    """
    count = len(residuals)
    directions = residuals / np.linalg.norm(residuals, axis=1, keepdims=True)
    squares = float(((directions @ directions.T) ** 2).sum() - count) / (count * (count - 1))
    alike = max(0.0, (squares - 1.0 / freedom) / (1.0 - 1.0 / freedom))
    return count / (1.0 + (count - 1) * alike)


def _tails(scores: NDArray[np.float64], freedom: float) -> NDArray[np.float64]:
    """Probabilities that Student's t exceeds ``scores``, by the normal approximation of Wallace (1959)."""
    size = np.sqrt(freedom * np.log1p(scores**2 / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
    normal = np.sign(scores) * size
    found: NDArray[np.float64] = 0.5 * np.vectorize(math.erfc, otypes=[np.float64])(normal / math.sqrt(2.0))
    return found


def _posterior(variance: NDArray[np.float64], grid: NDArray[np.float64], freedom: int) -> NDArray[np.float64]:
    """The probability of each variance of the grid for each figure; ``variance`` is chi-squared about it."""
    logs = -0.5 * freedom * (np.log(grid)[None, :] + variance[:, None] / grid[None, :])
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    shares = np.full(len(grid), 1.0 / len(grid))
    weighed: NDArray[np.float64] = likelihood
    for _ in range(_ROUNDS):
        weighed = likelihood * shares
        weighed /= weighed.sum(axis=1, keepdims=True)
        shares = weighed.mean(axis=0)
    return weighed
