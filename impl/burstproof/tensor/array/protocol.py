"""What a tensor operation asks of the device where its arrays live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.tensor.array.dtypes import BFLOAT16

Array = Any
"""A ``numpy.ndarray`` or a ``cupy.ndarray``; their common parent has no type."""

Shape = int | Sequence[int]

_BFLOAT16_ONE = 0x3F80
"""Bit pattern of 1.0."""


class Backend(ABC):
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

    name: str
    device: int | None
    xp: ModuleType

    @abstractmethod
    def empty(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of unspecified contents, C-contiguous, on this device.

        Raises
        ------
        ArrayError
            A negative extent, or a dtype that is not in ``dtypes.DTYPES``; so for all constructors.
        OutOfMemoryError
            The memory does not suffice; what the pool held unused was given back before.
        """

    def zeros(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of zeros."""
        return self._filled(0, shape, dtype)

    def ones(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of ones (of bfloat16 ones where the dtype says so)."""
        return self._filled(1, shape, dtype)

    def _filled(self, value: int, shape: Shape, dtype: npt.DTypeLike) -> Array:
        array = self.empty(shape, dtype)
        with self.use():
            array.fill(_BFLOAT16_ONE if value and array.dtype == BFLOAT16 else value)
        return array

    @abstractmethod
    def from_host(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
        """A contiguous copy of host values on this device, converted to ``dtype`` if given; no per-element work."""

    @abstractmethod
    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """The values as a NumPy array that shares no memory with ``array``; waits for the work that makes them."""

    @abstractmethod
    def use(self) -> AbstractContextManager[None]:
        """Make the device current inside a ``with`` block."""

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until the device has done all queued work."""
