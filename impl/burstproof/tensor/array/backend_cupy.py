"""Arrays on one CUDA device, through CuPy."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.cupy_door import cupy_or_error, device_count
from burstproof.device.memory import OnDevice, allocate, download, upload
from burstproof.errors import ArrayError, BackendUnavailableError
from burstproof.tensor.array.backend_numpy import host_array
from burstproof.tensor.array.checks import checked_shape
from burstproof.tensor.array.dtypes import checked_dtype
from burstproof.tensor.array.protocol import Array, Backend, Shape


class CupyBackend(Backend):
    """CuPy arrays on the device ``device``; work is queued on CuPy's current stream.

    Raises
    ------
    BackendUnavailableError
        CuPy or a driver is missing, or there is no such device.
    """

    name = "cupy"

    def __init__(self, device: int) -> None:
        count = device_count()
        if not 0 <= device < count:
            raise BackendUnavailableError(
                "there is no such CUDA device",
                where="tensor backend cupy",
                got=device,
                allowed=f"0...{count - 1}" if count else "none",
                cure='Choose another device, or take backend("numpy")',
            )
        self.xp = cupy_or_error()
        self.device: int = device
        self._device = self.xp.cuda.Device(device)

    def empty(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of unspecified contents."""
        return allocate(checked_shape(shape, "empty"), checked_dtype(dtype, "empty"), self.device)

    def from_host(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
        """A contiguous copy of host values."""
        return upload(host_array(values, dtype), self.device)

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """The values on the host."""
        if not isinstance(array, self.xp.ndarray) or array.device.id != self.device:
            raise ArrayError(
                "the array lives elsewhere", where=f"to_host of CUDA device {self.device}", got=type(array)
            )
        return download(array)

    def use(self) -> AbstractContextManager[None]:
        """Make the device current; running out of memory inside becomes the package's error, and memory is returned."""
        return OnDevice(self.device)

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        self._device.synchronize()
