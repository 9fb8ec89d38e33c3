"""Entries of rows as one word of 32 bits: a target in the low bits, above it a contribution or its place in a table.

Where contributions are too wide, the table, a *palette*, holds each distinct one once. It is small enough for the L1
cache. Rows are then read with one load an entry, and what a calendar notes is the entry as it lies. Where the places
do not fit beside a target either, they are a column of 16 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.layout import StaticRows
from burstproof.engine.spans import on_spans

WORD_BITS = 32
PLACE_BITS = 16
LARGEST_PALETTE = 1 << 12
_FEW_NEURONS = 200_000
"""Up to here a burst waits for loads, not for sectors: no load of a contribution waits for that of its entry."""
_PROBE = 1 << 16


def target_bits(neurons: int) -> int:
    """Bits of a target in the word of an entry, or of a calendar."""
    return max(1, (neurons - 1).bit_length())


def fits_beside(target: int, largest: int) -> bool:
    """Whether signed contributions up to ``largest`` in magnitude fit a word beside ``target`` bits."""
    return target + largest.bit_length() + 1 <= WORD_BITS


def needs_palette(neurons: int, largest: int) -> bool:
    """Whether rows with contributions up to ``largest`` are better off with a palette, if one has room."""
    return neurons > _FEW_NEURONS and not fits_beside(target_bits(neurons), largest)


def indexed_beside(target: int, entries: int) -> bool:
    """Whether places in a palette of ``entries``, if there is one, fit a word beside ``target`` bits."""
    return entries > 0 and target + max(1, (entries - 1).bit_length()) <= WORD_BITS


def palette_of(contributions: npt.NDArray[np.signedinteger]) -> npt.NDArray[np.signedinteger]:
    """The distinct ``contributions`` in ascending order; none where there are more than ``LARGEST_PALETTE``."""
    known = np.unique(contributions[:_PROBE])
    if len(known) <= LARGEST_PALETTE:

        def others(part: slice) -> npt.NDArray[np.signedinteger]:
            some = contributions[part]
            places = np.minimum(np.searchsorted(known, some), len(known) - 1)
            return np.unique(some[known[places] != some])

        known = np.unique(np.concatenate([known, *on_spans(_PROBE, len(contributions), others)]))
    return known if len(known) <= LARGEST_PALETTE else known[:0]


def places_in(
    palette: npt.NDArray[np.signedinteger], contributions: npt.NDArray[np.signedinteger]
) -> npt.NDArray[np.uint16]:
    """The places (P,) of ``contributions`` in the ``palette``, which has all of them."""
    places = np.empty(len(contributions), np.uint16)

    def find(part: slice) -> None:
        places[part] = np.searchsorted(palette, contributions[part])

    on_spans(0, len(places), find)
    return places


def entry_words(rows: StaticRows, target: int, palette: npt.NDArray[Any] | None) -> npt.NDArray[np.int32]:
    """The entries of ``rows`` (P,) as words of ``target`` bits of target and a contribution, or its place."""
    words = np.empty(len(rows.targets), np.int32)

    def join(part: slice) -> None:
        some = rows.contributions[part]
        high = some if palette is None else np.searchsorted(palette, some)
        words[part] = ((high.astype(np.int64) << target) | rows.targets[part]).astype(np.int32)

    on_spans(0, len(words), join)
    return words


def amounts_of(words: npt.NDArray[Any], target: int, palette: npt.NDArray[Any] | None) -> npt.NDArray[np.int64]:
    """The contributions in ``words``, those of entries or of a calendar."""
    if palette is None:
        return words.astype(np.int64) >> target
    amounts: npt.NDArray[np.int64] = palette[words.view(np.uint32) >> np.uint32(target)].astype(np.int64)
    return amounts
