"""Arrays between host and devices: page-locked host memory, copies on streams, work overlapped with both copies.

Arrays move as bytes, whatever their element type: nothing is converted element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import ArrayError, OutOfMemoryError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check_contiguous, check_same_dtype, check_shape, checked_shape
from burstproof.tensor.array.dtypes import checked_dtype
from burstproof.tensor.array.protocol import Array, Backend, Shape

_TO_DEVICE, _TO_HOST = 1, 2
_SLOTS = 3

Work = Callable[[Array, Array], None]
"""Computes its second argument from its first, piece by piece; queues on the current stream."""


def pinned(place: Backend, shape: Shape, dtype: npt.DTypeLike = np.float32) -> npt.NDArray[Any]:
    """A host array in page-locked memory, which a device copies at the link's rate; plain memory on the CPU.

    Raises
    ------
    ArrayError
        A shape or dtype that no backend makes.
    OutOfMemoryError
        The host cannot lock that much memory.
    """
    if place.name == "numpy":
        array: npt.NDArray[Any] = place.empty(shape, dtype)
        return array
    extents, kind = checked_shape(shape, "pinned"), checked_dtype(dtype, "pinned")
    count = math.prod(extents)
    with place.use():
        try:
            memory = place.xp.cuda.alloc_pinned_memory(max(1, count * kind.itemsize))
        except (place.xp.cuda.runtime.CUDARuntimeError, OverflowError, MemoryError) as error:
            raise OutOfMemoryError(
                f"the host cannot lock {count * kind.itemsize} bytes",
                where="pinned",
                got=str(error),
                cure="Move the data in pieces (transfers.stream_through)",
            ) from error
    return np.frombuffer(memory, kind, count).reshape(extents)


def copy_to_device(target: Array, source: npt.NDArray[Any], stream: Any = None) -> None:
    """Queue a copy of a host array into a device array of the same shape and dtype.

    Parameters
    ----------
    target : array
        On a device (on the CPU: a plain copy).
    source : ndarray
        Contiguous. In pinned memory the copy runs beside the host, which must leave the array alone until the stream
        has passed; otherwise the call may return late.
    stream : cupy.cuda.Stream, optional
        By default the current stream of the device.

    Raises
    ------
    ArrayError
        Shapes or dtypes that differ, or an array that is not contiguous.
    """
    _check_pair(target, source, "copy_to_device")
    _copy(target, source, stream, _TO_DEVICE)


def copy_to_host(target: npt.NDArray[Any], source: Array, stream: Any = None) -> None:
    """Queue a copy of a device array into a host array; see ``copy_to_device``. Synchronise before reading it.

    Raises
    ------
    ArrayError
        Shapes or dtypes that differ, or an array that is not contiguous.
    """
    _check_pair(target, source, "copy_to_host")
    _copy(target, source, stream, _TO_HOST)


def to_device(array: Array, place: Backend) -> Array:
    """A copy of an array of any backend on ``place``: between two devices directly, without the host in between.

    Raises
    ------
    OutOfMemoryError
        No memory there.
    """
    if isinstance(array, np.ndarray):
        return place.from_host(array)
    if place.name == "numpy":
        return backend_of(array).to_host(array)
    result = place.empty(array.shape, array.dtype)
    backend_of(array).synchronize()
    with place.use():
        result[...] = array
    return result


def stream_through(
    source: npt.NDArray[Any], target: npt.NDArray[Any], work: Work, place: Backend, piece: int = 1 << 22
) -> None:
    """Pass a host array through a device piece by piece: copy in, compute and copy out overlap.

    Three streams take the pieces in turn, each with buffers of its own, so that one piece is copied in while another
    is worked on and a third is copied out.

    Parameters
    ----------
    source, target : ndarray, (items, ...)
        Host arrays with equal first extent, contiguous; pinned, or nothing overlaps.
    work : callable
        ``work(piece_in, piece_out)`` on device arrays of up to ``piece`` items.
    place : Backend
        Where to compute.
    piece : int
        Items per piece.

    Raises
    ------
    ArrayError
        Arrays without a common first extent or not contiguous, or a piece below 1.
    OutOfMemoryError
        No memory for three pieces on the device.
    """
    if not source.ndim or not target.ndim or len(source) != len(target) or piece < 1:
        raise ArrayError(
            "the first extents differ, or a piece is empty",
            where="stream_through",
            got=(source.shape, target.shape, piece),
        )
    check_contiguous(source, "stream_through, source")
    check_contiguous(target, "stream_through, target")
    if place.name == "numpy":
        for start in range(0, len(source), piece):
            work(source[start : start + piece], target[start : start + piece])
        return
    _stream_pieces(source, target, work, place, piece)


def _stream_pieces(source: npt.NDArray[Any], target: npt.NDArray[Any], work: Work, place: Backend, piece: int) -> None:
    with place.use():
        slots = []
        for _ in range(min(_SLOTS, -(-len(source) // piece))):
            stream = place.xp.cuda.Stream(non_blocking=True)
            inlet = place.empty((piece, *source.shape[1:]), source.dtype)
            outlet = place.empty((piece, *target.shape[1:]), target.dtype)
            slots.append((stream, inlet, outlet))
        place.synchronize()
        for number, start in enumerate(range(0, len(source), piece)):
            stream, inlet, outlet = slots[number % len(slots)]
            count = min(piece, len(source) - start)
            with stream:
                _copy(inlet[:count], source[start : start + count], stream, _TO_DEVICE)
                work(inlet[:count], outlet[:count])
                _copy(target[start : start + count], outlet[:count], stream, _TO_HOST)
        for stream, _, _ in slots:
            stream.synchronize()


def _check_pair(target: Array, source: Array, where: str) -> None:
    check_same_dtype(target, source, where)
    check_shape(source, tuple(target.shape), where)
    check_contiguous(target, where)
    check_contiguous(source, where)


def _copy(target: Array, source: Array, stream: Any, direction: int) -> None:
    there, host = (target, source) if direction == _TO_DEVICE else (source, target)
    if isinstance(there, np.ndarray):
        target[...] = source
        return
    if not there.nbytes:
        return
    place = backend_of(there)
    with place.use():
        queue = place.xp.cuda.get_current_stream() if stream is None else stream
        pointers = (there.data.ptr, host.ctypes.data) if direction == _TO_DEVICE else (host.ctypes.data, there.data.ptr)
        place.xp.cuda.runtime.memcpyAsync(*pointers, there.nbytes, direction, queue.ptr)
