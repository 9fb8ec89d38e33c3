"""The layout of one shard: its neurons, and all synapses onto them, grouped by the source's id in the network."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.support import NOTHING, Section
from burstproof.engine.layout import Layout, SynapseFacts, build_layout
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.partition import Partition
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import SYNAPSE_FIELDS, Parameters


@dataclass(frozen=True, eq=False)
class NetworkShard:
    """Shard ``number`` of ``network`` under ``partition``; ``facts`` are those of the whole network.

    The first ``loaded`` neurons of the network were loaded; the others are room for twins.
    """

    network: Network
    options: EngineOptions
    fixed_point: FixedPoint
    facts: SynapseFacts
    partition: Partition
    number: int
    loaded: int

    @property
    def members(self) -> npt.NDArray[np.uint32]:
        """Ids of the n neurons, ascending, uint32 (n,)."""
        return self.partition.members(self.number)

    @cached_property
    def rows(self) -> npt.NDArray[np.int64]:
        """Rows of the synapses onto neurons of the shard, valid or not, ascending, int64 (s,)."""
        return np.flatnonzero(self.partition.owner[self.network.synapses.target_neurons] == self.number)

    def layout(self, weights: npt.NDArray[np.float32] | None = None, modelled: frozenset[Section] = NOTHING) -> Layout:
        """The shard packed for an engine with the features ``modelled``; ``weights`` (s,) replace the network's.

        ``neuron_count`` is n, and targets are local numbers 0 ... n - 1, but there are rows for all N sources of the
        network. Plastic rules have sources and targets by id in the network. Scale, width, divisors and the number of
        slots are those of the whole network; ``computed.rows`` are rows of its synapse table.

        Raises
        ------
        NetworkError
            What ``build_layout`` refuses.
        """
        own = self.network.replace(
            synapses=_taken(self.network, self.rows, weights),
            plastic_mappings=tuple(_restricted(mapping, self.rows) for mapping in self.network.plastic_pairs),
        )
        return _localised(build_layout(own, self.options, self.fixed_point, self.facts, modelled), self)


def _taken(network: Network, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32] | None) -> SynapseTable:
    """The synapses in ``rows``; broadcast columns stay broadcast."""
    table = network.synapses
    columns = {name: _rows_of(getattr(table, name), rows) for name in SYNAPSE_FIELDS}
    return SynapseTable.build(**{**columns, **({} if weights is None else {"weights": weights})})


def _rows_of(column: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    return np.broadcast_to(column[0], len(rows)) if len(column) and not column.strides[0] else column[rows]


def _restricted(mapping: PlasticMapping, rows: npt.NDArray[np.int64]) -> PlasticMapping:
    """``mapping`` for a table that has only ``rows``; kept even without synapses, because its window still counts."""
    places = np.searchsorted(rows, mapping.synapses)
    inside = places < len(rows)
    inside[inside] = rows[places[inside]] == mapping.synapses[inside]
    return dataclasses.replace(mapping, synapses=places[inside])


def _localised(whole: Layout, shard: NetworkShard) -> Layout:
    """``whole``, restricted to the shard's neurons, with local numbers as targets."""
    partition, members, places = shard.partition, shard.members, shard.partition.local_ids
    static = dataclasses.replace(whole.static, targets=places[whole.static.targets])
    computed = whole.computed
    if computed is not None:
        computed = dataclasses.replace(computed, targets=places[computed.targets], rows=shard.rows[computed.rows])
    owned = whole.power_neuron >= 0 and partition.owner[whole.power_neuron] == shard.number
    return dataclasses.replace(
        whole,
        neuron_count=len(members),
        neurons=Parameters.of(lambda name: getattr(whole.neurons, name)[members]),
        static=static,
        computed=computed,
        power_neuron=int(places[whole.power_neuron]) if owned else -1,
    )
