"""Which buffers an engine keeps on the device, with their sizes, before any of them exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec
from burstproof.engine.cuda.kernels.control import CONTROL_LENGTH, TALLIES, report_length
from burstproof.engine.cuda.kernels.order import PARAMETERS
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN, LONG_ROW
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.layout import Layout
from burstproof.engine.rules import Features

SETS = 2
"""Trains under way at a time: while one runs, the other's stimulus goes up and its results come down."""

_LARGEST_STIMULUS = 1 << 22
_LARGEST_EXTRA_LOG = 1 << 22


@dataclass(frozen=True)
class TrainSizes:
    """Capacities of one train: ``length`` bursts, ``stimulus`` ids (and as many forced ids), ``log`` firings."""

    length: int
    stimulus: int
    log: int


def train_sizes(neurons: int, length: int) -> TrainSizes:
    """Capacities for a network; the log holds one burst in which everything fires, and then some."""
    stimulus = max(1, min(neurons, _LARGEST_STIMULUS))
    return TrainSizes(length, stimulus, neurons + min(16 * neurons, _LARGEST_EXTRA_LOG))


def default_train_length(neurons: int) -> int:
    """Bursts captured in one graph, by size class."""
    if neurons <= 200_000:
        return 128
    return 64 if neurons <= 1_000_000 else 8


@dataclass(frozen=True)
class NetworkSizes:
    """What the sizes of the buffers follow from: entries are packed synapses, ``ring`` the FCL's slots.

    ``longest_row`` is the number of static entries of the source that has most; rows of more than ``LONG_ROW`` are cut
    into ``pieces`` of so many.
    """

    neurons: int
    ring: int
    static_entries: int
    computed_entries: int
    plastic_entries: int
    rules: int
    uniform: frozenset[str]
    longest_row: int
    pieces: int


