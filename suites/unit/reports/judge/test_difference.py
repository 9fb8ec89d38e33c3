"""The comparison of samples and of runs: Student's t, intervals, directions, doubt, many figures at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist, median

import numpy as np
import pytest

from burstproof.errors import InputError
from reports.judge.difference import (
    Change,
    Difference,
    are_interleaved,
    centre,
    change_of,
    difference,
    discoveries,
    runs_difference,
    student_quantile,
    student_tail,
)
from reports.values.judgement import Interval

pytestmark = pytest.mark.requirement("RE-4")


def noise(seed: int, count: int = 60, middle: float = 1.0) -> list[float]:
    generator = np.random.default_rng(seed)
    return [float(value) for value in middle * (1.0 + 0.01 * generator.gamma(2.0, 1.0, count))]


def runs(seed: int, count: int, factor: float = 1.0, spread: float = 0.01, session: float = 0.0) -> list:
    """Runs ABAB...: base and new, each (when, centre)."""
    generator = np.random.default_rng(seed)
    places = range(2 * count)
    level = [math.exp(spread * generator.standard_normal() + session * place) for place in places]
    taken = [(float(place), level[place] * (factor if place % 2 else 1.0)) for place in places]
    return [taken[0::2], taken[1::2]]


@pytest.mark.parametrize(
    ("freedom", "share", "value"),
    [
        (1, 0.99, 31.8205),
        (2, 0.99, 6.9646),
        (3, 0.975, 3.1824),
        (7, 0.99, 2.9980),
        (8, 0.99, 2.8965),
        (30, 0.975, 2.0423),
    ],
)
def test_student_agrees_with_the_tables(freedom: int, share: float, value: float) -> None:
    assert student_quantile(share, freedom) == pytest.approx(value, abs=1e-4)
    assert student_tail(value, freedom) == pytest.approx(1.0 - share, rel=1e-4)
    assert student_tail(-value, freedom) == pytest.approx(share, rel=1e-4)


def test_same_build_is_same_and_five_percent_is_found() -> None:
    pairs = [(noise(2 * seed), noise(2 * seed + 1)) for seed in range(100)]
    same = [difference(a, b).change for a, b in pairs]
    slower = [difference(a, [1.05 * sample for sample in b]).change for a, b in pairs]
    assert same.count(Change.SAME) >= 99
    assert slower.count(Change.SLOWER) >= 95


def test_direction_and_doubt() -> None:
    base, double = noise(1), noise(2, middle=2.0)
    assert difference(base, double).change is Change.SLOWER
    assert difference(double, base).change is Change.FASTER
    assert difference(base, double, lower_is_better=False).change is Change.FASTER
    assert difference([1.0], [2.0]).change is Change.UNKNOWN
    assert difference([0.5, 1.0, 2.0], [0.6, 1.1, 2.2]).change is Change.UNKNOWN
    assert difference([0.0, 1.0] * 20, [2.0] * 40).change is Change.UNKNOWN
    with pytest.raises(InputError, match="not a finite"):
        difference([1.0, math.inf], [1.0])


def test_equal_samples_are_no_autocorrelation() -> None:
    """A clock of coarse steps gives many equal samples; they are neither a drift nor alike their neighbours."""
    coarse = [1.0, 1.0, 1.0, 1.01] * 10
    assert difference(coarse, coarse).change is Change.SAME
    assert difference([1.0] * 20, [1.1] * 20).change is Change.SLOWER


def test_autocorrelation_and_drift_widen_the_interval() -> None:
    steady = difference(noise(1, 40), noise(2, 40)).interval
    slow = np.repeat(noise(3, 10), 4).tolist()
    assert steady
    repeated = difference(slow, np.repeat(noise(4, 10), 4).tolist()).interval
    assert repeated is None or repeated.high - repeated.low > 1.5 * (steady.high - steady.low)
    ramp = [value * (1.0 + 0.002 * place) for place, value in enumerate(noise(5, 40))]
    drifting = difference(ramp, list(reversed(ramp))).interval
    assert drifting is None or drifting.high - drifting.low > 0.08


def test_runs_find_what_samples_of_one_run_cannot() -> None:
    """Offsets of 1 % per run: five interleaved runs a side find 5 %, and call the same build no regression."""
    same = [runs_difference(*runs(seed, 5)).change for seed in range(300)]
    slower = [runs_difference(*runs(seed, 5, 1.05)).change for seed in range(300)]
    assert same.count(Change.SLOWER) + same.count(Change.FASTER) <= 3
    assert slower.count(Change.SLOWER) >= 290


def test_a_drift_of_the_session_is_not_the_codes() -> None:
    """The machine becomes 2 % slower from each run to the next; B always runs after A."""
    found = [runs_difference(*runs(seed, 5, session=0.02)).change for seed in range(300)]
    assert found.count(Change.SLOWER) + found.count(Change.FASTER) <= 3
    naive = [
        sum(b for _, b in new) / sum(a for _, a in base) for base, new in (runs(s, 5, session=0.02) for s in range(50))
    ]
    assert min(naive) > 1.0


def test_runs_have_to_be_taken_in_turns() -> None:
    assert are_interleaved([1, 3, 5], [2, 4, 6])
    assert are_interleaved([1, 4, 5], [2, 3, 6])
    assert not are_interleaved([1, 2, 3], [4, 5, 6])


def test_claims_of_a_page_of_many_figures_are_corrected() -> None:
    """300 figures without a change: a p-value below 1 % is expected three times, a claim nearly never."""
    generator = np.random.default_rng(3)
    pages = [generator.random(300).tolist() for _ in range(200)]
    assert sum(any(p < 0.01 for p in page) for page in pages) > 150
    assert sum(any(discoveries(page)) for page in pages) <= 6
    assert discoveries([1e-6, 0.5, 0.02]) == (True, False, False)
    assert discoveries([0.004, 0.005, 0.009]) == (True, True, True)


def test_the_centre_of_two_modes_lies_between_them() -> None:
    generator = np.random.default_rng(1)
    modes = [1.0 + 0.04 * float(generator.random() < 0.5) for _ in range(200)]
    assert 1.01 < centre(modes) < 1.03


def plain_ranks(values: Sequence[float]) -> list[float]:
    """Rank of each value about the mean rank; equal values share theirs."""
    return [
        sum(other < value for other in values) + 0.5 * sum(other == value for other in values) - 0.5 * len(values)
        for value in values
    ]


def plain_autocorrelation(values: Sequence[float]) -> float:
    ranks = plain_ranks(values)
    squares = sum(rank**2 for rank in ranks)
    return sum(a * b for a, b in pairwise(ranks)) / squares if len(values) > 2 and squares else 0.0


def plain_drift(logs: Sequence[float], alike: float) -> float:
    count = len(logs)
    if count < 3:
        return 0.0
    middle = (count - 1) / 2
    spread = sum((place - middle) ** 2 for place in range(count))
    spearman = sum((place - middle) * rank for place, rank in enumerate(plain_ranks(logs))) / spread
    if abs(spearman) * math.sqrt(count - 1) < NormalDist().inv_cdf(0.99) * math.sqrt((1 + alike) / (1 - alike)):
        return 0.0
    slopes = [(logs[b] - logs[a]) / (b - a) for b in range(count) for a in range(b)]
    return abs(median(slopes)) * (count - 1)


def plain_interval(base: Sequence[float], new: Sequence[float]) -> tuple[float, float] | None:
    """The interval of the ratio, one sample at a time, as the module's head describes it."""
    a, b = [math.log(value) for value in base], [math.log(value) for value in new]
    n, m = len(a), len(b)
    shifts = sorted(y - x for x in a for y in b)
    alike = (n * plain_autocorrelation(a) + m * plain_autocorrelation(b)) / (n + m)
    alike += 2 * (1 + 3 * alike) / (n + m)
    alike = min(max(alike, 0.0), 0.95)
    rank = math.floor(n * m / 2 - NormalDist().inv_cdf(0.99) * math.sqrt(n * m * (n + m + 1) / 12)) - 1
    freedom = int((n + m) * (1 - alike) / (1 + alike)) - 2
    if rank < 0 or freedom < 2:
        return None
    shift = median(shifts)
    wider = math.sqrt((1 + alike) / (1 - alike)) * student_quantile(0.99, freedom) / student_quantile(0.99, n + m - 2)
    widened = (plain_drift(a, alike) + plain_drift(b, alike)) / 2
    low, high = shift + wider * (shifts[rank] - shift), shift + wider * (shifts[-1 - rank] - shift)
    return math.exp(low - widened), math.exp(high + widened)


