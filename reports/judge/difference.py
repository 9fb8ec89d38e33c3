"""What two series of samples, or two sets of runs, say about each other: faster, slower, same, or cannot tell.

Samples of one run: the Hodges-Lehmann ratio with the interval that inverts the Mann-Whitney test, which holds for any
distribution of independent samples. Autocorrelation stretches the interval about the ratio: as many samples as there
are say no more than fewer independent ones. A drift within a series widens it.

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
"""Relative change that is of no account."""

CONFIDENCE = 1.0 - 2.0 * ERROR
EQUAL = "equal"
"""The reason why two sides are the same that have one figure."""

LEAST_RUNS = 3
"""Runs a side that a claim about the code needs; five find a change of 5 % (docs/comparison.md)."""

When = TypeVar("When", float, str)

_MOST_SAMPLES = 300
_LEAST_ERROR = 1e-9
"""Standard error of a shift between runs without noise: figures that are counted rather than timed."""

_LARGEST_LOG = 700.0
"""Of a number that a double can hold."""

_Z = NormalDist().inv_cdf(1.0 - ERROR)


class Change(Enum):
    """What two sets of figures say about each other."""

    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    UNKNOWN = "cannot tell"

    def word(self, unit: str) -> str:
        """The change as people say it of a figure in ``unit``: more bytes, or a larger error, are worse, not slower."""
        timed = units.lower_is_better(unit) is not None or unit.endswith("/s") or unit == "x"
        return self.value if timed else {Change.FASTER: "better", Change.SLOWER: "worse"}.get(self, self.value)


@dataclass(frozen=True)
class Difference:
    """Candidate against baseline.

    Attributes
    ----------
    change : Change
    ratio : float
        Candidate over baseline; infinite where the baseline is zero.
    interval : Interval or None
        Of the ratio, each end with an error of ``ERROR``; ``None`` where there are too few figures.
    p_higher, p_lower : float
        One-sided p-values of the claims that the candidate's figure is higher, or lower; 1 where none was computed.
    reason : str
        Why, in one clause.
    error : float
        Standard error of the ratio's logarithm, estimated from runs; 0 where none was.
    residuals : tuple of float
        From which that was estimated: what the fit leaves of each run, in the order taken.
    freedom : int
        Degrees of freedom of the estimate.
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

    The answer is *same* if the whole interval of the ratio lies within ``1 ± tolerance``, *faster* or *slower* if it
    lies wholly beyond one side of 1 and the ratio itself is beyond the tolerance, and *cannot tell* otherwise. It
    holds for the two series. What differs from run to run they cannot show: see :func:`runs_difference`.

    Parameters
    ----------
    baseline, candidate : sequence of float
        Finite samples in the same unit.
    tolerance : float
        Relative difference that is of no account.
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
    alike = _alikeness(before, after)
    rank, freedom = _rank(len(before), len(after)), _freedom(len(before) + len(after), alike)
    if rank < 0 or freedom < 2:
        reason = f"{min(len(baseline), len(candidate))} samples are too few, or too much alike their neighbours"
        return Difference(Change.UNKNOWN, ratio, None, reason=reason)
    wider = _widening(len(before) + len(after), alike)
    drift = 0.5 * (_drift(before, alike) + _drift(after, alike))
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
        Relative difference that is of no account.
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
    """The p-values of all comparisons of runs of one page: that each figure is higher, and that it is lower.

    Where there are many figures, they are those of the spreads that the figures show together.
    """
    noisy = [one for one in page if one.error > _LEAST_ERROR]
    if len(noisy) < LEAST_FIGURES:
        return [(one.p_higher, one.p_lower) for one in page]
    shifts, errors = [math.log(one.ratio) for one in noisy], [one.error for one in noisy]
    shared = iter(shared_tails(shifts, errors, [one.residuals for one in noisy], noisy[0].freedom))
    return [next(shared) if one.error > _LEAST_ERROR else (one.p_higher, one.p_lower) for one in page]


