"""Time limits: ends a case that takes too long, in two steps.

At the limit an alarm raises an exception in the case, which ends as an error; the process goes on with the next case.
If the case waits in C code, the exception does not reach it. Then a watchdog, which does not need the GIL, writes all
stacks to the log and ends the process; the runner starts another one for the cases that are left.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Generator
from types import FrameType

import pytest

MARKER = "time_limit"
WATCHDOG_S = 30.0
"""Seconds from the alarm to the watchdog."""


class CaseOverranError(BaseException):
    """The case took longer than its time limit; no ``except Exception`` in it catches this."""


def limit_of(item: pytest.Item) -> float | None:
    """The time limit that a case states for itself, in seconds, or ``None``."""
    marker = item.get_closest_marker(MARKER)
    return None if marker is None else float(marker.args[0])


class SittingLimit:
    """A pytest plugin that lets no case begin too late; cases that have begun run to their end.

    Parameters
    ----------
    until_s : float
        On the monotonic clock: no case begins at that time or later.
    stage_end_s : float
        On the monotonic clock: when the stage is ended. A case that states a limit begins only if the limit is over
        before that.
    skipped : callable
        Tells whether a case is skipped, which takes no time.
    """

    def __init__(self, until_s: float, stage_end_s: float, skipped: Callable[[pytest.Item], object]) -> None:
        self._until_s, self._stage_end_s, self._skipped = until_s, stage_end_s, skipped

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Pass over a case that is too late, without a line in the results."""
        now, stated_s = time.monotonic(), limit_of(item)
        too_long = stated_s is not None and now + stated_s > self._stage_end_s and not self._skipped(item)
        return True if too_long or now >= self._until_s else None


class TimeLimit:
    """A pytest plugin that enforces the time limit of each case, fixtures included.

    Parameters
    ----------
    default_s : float
        Limit in seconds of a case without the marker.
    """

    def __init__(self, default_s: float) -> None:
        self._default_s = default_s
        self._log = os.dup(2)  # pytest has not redirected it yet
        self._case, self._limit_s, self._deadline = "", default_s, 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Arm the watchdog for all phases of a case."""
        self._limit_s = limit_of(item) or self._default_s
        self._case, self._deadline = item.nodeid, time.monotonic() + self._limit_s
        faulthandler.dump_traceback_later(self._limit_s + WATCHDOG_S, exit=True, file=self._log)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, object, object]:
        """Set the alarm for the fixtures."""
        return (yield from self._alarmed())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Set the alarm for the case."""
        return (yield from self._alarmed())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Set the alarm for the teardown, which has the rest of the time, but at least one second."""
        return (yield from self._alarmed())

    def pytest_unconfigure(self) -> None:
        """Close the duplicate of the log's descriptor."""
        os.close(self._log)

    def _alarmed(self) -> Generator[None, object, object]:
        if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGALRM"):
            return (yield)
        before = signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, max(1.0, self._deadline - time.monotonic()))
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, before)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        raise CaseOverranError(
            f"{self._case} overran its time limit of {self._limit_s:g} s; "
            f"a case that needs more says so: @pytest.mark.{MARKER}(SECONDS)"
        )
