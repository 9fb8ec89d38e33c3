"""How a network is laid out on a device, by its sizes: the way of delivery, the entries of rows, and the parameters.

The ways of delivery and how they compare: docs/delivery.md.
"""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.block_size import LONG_ROW, WARP, warp_row
from burstproof.engine.cuda.plan.buffers import NetworkSizes, calendar_room, calendar_shift
from burstproof.engine.cuda.plan.columns import ALWAYS_READ, PARAMETERS
from burstproof.engine.cuda.plan.entries import PLACE_BITS, WORD_BITS, fits_beside, indexed_beside, target_bits
from burstproof.engine.cuda.plan.queues import with_queues, without_queues
from burstproof.engine.cuda.plan.variant import Variant, can_be_recalled

_UNTILED_BYTES = 32 << 20
"""Largest slot of the FCL that is not cut into tiles."""
_TILE_BYTES = 25_000_000
"""Largest tile of a slot."""
_RING_BYTES = 24 << 20
"""Largest ring of slots that stays in the L2 cache beside what else a burst reads."""
_FEW_DELAYS = 2
"""With at most so many different delays, the slots that a burst reaches stay in the cache, however long the ring is."""
_CALENDAR_BYTES = 16 << 30
"""Most memory for a calendar."""
_MOST_TILES = 5
"""Most tiles of a bucket: up to here a calendar was faster on an H200 than queues per owner."""
CALENDAR, ROOMY_CALENDAR, QUEUES, BUCKETS = "calendar", "roomy calendar", "queues", "buckets"
"""What a variant may be sized ``without``, if the device has no room for it."""
_FEW_NEURONS = 200_000
"""Up to here a burst waits for loads, not for sectors: all parameters are loaded at once, before a draw decides."""
_FEW_AWAKE = 0.05
"""Largest excitability at which neurons that may fire are few among four neurons of each thread of a warp."""


def sized(
    variant: Variant, sizes: NetworkSizes, *, ring_only: bool = False, without: frozenset[str] = frozenset()
) -> Variant:
    """``variant`` with all that follows from ``sizes``, in place of what an earlier sizing chose.

    Parameters
    ----------
    ring_only : bool
        Contributions go to the ring of slots, in tiles if a slot is large. The kernels of shards have no other way,
        except for queues (``shard_pack.queued``).
    without : frozenset of str
        What it must not have: ``CALENDAR``, ``ROOMY_CALENDAR`` (with room for every synapse in each bucket),
        ``QUEUES``, ``BUCKETS``.
    """
    variant = _with_columns(_unsized(variant), sizes)
    if variant.fused is None:
        return variant
    variant = _with_rows(variant, sizes)
    if variant.streamed:
        return variant
    if ring_only:
        return _with_tiles(variant, sizes) or variant
    return _with_delivery(variant, sizes, without)


def _unsized(variant: Variant) -> Variant:
    """``variant`` without the way of delivery that an earlier sizing chose."""
    variant = replace(without_queues(variant), calendar=0, calendar_bits=0, calendar_tiles=0)
    return replace(variant, tiles=0, tile_share=1, recalled=0, target_bits=0, palette=False)


