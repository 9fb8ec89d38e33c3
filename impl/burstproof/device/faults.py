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

_NO_MEMORY = ("outofmemory", "memoryallocation")

_NEW_PROCESS = "Start a new process: this one cannot use the device any more"
_CURES = (
    (
        ("deviceunavailable", "devicesunavailable"),
        "the device is not to be had",
        "End the program that holds it (nvidia-smi shows it) or allow more than one (nvidia-smi -c DEFAULT); then "
        "start a new process",
    ),
    (
        ("ecc", "nvlinkuncorrectable", "containederror"),
        "the device found an error in its memory or links that it cannot correct",
        f"{_NEW_PROCESS}. See the driver's log and have the device reset; if it happens again, have it replaced",
    ),
    (
        ("contextisdestroyed", "deinitialized", "cudartunloading", "nodevice", "invaliddevice", "islost"),
        "the device is lost",
        f"{_NEW_PROCESS}. If nvidia-smi does not show the device, reset it or restart the machine",
    ),
)
"""Words in what the driver said (small letters without gaps), what they mean, and the cure; the first row counts."""

_FAILED = (
    "the device failed during the run",
    f"{_NEW_PROCESS}. If it fails again, see the driver's log",
)


def error_of(error: Exception) -> BurstproofError | None:
    """The package's error for what a driver call raised; ``None`` if ``error`` is none of the driver's."""
    if type(error).__name__ not in _DRIVER_ERRORS or isinstance(error, BurstproofError):
        return None
    said = " ".join(str(error).split())
    bare = said.lower().replace(" ", "").replace("_", "")
    if any(words in bare for words in _NO_MEMORY):
        return OutOfMemoryError(
            "the device has no memory left for what is under way",
            where="CUDA device",
            got=said,
            cure="Close other programs on the device, or run a smaller network",
        )
    rows = (row for row in _CURES if any(words in bare for words in row[0]))
    _, problem, cure = next(rows, ((), *_FAILED))
    distrust = "nothing that it computed since the last result is to be trusted"
    return DeviceFaultError(f"{problem}; {distrust}", where="CUDA device", got=said, cure=cure)


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
