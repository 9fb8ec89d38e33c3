"""Keeps cases that share something costly in one process, with any pytest: the markers ``xdist_group``, ``file_group``.

With ``--dist loadgroup`` the cases of one ``xdist_group`` stay together and others are spread; with ``--dist loadfile``
the cases of a file do, or those of the files of one ``file_group``. Units with a case that was asked for (``--first``)
begin first, then those with a case that states a time limit of its own, the longest limit before all, then groups: at
the end a process would be left alone with them.

pytest-xdist carries the groups in the cases' ids, which then differ from those of a run in one process, and from pytest
9.2 on it loses them (pytest-xdist issue 1386). Here each worker writes them down before its first case, and the
controller reads them.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import pytest
from xdist.scheduler import LoadScopeScheduling

from stages.asked_first import turn_of
from stages.run_folder import SCRATCH
from stages.time_limit import limit_of

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

_INPUT = "burstproof_groups"
_MARKERS = {"loadgroup": "xdist_group", "loadfile": "file_group"}


class Notes(TypedDict):
    """What a worker writes down of the cases by their ids: groups, and time limits of their own in seconds."""

    groups: dict[str, str]
    limits: dict[str, float]


class Grouping:
    """Plugin for controller and workers; acts with the ways to distribute that have a marker."""

    def __init__(self, config: pytest.Config) -> None:
        self._worker_file, self._marker = getattr(config, "workerinput", {}).get(_INPUT, (None, ""))
        self._results = config.getoption("--bp-results")
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if self._worker_file is not None:
            config.option.loadgroup = False  # the ids stay as they are

    def _file(self) -> Path:
        """Where the workers of this controller write: in the stage's folder, which knows what a kill leaves there."""
        if self._folder is None:
            beside = Path(self._results).parent if self._results else None
            self._folder = tempfile.TemporaryDirectory(prefix=SCRATCH, dir=beside)
        return Path(self._folder.name, "groups.json")

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a new worker where to write, and groups by which marker."""
        marker = _MARKERS.get(node.config.getvalue("dist"))
        if marker is not None:
            node.workerinput[_INPUT] = (str(self._file()), marker)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """On a worker: write down the group of each case that has one, and the time limit."""
        if self._worker_file is not None:
            partial = Path(f"{self._worker_file}.{os.getpid()}")
            notes = {"groups": groups_of(session.items, self._marker), "limits": limits_of(session.items)}
            partial.write_text(json.dumps(notes), encoding="utf-8")
            partial.replace(self._worker_file)

    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
        """Schedule by group."""
        return GroupScheduling(config, log, self._file()) if config.getvalue("dist") in _MARKERS else None

    def pytest_unconfigure(self) -> None:
        """Remove what the workers wrote."""
        if self._folder is not None:
            self._folder.cleanup()


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out whole groups, and single cases or files that are in none."""

    def __init__(self, config: pytest.Config, log: Producer, file: Path) -> None:
        super().__init__(config, log)
        self._file = file
        self._ordered = False

    @cached_property
    def _notes(self) -> Notes:
        found: Notes = json.loads(self._file.read_text(encoding="utf-8"))
        return found

    def _split_scope(self, nodeid: str) -> str:
        whole_files = self.config.getvalue("dist") == "loadfile"
        return self._notes["groups"].get(nodeid, nodeid.split("::", 1)[0] if whole_files else nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Give a worker the next unit; before the first one, put those that may take long in front."""
        if not self._ordered:
            self._ordered = True
            groups = set(self._notes["groups"].values())
            ranks = {
                scope: (-self._turn_of(unit), self._limit_of(unit), scope in groups)
                for scope, unit in self.workqueue.items()
            }
            for scope in sorted(ranks, key=ranks.__getitem__, reverse=True):
                self.workqueue.move_to_end(scope)
        super()._assign_work_unit(node)

    def _turn_of(self, unit: Iterable[str]) -> int:
        return min(turn_of(case, self.config.getvalue("--bp-first")) for case in unit)

    def _limit_of(self, unit: Iterable[str]) -> float:
        return max(self._notes["limits"].get(case, 0.0) for case in unit)

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget a unit whose cases have all ended: else every later case counts all of them again."""
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the cases of a worker that died to the others, but for the one that it died in, which is returned.

        pytest-xdist 3.8 queues that one, and what the worker had finished, again: cases without work, which leave a
        worker waiting for ever.
        """
        workload = self.assigned_work.pop(node)
        pending = [case for unit in workload.values() for case, done in unit.items() if not done]
        for scope, unit in workload.items():
            rest = {case: False for case, done in unit.items() if not done and case != pending[0]}
            if rest:
                self.workqueue[scope] = rest
        for other in self.assigned_work:
            if pending and other in self.registered_collections:
                self._reschedule(other)
        return pending[0] if pending else None

    def _reschedule(self, node: WorkerController) -> None:
        """Keep two cases at a worker: it begins one only when it knows the next, or that there is none."""
        super()._reschedule(node)
        if self.workqueue and not node.shutting_down and self._pending_of(self.assigned_work[node]) < 2:
            super()._reschedule(node)


def groups_of(items: list[pytest.Item], marker: str) -> dict[str, str]:
    """Return the group of each case that has ``marker``; several of them make one group of their names."""
    named = ((item.nodeid, {_name(mark) for mark in item.iter_markers(marker)}) for item in items)
    return {nodeid: "_".join(sorted(names)) for nodeid, names in named if names}


def limits_of(items: list[pytest.Item]) -> dict[str, float]:
    """Return the time limit, in seconds, of each case that states one."""
    stated = ((item.nodeid, limit_of(item)) for item in items)
    return {nodeid: limit for nodeid, limit in stated if limit is not None}


def _name(mark: pytest.Mark) -> str:
    return str(mark.args[0] if mark.args else mark.kwargs.get("name", "default"))
