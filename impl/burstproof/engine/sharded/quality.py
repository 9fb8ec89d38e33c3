"""Quality of a partition: cut synapses, imbalance of shards, and bytes exchanged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.sharded.partition import Partition, neuron_cost
from burstproof.network.model import Network

BYTES_PER_FIRING = 8
"""Bytes of a firing sent to another shard: an id and a potential."""

_CHUNK = 1 << 22


@dataclass(frozen=True)
class PartitionQuality:
    """Figures of a partition over a network.

    Attributes
    ----------
    strategy : str
    neurons, synapses : tuple of int
        Neurons of each shard, and valid synapses onto them.
    cost : tuple of float
        Cost of a burst for each shard, in units of one neuron's dynamics, see ``partition.neuron_cost``.
    cut_synapses : int
        Valid synapses between different shards.
    """

    strategy: str
    neurons: tuple[int, ...]
    synapses: tuple[int, ...]
    cost: tuple[float, ...]
    cut_synapses: int

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.neurons)

    @property
    def cut_share(self) -> float:
        """Fraction of the valid synapses that are cut, 0...1."""
        total = sum(self.synapses)
        return self.cut_synapses / total if total else 0.0

    @property
    def neuron_imbalance(self) -> float:
        """Neurons of the largest shard over the mean; 1 is equal."""
        return _imbalance(self.neurons)

    @property
    def synapse_imbalance(self) -> float:
        """Synapses of the largest shard over the mean; 1 is equal."""
        return _imbalance(self.synapses)

    @property
    def cost_imbalance(self) -> float:
        """Cost of the most expensive shard over the mean, which bounds the speed-up; 1 is equal."""
        return _imbalance(self.cost)

    def bytes_per_burst(self, firings: float) -> float:
        """Bytes that all shards together send in a burst of ``firings`` firings; each goes to all other shards."""
        return firings * BYTES_PER_FIRING * (self.shards - 1)


def partition_quality(
    network: Network, partition: Partition, activity: npt.NDArray[Any] | None = None
) -> PartitionQuality:
    """The quality of ``partition``; ``activity`` (measured firings per burst) gives the costs of the measured run."""
    synapses, owner = network.synapses, partition.owner
    onto = np.zeros(partition.shards, np.int64)
    cut = 0
    for start in range(0, network.synapse_count, _CHUNK):
        rows = slice(start, start + _CHUNK)
        valid = synapses.valid_mask[rows]
        targets = owner[synapses.target_neurons[rows][valid]]
        onto += np.bincount(targets, minlength=partition.shards)
        cut += int(np.count_nonzero(targets != owner[synapses.source_neurons[rows][valid]]))
    cost = np.bincount(owner, weights=neuron_cost(network, activity), minlength=partition.shards)
    return PartitionQuality(
        partition.strategy, tuple(partition.sizes.tolist()), tuple(onto.tolist()), tuple(cost.tolist()), cut
    )


def _imbalance(loads: tuple[float, ...]) -> float:
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean else 1.0