def test_an_interval_too_wide_for_a_number_ends() -> None:
    """Samples over six hundred orders of magnitude."""
    base = [1e-300, 1e300, 1e-290, 1e290, 1e-280, 1e280]
    found = difference(base, base[::-1])
    assert found.interval is not None
    assert (found.change, found.interval.low) == (Change.UNKNOWN, 0.0)
    assert found.interval.high == pytest.approx(math.exp(700.0))


def series(seed: int, count: int, drift: float = 0.0, carried: float = 0.0) -> list[float]:
    generator = np.random.default_rng(seed)
    level, values = 0.0, []
    for place in range(count):
        level = carried * level + 0.01 * generator.standard_normal()
        values.append(round(math.exp(level + drift * place), 3))
    return values


@pytest.mark.parametrize(("n", "m"), [(2, 40), (2, 300), (3, 40), (4, 40), (8, 9), (20, 31), (60, 40)])
@pytest.mark.parametrize("drift", [0.0, 0.0007, -0.003])
@pytest.mark.parametrize("carried", [-0.7, 0.0, 0.5, 0.97])
def test_the_interval_is_the_one_worked_out_step_by_step(n: int, m: int, drift: float, carried: float) -> None:
    base, new = series(n, n, drift, carried), series(m + 1, m, drift / 2, carried)
    found, wanted = difference(base, new), plain_interval(base, new)
    assert found.ratio == pytest.approx(math.exp(median(math.log(y / x) for x in base for y in new)))
    if wanted is None:
        assert (found.interval, found.change) == (None, Change.UNKNOWN)
    else:
        assert found.interval is not None
        assert (found.interval.low, found.interval.high) == pytest.approx(wanted, rel=1e-12)
        assert found.interval.confidence == 0.98


