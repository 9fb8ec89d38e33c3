"""Groups of four neurons with consecutive indices: one instruction loads or stores their elements of a column."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.plan.block_size import GROUP

_BYTE, _WORD = 8, 32


@cache
def make_load_group(size: int) -> Callable[..., Any]:
    """``load_group(column, first)`` -> ``size`` uint32 words: four elements from ``first`` on, of ``size`` bytes each.

    ``size`` is 1, 2 or 4, ``first`` a multiple of four. A column starts at a multiple of 16 bytes, as all buffers of an
    arena do.
    """
    if SIMULATED:
        return cuda.jit(device=True)(_LOAD_GROUP[size])  # type: ignore[no-any-return]
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types

    word, result = ir.IntType(_WORD), types.UniTuple(types.uint32, size)  # type: ignore[attr-defined]

    def load_group(typing: Any, column: Any, first: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            loaded = builder.load(_address(ir, context, builder, column, arguments, size), align=4 * size)
            words = [builder.extract_element(loaded, ir.Constant(word, i)) for i in range(size)]
            return context.make_tuple(builder, result, words)

        return result(column, types.uint64), emit

    return cuda.extending.intrinsic(load_group)  # type: ignore[no-any-return]


@cache
def make_store_group(size: int) -> Callable[..., Any]:
    """``store_group(column, first, words)``: the reverse of ``load_group``, for a tuple of any type of 4 bytes."""
    if SIMULATED:
        return cuda.jit(device=True)(_STORE_GROUP[size])  # type: ignore[no-any-return]
    from llvmlite import ir
    from numba.core import types

    word = ir.IntType(_WORD)

    def store_group(typing: Any, column: Any, first: Any, words: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            stored = ir.Constant(ir.VectorType(word, size), ir.Undefined)
            for i in range(size):
                one = builder.bitcast(builder.extract_value(arguments[2], i), word)
                stored = builder.insert_element(stored, one, ir.Constant(word, i))
            builder.store(stored, _address(ir, context, builder, column, arguments, size), align=4 * size)
            return context.get_dummy_value()

        return types.none(column, types.uint64, words), emit

    return cuda.extending.intrinsic(store_group)  # type: ignore[no-any-return]


def _address(ir: Any, context: Any, builder: Any, column: Any, arguments: Any, size: int) -> Any:
    """Emit the address of ``size`` words from element ``arguments[1]`` of ``column``, ``arguments[0]``, on."""
    data = context.make_array(column)(context, builder, arguments[0]).data
    vector = ir.VectorType(ir.IntType(_WORD), size)
    return builder.bitcast(builder.gep(data, [arguments[1]]), vector.as_pointer())


@cache
def make_element(size: int) -> Callable[..., Any]:
    """``element(words, start, p)`` -> uint32: the ``p``-th of four elements of ``size`` bytes, in words from ``start``.

    ``p`` is a uint32. No index depends on it, so that ``words`` stay in registers.
    """
    one, two, none = np.uint32(1), np.uint32(2), np.uint32(0)
    bits = np.uint32(_BYTE * size)
    mask = np.uint32((1 << (_BYTE * size)) - 1)

    def byte(words: Any, start: int, p: np.uint32) -> Any:
        return np.uint32(words[start] >> np.uint32(p * bits)) & mask

    def half(words: Any, start: int, p: np.uint32) -> Any:
        word = words[start + 1] if (p & two) != none else words[start]
        return np.uint32(word >> np.uint32(np.uint32(p & one) * bits)) & mask

    def whole(words: Any, start: int, p: np.uint32) -> Any:
        odd = (p & one) != none
        low, high = words[start + 1] if odd else words[start], words[start + 3] if odd else words[start + 2]
        return high if (p & two) != none else low

    return cuda.jit(device=True)({1: byte, 2: half, 4: whole}[size])  # type: ignore[no-any-return]


def _load_bytes(column: npt.NDArray[Any], first: int) -> Any:
    word = 0
    for i in range(GROUP):
        word |= int(column[first + i]) << (_BYTE * i)
    return (np.uint32(word),)


def _load_halves(column: npt.NDArray[Any], first: int) -> Any:
    low, high = (int(column[first + i]) | int(column[first + i + 1]) << 2 * _BYTE for i in (0, 2))
    return np.uint32(low), np.uint32(high)


def _load_words(column: npt.NDArray[Any], first: int) -> Any:
    return tuple(column[first + i].view(np.uint32) for i in range(GROUP))


def _store_bytes(column: npt.NDArray[Any], first: int, words: Any) -> None:
    for i in range(GROUP):
        column[first + i] = int(words[0]) >> (_BYTE * i) & 255


def _store_words(column: npt.NDArray[Any], first: int, words: Any) -> None:
    for i in range(GROUP):
        column[first + i] = words[i]


_LOAD_GROUP = {1: _load_bytes, 2: _load_halves, 4: _load_words}
_STORE_GROUP = {1: _store_bytes, 4: _store_words}
