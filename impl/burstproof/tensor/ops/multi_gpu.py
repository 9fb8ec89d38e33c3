"""Data split over devices: the operations of this package on each part, and the reduction that makes them one result.

``split`` cuts an array along its first axis, ``apply`` runs a function on every part where it lies, ``all_reduce``
leaves the sum of all parts on every device: the way data-parallel training adds gradients up. On the CPU the parts are
NumPy arrays and the same functions run one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from burstproof.device.cupy_door import device_count
from burstproof.device.nccl_library import nccl_library
from burstproof.errors import ArrayError, BackendUnavailableError
from burstproof.tensor.array.backend import backend, backend_of
from burstproof.tensor.array.checks import check, check_alike
from burstproof.tensor.array.dtypes import FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.ops import reduction_peer

if TYPE_CHECKING:
    from cupy.cuda.nccl import NcclCommunicator

Method = Literal["nccl", "peer"]


@dataclass(frozen=True, eq=False)
class Split:
    """An array in parts along its first axis, each on a device of its own (or all on the CPU)."""

    parts: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the whole."""
        return (sum(part.shape[0] for part in self.parts), *self.parts[0].shape[1:])


def all_devices() -> tuple[Backend, ...]:
    """Backends of all CUDA devices; of the CPU alone where there is none."""
    return tuple(backend("cupy", device) for device in range(device_count())) or (backend("numpy"),)


def split(values: npt.NDArray[Any], places: Sequence[Backend]) -> Split:
    """Cut a host array along its first axis into one part per place, as equal as can be, the first ones longer.

    Raises
    ------
    ArrayError
        No place, or an array without axes.
    OutOfMemoryError
        No memory for a part.
    """
    if not places:
        raise ArrayError("there is no device to split over", where="split")
    check(values, "split", axes=1)
    pieces = np.array_split(values, len(places))
    return Split(tuple(place.from_host(piece) for place, piece in zip(places, pieces, strict=True)))


def replicate(values: npt.NDArray[Any], places: Sequence[Backend]) -> tuple[Array, ...]:
    """One copy of a host array on every place."""
    return tuple(place.from_host(values) for place in places)


def gather(whole: Split) -> npt.NDArray[Any]:
    """The parts joined again on the host."""
    return np.concatenate([backend_of(part).to_host(part) for part in whole.parts])


def apply(function: Callable[..., Array], *arguments: Split | Sequence[Array]) -> tuple[Array, ...]:
    """``function`` of the first parts of all arguments on the first device, and so on; devices work side by side.

    Parameters
    ----------
    function : callable
        Of arrays on one device, such as ``linalg.matmul``; queues its work and returns.
    *arguments : Split or sequence of array
        With equally many parts.

    Raises
    ------
    ArrayError
        Different numbers of parts, or parts that do not lie together.
    """
    columns = [argument.parts if isinstance(argument, Split) else tuple(argument) for argument in arguments]
    if not columns or any(len(column) != len(columns[0]) for column in columns):
        raise ArrayError("arguments with different numbers of parts", where="apply", got=[len(c) for c in columns])
    results = []
    for parts in zip(*columns, strict=True):
        with backend_of(*parts).use():
            results.append(function(*parts))
    return tuple(results)


def all_reduce(parts: Sequence[Array], method: Method | None = None) -> None:
    """Replace every part by the sum of all parts, in place.

    Parameters
    ----------
    parts : sequence of array
        Equal shapes, float32 or float64, contiguous; one per device, or all on the CPU.
    method : {"nccl", "peer"}, optional
        NCCL, or peer copies and sums in ascending order of the parts, whose results are the same on every device and
        in every run. By default NCCL where it is installed.

    Raises
    ------
    ArrayError
        Parts that do not match, or two on one device.
    BackendUnavailableError
        NCCL was asked for and is not installed.
    """
    _check_parts(parts)
    if len(parts) < 2 or not parts[0].size:
        return
    if isinstance(parts[0], np.ndarray):
        total = sum(parts[1:], start=parts[0])
        for part in parts:
            part[...] = total
        return
    nccl = nccl_library()
    if method == "peer" or (method is None and nccl is None):
        reduction_peer.all_reduce(tuple(parts))
    elif nccl is not None:
        _reduce_by_nccl(nccl, parts)
    else:
        raise BackendUnavailableError(
            "NCCL is not installed", where="all_reduce", cure='Install the wheel nvidia-nccl, or take method="peer"'
        )


@lru_cache(maxsize=8)
def _communicators(devices: tuple[int, ...]) -> tuple[NcclCommunicator, ...]:
    return tuple(nccl_library().NcclCommunicator.initAll(list(devices)))


def _reduce_by_nccl(nccl: ModuleType, parts: Sequence[Array]) -> None:
    """Queue the sum of all parts into each, on every device's current stream."""
    communicators = _communicators(tuple(part.device.id for part in parts))
    kind = nccl.NCCL_FLOAT32 if parts[0].dtype == FLOAT32 else nccl.NCCL_FLOAT64
    nccl.groupStart()
    for part, communicator in zip(parts, communicators, strict=True):
        place = backend_of(part)
        with place.use():
            stream = place.xp.cuda.get_current_stream()
            communicator.allReduce(part.data.ptr, part.data.ptr, part.size, kind, nccl.NCCL_SUM, stream.ptr)
    nccl.groupEnd()


def _check_parts(parts: Sequence[Array]) -> None:
    if not parts:
        raise ArrayError("there is nothing to reduce", where="all_reduce")
    for part in parts:
        check(part, "all_reduce", dtypes=(FLOAT32, FLOAT64))
        check_alike(part, parts[0], "all_reduce")
    devices = [backend_of(part).device for part in parts]
    on_cpu = all(device is None for device in devices)
    if not on_cpu and (None in devices or len(set(devices)) < len(devices)):
        raise ArrayError("parts must lie on different devices, or all on the CPU", where="all_reduce", got=devices)
