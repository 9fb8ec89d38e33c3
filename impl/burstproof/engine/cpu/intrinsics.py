"""Operations that numba lacks: prefetch, branch-free select, scratch memory on the stack, and yielding the core."""

from __future__ import annotations

import sys

from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from burstproof.engine.atomics import Intrinsic, Values
from burstproof.engine.cpu.lines import PAGE

_READ, _KEEP, _DATA = 0, 3, 1

yield_core = types.ExternalFunction("SwitchToThread" if sys.platform == "win32" else "sched_yield", types.intc())
"""``yield_core()``: let another thread have this core."""


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(typing_context: Context, array: types.Array, index: types.Type) -> Intrinsic:
    """``prefetch(array, index)``: prefetch the cache line of ``array[index]``; any index is allowed."""

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
    """``choose(condition, chosen, other)``: select one of two values of one type, without a branch.

    The compiler vectorises loops of these. It cannot once ``a if condition else b`` has become a branch.
    """

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        return builder.select(*arguments)

    return chosen(types.boolean, chosen, chosen), generate


@intrinsic(prefer_literal=True)  # type: ignore[untyped-decorator]
def on_stack(typing_context: Context, count: types.IntegerLiteral, dtype: types.DType) -> Intrinsic:
    """``on_stack(count, dtype)``: an array of undefined content that lives until its function returns.

    It is not reference-counted, so functions with scratch memory can be compiled without reference counting. An array
    of a page or more is aligned to a page (``lines.py``).
    """
    kind = types.Array(dtype.dtype, 1, "C")

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        element, length = context.get_data_type(dtype.dtype), count.literal_value
        memory = cgutils.alloca_once(builder, ir.ArrayType(element, length))
        if length * context.get_abi_sizeof(element) >= PAGE:
            memory.align = PAGE
        place = builder.bitcast(memory, element.as_pointer())
        shape, size = (context.get_constant(types.intp, n) for n in (length, context.get_abi_sizeof(element)))
        array = context.make_array(kind)(context, builder)
        populate_array(array, place, [shape], [size], size, None)
        return array._getvalue()

    return kind(count, dtype), generate
