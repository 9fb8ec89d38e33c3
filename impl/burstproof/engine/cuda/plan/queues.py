"""Queues per owner (``kernels.queues``): a block owns a range of neurons and adds up their sums in shared memory.

Additions in shared memory are fast for any width of the sums and any number of neurons, so queues pay if sums take much
memory, or if much fires. Their cost is sorting by owner.
"""

from __future__ import annotations

from dataclasses import replace

from burstproof.engine.cuda.plan.block_size import ENQUEUE_THREADS, FusedShape
from burstproof.engine.cuda.plan.buffers import NetworkSizes, bucket_room, queue_room
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, can_be_recalled, in_columns
from burstproof.engine.cuda.plan.word import Word

_SHARED_BYTES = 216 << 10
"""Shared memory that an owner's sums may take, of the 227 KB that a block of an H200 can get."""
_OWNERS = 132
"""Owners if their sums fit: one for each multiprocessor of an H200."""
_MOST_OWNERS = 2048
"""Most owners, if entries have up to 32 bits; half as many with 64."""
LOCAL_BITS = 16
"""Bits of a queue entry that hold the target within its owner."""
_BLOCK_BYTES, _BIN_BYTES, _MOST_BIN_ROOM = 226 << 10, 216 << 10, 447
"""Shared memory of a block that sorts by owner, most of it for bins, and most entries of a bin: odd, so bins begin at
different banks. The larger bins are, the fewer times they are flushed."""
_MOST_PARTS, _FEW_PARTS, _FILLED = 2048, 1024, 0.9
"""Parts of rows (``kernels.windows``) that such a block takes at a time: few if a part takes much shared memory, or if
those expected in a burst fill at most so much of the room for few. That leaves more for bins."""
_WIDE_AMOUNT_BITS = 47
_HALF_BITS = 31
_OTHER_BYTES = 2048
_SHAPE, _RECORDED_SHAPE, _FEATURED_SHAPE = FusedShape(1024, 3), FusedShape(1024, 2), FusedShape(512, 4)
"""Blocks of an owner. A thread has 64 registers, or 128, which neurons with features may need. It loads the neurons of
the next chunk while it has those of one at hand; records leave registers for fewer."""
MANY_NEURONS, _FEWEST_NEURONS, _LEAST_EVENTS = 4_000_000, 200_000, 1_500_000
"""Without delays, queues were faster on an H200 from ``MANY_NEURONS`` on, however little fires and however narrow sums
are. With fewer neurons, but at least ``_FEWEST_NEURONS``, they were from so many contributions a burst on."""
_US_PER_EVENT = 5e-6
"""Time that queues gained there with each contribution above ``_LEAST_EVENTS``, and lost with each one below."""
_US_PER_SPILL = 2.4e-5
"""Cost there of a contribution that queues had no room for: at 54 % of 50 M neurons a burst took 60 ms, not 10."""
_LEAST_SLOT = 11 << 20
"""Bytes of an FCL slot from which queues were faster there, however little fires: 3 M neurons with sums of 32 bits."""
_LEAST_RECALLING_SLOT, _LEAST_RECALLING_NEURONS, _NARROW_BITS = (32 << 20) + 1, 5_000_000, 8
"""With delays on the sender's side, bytes of a slot from which they were; or neurons, if sums have more bits."""
_MOST_ENTRIES = 1 << 32
_LONG_PART, _LONGEST_NOTED = 32, 256
"""Entries that a row delivers in one burst, in the mean and at most, from which it is faster to search for the row of
an entry than to note it."""
_FEW_TURNS = 4
"""With at most so many owners per multiprocessor, run in turn, all own equally many neurons: no turn is half empty."""


