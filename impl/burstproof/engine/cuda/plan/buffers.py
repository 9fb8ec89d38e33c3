"""The buffers that an engine keeps on the device, with their sizes; nothing is allocated here."""

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
from burstproof.engine.cuda.plan.variant import SPACING, OwnerQueues, Variant, lists_kept
from burstproof.engine.layout import Layout
from burstproof.engine.rules import CERTAIN, Features

SETS = 2
"""Sets of batch buffers: while one batch runs, the other set is uploaded or downloaded."""

_LARGEST_STIMULUS = 1 << 22
_LARGEST_EXTRA_LOG = 1 << 22
_CHUNK = 1 << 22
_LEAST_ROOM = 1024
_ROOM_SHARE, _LEAST_SHARE, _BUCKET_SHARE = 8, 32, 16
"""Room for parts of all synapses: 1/8 in queues and tiles of a calendar, at least 1/32 in tiles, 1/16 in a bucket."""
_SPARE = 1.5
"""Queues and buckets have room for so many times the contributions expected in a burst, if that is more."""
_TILED_CALENDAR_BYTES = 4 << 30
"""Memory for a calendar in tiles, beyond which its tiles have less room."""
_BUCKET_BYTES, _MOST_BUCKET_ENTRIES = 16 << 30, (1 << 32) - (1 << 14)
"""Most memory, and most entries, of all buckets beside queues."""
FIRST_SPARE = 2
"""With a calendar in tiles, two slots of the FCL take turns; behind them each bucket has a spare slot of its own."""


@dataclass(frozen=True)
class BatchSizes:
    """Capacities of one batch: ``length`` bursts, ``stimulus`` ids (and as many forced ids), ``log`` firings."""

    length: int
    stimulus: int
    log: int


def batch_sizes(neurons: int, length: int) -> BatchSizes:
    """Capacities for a network; the log has room for one burst in which all neurons fire, and for more."""
    stimulus = max(1, min(neurons, _LARGEST_STIMULUS))
    return BatchSizes(length, stimulus, neurons + min(16 * neurons, _LARGEST_EXTRA_LOG))


def default_batch_length(neurons: int) -> int:
    """Most bursts that one graph captures, by size class."""
    if neurons <= 200_000:
        return 128
    return 64 if neurons <= 1_000_000 else 8


def graph_length(bursts: int, most: int) -> int:
    """Length of the shortest graph that holds ``bursts``: a power of two, or ``most``. Idle bursts cost launches."""
    return min(most, 1 << (bursts - 1).bit_length())


@dataclass(frozen=True)
class NetworkSizes:
    """Sizes of a network, from which those of the buffers follow; an entry is a packed synapse.

    Attributes
    ----------
    ring : int
        Slots of the FCL as a ring: as many as the largest delay, and one more in the fused burst.
    uniform, narrow : frozenset of str
        See ``Variant``.
    longest_row : int
        Most static entries of one source.
    pieces : int
        Pieces, of at most ``PIECE`` entries, of all rows that are too long for a warp.
    in_degree : int
        Most synapses onto one neuron.
    sum_bits : int
        Bits of the largest sum's magnitude.
    largest_contribution, common_contribution : int
        Largest magnitude of a static contribution, and the contribution of all entries, 0 if they differ; both in units
        of 2^-k.
    palette : int
        Distinct contributions in the palette; 0 if none is needed, or they are too many.
    distinct_delays : int
        Number of different delays.
    largest_excitability : float
        Of any neuron; infinite if some neuron needs no draw.
    firing_rate : float
        Share of the neurons that is expected to fire in a burst.
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
    largest_excitability: float = np.inf
    firing_rate: float = USUAL_RATE
    features: FeatureSizes = NO_FEATURES

    @property
    def events(self) -> float:
        """Contributions that are expected in a burst."""
        return self.static_entries * self.firing_rate


def network_sizes(
    layout: Layout, features: Features, fused: bool, largest_sum: int, narrow: frozenset[str]
) -> NetworkSizes:
    """Sizes of a packed network, whose bursts are ``fused`` or take several kernels."""
    lengths = np.diff(layout.static.offsets)
    long_rows = lengths[lengths > warp_row(layout.neuron_count)].astype(np.int64)
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
        largest_excitability=float(largest_excitability(layout.neurons.excitabilities)),
        pieces=int((-(-long_rows // PIECE)).sum()),
        in_degree=layout.in_degree,
        sum_bits=largest_sum.bit_length(),
    )


def largest_contribution(layout: Layout) -> int:
    """The largest magnitude of a static contribution, in units of 2^-k."""
    contributions = layout.static.contributions
    return max(int(contributions.max(initial=0)), -int(contributions.min(initial=0)))


def largest_excitability(excitabilities: npt.NDArray[np.float32]) -> np.float32:
    """The largest of ``excitabilities``, float32 (N,), or infinity if some neuron needs no draw."""
    largest = excitabilities.max(initial=np.float32(0))
    return np.float32(largest if largest < CERTAIN else np.inf)


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
    """The contribution of all static entries, in units of 2^-k; 0 if they differ, or there are none."""
    contributions = layout.static.contributions
    common = int(contributions[0]) if len(contributions) else 0
    return common if (contributions == common).all() else 0


def palette_size(layout: Layout, variant: Variant) -> int:
    """Number of distinct static contributions, if rows are better off with a palette and one has room; else 0."""
    by_entry = variant.fused is not None and not variant.uniform_rows
    if not (by_entry and needs_palette(layout.neuron_count, largest_contribution(layout))):
        return 0
    return len(palette_of(layout.static.contributions))


def uniform_parameters(layout: Layout, features: Features) -> frozenset[str]:
    """Parameters without a column on the device: unused, one value for all neurons, or kept in marks."""
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
    """A list of buffers to be filled; dtypes follow from the kernels' arguments."""

    def __init__(self, variant: Variant) -> None:
        self._variant = variant

    def add(self, name: str, count: int, used: bool = True, dtype: npt.DTypeLike | None = None) -> None:
        """Append a buffer; one that the variant does not use has one element, so that kernels can name it."""
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
        _add_delays(specs, sizes, variant)
    if variant.queues is not None:
        _add_queues(specs, sizes, variant, variant.queues)


