"""Signals with which schedulers and terminals end a program, as exceptions: what was done can still be said."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What asks a program to end; nobody waits at a keyboard for its answer."""


Handler = Callable[[int, FrameType | None], object] | signal.Handlers


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
def seen_to(usual: Mapping[int, Handler], handler: Handler) -> Iterator[None]:
    """Within it, ``handler`` sees to those signals that nobody has seen to before: their handlers are the ``usual``.

    Only the main thread can see to signals; another one changes nothing.
    """
    main = threading.current_thread() is threading.main_thread()
    mine = {number: before for number, before in usual.items() if main and signal.getsignal(number) == before}
    for number in mine:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, before in mine.items():
            signal.signal(number, before)


@contextmanager
def raising_terminated() -> Iterator[None]:
    """Within it, the first of ``ENDING`` raises :class:`Terminated`, SIGINT as ever; later ones of these do nothing."""
    usual: dict[int, Handler] = {**dict.fromkeys(ENDING, signal.SIG_DFL), signal.SIGINT: signal.default_int_handler}

    def end(number: int, _: FrameType | None) -> None:
        for each in usual:
            if signal.getsignal(each) is end:
                signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt if number == signal.SIGINT else Terminated(number)

    with seen_to(usual, end):
        yield
