"""Cores that a process may use, and those that are idle."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burstproof.engine.cores import idle_cores, usable_cores

pytestmark = pytest.mark.requirement("BE-5")


def test_a_container_s_share_of_time_bounds_the_cores(tmp_path: Path) -> None:
    quota = tmp_path / "cpu.max"
    everything = usable_cores(quota)
    assert everything >= 1
    for text, wanted in (("100000 100000", 1), ("50000 100000", 1), ("max 100000", everything), ("", everything)):
        quota.write_text(text, encoding="ascii")
        assert usable_cores(quota) == wanted


@pytest.mark.parametrize(("load", "wanted"), [(0.2, 8), (2.6, 5), (7.9, 0), (30.0, 0)])
def test_cores_that_others_need_are_not_idle(monkeypatch: pytest.MonkeyPatch, load: float, wanted: int) -> None:
    monkeypatch.setattr("burstproof.engine.cores.usable_cores", lambda: 8)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    assert idle_cores() == wanted


def test_no_core_is_idle_where_the_system_does_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> tuple[float, float, float]:
        raise OSError("load is not known")

    monkeypatch.setattr(os, "getloadavg", unknown)
    assert idle_cores() == 0