def test_runs_are_fitted_by_side_and_drift() -> None:
    """Two sides without noise but for one run; the p-values are those of the fitted shift."""
    base, new = runs(3, 4, 1.1, session=0.01)
    taken = sorted([(when, 0.0, value) for when, value in base] + [(when, 1.0, value) for when, value in new])
    terms = np.array([[1.0, side, when] for when, side, _ in taken])
    logs = np.log([value for *_, value in taken])
    fitted, (residual,), _, _ = np.linalg.lstsq(terms, logs, rcond=None)
    error = math.sqrt(residual / 5 * np.linalg.inv(terms.T @ terms)[1, 1])
    found = runs_difference(base, new)
    half = student_quantile(0.99, 5) * error
    assert found.ratio == pytest.approx(math.exp(fitted[1]))
    assert found.interval is not None
    ends = found.interval.low, found.interval.high
    assert ends == pytest.approx((math.exp(fitted[1] - half), math.exp(fitted[1] + half)))
    assert found.p_higher == pytest.approx(student_tail(fitted[1] / error, 5))
    assert found.p_higher + found.p_lower == pytest.approx(1.0)
    assert runs_difference(base, new, lower_is_better=False).change is not found.change


def test_runs_without_noise_are_told_apart() -> None:
    steady = [(float(place), 2.0) for place in range(0, 6, 2)], [(float(place), 2.2) for place in range(1, 6, 2)]
    found = runs_difference(*steady)
    assert (found.change, found.ratio) == (Change.SLOWER, pytest.approx(1.1))
    assert found.interval is not None
    assert found.interval.high / found.ratio - 1.0 == pytest.approx(student_quantile(0.99, 3) * 1e-9, rel=1e-3)
    assert runs_difference(steady[0], [(when, 2.0) for when, _ in steady[1]]).change is Change.SAME


@pytest.mark.parametrize(
    ("low", "high", "ratio", "change"),
    [
        (0.97, 1.03, 1.0, Change.SAME),
        (0.96, 1.03, 1.0, Change.UNKNOWN),
        (0.97, 1.04, 1.0, Change.UNKNOWN),
        (1.01, 1.2, 1.04, Change.SLOWER),
        (1.0, 1.2, 1.04, Change.UNKNOWN),
        (1.01, 1.2, 1.03, Change.UNKNOWN),
        (0.8, 0.99, 0.96, Change.FASTER),
        (0.8, 1.0, 0.96, Change.UNKNOWN),
        (0.8, 0.99, 0.97, Change.UNKNOWN),
    ],
)
def test_what_an_interval_says(low: float, high: float, ratio: float, change: Change) -> None:
    assert change_of(ratio, Interval(low, high, 0.98), 0.03, True) is change
    other = {Change.SLOWER: Change.FASTER, Change.FASTER: Change.SLOWER}
    assert change_of(ratio, Interval(low, high, 0.98), 0.03, False) is other.get(change, change)


