"""Loads and atomic additions at unsigned indices, without numba's test for a negative index.

numba tests every 64-bit index. That costs six instructions, more than all else that a contribution needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda


@cache
def make_read_once() -> Callable[..., Any]:
    """``read_once(column, place)``: a streaming load (``ld.global.cs``), evicted first as it is not soon read again.

    Nothing may write the element while the kernel runs: neither a barrier nor ``stay`` orders this load.
    """
    if SIMULATED:
        return cuda.jit(device=True)(_read)  # type: ignore[no-any-return]
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types

    def read_once(typing: Any, column: Any, place: Any) -> Any:
        _check(types, column, place)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            bits = column.dtype.bitwidth
            in_register, letter = (16, "h") if bits == 16 else (64, "l") if bits == 64 else (32, "r")
            data = context.make_array(column)(context, builder, arguments[0]).data
            address = builder.ptrtoint(builder.gep(data, [arguments[1]]), ir.IntType(64))
            kind = ir.FunctionType(ir.IntType(in_register), [address.type])
            load = ir.InlineAsm(kind, f"ld.global.cs.b{bits} $0, [$1];", f"={letter},l")
            value = builder.call(load, [address])
            if in_register > bits:
                value = builder.trunc(value, ir.IntType(bits))
            return builder.bitcast(value, context.get_data_type(column.dtype))

        return column.dtype(column, types.uint64), emit

    return cuda.extending.intrinsic(read_once)  # type: ignore[no-any-return]


@cache
def make_add() -> Callable[..., Any]:
    """``add(sums, place, amount)``: a relaxed atomic addition to an integer of ``sums``, which returns nothing."""
    if SIMULATED:
        return cuda.jit(device=True)(_add)  # type: ignore[no-any-return]
    from numba.core import types

    def add(typing: Any, sums: Any, place: Any, amount: Any) -> Any:
        _check(types, sums, place, amount, sums.dtype)

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(sums)(context, builder, arguments[0]).data
            builder.atomic_rmw("add", builder.gep(data, [arguments[1]]), arguments[2], "monotonic")
            return context.get_dummy_value()

        return types.none(sums, types.uint64, sums.dtype), emit

    return cuda.extending.intrinsic(add)  # type: ignore[no-any-return]


def _check(types: Any, array: Any, *numbers: Any) -> None:
    """Raise a TypeError unless these are numba ``types`` of a contiguous 1D array and of integers."""
    plain = isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C"
    if not plain or not all(isinstance(one, types.Integer) for one in numbers):
        raise TypeError(f"not a plain array and integers: {array}, {', '.join(map(str, numbers))}")


def _read(column: npt.NDArray[Any], place: np.unsignedinteger) -> Any:
    return column[place]


def _add(sums: npt.NDArray[Any], place: np.unsignedinteger, amount: Any) -> None:
    cuda.atomic.add(sums, place, amount)
