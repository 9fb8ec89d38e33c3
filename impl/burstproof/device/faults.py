"""Translates driver errors of a failed device into the package's own errors."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from burstproof.errors import BurstproofError, DeviceFaultError, OutOfMemoryError

Given = ParamSpec("Given")
Found = TypeVar("Found")

_DRIVER_ERRORS = frozenset({"CUDARuntimeError", "CUDADriverError", "CUDAError", "CudaAPIError", "OutOfMemoryError"})
"""Error classes of CuPy, cuda.core and numba-cuda by name: they share no base, and may not be installed."""

_NAME = re.compile(r"cuda_?error_?(\w+)", re.IGNORECASE)
_NO_MEMORY = ("outofmemory", "memoryallocation")

_NEW_PROCESS = "Start a new process: this one cannot use the device any more"
_CURES = (
    (
        ("deviceunavailable", "devicesunavailable"),
        "the device is not available",
        "End the program that holds it (nvidia-smi shows it) or allow more than one (nvidia-smi -c DEFAULT); then "
        "start a new process",
    ),
    (
        ("eccuncorrectable", "nvlinkuncorrectable", "contained"),
        "the device found an error in its memory or links that it cannot correct",
        f"{_NEW_PROCESS}. See the driver's log and have the device reset; if it happens again, have it replaced",
    ),
    (
        ("contextisdestroyed", "deinitialized", "cudartunloading", "nodevice", "invaliddevice"),
        "the device is lost",
        f"{_NEW_PROCESS}. If nvidia-smi does not show the device, reset it or restart the machine",
    ),
)
"""Driver error names (as ``_name_in`` returns them), their meaning, and the cure."""

_FAILED = (
    "the device failed during the run",
    f"{_NEW_PROCESS}. If it fails again, see the driver's log",
)


def error_of(error: Exception) -> BurstproofError | None:
    """The package's error for a driver error; ``None`` if ``error`` is not one."""
    if type(error).__name__ not in _DRIVER_ERRORS or isinstance(error, BurstproofError):
        return None
    said = " ".join(str(error).split())
    name = _name_in(said)
    if any(words in name for words in _NO_MEMORY):
        return OutOfMemoryError(
            "the device has no memory left for what is under way",
            where="CUDA device",
            got=said,
            cure="Close other programs on the device, or run a smaller network",
        )
    rows = (row for row in _CURES if name in row[0])
    _, problem, cure = next(rows, ((), *_FAILED))
    distrust = "nothing that it computed since the last result is to be trusted"
    return DeviceFaultError(f"{problem}; {distrust}", where="CUDA device", got=said, cure=cure)


def _name_in(said: str) -> str:
    """The error name in lower case without separators, or the whole message ``said`` if it contains none.

    Text after the name is ignored: cuda.core's explanations mention other errors.
    """
    named = _NAME.search(said)
    return (said if named is None else named[1]).lower().replace(" ", "").replace("_", "")


def translated(call: Callable[Given, Found]) -> Callable[Given, Found]:
    """Wrap ``call`` so that driver errors become the package's own."""

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
