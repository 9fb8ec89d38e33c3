"""Access to CuPy, with the package's own error if it is not installed."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

from burstproof.errors import BackendUnavailableError

_MULTIPROCESSOR_COUNT = 16
"""cudaDevAttrMultiProcessorCount."""


def cupy_or_error() -> ModuleType:
    """The module ``cupy``.

    Raises
    ------
    BackendUnavailableError
        It is not installed.
    """
    try:
        import cupy
    except ImportError as error:
        raise BackendUnavailableError(
            "the package CuPy is not installed",
            where="backend cuda",
            cure="In the folder of the clone: pip install '.[cuda12]' or '.[cuda13]', whichever the driver supports",
        ) from error
    return cupy  # type: ignore[no-any-return]


def device_count() -> int:
    """Number of CUDA devices that CuPy can use; 0 without CuPy or without a driver."""
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


def device_refused(device_id: int, error: Exception) -> BackendUnavailableError:
    """The error for a device that CUDA does not open."""
    return BackendUnavailableError(
        f"the device does not answer: {error}",
        where=f"device {device_id}",
        cure="Choose a device that exists, on a machine with an NVIDIA driver (burstproof info shows both)",
    )


@lru_cache(maxsize=64)
def multiprocessors(device_id: int) -> int:
    """Number of multiprocessors of a device."""
    return int(cupy_or_error().cuda.runtime.deviceGetAttribute(_MULTIPROCESSOR_COUNT, device_id))
