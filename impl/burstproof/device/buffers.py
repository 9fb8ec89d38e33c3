"""Typed, shaped memory on a device: allocate, upload, download, and exchange with other libraries without a copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.cupy_door import cupy_or_error, device_refused
from burstproof.errors import InputError, OutOfMemoryError


@dataclass(frozen=True, eq=False)
class Buffer:
    """A contiguous array on one device, accepted wherever a kernel declares an array.

    Attributes
    ----------
    array : cupy.ndarray
        The memory in C order; CuPy's pool takes it back with the last reference.
    """

    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return tuple(self.array.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of an element."""
        found: np.dtype[Any] = self.array.dtype
        return found

    @property
    def device_id(self) -> int:
        """Device that holds it."""
        return int(self.array.data.device_id)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.array.nbytes)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        found: dict[str, Any] = self.array.__cuda_array_interface__
        return found

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, index = self.array.__dlpack_device__()
        return int(kind), int(index)

    def upload(self, host: npt.ArrayLike, stream: Any = None) -> None:
        """Copy ``host`` here; shape and dtype must be those of the buffer.

        Parameters
        ----------
        host : array_like
        stream : cupy.cuda.Stream, optional
            Queue of the copy; from page-locked memory it does not wait.

        Raises
        ------
        InputError
            Another shape or dtype.
        """
        source = np.asarray(host)
        self._check("upload", source)
        with cupy_or_error().cuda.Device(self.device_id):
            self.array.set(np.ascontiguousarray(source), stream=stream)

    def download(self, host: npt.NDArray[Any] | None = None, stream: Any = None) -> npt.NDArray[Any]:
        """The content as a NumPy array.

        Parameters
        ----------
        host : ndarray, optional
            Filled and returned; of the buffer's shape and dtype, contiguous. A new array by default.
        stream : cupy.cuda.Stream, optional
            Queue of the copy. With ``host`` in page-locked memory the caller synchronises it.

        Raises
        ------
        InputError
            ``host`` does not fit.
        """
        if host is not None:
            self._check("download", host)
            if not host.flags.c_contiguous:
                raise InputError("an array that is not contiguous in C order", where="Buffer.download")
        with cupy_or_error().cuda.Device(self.device_id):
            found: npt.NDArray[Any] = self.array.get(stream=stream, out=host, blocking=host is None)
        return found

    def _check(self, action: str, host: npt.NDArray[Any]) -> None:
        if host.shape != self.shape or host.dtype != self.dtype:
            raise InputError(
                "the array on the host is not like the buffer",
                where=f"Buffer.{action}",
                got=f"{host.dtype} {host.shape}",
                allowed=f"{self.dtype} {self.shape}",
                cure="Convert it on the host first, or allocate another buffer",
            )


def allocate(shape: int | tuple[int, ...], dtype: npt.DTypeLike, device_id: int = 0) -> Buffer:
    """A zeroed buffer.

    Parameters
    ----------
    shape : int or tuple of int
        A dimension may be zero.
    dtype : dtype
        Boolean, integer, floating or complex; bfloat16 where ``ml_dtypes`` is installed.
    device_id : int

    Raises
    ------
    InputError
        A negative size, or a dtype that no kernel has.
    OutOfMemoryError
        The device cannot give that much.
    BackendUnavailableError
        No driver, or no such device.
    """
    cupy = cupy_or_error()
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if min(sizes, default=0) < 0:
        raise InputError("a size below zero", where="kernels.allocate", got=shape)
    kind = np.dtype(dtype)
    if kind.kind not in "biufc" and kind.name != "bfloat16":
        raise InputError("a dtype that no kernel takes", where="kernels.allocate", got=str(kind))
    try:
        with cupy.cuda.Device(device_id):
            return Buffer(cupy.zeros(sizes, kind))
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise device_refused(device_id, error) from error
    except cupy.cuda.memory.OutOfMemoryError as error:
        cupy.get_default_memory_pool().free_all_blocks()
        free, total = cupy.cuda.Device(device_id).mem_info
        raise OutOfMemoryError(
            f"a buffer of {int(np.prod(sizes, dtype=object)) * kind.itemsize} bytes does not fit "
            f"({free} of {total} bytes free)",
            where=f"device {device_id}",
            got=f"{kind} {sizes}",
            cure="Free other arrays, or take a smaller one",
        ) from error


def upload(host: npt.ArrayLike, device_id: int = 0) -> Buffer:
    """A buffer with a copy of ``host``.

    Raises
    ------
    InputError, OutOfMemoryError, BackendUnavailableError
        As ``allocate``.
    """
    source = np.asarray(host)
    buffer = allocate(source.shape, source.dtype, device_id)
    buffer.upload(source)
    return buffer


def adopt(other: Any) -> Buffer:
    """A buffer on the memory of another library's array, without a copy.

    Parameters
    ----------
    other : object
        With ``__cuda_array_interface__`` or ``__dlpack__``, contiguous in C order, on a device.

    Raises
    ------
    InputError
        Memory of the host, an array that is not contiguous, or an object of another kind.
    """
    cupy = cupy_or_error()
    if isinstance(other, Buffer):
        return other
    if hasattr(other, "__cuda_array_interface__"):
        array = cupy.asarray(other)
    elif hasattr(other, "__dlpack__") and other.__dlpack_device__()[0] == _DLPACK_CUDA:
        array = cupy.from_dlpack(other)
    else:
        raise InputError(
            "not an array on a device",
            where="kernels.adopt",
            got=type(other).__name__,
            allowed="an object with __cuda_array_interface__, or with __dlpack__ on a CUDA device",
            cure="Copy it with kernels.upload",
        )
    if not array.flags.c_contiguous:
        raise InputError(
            "an array that is not contiguous in C order", where="kernels.adopt", got=f"strides {array.strides}"
        )
    return Buffer(array)


_DLPACK_CUDA = 2
"""kDLCUDA of the DLPack specification."""
