"""Arrays passed to compiled code as one table of addresses, because each array argument costs a call about 80 ns.

The calls of a closed loop pass the same arrays every time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import carray, njit
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Context
from numba.extending import intrinsic

from burstproof.engine.atomics import Intrinsic, Values


def addresses_of(*arrays: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Address and length of each of the contiguous ``arrays``; the caller keeps them alive as long as the table."""
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64).ravel()


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(typing_context: Context, address: types.Type) -> Intrinsic:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Values) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@njit
def borrowed(addresses, place, dtype):  # type: ignore[no-untyped-def]
    """Array number ``place`` of the table, for compiled code."""
    return carray(_pointer(addresses[2 * place]), (addresses[2 * place + 1],), dtype)
