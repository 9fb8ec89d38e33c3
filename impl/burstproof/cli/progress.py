"""Progress on standard error, for what takes long enough to be wondered about: a bar, or a line in a log."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

SHOW_AFTER_S = 1.0
"""A bar appears once its task has taken this long, so that everything over two seconds has one."""

TELL_AFTER_S = 10.0
"""Where standard error is no terminal, a line tells of a task that has taken this long; most logs stay empty."""


class Bar:
    """A bar that may be drawn; ``drawing`` is the bar of rich and the number of its task, or ``None``."""

    def __init__(self, drawing: tuple[Any, Any] | None) -> None:
        self._drawing = drawing

    def advance(self, amount: int) -> None:
        """``amount`` steps were just done."""
        if self._drawing is not None:
            bar, number = self._drawing
            bar.advance(number, amount)

    def rename(self, description: str) -> None:
        """Say that something else is being done."""
        if self._drawing is not None:
            bar, number = self._drawing
            bar.update(number, description=description)

    def reach(self, done: int, total: int) -> None:
        """``done`` of ``total`` steps are done."""
        if self._drawing is not None:
            bar, number = self._drawing
            bar.update(number, completed=done, total=total)


@contextmanager
def task(description: str, total: int | None = None, *, shown: bool = True) -> Iterator[Bar]:
    """A bar for one task; as long as no total is known it only moves. Where standard error is no terminal, one line.

    Nothing is drawn or told if ``shown`` is false.
    """
    if not shown:
        yield Bar(None)
        return
    drawing = _drawing(description, total) if sys.stderr.isatty() else None
    tell = partial(print, f"burstproof: {description}", file=sys.stderr, flush=True)
    timer = threading.Timer(SHOW_AFTER_S, drawing[0].start) if drawing else threading.Timer(TELL_AFTER_S, tell)
    timer.daemon = True
    timer.start()
    try:
        yield Bar(drawing)
    finally:
        timer.cancel()
        timer.join()
        if drawing is not None:
            drawing[0].stop()


def _drawing(description: str, total: int | None) -> tuple[Any, Any]:
    """A bar of rich that was not started, and the number of its task."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    return bar, bar.add_task(description, total=total)
