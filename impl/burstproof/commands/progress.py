"""Progress bars on standard error, for what takes long enough to be wondered about."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from burstproof.burst.engine import Progress

SHOW_AFTER_S = 1.0
"""A bar appears once its task has taken this long, so that everything over two seconds has one."""


@contextmanager
def task(description: str, total: int | None = None, *, shown: bool = True) -> Iterator[Progress]:
    """A bar for one task; without ``total`` it only moves.

    Nothing is drawn if ``shown`` is false or standard error is no terminal.

    Yields
    ------
    Progress
        To be called with the number of steps just done.
    """
    if not shown or not sys.stderr.isatty():
        yield lambda _amount: None
        return
    bar, number = _bar(description, total)
    timer = threading.Timer(SHOW_AFTER_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda amount: bar.advance(number, amount)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _bar(description: str, total: int | None) -> tuple[Any, Any]:
    """A bar of rich that was not started, and its task."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns: list[Any] = [TextColumn("{task.description}", markup=False), BarColumn()]
    columns += [MofNCompleteColumn()] if total is not None else []
    columns += [TimeElapsedColumn()]
    bar = Bars(*columns, console=Console(stderr=True), transient=True)
    return bar, bar.add_task(description, total=total)
