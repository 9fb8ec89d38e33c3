"""What of a variant follows from the sizes: common parameters, and tiles of the propagation (``kernels.tiles``)."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.args import PARAMETERS
from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.buffers import NetworkSizes
from burstproof.engine.cuda.plan.queues import with_queues, without_queues
from burstproof.engine.cuda.plan.variant import MOST_RECALLED, Variant

_UNTILED_BYTES = 32 << 20
_TILE_BYTES = 25_000_000
_RING_BYTES = 24 << 20
"""Largest ring of slots that stays in the L2 cache beside what else a burst reads."""
_WARP = 32


def sized(variant: Variant, sizes: NetworkSizes, *, recalls: bool = True, queues: bool = True) -> Variant:
    """``variant`` for ``sizes``: how it keeps to the cache, unless rows are long or in host memory.

    Where the slots of all delays exceed it, delays are kept on the sender's side, if the burst ``recalls`` its lists;
    where one slot does, it is tiled. A burst that recalls its lists may also have ``queues`` per owner.
    """
    variant = replace(variant, uniform=sizes.uniform)
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
    tiles, recalled = 0, 0
    if variant.queues is not None:
        recalled = variant.recalled
    elif not variant.streamed and short:
        longest = sizes.ring - 1
        far = recalls and sizes.ring * slot > _RING_BYTES
        recalled = longest if far and 1 < longest <= MOST_RECALLED else 0
        tiles = -(-slot // _TILE_BYTES) if slot > _UNTILED_BYTES and not recalled else 0
    per_pass = sizes.static_entries / max(sizes.neurons, 1) / max(tiles, recalled, 1)
    share = 1
    while share < min(per_pass, _WARP) and (tiles or recalled):
        share *= 2
    return replace(variant, tiles=tiles, recalled=recalled, tile_share=share)
