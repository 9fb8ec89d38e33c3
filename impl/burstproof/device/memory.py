"""Arrays on a CUDA device and in page-locked host memory: allocate, copy, exchange with other libraries, count.

Device arrays are CuPy arrays in CuPy's memory pool; kernels take them directly. Freed blocks stay in the pool and serve
later requests, so a program in its steady state makes no driver allocations (``observe`` counts them). Only an engine's
buffers lie elsewhere: in one arena (``protocol``), which is freed when the engine closes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from burstproof.device.cupy_door import cupy_or_error, device_refused
from burstproof.errors import ArrayError, InputError, OutOfMemoryError

if TYPE_CHECKING:
    from cupy import ndarray
    from cupy.cuda import Stream

_MAX_ELEMENTS = 2**62
_MEMCPY_DEFAULT = 4
"""cudaMemcpyDefault: the direction follows from the addresses."""

_DLPACK_CUDA = 2
"""kDLCUDA of the DLPack specification."""


class OnDevice:
    """A ``with`` block on a device. CuPy's out-of-memory error in it empties the pool and becomes our own error.

    Raises
    ------
    OutOfMemoryError
        The device has no memory for a request in the block.
    """

    __slots__ = ("_before", "_cupy", "_device_id", "_what")

    def __init__(self, device_id: int, what: str | tuple[int, ...] = "an operation") -> None:
        self._cupy = cupy_or_error()
        self._device_id, self._what = device_id, what
        self._before = device_id

    def __enter__(self) -> None:
        runtime = self._cupy.cuda.runtime
        self._before = runtime.getDevice()
        if self._before != self._device_id:
            runtime.setDevice(self._device_id)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before != self._device_id:
            self._cupy.cuda.runtime.setDevice(self._before)
        if kind is not None and issubclass(kind, self._cupy.cuda.memory.OutOfMemoryError):
            with self._cupy.cuda.Device(self._device_id):
                self._cupy.get_default_memory_pool().free_all_blocks()
            raise _exhausted(self._device_id, self._what) from error


def _exhausted(device_id: int, what: str | tuple[int, ...]) -> OutOfMemoryError:
    free, total = cupy_or_error().cuda.Device(device_id).mem_info
    return OutOfMemoryError(
        f"the device cannot give memory for {what if isinstance(what, str) else f'an array of shape {what}'}",
        where=f"CUDA device {device_id}",
        got=f"{free} of {total} bytes free",
        cure="Free arrays, take smaller ones, or split them over devices (tensor.ops.multi_gpu)",
    )


def allocate(shape: tuple[int, ...], dtype: npt.DTypeLike, device_id: int = 0) -> ndarray:
    """An uninitialised array in C order.

    Parameters
    ----------
    shape : tuple of int
        A dimension may be zero.
    dtype : dtype
        Boolean, integer, floating or complex; bfloat16 if ``ml_dtypes`` is installed.
    device_id : int

    Raises
    ------
    InputError
        A negative size, or a dtype that no kernel takes.
    OutOfMemoryError
        The device does not have that much, even after the pool's unused blocks were freed.
    BackendUnavailableError
        No driver, or no such device.
    """
    cupy = cupy_or_error()
    if min(shape, default=0) < 0:
        raise InputError("a size below zero", where="device.memory.allocate", got=shape)
    kind = np.dtype(dtype)
    if kind.kind not in "biufc" and kind.name != "bfloat16":
        raise InputError("a dtype that no kernel takes", where="device.memory.allocate", got=str(kind))
    try:
        if math.prod(shape) > _MAX_ELEMENTS:
            raise _exhausted(device_id, shape)
        with OnDevice(device_id, shape):
            return cupy.empty(shape, kind)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise device_refused(device_id, error) from error


def upload(host: npt.ArrayLike, device_id: int = 0) -> ndarray:
    """A copy of ``host`` on a device.

    Raises
    ------
    InputError, OutOfMemoryError, BackendUnavailableError
        As ``allocate``.
    """
    source = np.asarray(host)
    array = allocate(source.shape, source.dtype, device_id)
    with OnDevice(device_id):
        array.set(np.ascontiguousarray(source).reshape(source.shape))
    return array


def download(array: ndarray) -> npt.NDArray[Any]:
    """Copy a device array to a new NumPy array in C order; waits for the work that computes it."""
    with OnDevice(array.device.id):
        host: npt.NDArray[Any] = array.get(order="C")
    return host


def copy(target: ndarray, source: ndarray, stream: Stream | None = None) -> None:
    """Queue a copy between host and device, in either direction; copy at once between two host arrays.

    Parameters
    ----------
    target, source : array
        Of one shape and dtype, contiguous, at least one of them a NumPy array. With page-locked memory the copy is
        asynchronous, and the host must not touch the array until the stream has done it; otherwise the call may block.
    stream : cupy.cuda.Stream, optional
        By default the current stream of the device.

    Raises
    ------
    ArrayError
        Different shapes or dtypes, an array that is not contiguous, or two device arrays.
    """
    for name, array in (("target", target), ("source", source)):
        if not array.flags.c_contiguous:
            raise _misfit(f"the {name} is not contiguous in C order", f"strides {array.strides}")
    if target.shape != source.shape or target.dtype != source.dtype:
        found = f"{source.dtype} {source.shape} to {target.dtype} {target.shape}"
        raise _misfit("the arrays differ in shape or element type", found)
    on_host = isinstance(target, np.ndarray), isinstance(source, np.ndarray)
    if not any(on_host):
        raise _misfit("both arrays are on devices", f"devices {source.device.id}, {target.device.id}")
    if all(on_host):
        target[...] = source
    elif target.nbytes:
        device_array = source if on_host[0] else target
        with OnDevice(device_array.device.id):
            cuda = cupy_or_error().cuda
            queue = cuda.get_current_stream() if stream is None else stream
            cuda.runtime.memcpyAsync(_address(target), _address(source), target.nbytes, _MEMCPY_DEFAULT, queue.ptr)


def _address(array: Any) -> int:
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def _misfit(problem: str, got: str) -> ArrayError:
    return ArrayError(problem, where="device.memory.copy", got=got, cure="Convert or copy one of them first")


def pinned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """A page-locked host array, copied at the link's full rate; it returns to CuPy's pool with its last reference.

    Raises
    ------
    OutOfMemoryError
        The host cannot lock that much memory.
    """
    cupy, kind = cupy_or_error(), np.dtype(dtype)
    count = math.prod(shape)
    try:
        memory = cupy.cuda.alloc_pinned_memory(max(1, count * kind.itemsize))
    except (cupy.cuda.runtime.CUDARuntimeError, OverflowError, MemoryError) as error:
        raise OutOfMemoryError(
            f"the host cannot lock {count * kind.itemsize} bytes",
            where="device.memory.pinned",
            got=str(error),
            cure="Move the data in pieces, or raise the limit of locked memory",
        ) from error
    return np.frombuffer(memory, kind, count).reshape(shape)


def adopt(other: object) -> ndarray:
    """Another library's device array as a CuPy array on the same memory.

    Parameters
    ----------
    other : object
        With ``__cuda_array_interface__`` or ``__dlpack__``, contiguous in C order, on a device.

    Raises
    ------
    InputError
        Host memory, an array that is not contiguous, or another kind of object.
    """
    cupy = cupy_or_error()
    if isinstance(other, cupy.ndarray):
        array = other
    elif hasattr(other, "__cuda_array_interface__"):
        array = cupy.asarray(other)
    elif hasattr(other, "__dlpack_device__") and other.__dlpack_device__()[0] == _DLPACK_CUDA:
        array = cupy.from_dlpack(other)
    else:
        raise InputError(
            "not an array on a device",
            where="device.memory.adopt",
            got=type(other).__name__,
            allowed="an object with __cuda_array_interface__, or with __dlpack__ on a CUDA device",
            cure="Copy it with burstproof.device.memory.upload",
        )
    if not array.flags.c_contiguous:
        raise InputError(
            "an array that is not contiguous in C order", where="device.memory.adopt", got=f"strides {array.strides}"
        )
    return array


@dataclass
class PoolStatistics:
    """One thread's requests for memory of a device.

    Attributes
    ----------
    requests, requested_bytes : int
        Blocks requested for arrays, with sizes as rounded by the pool.
    driver_allocations, driver_bytes : int
        Requests that the pool passed on to the driver.
    """

    requests: int = 0
    requested_bytes: int = 0
    driver_allocations: int = 0
    driver_bytes: int = 0

    @property
    def served_from_pool(self) -> float:
        """Share of the requests that did not reach the driver; 1 if there were none."""
        return 1 - self.driver_allocations / self.requests if self.requests else 1.0


@contextmanager
def observe(device_id: int) -> Iterator[PoolStatistics]:
    """Count this thread's requests for memory of a device in a ``with`` block; costs about a microsecond a request.

    Requests count for the current device. The ``device_id`` that CuPy 14 passes to hooks is no use here: it is the
    device on which CuPy created all its pools.
    """
    from cupy.cuda import memory_hook, runtime

    counts = PoolStatistics()

    class Hook(memory_hook.MemoryHook):  # type: ignore[misc]
        """CuPy calls these around its requests."""

        name = f"burstproof-{id(counts)}"

        def malloc_preprocess(self, **request: int) -> None:
            """An array asks the pool."""
            if runtime.getDevice() == device_id:
                counts.requests += 1
                counts.requested_bytes += request["mem_size"]

        def alloc_preprocess(self, **request: int) -> None:
            """The pool asks the driver."""
            if runtime.getDevice() == device_id:
                counts.driver_allocations += 1
                counts.driver_bytes += request["mem_size"]

    with Hook():
        yield counts
