"""One shard on the numba kernels of the CPU engine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import plan_of
from burstproof.engine.cpu.memory import CpuMemory
from burstproof.engine.features.support import ONE_BURST
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePart
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.model import Network


def cpu_shards(
    network: Network,
    options: EngineOptions,
    partition: Partition,
    exchange: Exchange | None,
    threads: int,
    _links: Links,
) -> Engine:
    """The engine over shards on the CPU; ``threads`` step those of this process."""
    return ShardedEngine(network, options, partition, CpuShard, exchange, threads)


class CpuShard:
    """One shard in the memory of this process, on one thread.

    Raises
    ------
    NetworkError
        What ``build_layout`` refuses.
    """

    def __init__(self, shard: NetworkShard) -> None:
        self._partition, self._number = shard.partition, shard.number
        self._members, self._rows = shard.members, shard.rows
        self._memory = CpuMemory(
            shard.network,
            shard.options,
            shard.fixed_point,
            lambda weights: (shard.layout(weights, ONE_BURST), shard.members, shard.rows),
        )
        self._no_plan = plan_of([None], self._memory.ring.sums.dtype)
        self._places = np.empty(max(len(self._members), 1), np.uint32)
        self._potentials = np.empty(max(len(self._members), 1), np.float32)

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """See ``Shard.waiting``."""
        return self._memory.waiting(number, self._memory.plan([stimulus]))

    def fire(self, number: int, stimulus: PackedStimulus | None, batch: bool) -> Fired:
        """See ``Shard.fire``."""
        memory = self._memory
        memory.note_power()
        plan = self._no_plan if stimulus is None else memory.plan([stimulus])
        places, potentials = self._places, self._potentials
        count, candidates = memory.kernels.fire(number, batch, memory.model(plan), memory.fired[0], places, potentials)
        memory.fired = places[:count].copy(), potentials[:count].copy()
        return Fired(self._members[places[:count]], potentials[:count].copy(), int(candidates))

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """See ``Shard.receive``."""
        memory = self._memory
        memory.kernels.receive(number, ids, potentials, memory.fired[0], memory.model(self._no_plan), memory.counters)

    def state(self, burst_count: int) -> StatePart:
        """See ``Shard.state``."""
        own, changing = self._memory.state(burst_count), self._memory.computed_places
        weights, traces, features = own.weights[changing], own.eligibility_traces[changing], own.features
        if features is not None:
            features = replace(features, postsynaptic_potentials=features.postsynaptic_potentials[changing])
        changed = replace(own, weights=weights, eligibility_traces=traces, features=features)
        return StatePart(self._members, self._rows[changing], changed)

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        self._memory.restore(state)
        own = self._partition.owner[state.fired_ids] == self._number
        self._memory.fired = self._partition.local_ids[state.fired_ids[own]], state.fired_potentials[own]

    def close(self) -> None:
        """Nothing to give back."""
