"""Signals with which schedulers and terminals end a program, as exceptions: what was done can still be said."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks a program to end; nobody waits at a keyboard for its answer."""


class Terminated(KeyboardInterrupt):
    """A signal of ``ENDING`` asked the program to end.

    Attributes
    ----------
    number : signal.Signals
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = signal.Signals(number)


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Within it, the first of ``ENDING`` raises :class:`Terminated`, SIGINT as ever; later ones of these do nothing.

    Only the main thread can see to that, and only to signals that nobody has seen to before.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = dict.fromkeys(ENDING, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
    mine = {number: handler for number, handler in usual.items() if signal.getsignal(number) == handler}

    def end(number: int, _: FrameType | None) -> None:
        for each in mine:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    for number in mine:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in mine.items():
            signal.signal(number, handler)
