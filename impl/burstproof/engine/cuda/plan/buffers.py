"""Which buffers an engine keeps on the device, with their sizes, before any of them exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec
from burstproof.engine.costs import USUAL_RATE
from burstproof.engine.cuda.fields import dtype_of
from burstproof.engine.cuda.kernels.control import CONTROL_LENGTH, PROGRESS_LENGTH, TALLIES, report_length
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN, PIECE, warp_row
from burstproof.engine.cuda.plan.columns import PARAMETERS, column_dtype
from burstproof.engine.cuda.plan.entries import needs_palette, palette_of, target_bits
from burstproof.engine.cuda.plan.features import DRIVE_ROWS, HOMEOSTAT_NUMBERS, NO_FEATURES, FeatureSizes
from burstproof.engine.cuda.plan.variant import SPACING, Variant, lists_kept
from burstproof.engine.layout import Layout
from burstproof.engine.rules import Features

SETS = 2
"""Batches under way at a time: while one runs, the other's stimulus goes up and its results come down."""

_LARGEST_STIMULUS = 1 << 22
_LARGEST_EXTRA_LOG = 1 << 22
_ROOM_SHARE, _SPARE = 8, 1.5
_LEAST_ROOM = 1024
_CHUNK = 1 << 22
_CALENDAR_BYTES, _LEAST_SHARE = 4 << 30, 32
_BUCKET_BYTES, _BUCKET_SHARE, _MOST_ENTRIES = 16 << 30, 16, (1 << 32) - (1 << 14)
FIRST_SPARE = 2
"""With a calendar in tiles: slots of the FCL that take turns; behind them each bucket has a slot of its own."""


@dataclass(frozen=True)
class BatchSizes:
    """Capacities of one batch: ``length`` bursts, ``stimulus`` ids (and as many forced ids), ``log`` firings."""

    length: int
    stimulus: int
    log: int


def batch_sizes(neurons: int, length: int) -> BatchSizes:
    """Capacities for a network; the log holds one burst in which everything fires, and then some."""
    stimulus = max(1, min(neurons, _LARGEST_STIMULUS))
    return BatchSizes(length, stimulus, neurons + min(16 * neurons, _LARGEST_EXTRA_LOG))


def default_batch_length(neurons: int) -> int:
    """Most bursts captured in one graph, by size class."""
    if neurons <= 200_000:
        return 128
    return 64 if neurons <= 1_000_000 else 8


def graph_length(bursts: int, most: int) -> int:
    """Length of the shortest graph that holds ``bursts``: a power of two, or ``most``. Idle bursts cost launches."""
    return min(most, 1 << (bursts - 1).bit_length())


@dataclass(frozen=True)
class NetworkSizes:
    """What the sizes of the buffers follow from: entries are packed synapses, ``ring`` the FCL's slots.

    ``longest_row`` is the number of static entries of the source that has most; rows that no warp sends are
    ``pieces`` of at most ``PIECE``. ``largest_contribution`` is that of all entries in magnitude, in units of 2^-k;
    ``common_contribution`` is the one that all have, 0 where they differ; ``palette`` distinct ones are kept in a
    table, 0 where that has no room or is not needed. ``distinct_delays`` is the number of different ones. ``in_degree``
    is the largest, ``sum_bits`` the bits of the largest sum's magnitude. ``firing_rate`` is the share of neurons that
    is expected to fire in a burst. ``uniform`` and ``narrow``: see ``Variant``.
    """

    neurons: int
    ring: int
    static_entries: int
    computed_entries: int
    plastic_entries: int
    rules: int
    uniform: frozenset[str]
    narrow: frozenset[str]
    longest_row: int
    pieces: int
    in_degree: int
    sum_bits: int
    largest_contribution: int = 0
    common_contribution: int = 0
    palette: int = 0
    distinct_delays: int = 1
    firing_rate: float = USUAL_RATE
    features: FeatureSizes = NO_FEATURES

    @property
    def events(self) -> float:
        """Contributions that are expected in a burst."""
        return self.static_entries * self.firing_rate


