"""What a kernel will read soon comes into the L2 cache: bulk prefetch (capability 9.0).

Source: PTX ISA, ``cp.async.bulk.prefetch.L2``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.numba_cuda import SIMULATED, cuda

_LINE = 16
"""Address and length are multiples of so many bytes."""
_ONCE = (
    "{ .reg .b64 once; createpolicy.fractional.L2::evict_first.b64 once, 1.0; "
    "cp.async.bulk.prefetch.L2.global.L2::cache_hint [$0], $1, once; }"
)


@cache
def make_prefetch(able: bool) -> Callable[..., Any]:
    """``prefetch(column, first, count)``: elements that are read once; nothing unless ``able``."""
    if able and not SIMULATED:
        return _instruction()

    def nothing(column: npt.NDArray[Any], first: np.uint64, count: np.uint32) -> None:
        return

    return cuda.jit(device=True)(nothing)  # type: ignore[no-any-return]


def _instruction() -> Callable[..., Any]:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    def prefetch(_typing: Any, column: Any, first: Any, count: Any) -> Any:
        width = column.dtype.bitwidth // 8

        def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, short = ir.IntType(64), ir.IntType(32)
            data = context.make_array(column)(context, builder, value=arguments[0]).data
            start = builder.add(builder.ptrtoint(data, word), builder.mul(arguments[1], word(width)))
            end = builder.add(start, builder.mul(builder.zext(arguments[2], word), word(width)))
            low = builder.and_(start, word(-_LINE))
            high = builder.and_(builder.add(end, word(_LINE - 1)), word(-_LINE))
            length = builder.trunc(builder.sub(high, low), short)
            kind = ir.FunctionType(ir.VoidType(), [word, short])
            builder.call(ir.InlineAsm(kind, _ONCE, "l,r,~{memory}", side_effect=True), [low, length])
            return context.get_dummy_value()

        return types.void(column, first, count), emit

    return cuda.extending.intrinsic(prefetch)  # type: ignore[no-any-return]
