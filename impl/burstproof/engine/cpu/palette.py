"""The palette: a table of the different contributions of a network, if they are few. Synapses then hold indices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.compiler import compiler, inner_compiler
from burstproof.engine.cpu.arrays import Array
from burstproof.engine.disk import keep_on_disk

PALETTE_ENTRIES = 1 << 16
"""Most entries of a palette."""

_TABLE_BITS = 18
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Palette(NamedTuple):
    """The different contributions (P,) int64 of a network, and a hash table of their indices + 1 (0: free)."""

    values: npt.NDArray[np.int64]
    numbers: npt.NDArray[np.int64]


NO_PALETTE = Palette(np.empty(0, np.int64), np.empty(0, np.int64))


@inner_compiler
def find(value: int, values: Array, numbers: Array) -> np.uint64:
    """Slot of ``value`` in the hash table, or the free slot to insert it at."""
    place = (np.uint64(value) * _SPREAD) >> np.uint64(64 - _TABLE_BITS)
    while numbers[place] != 0 and values[numbers[place] - 1] != value:
        place = (place + np.uint64(1)) & np.uint64((1 << _TABLE_BITS) - 1)
    return place


@compiler
def _fill(contributions: Array, values: Array, numbers: Array) -> int:
    """Insert all contributions; returns the number of different ones, or -1 if they exceed the room."""
    count = 0
    for contribution in contributions:
        place = find(contribution, values, numbers)
        if numbers[place] == 0:
            if count == len(values):
                return -1
            values[count] = contribution
            count += 1
            numbers[place] = count
    return count


keep_on_disk(_fill, "fill")


def palette_of(contributions: Array, most: int = PALETTE_ENTRIES) -> Palette:
    """The palette of ``contributions``; empty if more than ``most`` or ``PALETTE_ENTRIES`` are different."""
    values, numbers = np.empty(min(most, PALETTE_ENTRIES), np.int64), np.zeros(1 << _TABLE_BITS, np.int64)
    count = _fill(contributions, values, numbers)
    return Palette(values[:count].copy(), numbers) if count >= 0 else NO_PALETTE