def _add_delays(specs: _Specs, sizes: NetworkSizes, variant: Variant) -> None:
    parts, lists, recalls = variant.calendar * max(1, variant.calendar_tiles), lists_kept(variant), variant.recalled > 0
    specs.add("calendar_words", parts * calendar_room(sizes, variant))
    specs.add("calendar_counts", 2 * parts)
    specs.add("calendar_spares", 2 * variant.calendar, variant.calendar_tiles > 0)
    specs.add("recalled_ids", lists * sizes.neurons, recalls)
    specs.add("recalled_counts", lists, recalls)
    delays = variant.recalled or (0 if variant.calendar_tiles else variant.calendar)
    specs.add("delay_starts", (delays + 1) * sizes.neurons, delays > 1)


def _add_queues(specs: _Specs, sizes: NetworkSizes, variant: Variant, queues: OwnerQueues) -> None:
    specs.add("queue_entries", queues.owners * queue_room(sizes, variant))
    specs.add("queue_lengths", SPACING * queues.owners)
    specs.add("queue_spills", queues.owners)
    buckets, room = lists_kept(variant), bucket_room(sizes, variant)
    specs.add("bucket_targets", (buckets + 1) * room, dtype=variant.target)
    specs.add("bucket_contributions", (buckets + 1) * room, not variant.target_bits, dtype=variant.column)
    specs.add("bucket_counts", 2 * buckets, room > 0)


def queue_room(sizes: NetworkSizes, variant: Variant) -> int:
    """Entries that one owner's queue has room for; what exceeds it goes to the FCL."""
    if variant.queues is None:
        return 0
    return max(_LEAST_ROOM, -(-_room_in_burst(sizes, _ROOM_SHARE) // variant.queues.owners))


def bucket_room(sizes: NetworkSizes, variant: Variant) -> int:
    """Entries that one burst's bucket has room for (``kernels.buckets``); 0 without buckets."""
    if variant.queues is None or not variant.queues.rows_put_off:
        return 0
    entry_bytes = 4 if variant.target_bits else 4 + np.dtype(variant.column).itemsize
    most = min(_BUCKET_BYTES // entry_bytes, _MOST_BUCKET_ENTRIES) // (lists_kept(variant) + 1)
    return max(1, min(most, max(_LEAST_ROOM, _room_in_burst(sizes, _BUCKET_SHARE))))


def _room_in_burst(sizes: NetworkSizes, share: int) -> int:
    """Entries of one burst to make room for: one of ``share`` parts of all, or ``_SPARE`` times those expected."""
    return max(-(-sizes.static_entries // share), min(int(_SPARE * sizes.events), sizes.static_entries))


def ring_slots(sizes: NetworkSizes, variant: Variant) -> int:
    """Slots of the FCL: one if fired lists are read again; two, and any spare ones, with a calendar; else the ring."""
    if variant.recalled:
        return 1
    if variant.calendar:
        return FIRST_SPARE + variant.calendar if variant.calendar_tiles else 2
    return sizes.ring


def calendar_shift(sizes: NetworkSizes, variant: Variant) -> int:
    """Low bits of a calendar's word that hold the target, or its place within a tile."""
    return target_bits(-(-sizes.neurons // max(1, variant.calendar_tiles)))


def calendar_room(sizes: NetworkSizes, variant: Variant) -> int:
    """Words of a bucket, or of one tile of it.

    A bucket has room for all synapses. A tile has it for an eighth of those onto its targets, in large networks for
    less, but at least a thirty-second; what exceeds it goes to a slot of the FCL.
    """
    tiles = variant.calendar * variant.calendar_tiles
    if not tiles:
        return sizes.static_entries
    tile_neurons = min(sizes.neurons, 1 << calendar_shift(sizes, variant))
    entries = -(-sizes.static_entries * tile_neurons // max(sizes.neurons, 1))
    affordable = _TILED_CALENDAR_BYTES * 8 // (tiles * variant.calendar_bits)
    return max(_LEAST_ROOM, -(-entries // _LEAST_SHARE), min(-(-entries // _ROOM_SHARE), affordable))


def slot_stride(neurons: int, variant: Variant) -> int:
    """Cells from one slot of the FCL to the next; no 32-bit word belongs to two slots."""
    per_word = max(1, 32 // variant.word.bits)
    return max(1, -(-neurons // per_word)) * per_word


def chunks_of(neurons: int, variant: Variant) -> int:
    """Chunks of neurons in the fused burst; 0 if a burst takes several kernels."""
    return -(-neurons // variant.fused.chunk) if variant.fused is not None else 0


def stimulus_specs(number: int, variant: Variant, batch: BatchSizes) -> tuple[BufferSpec, ...]:
    """The buffers of batch set ``number`` for stimulus and forced firings."""
    specs = _Specs(variant)
    specs.add(f"stimulus_offsets.{number}", batch.length + 1)
    specs.add(f"forced_offsets.{number}", batch.length + 1)
    for name in ("stimulus_ids", "stimulus_amounts", "forced_ids"):
        specs.add(f"{name}.{number}", batch.stimulus)
    return tuple(specs)