def network_sizes(layout: Layout, features: Features, fused: bool) -> NetworkSizes:
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
        longest_row=int(lengths.max(initial=0)),
        pieces=int((-(-lengths[lengths > LONG_ROW].astype(np.int64) // LONG_ROW)).sum()),
    )


def uniform_parameters(layout: Layout, features: Features) -> frozenset[str]:
    """Parameters that are unused, or one value for all neurons: they take one element on the device."""
    used = {name for name in PARAMETERS if name == "thresholds" or getattr(features, name)}
    return frozenset(name for name in PARAMETERS if name not in used or _constant(getattr(layout.neurons, name)))


def _constant(column: npt.NDArray[Any]) -> bool:
    return not len(column) or bool((column == column[0]).all())


def buffer_specs(sizes: NetworkSizes, variant: Variant, train: TrainSizes) -> tuple[BufferSpec, ...]:
    """Every buffer of an engine, in the order of the arena."""
    return (
        *_state_specs(sizes, variant),
        *_parameter_specs(sizes, variant),
        *_static_specs(sizes, variant),
        *_computed_specs(sizes, variant),
        *_plastic_specs(sizes, variant),
        *_fused_specs(sizes, variant),
        *(spec for number in range(SETS) for spec in train_specs(number, variant, train)),
    )


def _spec(name: str, count: int, dtype: type[np.generic], used: bool = True) -> BufferSpec:
    """A buffer; one that the variant does not use keeps one element, so that kernels can name it."""
    return BufferSpec(name, max(count, 1) if used else 1, np.dtype(dtype))


def _state_specs(sizes: NetworkSizes, variant: Variant) -> tuple[BufferSpec, ...]:
    neurons, slots = sizes.neurons, sizes.ring * slot_stride(sizes.neurons, variant)
    return (
        _spec("control", CONTROL_LENGTH, np.int64),
        _spec("sums", slots, variant.cell),
        _spec("flags", slots, np.uint8, variant.flags),
        _spec("potentials", neurons, variant.features.storage.precision.dtype.type),
        _spec("countdowns", neurons, np.uint16, variant.features.refractory_periods),
        _spec("counts", neurons, np.uint16),
        _spec("marks", neurons, np.uint8, variant.features.restarts),
        _spec("last_fired", neurons, np.int64, variant.plastic),
        _spec("streaks", neurons, np.uint16, variant.plastic),
    )


def _parameter_specs(sizes: NetworkSizes, variant: Variant) -> tuple[BufferSpec, ...]:
    shorts = ("refractory_periods", "consecutive_fire_limits", "snooze_periods")
    return (
        _spec("accumulates", sizes.neurons, np.uint8, variant.features.restarts),
        *(
            _spec(name, sizes.neurons, np.uint16 if name in shorts else np.float32, name not in sizes.uniform)
            for name in PARAMETERS
        ),
    )


def _static_specs(sizes: NetworkSizes, variant: Variant) -> tuple[BufferSpec, ...]:
    entries = sizes.static_entries
    return (
        _spec("offsets", sizes.neurons + 1, variant.offset),
        _spec("targets", entries, np.uint32),
        _spec("contributions", sizes.neurons if variant.uniform_rows else entries, variant.contribution),
        _spec("delays", entries, np.uint8, variant.delays),
        _spec("clamped_sources", sizes.neurons, np.uint8, variant.clamps),
    )


def _computed_specs(sizes: NetworkSizes, variant: Variant) -> tuple[BufferSpec, ...]:
    if not variant.computed:
        return ()
    entries = sizes.computed_entries
    return (
        _spec("computed_offsets", sizes.neurons + 1, variant.offset),
        _spec("computed_targets", entries, np.uint32),
        _spec("weights", entries, np.float32),
        _spec("psps", entries, np.float32),
        _spec("signs", entries, np.int8),
        _spec("computed_delays", entries, np.uint8, variant.delays),
        _spec("mp_driven", sizes.neurons, np.uint8),
        _spec("divisors", sizes.neurons, np.float32),
    )


def _plastic_specs(sizes: NetworkSizes, variant: Variant) -> tuple[BufferSpec, ...]:
    if not variant.plastic:
        return ()
    return (
        _spec("rule_starts", sizes.rules + 1, np.int64),
        _spec("rule_windows", sizes.rules, np.int64),
        _spec("potentiations", sizes.rules, np.float32),
        _spec("depressions", sizes.rules, np.float32),
        _spec("plastic_positions", sizes.plastic_entries, np.int64),
        _spec("plastic_sources", sizes.plastic_entries, np.uint32),
        _spec("plastic_targets", sizes.plastic_entries, np.uint32),
        _spec("eligibility", sizes.computed_entries, np.float32),
    )


def _fused_specs(sizes: NetworkSizes, variant: Variant) -> tuple[BufferSpec, ...]:
    if variant.fused is None:
        return ()
    return (
        _spec("tallies", TALLIES, np.uint64),
        _spec("forced", sizes.neurons, np.uint8),
        _spec("outside", sizes.neurons, variant.accumulator, variant.packed_sums),
        _spec("chunk_counts", chunks_of(sizes.neurons, variant), np.uint32),
        _spec("span_counts", 2 * -(-chunks_of(sizes.neurons, variant) // CHUNKS_PER_SPAN), np.uint32),
        _spec("chunk_ids", sizes.neurons, np.uint32),
        _spec("chunk_potentials", sizes.neurons, np.float32),
        _spec("piece_counts", 2, np.uint32, variant.long_rows),
        _spec("pieces", sizes.pieces, np.uint64, variant.long_rows),
        _spec("cursors", sizes.neurons, np.uint64, variant.tiles > 0),
        _spec("amounts", sizes.neurons, variant.accumulator, variant.tiles > 0 and variant.uniform_rows),
    )


def slot_stride(neurons: int, variant: Variant) -> int:
    """Cells from one slot of the FCL to the next: no 32-bit word belongs to two slots."""
    per_word = max(1, 32 // variant.sum_bits)
    return max(1, -(-neurons // per_word)) * per_word


def chunks_of(neurons: int, variant: Variant) -> int:
    """Chunks that the fused burst cuts the neurons into."""
    return -(-neurons // variant.fused.chunk) if variant.fused is not None else 0


def train_specs(number: int, variant: Variant, train: TrainSizes) -> tuple[BufferSpec, ...]:
    """The buffers of train set ``number``."""
    return (
        _spec(f"report.{number}", report_length(train.length), np.int64),
        _spec(f"log_ids.{number}", train.log, np.uint32),
        _spec(f"log_potentials.{number}", train.log, np.float32),
        *stimulus_specs(number, variant, train),
    )


def stimulus_specs(number: int, variant: Variant, train: TrainSizes) -> tuple[BufferSpec, ...]:
    """The buffers of train set ``number`` that hold what comes from outside."""
    return (
        _spec(f"stimulus_offsets.{number}", train.length + 1, np.int64),
        _spec(f"stimulus_ids.{number}", train.stimulus, np.uint32),
        _spec(f"stimulus_amounts.{number}", train.stimulus, variant.accumulator),
        _spec(f"forced_offsets.{number}", train.length + 1, np.int64),
        _spec(f"forced_ids.{number}", train.stimulus, np.uint32),
        _spec(f"forced_hits.{number}", train.stimulus, np.uint8),
    )
