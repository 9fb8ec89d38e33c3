"""The comparison of runs tried on samples that were recorded on a GPU, without one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reports.store import load_run
from reports.values.measurement import Measurement
from stages.measuring import Measure
from suites.support.bench.comparing import SLOWDOWN, TRIES, Rates, compare_often

pytestmark = pytest.mark.requirement("ST-6", "RE-4")

BASELINES = Path(__file__).parents[2] / "reports" / "baselines"
RECORD = BASELINES / "h200-before-fusion"
DRAWN = 20
"""Samples a side: the goals of the comparison hold from 20 on."""


def recorded() -> list[Measurement]:
    """The latencies of the CUDA engine in the committed baseline whose samples are all there and were steady."""
    found = (m for case in load_run(RECORD).cases for m in case.measurements if m.name == "burst.latency")
    return [m for m in found if m.conditions.get("backend") == "cuda" and "stopped: steady" in m.note and whole(m)]


def whole(measurement: Measurement) -> bool:
    """Whether no sample was left out when the baseline was made."""
    return "samples kept" not in measurement.note and len(measurement.samples) >= 10


def resampled(samples: np.ndarray, factor: float) -> Rates:
    """Rates over series of ``DRAWN`` drawn from ``samples`` with replacement, the slowed ones times ``factor``."""
    generator = np.random.default_rng(len(samples))

    def draw() -> list[float]:
        return generator.choice(samples, DRAWN).tolist()

    return compare_often(draw, draw, lambda: [factor * sample for sample in draw()])


@pytest.mark.measures("performance.aa_same", "performance.slowdown_found", samples="recorded")
def test_recorded_samples(measure: Measure) -> None:
    """Series drawn from each recorded latency: the same build is SAME, a slowdown of 5 % is found."""
    figures = recorded()
    assert len(figures) >= 5
    rates = [resampled(np.array(figure.samples), SLOWDOWN) for figure in figures]
    same, regressions, found = (sum(getattr(r, name) for r in rates) for name in ("same", "regressions", "found"))
    total = Rates(TRIES * len(rates), same, regressions, found)
    assert regressions == 0
    total.put(measure, f"{len(rates)} latencies recorded on an H200, drawn with replacement", samples="recorded")


@pytest.mark.not_proof
def test_noise_that_hides_the_difference_is_no_answer() -> None:
    """Samples with 30 % of noise: neither SAME nor, but rarely, SLOWER."""
    noisy = 1.0 + 0.3 * np.random.default_rng(1).standard_normal(10)
    rates = resampled(noisy, SLOWDOWN)
    assert rates.same == 0
    assert rates.regressions <= 10
    assert rates.found < 30


@pytest.mark.not_proof
def test_a_slowdown_that_is_none_is_not_found() -> None:
    steady = 1.0 + 0.001 * np.random.default_rng(1).standard_normal(20)
    rates = resampled(steady, 1.0)
    assert (rates.same, rates.regressions, rates.found) == (TRIES, 0, 0)
