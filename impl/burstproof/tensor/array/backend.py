"""The backend of arrays: NumPy on the CPU, CuPy on a CUDA device.

Operations are functions of arrays; they take the backend from their arguments (``backend_of``). A backend is asked for
only where arrays are born: ``backend()`` gives the default device, ``backend("numpy")`` the CPU.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from burstproof.device.cupy_door import cupy_or_error, device_count
from burstproof.errors import ArrayError, BackendUnavailableError
from burstproof.tensor.array.backend_cupy import CupyBackend
from burstproof.tensor.array.backend_numpy import NumpyBackend
from burstproof.tensor.array.protocol import Array, Backend


def backends() -> tuple[str, ...]:
    """Names of the backends that work on this machine, the preferred one first."""
    return ("cupy", "numpy") if device_count() else ("numpy",)


def backend(name: str | None = None, device: int | None = None) -> Backend:
    """The backend called ``name``, on ``device``.

    Parameters
    ----------
    name : {"numpy", "cupy"}, optional
        By default CuPy where a CUDA device is found, else NumPy.
    device : int, optional
        CUDA device number; by default the device that had most free memory when first asked.

    Raises
    ------
    ArrayError
        An unknown name, or a device number together with NumPy.
    BackendUnavailableError
        CuPy or a driver is missing, or there is no such device.
    """
    chosen = name if name is not None else ("cupy" if device is not None else backends()[0])
    if chosen == "cupy":
        return _cupy_backend(default_device() if device is None else device)
    if chosen != "numpy":
        raise ArrayError("there is no such backend", where="backend", got=name, allowed="numpy, cupy")
    if device is not None:
        raise ArrayError("the CPU has no device number", where="backend", got=device, cure="Leave device out")
    return _numpy_backend()


def backend_of(*arrays: Array) -> Backend:
    """The one backend on which all ``arrays`` live.

    Raises
    ------
    ArrayError
        No array, an object that is no array, or arrays on different devices.
    """
    if not arrays:
        raise ArrayError("an operation needs at least one array", where="backend_of")
    places = [_place(array) for array in arrays]
    if any(place != places[0] for place in places):
        raise ArrayError(
            "the arrays live on different devices",
            where="backend_of",
            got=[_place_name(place) for place in places],
            cure="Move them to one device with from_host, or with transfers.to_device",
        )
    return _numpy_backend() if places[0] is None else _cupy_backend(places[0])


@lru_cache(maxsize=1)
def default_device() -> int:
    """The CUDA device with most free memory; decided once.

    Raises
    ------
    BackendUnavailableError
        There is no CUDA device.
    """
    count = device_count()
    if not count:
        raise BackendUnavailableError(
            "there is no CUDA device that CuPy can use",
            where="tensor backend cupy",
            cure='Install the extra cuda12 or cuda13 and a driver, or take backend("numpy")',
        )
    return max(range(count), key=lambda device: (_free_bytes(device), -device))


def _free_bytes(device: int) -> int:
    return int(cupy_or_error().cuda.Device(device).mem_info[0])


def _place(array: Array) -> int | None:
    if isinstance(array, np.ndarray):
        return None
    if type(array).__module__.partition(".")[0] == "cupy" and hasattr(array, "device"):
        return int(array.device.id)
    raise ArrayError(
        "an operation takes NumPy and CuPy arrays only",
        where="backend_of",
        got=type(array).__name__,
        cure="Make an array of it with backend().from_host",
    )


def _place_name(place: int | None) -> str:
    return "CPU" if place is None else f"CUDA device {place}"


@lru_cache(maxsize=1)
def _numpy_backend() -> Backend:
    return NumpyBackend()


@lru_cache(maxsize=64)
def _cupy_backend(device: int) -> Backend:
    return CupyBackend(device)
