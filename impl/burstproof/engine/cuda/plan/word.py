"""The format of a cell of the FCL: a neuron's sum, and whether anything has arrived, which makes it a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.layout import Layout
from burstproof.network.fixed_point import FixedPoint

_BESIDE = 64
_OTHER_ARRIVALS = 2
"""Arrivals in a cell that do not come from a synapse: a restored sum, and stimulus."""
_MARK_STEP = 4
"""Marks have a multiple of so many bits, if there is room, so that networks share kernels."""


@dataclass(frozen=True)
class Word:
    """The format of a cell.

    If no candidate's sum can be 0, a cell is the sum. Otherwise every arrival adds its contribution times
    2^``mark_bits``, plus 1: the low bits count the arrivals, and the sum is the cell shifted to the right. One
    reduction does both. Either way, a neuron is a candidate if its cell is not 0.

    Attributes
    ----------
    bits : int
        Width of a cell: 32 or 64; 8 or 16 if several unsigned sums share a 32-bit word; 128 for a sum of 64 bits with
        its mark in a word beside it, if the sum is unbounded.
    mark_bits : int
        Bits that count arrivals, enough for the largest in-degree; 0 if sums need no mark, 64 for a word beside.
    """

    bits: int
    mark_bits: int = 0

    @property
    def marked(self) -> bool:
        """Whether a candidate has a mark, so that its sum may be 0."""
        return self.mark_bits > 0

    @property
    def beside(self) -> bool:
        """Whether the mark lies in a word of its own."""
        return self.mark_bits == _BESIDE

    @property
    def packed(self) -> bool:
        """Whether several cells share the word that contributions are added to."""
        return self.bits < 32

    @property
    def shift(self) -> int:
        """Bits by which a sum is shifted to the left within its word."""
        return 0 if self.beside else self.mark_bits

    @property
    def cell(self) -> type[np.integer]:
        """Scalar type of the array of cells: signed, unless packed."""
        kinds: dict[int, type[np.integer]] = {8: np.uint8, 16: np.uint16, 32: np.int32}
        return kinds.get(self.bits, np.int64)

    @property
    def added(self) -> type[np.signedinteger]:
        """Scalar type of the words that contributions are added to."""
        return np.int32 if self.bits <= 32 else np.int64

    @property
    def elements(self) -> int:
        """Elements of the array that a cell takes."""
        return 2 if self.beside else 1

    def holds(self, lowest: int, highest: int) -> bool:
        """Whether a cell holds every sum from ``lowest`` to ``highest``."""
        if self.packed:
            return lowest >= 0 and highest < 1 << self.bits
        room = 1 << (min(self.bits, 64) - 1 - self.shift)
        return -room <= lowest and highest < room

    def encode(self, sums: npt.NDArray[np.int64], candidates: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
        """The cells, flat, of sums and candidates of any shape; a candidate's mark counts one arrival."""
        if self.beside:
            return np.stack((np.where(candidates, sums, 0), candidates), axis=-1).ravel()
        cells = np.where(candidates, (sums << self.shift) + int(self.marked), 0)
        return cells.ravel().astype(self.cell)

    def decode(self, cells: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Sums and candidates, (n,), of n cells."""
        if self.beside:
            pairs = cells.reshape(-1, 2)
            return pairs[:, 0], pairs[:, 1] != 0
        return cells.astype(np.int64) >> self.shift, cells != 0


def marked_word(layout: Layout, point: FixedPoint, largest: int) -> Word:
    """The narrowest word for the sums up to ``largest`` in magnitude, each with its mark."""
    least = (layout.in_degree + _OTHER_ARRIVALS).bit_length()
    rounded = -(-least // _MARK_STEP) * _MARK_STEP
    for bits, mark_bits in ((32, rounded), (32, least), (64, rounded), (64, least)):
        if bits >= point.bits and mark_bits < bits and Word(bits, mark_bits).holds(-largest, largest):
            return Word(bits, mark_bits)
    return Word(128, _BESIDE)


def stimulus_bound(point: FixedPoint) -> int:
    """Bound of a neuron's stimulus in a burst, in units of 2^-k."""
    return int(np.ceil(point.max_stimulus * point.scale))


def largest_sum(point: FixedPoint) -> int:
    """Bound of a cell's sum with stimulus, in units of 2^-k; of no use if contributions have no bound."""
    return point.largest_sum + stimulus_bound(point)
