"""How a network is laid out on a device, by its sizes: the way of delivery, entries of rows, words and parameters."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.block_size import LONG_ROW, WARP, warp_row
from burstproof.engine.cuda.plan.buffers import NetworkSizes, calendar_room, calendar_shift
from burstproof.engine.cuda.plan.columns import ALWAYS_READ, PARAMETERS
from burstproof.engine.cuda.plan.entries import PLACE_BITS, WORD_BITS, fits_beside, indexed_beside, target_bits
from burstproof.engine.cuda.plan.queues import with_queues, without_queues
from burstproof.engine.cuda.plan.variant import Variant, can_be_recalled

_UNTILED_BYTES = 32 << 20
_TILE_BYTES = 25_000_000
_RING_BYTES = 24 << 20
"""Largest ring of slots that stays in the L2 cache beside what else a burst reads."""
_FEW_DELAYS = 2
"""Up to so many different delays, the slots that a burst reaches stay there, however many there are between them."""
_CALENDAR_BYTES = 16 << 30
"""Most memory for a calendar."""
_MOST_TILES = 5
"""Of a bucket: with more, queues per owner are kept; with up to so many, a calendar was faster on an H200."""
CALENDAR, ROOMY_CALENDAR, QUEUES, BUCKETS = "calendar", "roomy calendar", "queues", "buckets"
"""What a variant may be sized ``without``, where the device has no room for it."""
_FEW_NEURONS = 200_000
"""Up to here a burst waits for loads, not for sectors: all parameters are loaded at once, before a draw decides."""


def sized(
    variant: Variant, sizes: NetworkSizes, *, recalls: bool = True, without: frozenset[str] = frozenset()
) -> Variant:
    """``variant`` for ``sizes``: how it keeps to the cache, unless rows are long or in host memory.

    Where the slots that a burst reaches exceed it, what arrives later waits in a calendar, if that is small enough: one
    whose buckets have room for every synapse, or one in tiles. Else delays are kept on the sender's side, if the burst
    ``recalls`` its lists. Where one slot does, it is tiled. Where queues per owner pay, it has those instead, if the
    burst recalls its lists. ``without`` names what it must not have. On one device, rows that are sent in one piece,
    through a calendar or queues, have entries of one word where that has room; through queues, else places of 16 bits
    in a palette.
    """
    skipped = {*PARAMETERS} - sizes.uniform - ALWAYS_READ
    sleepy = variant.features.excitabilities and bool(skipped) and sizes.neurons > _FEW_NEURONS
    together = variant.fused is not None and sizes.neurons <= _FEW_NEURONS
    variant = replace(variant, uniform=sizes.uniform, narrow=sizes.narrow - sizes.uniform)
    variant = replace(variant, may_sleep=sleepy, together=together)
    variant = replace(variant, target_bits=0, palette=False)
    variant = without_queues(replace(variant, calendar=0, calendar_bits=0, calendar_tiles=0))
    if variant.fused is None:
        return variant
    equal = sizes.static_entries == sizes.neurons * sizes.longest_row
    variant = replace(
        variant,
        fused=variant.fused.for_columns(len(PARAMETERS) - len(sizes.uniform)),
        long_rows=warp_row(sizes.neurons) if sizes.longest_row > LONG_ROW else 0,
        row_length=sizes.longest_row if equal else 0,
        equal_rows=variant.uniform_rows and sizes.common_contribution != 0,
    )
    variant = with_words(variant, sizes) if recalls and not variant.streamed else variant
    longest, slot = sizes.ring - 1, sizes.neurons * variant.word.bits // 8
    short = 0 < sizes.longest_row <= LONG_ROW and not variant.streamed
    kept = recalls and short and longest > 1 and can_be_recalled(sizes.longest_row, longest)
    far = kept and slots_reached(sizes) * slot > _RING_BYTES
    queued = (
        with_queues(variant, sizes, buckets=BUCKETS not in without) if recalls and QUEUES not in without else variant
    )
    if far and CALENDAR not in without and not (queued.queues and queued.queues.rows_put_off):
        variant = _with_calendar(variant, sizes, roomy=ROOMY_CALENDAR not in without)
    variant = variant if variant.calendar else queued
    tiles, recalled = 0, 0
    if variant.queues is not None:
        recalled = variant.recalled
    elif short and not variant.calendar:
        recalled = longest if far else 0
        tiles = -(-slot // _TILE_BYTES) if slot > _UNTILED_BYTES and not recalled else 0
    per_pass = sizes.static_entries / max(sizes.neurons, 1) / max(tiles, recalled, 1)
    share = 1
    while share < min(per_pass, WARP) and (tiles or recalled):
        share *= 2
    if (tiles or recalled or variant.placed) and variant.queues is None:
        variant = replace(variant, target_bits=0, palette=False)
    return replace(variant, tiles=tiles, recalled=recalled, tile_share=share)


def slots_reached(sizes: NetworkSizes) -> int:
    """Slots of a ring that have to be in the cache."""
    return min(sizes.ring, sizes.distinct_delays + 1) if sizes.distinct_delays <= _FEW_DELAYS else sizes.ring


def with_words(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` with entries of one word, where contributions differ and have room, or with places in a palette."""
    bits = target_bits(sizes.neurons)
    beside = fits_beside(bits, sizes.largest_contribution)
    if variant.uniform_rows:
        return variant
    if beside or indexed_beside(bits, sizes.palette):
        return replace(variant, target_bits=bits, palette=not beside)
    return replace(variant, palette=sizes.palette > 0 and variant.contribution_bits > PLACE_BITS)


def _with_calendar(variant: Variant, sizes: NetworkSizes, *, roomy: bool) -> Variant:
    """``variant`` with a calendar, unless it would take too much: ``roomy`` if it may be, or else in tiles."""
    cell, made = variant.word.bits / 8, replace(variant, calendar=1 << (sizes.ring - 2).bit_length())
    tiles = 1
    if sizes.neurons * cell > _UNTILED_BYTES:
        tiles = -(-sizes.neurons // (1 << (int(_TILE_BYTES / cell).bit_length() - 1)))
    most = 1 if variant.extras else _MOST_TILES
    few = tiles <= most and sizes.static_entries < 1 << 32 and not variant.word.beside
    for choice in [made] * (roomy and tiles == 1) + [replace(made, calendar_tiles=tiles)] * few:
        needed = calendar_shift(sizes, choice) + sizes.largest_contribution.bit_length() + 1
        if variant.target_bits:
            needed = WORD_BITS
        choice = replace(choice, calendar_bits=32 if needed <= 32 else 64)
        words = choice.calendar * max(1, choice.calendar_tiles) * calendar_room(sizes, choice)
        if needed <= 64 and words * choice.calendar_bits // 8 <= _CALENDAR_BYTES:
            return choice
    return variant
