"""Compares two series of samples, or two sets of runs: faster, slower, same, or cannot tell.

Samples of one run: the Hodges-Lehmann ratio with the interval that inverts the Mann-Whitney test, which holds for any
distribution of independent samples. Autocorrelated samples say as much as fewer independent ones, so the interval is
stretched about the ratio. A drift within a series widens it.

Runs: least squares on the logarithms of the runs' centres, with one term for the side and one for a drift over the
whole session. Noise between runs is therefore estimated from runs, never from the samples of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from reports.judge.shared_spread import LEAST_FIGURES, shared_tails
from reports.judge.statistics import checked, median
from reports.values import units
from reports.values.judgement import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

ERROR = 0.01
"""Accepted rate of false alarms, in each direction."""

NOISE = 0.03
"""Relative change that is ignored."""

CONFIDENCE = 1.0 - 2.0 * ERROR
EQUAL = "equal"
"""Reason of the verdict *same* if all figures of both sides are equal."""

LEAST_RUNS = 3
"""Least number of runs a side that can confirm a change; five find one of 5 % (docs/comparison.md)."""

When = TypeVar("When", float, str)

_MOST_SAMPLES = 300
_LEAST_ERROR = 1e-9
"""Least standard error of a shift between runs; figures without any noise get it."""

_LARGEST_LOG = 700.0
"""A double holds the exponential of this; that of 710 overflows."""

_Z = NormalDist().inv_cdf(1.0 - ERROR)


class Change(Enum):
    """The verdict on a figure of two sides."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "cannot tell"

    def word(self, unit: str) -> str:
        """The change in words that suit ``unit``: more bytes, or a larger error, are *worse*, not *slower*."""
        timed = units.lower_is_better(unit) is not None or unit.endswith("/s") or unit == "x"
        return self.value if timed else {Change.FASTER: "better", Change.SLOWER: "worse"}.get(self, self.value)


@dataclass(frozen=True)
class Difference:
    """Candidate compared with baseline.

    Attributes
    ----------
    change : Change
    ratio : float
        Candidate over baseline; infinite if the baseline is zero.
    interval : Interval or None
        Interval of the ratio, with an error probability of ``ERROR`` at each end; ``None`` for too few figures.
    p_higher, p_lower : float
        One-sided p-values of the claims that the candidate's figure is higher, or lower; 1 if none was computed.
    reason : str
        Why, in one clause.
    error : float
        Standard error of the ratio's logarithm, estimated from runs; 0 without runs.
    residuals : tuple of float
        Residuals of the fit from which ``error`` was estimated, for each run in the order taken.
    freedom : int
        Degrees of freedom of that estimate; 0 without runs.
    """

    change: Change
    ratio: float
    interval: Interval | None
    p_higher: float = 1.0
    p_lower: float = 1.0
    reason: str = ""
    error: float = 0.0
    residuals: tuple[float, ...] = ()
    freedom: int = 0


def difference(
    baseline: Sequence[float], candidate: Sequence[float], *, tolerance: float = NOISE, lower_is_better: bool = True
) -> Difference:
    """Compare two series of samples, each in the order taken.

    The answer is *same* if the whole interval of the ratio lies within ``1 ± tolerance``, *faster* or *slower* if all
    of it lies on one side of 1 and the ratio is beyond the tolerance, and *cannot tell* otherwise. It holds for these
    two series only: they do not show how runs differ (:func:`runs_difference`).

    Parameters
    ----------
    baseline, candidate : sequence of float
        Finite samples in the same unit.
    tolerance : float
        Relative difference that is ignored.
    lower_is_better : bool
        ``True`` for times.

    Raises
    ------
    InputError
        If a series is empty or holds a value that is not finite.
    """
    before, after = checked(baseline), checked(candidate)
    centres = median(baseline), median(candidate)
    if min(before.min(), after.min()) <= 0.0:
        ratio = centres[1] / centres[0] if centres[0] else math.inf if centres[1] else 1.0
        return Difference(Change.UNKNOWN, ratio, None, reason="a ratio needs positive samples")
    before, after = np.log(_thinned(before)), np.log(_thinned(after))
    shifts = np.sort((after[None, :] - before[:, None]).ravel())
    ratio = math.exp(float(np.median(shifts)))
    autocorrelation = _autocorrelation(before, after)
    rank, freedom = _rank(len(before), len(after)), _freedom(len(before) + len(after), autocorrelation)
    if rank < 0 or freedom < 2:
        reason = f"{min(len(baseline), len(candidate))} samples are too few, or too much alike their neighbours"
        return Difference(Change.UNKNOWN, ratio, None, reason=reason)
    wider = _widening(len(before) + len(after), autocorrelation)
    drift = 0.5 * (_drift(before, autocorrelation) + _drift(after, autocorrelation))
    shift, low, high = math.log(ratio), float(shifts[rank]), float(shifts[-1 - rank])
    interval = Interval(
        math.exp(shift - wider * (shift - low) - drift),
        math.exp(min(shift + wider * (high - shift) + drift, _LARGEST_LOG)),
        CONFIDENCE,
    )
    return Difference(change_of(ratio, interval, tolerance, lower_is_better), ratio, interval)


