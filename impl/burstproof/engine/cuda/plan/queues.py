"""Queues per owner (``kernels.queues``): a block owns a range of neurons and adds up their sums in shared memory.

Additions there do not care how wide a sum is or how many neurons there are, so queues pay where sums take much memory,
and where much fires. What they cost is sorting by owner.
"""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.cuda.plan.buffers import NetworkSizes, bucket_room, queue_room
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, can_be_recalled, in_columns
from burstproof.engine.cuda.plan.word import Word

_SHARED_BYTES = 216 << 10
"""Shared memory that an owner's sums may take, of the 227 KB that a block of an H200 can get."""
_OWNERS = 132
"""Owners where their sums fit: one for each multiprocessor of an H200."""
_MOST_OWNERS = 2048
LOCAL_BITS = 16
ENQUEUE_THREADS, ENQUEUE_BLOCKS, ENQUEUE_REGISTERS = 1024, 1, 64
"""Threads of a block that sorts contributions by owner, such blocks on a multiprocessor, registers of a thread."""
_BIN_BYTES, _MOST_BIN_ROOM = 188 << 10, 383
"""Shared memory of such a block's bins, and entries of a bin: an odd number, so that bins begin at different banks."""
_SORTING_BYTES = 38 << 10
"""Other shared memory of such a block."""
_WIDE_AMOUNT_BITS = 47
_HALF_BITS = 31
_OTHER_BYTES = 2048
_SHAPE, _RECORDED_SHAPE, _FEATURED_SHAPE = FusedShape(1024, 3), FusedShape(1024, 2), FusedShape(512, 4)
"""Blocks of an owner: a thread has 64 registers, or 128, which neurons with features may need. While it has the neurons
of a chunk at hand, those of the next one are on their way; records leave registers for fewer."""
MANY_NEURONS, _FEWEST_NEURONS, _LEAST_EVENTS = 4_000_000, 200_000, 1_500_000
"""Neurons from which queues were faster on an H200 whatever fires, without delays and even with the narrowest sums; of
fewer, but not of less than the second number, those whose bursts have at least so many contributions."""
_US_PER_EVENT = 5e-6
"""What queues gained there with each contribution beyond those, and lost with each that was missing."""
_US_PER_SPILL = 2.4e-5
"""What a contribution cost there that queues had no room for: at 54 % of 50 M neurons a burst took 60 ms, not 10."""
_LEAST_SLOT = 11 << 20
"""Bytes of a slot of the FCL from which queues were faster there whatever fires: 3 M neurons with sums of 32 bits."""
_LEAST_RECALLING_SLOT, _LEAST_RECALLING_NEURONS, _NARROW_BITS = (32 << 20) + 1, 5_000_000, 8
"""Bytes of a slot from which they were faster with delays on the sender's side; or neurons, with sums of more bits."""
_MOST_ENTRIES = 1 << 32
_LONG_PART, _LONGEST_NOTED = 32, 256
"""Entries that a row delivers in one burst, in the mean and at most, from which on the row of an entry is looked up
faster than it is written down."""
_FEW_TURNS = 4
"""Up to so many owners per multiprocessor, run in turn, all own equally many neurons: no turn is half empty."""


