"""Rounding of potentials to their storage format, in operations that vectorise.

The CPU engine keeps potentials as float32 values that the format can represent: results are those of narrow storage,
but no memory is saved.
"""

from __future__ import annotations

import numpy as np

from burstproof.engine.cpu.intrinsics import choose
from burstproof.engine.precision import LEVELS, Precision, Storage
from burstproof.engine.rules import Compiled, Compiler

_MAGNITUDE, _SIGN, _INFINITE = np.uint32(0x7FFFFFFF), np.uint32(0x80000000), np.uint32(0x7F800000)
_ONE = np.uint32(1)
_TO_INTEGER = np.float32(12582912)
"""1.5 * 2^23: adding and subtracting it rounds a small float32 to an integer, half to even."""


def make_rounded(storage: Storage, compiler: Compiler) -> Compiled:
    """``rounded(v)``: float32 ``v`` rounded to the format of ``storage``; for fp32 ``v`` itself."""
    if storage.precision is Precision.INT8:
        return _to_levels(storage.step, compiler)
    if storage.precision is Precision.FP16:
        return _to_half(compiler)
    return compiler(lambda v: v) if storage.exact else _to_brain(compiler)


def _to_levels(step: float, compiler: Compiler) -> Compiled:
    unit, inverse, zero = np.float32(step), np.float32(1 / step), np.float32(0)
    most = np.float32(LEVELS * step)

    @compiler
    def rounded(v: np.float32) -> np.float32:
        within = choose(v > most, most, choose(v < -most, -most, choose(v == v, v, zero)))
        nearest: np.float32 = ((within * inverse + _TO_INTEGER) - _TO_INTEGER) * unit
        return nearest

    return rounded


def _to_half(compiler: Compiler) -> Compiled:
    kept, below_half, shift = np.uint32(0xFFFFE000), np.uint32(0x0FFF), np.uint32(13)
    normal, largest, half = np.uint32(0x38800000), np.uint32(0x477FE000), np.float32(0.5)

    @compiler
    def rounded(v: np.float32) -> np.float32:
        bits = np.float32(v).view(np.uint32)
        size = np.uint32(bits & _MAGNITUDE)
        regular = np.uint32(np.uint32(size + below_half + ((size >> shift) & _ONE)) & kept)
        shifted = np.float32(np.uint32(size).view(np.float32) + half)
        subnormal = np.float32(shifted - half).view(np.uint32)  # the last place of 0.5 is 2^-24
        nearest = choose(size < normal, subnormal, choose(regular > largest, largest, regular))
        return np.uint32(choose(size > _INFINITE, size, nearest) | (bits & _SIGN)).view(np.float32)

    return rounded


def _to_brain(compiler: Compiler) -> Compiled:
    kept, below_half, shift = np.uint32(0xFFFF0000), np.uint32(0x7FFF), np.uint32(16)
    largest = np.uint32(0x7F7F0000)

    @compiler
    def rounded(v: np.float32) -> np.float32:
        bits = np.float32(v).view(np.uint32)
        size = np.uint32(bits & _MAGNITUDE)
        regular = np.uint32(np.uint32(size + below_half + ((size >> shift) & _ONE)) & kept)
        nearest = choose(regular > largest, largest, regular)
        return np.uint32(choose(size > _INFINITE, size, nearest) | (bits & _SIGN)).view(np.float32)

    return rounded
