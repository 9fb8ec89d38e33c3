"""Atomics on int64 arrays for compiled host code that synchronises with other threads or a device; and a spin pause.

numba has neither. All atomics are sequentially consistent.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature
from numba.extending import intrinsic

Values = Sequence[ir.Value]
Intrinsic = tuple[Signature, Callable[[BaseContext, ir.IRBuilder, Signature, Values], ir.Value]]
"""The signature, and the function that emits the LLVM code."""

_ORDER = "seq_cst"
_BYTES = 8
_INT32 = ir.IntType(32)
_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (ir.Constant(_INT32, 1),))
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
_PAUSE = _PAUSES.get(platform.machine().lower())


def _place(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
    """Address of ``array[index]``, the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic  # type: ignore[untyped-decorator]
def atomic_load(typing_context: Context, array: types.Array, index: types.Type) -> Intrinsic:
    """``atomic_load(array, index)``: load a value; what was written before its store is visible afterwards."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        return builder.load_atomic(_place(context, builder, signature, arguments), _ORDER, _BYTES)

    return types.int64(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_store(typing_context: Context, array: types.Array, index: types.Type, value: types.Type) -> Intrinsic:
    """``atomic_store(array, index, value)``: store a value, and publish everything written before."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        builder.store_atomic(arguments[2], _place(context, builder, signature, arguments), _ORDER, _BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_add(typing_context: Context, array: types.Array, index: types.Type, value: types.Type) -> Intrinsic:
    """``atomic_add(array, index, value)``: add; returns the value before."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        return builder.atomic_rmw("add", _place(context, builder, signature, arguments), arguments[2], _ORDER)

    return types.int64(array, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_exchange_if(
    typing_context: Context, array: types.Array, index: types.Type, expected: types.Type, value: types.Type
) -> Intrinsic:
    """``atomic_exchange_if(array, index, expected, value)``: compare and swap; returns the value before."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        place = _place(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(place, arguments[2], arguments[3], _ORDER, _ORDER), 0)

    return types.int64(array, types.intp, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def relax(typing_context: Context) -> Intrinsic:
    """``relax()``: the pause instruction of a spin loop."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        if _PAUSE is not None:
            name, values = _PAUSE
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)
        return context.get_dummy_value()

    return types.void(), generate