def with_queues(
    variant: Variant, sizes: NetworkSizes, *, buckets: bool = True, sources: int = 0, needed: bool = False
) -> Variant:
    """``variant`` with queues per owner where they pay, or are ``needed``, and hold every sum, else as it is.

    Delays above 1 are put off to ``buckets``, if it may have those and each entry has a contribution of its own. Rows
    are those of so many ``sources`` (0: of the neurons).
    """
    variant = without_queues(variant)
    buckets = buckets and sizes.ring > 2 and not variant.uniform_rows and sizes.static_entries < _MOST_ENTRIES
    if variant.fused is None or not (needed or _pays(variant, sizes, buckets=buckets)):
        return variant
    low_bits = _low_bits(variant, sizes)
    bits = _entry_bits(variant, sizes)
    too_wide = bits == 64 and variant.contribution_bits == 64 and sizes.sum_bits > _WIDE_AMOUNT_BITS
    if low_bits is None or too_wide:
        return variant
    neuron_bytes = 8 if low_bits else 4
    shape = _shape(variant)
    chunk = shape.chunk
    most = min(_SHARED_BYTES // neuron_bytes, 1 << LOCAL_BITS) // chunk * chunk
    turns = -(-sizes.neurons // (_OWNERS * most))
    equal = -(-sizes.neurons // (_OWNERS * turns * chunk)) * chunk
    span = equal if turns <= _FEW_TURNS else most
    owners = -(-sizes.neurons // span)
    if owners * max(bits, 32) > _MOST_OWNERS * 32:
        return variant
    part = max(1, sizes.static_entries // ((sources or sizes.neurons) * (sizes.ring - 1)))
    room = min(8 * _BIN_BYTES // (bits * owners), _MOST_BIN_ROOM) - 1 | 1
    notes = part < _LONG_PART and sizes.longest_row // (sizes.ring - 1) < _LONGEST_NOTED
    queues = OwnerQueues(owners, span, low_bits, bits, part, room, variant.word, variant.fused, notes_parts=notes)
    if buckets:
        queues = replace(queues, rows_put_off=_rows_put_off(variant, sizes, owners * room))
    word = Word(32) if variant.word.packed else variant.word
    return replace(variant, queues=queues, word=word, recalled=sizes.ring - 1, long_rows=0, fused=shape)


def _shape(variant: Variant) -> FusedShape:
    if variant.extras:
        return _FEATURED_SHAPE
    return _RECORDED_SHAPE if variant.record.words else _SHAPE


def without_queues(variant: Variant) -> Variant:
    """``variant`` as it is without queues."""
    queues = variant.queues
    return variant if queues is None else replace(variant, queues=None, word=queues.word, fused=queues.shape)


def lost_us(variant: Variant, sizes: NetworkSizes, bursts: int, events: float) -> float:
    """Microseconds that ``bursts`` with ``events`` contributions in all take longer than with queues, or without them.

    Negative where what the ``variant`` has is the better way: queues are, unless they have too little room.
    """
    gained = (events - bursts * _LEAST_EVENTS) * _US_PER_EVENT
    if variant.queues is None:
        return gained
    spilled = max(0.0, events - bursts * room_for_events(variant, sizes))
    return spilled * _US_PER_SPILL if spilled else -gained


def room_for_events(variant: Variant, sizes: NetworkSizes) -> int:
    """Contributions of a burst that the queues of all owners, and buckets, have room for; 0 without queues."""
    if variant.queues is None:
        return 0
    queued = queue_room(sizes, variant) * variant.queues.owners
    return min(queued, bucket_room(sizes, variant)) if variant.queues.rows_put_off else queued


def block_bytes(variant: Variant) -> int:
    """Most shared memory of a block, 0 without queues: of one that owns neurons, or of one that sorts by owner."""
    if variant.queues is None or variant.fused is None:
        return 0
    owning = variant.queues.shared_bytes + _OTHER_BYTES
    return max(owning, variant.queues.bin_bytes + _SORTING_BYTES)


def _pays(variant: Variant, sizes: NetworkSizes, *, buckets: bool) -> bool:
    delayed, bits = sizes.ring > 2, variant.word.bits
    if variant.streamed or not sizes.static_entries or (variant.extras and not delayed):
        return False
    if delayed and not can_be_recalled(sizes.longest_row, sizes.ring - 1):
        return False
    if delayed and not buckets:
        slot = sizes.neurons * bits // 8
        return slot >= _LEAST_RECALLING_SLOT or (sizes.neurons >= _LEAST_RECALLING_NEURONS and bits > _NARROW_BITS)
    return is_large(sizes, bits) or (much_fires(sizes) and not variant.extras)


def is_large(sizes: NetworkSizes, bits: int) -> bool:
    """Whether there are so many neurons, with sums of ``bits``, that queues are faster whatever fires."""
    return sizes.neurons * bits // 8 >= _LEAST_SLOT or (sizes.ring <= 2 and sizes.neurons >= MANY_NEURONS)


def much_fires(sizes: NetworkSizes) -> bool:
    """Whether so much is expected to fire that queues are faster, however many neurons there are."""
    return sizes.neurons >= _FEWEST_NEURONS and sizes.events >= _LEAST_EVENTS


def _rows_put_off(variant: Variant, sizes: NetworkSizes, numbers: int) -> int:
    """Rows whose entries, sources and places by delay take no more than so many ``numbers`` of shared memory."""
    places = 1 << max(sizes.ring - 2, 0).bit_length()
    return numbers // (1 + places + sizes.longest_row * (1 + in_columns(variant)))


def _entry_bits(variant: Variant, sizes: NetworkSizes) -> int:
    """``OwnerQueues.entry_bits``."""
    if variant.uniform_rows and sizes.common_contribution:
        return LOCAL_BITS
    return 64 if variant.contribution_bits > 32 - LOCAL_BITS and not variant.palette else 32


def _low_bits(variant: Variant, sizes: NetworkSizes) -> int | None:
    """``OwnerQueues.low_bits``; ``None`` where two words of 32 bits do not hold every sum, marks included."""
    if variant.word.beside:
        return None
    if variant.word.bits < 64:
        return 0
    low_bits = _HALF_BITS - (sizes.in_degree + 2).bit_length()
    return low_bits if low_bits > 0 and sizes.sum_bits + variant.word.mark_bits < low_bits + _HALF_BITS else None
