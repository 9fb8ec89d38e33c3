"""The comparison on simulated samples: how often it cries wolf, how often it finds 5 %, how often it cannot tell."""

from __future__ import annotations

import pytest

from reports.judge.detection import Rates, measure_page, measure_rates, rates_table

pytestmark = pytest.mark.requirement("RE-4")

HARD = {
    ("within a run, 20 samples", "autocorrelated"): 0.8,
    ("5 runs a side, offset 2%", "normal"): 0.6,
    ("5 runs a side, offset 2%", "lognormal"): 0.6,
    ("5 runs a side, offset 2%", "bimodal"): 0.6,
    ("5 runs a side, offset 2%", "drifting"): 0.6,
    ("5 runs a side, offset 2%", "autocorrelated"): 0.6,
    ("5 runs a side, offset 2%", "outliers"): 0.6,
}
"""Where 95 % cannot be reached (docs/comparison.md has the floors), and what is found all the same."""


def check(rates: tuple[Rates, ...], slack: float) -> None:
    """Hold rates against the goals; ``slack`` is what so few tries cannot tell from the goal."""
    for one in rates:
        assert one.false_alarms <= 0.01 + slack, one
        assert one.missed <= 0.01 + slack, one
        assert one.found >= HARD.get((one.level, one.shape), 0.95) - slack, one
        assert one.same + one.cannot_tell + 2 * one.false_alarms >= 1.0 - 1e-9, one


@pytest.mark.thorough("seconds")
def test_goals_are_met_on_a_few_tries() -> None:
    rates = measure_rates(100)
    check(rates, 0.03)
    assert max(one.cannot_tell for one in rates if one.level.endswith("60 samples")) < 0.45
    assert len(rates_table(rates).splitlines()) == len(rates) + 2


@pytest.mark.parametrize(("noisy", "found"), [(0, 0.95), (30, 0.5)])
def test_a_page_of_many_figures(noisy: int, found: float) -> None:
    """Where all vary alike a slowdown is confirmed; where some are noisy, less often, and no more is false."""
    page = measure_page(10, noisy=noisy)
    assert page.false_alarms <= 0.1
    assert page.found >= found


@pytest.mark.thorough("1000 comparisons of each shape: half a minute")
def test_goals_are_met_on_many_tries() -> None:
    check(measure_rates(1000), 0.008)
