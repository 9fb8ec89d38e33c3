"""How sums are kept: with the sign bit turned over, so that 0 says that nothing has arrived.

A neuron whose contributions cancel to 0 is a candidate, one that nothing reaches is none (SEMANTICS section 2). No sum
is the least number of its type, so none is kept as 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import Array
from burstproof.engine.cpu.compile import inner_compiler
from burstproof.engine.rules import Compiled


def kept(sums: npt.NDArray[np.int64], arrived: npt.NDArray[np.bool_], dtype: np.dtype[Any]) -> Array:
    """``sums``, any shape, of which some have ``arrived``, as they are kept in ``dtype``: int32 or int64."""
    return np.where(arrived, sums.astype(dtype) ^ np.iinfo(dtype).min, dtype.type(0))


def shown(held: Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Sums that are kept in ``held``, 0 where nothing has arrived, and whether anything has."""
    arrived = held != 0
    return np.where(arrived, held ^ np.iinfo(held.dtype).min, 0).astype(np.int64), arrived


def make_add() -> Compiled:
    """``add``: ``amount`` arrives at one place of ``sums``.

    The sign bit of 0 is set by arithmetic, since of a choice the compiler makes a branch that no processor predicts.
    """

    @inner_compiler
    def add(sums: Array, place: np.uint64, amount: int) -> None:
        held = sums[place]
        sign_of_none = (held - 1) & ~held & np.iinfo(sums.dtype).min
        sums[place] = (held | sign_of_none) + amount

    return add


def make_read() -> Compiled:
    """``read``: the sum at one place of ``sums`` where something has arrived."""

    @inner_compiler
    def read(sums: Array, place: np.uint64) -> int:
        amount: int = sums[place] ^ np.iinfo(sums.dtype).min
        return amount

    return read
