"""SIGINT, SIGTERM and SIGHUP end a program in order, however it was started.

A shell starts what runs in the background with SIGINT ignored, and children inherit that. A handler set here restores
it, for this process and for its children. Standard library only, since the noxfile needs it.
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
"""What ends a run; Windows has no SIGHUP."""


_Handler = Callable[[int, FrameType | None], object] | int | None


class Interrupted(KeyboardInterrupt):
    """A signal asked the program to end; its text is the signal's name."""


def end_in_order(before: Callable[[], None] = lambda: None) -> None:
    """Let the first of the signals raise :class:`Interrupted`, after ``before()``; the later ones do nothing.

    A terminal sends Ctrl-C to every process of a job, and a parent may send it on: what follows the first must not
    disturb the ending. A signal other than SIGINT that is ignored stays so, as ``nohup`` has it with SIGHUP. Only the
    main thread can set handlers; elsewhere nothing is changed.
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

    The signals are sent on to it, so that it ends first; then :class:`Interrupted` is raised.
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
    """Send SIGINT to the direct children of this process, as a terminal would (Linux)."""
    for task in Path("/proc/self/task").glob("*/children"):
        for child in task.read_text(encoding="ascii").split():
            with suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGINT)


def _handle(handler: Callable[[int, FrameType | None], None]) -> dict[signal.Signals, _Handler]:
    """Set ``handler`` where a handler may be set, and return what was there."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    ignored = {one for one in ENDING if one is not signal.SIGINT and signal.getsignal(one) is signal.SIG_IGN}
    return {one: signal.signal(one, handler) for one in ENDING if one not in ignored}
