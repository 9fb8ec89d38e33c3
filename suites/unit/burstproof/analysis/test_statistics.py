"""Statistics of what fired, by area."""

from __future__ import annotations

import pytest

from burstproof.analysis.statistics import ActivityCounter, activity_table
from suites.support.networks.activity import network, recording

pytestmark = pytest.mark.requirement("BE-18")


def test_statistics_count_neurons_firings_and_peaks() -> None:
    counter = ActivityCounter(network([1, 4, 4, 4], {4: "four"}))
    counter.add(recording(1, [[0, 1], [1, 2], []]))
    counter.add(recording(4, [[1]]))
    one, four = counter.areas()
    assert (one.index, one.name, one.neurons, one.firings, one.active, one.peak) == (1, "", 1, 1, 1, 1)
    assert (four.name, four.neurons, four.firings, four.active, four.peak) == ("four", 3, 4, 2, 2)
    assert four.rate == pytest.approx(4 / (3 * 4))
    assert counter.bursts == 4
    assert activity_table(counter.areas()).count("\n") == 3
