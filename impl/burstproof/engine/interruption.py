"""Engines that cannot go on: closed, in use by another thread, or left within a burst by an error or Ctrl-C."""

from __future__ import annotations

from typing import Protocol

from burstproof.errors import InputError

_CURE = "Restore a state, or create another engine"


class Failing(Protocol):
    """An engine; ``failure`` says why it cannot go on, if a burst of it did not end."""

    failure: Exception | None


def interrupted(cure: str = _CURE) -> InputError:
    """What is said of an engine of which nobody knows which bursts it has done."""
    return InputError("the engine was interrupted within a burst", where="run", cure=cure)


def closed() -> InputError:
    """What is said of an engine that is closed."""
    return InputError("the engine is closed", where="run", cure="Create another engine")


def in_use(where: str) -> InputError:
    """The error for a call from a thread while another thread is inside a call of the same engine."""
    cure = "Use it from one thread at a time, or open an engine for each thread"
    return InputError("another thread is using the engine", where=where, cure=cure)


def refuse_failed(engine: Failing) -> None:
    """Refuse to go on with ``engine`` if a burst of it did not end.

    Raises
    ------
    Exception
        The error that ended the burst; an ``InputError`` if it was interrupted.
    """
    if engine.failure is not None:
        raise engine.failure


class KeepingFailure:
    """Bursts of ``engine`` within: what is raised before they end becomes its ``failure``.

    ``cure`` is what can be done after an interruption. A class, because every step enters it: a generator takes longer.
    """

    __slots__ = ("_cure", "_engine")

    def __init__(self, engine: Failing, cure: str = _CURE) -> None:
        self._engine, self._cure = engine, cure

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if error is not None:
            self._engine.failure = error if isinstance(error, Exception) else interrupted(self._cure)
