"""Chooses the set of packages that suits the NVIDIA driver of this machine; standard library only."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76  # CUdevice_attribute, cuda.h
_CUDA_13_LEAST_CAPABILITY = (7, 5)


@dataclass(frozen=True)
class PackageSet:
    """The extra to install (``cuda12``, ``cuda13``, or empty for the CPU set), and why."""

    extra: str
    reason: str


@dataclass(frozen=True)
class Driver:
    """The CUDA version that the driver supports, and the compute capabilities of the GPUs."""

    cuda: tuple[int, int]
    capabilities: tuple[tuple[int, int], ...]


def find_package_set() -> PackageSet:
    """Choose the extra for this machine."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return PackageSet("", "no NVIDIA driver")
    driver = ask_driver(library)
    return PackageSet("", "the NVIDIA driver does not answer") if driver is None else choose(driver)


def choose(driver: Driver) -> PackageSet:
    """Choose the extra: CUDA 13 needs a driver that supports it, and capability 7.5 or more of every GPU."""
    version = f"the driver serves CUDA {driver.cuda[0]}.{driver.cuda[1]}"
    if not driver.capabilities:
        return PackageSet("", f"{version}, but lists no GPU")
    if driver.cuda[0] < 12:
        return PackageSet("", f"{version}; CUDA 12 is the least")
    least = min(driver.capabilities)
    if driver.cuda[0] >= 13 and least >= _CUDA_13_LEAST_CAPABILITY:
        return PackageSet("cuda13", version)
    older = f", and a GPU has capability {least[0]}.{least[1]}" if driver.cuda[0] >= 13 else ""
    return PackageSet("cuda12", version + older)


def ask_driver(library: ctypes.CDLL) -> Driver | None:
    """Ask the driver library, without creating a context; ``None`` if it returns an error."""
    version = ctypes.c_int(0)
    if library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    cuda = (version.value // 1000, version.value % 1000 // 10)
    count = ctypes.c_int(0)
    if library.cuInit(0) != 0 or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return Driver(cuda, ())
    return Driver(cuda, tuple(_capability(library, ordinal) for ordinal in range(count.value)))


def _capability(library: ctypes.CDLL, ordinal: int) -> tuple[int, int]:
    device, value = ctypes.c_int(0), ctypes.c_int(0)
    library.cuDeviceGet(ctypes.byref(device), ordinal)
    parts = []
    for attribute in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR):
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        parts.append(value.value)
    return parts[0], parts[1]
