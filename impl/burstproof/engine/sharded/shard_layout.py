"""The part of a network that one shard packs: its neurons, and all synapses that end in them, by global source id."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.layout import Layout, SynapseFacts, build_layout
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.partition import Partition
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import SYNAPSE_FIELDS, Parameters


@dataclass(frozen=True, eq=False)
class ShardLayout:
    """One shard packed for an engine: n of the N neurons, and the s of the S synapses that end in them.

    Attributes
    ----------
    layout : Layout
        ``neuron_count`` is n and targets are places 0 ... n - 1 in the shard, while rows are those of all N sources.
        Plastic rules name sources and targets by their ids in the network. Scale, width, divisors and the number of
        slots are those of the whole network; ``computed.rows`` are rows of its synapse table.
    members : uint32 (n,)
        Id of each neuron, ascending.
    rows : int64 (s,)
        Rows of the network's synapse table that end in the shard, valid or not, ascending.
    """

    layout: Layout
    members: npt.NDArray[np.uint32]
    rows: npt.NDArray[np.int64]


def rows_of_shard(network: Network, partition: Partition, shard: int) -> npt.NDArray[np.int64]:
    """Rows of the synapse table that end in neurons of ``shard``, ascending, int64."""
    return np.flatnonzero(partition.owner[network.synapses.target_neurons] == shard)


def build_shard_layout(
    network: Network,
    options: EngineOptions,
    fixed_point: FixedPoint,
    facts: SynapseFacts,
    partition: Partition,
    shard: int,
    weights: npt.NDArray[np.float32] | None = None,
) -> ShardLayout:
    """Pack ``shard``; ``fixed_point`` and ``facts`` are those of the whole ``network``.

    Parameters
    ----------
    weights : float32 (s,), optional
        Weights of the shard's synapses that take the place of the network's.

    Raises
    ------
    NetworkError
        What ``build_layout`` refuses.
    """
    rows = rows_of_shard(network, partition, shard)
    members = partition.members(shard)
    own = network.replace(
        synapses=_taken(network, rows, weights),
        plastic_mappings=tuple(_restricted(mapping, rows) for mapping in network.plastic_pairs),
    )
    whole = build_layout(own, options, fixed_point, facts)
    return ShardLayout(_localised(whole, partition, shard, members, rows), members, rows)


def _taken(network: Network, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32] | None) -> SynapseTable:
    """The synapses in ``rows``; a column of one repeated value stays one."""
    table = network.synapses
    columns = {name: _rows_of(getattr(table, name), rows) for name in SYNAPSE_FIELDS}
    return SynapseTable.build(**{**columns, **({} if weights is None else {"weights": weights})})


def _rows_of(column: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    return np.broadcast_to(column[0], len(rows)) if len(column) and not column.strides[0] else column[rows]


def _restricted(mapping: PlasticMapping, rows: npt.NDArray[np.int64]) -> PlasticMapping:
    """``mapping`` over the table that has ``rows`` only; its window counts even if none of its synapses is left."""
    places = np.searchsorted(rows, mapping.synapses)
    inside = places < len(rows)
    inside[inside] = rows[places[inside]] == mapping.synapses[inside]
    return dataclasses.replace(mapping, synapses=places[inside])


def _localised(
    whole: Layout, partition: Partition, shard: int, members: npt.NDArray[np.uint32], rows: npt.NDArray[np.int64]
) -> Layout:
    """``whole`` with the shard's neurons only, and targets as places in it."""
    places = partition.local_ids()
    static = dataclasses.replace(whole.static, targets=places[whole.static.targets])
    computed = whole.computed
    if computed is not None:
        computed = dataclasses.replace(computed, targets=places[computed.targets], rows=rows[computed.rows])
    owned = whole.power_neuron >= 0 and partition.owner[whole.power_neuron] == shard
    return dataclasses.replace(
        whole,
        neuron_count=len(members),
        neurons=Parameters.of(lambda name: getattr(whole.neurons, name)[members]),
        static=static,
        computed=computed,
        power_neuron=int(places[whole.power_neuron]) if owned else -1,
    )
