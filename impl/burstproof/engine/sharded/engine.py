"""The sharded engine: one network on several shards, in one process or several, bit-exact (MG-1, MG-4, MG-5).

A shard owns neurons and all synapses onto them. In every burst the shards exchange their fired lists. Scale and width
of the sums are those of the whole network, so results do not depend on the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_network, check_state
from burstproof.engine.fixed_point import plan_fixed_point, synapses_appear
from burstproof.engine.interruption import KeepingFailure, closed, refuse_failed
from burstproof.engine.layout import synapse_facts
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.profile import BATCH_PATH_CANDIDATES
from burstproof.engine.protocol import PackedEngine, PackedPlan, Progress
from burstproof.engine.recorder import record_steps
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.growing import GrowingShards, roomy
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, Shard, Twin, joined_state, merged
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.errors import BurstproofError, InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_NOTHING = Fired(np.empty(0, np.uint32), np.empty(0, np.float32), 0)


@dataclass(frozen=True)
class Links:
    """Links that device shards may use: peer access on one host, NCCL, also between ranks; without them host memory."""

    enable_p2p: bool = True
    use_nccl: bool = True


MakeShard = Callable[[NetworkShard], Shard]
"""Creates the engine of one shard."""


class ShardedEngine(PackedEngine):
    """Engine over the shards of ``partition`` of this process; ``exchange`` connects all processes.

    Shard s belongs to rank ``s // (shards / ranks)``.

    Attributes
    ----------
    partition : Partition
    shards : list of Shard
        Those of this process.
    exchange_path : str
        How firings travel between processes, in words.
    failure : Exception or None
        Why a burst did not end; the engine cannot go on until a state is restored.
    """

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        partition: Partition,
        make_shard: MakeShard,
        exchange: Exchange | None = None,
        threads: int = 1,
        backend: str = "cpu",
    ) -> None:
        self.backend = backend
        self.network, self.options, self.partition = network, options, partition
        self.exchange = exchange or Exchange()
        self.exchange_path = "through MPI" if self.exchange.ranks > 1 else "in one process"
        check_network(network, options)
        _check_partition(network, partition, self.exchange)
        self.fixed_point: FixedPoint = plan_fixed_point(network, options)
        self.burst_count = network.burst_count
        self.failure: Exception | None = None
        self._closed = False
        self._weights, self._eligibility = network.synapses.weights, network.synapses.eligibility_traces
        self._psps = network.synapses.postsynaptic_potentials
        self._make_shard = make_shard
        self._last = _NOTHING
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="burstproof") if threads > 1 else None
        self.shards: list[Shard] = []
        self._growing: GrowingShards[ShardedEngine] | None = None
        if synapses_appear(network.features):
            self._growing = GrowingShards(network, self.fixed_point, self)
        else:
            self.lay_out(network, 1)

    def lay_out(self, network: Network, together: int) -> None:
        """Create the shards of this process; ``network`` is the engine's, or that with room for twins (``roomy``)."""
        self._close_shards()
        facts, partition = synapse_facts(network), self.partition
        self._spread = roomy(partition, network.neuron_count, together)
        per_rank = partition.shards // self.exchange.ranks
        self._own = range(self.exchange.rank * per_rank, (self.exchange.rank + 1) * per_rank)
        loaded = self.network.neuron_count
        for number in self._own:
            own = NetworkShard(network, self.options, self.fixed_point, facts, self._spread, number, loaded)
            self.shards.append(self._make_shard(own))

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst; see ``Engine.step``."""
        packed = None if stimulus is NO_STIMULUS else self.pack(stimulus)
        return self._step(packed, stimulus.memories_early)

    def _run(
        self, coming: range, packed: PackedPlan, plan: StimulusPlan, record: Record, progress: Progress | None
    ) -> Recording:
        return record_steps(
            coming,
            lambda number: self._step(packed.get(number), plan.get(number, NO_STIMULUS).memories_early),
            record,
            progress,
        )

    def _step(self, stimulus: PackedStimulus | None, early: npt.NDArray[np.uint32]) -> Burst:
        self._check_open()
        refuse_failed(self)
        number = self.burst_count + 1
        with KeepingFailure(self):
            if self._growing is not None:
                return self._growing.step(number, stimulus, early)
            everything = self.burst(number, stimulus)
        return Burst(number, everything.ids.copy(), everything.potentials.copy(), everything.candidates)

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """Run one burst in all shards; returns what fired in all of them."""
        parts = [self._part(stimulus, shard) for shard in self._own]
        everything = self._fire_and_exchange(number, parts)
        self._last = everything
        self.burst_count = number
        return everything

    def _fire_and_exchange(self, number: int, parts: Sequence[PackedStimulus | None]) -> Fired:
        """Run burst ``number`` in the shards of this process, and exchange what fired with all processes."""
        batch = False
        if self.options.emulate_batch_path:
            counts = self._each(lambda shard, part: shard.waiting(number, part), parts)
            batch = self.exchange.total(sum(counts)) >= BATCH_PATH_CANDIDATES
        fired = self._each(lambda shard, part: shard.fire(number, part, batch), parts)
        everything = self.exchange.gather(merged(fired))
        self._each(lambda shard, _: shard.receive(number, everything.ids, everything.potentials), parts)
        return everything

    def _each(self, work: Callable[[Shard, PackedStimulus | None], Any], parts: Sequence[Any]) -> list[Any]:
        """Call ``work`` for every shard of this process and its part of the stimulus."""
        if self._pool is None:
            return [work(shard, part) for shard, part in zip(self.shards, parts, strict=True)]
        return list(self._pool.map(work, self.shards, parts))

    def _part(self, stimulus: PackedStimulus | None, shard: int) -> PackedStimulus | None:
        """The part of ``stimulus`` for ``shard``, with local numbers instead of ids."""
        if stimulus is None:
            return None
        owner, places = self._spread.owner, self._spread.local_ids
        own, forced = owner[stimulus.ids] == shard, owner[stimulus.forced] == shard
        potentials = stimulus.forced_potentials
        return stimulus._replace(
            ids=places[stimulus.ids[own]],
            amounts=stimulus.amounts[own],
            forced=places[stimulus.forced[forced]],
            forced_potentials=None if potentials is None else potentials[forced],
        )

    def signals(self, burst: int) -> npt.NDArray[np.float32]:
        """See ``Held.signals``: every shard computes them from all firings."""
        return self.shards[0].signals(burst)

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """See ``Held.drive``."""
        for shard in self.shards:
            shard.drive(driver, neuron, potential)

    def set_weights(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> None:
        """See ``Held.set_weights``."""
        for shard in self.shards:
            shard.set_weights(rows, weights)

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: npt.NDArray[np.float32]) -> None:
        """See ``Held.set_divisors``."""
        for shard in self.shards:
            shard.set_divisors(sources, divisors)

    def add_twin(self, twin: Twin) -> None:
        """See ``Held.add_twin``."""
        for shard in self.shards:
            shard.add_twin(twin)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on; all processes call this and get the whole state."""
        self._check_open()
        refuse_failed(self)
        return self.whole() if self._growing is None else self._growing.state(self.burst_count)

    def whole(self) -> EngineState:
        """The state of all shards, including the room for twins."""
        own = [shard.state(self.burst_count) for shard in self.shards]
        parts = [part for some in self.exchange.share("the exchange of the state", own) for part in some]
        fired = self._last.ids.copy(), self._last.potentials.copy()
        return joined_state(parts, self._weights, self._eligibility, fired, self._psps)

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, which must be the same in all processes.

        Raises
        ------
        InputError
            The engine is closed.
        NetworkError
            A state of another network, or weights that its fixed-point scale does not admit.
        """
        self._check_open()
        check_state(state, self.network, self.fixed_point)
        if self._growing is None:
            self.take(state)
        else:
            self._growing.restore(state)
        self.failure = None

    def take(self, state: EngineState) -> None:
        """Continue from a ``state`` that includes the room for twins."""
        error: BurstproofError | None = None
        try:
            for shard in self.shards:
                shard.restore(state)
        except BurstproofError as found:
            error = found
        self.exchange.agree(error)
        self.burst_count = state.burst_count
        self._weights, self._eligibility = state.weights.copy(), state.eligibility_traces.copy()
        if state.features is not None:
            self._psps = state.features.postsynaptic_potentials.copy()
        self._last = Fired(state.fired_ids.copy(), state.fired_potentials.copy(), 0)

    def reshard(self, partition: Partition) -> None:
        """Continue from the current state with another partition.

        Raises
        ------
        InputError
            A partition of another network, or one that the processes cannot share evenly.
        """
        _check_partition(self.network, partition, self.exchange)
        state = self.state()
        self.partition = partition
        if self._growing is None:
            self.lay_out(self.network, 1)
        self.restore(state)

    def _check_open(self) -> None:
        if self._closed:
            raise closed()

    def _close_shards(self) -> None:
        for shard in self.shards:
            shard.close()
        self.shards = []

    def close(self) -> None:
        """Release memory and threads; closing twice is allowed."""
        self._closed = True
        self._close_shards()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


def _check_partition(network: Network, partition: Partition, exchange: Exchange) -> None:
    partition.check(network)
    if partition.shards % exchange.ranks:
        raise InputError(
            "shards that the processes cannot share evenly",
            where="shards",
            got=partition.shards,
            allowed=f"a multiple of {exchange.ranks}",
        )
