"""What was chosen for a network when it was laid out, and why, in words for the record of a run."""

from __future__ import annotations

from collections.abc import Iterator

from burstproof.engine.cuda.plan.buffers import NetworkSizes, ring_slots, slot_stride
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.queues import MANY_NEURONS, is_large, much_fires, without_queues
from burstproof.engine.cuda.plan.sizing import slots_reached
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, lists_kept

_MEGABYTE = 1e6
_MILLION = 1e6


def choices_of(packed: Packed) -> str:
    """The choices for ``packed``, each with its reason."""
    return "; ".join(_choices(packed))


def _choices(packed: Packed) -> Iterator[str]:
    variant = packed.variant
    bits = without_queues(variant).word.bits
    slot_mb = slot_stride(packed.sizes.neurons, variant) * bits / 8 / _MEGABYTE
    yield _word(packed)
    if variant.target_bits or variant.palette:
        yield _entries(packed)
    if variant.queues is not None:
        yield _queues(variant, variant.queues, _why_queues(packed.sizes, bits, slot_mb))
    elif variant.delays:
        yield _delays(packed, slot_mb)
    elif variant.fused is not None and not (variant.tiles or variant.streamed):
        yield "contributions added to a slot of the FCL, which the cache holds"
    if variant.tiles:
        yield f"rows in {variant.tiles} tiles, since a slot takes {slot_mb:.0f} MB"
    if variant.streamed:
        yield "synapses in host memory"
    if variant.fused is None:
        reason = "contributions are computed" if variant.computed else "candidates are counted ahead"
        yield f"a burst in several kernels, since {reason}"
    if variant.plastic:
        yield _learning(packed)


def _queues(variant: Variant, queues: OwnerQueues, reason: str) -> str:
    delays = "with delays on the sender's side, " if variant.delays else ""
    if queues.rows_put_off:
        delays = f"with a bucket for each of {lists_kept(variant)} bursts, "
    return f"queues for {queues.owners} owners of {queues.span} neurons, {delays}since {reason}"


def _delays(packed: Packed, slot_mb: float) -> str:
    variant, sizes = packed.variant, packed.sizes
    reason = f"since a ring of {sizes.ring} slots would take {sizes.ring * slot_mb:.0f} MB"
    if variant.calendar:
        tiles = f" in {variant.calendar_tiles} tiles" if variant.calendar_tiles else ""
        words = f"{variant.calendar} buckets{tiles} of words of {variant.calendar_bits} bits"
        return f"later contributions in {words}, {reason}"
    if variant.recalled:
        return f"delays on the sender's side, {reason}"
    slots, reached = ring_slots(sizes, variant), slots_reached(sizes)
    few = f", of which a burst reaches {reached}" if reached < slots else ""
    return f"delays to {packed.layout.max_delay} in a ring of {slots} slots, {slots * slot_mb:.1f} MB{few}"


def _why_queues(sizes: NetworkSizes, bits: int, slot_mb: float) -> str:
    if sizes.ring <= 2 and sizes.neurons >= MANY_NEURONS:
        return f"there are {sizes.neurons / _MILLION:.1f} M neurons"
    if is_large(sizes, bits) or (sizes.ring > 2 and not much_fires(sizes)):
        return f"a slot takes {slot_mb:.0f} MB"
    if not much_fires(sizes):
        return f"rows have up to {sizes.longest_row} entries"
    rate = f"{100 * sizes.firing_rate:.3g} % of the neurons"
    return f"a burst in which {rate} fire has {sizes.events / _MILLION:.1f} M contributions"


def _entries(packed: Packed) -> str:
    variant, sizes = packed.variant, packed.sizes
    if not variant.palette:
        return f"entries of rows in words of 32 bits, since {sizes.largest_contribution} fits beside a target"
    entries = "places of 16 bits beside targets" if variant.placed else "words of 32 bits"
    return f"entries of rows in {entries}, since only {sizes.palette} contributions differ"


def _learning(packed: Packed) -> str:
    if packed.variant.defers_learning:
        return f"learning deferred until a weight is needed, since windows reach back {packed.longest_window} bursts"
    others = (
        "rules have more than steps" if packed.variant.extras.modes else "the profile's rule looks at whole windows"
    )
    long = not packed.variant.short_windows
    return f"learning burst by burst, since {'a window is too long for words of firings' if long else others}"


def _word(packed: Packed) -> str:
    word, layout, largest = packed.variant.word, packed.layout, packed.fixed_point.largest_sum
    if word.beside:
        return "sums of 64 bits with a mark beside them, since nothing bounds them"
    if word.marked:
        marks = f"{word.mark_bits} of them for a mark, since sums can be 0 and up to {layout.in_degree} synapses meet"
        return f"sums in words of {word.bits} bits, {marks}"
    if word.packed:
        return f"sums of {word.bits} bits, {32 // word.bits} a word, since none exceeds {largest}"
    return f"sums in words of {word.bits} bits without a mark, since none can be 0"
