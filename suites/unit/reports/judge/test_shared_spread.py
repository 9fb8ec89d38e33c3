"""P-values from the spreads that the figures of a page show together."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from reports.judge.difference import Change, Difference, page_tails, runs_difference, student_tail
from reports.judge.shared_spread import LEAST_FIGURES, shared_tails

pytestmark = pytest.mark.requirement("RE-4")

RUNS = 10
TERMS = np.column_stack([np.ones(RUNS), np.arange(RUNS) % 2, np.arange(RUNS)])
FREEDOM = RUNS - TERMS.shape[1]
SIDE = np.linalg.pinv(TERMS)[1]


def page(logs: np.ndarray) -> list[tuple[float, float]]:
    """The p-values of figures from the logarithms of their runs, taken in turns."""
    residuals = logs - logs @ np.linalg.pinv(TERMS).T @ TERMS.T
    errors = np.linalg.norm(residuals, axis=1) / math.sqrt(FREEDOM) * np.linalg.norm(SIDE)
    return shared_tails((logs @ SIDE).tolist(), errors.tolist(), residuals.tolist(), FREEDOM)


def test_many_figures_of_one_spread_know_it() -> None:
    """A p-value is nearly the normal one, doubled for caution, whatever the figure's own error."""
    draw = np.random.default_rng(3)
    logs = 0.01 * draw.standard_normal((400, RUNS))
    for own in 0.5, 1.5:
        logs[0] = own * logs[1]
        logs[0] += (3.5 * 0.01 * np.linalg.norm(SIDE) - logs[0] @ SIDE) * TERMS[:, 1]
        known = 2.0 * (1.0 - NormalDist().cdf(3.5))
        higher, lower = page(logs)[0]
        assert known / 3 < higher < 3 * known
        assert lower == 1.0


def test_figures_that_vary_together_know_no_more_than_one() -> None:
    """As Student's t of its own runs, which Wallace's approximation gives within a tenth."""
    draw = np.random.default_rng(4)
    logs = 0.01 * draw.standard_normal(RUNS) * np.ones((200, 1)) * (1.0 + 0.001 * draw.standard_normal((200, 1)))
    logs[:] += (0.02 - logs[0] @ SIDE) * TERMS[:, 1]
    residual = logs[0] - TERMS @ np.linalg.pinv(TERMS) @ logs[0]
    error = np.linalg.norm(residual) / math.sqrt(FREEDOM) * np.linalg.norm(SIDE)
    assert page(logs)[0][0] == pytest.approx(2.0 * student_tail(0.02 / float(error), FREEDOM), rel=0.2)


def test_a_noisy_figure_among_quiet_ones_keeps_its_spread() -> None:
    """At 30 times the spread of the others 5 % are nothing."""
    draw = np.random.default_rng(5)
    logs = 0.002 * draw.standard_normal((200, RUNS))
    logs[0] *= 30.0
    logs[0] += (0.05 - logs[0] @ SIDE) * TERMS[:, 1]
    assert page(logs)[0][0] > 0.1


@pytest.mark.thorough("600 pages: seconds")
@pytest.mark.parametrize("noisy", [1.0, 3.0, 20.0])
@pytest.mark.parametrize("common", [0.0, 0.7])
def test_p_values_of_figures_that_did_not_change_are_no_smaller_than_chance(noisy: float, common: float) -> None:
    """Of 30 000 figures one in a thousand at most, also where runs are slow as a whole."""
    draw = np.random.default_rng(6)
    spreads = 0.002 * np.repeat([1.0, noisy], [270, 30])[:, None]
    found = []
    for _ in range(100):
        own = math.sqrt(1.0 - common**2) * draw.standard_normal((300, RUNS))
        found += page(spreads * (own + common * draw.standard_normal(RUNS)))
    assert np.mean(np.array(found) < 0.001) < 0.001
    assert 0.3 < np.mean([higher < lower for higher, lower in found]) < 0.7


def test_few_figures_and_such_without_noise_keep_their_own_p_values() -> None:
    draw = np.random.default_rng(5)

    def one(noise: float) -> Difference:
        logs = [(n, math.exp(noise * float(draw.standard_normal()))) for n in range(10)]
        return runs_difference(logs[0::2], logs[1::2])

    few = [one(0.01) for _ in range(LEAST_FIGURES - 1)]
    steady = one(0.0)
    own = [(found.p_higher, found.p_lower) for found in (*few, steady)]
    assert page_tails([*few, steady]) == own
    many = page_tails([*few, steady, one(0.01)])
    assert many[LEAST_FIGURES - 1] == own[-1]
    assert all(mine != shared for mine, shared in zip(own[:-1], many[: LEAST_FIGURES - 1], strict=True))


def test_a_difference_within_one_pair_of_runs_has_no_place_on_the_page() -> None:
    found = Difference(Change.SAME, 1.0, None)
    draw = np.random.default_rng(6)
    logs = [[(n, math.exp(0.01 * float(draw.standard_normal()))) for n in range(10)] for _ in range(LEAST_FIGURES)]
    noisy = [runs_difference(runs[0::2], runs[1::2]) for runs in logs]
    assert page_tails([*noisy, found]) == [*page_tails(noisy), (1.0, 1.0)]
