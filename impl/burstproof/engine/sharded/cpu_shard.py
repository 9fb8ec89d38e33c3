"""A shard on the CPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import stimulus_table
from burstproof.engine.cpu.memory import CpuMemory, Packed
from burstproof.engine.features.support import MODELLED
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePart, Twin
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.engine.state import EngineState
from burstproof.network.model import Network


def cpu_shards(
    network: Network,
    options: EngineOptions,
    partition: Partition,
    exchange: Exchange | None,
    threads: int,
    _links: Links,
) -> Engine:
    """The engine over CPU shards; ``threads`` threads step those of this process."""
    return ShardedEngine(network, options, partition, CpuShard, exchange, threads)


class CpuShard:
    """A shard in the memory of this process, on one thread.

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
            lambda weights: Packed(shard.layout(weights, MODELLED["cpu"]), shard.members, shard.rows),
        )
        if shard.network.features.clamp_potentials:
            self._memory.neurons.unclamped[:] = self._members >= shard.loaded
        self._number_places(shard.network.synapse_count if shard.network.features.associative else 0)
        self._no_plan = stimulus_table([None], self._memory.ring.dtype)
        self._places = np.empty(max(len(self._members), 1), np.uint32)
        self._potentials = np.empty(max(len(self._members), 1), np.float32)

    def _number_places(self, synapses: int) -> None:
        """Map rows of the network's synapse table to computed rows of this shard; -1 if not in it."""
        self._computed_places = np.full(synapses, -1, np.int64)
        if synapses:
            own = self._rows[self._memory.computed_places]
            self._computed_places[own] = np.arange(len(own))

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """See ``Shard.waiting``."""
        return self._memory.waiting(number, self._memory.plan([stimulus]))

    def fire(self, number: int, stimulus: PackedStimulus | None, batch: bool) -> Fired:
        """See ``Shard.fire``."""
        memory = self._memory
        memory.note_power()
        plan = self._no_plan if stimulus is None else memory.plan([stimulus])
        places, potentials = self._places, self._potentials
        count, candidates = memory.kernels.fire(memory.held(plan), number, batch, memory.fired[0], places, potentials)
        memory.note_clamped([stimulus])
        memory.fired = places[:count].copy(), potentials[:count].copy()
        return Fired(self._members[places[:count]], potentials[:count].copy(), int(candidates))

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """See ``Shard.receive``."""
        memory = self._memory
        memory.kernels.receive(memory.held(self._no_plan), number, ids, potentials, memory.fired[0], memory.counters)
        memory.extras.memory_fired[:] = False

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

    def signals(self, burst: int) -> npt.NDArray[np.float32]:
        """See ``Shard.signals``."""
        found: npt.NDArray[np.float32] = self._memory.extras.signals[burst & 1].copy()
        return found

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """See ``Shard.drive``."""
        extras = self._memory.extras
        extras.memory_fired[driver + 1], extras.memory_potentials[driver + 1] = True, potential

    def set_weights(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> None:
        """See ``Shard.set_weights``."""
        places = self._computed_places[rows]
        here = places >= 0
        self._memory.computed.weights[places[here]] = weights[here]

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: npt.NDArray[np.float32]) -> None:
        """See ``Shard.set_divisors``."""
        self._memory.computed.divisors[sources] = divisors

    def add_twin(self, twin: Twin) -> None:
        """See ``Shard.add_twin``."""
        memory, extras = self._memory, self._memory.extras
        extras.driver_of[twin.place] = twin.driver
        if self._partition.owner[twin.place] != self._number:
            return
        place = self._partition.local_ids[twin.place]
        for name, value in twin.parameters.items():
            getattr(memory.parameters, name)[place] = value
        extras.leaks_in_force[place], extras.can_train[place] = twin.leak, twin.trains

    def close(self) -> None:
        """Nothing to release."""
