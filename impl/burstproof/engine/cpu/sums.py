"""The code of a sum: its sign bit is inverted, so that 0 means that nothing has arrived.

A neuron whose contributions cancel to 0 is a candidate, a neuron without contributions is not (SEMANTICS section 1).
The scale keeps sums within 2^31 - 1 or 2^62 of 0 (section 7), so no sum is the least number of its type, which would
have the code 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array
from burstproof.engine.rules import Compiled


def encoded(sums: npt.NDArray[np.int64], arrived: npt.NDArray[np.bool_], dtype: np.dtype[Any]) -> Array:
    """Codes of ``sums``, any shape, as ``dtype``, int32 or int64; ``arrived``: where anything has arrived."""
    return np.where(arrived, sums.astype(dtype) ^ np.iinfo(dtype).min, dtype.type(0))


def decoded(codes: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """The sums, 0 where nothing has arrived, and a mask of where anything has."""
    arrived = codes != 0
    return np.where(arrived, codes ^ np.iinfo(codes.dtype).min, 0).astype(np.int64), arrived


def make_add() -> Compiled:
    """``add``: add ``amount`` to one coded sum.

    Written as arithmetic, because the compiler would turn a condition into an unpredictable branch.
    """

    @inner_compiler
    def add(sums: Array, place: np.uint64, amount: int) -> None:
        code = sums[place]
        sign_if_zero = (code - 1) & ~code & np.iinfo(sums.dtype).min
        sums[place] = (code | sign_if_zero) + amount

    return add


def make_read() -> Compiled:
    """``read``: decode one sum, at a neuron where something has arrived."""

    @inner_compiler
    def read(sums: Array, place: np.uint64) -> int:
        amount: int = sums[place] ^ np.iinfo(sums.dtype).min
        return amount

    return read