def runs_difference(
    baseline: Sequence[tuple[When, float]],
    candidate: Sequence[tuple[When, float]],
    *,
    tolerance: float = NOISE,
    lower_is_better: bool = True,
) -> Difference:
    """Compare two sets of runs by their centres.

    Parameters
    ----------
    baseline, candidate : sequence of (float or str, float)
        When each run began (anything that orders them) and its positive centre, ``LEAST_RUNS`` or more a side, taken
        in turns.
    tolerance : float
        Relative difference that is ignored.
    lower_is_better : bool
        ``True`` for times.
    """
    taken = [(when, 0.0, value) for when, value in baseline] + [(when, 1.0, value) for when, value in candidate]
    taken.sort()
    side = np.array([which for _, which, _ in taken])
    order = np.arange(len(taken), dtype=np.float64)
    logs = np.log([value for _, _, value in taken])
    terms = np.column_stack([np.ones_like(order), side, order - order.mean()])
    inverse = np.linalg.inv(terms.T @ terms)
    fitted = inverse @ terms.T @ logs
    freedom = len(taken) - terms.shape[1]
    residuals = logs - terms @ fitted
    error = max(math.sqrt(float((residuals**2).sum()) / freedom * inverse[1, 1]), _LEAST_ERROR)
    shift = float(fitted[1])
    half = student_quantile(1.0 - ERROR, freedom) * error
    interval = Interval(math.exp(shift - half), math.exp(shift + half), CONFIDENCE)
    tail = student_tail(shift / error, freedom)
    ratio = math.exp(shift)
    change = change_of(ratio, interval, tolerance, lower_is_better)
    left = tuple(residuals.tolist())
    return Difference(change, ratio, interval, tail, 1.0 - tail, error=error, residuals=left, freedom=freedom)


def page_tails(page: Sequence[Difference]) -> list[tuple[float, float]]:
    """The p-values of all figures of one page: that each is higher, and that it is lower.

    From ``LEAST_FIGURES`` figures on they use the spreads that the figures show together
    (:mod:`reports.judge.shared_spread`).
    """
    noisy = [one for one in page if one.error > _LEAST_ERROR]
    if len(noisy) < LEAST_FIGURES:
        return [(one.p_higher, one.p_lower) for one in page]
    shifts, errors = [math.log(one.ratio) for one in noisy], [one.error for one in noisy]
    shared = iter(shared_tails(shifts, errors, [one.residuals for one in noisy], noisy[0].freedom))
    return [next(shared) if one.error > _LEAST_ERROR else (one.p_higher, one.p_lower) for one in page]


def change_of(ratio: float, interval: Interval, tolerance: float, lower_is_better: bool) -> Change:
    """The verdict that follows from a ratio and its interval."""
    if 1.0 - tolerance <= interval.low and interval.high <= 1.0 + tolerance:
        return Change.SAME
    if interval.low > 1.0 and ratio > 1.0 + tolerance:
        return Change.SLOWER if lower_is_better else Change.FASTER
    if interval.high < 1.0 and ratio < 1.0 - tolerance:
        return Change.FASTER if lower_is_better else Change.SLOWER
    return Change.UNKNOWN


def discoveries(p_values: Sequence[float], rate: float = ERROR) -> tuple[bool, ...]:
    """Which of many tests stand after the correction of Benjamini and Hochberg.

    On average a fraction ``rate`` of the claims that stand is false. If no figure changed, a page has a false claim
    with probability ``rate``.
    """
    count = len(p_values)
    ordered = sorted(p_values)
    passing = [p for place, p in enumerate(ordered, 1) if p <= rate * place / count]
    limit = passing[-1] if passing else -1.0
    return tuple(p <= limit for p in p_values)


