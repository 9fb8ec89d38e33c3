"""What of a variant follows from the sizes: common parameters, and tiles of the propagation (``kernels.tiles``)."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.args import PARAMETERS
from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.buffers import NetworkSizes, calendar_room, target_bits
from burstproof.engine.cuda.plan.queues import with_queues, without_queues
from burstproof.engine.cuda.plan.variant import MOST_RECALLED, Variant

_UNTILED_BYTES = 32 << 20
_TILE_BYTES = 25_000_000
_RING_BYTES = 24 << 20
"""Largest ring of slots that stays in the L2 cache beside what else a burst reads."""
_CALENDAR_BYTES = 16 << 30
"""Most memory for the queues of a calendar."""
_MOST_TILES = 16
"""Of a calendar; a block counts its entries by delay and tile in shared memory."""
_FEW_NEURONS = 200_000
"""Up to here a burst waits for loads, not for sectors: those that depend on a draw come later."""
_WARP = 32


def sized(
    variant: Variant, sizes: NetworkSizes, *, recalls: bool = True, calendar: bool = True, queues: bool = True
) -> Variant:
    """``variant`` for ``sizes``: how it keeps to the cache, unless rows are long or in host memory.

    Where the slots of all delays exceed it, what arrives later waits in the queues of a ``calendar``, if there may be
    one and it is small enough; else delays are kept on the sender's side, if the burst ``recalls`` its lists. Where one
    slot does, it is tiled, and so is the calendar; or a burst that recalls its lists has ``queues`` per owner.
    """
    skipped = {*PARAMETERS} - sizes.uniform - {"decays", "mp_charge_accumulation"}
    sleepy = variant.features.excitabilities and bool(skipped) and sizes.neurons > _FEW_NEURONS
    variant = replace(variant, uniform=sizes.uniform, may_sleep=sleepy)
    if variant.fused is None:
        return variant
    equal = sizes.static_entries == sizes.neurons * sizes.longest_row
    variant = replace(
        variant,
        fused=variant.fused.for_columns(len(PARAMETERS) - len(sizes.uniform)),
        long_rows=sizes.longest_row > LONG_ROW,
        row_length=sizes.longest_row if equal else 0,
    )
    variant = with_queues(variant, sizes) if recalls and queues else without_queues(variant)
    slot = sizes.neurons * variant.word.bits // 8
    short = 0 < sizes.longest_row <= LONG_ROW
    variant = replace(variant, calendar=0, calendar_bits=0, calendar_tiles=1)
    tiles, recalled = 0, 0
    if variant.queues is not None:
        recalled = variant.recalled
    elif not variant.streamed and short:
        longest = sizes.ring - 1
        far = sizes.ring * slot > _RING_BYTES and 1 < longest <= MOST_RECALLED
        variant = _with_calendar(variant, sizes) if far and calendar else variant
        recalled = longest if far and recalls and not variant.calendar else 0
        tiles = -(-slot // _TILE_BYTES) if slot > _UNTILED_BYTES and not (recalled or variant.calendar) else 0
    per_pass = sizes.static_entries / max(sizes.neurons, 1) / max(tiles, recalled, 1)
    share = 1
    while share < min(per_pass, _WARP) and (tiles or recalled):
        share *= 2
    return replace(variant, tiles=tiles, recalled=recalled, tile_share=share)


def _with_calendar(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` with a calendar, unless its words or its queues would take too much."""
    cell, tiles = variant.word.bits / 8, 1
    if sizes.neurons * cell > _UNTILED_BYTES:
        tiles = -(-sizes.neurons // (1 << (int(_TILE_BYTES / cell).bit_length() - 1)))
    with_tiles = replace(variant, calendar=1 << (sizes.ring - 2).bit_length(), calendar_tiles=tiles)
    needed = target_bits(sizes.neurons, with_tiles) + sizes.largest_contribution.bit_length() + 1
    if needed > 64 or tiles > _MOST_TILES or sizes.static_entries >= 1 << 32:
        return variant
    made = replace(with_tiles, calendar_bits=32 if needed <= 32 else 64)
    taken = made.calendar * tiles * calendar_room(sizes, made) * made.calendar_bits // 8
    return made if taken <= _CALENDAR_BYTES else variant
