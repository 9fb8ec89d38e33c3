"""``python supervisor.py COMMAND ...`` runs a command and leaves no process behind, even if the runner dies.

Its standard input is a pipe from the runner. When the runner closes the pipe, or dies of any signal, the command is
interrupted, and what is left of it after the grace time is killed. On Linux this process is the subreaper of its
descendants, so it finds those that made a session of their own or lost their parent; if this process itself is killed,
the kernel kills the command. On other systems the process group of the command is killed. Standard library only, to
stay small beside every suite.
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
"""Seconds that an interrupted command has to end by itself."""

ORPHAN_S = 60.0
"""Seconds that a process may outlive its parent."""

_TICK_S = 0.1
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def supervise(command: Sequence[str], runner: int) -> int | None:
    """Run ``command`` until it ends or the pipe ``runner`` is closed, then end all its descendants.

    Returns
    -------
    int or None
        The exit status of the command, negative if a signal killed it; ``None`` if nothing could end it.
    """
    linux = ctypes.CDLL(None) if sys.platform == "linux" else None
    if linux is not None:
        linux.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def end_with_me() -> None:
        if linux is not None:
            linux.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)

    for number in _ENDING:  # a background job ignores SIGINT, and its children would inherit that
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
    """Interrupt the command, not its children: it ends them itself, or they are killed afterwards."""
    process.send_signal(signal.SIGINT)
    deadline = time.monotonic() + GRACE_S
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(_TICK_S)


def _end_orphans(process: subprocess.Popen[bytes], since: dict[int, float]) -> None:
    """Kill processes that outlived their parent by ``ORPHAN_S``; ``since`` has the time when each was first seen.

    The child of a worker that died keeps the pipe open on which pytest waits for the worker to end.
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
    """Kill the command's process group and all descendants of this process until there are none.

    After the grace time a process that SIGKILL does not end, because it waits in a driver, is left alone.
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
    """The living descendants of a process; none on systems without ``/proc``."""
    children = _children()
    found: list[int] = []
    ahead = [ancestor]
    while ahead:
        ahead = [child for parent in ahead for child in children.get(parent, [])]
        found += ahead
    return found


def _children() -> dict[int, list[int]]:
    """All living processes by their parent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = entry.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(entry.parent.name))
    return children


def _reap(process: subprocess.Popen[bytes]) -> None:
    """Reap an orphan that has ended; the command itself is reaped by ``process``."""
    with suppress(ChildProcessError):
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is not None and ended.si_pid != process.pid:
            os.waitpid(ended.si_pid, os.WNOHANG)


def _end_alike(status: int | None) -> None:
    """End with the command's exit status, or by its signal."""
    if status is not None and status < 0:
        with suppress(OSError, ValueError):  # SIGKILL has no handler to be set
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(1 if status is None else status)


if __name__ == "__main__":
    _end_alike(supervise(sys.argv[1:], sys.stdin.fileno()))
