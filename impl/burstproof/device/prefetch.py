"""Memory that a kernel will read soon, on its way to the L2 cache: one instruction of one thread (capability 9.0).

Source: PTX ISA, ``cp.async.bulk.prefetch``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda

_UNIT = 16
"""Bytes in multiples of which the instruction works."""


@cache
def make_prefetch(capable: bool) -> Callable[..., Any]:
    """``prefetch(column, first, count)``: ``count`` elements from ``first`` on, where the device is ``capable``.

    ``column`` is an array in device memory that has these elements, ``first`` uint64, ``count`` uint32. Up to 15 bytes
    at the end may be left out.
    """

    def nothing(column: Any, first: np.uint64, count: np.uint32) -> None:
        return

    return _instruction() if capable and not SIMULATED else cuda.jit(device=True)(nothing)


def _instruction() -> Callable[..., Any]:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    address, size = ir.IntType(64), ir.IntType(32)
    text = "{ .reg .pred some; setp.gt.s32 some, $1, 0; @some cp.async.bulk.prefetch.L2.global [$0], $1; }"

    def typed(_typing: Any, column: Any, first: Any, count: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            array = context.make_array(signature.args[0])(context, builder, arguments[0])
            item = address(context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype)))
            units = address(-_UNIT)
            start = builder.add(builder.ptrtoint(array.data, address), builder.mul(arguments[1], item))
            end = builder.add(start, builder.mul(builder.zext(arguments[2], address), item))
            begin = builder.and_(start, units)
            length = builder.trunc(builder.sub(builder.and_(end, units), begin), size)
            kind = ir.FunctionType(ir.VoidType(), [address, size])
            builder.call(ir.InlineAsm(kind, text, "l,r", side_effect=True), [begin, length])
            return context.get_dummy_value()

        return types.void(column, types.uint64, types.uint32), emit

    return cuda.extending.intrinsic(typed)  # type: ignore[no-any-return]