def are_interleaved(baseline: Sequence[When], candidate: Sequence[When]) -> bool:
    """Whether runs with these start times were taken in turns (ABAB or ABBA), not one side after the other."""
    sides = [side for _, side in sorted([(t, 0) for t in baseline] + [(t, 1) for t in candidate])]
    turns = sum(first != second for first, second in pairwise(sides))
    return turns >= min(len(baseline), len(candidate))


@lru_cache(maxsize=64)
def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of both members of each pair of ``count`` samples, pairs of a sample with itself included."""
    return np.triu_indices(count)


def centre(samples: Sequence[float]) -> float:
    """Hodges-Lehmann centre of a series: the median of the means of its pairs. It does not jump between two modes."""
    values = _thinned(checked(samples))
    first, second = _pairs(len(values))
    return float(np.median(0.5 * (values[first] + values[second])))


def student_tail(t: float, freedom: int) -> float:
    """Probability that Student's t exceeds ``t`` (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    angle = math.atan(abs(t) / math.sqrt(freedom))
    cosine, sine = math.cos(angle), math.sin(angle)
    term, total = (cosine, 0.0) if freedom % 2 else (1.0, 0.0)
    for k in range(freedom % 2, freedom - 1, 2):
        total += term
        term *= cosine * cosine * (k + 1) / (k + 2)
    inside = 2.0 / math.pi * (angle + sine * total) if freedom % 2 else sine * total
    upper = max(0.5 * (1.0 - inside), 0.0)
    return upper if t >= 0 else 1.0 - upper


@lru_cache(maxsize=1024)
def student_quantile(share: float, freedom: int) -> float:
    """The value that Student's t stays below with probability ``share``, above one half; by bisection."""
    low, high = 0.0, 1e4
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if student_tail(middle, freedom) > 1.0 - share else (low, middle)
    return 0.5 * (low + high)


def _thinned(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """At most ``_MOST_SAMPLES`` of a series, evenly spaced, since all pairs of two series are formed."""
    kept = min(len(values), _MOST_SAMPLES)
    return values[np.linspace(0, len(values) - 1, kept).astype(np.int64)]


def _rank(n: int, m: int) -> int:
    """Index of the interval's lower end among the sorted differences; negative if there are too few samples."""
    return math.floor(0.5 * n * m - _Z * math.sqrt(n * m * (n + m + 1) / 12.0)) - 1


def _autocorrelation(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """Autocorrelation of both series at lag 1, 0 to 0.95, corrected for the bias of short series (Kendall 1954)."""
    total = len(before) + len(after)
    autocorrelation = (len(before) * _lag_1_correlation(before) + len(after) * _lag_1_correlation(after)) / total
    autocorrelation += 2.0 * (1.0 + 3.0 * autocorrelation) / total
    return min(max(autocorrelation, 0.0), 0.95)


def _freedom(total: int, autocorrelation: float) -> int:
    """Degrees of freedom of two series of ``total`` samples, from the equivalent number of independent samples."""
    return int(total * (1.0 - autocorrelation) / (1.0 + autocorrelation)) - 2


def _widening(total: int, autocorrelation: float) -> float:
    """Factor by which the interval is wider than that of independent samples.

    Few samples do not show the spread well, so Student's t replaces the normal distribution.
    """
    quantile = student_quantile(1.0 - ERROR, _freedom(total, autocorrelation)) / student_quantile(
        1.0 - ERROR, total - 2
    )
    return math.sqrt((1.0 + autocorrelation) / (1.0 - autocorrelation)) * quantile


def _lag_1_correlation(values: NDArray[np.float64]) -> float:
    """Correlation of the rank of each sample with that of the sample before."""
    if len(values) < 3:
        return 0.0
    ranks = _ranks(values)
    spread = float((ranks * ranks).sum())
    return float((ranks[1:] * ranks[:-1]).sum()) / spread if spread else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks minus their mean; equal values share a rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - 0.5 * counts)[place] - 0.5 * len(values)
    return ranks


def _drift(logs: NDArray[np.float64], autocorrelation: float) -> float:
    """Drift of a series from its first sample to its last; 0 if Spearman's test finds none.

    The test allows for autocorrelation, which looks like a drift.
    """
    count = len(logs)
    if count < 3:
        return 0.0
    place = np.arange(count) - (count - 1) / 2
    correlation = float((place * _ranks(logs)).sum() / (place * place).sum())
    limit = _Z * math.sqrt((1.0 + autocorrelation) / (1.0 - autocorrelation))
    if abs(correlation) * math.sqrt(count - 1) < limit:
        return 0.0
    first, second = np.triu_indices(count, 1)
    return abs(float(np.median((logs[second] - logs[first]) / (second - first)))) * (count - 1)
