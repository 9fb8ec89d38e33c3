"""The array protocol: what a tensor operation asks of the device where its arrays live."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = Any
"""A ``numpy.ndarray`` or a ``cupy.ndarray``; their common parent has no type."""

Shape = int | Sequence[int]


@dataclass(frozen=True)
class MemoryInfo:
    """Bytes of a device (or of the host's memory): free and in total."""

    free: int
    total: int


class Backend(Protocol):
    """Arrays on one device.

    Attributes
    ----------
    name : str
        ``"numpy"`` or ``"cupy"``.
    device : int or None
        CUDA device number; ``None`` on the CPU.
    xp : module
        ``numpy`` or ``cupy``: what both spell alike.
    """

    @property
    def name(self) -> str:
        """``"numpy"`` or ``"cupy"``."""
        ...

    @property
    def device(self) -> int | None:
        """CUDA device number; ``None`` on the CPU."""
        ...

    @property
    def xp(self) -> Any:
        """The module ``numpy`` or ``cupy``."""
        ...

    def empty(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of unspecified contents, C-contiguous, on this device.

        Raises
        ------
        ArrayError
            A negative extent, or a dtype that is not in ``dtypes.DTYPES``; so for all constructors.
        OutOfMemoryError
            The memory does not suffice; what the pool held unused was given back before.
        """
        ...

    def zeros(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of zeros."""
        ...

    def ones(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of ones (of bfloat16 ones where the dtype says so)."""
        ...

    def from_host(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
        """A contiguous copy of host values on this device, converted to ``dtype`` if given; no per-element work."""
        ...

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """The values as a NumPy array that shares no memory with ``array``; waits for the work that makes them."""
        ...

    def owns(self, array: Array) -> bool:
        """Whether ``array`` lives on this device."""
        ...

    def use(self) -> AbstractContextManager[Any]:
        """Make the device current inside a ``with`` block."""
        ...

    def synchronize(self) -> None:
        """Wait until the device has done all queued work."""
        ...

    def memory(self) -> MemoryInfo:
        """Memory of the device, as its driver says."""
        ...
