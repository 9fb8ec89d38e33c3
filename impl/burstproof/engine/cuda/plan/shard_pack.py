"""A shard made ready for its device: layout, kernel variant and buffers, before a device is touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec
from burstproof.engine.cuda.exchange.words import LINK_LENGTH
from burstproof.engine.cuda.plan.block_size import LONG_ROW, checked_block_size
from burstproof.engine.cuda.plan.buffers import BatchSizes, batch_sizes, buffer_specs, palette_size
from burstproof.engine.cuda.plan.packed import Packed, batch_length, featured, pack_layout, packed_for, with_raw_levels
from burstproof.engine.cuda.plan.padded_rows import row_lengths, table_words
from burstproof.engine.cuda.plan.queues import with_queues
from burstproof.engine.cuda.plan.shard_variant import ShardVariant, row_share, shard_variant, whole
from burstproof.engine.cuda.plan.sizing import sized, slots_reached, with_row_entries
from burstproof.engine.cuda.plan.variant import can_be_recalled
from burstproof.engine.feature_state import FEATURES_BY_NEURON
from burstproof.engine.features.support import MODELLED
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.engine.state import EngineState
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import NEURON_FIELDS

_BY_SOURCE = frozenset(("offsets", "contributions", "clamped_sources", "computed_offsets"))
_BY_SOURCE |= {"recalled_ids", "delay_starts"}
_BY_SOURCE |= {"mp_driven", "divisors", "last_fired", "streaks", "histories", "driver_of", "degeneration"}
"""Buffers whose size follows from the neurons of the whole network, which are the shard's sources."""

_OF_OWNERS = frozenset(("chunk_counts", "span_counts", "chunk_ids", "chunk_potentials", "progress", "pieces"))
"""Buffers that a shard has only with queues per owner."""
_OWN_SIZE = frozenset(("outside", "cursors", "amounts"))
"""Buffers that a shard sizes in its own way."""

_LARGE = 1_000_000
_MOST_LISTED = 1 << 32
"""Most firings in all fired lists that are kept: they are counted in 32 bits."""
_MOST_SLOTS_BYTES = 48 << 20
"""Slots of at most this size stay in the L2 cache of an H200 well enough, beside what else a shard reads."""


@dataclass(frozen=True)
class SpacedIds:
    """Ids ``first``, ``first + step``, ...: of a contiguous shard, or of a round-robin one."""

    first: int
    step: int


