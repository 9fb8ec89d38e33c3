"""What of a variant follows from the sizes: common parameters, and tiles of the propagation (``kernels.tiles``)."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.buffers import NetworkSizes
from burstproof.engine.cuda.plan.variant import Variant

_UNTILED_BYTES = 32 << 20
_TILE_BYTES = 25_000_000
_WARP = 32


def sized(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` for ``sizes``; tiled where an FCL slot exceeds the cache, unless rows are long or in host memory."""
    variant = replace(variant, uniform=sizes.uniform)
    if variant.fused is None:
        return variant
    equal = sizes.static_entries == sizes.neurons * sizes.longest_row
    variant = replace(
        variant,
        long_rows=sizes.longest_row > LONG_ROW,
        row_length=sizes.longest_row if equal else 0,
    )
    slot = sizes.neurons * variant.word.bits // 8
    short = 0 < sizes.longest_row <= LONG_ROW
    if variant.streamed or slot <= _UNTILED_BYTES or not short:
        return replace(variant, tiles=0, tile_share=1)
    tiles = -(-slot // _TILE_BYTES)
    per_pass = sizes.static_entries / sizes.neurons / tiles
    share = 1
    while share < min(per_pass, _WARP):
        share *= 2
    return replace(variant, tiles=tiles, tile_share=share)
