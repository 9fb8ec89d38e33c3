"""Uploads a packed network: the initial contents of the device's buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.features import first_contents
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.kernels.marks import marks_of
from burstproof.engine.cuda.plan.columns import PARAMETERS, column_dtype
from burstproof.engine.cuda.plan.entries import entry_words, palette_of, places_in
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.padded_rows import pad_rows
from burstproof.engine.cuda.plan.shard_pack import PackedShard
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.layout import ComputedRows, Layout, PlasticRules, StaticRows
from burstproof.network.model import Network

Contents = Iterator[tuple[str, npt.NDArray[Any]]]


def fill_shard(shard: PackedShard, device: DeviceState, network: Network) -> None:
    """Write every buffer that does not start as zeros; ``network`` is the whole network."""
    upload_members(shard, device)
    upload_neurons(shard.packed, device)
    if shard.shard.row_words:
        upload_padded(shard, device)
    else:
        upload_synapses(shard.packed, device)
    computed = shard.packed.layout.computed
    if computed is not None and device.keeps_traces:
        device.write("eligibility", network.synapses.eligibility_traces[computed.rows])


def upload_padded(shard: PackedShard, device: DeviceState) -> None:
    """Write the padded rows of a shard with static synapses only."""
    rows = shard.packed.layout.static
    device.write("targets", pad_rows(rows, first_of_rows(rows), shard.shard.row_words))
    if rows.clamped_sources is not None:
        device.write("clamped_sources", rows.clamped_sources)


def upload_members(shard: PackedShard, device: DeviceState) -> None:
    """Write the table of ids, unless the ids follow from a formula."""
    if shard.spaced is None:
        device.write("members", shard.ids())


def upload_neurons(packed: Packed, device: DeviceState) -> None:
    """Write the control array and the neurons' state and parameters."""
    neurons = packed.network.neurons
    device.write_neurons(
        packed.network.burst_count,
        neurons.membrane_potentials,
        neurons.consecutive_fire_counts,
        neurons.refractory_countdowns,
    )
    for name, values in _neurons(packed):
        device.write(name, values)
    for name, values in first_contents(packed):
        if device.holds(name, values):
            device.write(name, values)


def upload_synapses(packed: Packed, device: DeviceState) -> None:
    """Write the rows and the plasticity rules, without eligibility traces."""
    for name, values in _synapses(packed.layout, packed.variant):
        device.write(name, values)


def _neurons(packed: Packed) -> Contents:
    layout, sizes, record = packed.layout, packed.sizes, packed.variant.record
    if packed.variant.defers_learning and layout.plastic is not None:
        yield "rule_begins", packed.network.burst_count + layout.plastic.windows
    if packed.features.restarts:
        yield "marks", marks_of(layout.neurons.mp_charge_accumulation)
    for name in PARAMETERS:
        if name not in sizes.uniform and name not in record.places:
            yield name, getattr(layout.neurons, name).astype(column_dtype(name, sizes.narrow), copy=False)
    if record.places:
        yield "records", record.packed(layout.neurons._asdict())


def _synapses(layout: Layout, variant: Variant) -> Contents:
    yield from _static(layout.static, variant)
    if layout.computed is not None:
        yield from _computed(layout.computed)
        if layout.plastic is not None:
            yield from _plastic(layout.plastic, len(layout.computed.targets), variant)


def _static(rows: StaticRows, variant: Variant) -> Contents:
    yield "offsets", rows.offsets
    palette = palette_of(rows.contributions) if variant.palette else None
    if palette is not None:
        yield "palette", palette
    if variant.target_bits:
        yield "targets", entry_words(rows, variant.target_bits, palette)
    else:
        yield "targets", rows.targets
        if palette is not None:
            yield "contributions", places_in(palette, rows.contributions)
        else:
            yield "contributions", first_of_rows(rows) if variant.uniform_rows else rows.contributions
    if rows.delays is not None:
        yield "delays", rows.delays
    if rows.clamped_sources is not None:
        yield "clamped_sources", rows.clamped_sources


def first_of_rows(rows: StaticRows) -> npt.NDArray[Any]:
    """The first contribution of each row, 0 for an empty row."""
    firsts = np.zeros(len(rows.offsets) - 1, rows.contributions.dtype)
    used = np.flatnonzero(np.diff(rows.offsets))
    firsts[used] = rows.contributions[rows.offsets[used]]
    return firsts


def _computed(rows: ComputedRows) -> Contents:
    yield "computed_offsets", rows.offsets
    yield "computed_targets", rows.targets
    yield "weights", rows.weights
    yield "psps", rows.psps
    yield "signs", rows.signs
    if rows.delays is not None:
        yield "computed_delays", rows.delays
    yield "mp_driven", rows.mp_driven
    yield "divisors", rows.divisors


def _plastic(rules: PlasticRules, computed: int, variant: Variant) -> Contents:
    yield "rule_windows", rules.windows
    yield "potentiations", rules.potentiations
    yield "depressions", rules.depressions
    if variant.defers_learning:
        numbers = np.zeros(computed, np.uint16)
        numbers[rules.positions] = np.repeat(np.arange(1, len(rules.windows) + 1), np.diff(rules.starts))
        yield "learning_rules", numbers
        return
    yield "rule_starts", rules.starts
    yield "plastic_positions", rules.positions
    yield "plastic_sources", rules.sources
    yield "plastic_targets", rules.targets
