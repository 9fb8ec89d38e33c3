"""The campaign of random cases: every seed once, and a difference is told by its seed."""

from __future__ import annotations

import time

import pytest

from suites.support.parity import fuzz_campaign
from suites.support.parity.backends import REFERENCE
from suites.support.parity.faults import NoSnooze

pytestmark = pytest.mark.requirement("BE-4", "BE-17")


@pytest.mark.parametrize("families", [0, 7])
def test_every_seed_is_in_one_part(families: int) -> None:
    parts = fuzz_campaign.parts_of(30, 220, families)
    assert sorted(seed for part in parts for seed in part) == list(range(30, 250))


def test_a_part_tells_what_differs_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_campaign, "backend_named", lambda name, shards: REFERENCE)
    done = fuzz_campaign.run_part("reference", 0, 0, time.time() + 100, range(3))
    assert (done.cases, done.differences) == (3, {})
    assert fuzz_campaign.run_part("reference", 0, 0, 0.0, range(3)).cases == 0
    monkeypatch.setattr(fuzz_campaign, "backend_named", lambda name, shards: NoSnooze)
    found = fuzz_campaign.run_part("planted", 0, 0, time.time() + 100, range(30))
    assert found.differences
    done.add(found)
    assert done.cases == 33
    assert done.differences == found.differences