def change_of(ratio: float, interval: Interval, tolerance: float, lower_is_better: bool) -> Change:
    """What an interval of the ratio says."""
    if 1.0 - tolerance <= interval.low and interval.high <= 1.0 + tolerance:
        return Change.SAME
    if interval.low > 1.0 and ratio > 1.0 + tolerance:
        return Change.SLOWER if lower_is_better else Change.FASTER
    if interval.high < 1.0 and ratio < 1.0 - tolerance:
        return Change.FASTER if lower_is_better else Change.SLOWER
    return Change.UNKNOWN


def discoveries(p_values: Sequence[float], rate: float = ERROR) -> tuple[bool, ...]:
    """Which of many tests stand after the correction of Benjamini and Hochberg.

    Of the claims that stand, ``rate`` are false on average; where no figure changed, a page has one false claim or
    more with probability ``rate``.
    """
    count = len(p_values)
    ordered = sorted(p_values)
    passing = [p for place, p in enumerate(ordered, 1) if p <= rate * place / count]
    limit = passing[-1] if passing else -1.0
    return tuple(p <= limit for p in p_values)


def are_interleaved(baseline: Sequence[When], candidate: Sequence[When]) -> bool:
    """Whether runs that began at these times were taken in turns (ABAB or ABBA), not one side after the other."""
    sides = [side for _, side in sorted([(t, 0) for t in baseline] + [(t, 1) for t in candidate])]
    turns = sum(first != second for first, second in pairwise(sides))
    return turns >= min(len(baseline), len(candidate))


@lru_cache(maxsize=64)
def _pairs(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of both members of each pair of so many samples, each with itself too."""
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
    """At most ``_MOST_SAMPLES`` of a series, evenly spaced: all pairs of two series are formed."""
    kept = min(len(values), _MOST_SAMPLES)
    return values[np.linspace(0, len(values) - 1, kept).astype(np.int64)]


def _rank(n: int, m: int) -> int:
    """Index of the interval's lower end among the sorted differences; negative where there are too few samples."""
    return math.floor(0.5 * n * m - _Z * math.sqrt(n * m * (n + m + 1) / 12.0)) - 1


def _alikeness(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """How much each sample is like the one before: autocorrelation of both series, 0 to 0.95."""
    total = len(before) + len(after)
    alike = (len(before) * _autocorrelation(before) + len(after) * _autocorrelation(after)) / total
    alike += 2.0 * (1.0 + 3.0 * alike) / total  # a short series shows too little of it (Kendall 1954)
    return min(max(alike, 0.0), 0.95)


def _freedom(total: int, alike: float) -> int:
    """Degrees of freedom of two series of ``total`` samples: of the fewer independent samples that say as much."""
    return int(total * (1.0 - alike) / (1.0 + alike)) - 2


def _widening(total: int, alike: float) -> float:
    """By how much wider the interval is than that of independent samples.

    From few samples the spread is not known well, so Student's t takes the place of the normal law.
    """
    quantile = student_quantile(1.0 - ERROR, _freedom(total, alike)) / student_quantile(1.0 - ERROR, total - 2)
    return math.sqrt((1.0 + alike) / (1.0 - alike)) * quantile


def _autocorrelation(values: NDArray[np.float64]) -> float:
    """Correlation of each sample's rank with that of the one before."""
    if len(values) < 3:
        return 0.0
    ranks = _ranks(values)
    spread = float((ranks * ranks).sum())
    return float((ranks[1:] * ranks[:-1]).sum()) / spread if spread else 0.0


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks about their mean; equal values share theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - 0.5 * counts)[place] - 0.5 * len(values)
    return ranks


def _drift(logs: NDArray[np.float64], alike: float) -> float:
    """By how much a series drifts from its first sample to its last; 0 where Spearman's test sees no drift.

    Series whose neighbours are alike seem to drift; the test takes that into account.
    """
    count = len(logs)
    if count < 3:
        return 0.0
    place = np.arange(count) - (count - 1) / 2
    correlation = float((place * _ranks(logs)).sum() / (place * place).sum())
    if abs(correlation) * math.sqrt(count - 1) < _Z * math.sqrt((1.0 + alike) / (1.0 - alike)):
        return 0.0
    first, second = np.triu_indices(count, 1)
    return abs(float(np.median((logs[second] - logs[first]) / (second - first)))) * (count - 1)
