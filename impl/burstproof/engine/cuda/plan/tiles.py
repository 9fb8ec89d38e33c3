"""What of a variant follows from the sizes: common parameters, and tiles of the propagation (``kernels.tiles``)."""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.args import PARAMETERS
from burstproof.engine.cuda.plan.block_size import LONG_ROW
from burstproof.engine.cuda.plan.buffers import NetworkSizes, target_bits
from burstproof.engine.cuda.plan.variant import Variant

_UNTILED_BYTES = 32 << 20
_TILE_BYTES = 25_000_000
_RING_BYTES = 24 << 20
"""Largest ring of slots that stays in the L2 cache beside what else a burst reads."""
_MOST_RECALLED = 64
_QUEUE_BYTES = 16 << 30
"""Most memory for queues: each has room for all synapses, of which it holds those that fired so many bursts ago."""
_FEW_NEURONS = 200_000
"""Up to here a burst waits for loads, not for sectors: those that depend on a draw come later."""
_WARP = 32


def sized(variant: Variant, sizes: NetworkSizes, *, recalls: bool = True, queues: bool = True) -> Variant:
    """``variant`` for ``sizes``: how it keeps to the cache, unless rows are long or in host memory.

    Where the slots of all delays exceed it, what arrives later waits in queues, if there may be ``queues`` and they are
    small enough; else delays are kept on the sender's side, if the burst ``recalls`` its lists. Where one slot does, it
    is tiled.
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
    slot = sizes.neurons * variant.word.bits // 8
    short = 0 < sizes.longest_row <= LONG_ROW
    tiles, recalled, kept, queue_bits = 0, 0, 0, 0
    if not variant.streamed and short:
        longest = sizes.ring - 1
        far = recalls and sizes.ring * slot > _RING_BYTES
        recalled = longest if far and 1 < longest <= _MOST_RECALLED else 0
        if recalled and queues and slot <= _UNTILED_BYTES:
            queue_bits = _queue_bits(sizes)
            kept = 1 << (longest - 1).bit_length()
            if queue_bits and kept * sizes.static_entries * queue_bits // 8 <= _QUEUE_BYTES:
                recalled = 0
            else:
                kept = queue_bits = 0
        tiles = -(-slot // _TILE_BYTES) if slot > _UNTILED_BYTES and not recalled else 0
    per_pass = sizes.static_entries / max(sizes.neurons, 1) / max(tiles, recalled, 1)
    share = 1
    while share < min(per_pass, _WARP) and (tiles or recalled):
        share *= 2
    return replace(variant, tiles=tiles, recalled=recalled, tile_share=share, queues=kept, queue_bits=queue_bits)


def _queue_bits(sizes: NetworkSizes) -> int:
    """Width of a word with a target and a signed contribution: 32, 64, or 0 where none is wide enough."""
    needed = target_bits(sizes.neurons) + sizes.largest_contribution.bit_length() + 1
    return next((bits for bits in (32, 64) if needed <= bits), 0)
