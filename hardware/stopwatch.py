"""Measuring with a stopping rule: take samples until the estimate is steady or the budget is spent.

The timer is the caller's: a host clock, or device events. Nothing here judges a figure; confidence intervals for
verdicts belong to ``reports``.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from burstproof.errors import InputError

_Z_95 = 1.96


class Stop(Enum):
    """Why sampling ended."""

    STEADY = "steady"
    MAX_SAMPLES = "max_samples"
    MAX_SECONDS = "max_seconds"


@dataclass(frozen=True)
class Samples:
    """What was measured, in the timer's unit.

    Attributes
    ----------
    values : tuple of float
        Raw samples in the order taken, without the warm-up.
    estimate : float
        The median.
    noise : float
        Half the width of the median's 95 % interval, divided by the median (see :func:`median_noise`).
    drift : float
        Difference of the medians of the second and first half, divided by the median; positive: getting slower.
    stopped_because : Stop
        Only ``STEADY`` means that the noise asked for was reached.
    """

    values: tuple[float, ...]
    estimate: float
    noise: float
    drift: float
    stopped_because: Stop


def median_noise(values: Sequence[float]) -> float:
    """Relative uncertainty of the median, free of assumptions about the distribution.

    The 95 % interval reaches from the order statistic of rank n/2 - 0.98 sqrt(n) to its mirror image (binomial
    distribution of the number of samples below the median, normal approximation).

    Returns
    -------
    float
        Half the interval's width divided by the median; infinite below six samples (no interval exists) or for a
        median of zero.
    """
    ordered = sorted(values)
    median = statistics.median(ordered)
    if len(ordered) < 6 or median == 0:
        return math.inf
    low = max(math.floor(len(ordered) / 2 - _Z_95 / 2 * math.sqrt(len(ordered))), 0)
    return (ordered[len(ordered) - 1 - low] - ordered[low]) / (2 * median)


def relative_drift(values: Sequence[float]) -> float:
    """Difference between the medians of the second and the first half, divided by the median of all."""
    median = statistics.median(values)
    if len(values) < 2 or median == 0:
        return math.inf
    half = len(values) // 2
    return (statistics.median(values[-half:]) - statistics.median(values[:half])) / median


def measure_until_steady(
    sample: Callable[[], float],
    *,
    warmup: int = 5,
    min_samples: int = 20,
    max_samples: int = 1000,
    max_seconds: float = 10.0,
    relative_noise: float = 0.005,
    clock: Callable[[], float] = time.perf_counter,
) -> Samples:
    """Sample until the median is known to ``relative_noise`` and does not drift.

    Two halves of a steady series differ by about twice the noise of the whole, so a drift beyond
    ``2 * relative_noise`` keeps the measurement going.

    Parameters
    ----------
    sample : callable
        Takes one sample and returns it; any unit, positive.
    warmup : int
        Samples that are thrown away first.
    min_samples, max_samples : int
        Bounds of the number of kept samples.
    max_seconds : float
        Time budget in seconds of ``clock``, warm-up included; ``min_samples`` are taken all the same.
    relative_noise : float
        Where to stop: 0.005 is half a percent.
    clock : callable
        The budget's clock, in seconds.

    Returns
    -------
    Samples
        With the reason for stopping.

    Raises
    ------
    InputError
        For bounds that contradict each other, or a sample that is negative or not finite.
    """
    _check_bounds(warmup, min_samples, max_samples, max_seconds, relative_noise)
    end = clock() + max_seconds
    for _ in range(warmup):
        _checked(sample())
    values: list[float] = []
    while True:
        values.append(_checked(sample()))
        stop = _why_stop(values, min_samples, max_samples, relative_noise, out_of_time=clock() >= end)
        if stop is not None:
            return Samples(tuple(values), statistics.median(values), median_noise(values), relative_drift(values), stop)


def _why_stop(
    values: Sequence[float], min_samples: int, max_samples: int, relative_noise: float, *, out_of_time: bool
) -> Stop | None:
    if len(values) < min_samples:
        return None
    if median_noise(values) <= relative_noise and abs(relative_drift(values)) <= 2 * relative_noise:
        return Stop.STEADY
    if len(values) >= max_samples:
        return Stop.MAX_SAMPLES
    return Stop.MAX_SECONDS if out_of_time else None


def _check_bounds(warmup: int, min_samples: int, max_samples: int, max_seconds: float, relative_noise: float) -> None:
    if warmup < 0 or not 1 <= min_samples <= max_samples:
        raise InputError(
            "the bounds of the number of samples contradict each other",
            where="measure_until_steady",
            got=(warmup, min_samples, max_samples),
            allowed="0 <= warmup, 1 <= min_samples <= max_samples",
        )
    if not max_seconds > 0 or not relative_noise >= 0:
        raise InputError(
            "the time budget and the noise must be positive",
            where="measure_until_steady",
            got=(max_seconds, relative_noise),
            allowed="max_seconds > 0, relative_noise >= 0",
        )


def _checked(value: float) -> float:
    if not math.isfinite(value) or value < 0:
        raise InputError(
            "the timer returned a value that is no duration",
            where="measure_until_steady",
            got=value,
            allowed="a finite, non-negative number",
            cure="Check the timer that was handed in",
        )
    return value
