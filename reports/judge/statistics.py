"""Medians and their bootstrap confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from burstproof.errors import InputError
from reports.values.judgement import Interval
from reports.values.measurement import Measurement

if TYPE_CHECKING:
    from numpy.typing import NDArray

RESAMPLES = 4000
CONFIDENCE = 0.95
_SEED = 20_200_101


def median(samples: Sequence[float]) -> float:
    """Median of at least one finite sample.

    Raises
    ------
    InputError
        If there is no sample, or one is not finite.
    """
    return float(np.median(checked(samples)))


def bootstrap_medians(samples: Sequence[float], seed: int = _SEED) -> NDArray[np.float64]:
    """Medians of ``RESAMPLES`` resamples drawn with replacement, shape ``(RESAMPLES,)``.

    The resamples are not drawn sample by sample. The k-th smallest of n uniform draws follows Beta(k, n + 1 - k), and a
    draw ``u`` picks the sorted sample ``floor(n u)``. So the middle draw alone gives the median of a resample, exactly
    and at a cost that does not grow with n (David and Nagaraja, Order Statistics, section 2.3).
    """
    ordered = np.sort(checked(samples))
    count = len(ordered)
    generator = np.random.Generator(np.random.PCG64(seed))
    middle = (count + 1) // 2
    lower = generator.beta(middle, count + 1 - middle, RESAMPLES)
    medians: NDArray[np.float64] = ordered[_indices(lower, count)]
    if count % 2:
        return medians
    upper = lower + (1.0 - lower) * generator.beta(1, count - middle, RESAMPLES)
    return 0.5 * (medians + ordered[_indices(upper, count)])


def median_interval(samples: Sequence[float], confidence: float = CONFIDENCE) -> Interval | None:
    """Percentile bootstrap interval of the median; ``None`` for fewer than two samples."""
    if len(samples) < 2:
        return None
    return _interval(tuple(samples), confidence)


def interval_of(measurement: Measurement) -> Interval | None:
    """The interval of a measurement's median, in its unit; ``None`` for too few samples or if one is not finite."""
    return median_interval(measurement.samples) if all(map(math.isfinite, measurement.samples)) else None


@lru_cache(maxsize=4096)
def _interval(samples: tuple[float, ...], confidence: float) -> Interval:
    return _percentiles(bootstrap_medians(samples), confidence)


def _percentiles(values: NDArray[np.float64], confidence: float) -> Interval:
    tail = 50.0 * (1.0 - confidence)
    low, high = np.percentile(values, [tail, 100.0 - tail])
    return Interval(float(low), float(high), confidence)


def _indices(uniform: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    return np.minimum((uniform * count).astype(np.int64), count - 1)


def checked(samples: Sequence[float]) -> NDArray[np.float64]:
    """The samples as an array; an empty series and values that are not finite raise an InputError."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        raise InputError("no samples")
    if not np.isfinite(values).all():
        raise InputError("a sample is not a finite number", got=float(values[~np.isfinite(values)][0]))
    return values
