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
            return _load(ir, context, builder, column, arguments, 1)[0]

        return column.dtype(column, types.uint64), emit

    return cuda.extending.intrinsic(read_once)  # type: ignore[no-any-return]


@cache
def make_read_several(count: int) -> Callable[..., Any]:
    """``read_several(column, place)`` -> tuple of ``count`` (1, 2 or 4) elements, loaded at once as by ``read_once``.

    ``place`` is a multiple of ``count``. Elements beyond the end of the column have no meaning: all buffers of an arena
    are aligned, so they lie in its unused bytes.
    """
    if SIMULATED:
        return cuda.jit(device=True)(_READ_SEVERAL[count])  # type: ignore[no-any-return]
    from llvmlite import ir
    from numba.core import types

    def read_several(typing: Any, column: Any, place: Any) -> Any:
        _check(types, column, place)
        result = types.UniTuple(column.dtype, count)  # type: ignore[attr-defined]

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return context.make_tuple(builder, result, _load(ir, context, builder, column, arguments, count))

        return result(column, types.uint64), emit

    return cuda.extending.intrinsic(read_several)  # type: ignore[no-any-return]


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


def _load(ir: Any, context: Any, builder: Any, column: Any, arguments: Any, count: int) -> list[Any]:
    """Emit streaming loads, of at most 16 bytes each, of ``count`` elements of ``column``."""
    bits = column.dtype.bitwidth
    in_register, letter = (16, "h") if bits == 16 else (64, "l") if bits == 64 else (32, "r")
    data, register = context.make_array(column)(context, builder, arguments[0]).data, ir.IntType(in_register)
    at_once = min(count, 128 // bits)
    made, text = register, f"ld.global.cs.b{bits} $0, [$1];"
    if at_once > 1:
        made = ir.LiteralStructType([register] * at_once)
        into = ", ".join(f"${i}" for i in range(at_once))
        text = f"ld.global.cs.v{at_once}.b{bits} {{{into}}}, [${at_once}];"
    values = []
    for first in range(0, count, at_once):
        place = builder.add(arguments[1], ir.Constant(arguments[1].type, first))
        address = builder.ptrtoint(builder.gep(data, [place]), ir.IntType(64))
        kind = ir.FunctionType(made, [address.type])
        loaded = builder.call(ir.InlineAsm(kind, text, f"={letter}," * at_once + "l"), [address])
        values += [builder.extract_value(loaded, i) for i in range(at_once)] if at_once > 1 else [loaded]
    if in_register > bits:
        values = [builder.trunc(value, ir.IntType(bits)) for value in values]
    return [builder.bitcast(value, context.get_data_type(column.dtype)) for value in values]


def _read(column: npt.NDArray[Any], place: np.unsignedinteger) -> Any:
    return column[place]


def _read_one(column: npt.NDArray[Any], place: int) -> Any:
    return (column[place],)


def _read_two(column: npt.NDArray[Any], place: int) -> Any:
    return column[place], column[min(place + 1, len(column) - 1)]


def _read_four(column: npt.NDArray[Any], place: int) -> Any:
    last = len(column) - 1
    return column[place], column[min(place + 1, last)], column[min(place + 2, last)], column[min(place + 3, last)]


_READ_SEVERAL = {1: _read_one, 2: _read_two, 4: _read_four}


def _add(sums: npt.NDArray[Any], place: np.unsignedinteger, amount: Any) -> None:
    cuda.atomic.add(sums, place, amount)
