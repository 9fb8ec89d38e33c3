"""Runs one command and leaves no process behind: neither when it ends, nor when whoever started this one is gone.

``python supervisor.py COMMAND ...``. Standard library only, since it stands beside every suite. Its standard input is a
pipe. When the runner closes it, or dies of whatever signal, the command is interrupted, and what is left of it after
the grace time is killed. On Linux this process is the reaper of its descendants: a process that made a session of its
own, or whose parent died, is found too; and where this process itself is killed, so is the command. Elsewhere the
command's process group is killed.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

GRACE_S = 10.0
"""How long an interrupted command may take to end by itself."""

ORPHAN_S = 60.0
"""How long a process may outlive the one that started it."""

_TICK_S = 0.1
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def supervise(command: Sequence[str], runner: int) -> int | None:
    """Run ``command`` until it ends or the pipe ``runner`` is closed, then end all its descendants.

    Returns
    -------
    int or None
        The exit status of the command; negative for the signal that it died of, ``None`` if nothing ends it.
    """
    linux = ctypes.CDLL(None) if sys.platform == "linux" else None
    if linux is not None:
        linux.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def end_with_me() -> None:
        if linux is not None:
            linux.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    for number in _ENDING:  # a process started in the background ignores interrupts, and so would its children
        signal.signal(number, signal.SIG_DFL)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=end_with_me)
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)
    orphans: dict[int, float] = {}
    try:
        while process.poll() is None and not select.select([runner], [], [], _TICK_S)[0]:
            _reap(process)
            _end_orphans(process, orphans)
        if process.poll() is None:
            _interrupt(process)
    finally:
        end_descendants(process)
    return process.returncode


def _interrupt(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the command alone: what it started, it ends itself, or is ended with its descendants."""
    process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(_TICK_S)


def _end_orphans(process: subprocess.Popen[bytes], since: dict[int, float]) -> None:
    """Kill what outlived its parent by ``ORPHAN_S``; ``since`` keeps when each was first seen.

    The child of a worker that died holds the pipe on which pytest waits for the worker's end.
    """
    now = time.monotonic()
    tasks = Path("/proc/self/task").glob("*/children")
    found = {int(pid) for task in tasks for pid in task.read_text().split()} - {process.pid}
    for pid in set(since) - found:
        del since[pid]
    for pid in found:
        if now - since.setdefault(pid, now) > ORPHAN_S:
            _kill([pid, *descendants(pid)])


def end_descendants(process: subprocess.Popen[bytes]) -> None:
    """Kill the command's process group, and every process that descends from this one, until there is none.

    A process that not even SIGKILL ends, because it waits in a driver, is left after the grace time.
    """
    deadline = time.monotonic() + GRACE_S
    while True:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        found = descendants(os.getpid())
        _kill(found)
        process.poll()
        _reap(process)
        if not found or time.monotonic() > deadline:
            process.poll()
            return
        time.sleep(_TICK_S / 10)


def _kill(pids: Sequence[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants(ancestor: int) -> list[int]:
    """Return the processes that descend from one, which have not ended; none where there is no ``/proc``."""
    children = _children()
    found: list[int] = []
    ahead = [ancestor]
    while ahead:
        ahead = [child for parent in ahead for child in children.get(parent, [])]
        found += ahead
    return found


def _children() -> dict[int, list[int]]:
    """Every process that has not ended, by its parent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.parent.name))
    return children


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Collect an ended orphan; the status of the command itself is left to ``process``."""
    with suppress(ChildProcessError):
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_pid != process.pid:
            os.waitpid(ended.si_pid, os.WNOHANG)


def _end_alike(status: int | None) -> None:
    """End as the command did, so that whoever waits sees its status."""
    if status is not None and status < 0:
        with suppress(OSError, ValueError):  # SIGKILL has no handler to be set
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(1 if status is None else status)


if __name__ == "__main__":
    _end_alike(supervise(sys.argv[1:], sys.stdin.fileno()))
