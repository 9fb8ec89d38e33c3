"""Atomic operations on int64 arrays, and ways to wait, for threads that meet inside compiled code."""

from __future__ import annotations

import platform
import sys
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_ORDER = "seq_cst"
_BYTES = 8
_INT32 = ir.IntType(32)
_X86, _ARM = ("llvm.x86.sse2.pause", ()), ("llvm.aarch64.hint", (ir.Constant(_INT32, 1),))
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}
_PAUSE = _PAUSES.get(platform.machine().lower())

yield_core = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())
"""``yield_core()``: let another thread have this core."""


def _place(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Address of ``array[index]``, the first two arguments."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    return builder.gep(array.data, [arguments[1]])


@intrinsic  # type: ignore[untyped-decorator]
def atomic_load(typing_context: Any, array: Any, index: Any) -> Any:
    """``atomic_load(array, index)``: the value, and everything written before it was stored."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load_atomic(_place(context, builder, signature, arguments), _ORDER, _BYTES)

    return types.int64(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``atomic_store(array, index, value)``: publish everything written before, by this value."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store_atomic(arguments[2], _place(context, builder, signature, arguments), _ORDER, _BYTES)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_add(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """``atomic_add(array, index, value)``: the value before the addition."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.atomic_rmw("add", _place(context, builder, signature, arguments), arguments[2], _ORDER)

    return types.int64(array, types.intp, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def atomic_exchange_if(typing_context: Any, array: Any, index: Any, expected: Any, value: Any) -> Any:
    """``atomic_exchange_if(array, index, expected, value)``: store if ``expected`` is there; returns what was there."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, signature, arguments)
        return builder.extract_value(builder.cmpxchg(place, arguments[2], arguments[3], _ORDER, _ORDER), 0)

    return types.int64(array, types.intp, types.int64, types.int64), generate


@intrinsic  # type: ignore[untyped-decorator]
def relax(typing_context: Any) -> Any:
    """``relax()``: tell the core that this thread waits in a loop."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if _PAUSE is not None:
            name, values = _PAUSE
            kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
            builder.call(cgutils.get_or_insert_function(builder.module, kind, name), values)
        return context.get_dummy_value()

    return types.void(), generate