def network_sizes(
    layout: Layout, features: Features, fused: bool, largest_sum: int, narrow: frozenset[str]
) -> NetworkSizes:
    """Sizes of a packed network; the fused burst takes a slot more than the largest delay."""
    lengths = np.diff(layout.static.offsets)
    return NetworkSizes(
        neurons=layout.neuron_count,
        ring=layout.max_delay + int(fused),
        static_entries=len(layout.static.targets),
        computed_entries=len(layout.computed.targets) if layout.computed else 0,
        plastic_entries=len(layout.plastic.positions) if layout.plastic else 0,
        rules=len(layout.plastic.windows) if layout.plastic else 0,
        uniform=uniform_parameters(layout, features),
        narrow=narrow,
        longest_row=int(lengths.max(initial=0)),
        largest_contribution=largest_contribution(layout),
        common_contribution=common_contribution(layout),
        distinct_delays=distinct_delays(layout),
        pieces=int((-(-lengths[lengths > warp_row(layout.neuron_count)].astype(np.int64) // PIECE)).sum()),
        in_degree=layout.in_degree,
        sum_bits=largest_sum.bit_length(),
    )


def largest_contribution(layout: Layout) -> int:
    """The largest magnitude of a static contribution, in units of 2^-k."""
    contributions = layout.static.contributions
    return max(int(contributions.max(initial=0)), -int(contributions.min(initial=0)))


def distinct_delays(layout: Layout) -> int:
    """How many different delays the static entries have."""
    delays = layout.static.delays
    if delays is None:
        return 1
    occurs = np.zeros(layout.max_delay + 1, np.bool_)
    for start in range(0, len(delays), _CHUNK):
        occurs[delays[start : start + _CHUNK]] = True
        if occurs[1:].all():
            break
    return int(occurs.sum())


def common_contribution(layout: Layout) -> int:
    """The contribution of all static entries, in units of 2^-k; 0 where they differ, or there are none."""
    contributions = layout.static.contributions
    common = int(contributions[0]) if len(contributions) else 0
    return common if (contributions == common).all() else 0


def palette_size(layout: Layout, variant: Variant) -> int:
    """Distinct static contributions where the rows need a table of them, and one has room."""
    apart = variant.fused is None or variant.uniform_rows
    if apart or not needs_palette(layout.neuron_count, largest_contribution(layout)):
        return 0
    return len(palette_of(layout.static.contributions))


def uniform_parameters(layout: Layout, features: Features) -> frozenset[str]:
    """Parameters that are no columns on the device: unused, one value for all neurons, or kept in marks."""
    used = {name for name in PARAMETERS if getattr(features, name, name != "mp_charge_accumulation")}
    return frozenset(name for name in PARAMETERS if name not in used or _constant(getattr(layout.neurons, name)))


def _constant(column: npt.NDArray[Any]) -> bool:
    return not len(column) or bool((column == column[0]).all())


def buffer_specs(sizes: NetworkSizes, variant: Variant, batch: BatchSizes) -> tuple[BufferSpec, ...]:
    """Every buffer of an engine, in the order of the arena."""
    specs = _Specs(variant)
    _add_state(specs, sizes, variant)
    _add_rows(specs, sizes, variant)
    if variant.computed:
        _add_computed(specs, sizes, variant)
    if variant.plastic:
        _add_plastic(specs, sizes, variant)
    if variant.plastic or variant.extras.degenerates:
        specs.add("eligibility", sizes.computed_entries)
    if variant.extras:
        _add_features(specs, sizes, variant)
    if variant.fused is not None:
        _add_fused(specs, sizes, variant)
    for number in range(SETS):
        specs.add(f"report.{number}", report_length(batch.length))
        specs.add(f"log_ids.{number}", batch.log)
        specs.add(f"log_potentials.{number}", batch.log)
        specs.extend(stimulus_specs(number, variant, batch))
    return tuple(specs)


class _Specs(list[BufferSpec]):
    """Specifications that grow buffer by buffer; dtypes are those of the kernels' arguments."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant

    def add(self, name: str, count: int, used: bool = True, dtype: npt.DTypeLike | None = None) -> None:
        """A buffer; one that the variant does not use keeps one element, so that kernels can name it."""
        kind = dtype_of(name.partition(".")[0], self._variant) if dtype is None else np.dtype(dtype)
        self.append(BufferSpec(name, max(count, 1) if used else 1, kind))


def _add_state(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    neurons, slots = sizes.neurons, ring_slots(sizes, variant) * slot_stride(sizes.neurons, variant)
    specs.add("control", CONTROL_LENGTH)
    specs.add("tallies", TALLIES)
    specs.add("sums", slots * variant.word.elements, dtype=variant.cell)
    specs.add("potentials", neurons)
    specs.add("countdowns", neurons, variant.features.refractory_periods)
    specs.add("counts", neurons)
    specs.add("marks", neurons, variant.features.restarts)
    specs.add("forced", neurons)
    specs.add("outside", neurons, variant.word.packed or variant.fused is None or variant.queues is not None)
    specs.add("done", 2)
    specs.add("last_fired", neurons, variant.plastic and not variant.defers_learning)
    specs.add("streaks", neurons, variant.plastic and not variant.defers_learning)
    specs.add("histories", neurons, variant.defers_learning)
    for name in PARAMETERS:
        if name not in sizes.uniform and name not in variant.record.places:
            specs.add(name, neurons, dtype=column_dtype(name, sizes.narrow))
    if variant.record.places:
        specs.add("records", variant.record.words * neurons, dtype=np.uint32)


def _add_rows(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    entries = sizes.static_entries
    specs.add("offsets", sizes.neurons + 1)
    specs.add("targets", entries)
    specs.add("contributions", _contributions_kept(sizes, variant), dtype=variant.column)
    specs.add("palette", sizes.palette, variant.palette)
    specs.add("delays", entries, variant.delays, dtype=np.uint8)
    specs.add("clamped_sources", sizes.neurons, variant.clamps)


def _contributions_kept(sizes: NetworkSizes, variant: Variant) -> int:
    if variant.target_bits:
        return 1
    return sizes.neurons if variant.uniform_rows else sizes.static_entries


def _add_computed(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    entries = sizes.computed_entries
    specs.add("computed_offsets", sizes.neurons + 1)
    for name in ("computed_targets", "weights", "psps", "signs"):
        specs.add(name, entries)
    specs.add("computed_delays", entries, variant.delays)
    specs.add("mp_driven", sizes.neurons)
    specs.add("divisors", sizes.neurons)


def _add_plastic(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    for name in ("rule_windows", "potentiations", "depressions"):
        specs.add(name, sizes.rules)
    if variant.defers_learning:
        specs.add("rule_begins", sizes.rules)
        specs.add("learning_rules", sizes.computed_entries)
        return
    specs.add("rule_starts", sizes.rules + 1)
    for name in ("plastic_positions", "plastic_sources", "plastic_targets"):
        specs.add(name, sizes.plastic_entries)


def _add_features(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    neurons, key, own = sizes.neurons, variant.extras, sizes.features
    specs.add("kinds", neurons, key.adapts or key.trains or key.modulators)
    specs.add("class_states", 2 * own.classes)
    specs.add("sleep_bounds", 2 * own.classes)
    specs.add("largest_excitabilities", own.classes)
    specs.add("homeostats", own.classes * HOMEOSTAT_NUMBERS)
    specs.add("homeostat_periods", own.classes)
    specs.add("class_phases", 2 * own.classes)
    specs.add("firing_rates", neurons, key.homeostats)
    specs.add("homeostat_leaks", neurons, key.homeostats)
    specs.add("base_leaks", neurons, key.area_modulators)
    specs.add("held_potentials", neurons, key.trains)
    specs.add("driver_of", neurons, key.modulators)
    specs.add("drives", DRIVE_ROWS * own.drivers)
    specs.add("given_potentials", neurons, key.replays)
    for name in ("magnitudes", "full_scales", "modulator_drivers"):
        specs.add(name, own.modulators)
    specs.add("list_starts", own.lists + 1)
    specs.add("list_items", own.items)
    specs.add("rewarded", own.pairs)
    specs.add("signals", 2 * own.modulators)
    specs.add("area_factors", 6 * own.classes)
    specs.add("transmission", 2 * own.rules)
    specs.add("learning", 2 * own.pairs)
    specs.add("synapse_rules", sizes.computed_entries, key.transmits)
    specs.add("degeneration", neurons, key.degenerates)
    if key.modes and variant.plastic:
        for name in ("rule_decays", "etas", "max_weights", "frozen"):
            specs.add(name, sizes.rules)


def _add_fused(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    chunks = chunks_of(sizes.neurons, variant)
    specs.add("chunk_counts", chunks)
    specs.add("span_counts", 2 * -(-chunks // CHUNKS_PER_SPAN))
    specs.add("chunk_ids", sizes.neurons)
    specs.add("chunk_potentials", sizes.neurons)
    specs.add("progress", PROGRESS_LENGTH, variant.long_rows > 0)
    specs.add("pieces", 2 * sizes.pieces, variant.long_rows > 0)
    specs.add("cursors", sizes.neurons, variant.tiles > 0)
    specs.add("amounts", sizes.neurons, variant.tiles > 0 and variant.uniform_rows)
    if variant.recalled or variant.calendar:
        parts = variant.calendar * max(1, variant.calendar_tiles)
        specs.add("calendar_words", parts * calendar_room(sizes, variant))
        specs.add("calendar_counts", 2 * parts)
        specs.add("calendar_spares", 2 * variant.calendar, variant.calendar_tiles > 0)
        specs.add("recalled_ids", lists_kept(variant) * sizes.neurons, variant.recalled > 0)
        specs.add("recalled_counts", lists_kept(variant), variant.recalled > 0)
        longest = variant.recalled or (0 if variant.calendar_tiles else variant.calendar)
        specs.add("delay_starts", (longest + 1) * sizes.neurons, longest > 1)
    if variant.queues is not None:
        specs.add("queue_entries", variant.queues.owners * queue_room(sizes, variant))
        specs.add("queue_lengths", SPACING * variant.queues.owners)
        specs.add("queue_spills", variant.queues.owners)
        buckets, room = lists_kept(variant), bucket_room(sizes, variant)
        specs.add("bucket_targets", (buckets + 1) * room, dtype=variant.target)
        specs.add("bucket_contributions", (buckets + 1) * room, not variant.target_bits, dtype=variant.column)
        specs.add("bucket_counts", 2 * buckets, room > 0)


def queue_room(sizes: NetworkSizes, variant: Variant) -> int:
    """Entries of one owner's queue: what an eighth of all synapses delivers, or more; the rest goes to the FCL."""
    if variant.queues is None:
        return 0
    return max(_LEAST_ROOM, -(-_shared_out(sizes, _ROOM_SHARE) // variant.queues.owners))


def _shared_out(sizes: NetworkSizes, parts: int) -> int:
    """One of so many ``parts`` of the entries, or half as many again as are expected in a burst."""
    return max(-(-sizes.static_entries // parts), min(int(_SPARE * sizes.events), sizes.static_entries))


def bucket_room(sizes: NetworkSizes, variant: Variant) -> int:
    """Entries of one burst's bucket (``kernels.buckets``): what a sixteenth of all synapses delivers, or as fit."""
    if variant.queues is None or not variant.queues.rows_put_off:
        return 0
    entry = 4 if variant.target_bits else 4 + np.dtype(variant.column).itemsize
    within = min(_BUCKET_BYTES // entry, _MOST_ENTRIES) // (lists_kept(variant) + 1)
    return max(1, min(within, max(_LEAST_ROOM, _shared_out(sizes, _BUCKET_SHARE))))


def ring_slots(sizes: NetworkSizes, variant: Variant) -> int:
    """Slots of the FCL: a ring of them; one if fired lists are read again; two, and any spare ones, with a calendar."""
    if variant.recalled or not variant.calendar:
        return 1 if variant.recalled else sizes.ring
    return FIRST_SPARE + variant.calendar if variant.calendar_tiles else 2


def calendar_shift(sizes: NetworkSizes, variant: Variant) -> int:
    """Bits of a target, or of its place within a tile, in the word of a calendar."""
    return target_bits(-(-sizes.neurons // max(1, variant.calendar_tiles)))


def calendar_room(sizes: NetworkSizes, variant: Variant) -> int:
    """Words of a bucket, or of one tile of it: there what an eighth of the synapses delivers, in large networks less.

    The rest goes to a slot of the FCL.
    """
    parts = variant.calendar * variant.calendar_tiles
    if not parts:
        return sizes.static_entries
    span = min(sizes.neurons, 1 << calendar_shift(sizes, variant))
    entries = -(-sizes.static_entries * span // max(sizes.neurons, 1))
    within = _CALENDAR_BYTES * 8 // (parts * variant.calendar_bits)
    return max(_LEAST_ROOM, -(-entries // _LEAST_SHARE), min(-(-entries // _ROOM_SHARE), within))


def slot_stride(neurons: int, variant: Variant) -> int:
    """Cells from one slot of the FCL to the next: no 32-bit word belongs to two slots."""
    per_word = max(1, 32 // variant.word.bits)
    return max(1, -(-neurons // per_word)) * per_word


def chunks_of(neurons: int, variant: Variant) -> int:
    """Chunks that the fused burst cuts the neurons into."""
    return -(-neurons // variant.fused.chunk) if variant.fused is not None else 0


def stimulus_specs(number: int, variant: Variant, batch: BatchSizes) -> tuple[BufferSpec, ...]:
    """The buffers of batch set ``number`` that hold what comes from outside."""
    specs = _Specs(variant)
    specs.add(f"stimulus_offsets.{number}", batch.length + 1)
    specs.add(f"forced_offsets.{number}", batch.length + 1)
    for name in ("stimulus_ids", "stimulus_amounts", "forced_ids"):
        specs.add(f"{name}.{number}", batch.stimulus)
    return tuple(specs)
