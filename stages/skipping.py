"""Skips cases quickly: a worker sends one report for each, without setup and teardown."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stages.collecting import Findings

_OF_PYTEST = ("skip", "skipif", "xfail")


class SkippedAtOnce:
    """A pytest plugin for the workers of pytest-xdist, which otherwise send a report for every phase of a case.

    Parameters
    ----------
    why : callable
        Returns why a case does not run; empty if it runs.
    findings : callable
        Returns what the collector needs to know about the case.
    """

    def __init__(self, why: Callable[[pytest.Item], str], findings: Callable[[pytest.Item], Findings]) -> None:
        self._why, self._findings = why, findings

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report a case as skipped, in one report.

        pytest itself handles the last case of a module or class, so that fixtures are torn down, and cases with one of
        its own marks, which take precedence.
        """
        is_last = nextitem is None or nextitem.parent is not item.parent
        why = "" if is_last or any(map(item.get_closest_marker, _OF_PYTEST)) else self._why(item)
        if not why:
            return None
        where = (str(item.path), (item.location[1] or 0) + 1, f"Skipped: {why}")
        report = pytest.TestReport(item.nodeid, item.location, {}, "skipped", where, "teardown")
        self._findings(item).put_on(report)
        item.ihook.pytest_runtest_logreport(report=report)
        return True
