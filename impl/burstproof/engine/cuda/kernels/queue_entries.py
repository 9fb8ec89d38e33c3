"""Entries of the queues of owners: the target within the owner, and above it the contribution or palette index.

If an entry of a row is one word, a queue's is the same word with the number of the owner's first neuron subtracted.
Otherwise the target takes 16 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Queues
from burstproof.engine.cuda.kernels.entries import make_target_of
from burstproof.engine.cuda.plan.queues import LOCAL_BITS
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant


def make_queue_entry(variant: Variant, queues: OwnerQueues) -> Callable[..., Any]:
    """``queue_entry(word, value, first)`` -> the queue entry of an entry of a row; ``first``: its owner's first neuron.

    ``word`` and ``value`` are those of ``make_split_entry``.
    """
    shift, wide_shift, split_entry = np.uint32(LOCAL_BITS), np.uint64(LOCAL_BITS), make_split_entry(variant)

    def alone(word: np.uint32, value: Any, first: np.uint32) -> Any:
        target, _ = split_entry(word, value)
        return np.uint16(target - first)

    def moved(word: Any, value: Any, first: np.uint32) -> Any:
        return np.uint32(np.uint32(word) - first)

    def narrow(word: np.uint32, value: Any, first: np.uint32) -> Any:
        return np.uint32(np.uint32(word - first) | np.uint32(np.uint32(value) << shift))

    def wide(word: Any, value: Any, first: np.uint32) -> Any:
        target, amount = split_entry(word, value)
        return np.uint64(np.uint64(target - first) | np.uint64(np.uint64(amount) << wide_shift))

    made = {16: alone, 32: moved if variant.target_bits else narrow, 64: wide}[queues.entry_bits]
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]


def needs_source_amount(variant: Variant, queues: OwnerQueues) -> bool:
    """Whether a queue entry gets its contribution from the source: one per row, and entries are not targets alone."""
    return variant.uniform_rows and queues.entry_bits > LOCAL_BITS


def make_unpack_entry(variant: Variant, queues: OwnerQueues) -> Callable[..., Any]:
    """``unpack_entry(entry, queue)`` -> (uint32 index of the target within its owner, contribution)."""
    bits = variant.target_bits if queues.entry_bits == 32 and variant.target_bits else LOCAL_BITS
    shift, place_shift, wide_shift, number = np.int32(bits), np.uint32(bits), np.int64(LOCAL_BITS), variant.accumulator
    low, wide_low = np.uint32((1 << bits) - 1), np.uint64((1 << LOCAL_BITS) - 1)

    def narrow(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry & low), number(np.int32(entry) >> shift)

    def wide(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry & wide_low), number(np.int64(entry) >> wide_shift)

    def looked_up(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry & low), number(queue.palette[np.uint32(entry >> place_shift)])

    def alone(entry: Any, queue: Queues) -> Any:
        return np.uint32(entry), number(queue.common_contribution)

    made = {16: alone, 32: looked_up if variant.palette else narrow, 64: wide}[queues.entry_bits]
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]


def make_split_entry(variant: Variant) -> Callable[..., Any]:
    """``split_entry(word, value)`` -> (target, contribution or palette index); ``value``: from its column."""
    target_of, bits = make_target_of(variant), variant.target_bits
    shift, place_shift = np.int32(bits), np.uint32(bits)

    def columns(word: np.uint32, value: Any) -> Any:
        return word, value

    def beside(word: np.int32, value: Any) -> Any:
        return target_of(word), np.int32(np.int32(word) >> shift)

    def looked_up(word: np.int32, value: Any) -> Any:
        return target_of(word), np.uint32(np.uint32(word) >> place_shift)

    made = columns if not variant.target_bits else looked_up if variant.palette else beside
    return cuda.jit(device=True)(made)  # type: ignore[no-any-return]
