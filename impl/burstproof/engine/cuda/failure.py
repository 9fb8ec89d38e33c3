"""Engines on devices that fail, or that are interrupted: what they say from then on."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from burstproof.device.faults import translated
from burstproof.engine.interruption import Failing, interrupted
from burstproof.errors import DeviceFaultError, OutOfMemoryError

CURE = "Create another engine and restore a state"
"""What can be done after an interruption while a burst was under way that the host did not hear of."""


class FailingOnDevices(Failing, Protocol):
    """An engine on devices."""

    @property
    def has_settled(self) -> bool:
        """Whether the host knows of all bursts that the devices did."""
        ...


Subject = TypeVar("Subject", bound=FailingOnDevices)
Given = ParamSpec("Given")
Found = TypeVar("Found")


def keeping_failure(
    call: Callable[Concatenate[Subject, Given], Found],
) -> Callable[Concatenate[Subject, Given], Found]:
    """``call``, which keeps a failed device, or what ended a burst, as ``failure``, for later calls to raise."""
    guarded = translated(call)

    @wraps(call)
    def kept(engine: Subject, /, *arguments: Given.args, **named: Given.kwargs) -> Found:
        try:
            return guarded(engine, *arguments, **named)
        except (DeviceFaultError, OutOfMemoryError) as error:
            engine.failure = error
            raise
        except BaseException as error:
            if engine.failure is None and not engine.has_settled:
                engine.failure = error if isinstance(error, Exception) else interrupted(CURE)
            raise

    return kept
