"""Arrays between backends, and host arrays passed through a device piece by piece, copies beside the work.

Arrays move as bytes, whatever their element type: nothing is converted element by element. ``device.memory.copy`` is
the copy between arrays that are there already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device import memory
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check_contiguous, checked_shape
from burstproof.tensor.array.dtypes import checked_dtype
from burstproof.tensor.array.protocol import Array, Backend, Shape

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
    if place.device is None:
        array: npt.NDArray[Any] = place.empty(shape, dtype)
        return array
    with place.use():
        return memory.pinned(checked_shape(shape, "pinned"), checked_dtype(dtype, "pinned"))


def to_device(array: Array, place: Backend) -> Array:
    """A copy of an array of any backend on ``place``: between two devices directly, without the host in between.

    Raises
    ------
    OutOfMemoryError
        No memory there.
    """
    if isinstance(array, np.ndarray):
        return place.from_host(array)
    if place.device is None:
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
    parts = [slice(start, start + piece) for start in range(0, len(source), piece)]
    if place.device is None:
        for part in parts:
            work(source[part], target[part])
        return
    with place.use():
        slots = []
        for _ in parts[:_SLOTS]:
            inlet = place.empty((piece, *source.shape[1:]), source.dtype)
            outlet = place.empty((piece, *target.shape[1:]), target.dtype)
            slots.append((place.xp.cuda.Stream(non_blocking=True), inlet, outlet))
        place.synchronize()
        for number, part in enumerate(parts):
            stream, inlet, outlet = slots[number % _SLOTS]
            count = len(source[part])
            with stream:
                memory.copy(inlet[:count], source[part], stream)
                work(inlet[:count], outlet[:count])
                memory.copy(target[part], outlet[:count], stream)
        for stream, _, _ in slots:
            stream.synchronize()
