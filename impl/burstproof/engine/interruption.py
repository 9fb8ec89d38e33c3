"""Engines that were interrupted within a burst, by Ctrl-C in a notebook, say, and are then asked to go on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from burstproof.errors import InputError


class Interruptible(Protocol):
    """An engine on the host; ``interrupted`` until a state is restored, if a burst did not end."""

    interrupted: bool


Subject = TypeVar("Subject", bound=Interruptible)
Given = ParamSpec("Given")
Done = TypeVar("Done")


def interrupted(cure: str = "Restore a state, or create another engine") -> InputError:
    """What is said of an engine of which nobody knows which bursts it has done."""
    return InputError("the engine was interrupted within a burst", where="run", cure=cure)


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