def with_queues(
    variant: Variant, sizes: NetworkSizes, *, buckets: bool = True, sources: int = 0, needed: bool = False
) -> Variant:
    """``variant`` with queues per owner if they pay, or are ``needed``, and hold every sum; otherwise without.

    Parameters
    ----------
    buckets : bool
        Whether delays above 1 may be put off to buckets: they are, if each entry has a contribution of its own.
    sources : int
        Number of rows; 0: as many as neurons.
    """
    variant, longest_delay = without_queues(variant), sizes.ring - 1
    buckets = buckets and longest_delay > 1 and not variant.uniform_rows and sizes.static_entries < _MOST_ENTRIES
    if variant.fused is None or not (needed or _pays(variant, sizes, buckets=buckets)):
        return variant
    low_bits, bits = _low_bits(variant, sizes), _entry_bits(variant, sizes)
    too_wide = bits == 64 and variant.contribution_bits == 64 and sizes.sum_bits > _WIDE_AMOUNT_BITS
    if low_bits is None or too_wide:
        return variant
    shape = _shape(variant)
    span = _span(sizes.neurons, shape.chunk, neuron_bytes=8 if low_bits else 4)
    owners = -(-sizes.neurons // span)
    if owners * max(bits, 32) > _MOST_OWNERS * 32:
        return variant
    part = max(1, sizes.static_entries // ((sources or sizes.neurons) * longest_delay))
    notes = part < _LONG_PART and sizes.longest_row // longest_delay < _LONGEST_NOTED
    queues = OwnerQueues(owners, span, low_bits, bits, part, 1, variant.word, variant.fused, notes_parts=notes)
    queues = _with_bins(queues, variant, (sources or sizes.neurons) * longest_delay * sizes.firing_rate)
    if buckets:
        queues = replace(queues, rows_put_off=_rows_put_off(variant, sizes, owners * queues.bin_room))
    word = Word(32) if variant.word.packed else variant.word
    return replace(variant, queues=queues, word=word, recalled=longest_delay, long_rows=0, fused=shape)


def _with_bins(queues: OwnerQueues, variant: Variant, parts_expected: float) -> OwnerQueues:
    """``queues`` with the most parts that a block takes at a time, and bins as large as these leave room for."""
    few = variant.uniform_rows or variant.offset_bits > 32 or parts_expected < _FILLED * _FEW_PARTS * _OWNERS
    queues = replace(queues, most_parts=_FEW_PARTS if few else _MOST_PARTS)
    spare_bytes = ENQUEUE_THREADS * queues.entry_bytes
    bin_bytes = min(_BIN_BYTES, _BLOCK_BYTES - spare_bytes - _other_bytes(variant, queues))
    return replace(queues, bin_room=min(bin_bytes // (queues.entry_bytes * queues.owners), _MOST_BIN_ROOM) - 1 | 1)


def _other_bytes(variant: Variant, queues: OwnerQueues) -> int:
    """Most shared memory of a block that sorts by owner, without its bins."""
    amount_bytes = 8 if variant.uniform_rows and queues.entry_bits > LOCAL_BITS else 0
    noted_bytes = (16 if queues.notes_parts else 8) << 10
    part_bytes = variant.offset_bits // 8 + 5 + amount_bytes
    return queues.most_parts * part_bytes + noted_bytes + 4 * queues.owners + _OTHER_BYTES


def _span(neurons: int, chunk: int, neuron_bytes: int) -> int:
    """Consecutive neurons of an owner, a multiple of ``chunk``: as many as fit, or fewer so that all own the same."""
    most = min(_SHARED_BYTES // neuron_bytes, 1 << LOCAL_BITS) // chunk * chunk
    turns = -(-neurons // (_OWNERS * most))
    if turns > _FEW_TURNS:
        return most
    return -(-neurons // (_OWNERS * turns * chunk)) * chunk


def _shape(variant: Variant) -> FusedShape:
    if variant.extras:
        return _FEATURED_SHAPE
    return _RECORDED_SHAPE if variant.record.words else _SHAPE


def without_queues(variant: Variant) -> Variant:
    """``variant`` with the word and the block that it has without queues."""
    queues = variant.queues
    return variant if queues is None else replace(variant, queues=None, word=queues.word, fused=queues.shape)


def lost_us(variant: Variant, sizes: NetworkSizes, bursts: int, events: float) -> float:
    """Microseconds that ``bursts`` with ``events`` contributions in all lose by the choice for or against queues.

    Negative if ``variant`` made the better choice. With queues that have too little room: the cost of what they spill.
    """
    gained = (events - bursts * _LEAST_EVENTS) * _US_PER_EVENT
    if variant.queues is None:
        return gained
    spilled = max(0.0, events - bursts * room_for_events(variant, sizes))
    return spilled * _US_PER_SPILL if spilled else -gained


def room_for_events(variant: Variant, sizes: NetworkSizes) -> int:
    """Contributions of one burst that the queues of all owners, and a bucket, have room for; 0 without queues."""
    if variant.queues is None:
        return 0
    queued = queue_room(sizes, variant) * variant.queues.owners
    return min(queued, bucket_room(sizes, variant)) if variant.queues.rows_put_off else queued


def block_bytes(variant: Variant) -> int:
    """Most shared memory that a block takes, one that owns neurons or one that sorts by owner; 0 without queues."""
    if variant.queues is None or variant.fused is None:
        return 0
    owning = variant.queues.shared_bytes + _OTHER_BYTES
    return max(owning, variant.queues.bin_bytes + _other_bytes(variant, variant.queues))


def _pays(variant: Variant, sizes: NetworkSizes, *, buckets: bool) -> bool:
    """Whether queues, with ``buckets`` or not, are faster than the other ways of delivery."""
    bits, longest_delay = variant.word.bits, sizes.ring - 1
    if variant.streamed or not sizes.static_entries:
        return False
    if longest_delay <= 1:
        return not variant.extras and (is_large(sizes, bits) or much_fires(sizes))
    if not can_be_recalled(sizes.longest_row, longest_delay):
        return False
    if buckets:
        return is_large(sizes, bits) or (much_fires(sizes) and not variant.extras)
    slot_bytes = sizes.neurons * bits // 8
    return slot_bytes >= _LEAST_RECALLING_SLOT or (sizes.neurons >= _LEAST_RECALLING_NEURONS and bits > _NARROW_BITS)


def is_large(sizes: NetworkSizes, bits: int) -> bool:
    """Whether there are so many neurons, with sums of ``bits``, that queues are faster however little fires."""
    return sizes.neurons * bits // 8 >= _LEAST_SLOT or (sizes.ring <= 2 and sizes.neurons >= MANY_NEURONS)


def much_fires(sizes: NetworkSizes) -> bool:
    """Whether so much is expected to fire that queues are faster, however many neurons there are."""
    return sizes.neurons >= _FEWEST_NEURONS and sizes.events >= _LEAST_EVENTS


def _rows_put_off(variant: Variant, sizes: NetworkSizes, numbers: int) -> int:
    """Rows whose sources, places by delay and entries fit into so many ``numbers`` of shared memory."""
    places = 1 << max(sizes.ring - 2, 0).bit_length()
    return numbers // (1 + places + sizes.longest_row * (1 + in_columns(variant)))


def _entry_bits(variant: Variant, sizes: NetworkSizes) -> int:
    """``OwnerQueues.entry_bits``."""
    if variant.uniform_rows and sizes.common_contribution:
        return LOCAL_BITS
    return 64 if variant.contribution_bits > 32 - LOCAL_BITS and not variant.palette else 32


def _low_bits(variant: Variant, sizes: NetworkSizes) -> int | None:
    """``OwnerQueues.low_bits``; ``None`` if two words of 32 bits cannot hold every sum, marks included."""
    if variant.word.beside:
        return None
    if variant.word.bits < 64:
        return 0
    low_bits = _HALF_BITS - (sizes.in_degree + 2).bit_length()
    return low_bits if low_bits > 0 and sizes.sum_bits + variant.word.mark_bits < low_bits + _HALF_BITS else None
