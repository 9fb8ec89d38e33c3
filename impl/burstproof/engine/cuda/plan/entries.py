"""Entries of rows as one word of 32 bits: a target in the low bits, above it a contribution or its place in a table.

A row is then read with one load per entry, and a calendar notes entries as they are. Contributions that are too wide
for a word are replaced by their place in a *palette*, a table of all distinct ones that is small enough for the L1
cache. Places that do not fit beside a target either are a column of 16 bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.layout import StaticRows
from burstproof.engine.spans import on_spans

WORD_BITS = 32
PLACE_BITS = 16
LARGEST_PALETTE = 1 << 12
_FEW_NEURONS = 200_000
"""Up to here a burst waits for loads, not for sectors, so no contribution is looked up after its entry was loaded."""
_PROBE = 1 << 16


def target_bits(neurons: int) -> int:
    """Bits of a target in the word of an entry or of a calendar."""
    return max(1, (neurons - 1).bit_length())


def fits_beside(target: int, largest: int) -> bool:
    """Whether signed contributions up to ``largest`` in magnitude fit into a word beside ``target`` bits."""
    return target + largest.bit_length() + 1 <= WORD_BITS


def needs_palette(neurons: int, largest: int) -> bool:
    """Whether rows with contributions up to ``largest`` gain by a palette, if there are few enough distinct ones."""
    return neurons > _FEW_NEURONS and not fits_beside(target_bits(neurons), largest)


def indexed_beside(target: int, entries: int) -> bool:
    """Whether there is a palette, of ``entries``, and places in it fit into a word beside ``target`` bits."""
    return entries > 0 and target + max(1, (entries - 1).bit_length()) <= WORD_BITS


def palette_of(contributions: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    """The distinct ``contributions`` in ascending order; none if there are more than ``LARGEST_PALETTE``."""
    known = np.unique(contributions[:_PROBE])
    if len(known) <= LARGEST_PALETTE:
        lookup, full = _Lookup.of(known), Event()

        def others(part: slice) -> npt.NDArray[np.signedinteger]:
            some = contributions[part][: 0 if full.is_set() else None]
            found = np.unique(some[known[lookup.places(some)] != some])[: LARGEST_PALETTE + 1]
            if len(found) > LARGEST_PALETTE:
                full.set()
            return found

        known = np.unique(np.concatenate([known, *on_spans(_PROBE, len(contributions), others)]))
    return known if len(known) <= LARGEST_PALETTE else known[:0]


@dataclass(frozen=True, eq=False)
class _Lookup:
    """Places of values in a palette by multiplicative hashing without collisions; a binary search takes longer.

    Source: M. Dietzfelbinger et al., A reliable randomized algorithm for the closest-pair problem, J. Algorithms 25
    (1997); the factor is found by trial.
    """

    factor: np.uint64
    shift: np.uint64
    table: npt.NDArray[np.uint16]

    @classmethod
    def of(cls, palette: npt.NDArray[np.signedinteger]) -> _Lookup:
        """The lookup for ``palette`` (P,) of distinct values.

        The table has P^2 places. So a random factor has no collision with a chance of at least 1 in P for any values,
        and usually of more than a half.
        """
        draw, values = np.random.default_rng(0), palette.astype(np.uint64)
        shift = np.uint64(64 - max(1, 2 * (len(palette) - 1).bit_length()))
        while True:
            factor = draw.integers(1 << 64, dtype=np.uint64) | np.uint64(1)
            hashes = values * factor >> shift
            if len(np.unique(hashes)) == len(palette):
                break
        table = np.zeros(1 << 64 - int(shift), np.uint16)
        table[hashes] = np.arange(len(palette))
        return cls(factor, shift, table)

    def places(self, values: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.uint16]:
        """The places of ``values`` (any shape) in the palette; a value that it lacks gets an arbitrary place."""
        found: npt.NDArray[np.uint16] = self.table[values.astype(np.uint64) * self.factor >> self.shift]
        return found


def places_in(
    palette: npt.NDArray[np.signedinteger], contributions: npt.NDArray[np.signedinteger]
) -> npt.NDArray[np.uint16]:
    """The places (P,) of ``contributions`` in the ``palette``, which has all of them."""
    lookup, places = _Lookup.of(palette), np.empty(len(contributions), np.uint16)

    def find(part: slice) -> None:
        places[part] = lookup.places(contributions[part])

    on_spans(0, len(places), find)
    return places


def entry_words(rows: StaticRows, target: int, palette: npt.NDArray[Any] | None) -> npt.NDArray[np.int32]:
    """The entries of ``rows`` (P,) as words of ``target`` bits of target and a contribution, or its place."""
    words = np.empty(len(rows.targets), np.int32)
    lookup = None if palette is None else _Lookup.of(palette)

    def join(part: slice) -> None:
        some = rows.contributions[part]
        high = some if lookup is None else lookup.places(some)
        words[part] = ((high.astype(np.int64) << target) | rows.targets[part]).astype(np.int32)

    on_spans(0, len(words), join)
    return words


def amounts_of(words: npt.NDArray[Any], target: int, palette: npt.NDArray[Any] | None) -> npt.NDArray[np.int64]:
    """The contributions in ``words``, those of entries or of a calendar."""
    if palette is None:
        return words.astype(np.int64) >> target
    amounts: npt.NDArray[np.int64] = palette[words.view(np.uint32) >> np.uint32(target)].astype(np.int64)
    return amounts