def test_a_ratio_with_zero() -> None:
    assert difference([0.0, 0.0], [1.0, 1.0]).ratio == math.inf
    assert difference([0.0, 0.0], [0.0, 0.0]).ratio == 1.0
    assert difference([2.0, 2.0, 0.0], [3.0, 3.0, 3.0]).ratio == 1.5
    assert difference([2.0, 2.0], [0.0, 0.0]).ratio == 0.0


def test_discoveries_at_their_limits() -> None:
    assert discoveries([]) == ()
    assert discoveries([0.01]) == (True,)
    assert discoveries([0.015]) == (False,)
    assert discoveries([0.01, 0.005], rate=0.01) == (True, True)
    assert discoveries([0.0, 1.0]) == (True, False)
    assert discoveries([0.02, 0.03]) == (False, False)


def test_long_series_are_thinned_evenly() -> None:
    long = series(5, 1000)
    kept = [long[int(place)] for place in np.linspace(0, 999, 300)]
    assert centre(long) == centre(kept) != centre(long[:300])
    assert centre(long[:300]) == centre(long[:300][::-1])
    assert centre([1.0, 2.0, 6.0]) == 2.75
    assert difference(long, long).interval == difference(kept, kept).interval


def test_student_with_one_and_two_degrees() -> None:
    """With 1 the tail is 1/2 - atan(t)/pi, with 2 it is (1 - t / sqrt(t t + 2)) / 2."""
    for t in (0.0, 0.5, 3.0, 1e5):
        assert student_tail(t, 1) == pytest.approx(0.5 - math.atan(t) / math.pi, abs=1e-12)
        assert student_tail(t, 2) == pytest.approx((1 - t / math.sqrt(t * t + 2)) / 2, abs=1e-12)
    assert student_tail(0.0, 5) == 0.5
    assert student_quantile(0.6, 1) == pytest.approx(math.tan(math.pi * 0.1), rel=1e-9)
    assert student_quantile(0.9999, 1) == pytest.approx(1 / math.tan(math.pi * 1e-4), rel=1e-9)


def test_a_drift_that_is_just_seen() -> None:
    """Spearman's coefficient is 0.905, of which eight samples need 0.879."""
    base, new = [1.001**place for place in (2, 1, 4, 3, 6, 5, 8, 7)], series(1, 60, carried=-0.7)
    assert plain_drift([math.log(value) for value in base], 0.0) > 0.0
    found = difference(base, new).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx(plain_interval(base, new), rel=1e-12)


def test_two_samples_are_not_alike() -> None:
    """Against a long series whose neighbours are hardly alike the interval is as narrow as it may be."""
    logs = ([math.log(value) for value in series(seed, 300)] for seed in range(100))
    new = next([math.exp(log) for log in found] for found in logs if 0.0 <= plain_autocorrelation(found) < 0.005)
    found, wanted = difference([1.0, 1.01], new).interval, plain_interval([1.0, 1.01], new)
    assert found is not None
    assert (found.low, found.high) == pytest.approx(wanted, rel=1e-12)


def test_samples_give_no_p_values() -> None:
    found = difference(noise(1), noise(2))
    assert (found.p_higher, found.p_lower) == (1.0, 1.0)


def test_the_widest_interval_that_there_is() -> None:
    """Of four and six samples: from the least of all ratios to the greatest."""
    base, new = [1.0, 1.03, 1.02, 1.01], [1.2, 1.25, 1.24, 1.23, 1.22, 1.21]
    found = difference(base, new).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((1.2 / 1.03, 1.25 / 1.0), rel=1e-12)


def test_a_difference_without_runs_says_neither_error_nor_freedom() -> None:
    found = Difference(Change.SAME, 1.0, None)
    assert (found.error, found.freedom) == (0.0, 0)
