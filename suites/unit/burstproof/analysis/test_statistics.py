"""Statistics of what fired, by area."""

from __future__ import annotations

import pytest

from burstproof.analysis.statistics import ActivityCounter, AreaActivity, activity_table
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


@pytest.mark.parametrize(
    ("name", "cortical_id", "shown"), [("eye", "Y0FfX19fX18=", "eye"), ("", "Y0FfX19fX18=", "cA"), ("", "v1", "v1")]
)
def test_an_area_is_shown_by_its_name_or_by_what_its_id_says(name: str, cortical_id: str, shown: str) -> None:
    area = AreaActivity(7, cortical_id, name, 10, 1, 1, 0.1, 1)
    assert activity_table((area,)).splitlines()[-1].split()[0] == shown


def test_firings_of_neurons_that_the_run_added_count_in_no_area() -> None:
    counter = ActivityCounter(network([1, 4, 4, 4], {4: "four"}))
    counter.add(recording(1, [[0, 4, 50_000_000], [1, 50_000_001]]))
    assert (counter.firings, counter.added) == (5, 3)
    assert [area.firings for area in counter.areas()] == [1, 1]
    assert counter.rates.tolist() == [0.5, 0.5, 0, 0]


def test_the_table_of_areas_fits_a_terminal_and_lists_those_that_fired() -> None:
    huge = AreaActivity(7, "a" * 12, "name " * 20, 10**8, 10**8, 10**11, 1.0, 10**8)
    quiet = AreaActivity(8, "b" * 12, "quiet", 10**8, 0, 0, 0.0, 0)
    lines = activity_table((huge, quiet, quiet)).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2:]] == ["name", "2"]
    assert lines[-1] == "2 more areas did not fire"
    everything = activity_table((huge, quiet), every_area=True).splitlines()
    assert max(map(len, everything)) <= 80
    assert everything[-1].startswith("quiet ")
    assert activity_table((quiet,)).splitlines()[-1] == "1 more area did not fire"
