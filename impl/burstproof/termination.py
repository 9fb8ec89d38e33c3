"""SIGTERM, with which schedulers end a job, as an exception: what was done can still be said and closed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Terminated(KeyboardInterrupt):
    """SIGTERM asked the program to end."""


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Within it, the first SIGTERM raises :class:`Terminated`, and later ones do nothing.

    Only the main thread can see to that, and only where nobody has seen to SIGTERM before.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise Terminated

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
