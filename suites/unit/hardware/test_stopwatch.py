"""The stopping rule: when it stops, why, and what it refuses. Time is a counted fake clock."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import InputError
from hardware.stopwatch import Stop, measure_until_steady, median_noise, relative_drift

pytestmark = pytest.mark.requirement("ST-6")


def counter(step: float = 0.0) -> Callable[[], float]:
    """A clock that advances by ``step`` seconds at every look."""
    looks: Iterator[int] = iter(range(10**9))
    return lambda: next(looks) * step


def noisy(spread: float, seed: int = 1) -> Callable[[], float]:
    source = random.Random(seed)
    return lambda: 10.0 * (1 + source.gauss(0.0, spread))


def test_a_constant_timer_is_steady_after_the_least_number_of_samples() -> None:
    result = measure_until_steady(lambda: 2.5, min_samples=20, clock=counter())
    assert (result.stopped_because, len(result.values)) == (Stop.STEADY, 20)
    assert (result.estimate, result.noise, result.drift) == (2.5, 0.0, 0.0)


def test_a_noisy_timer_is_sampled_until_the_median_is_known() -> None:
    result = measure_until_steady(noisy(0.02), min_samples=10, max_samples=5000, clock=counter())
    assert result.stopped_because is Stop.STEADY
    assert len(result.values) > 10
    assert result.noise <= 0.005
    assert abs(result.drift) <= 0.01
    assert result.estimate == statistics.median(result.values)
    assert result.estimate == pytest.approx(10.0, rel=0.01)


def test_a_very_noisy_timer_ends_at_the_most_samples() -> None:
    result = measure_until_steady(noisy(0.5), max_samples=50, clock=counter())
    assert (result.stopped_because, len(result.values)) == (Stop.MAX_SAMPLES, 50)
    assert result.noise > 0.005


def test_a_slow_timer_ends_when_the_time_is_spent() -> None:
    result = measure_until_steady(noisy(0.5), min_samples=8, max_seconds=30.0, clock=counter(step=1.0))
    assert result.stopped_because is Stop.MAX_SECONDS
    assert len(result.values) == 30


def test_the_least_number_of_samples_is_taken_even_without_time() -> None:
    result = measure_until_steady(noisy(0.5), min_samples=8, max_seconds=0.5, clock=counter(step=1.0))
    assert (result.stopped_because, len(result.values)) == (Stop.MAX_SECONDS, 8)


def test_a_drifting_timer_is_not_steady() -> None:
    times = iter(range(10**9))
    # Two levels: the median's interval lies inside the upper one, but the halves differ.
    stepped = measure_until_steady(
        lambda: 1.0 if next(times) < 20 else 1.1, warmup=0, min_samples=60, max_samples=60, clock=counter()
    )
    assert stepped.noise <= 0.005
    assert stepped.drift == pytest.approx(0.1 / 1.1)
    assert stepped.stopped_because is Stop.MAX_SAMPLES
    rising = iter(range(10**9))
    drifting = measure_until_steady(
        lambda: 1000.0 + next(rising), warmup=0, min_samples=400, max_samples=600, clock=counter()
    )
    assert drifting.stopped_because is Stop.MAX_SAMPLES
    assert drifting.drift > 0.01


def test_warm_up_is_thrown_away() -> None:
    times = iter([100.0, 50.0] + [1.0] * 10)
    result = measure_until_steady(lambda: next(times), warmup=2, min_samples=10, clock=counter())
    assert result.values == (1.0,) * 10


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -1.0])
def test_a_value_that_is_no_duration_is_refused(wrong: float) -> None:
    with pytest.raises(InputError, match="no duration"):
        measure_until_steady(lambda: wrong, warmup=0, clock=counter())


@pytest.mark.parametrize(
    "bounds",
    [
        {"min_samples": 0},
        {"min_samples": 10, "max_samples": 9},
        {"warmup": -1},
        {"max_seconds": 0.0},
        {"max_seconds": math.nan},
        {"relative_noise": -0.1},
    ],
)
def test_contradicting_bounds_are_refused(bounds: dict[str, float]) -> None:
    with pytest.raises(InputError, match="measure_until_steady"):
        measure_until_steady(lambda: 1.0, **bounds)  # type: ignore[arg-type]


def test_noise_is_unknown_for_few_samples_or_a_timer_that_reads_zero() -> None:
    assert median_noise([1.0] * 5) == math.inf
    assert median_noise([1.0] * 6) == 0.0
    assert median_noise([0.0] * 20) == math.inf
    assert relative_drift([1.0]) == math.inf


def test_noise_is_the_known_order_statistics() -> None:
    # n = 100: ranks 50 - 9.8 and its mirror image, the 41st and 60th smallest; their distance is 19.
    assert median_noise([float(value) for value in range(1, 101)]) == pytest.approx(19 / (2 * 50.5))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.001, 1e6), min_size=6, max_size=200), st.floats(0.01, 100.0))
def test_noise_depends_on_neither_order_nor_unit(values: list[float], unit: float) -> None:
    noise = median_noise(values)
    assert noise >= 0
    assert median_noise(values[::-1]) == noise
    assert median_noise([value * unit for value in values]) == pytest.approx(noise, rel=1e-9, abs=1e-12)
