"""Sum over devices by NCCL, through CuPy's binding."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from burstproof.device.nccl_library import nccl_library
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.dtypes import FLOAT32
from burstproof.tensor.array.protocol import Array

_FLOAT32, _FLOAT64 = 7, 8
"""ncclDataType_t."""

_SUM = 0


@lru_cache(maxsize=1)
def is_installed() -> bool:
    """Whether CuPy's binding finds the NCCL library, in a wheel or on the system."""
    return nccl_library() is not None


@lru_cache(maxsize=8)
def _communicators(devices: tuple[int, ...]) -> tuple[Any, ...]:
    return tuple(nccl_library().NcclCommunicator.initAll(list(devices)))


def all_reduce(parts: tuple[Array, ...]) -> None:
    """Queue the sum of all parts into each, on every device's current stream; checked by the caller."""
    nccl = nccl_library()
    communicators = _communicators(tuple(part.device.id for part in parts))
    kind = _FLOAT32 if parts[0].dtype == FLOAT32 else _FLOAT64
    nccl.groupStart()
    for part, communicator in zip(parts, communicators, strict=True):
        place = backend_of(part)
        with place.use():
            stream = place.xp.cuda.get_current_stream()
            communicator.allReduce(part.data.ptr, part.data.ptr, part.size, kind, _SUM, stream.ptr)
    nccl.groupEnd()
