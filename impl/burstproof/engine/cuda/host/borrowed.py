"""Arrays handed to compiled code as a table of addresses: a call with few arguments begins sooner.

Each array costs a call about 80 ns, and those of a closed loop are the same in every call.
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
    """Address and length of each of ``arrays``, which are contiguous; who keeps the table has to keep them, too."""
    return np.array([(array.ctypes.data, len(array)) for array in arrays], np.int64).ravel()


@intrinsic  # type: ignore[untyped-decorator]
def _pointer(typing_context: Context, address: types.Type) -> Intrinsic:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Any, arguments: Values) -> ir.Value:
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(types.int64), generate


@njit
def borrowed(addresses, place, dtype):  # type: ignore[no-untyped-def]
    """In compiled code: array number ``place`` of the table."""
    return carray(_pointer(addresses[2 * place]), (addresses[2 * place + 1],), dtype)
