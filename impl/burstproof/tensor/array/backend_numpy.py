"""Arrays on the CPU."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import OutOfMemoryError
from burstproof.tensor.array.checks import checked_shape
from burstproof.tensor.array.dtypes import BFLOAT16, checked_dtype, to_bfloat16
from burstproof.tensor.array.protocol import Array, Backend, Shape


class NumpyBackend(Backend):
    """NumPy arrays; all work is done when a call returns."""

    name = "numpy"
    device = None
    xp = np

    def empty(self, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Array:
        """An array of unspecified contents."""
        extents, kind = checked_shape(shape, "empty"), checked_dtype(dtype, "empty")
        try:
            return np.empty(extents, kind)
        except (MemoryError, ValueError) as error:
            raise OutOfMemoryError(
                f"the host cannot give {math.prod(extents) * kind.itemsize} bytes",
                where="tensor backend numpy",
                got=extents,
                cure="Take smaller arrays",
            ) from error

    def from_host(self, values: npt.ArrayLike, dtype: npt.DTypeLike | None = None) -> Array:
        """A contiguous copy of ``values``."""
        return host_array(values, dtype).copy(order="C")

    def to_host(self, array: Array) -> npt.NDArray[Any]:
        """A copy."""
        return np.array(array, order="C")

    def use(self) -> AbstractContextManager[None]:
        """Nothing to make current."""
        return nullcontext()

    def synchronize(self) -> None:
        """Nothing is ever queued."""


def host_array(values: npt.ArrayLike, dtype: npt.DTypeLike | None) -> npt.NDArray[Any]:
    """Host values as a contiguous NumPy array of ``dtype`` (default: their own); copies only to convert.

    Real values that are asked for as bfloat16 are rounded; uint16 values are taken as bit patterns.

    Raises
    ------
    ArrayError
        An element type that no operation knows.
    """
    array = np.asarray(values)
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    if dtype is None:
        kind = checked_dtype(array.dtype, "from_host")
    else:
        kind = checked_dtype(dtype, "from_host")
        if kind == BFLOAT16 and array.dtype != BFLOAT16:
            return to_bfloat16(array)
    return np.ascontiguousarray(array, dtype=kind).reshape(array.shape)
