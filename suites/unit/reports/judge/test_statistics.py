"""Intervals that cover, and figures for people."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from burstproof.errors import InputError
from reports.judge import statistics
from reports.judge.statistics import bootstrap_medians, interval_of, median, median_interval
from reports.values import units
from reports.values.measurement import Measurement

pytestmark = pytest.mark.requirement("RE-2", "RE-4")


def noise(seed: int, count: int = 60, centre: float = 1.0) -> list[float]:
    generator = np.random.default_rng(seed)
    return [float(value) for value in centre * (1.0 + 0.01 * generator.gamma(2.0, 1.0, count))]


@pytest.mark.parametrize("count", [2, 5, 6, 31])
def test_direct_draw_is_the_bootstrap(count: int) -> None:
    """The medians drawn from order statistics spread as those of resamples drawn one by one."""
    samples = noise(3, count)
    generator = np.random.default_rng(8)
    plain = np.median(generator.choice(samples, (20_000, count)), axis=1)
    direct = bootstrap_medians(samples)
    for share in (5, 25, 50, 75, 95):
        below = float(np.mean(plain <= np.percentile(direct, share)))
        above = float(np.mean(plain < np.percentile(direct, share)))
        assert above - 0.03 <= share / 100 <= below + 0.03


def test_a_draw_of_one_picks_the_last_sample() -> None:
    """A uniform draw lies below one, but its product with a count may round up."""
    assert statistics._indices(np.array([0.0, 0.5, 1.0]), 4).tolist() == [0, 2, 3]


def test_as_many_medians_as_stated() -> None:
    assert bootstrap_medians([1.0, 2.0]).shape == (4000,)


def test_the_interval_leaves_an_equal_tail_on_either_side() -> None:
    """A share of 0.9 leaves 5 % of the medians below it and 5 % above."""
    samples = noise(11, 400)
    interval = median_interval(samples, confidence=0.9)
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx(np.percentile(bootstrap_medians(samples), [5.0, 95.0]))
    assert interval.confidence == 0.9


def test_samples_that_are_not_finite_have_no_interval() -> None:
    figure = Measurement("a.time", 1.0, "ms", samples=tuple(noise(1)))
    assert interval_of(figure) == median_interval(figure.samples) is not None
    assert interval_of(replace(figure, samples=(*figure.samples, math.nan))) is None


def test_interval_covers_the_median() -> None:
    """The median of 1 + 0.01 Gamma(2) is 1.016783...; 95 % intervals miss it about once in twenty."""
    hits = 0
    for seed in range(300):
        interval = median_interval(noise(seed))
        assert interval is not None
        hits += interval.low <= 1.0167835 <= interval.high
    assert 0.91 <= hits / 300 <= 0.985


def test_interval_is_reproducible_and_needs_two_samples() -> None:
    assert median_interval(noise(1)) == median_interval(noise(1))
    assert median_interval([1.0]) is None
    assert median_interval([1.0, 2.0]) is not None
    with pytest.raises(InputError, match="not a finite"):
        median([1.0, math.nan])
    with pytest.raises(InputError, match="no samples"):
        median([])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0061, "ms", "6.1 µs"),
        (0.43, "ms", "0.43 ms"),
        (2.5e-9, "s", "2.5 ns"),
        (62.0, "x", "62×"),
        (5e6, "neurons", "5 M neurons"),
    ],
)
def test_figures_for_people(value: float, unit: str, text: str) -> None:
    assert units.readable(value, unit) == text


@pytest.mark.parametrize(
    ("texts", "most", "text"),
    [("", 1, ""), ("a", 1, "a"), ("ab", 2, "a, b"), ("abc", 2, "a, b and 1 more"), ("abc", 1, "a and 2 more")],
)
def test_the_first_of_many_texts(texts: str, most: int, text: str) -> None:
    assert units.first_of(tuple(texts), most) == text


def test_sentences_of_older_records_are_typeset() -> None:
    assert units.typeset("9.314 us misses <= 9 us by 3.5 %") == "9.314 µs misses ≤ 9 µs by 3.5 %"
    assert units.typeset("3.597x misses >= 3.8x") == "3.597× misses ≥ 3.8×"
    assert units.typeset("0x1f uses <= a") == "0x1f uses <= a"


def test_conversion() -> None:
    assert units.convert(1.5, "ms", "us") == pytest.approx(1500.0)
    assert units.convert(1.0, "GiB", "GB") == pytest.approx(1.073741824)
    with pytest.raises(InputError, match="cannot be compared"):
        units.convert(1.0, "ms", "GB")
