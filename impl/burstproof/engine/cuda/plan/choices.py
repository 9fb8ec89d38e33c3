"""What was chosen for a network when its layout was built, and why, in words for the record of a run."""

from __future__ import annotations

from collections.abc import Iterator

from burstproof.engine.cuda.plan.buffers import NetworkSizes, ring_slots, slot_stride
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.queues import MANY_NEURONS, is_large, much_fires, without_queues
from burstproof.engine.cuda.plan.sizing import slots_reached
from burstproof.engine.cuda.plan.variant import lists_kept

_MEGABYTE = 1e6
_MILLION = 1e6


def choices_of(packed: Packed) -> str:
    """The choices for ``packed``, each with its reason."""
    return "; ".join(_choices(packed))


def _choices(packed: Packed) -> Iterator[str]:
    variant, sizes, layout = packed.variant, packed.sizes, packed.layout
    slot = slot_stride(sizes.neurons, variant) * without_queues(variant).word.bits / 8 / _MEGABYTE
    yield _word(packed)
    if variant.target_bits or variant.palette:
        yield _entries(packed)
    if variant.queues is not None:
        queues, side = variant.queues, "with delays on the sender's side, " if variant.delays else ""
        side = f"with a bucket for each of {lists_kept(variant)} bursts, " if queues.rows_put_off else side
        reason = _why_queues(sizes, without_queues(variant).word.bits, slot)
        yield f"queues for {queues.owners} owners of {queues.span} neurons, {side}since {reason}"
    elif variant.calendar:
        ring = sizes.ring * slot
        tiles = f" in {variant.calendar_tiles} tiles" if variant.calendar_tiles else ""
        words = f"{variant.calendar} buckets{tiles} of words of {variant.calendar_bits} bits"
        yield f"later contributions in {words}, since a ring of {sizes.ring} slots would take {ring:.0f} MB"
    elif variant.recalled:
        ring = sizes.ring * slot
        yield f"delays on the sender's side, since a ring of {sizes.ring} slots would take {ring:.0f} MB"
    elif variant.delays:
        slots, reached = ring_slots(sizes, variant), slots_reached(sizes)
        few = f", of which a burst reaches {reached}" if reached < slots else ""
        yield f"delays to {layout.max_delay} in a ring of {slots} slots, {slots * slot:.1f} MB{few}"
    elif variant.fused is not None and not (variant.tiles or variant.streamed):
        yield "contributions added to a slot of the FCL, which the cache holds"
    if variant.tiles:
        yield f"rows in {variant.tiles} tiles, since a slot takes {slot:.0f} MB"
    if variant.streamed:
        yield "synapses in host memory"
    if variant.fused is None:
        reason = "contributions are computed" if variant.computed else "candidates are counted ahead"
        yield f"a burst in several kernels, since {reason}"
    if variant.plastic:
        yield _learning(packed)


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
