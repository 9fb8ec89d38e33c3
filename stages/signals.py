"""Handlers with which SIGINT, SIGTERM and SIGHUP end a program in order, however it was started.

A shell starts background jobs with SIGINT ignored, and children inherit that. Setting a handler restores the signal,
for this process and for its children. Standard library only, since the noxfile imports this.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a run; Windows has no SIGHUP."""


_Handler = Callable[[int, FrameType | None], object] | int | None


class Interrupted(KeyboardInterrupt):
    """A signal asked the program to end; the text is the name of the signal."""


def end_in_order(before: Callable[[], None] = lambda: None) -> None:
    """Let the first signal call ``before`` and raise :class:`Interrupted`; later signals are ignored.

    A terminal sends Ctrl-C to every process of a job, and a parent may forward it. The second signal must not disturb
    the program while it ends. A signal that is ignored stays ignored, such as SIGHUP after ``nohup``; SIGINT does not.
    Only the main thread can set handlers; in other threads this does nothing.
    """
    asked = False

    def handler(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            before()
            raise Interrupted(signal.Signals(number).name)

    _handle(handler)


def call(command: Sequence[str], cwd: Path | None = None, env: Mapping[str, str] | None = None) -> int:
    """Run ``command`` to its end and return its exit status.

    Signals are forwarded to it, so that it ends first; then :class:`Interrupted` is raised.
    """
    seen: list[int] = []

    def handler(number: int, _: FrameType | None) -> None:
        seen.append(number)
        process.send_signal(number)

    process = subprocess.Popen(command, cwd=cwd, env=env)
    before = _handle(handler)
    try:
        status = process.wait()
    finally:
        for number, former in before.items():
            signal.signal(number, former)
    if seen:
        raise Interrupted(signal.Signals(seen[0]).name)
    return status


def interrupt_children() -> None:
    """Send SIGINT to the direct children of this process, as a terminal does (Linux)."""
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGINT)


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, _Handler]:
    """Set ``handler`` for SIGINT and for the other signals unless ignored, and return the former handlers."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    ignored = {one for one in ENDING if one is not signal.SIGINT and signal.getsignal(one) is signal.SIG_IGN}
    return {one: signal.signal(one, handler) for one in ENDING if one not in ignored}