@dataclass(frozen=True, eq=False)
class PackedShard:
    """One shard with everything that its device needs.

    Attributes
    ----------
    number : int
    sources : int
        Neurons of the whole network, each of which has a row.
    members : uint32 (n,) or None
        Ids of the neurons, ascending; ``None`` if only ``spaced`` says which they are.
    spaced : SpacedIds or None
        The ids, if they are evenly spaced.
    packed : Packed
        Its ``network`` has the shard's neurons and no synapses.
    shard : ShardVariant
    lengths : int64
        Number of rows with 0, 1, ... static entries (``padded_rows``).
    """

    number: int
    sources: int
    members: npt.NDArray[np.uint32] | None
    spaced: SpacedIds | None
    packed: Packed
    shard: ShardVariant
    lengths: npt.NDArray[np.int64]

    @property
    def neurons(self) -> int:
        """Neurons n of the shard."""
        return self.packed.sizes.neurons

    @property
    def mean_row(self) -> float:
        """Mean number of static entries of a source."""
        return self.packed.sizes.static_entries / max(self.sources, 1)

    def ids(self) -> npt.NDArray[np.uint32]:
        """Ids of the neurons, ascending."""
        if self.members is not None:
            return self.members
        assert self.spaced is not None
        return (self.spaced.first + self.spaced.step * np.arange(self.neurons, dtype=np.int64)).astype(np.uint32)

    @property
    def buffers(self) -> tuple[BufferSpec, ...]:
        """Every buffer on the device but the mailboxes."""
        variant, packed = self.shard.variant, self.packed
        if not self.shard.exchanges:
            return packed.buffers
        of_network = buffer_specs(replace(packed.sizes, neurons=self.sources), variant, packed.batch)
        by_source = {spec.name: spec for spec in of_network if spec.name in _BY_SOURCE} | self._padded()
        left_out = _OWN_SIZE if variant.queues is not None else _OWN_SIZE | _OF_OWNERS
        specs = buffer_specs(packed.sizes, variant, packed.batch)
        shared = [by_source.get(spec.name, spec) for spec in specs if spec.name not in left_out]
        everyone = max(self.sources, 1) if self.shard.collects else 1
        carried = self.shard.carries_potentials or not self.shard.fused
        tiled = everyone if variant.tiles else 1
        neurons = max(self.neurons, 1)
        own = (
            BufferSpec("link", LINK_LENGTH, np.dtype(np.int64)),
            BufferSpec("outside", neurons, np.dtype(variant.accumulator)),
            BufferSpec("members", 1 if self.spaced is not None else neurons, np.dtype(np.uint32)),
            BufferSpec("all_ids", everyone, np.dtype(np.uint32)),
            BufferSpec("all_potentials", everyone if carried else 1, np.dtype(np.float32)),
            BufferSpec("cursors", tiled, np.dtype(np.uint64)),
            BufferSpec("amounts", tiled, np.dtype(variant.accumulator)),
        )
        return (*shared, *own)

    def _padded(self) -> dict[str, BufferSpec]:
        """Buffers of padded rows, which take the place of those of rows found by offsets."""
        words = self.shard.row_words
        if not words:
            return {}
        table = BufferSpec("targets", max(table_words(self.lengths, words) // 2, 1), np.dtype(np.uint64))
        kinds = {"offsets": self.shard.variant.offset, "contributions": self.shard.variant.contribution}
        return {"targets": table} | {name: BufferSpec(name, 1, np.dtype(kind)) for name, kind in kinds.items()}

    def local(self, state: EngineState) -> EngineState:
        """The shard's part of a state of the whole network; the firing history of all sources stays whole."""
        ids = self.ids()
        places, own = places_among(ids, state.fired_ids)
        features = state.features
        if features is not None:
            features = replace(features, **{name: getattr(features, name)[ids] for name in FEATURES_BY_NEURON})
        return replace(
            state,
            features=features,
            membrane_potentials=state.membrane_potentials[ids],
            refractory_countdowns=state.refractory_countdowns[ids],
            consecutive_fire_counts=state.consecutive_fire_counts[ids],
            was_candidate=state.was_candidate[ids],
            pending=state.pending[:, ids],
            pending_candidate=state.pending_candidate[:, ids],
            fired_ids=places[own].astype(np.uint32),
            fired_potentials=state.fired_potentials[own],
        )


def places_among(
    ids: npt.NDArray[np.uint32], wanted: npt.NDArray[Any]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Positions (n,) of the ``wanted`` ids in the ascending ``ids``, and which of them are there."""
    wanted = wanted.astype(ids.dtype, copy=False)  # else numpy would convert all ids
    places = np.searchsorted(ids, wanted)
    own = places < len(ids)
    own[own] = ids[places[own]] == wanted[own]
    return places, own


def spacing(members: npt.NDArray[np.uint32]) -> SpacedIds | None:
    """The spacing of ascending ids, if it is even."""
    if len(members) < 2:
        return SpacedIds(int(members[0]) if len(members) else 0, 1)
    steps = np.diff(members)
    return SpacedIds(int(members[0]), int(steps[0])) if bool((steps == steps[0]).all()) else None


def shard_batch(options: EngineOptions, neurons: int, sources: int) -> BatchSizes:
    """Sizes of a batch for ``neurons`` neurons of a network of ``sources``: fewer bursts if one takes longer.

    Raises
    ------
    ConfigError
        Out of range.
    """
    return batch_sizes(neurons, batch_length(options, 128 if sources <= _LARGE else 16))


def pack_shard(shard: NetworkShard, weights: npt.NDArray[np.float32] | None = None) -> PackedShard:
    """Pack ``shard``; ``weights`` (S,) take the place of the network's.

    Raises
    ------
    NetworkError
        A network that the profile refuses, or a contribution that is not finite.
    """
    if weights is not None:
        network = shard.network.replace(synapses=replace(shard.network.synapses, weights=weights))
        shard = replace(shard, network=network)
    network, members = shard.network, shard.members
    layout = shard.layout(modelled=MODELLED["cuda"])
    layout = with_raw_levels(layout, network, shard.loaded, members)
    sources, modulated = network.neuron_count, bool(network.features.modulators)
    packed = pack_layout(
        network, shard.options, shard.fixed_point, layout, bounded=weights is None, several_kernels=modulated
    )
    packed = replace(
        featured(packed, network, shard.loaded, members),
        network=neurons_only(network, members),
        batch=shard_batch(shard.options, len(members), sources),
    )
    lengths = row_lengths(layout.static.offsets)
    return as_shard(shard.number, sources, members, spacing(members), packed, lengths)


def as_shard(
    number: int,
    sources: int,
    members: npt.NDArray[np.uint32] | None,
    spaced: SpacedIds | None,
    packed: Packed,
    lengths: npt.NDArray[np.int64],
) -> PackedShard:
    """The shard of ``packed``, whose variant becomes one that the kernels of shards know, without queues."""
    layout = packed.layout
    sizes = replace(packed.sizes, ring=layout.max_delay)
    entries = sizes.static_entries + sizes.computed_entries
    variant = replace(sized(packed.variant, sizes, ring_only=True), long_rows=0, row_length=0, equal_rows=False)
    if variant.tiles:
        variant = replace(variant, tile_share=row_share(2 * entries / max(sources, 1) / variant.tiles))
    own = shard_variant(
        variant,
        sizes.neurons,
        entries,
        sources,
        spaced_ids=spaced is not None,
        mp_driven=layout.computed is not None and bool(layout.computed.mp_driven.any()),
        block=packed.options.cuda.block_size,
    )
    return PackedShard(number, sources, members, spaced, replace(packed, variant=variant, sizes=sizes), own, lengths)


def needs_queues(shard: PackedShard) -> bool:
    """Whether ``shard`` should have queues even if little fires.

    Without delays, that is if rows are too long for the threads that send one. With delays, it is if slots exceed the
    L2 cache and buckets can hold the contributions to later bursts.
    """
    longest_delay, variant = shard.packed.layout.max_delay, shard.packed.variant
    if longest_delay == 1:
        return _longest_row(shard) > LONG_ROW
    sizes = replace(shard.packed.sizes, ring=longest_delay + 1)
    slots_bytes = slots_reached(sizes) * sizes.neurons * variant.word.bits // 8
    can_have_buckets = can_be_recalled(_longest_row(shard), longest_delay) and not variant.uniform_rows
    return can_have_buckets and slots_bytes > _MOST_SLOTS_BYTES


def _longest_row(shard: PackedShard) -> int:
    """Entries of the longest row as it is, which may be less than what was expected of the network."""
    return int(np.flatnonzero(shard.lengths)[-1]) if shard.lengths.any() else 0


def plain(shard: PackedShard) -> PackedShard:
    """``shard`` without queues per owner."""
    if shard.shard.queues is None:
        return shard
    return as_shard(shard.number, shard.sources, shard.members, shard.spaced, shard.packed, shard.lengths)


def queued(shard: PackedShard, overlapped: bool, *, needed: bool = False) -> PackedShard | None:
    """``shard`` with queues per owner; ``None`` if it cannot have them, or if they neither pay nor are ``needed``.

    ``overlapped`` as in ``ShardVariant``.
    """
    packed, own = shard.packed, shard.shard
    palette = packed.sizes.palette or palette_size(packed.layout, own.variant)
    ring = packed.layout.max_delay + 1
    sizes = replace(packed.sizes, ring=ring, palette=palette, longest_row=_longest_row(shard))
    if not sizes.static_entries or shard.sources * ring >= _MOST_LISTED:
        return None
    if own.carries_potentials or own.variant.count_ahead or own.extras or not own.fused:
        return None
    variant = with_row_entries(replace(own.variant, tiles=0), sizes)
    variant = with_queues(variant, sizes, sources=shard.sources, needed=needed)
    block = variant.fused
    if variant.queues is None or block is None:
        return None
    variant = replace(variant, tile_share=row_share(shard.mean_row / variant.recalled), overlapped=overlapped)
    own = replace(own, variant=variant, threads=block.threads, per_thread=block.per_thread)
    own = replace(own, overlapped=overlapped, merged=True, row_words=0)
    return replace(shard, packed=replace(packed, variant=variant, sizes=sizes), shard=own)


def whole_network(packed: Packed) -> PackedShard:
    """A whole network as the one shard of a device, without an exchange."""
    neurons, block = packed.sizes.neurons, checked_block_size(packed.options.cuda.block_size, packed.sizes.neurons)
    return PackedShard(0, neurons, None, SpacedIds(0, 1), packed, whole(packed.variant, block), np.zeros(1, np.int64))


def neurons_only(network: Network, members: npt.NDArray[np.uint32]) -> Network:
    """The neurons ``members`` of ``network`` without any synapse."""
    columns: dict[str, Any] = {name: _taken(getattr(network.neurons, name), members) for name in NEURON_FIELDS}
    return Network(
        NeuronTable.build(len(members), **columns),
        SynapseTable.build([], []),
        burst_count=network.burst_count,
        power_amount=network.power_amount,
        features=network.features,
    )


def _taken(column: npt.NDArray[Any], members: npt.NDArray[np.uint32]) -> npt.NDArray[Any]:
    if len(column) and not column.strides[0]:
        return np.broadcast_to(column[0], (len(members), *column.shape[1:]))
    return column[members]


def shard_for(shard: PackedShard, local: EngineState) -> PackedShard:
    """A shard that can run ``local``, a part of a state: ``shard``, or one with other kernels if it needs them.

    With several shards, the weights of ``local`` are not looked at: those that were packed hold.
    """
    exchanges = shard.shard.exchanges
    packed = packed_for(shard.packed, replace(local, weights=shard.packed.weights) if exchanges else local)
    if packed is shard.packed:
        return shard
    if not exchanges:
        return whole_network(packed)
    return as_shard(shard.number, shard.sources, shard.members, shard.spaced, packed, shard.lengths)
