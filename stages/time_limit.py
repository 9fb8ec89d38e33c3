"""Ends a case that overruns its time limit, in two steps.

At the limit an alarm raises an exception in the case, which ends as an error; the process goes on with the next case. A
case that waits in C code does not see the exception. A watchdog, which needs no GIL, then writes every stack to the log
and ends the process; the runner goes on with the other cases in another one.
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
"""How long after the alarm the watchdog acts."""


class CaseOverranError(BaseException):
    """The case took longer than its time limit; no ``except Exception`` in it catches this."""


def limit_of(item: pytest.Item) -> float | None:
    """Return the time limit that a case states for itself, in seconds."""
    marker = item.get_closest_marker(MARKER)
    return None if marker is None else float(marker.args[0])


class SittingLimit:
    """A pytest plugin that lets no case begin too late; those that have begun end.

    Parameters
    ----------
    until_s : float
        No case begins at that point or later, on the machine's monotonic clock.
    stage_end_s : float
        The stage is ended at that point. A case that states a limit begins only if that ends before.
    skipped : callable
        Whether a case is skipped, which takes no time.
    """

    def __init__(self, until_s: float, stage_end_s: float, skipped: Callable[[pytest.Item], object]) -> None:
        self._until_s, self._stage_end_s, self._skipped = until_s, stage_end_s, skipped

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        """Take a case that is too late as done, without a word in the results."""
        now, stated_s = time.monotonic(), limit_of(item)
        too_long = stated_s is not None and now + stated_s > self._stage_end_s and not self._skipped(item)
        return True if too_long or now >= self._until_s else None


class TimeLimit:
    """A pytest plugin that holds each case to its time limit, fixtures included.

    Parameters
    ----------
    default_s : float
        Limit of a case that has no marker, in seconds.
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
        """Let the alarm ring in fixtures, too."""
        return (yield from self._alarmed())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Let the alarm ring in the case."""
        return (yield from self._alarmed())

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None, object, object]:
        """Let the alarm ring in the teardown, after the time that was left for it, one second at least."""
        return (yield from self._alarmed())

    def pytest_unconfigure(self) -> None:
        """Let go of the log."""
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