def _with_columns(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` with its columns of parameters, and whether a burst reads them before or after the draw."""
    shape, few_neurons = variant.fused, sizes.neurons <= _FEW_NEURONS
    skippable = {*PARAMETERS} - sizes.uniform - ALWAYS_READ
    return replace(
        variant,
        uniform=sizes.uniform,
        narrow=sizes.narrow - sizes.uniform,
        may_sleep=variant.features.excitabilities and bool(skippable) and not few_neurons,
        few_awake=variant.features.excitabilities and sizes.largest_excitability <= _FEW_AWAKE,
        together=shape is not None and few_neurons,
        fused=None if shape is None else shape.for_columns(len(PARAMETERS) - len(sizes.uniform)),
    )


def _with_rows(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` with what its rows have in common, and the length from which they are sent in pieces."""
    equally_long = sizes.static_entries == sizes.neurons * sizes.longest_row
    return replace(
        variant,
        long_rows=warp_row(sizes.neurons) if sizes.longest_row > LONG_ROW else 0,
        row_length=sizes.longest_row if equally_long else 0,
        equal_rows=variant.uniform_rows and sizes.common_contribution != 0,
    )


def _with_delivery(variant: Variant, sizes: NetworkSizes, without: frozenset[str]) -> Variant:
    """``variant`` with the first of these ways that it may have and that pays.

    Queues with buckets; a calendar; queues without buckets; delays on the sender's side; tiles; the ring of slots.
    """
    longest_delay = sizes.ring - 1
    avoidable = longest_delay > 1 and _short_rows(sizes) and can_be_recalled(sizes.longest_row, longest_delay)
    avoid_ring = avoidable and slots_reached(sizes) * _slot_bytes(variant, sizes) > _RING_BYTES
    with_entries = with_row_entries(variant, sizes)
    words_or_columns = variant if with_entries.placed else with_entries  # only queues read places beside targets

    queued = variant if QUEUES in without else with_queues(with_entries, sizes, buckets=BUCKETS not in without)
    queues = queued.queues
    has_buckets = queues is not None and queues.rows_put_off > 0
    if avoid_ring and not has_buckets and CALENDAR not in without:
        calendar = _with_calendar(words_or_columns, sizes, roomy=ROOMY_CALENDAR not in without)
        if calendar is not None:
            return calendar
    if queues is not None:
        return _in_passes(queued, sizes, longest_delay)
    if avoid_ring:
        return _in_passes(replace(variant, recalled=longest_delay), sizes, longest_delay)
    return _with_tiles(variant, sizes) or words_or_columns


def _slot_bytes(variant: Variant, sizes: NetworkSizes) -> int:
    return sizes.neurons * variant.word.bits // 8


def _short_rows(sizes: NetworkSizes) -> bool:
    """Whether there are rows, none of which is sent in pieces."""
    return 0 < sizes.longest_row <= LONG_ROW


def slots_reached(sizes: NetworkSizes) -> int:
    """Slots of a ring that have to be in the cache."""
    return min(sizes.ring, sizes.distinct_delays + 1) if sizes.distinct_delays <= _FEW_DELAYS else sizes.ring


def with_row_entries(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` with the narrowest entries of rows whose contributions differ: one word, or targets and places."""
    if variant.uniform_rows:
        return variant
    bits = target_bits(sizes.neurons)
    fits = fits_beside(bits, sizes.largest_contribution)
    if fits or indexed_beside(bits, sizes.palette):
        return replace(variant, target_bits=bits, palette=not fits)
    return replace(variant, palette=sizes.palette > 0 and variant.contribution_bits > PLACE_BITS)


def _with_calendar(variant: Variant, sizes: NetworkSizes, *, roomy: bool) -> Variant | None:
    """``variant`` with a calendar: one with room for every synapse in each bucket, if it may be ``roomy``, or in tiles.

    ``None`` if neither fits.
    """
    tiles = 1
    if _slot_bytes(variant, sizes) > _UNTILED_BYTES:
        tile_cells = 8 * _TILE_BYTES // variant.word.bits
        tiles = -(-sizes.neurons // (1 << (tile_cells.bit_length() - 1)))  # each of a power of two of neurons
    few_tiles = tiles <= (1 if variant.extras else _MOST_TILES)
    can_be_tiled = few_tiles and sizes.static_entries < 1 << 32 and not variant.word.beside
    calendar = replace(variant, calendar=1 << (sizes.ring - 2).bit_length())
    assert variant.fused is not None
    shape = variant.fused if variant.extras else variant.fused.for_calendar  # features need more registers
    choices = [replace(calendar, fused=shape)] if roomy and tiles == 1 else []
    if can_be_tiled:
        choices.append(replace(calendar, calendar_tiles=tiles))
    for choice in choices:
        bits = calendar_shift(sizes, choice) + sizes.largest_contribution.bit_length() + 1
        bits = WORD_BITS if variant.target_bits else bits  # an entry is noted as it is
        choice = replace(choice, calendar_bits=32 if bits <= 32 else 64)
        words = choice.calendar * max(1, choice.calendar_tiles) * calendar_room(sizes, choice)
        if bits <= 64 and words * choice.calendar_bits // 8 <= _CALENDAR_BYTES:
            return choice
    return None


def _with_tiles(variant: Variant, sizes: NetworkSizes) -> Variant | None:
    """``variant`` with its rows delivered tile by tile; ``None`` if a slot is small, or rows go in pieces."""
    slot_bytes = _slot_bytes(variant, sizes)
    if not _short_rows(sizes) or slot_bytes <= _UNTILED_BYTES:
        return None
    tiles = -(-slot_bytes // _TILE_BYTES)
    return _in_passes(replace(variant, tiles=tiles), sizes, tiles)


def _in_passes(variant: Variant, sizes: NetworkSizes, passes: int) -> Variant:
    """``variant`` with a thread for each entry that a row has in one of ``passes``: a power of two, at most a warp."""
    entries = sizes.static_entries / max(sizes.neurons, 1) / passes
    share = 1
    while share < min(entries, WARP):
        share *= 2
    return replace(variant, tile_share=share)
