"""CuPy, or the package's own error that it is not installed."""

from __future__ import annotations

from typing import Any

from burstproof.errors import BackendUnavailableError


def cupy_or_error() -> Any:
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
            where="burstproof.device",
            cure="In the folder of the clone: pip install '.[cuda12]' or '.[cuda13]', whichever the driver supports",
        ) from error
    return cupy


def device_refused(device_id: int, error: Exception) -> BackendUnavailableError:
    """The error for a device that CUDA does not give."""
    return BackendUnavailableError(
        f"the device does not answer: {error}",
        where=f"device {device_id}",
        cure="Choose a device that exists, on a machine with an NVIDIA driver (burstproof info shows both)",
    )
