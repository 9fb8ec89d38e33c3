"""Stimulation in words: bursts, neurons and areas become a plan, and its bounds."""

from __future__ import annotations

import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.stimulation import parse_stimulations, plan_of, stimulus_bounds
from suites.support.networks.activity import network

pytestmark = pytest.mark.requirement("BE-18")


def test_a_plan_names_each_burst_and_adds_up_what_falls_on_it() -> None:
    found = plan_of(parse_stimulations(network([7] * 10), 20, ["1-7/3:0,2-3=1.5", "4:2=2"], ["4,20:9,9"]))
    assert sorted(found) == [1, 4, 7, 20]
    assert found[1].ids.tolist() == [0, 2, 3]
    assert found[1] is found[7]
    assert found[4].ids.tolist() == [0, 2, 3, 2]
    assert found[4].amounts.tolist() == [1.5, 1.5, 1.5, 2.0]
    assert found[4].forced.tolist() == found[20].forced.tolist() == [9]
    assert stimulus_bounds(found, EngineOptions()) == (255.0, True)


def test_an_area_is_named_by_id_or_name_and_bounds_grow_with_the_amounts() -> None:
    brain = network([3, 5, 3], {3: "left", 5: "ri:ght=1"})
    by_name = plan_of(parse_stimulations(brain, 2, ["2:@ri:ght=1=200", "2:@id5=100"]))
    assert by_name[2].ids.tolist() == [1, 1]
    assert stimulus_bounds(by_name, EngineOptions()) == (300.0, False)
    assert plan_of(parse_stimulations(brain, 2, [], ["1:@left"]))[1].forced.tolist() == [0, 2]
