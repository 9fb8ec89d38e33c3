"""Which neurons fired in the last bursts, beside columns counted burst by burst."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.engine.features.firings import Firings

pytestmark = pytest.mark.requirement("BE-4")

NEURONS, BURSTS = 6, 30


@pytest.mark.parametrize("window", [1, 2, 3])
def test_columns_survive_a_restart(window: int) -> None:
    """After every burst the columns of a store that was restored from them are the same."""
    random, kept = np.random.default_rng(window), Firings(window)
    for burst in range(1, BURSTS + 1):
        kept.add(np.flatnonzero(random.random(NEURONS) < 0.6).astype(np.uint32))
        columns, other = kept.columns(burst, NEURONS), Firings(window)
        other.restore(burst, *columns)
        again = other.columns(burst, NEURONS)
        assert all(np.array_equal(one, two) for one, two in zip(columns, again, strict=True))


def test_last_firing_and_streak_within_the_window() -> None:
    kept = Firings(3)
    for ids in ([0, 1], [0], [0, 2], [0]):
        kept.add(np.array(ids, np.uint32))
    last, streaks = kept.columns(4, 4)
    assert [last.tolist(), streaks.tolist()] == [[4, 0, 3, 0], [3, 0, 1, 0]]
