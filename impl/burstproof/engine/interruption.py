"""Engines whose burst did not end, because of an error or of Ctrl-C in a notebook, and that are asked to go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from burstproof.errors import InputError

_CURE = "Restore a state, or create another engine"


class Failing(Protocol):
    """An engine; ``failure`` says why it cannot go on, if a burst of it did not end."""

    failure: Exception | None


class Interruptible(Protocol):
    """An engine on the host; ``interrupted`` until a state is restored, if a burst did not end."""

    interrupted: bool


Subject = TypeVar("Subject", bound=Interruptible)
Given = ParamSpec("Given")
Done = TypeVar("Done")


def interrupted(cure: str = _CURE) -> InputError:
    """What is said of an engine of which nobody knows which bursts it has done."""
    return InputError("the engine was interrupted within a burst", where="run", cure=cure)


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


def refuse_interrupted(engine: Interruptible) -> None:
    """Refuse to go on with ``engine`` if a burst of it did not end.

    Raises
    ------
    InputError
        It was interrupted.
    """
    if engine.interrupted:
        raise interrupted()


def ending_or_interrupted(
    bursts: Callable[Concatenate[Subject, Given], Done],
) -> Callable[Concatenate[Subject, Given], Done]:
    """``bursts`` of an engine that does them and counts them: interrupted in between, the engine cannot go on."""

    @wraps(bursts)
    def noted(engine: Subject, /, *arguments: Given.args, **named: Given.kwargs) -> Done:
        refuse_interrupted(engine)
        try:
            return bursts(engine, *arguments, **named)
        except KeyboardInterrupt:
            engine.interrupted = True
            raise

    return noted
