"""Scheduling for pytest-xdist that keeps cases of one group in one process: markers ``xdist_group``, ``file_group``.

With ``--dist loadgroup`` the cases of an ``xdist_group`` stay together, and all others are spread. With ``--dist
loadfile`` the cases of a file stay together, or those of the files of a ``file_group``. Units are scheduled in this
order: those with a case of ``--first``; those with a case that states a time limit, the longest first; groups; the
rest. Otherwise one process would be left alone with a long unit at the end.

pytest-xdist carries the groups in the ids of the cases, which then differ from those of a run in one process, and from
pytest 9.2 on it loses them (pytest-xdist issue 1386). Here each worker writes them to a file before its first case, and
the controller reads it.
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
    """What a worker writes to the file, by the id of a case: its group, and its own time limit in seconds."""

    groups: dict[str, str]
    limits: dict[str, float]


class Grouping:
    """Plugin for controller and workers; it acts with ``--dist loadgroup`` and ``--dist loadfile``."""

    def __init__(self, config: pytest.Config) -> None:
        self._worker_file, self._marker = getattr(config, "workerinput", {}).get(_INPUT, (None, ""))
        self._results = config.getoption("--bp-results")
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        if self._worker_file is not None:
            config.option.loadgroup = False  # the ids stay as they are

    def _file(self) -> Path:
        """The file that the workers write; in the stage's folder, so that it is removed even after a kill."""
        if self._folder is None:
            beside = Path(self._results).parent if self._results else None
            self._folder = tempfile.TemporaryDirectory(prefix=SCRATCH, dir=beside)
        return Path(self._folder.name, "groups.json")

    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a new worker which file to write, and which marker names the groups."""
        marker = _MARKERS.get(node.config.getvalue("dist"))
        if marker is not None:
            node.workerinput[_INPUT] = (str(self._file()), marker)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """On a worker: write the groups and the time limits of the cases that have some."""
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
        """Give a worker the next unit; before the first one, sort all units."""
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
        """Forget a unit whose cases have all ended, since every later case would count its cases again."""
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def remove_node(self, node: WorkerController) -> str | None:
        """Give the cases of a worker that died to the others; return the one during which it died, which is not rerun.

        pytest-xdist 3.8 queues that case and the finished ones again, as cases without work, and the worker that gets
        them waits for ever.
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
        """Keep two cases at each worker: it begins one only when it knows the next, or that there is none."""
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
