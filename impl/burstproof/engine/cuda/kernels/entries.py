"""Device functions over entries of rows that are one word (``plan.entries``), and words of a calendar."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Rows
from burstproof.engine.cuda.plan.variant import Variant


def make_target_of(variant: Variant) -> Callable[..., Any]:
    """``target_of(word)`` -> uint32."""
    mask = np.uint32((1 << variant.target_bits) - 1)

    def target_of(word: np.int32) -> Any:
        return np.uint32(np.uint32(word) & mask)

    return cuda.jit(device=True)(target_of)  # type: ignore[no-any-return]


def make_amount_of(variant: Variant) -> Callable[..., Any]:
    """``amount_of(word, rows)``: the contribution of an entry in the accumulator's type."""
    number, shift, place_shift = variant.accumulator, np.int32(variant.target_bits), np.uint32(variant.target_bits)

    def beside(word: np.int32, rows: Rows) -> Any:
        return number(np.int32(word) >> shift)

    def looked_up(word: np.int32, rows: Rows) -> Any:
        return number(rows.contributions[np.uint32(np.uint32(word) >> place_shift)])

    return cuda.jit(device=True)(looked_up if variant.palette else beside)  # type: ignore[no-any-return]


def make_hold_palette(room: int, kind: Any) -> Callable[..., Any]:
    """``hold_palette(rows)`` -> ``Rows``: with the palette in shared memory, once the block's threads have met.

    Nothing where ``room`` is 0. All threads of the block call it.
    """
    if room == 0:
        return _hold_nothing()

    def hold_palette(rows: Rows) -> Any:
        table = cuda.shared.array(room, kind)
        at = np.uint32(cuda.threadIdx.x)
        while at < np.uint32(rows.contributions.size):
            table[at] = rows.contributions[at]
            at = np.uint32(at + np.uint32(cuda.blockDim.x))
        return Rows(rows.offsets, rows.targets, table, rows.delays, rows.clamped_sources)

    return cuda.jit(device=True)(hold_palette)  # type: ignore[no-any-return]


def _hold_nothing() -> Callable[..., Any]:
    def hold_nothing(rows: Rows) -> Any:
        return rows

    return cuda.jit(device=True)(hold_nothing)  # type: ignore[no-any-return]


def make_entry_of(variant: Variant) -> Callable[..., Any]:
    """``entry_of(target, contribution)`` -> int32: the word of an entry whose contribution lies in it."""
    shift = np.uint32(variant.target_bits)

    def entry_of(target: np.uint32, contribution: Any) -> Any:
        return np.int32(np.uint32(np.uint32(np.int32(contribution)) << shift) | target)

    return cuda.jit(device=True)(entry_of)  # type: ignore[no-any-return]
