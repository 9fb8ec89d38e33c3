"""Device functions that pack and unpack row entries of one word (``plan.entries``), which calendars hold as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Rows
from burstproof.engine.cuda.plan.variant import Variant


def make_target_of(variant: Variant) -> Callable[..., Any]:
    """``target_of(word)`` -> uint32 target of an entry; an entry without a contribution is its target."""
    mask = np.uint32((1 << variant.target_bits) - 1)

    def alone(word: np.uint32) -> Any:
        return word

    def beside(word: np.int32) -> Any:
        return np.uint32(np.uint32(word) & mask)

    return cuda.jit(device=True)(beside if variant.target_bits else alone)  # type: ignore[no-any-return]


def make_amount_of(variant: Variant) -> Callable[..., Any]:
    """``amount_of(word, rows)``: the contribution of an entry, in the accumulator's type."""
    number, shift, place_shift = variant.accumulator, np.int32(variant.target_bits), np.uint32(variant.target_bits)

    def beside(word: np.int32, rows: Rows) -> Any:
        return number(np.int32(word) >> shift)

    def looked_up(word: np.int32, rows: Rows) -> Any:
        return number(rows.palette[np.uint32(np.uint32(word) >> place_shift)])

    return cuda.jit(device=True)(looked_up if variant.palette else beside)  # type: ignore[no-any-return]


def make_entry_of(variant: Variant) -> Callable[..., Any]:
    """``entry_of(target, contribution)`` -> int32 word with the target in the low bits, the contribution above it."""
    shift = np.uint32(variant.target_bits)

    def entry_of(target: np.uint32, contribution: Any) -> Any:
        return np.int32(np.uint32(np.uint32(np.int32(contribution)) << shift) | target)

    return cuda.jit(device=True)(entry_of)  # type: ignore[no-any-return]
