"""One shard on the numba kernels of the CPU engine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import plan_of
from burstproof.engine.cpu.memory import CpuMemory, Floats, Members, Rows
from burstproof.engine.layout import Layout, SynapseFacts
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePiece
from burstproof.engine.sharded.shard_layout import build_shard_layout, rows_of_shard
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.fixed_point import FixedPoint
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
    """One shard of ``network`` in the memory of this process, on one thread.

    Parameters
    ----------
    network, options, fixed_point, facts
        Of the whole network.
    partition : Partition
    shard : int

    Raises
    ------
    NetworkError
        What ``build_layout`` refuses.
    """

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        fixed_point: FixedPoint,
        facts: SynapseFacts,
        partition: Partition,
        shard: int,
    ) -> None:
        def pack(weights: Floats | None) -> tuple[Layout, Members, Rows]:
            packed = build_shard_layout(network, options, fixed_point, facts, partition, shard, weights)
            return packed.layout, packed.members, packed.rows

        self._members, self._rows = partition.members(shard), rows_of_shard(network, partition, shard)
        self._partition, self._shard = partition, shard
        self._memory = CpuMemory(network, options, fixed_point, pack)
        self._restored = False
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
        if memory.restarts_fired:
            memory.fired = places[:count].copy(), potentials[:count].copy()
        return Fired(self._members[places[:count]], potentials[:count].copy(), int(candidates))

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """See ``Shard.receive``."""
        memory = self._memory
        memory.kernels.receive(number, ids, potentials, memory.model(self._no_plan), memory.counters)

    def piece(self, burst_count: int) -> StatePiece:
        """See ``Shard.piece``."""
        memory, rows = self._memory, self._rows
        weights, eligibility = memory.learnt()
        learning, plastic = memory.computed_places, memory.plastic_places
        if self._restored:
            learning = plastic = np.arange(len(rows))
        return StatePiece(
            shard=self._shard,
            weight_rows=rows[learning],
            weights=weights[learning],
            eligibility_rows=rows[plastic],
            eligibility_traces=eligibility[plastic],
            **memory.columns(burst_count),
        )

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        self._memory.restore(state)
        self._restored = True
        own = self._partition.owner[state.fired_ids] == self._shard
        places = self._partition.local_ids()[state.fired_ids[own]]
        self._memory.fired = places, state.fired_potentials[own]

    def close(self) -> None:
        """Nothing to give back."""
