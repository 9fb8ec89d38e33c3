"""How cases are handed to processes that run side by side (RE-7)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from xdist.remote import Producer

from stages.grouping import GroupScheduling
from stages.run_folder import SCRATCH, RunFolder
from stages.sittings import go_on
from suites.support.small_plan import ROOT

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
    first: tuple[str, ...] = ()

    def getvalue(self, name: str) -> Any:
        return {"dist": "loadgroup", "tx": ["popen", "popen"], "--bp-first": self.first}[name]


CASES = [f"test_it.py::test[{number}]" for number in range(50)]


def scheduled(folder: Path, limits: Mapping[str, float], group: slice = slice(2)) -> tuple[GroupScheduling, list[Node]]:
    """All cases over two workers, some of them a group."""
    notes = folder / "groups.json"
    notes.write_text(json.dumps({"groups": dict.fromkeys(CASES[group], "a"), "limits": limits}), encoding="utf-8")
    scheduler = GroupScheduling(Config(), Producer("cases", enabled=False), notes)
    nodes = [Node("gw0"), Node("gw1")]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, CASES)
    scheduler.schedule()
    return scheduler, nodes


def test_units_that_may_take_long_begin_first(tmp_path: Path) -> None:
    """A group as its longest case."""
    _, nodes = scheduled(tmp_path, {CASES[40]: 900.0, CASES[1]: 1800.0, CASES[30]: 3600.0})
    assert [node.given for node in nodes] == [[30, 40], [0, 1, 2]]


def test_groups_begin_before_single_cases(tmp_path: Path) -> None:
    """They share something costly. What has a limit of its own goes before them, and the others keep their order."""
    _, nodes = scheduled(tmp_path, {CASES[30]: 900.0}, slice(47, 50))
    assert [node.given for node in nodes] == [[30, 0], [47, 48, 49]]


def test_units_that_have_ended_are_forgotten(tmp_path: Path) -> None:
    """What is counted at each end of a case does not grow with the cases that have ended."""
    scheduler, nodes = scheduled(tmp_path, {})
    ended: list[int] = []
    while not scheduler.tests_finished:
        for node in nodes:
            if node.given:
                ended.append(node.given.pop(0))
                scheduler.mark_test_complete(node, ended[-1])
            assert len(scheduler.assigned_work[node]) <= 3
    ended += [case for node in nodes for case in node.given]
    assert sorted(ended) == list(range(50))


@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed by a signal")
def test_a_killed_controller_leaves_nothing_among_the_temporary_files(tmp_path: Path) -> None:
    """What it would have removed lies beside the results, and the next sitting removes it."""
    case = "import os, signal\ndef test_it(): os.kill(os.getppid(), signal.SIGKILL)\n"
    (tmp_path / "test_it.py").write_text(case, encoding="utf-8")
    files, temporary = RunFolder(tmp_path / "run").files("stage1"), tmp_path / "temporary"
    temporary.mkdir()
    files.folder.mkdir(parents=True)
    options = ["-p", "stages.plugin", "-p", "xdist", "-n", "2", "--dist", "loadgroup", f"--bp-results={files.results}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--disable-plugin-autoload", f"--rootdir={tmp_path}", *options, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": os.pathsep.join([f"{ROOT / 'impl'}", f"{ROOT}"])},
        capture_output=True,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert [len(list(folder.glob(f"{SCRATCH}*"))) for folder in (temporary, files.folder)] == [0, 1]
    go_on(files)
    assert list(files.folder.iterdir()) == []
