"""How cases are handed to processes that run side by side (RE-7)."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer

from stages.grouping import GroupScheduling

pytestmark = pytest.mark.requirement("RE-7")


class Node:
    """A worker as far as the scheduler sees it."""

    shutting_down = False

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []

    def send_runtest_some(self, cases: list[int]) -> None:
        self.given += cases

    def shutdown(self) -> None:
        self.shutting_down = True


class Config:
    option = SimpleNamespace(loadscopereorder=False)

    def getvalue(self, name: str) -> Any:
        return {"dist": "loadgroup", "tx": ["popen", "popen"]}[name]


def test_units_that_have_ended_are_forgotten(tmp_path: Path) -> None:
    """What is counted at each end of a case does not grow with the cases that have ended."""
    cases = [f"test_it.py::test[{number}]" for number in range(50)]
    groups = tmp_path / "groups.json"
    groups.write_text(f'{{"{cases[0]}": "a", "{cases[1]}": "a"}}', encoding="utf-8")
    scheduler = GroupScheduling(Config(), Producer("cases", enabled=False), groups)
    nodes = [Node("gw0"), Node("gw1")]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, cases)
    scheduler.schedule()
    ended: list[int] = []
    while not scheduler.tests_finished:
        for node in nodes:
            if node.given:
                ended.append(node.given.pop(0))
                scheduler.mark_test_complete(node, ended[-1])
            assert len(scheduler.assigned_work[node]) <= 3
    ended += [case for node in nodes for case in node.given]
    assert sorted(ended) == list(range(50))
