"""Errors of engines that cannot go on: closed, in use by another thread, or stopped within a burst."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock, current_thread, main_thread
from typing import Protocol

from burstproof.errors import InputError

_CURE = "Restore a state, or create another engine"


class Failing(Protocol):
    """An engine; ``failure`` is the error that ended a burst early, so that the engine cannot go on."""

    failure: Exception | None


def interrupted(cure: str = _CURE) -> InputError:
    """The error of an engine that was interrupted, so that its burst is unknown."""
    return InputError("the engine was interrupted within a burst", where="run", cure=cure)


def closed() -> InputError:
    """The error of an engine that is closed."""
    return InputError("the engine is closed", where="run", cure="Create another engine")


def in_use(where: str) -> InputError:
    """The error for a call from a thread while another thread is inside a call of the same engine."""
    cure = "Use it from one thread at a time, or open an engine for each thread"
    return InputError("another thread is using the engine", where=where, cure=cure)


@contextmanager
def alone(lock: RLock, where: str) -> Iterator[None]:
    """Hold ``lock`` for the block.

    Raises
    ------
    InputError
        Another thread holds it. Nothing is waited for.
    """
    if not lock.acquire(False):
        raise in_use(where)
    try:
        yield
    finally:
        lock.release()


def refuse_failed(engine: Failing) -> None:
    """Raise if a burst of ``engine`` did not end.

    Raises
    ------
    Exception
        The error that ended the burst; an ``InputError`` if it was interrupted.
    """
    if engine.failure is not None:
        raise engine.failure


class KeepingFailure:
    """A context for bursts of ``engine``: an exception that ends them becomes its ``failure``.

    ``cure`` is the advice after an interruption. A class, because every step enters it and a generator is slower.
    """

    __slots__ = ("_cure", "_engine")

    def __init__(self, engine: Failing, cure: str = _CURE) -> None:
        self._engine, self._cure = engine, cure

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self._engine.failure = error if isinstance(error, Exception) else interrupted(self._cure)


@contextmanager
def deferred_interrupt() -> Iterator[None]:
    """Within the block Ctrl-C (SIGINT) waits for its end, so that the engine knows which bursts were done.

    Compiled code cannot be interrupted anyway. Only the main thread hears of signals; in other threads, and if SIGINT
    has no handler, nothing changes. Entering and leaving take about 5 us.
    """
    handler = signal.getsignal(signal.SIGINT) if current_thread() is main_thread() else None
    if not callable(handler):
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(signal.SIGINT, None)
