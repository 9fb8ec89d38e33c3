"""The array protocol on one CUDA device, through CuPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import ArrayError, BackendUnavailableError, OutOfMemoryError
from burstproof.tensor.array.backend_numpy import BFLOAT16_ONE, host_array
from burstproof.tensor.array.checks import checked_shape
from burstproof.tensor.array.dtypes import BFLOAT16, checked_dtype
from burstproof.tensor.array.protocol import Array, MemoryInfo, Shape

_MAX_ELEMENTS = 2**62


def device_count() -> int:
    """Number of CUDA devices that CuPy can use here; 0 without CuPy or a driver."""
    try:
        import cupy
    except ImportError:
        return 0
    try:
        return int(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return 0


class CupyBackend:
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
        import cupy

        self.device: int | None = device
        self.xp: Any = cupy
        self._device = cupy.cuda.Device(device)

    def empty(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of unspecified contents."""
        return self._allocated(self.xp.empty, shape, dtype)

    def zeros(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of zeros."""
        return self._allocated(self.xp.zeros, shape, dtype)

    def ones(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of ones."""
        array = self.empty(shape, dtype)
        with self._device:
            array.fill(BFLOAT16_ONE if array.dtype == BFLOAT16 else 1)
        return array

    def from_host(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
        """A contiguous copy of host values."""
        host = host_array(values, dtype)
        array = self.empty(host.shape, host.dtype)
        with self._device:
            array.set(host)
        return array

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """The values on the host."""
        if not self.owns(array):
            raise ArrayError(
                "the array lives elsewhere", where=f"to_host of CUDA device {self.device}", got=type(array)
            )
        with self._device:
            host: npt.NDArray[Any] = array.get(order="C")
        return host

    def owns(self, array: Array) -> bool:
        """Whether ``array`` lives on this device."""
        return isinstance(array, self.xp.ndarray) and array.device.id == self.device

    def use(self) -> AbstractContextManager[Any]:
        """Make the device current; running out of memory inside becomes the package's error, and memory is returned."""
        return _Guard(self, "an operation")

    def synchronize(self) -> None:
        """Wait for all streams of the device."""
        self._device.synchronize()

    def memory(self) -> MemoryInfo:
        """Memory of the device, as the driver says (what CuPy's pool holds unused counts as taken)."""
        free, total = self._device.mem_info
        return MemoryInfo(int(free), int(total))

    def _allocated(self, make: Callable[..., Array], shape: Shape, dtype: npt.DTypeLike) -> Array:
        extents, kind = checked_shape(shape, make.__name__), checked_dtype(dtype, make.__name__)
        if math.prod(extents) > _MAX_ELEMENTS:
            raise self.exhausted(f"an array of shape {extents}")
        with _Guard(self, "an array of shape", extents):
            return make(extents, kind)

    def exhausted(self, what: str) -> OutOfMemoryError:
        """The error for memory that the device cannot give for ``what``."""
        return OutOfMemoryError(
            f"the device cannot give memory for {what}",
            where=f"CUDA device {self.device}",
            got=f"{self.memory().free} bytes free",
            cure="Free arrays, take smaller ones, or split them over devices (tensor.multi_gpu)",
        )


class _Guard:
    """Makes a device current; running out of memory inside returns what the pool holds and is the package's error."""

    __slots__ = ("_backend", "_before", "_extents", "_runtime", "_what")

    def __init__(self, backend: CupyBackend, what: str, extents: tuple[int, ...] | None = None) -> None:
        self._backend, self._what, self._extents = backend, what, extents
        self._runtime = backend.xp.cuda.runtime
        self._before: int | None = None

    def __enter__(self) -> None:
        before = self._runtime.getDevice()
        self._before = before
        if before != self._backend.device:
            self._runtime.setDevice(self._backend.device)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before != self._backend.device:
            self._runtime.setDevice(self._before)
        if kind is not None and issubclass(kind, self._backend.xp.cuda.memory.OutOfMemoryError):
            with self._backend.xp.cuda.Device(self._backend.device):
                self._backend.xp.get_default_memory_pool().free_all_blocks()
            shape = "" if self._extents is None else f" {self._extents}"
            raise self._backend.exhausted(f"{self._what}{shape}") from error
