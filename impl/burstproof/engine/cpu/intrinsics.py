"""Operations that numba has no name for: a prefetch, a choice without a branch, atomics, and ways to wait.

The atomics work on int64 arrays, for threads that meet inside compiled code.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Sequence

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature
from numba.extending import intrinsic

Values = Sequence[ir.Value]
Intrinsic = tuple[Signature, Callable[[BaseContext, ir.IRBuilder, Signature, Values], ir.Value]]
"""The signature, and what writes the code."""

_READ, _KEEP, _DATA = 0, 3, 1
_ORDER = "seq_cst"
_BYTES = 8
_INT32 = ir.IntType(32)
_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (ir.Constant(_INT32, 1),))
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
_PAUSE = _PAUSES.get(platform.machine().lower())

yield_core = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())
"""``yield_core()``: let another thread have this core."""


def _place(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
    """Address of ``array[index]``, the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Context, array: types.Array, index: types.Type) -> Intrinsic:
    """``prefetch(array, index)``: fetch the cache line of ``array[index]``; an index outside does no harm."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        byte_pointer = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer, flag, flag, flag])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        options = [ir.Constant(flag, value) for value in (_READ, _KEEP, _DATA)]
        builder.call(fetch, [builder.bitcast(address, byte_pointer), *options])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def choose(typing_context: Context, condition: types.Type, chosen: types.Type, other: types.Type) -> Intrinsic:
    """``choose(condition, chosen, other)``: one of two values of one type; both are computed and nothing branches.

    The compiler turns loops of these into vector instructions, which it cannot do once ``a if condition else b`` has
    become a branch.
    """

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        return builder.select(*arguments)

    return chosen(types.boolean, chosen, chosen), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_load(typing_context: Context, array: types.Array, index: types.Type) -> Intrinsic:
    """``atomic_load(array, index)``: the value, and everything written before it was stored."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        return builder.load_atomic(_place(context, builder, signature, arguments), _ORDER, _BYTES)

    return types.int64(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_store(typing_context: Context, array: types.Array, index: types.Type, value: types.Type) -> Intrinsic:
    """``atomic_store(array, index, value)``: publish everything written before, by this value."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        builder.store_atomic(arguments[2], _place(context, builder, signature, arguments), _ORDER, _BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_add(typing_context: Context, array: types.Array, index: types.Type, value: types.Type) -> Intrinsic:
    """``atomic_add(array, index, value)``: the value before the addition."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        return builder.atomic_rmw("add", _place(context, builder, signature, arguments), arguments[2], _ORDER)

    return types.int64(array, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_exchange_if(
    typing_context: Context, array: types.Array, index: types.Type, expected: types.Type, value: types.Type
) -> Intrinsic:
    """``atomic_exchange_if(array, index, expected, value)``: store if ``expected`` is there; returns what was there."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        place = _place(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(place, arguments[2], arguments[3], _ORDER, _ORDER), 0)

    return types.int64(array, types.intp, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def relax(typing_context: Context) -> Intrinsic:
    """``relax()``: tell the core that this thread waits in a loop."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        if _PAUSE is not None:
            name, values = _PAUSE
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)
        return context.get_dummy_value()

    return types.void(), generate
