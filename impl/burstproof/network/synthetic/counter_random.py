"""Counter-based random numbers: Philox 2x32 with 10 rounds, the same on every backend.

A number is a function of (seed, stream, row, item) and of nothing else, so that any part of a network can be made
anywhere, in any order. The functions are made by ``make_counter_random`` for a compiler: ``numba.njit``,
``cuda.jit(device=True)``, or the identity for plain NumPy scalars. They use 32-bit words and 32 x 32 -> 64 bit
products of unsigned integers only.

Source of the algorithm: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Compiled = Callable[..., Any]
Compiler = Callable[[Compiled], Compiled]
Pair = tuple[np.uint32, np.uint32]

ITEM_BITS = 28
"""Bits of the second counter word that number the items of a row; the upper 4 number the stream."""

LARGEST_ITEM = (1 << ITEM_BITS) - 1
LARGEST_SEED = (1 << 32) - 1


class CounterRandom(NamedTuple):
    """Compiled scalar functions; every argument and result is unsigned.

    ``philox(key, low, high)`` -> two uint32 words for the counter (low, high).
    ``words(seed, stream, row, item)`` -> two uint32 words; stream 0...15, item 0...2^28 - 1.
    ``below(first, second, bound)`` -> uint64 in 0...bound - 1 from two words; bound (uint64) in 1...2^32 - 1. The
    probabilities differ from 1 / bound by less than 2^-64.
    """

    philox: Compiled
    words: Compiled
    below: Compiled


def make_counter_random(compiler: Compiler) -> CounterRandom:
    """Compile the functions with ``compiler``."""
    multiplier, weyl = np.uint64(0xD256D193), np.uint64(0x9E3779B9)
    half = np.uint64(32)
    item_bits = np.uint32(ITEM_BITS)

    @compiler
    def philox(key: np.uint32, low: np.uint32, high: np.uint32) -> Pair:
        left, right, bump = np.uint32(low), np.uint32(high), np.uint32(key)
        for _ in range(10):
            product = np.uint64(left) * multiplier
            left = np.uint32(np.uint32(np.uint32(product >> half) ^ bump) ^ right)
            right = np.uint32(product)
            bump = np.uint32(np.uint64(bump) + weyl)
        return left, right

    @compiler
    def words(seed: np.uint32, stream: np.uint32, row: np.uint32, item: np.uint32) -> Pair:
        pair: Pair = philox(seed, row, np.uint32(np.uint32(np.uint32(stream) << item_bits) | np.uint32(item)))
        return pair

    @compiler
    def below(first: np.uint32, second: np.uint32, bound: np.uint64) -> np.uint64:
        return (np.uint64(first) * bound + ((np.uint64(second) * bound) >> half)) >> half

    return CounterRandom(philox, words, below)
