"""Cases that do not run here: a worker sends one report of each, and sets nothing up and tears nothing down."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stages.collecting import Findings

_OF_PYTEST = ("skip", "skipif", "xfail")


class SkippedAtOnce:
    """A pytest plugin for the workers of pytest-xdist, which tell the controller of every phase of a case.

    Parameters
    ----------
    why : callable
        Why a case does not run; empty: it runs.
    findings : callable
        What the collector needs to know of it.
    """

    def __init__(self, why: Callable[[pytest.Item], str], findings: Callable[[pytest.Item], Findings]) -> None:
        self._why, self._findings = why, findings

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Report it as skipped, in one report.

        The last case of a module or class goes pytest's way, so that what is set up is torn down; so does one with a
        mark of pytest's own, which comes first.
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
