"""Kernel arguments that are unpacked once; a call then passes their address only.

numba unpacks every array argument at every call. A model has some sixty: that took as long as a burst of a small
network, and one second of the compilation of each kernel.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from burstproof.engine.atomics import Intrinsic, Values
from burstproof.engine.compiler import compiler
from burstproof.engine.disk import keep_on_disk

_MOST_WORDS = 16
"""Most words of 8 bytes for one unpacked value: an array takes 5, and 2 for each of at most 5 dimensions."""


class _HeldType(types.Type):
    def __init__(self, content: types.Type) -> None:
        self.content = content
        super().__init__(f"Held[{content}]")


register_model(_HeldType)(models.OpaqueModel)


class Held:
    """A named tuple, or a tuple of them, in unpacked form at ``address``; it keeps the arrays alive and in place."""

    def __init__(self, content: tuple[Any, ...]) -> None:
        self.content = content
        self._room = np.empty(_MOST_WORDS * _leaves(content), np.uint64)
        self._numba_type_ = _HeldType(numba.typeof(content))
        self.address = self._room.ctypes.data
        _store(content, self._room)

    def __reduce__(self) -> tuple[type[Held], tuple[Any]]:
        """A copy is unpacked anew, from the copied arrays."""
        return Held, (self.content,)


@unbox(_HeldType)  # type: ignore[untyped-decorator]
def _unbox(kind: _HeldType, held: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(held, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address, is_error=c.pyapi.c_api_error())


@intrinsic  # type: ignore[untyped-decorator]
def _put(typing_context: Context, content: types.Type, room: types.Array) -> Intrinsic:
    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        data = context.make_array(signature.args[1])(context, builder, arguments[1]).data
        builder.store(arguments[0], builder.bitcast(data, arguments[0].type.as_pointer()))
        return context.get_dummy_value()

    return types.void(content, room), generate


@intrinsic  # type: ignore[untyped-decorator]
def content_of(typing_context: Context, held: _HeldType) -> Intrinsic:
    """``content_of(held)``: the content of a ``Held``, for kernels."""

    def generate(context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: Values) -> ir.Value:
        kind = context.get_value_type(signature.return_type)
        return builder.load(builder.bitcast(arguments[0], kind.as_pointer()))

    return held.content(held), generate


@compiler
def _store(content: Any, room: Any) -> None:
    _put(content, room)


keep_on_disk(_store, "held")


def _leaves(content: Any) -> int:
    return sum(map(_leaves, content)) if isinstance(content, tuple) else 1
