"""The comparison of samples and of runs: Student's t, intervals, directions, doubt, many figures at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from burstproof.errors import InputError
from reports.judge.difference import (
    Change,
    are_interleaved,
    centre,
    difference,
    discoveries,
    runs_difference,
    student_quantile,
    student_tail,
)

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
