"""Queues per owner (``kernels.queues``): a block owns a range of neurons and adds up their sums in shared memory.

Additions there do not care how wide a sum is or how many neurons there are, so queues pay where the slot of the FCL
exceeds the L2 cache, and where delays are kept on the sender's side: each costs sorting the contributions by owner.
"""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.args import PARAMETERS
from burstproof.engine.cuda.plan.block_size import LONG_ROW, FusedShape
from burstproof.engine.cuda.plan.buffers import NetworkSizes
from burstproof.engine.cuda.plan.variant import MOST_RECALLED, OwnerQueues, Variant
from burstproof.engine.cuda.plan.word import Word

_SHARED_BYTES = 200 << 10
"""Shared memory that an owner's sums may take."""
_OWNERS = 264
"""Owners where their sums fit: two for each multiprocessor of the largest devices."""
_MOST_OWNERS = 512
LOCAL_BITS = 16
_WIDE_AMOUNT_BITS = 47
_HALF_BITS = 31
_SHAPE, _SHAPE_OF_COLUMNS = FusedShape(512, 4), FusedShape(512, 1)
"""Block of an owner; and where neurons have many parameters of their own."""
_FEW_COLUMNS = 3
_LEAST_NEURONS = 700_000


def with_queues(variant: Variant, sizes: NetworkSizes) -> Variant:
    """``variant`` with queues per owner where they pay and hold every sum, else as it is."""
    variant = without_queues(variant)
    queues = _queues(variant, sizes) if _pays(variant, sizes) else None
    if queues is None:
        return variant
    word = Word(32) if variant.word.packed else variant.word
    return replace(variant, queues=queues, word=word, recalled=sizes.ring - 1, fused=_shape(sizes))


def without_queues(variant: Variant) -> Variant:
    """``variant`` as it is without queues."""
    queues = variant.queues
    return variant if queues is None else replace(variant, queues=None, word=queues.word, fused=queues.shape)


def _shape(sizes: NetworkSizes) -> FusedShape:
    return _SHAPE if len(PARAMETERS) - len(sizes.uniform) <= _FEW_COLUMNS else _SHAPE_OF_COLUMNS


def _pays(variant: Variant, sizes: NetworkSizes) -> bool:
    if variant.streamed or not sizes.static_entries or (sizes.ring > 2 and sizes.longest_row > LONG_ROW):
        return False
    return sizes.ring - 1 <= MOST_RECALLED and sizes.neurons >= _LEAST_NEURONS


def _queues(variant: Variant, sizes: NetworkSizes) -> OwnerQueues | None:
    """The queues of a network; ``None`` where a word of its sums does not fit."""
    low_bits = 0
    if variant.word.beside:
        return None
    if variant.word.bits == 64:
        low_bits = _HALF_BITS - (sizes.in_degree + 2).bit_length()
        if low_bits < 1 or sizes.sum_bits + variant.word.mark_bits >= low_bits + _HALF_BITS:
            return None
    wide = variant.contribution_bits > 32 - LOCAL_BITS
    if variant.contribution_bits == 64 and sizes.sum_bits > _WIDE_AMOUNT_BITS:
        return None
    chunk, neuron_bytes = _shape(sizes).chunk, 8 if low_bits else 4
    most = min(_SHARED_BYTES // neuron_bytes, 1 << LOCAL_BITS) // chunk * chunk
    span = min(-(-sizes.neurons // (_OWNERS * chunk)) * chunk, most)
    owners = -(-sizes.neurons // span)
    if owners > _MOST_OWNERS or variant.fused is None:
        return None
    return OwnerQueues(owners, span, low_bits, wide, variant.word, variant.fused)
