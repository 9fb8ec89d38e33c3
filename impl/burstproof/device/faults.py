"""What the driver says when a device fails, as the package's own errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from burstproof.errors import BurstproofError, DeviceFaultError, OutOfMemoryError

Given = ParamSpec("Given")
Found = TypeVar("Found")

_DRIVER_ERRORS = frozenset({"CUDARuntimeError", "CUDADriverError", "CUDAError", "CudaAPIError", "OutOfMemoryError"})
"""Errors of CuPy, cuda.core and numba-cuda, which have no base in common; none of them need be installed."""

_NO_MEMORY = ("out of memory", "memoryallocation", "out_of_memory")


def error_of(error: Exception) -> BurstproofError | None:
    """The package's error for what a driver call raised; ``None`` if ``error`` is none of the driver's."""
    if type(error).__name__ not in _DRIVER_ERRORS or isinstance(error, BurstproofError):
        return None
    said = " ".join(str(error).split())
    if any(words in said.lower() for words in _NO_MEMORY):
        return OutOfMemoryError(
            "the device has no memory left for what is under way",
            where="CUDA device",
            got=said,
            cure="Close other programs on the device, or run a smaller network",
        )
    return DeviceFaultError(
        "the device failed during the run; nothing that it computed since the last result is to be trusted",
        where="CUDA device",
        got=said,
        cure="Start a new process: this one cannot use the device any more. If it fails again, see the driver's log",
    )


def translated(call: Callable[Given, Found]) -> Callable[Given, Found]:
    """``call``, whose driver errors are the package's own."""

    @functools.wraps(call)
    def guarded(*arguments: Given.args, **named: Given.kwargs) -> Found:
        try:
            return call(*arguments, **named)
        except Exception as error:
            known = error_of(error)
            if known is None:
                raise
            raise known from error

    return guarded
