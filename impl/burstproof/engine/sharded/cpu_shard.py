"""One shard on the numba kernels of the CPU engine."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.countdowns import running_countdowns
from burstproof.engine.cpu.arrays import (
    Neurons,
    Plan,
    Ring,
    computed_of,
    parameters_of,
    plan_of,
    plastic_of,
    scalars_of,
    static_of,
)
from burstproof.engine.cpu.compile import CLAMPED, HISTORY, KernelKey
from burstproof.engine.cpu.memory import specialises
from burstproof.engine.cpu.shard_kernels import ShardKernels, shard_kernels_for
from burstproof.engine.layout import SynapseFacts, refuse_overflow
from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import storage_for
from burstproof.engine.profile import LARGE_NETWORK_NEURONS
from burstproof.engine.protocol import Engine
from burstproof.engine.rules import features_of
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePiece
from burstproof.engine.sharded.shard_layout import ShardLayout, build_shard_layout
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_NO_PLACES = np.empty(0, np.uint32)


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
        self._network, self._options, self._fixed_point = network, options, fixed_point
        self._facts, self._partition, self._shard = facts, partition, shard
        self._general = not specialises(network, options)
        self._storage = storage_for(options.precision, network.neurons.thresholds)
        self._packed: ShardLayout = build_shard_layout(network, options, fixed_point, facts, partition, shard)
        self._weights = network.synapses.weights[self._packed.rows]
        self._eligibility = network.synapses.eligibility_traces[self._packed.rows]
        self._restored = False
        self._take_rows()
        layout = self._packed.layout
        self._parameters = parameters_of(layout)._replace(ids=self._packed.members)
        self._neurons = self._initial_neurons()
        self._scalars = scalars_of(layout, options, fixed_point)
        self._counters = np.zeros(2, np.int64)
        self._key = self._kernel_key()
        self._kernels: ShardKernels = shard_kernels_for(self._key)
        cells = layout.max_delay * layout.neuron_count
        flags = np.zeros(cells if self._key.flagged else 0, np.bool_)
        self._ring = Ring(np.zeros(cells, np.int64 if self._general else fixed_point.dtype), flags)
        self._no_plan = plan_of([None], self._ring.sums.dtype)
        self._power_clamps = layout.power_clamped and network.power_neuron is not None
        self._last = _NO_PLACES
        self._places = np.empty(max(layout.neuron_count, 1), np.uint32)
        self._potentials = np.empty(max(layout.neuron_count, 1), np.float32)
        self._plastic.eligibility[:] = self._eligibility[self._plastic_places()]

    def _take_rows(self) -> None:
        layout = self._packed.layout
        self._static = static_of(layout, self._general)
        self._computed = computed_of(layout, self._general)
        self._plastic = plastic_of(layout)

    def _initial_neurons(self) -> Neurons:
        """State of the members; the history is that of all neurons, since plastic synapses come from anywhere."""
        table, members = self._network.neurons, self._packed.members
        remembers = self._general or self._packed.layout.plastic is not None
        remembered = self._network.neuron_count if remembers else 0
        return Neurons(
            self._storage.rounded(table.membrane_potentials[members]),
            running_countdowns(table.refractory_countdowns, table.valid_mask)[members],
            table.consecutive_fire_counts[members].copy(),
            np.zeros(len(members), np.bool_),
            np.zeros(remembered, np.int64),
            np.zeros(remembered, np.int64),
        )

    def _kernel_key(self) -> KernelKey:
        layout, profile = self._packed.layout, self._options.profile
        features = features_of(self._network, self._options)
        key = KernelKey(
            features,
            layout.needs_flags,
            layout.max_delay > 1,
            layout.static.clamped_sources is not None,
            layout.computed is not None,
            layout.plastic is not None,
            profile.round_mp_driven,
            profile.plastic_all_window,
            features.restarts and profile.restart_all and self._network.neuron_count >= LARGE_NETWORK_NEURONS,
        )
        return key.general() if self._general else key

    def _compile(self, **changes: Any) -> None:
        self._key = dataclasses.replace(self._key, **changes)
        self._kernels = shard_kernels_for(self._key)

    def _use_flags(self) -> None:
        """From now on candidates carry a flag, because a sum may be 0."""
        if not self._key.flagged:
            self._ring = Ring(self._ring.sums, self._ring.sums != 0)
            self._compile(flagged=True)

    def _plan(self, stimulus: PackedStimulus | None) -> Plan:
        """The stimulus for the kernels; what it needs is made ready."""
        if stimulus is None:
            return self._no_plan
        if stimulus.may_cancel:
            self._use_flags()
        if stimulus.clamped:
            self._counters[CLAMPED] = 1
        return plan_of([stimulus], self._ring.sums.dtype)

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """See ``Shard.waiting``."""
        self._plan(stimulus)
        slots, count = self._packed.layout.max_delay, self._packed.layout.neuron_count
        slot = slice(number % slots * count, (number % slots + 1) * count)
        candidates = self._ring.flags[slot].copy() if self._key.flagged else self._ring.sums[slot] != 0
        if stimulus is not None:
            candidates[stimulus.ids] = True
        if self._scalars.power_neuron >= 0:
            candidates[self._scalars.power_neuron] = True
        return int(np.count_nonzero(candidates))

    def fire(self, number: int, stimulus: PackedStimulus | None, batch: bool) -> Fired:
        """See ``Shard.fire``."""
        if self._power_clamps:
            self._counters[CLAMPED] = 1
        plan = self._plan(stimulus)
        count, candidates = self._kernels.fire(
            number,
            batch,
            self._ring,
            plan,
            self._parameters,
            self._neurons,
            self._last,
            self._scalars,
            self._places,
            self._potentials,
        )
        self._last = self._places[:count].copy() if self._key.restart_fired else _NO_PLACES
        return Fired(self._packed.members[self._places[:count]], self._potentials[:count].copy(), int(candidates))

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """See ``Shard.receive``."""
        self._kernels.receive(
            number,
            ids,
            potentials,
            self._ring,
            self._neurons,
            self._static,
            self._computed,
            self._plastic,
            self._scalars,
            self._counters,
        )

    def piece(self, burst_count: int) -> StatePiece:
        """See ``Shard.piece``."""
        pending, pending_candidate = self._pending(burst_count)
        last_fired, streak = self._history(burst_count)
        weight_places, eligibility_places = self._computed_places(), self._plastic_places()
        self._weights[weight_places] = self._computed.weights[: len(weight_places)]
        self._eligibility[eligibility_places] = self._plastic.eligibility
        if self._restored:
            weight_places = eligibility_places = np.arange(len(self._packed.rows))
        return StatePiece(
            self._shard,
            self._neurons.v.copy(),
            self._neurons.rc.copy(),
            self._neurons.cc.copy(),
            self._neurons.was_candidate.copy(),
            last_fired,
            streak,
            pending,
            pending_candidate,
            self._packed.rows[weight_places],
            self._weights[weight_places],
            self._packed.rows[eligibility_places],
            self._eligibility[eligibility_places],
            int(self._counters[HISTORY]),
            bool(self._counters[CLAMPED]),
        )

    def _computed_places(self) -> npt.NDArray[np.int64]:
        """Places of the computed synapses among the shard's synapses."""
        computed = self._packed.layout.computed
        none = np.empty(0, np.int64)
        return none if computed is None else np.searchsorted(self._packed.rows, computed.rows)

    def _plastic_places(self) -> npt.NDArray[np.int64]:
        """Places of the entries of the plastic rules among the shard's synapses."""
        return self._computed_places()[self._plastic.positions]

    def _slots(self, burst_count: int) -> npt.NDArray[np.int64]:
        """Slot of each row of the canonical ``pending``."""
        slots = self._packed.layout.max_delay
        return (burst_count + 1 + np.arange(slots)) % slots

    def _pending(self, burst_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        shape = self._packed.layout.max_delay, self._packed.layout.neuron_count
        slots = self._slots(burst_count)
        sums = self._ring.sums.reshape(shape)[slots].astype(np.int64)
        return sums, self._ring.flags.reshape(shape)[slots] if self._key.flagged else sums != 0

    def _history(self, burst_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        rules, members = self._packed.layout.plastic, self._packed.members
        if rules is None:
            return np.zeros(len(members), np.int64), np.zeros(len(members), np.uint16)
        last = self._neurons.last_fired[members]
        last = np.where(last > max(0, burst_count - (rules.longest_window - 1)), last, 0)
        return last, np.where(last > 0, self._neurons.streak[members], 0).astype(np.uint16)

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        members, neurons = self._packed.members, self._neurons
        self._restore_weights(state)
        neurons.v[:] = self._storage.rounded(state.membrane_potentials[members])
        neurons.rc[:] = running_countdowns(state.refractory_countdowns, self._network.neurons.valid_mask)[members]
        neurons.cc[:] = state.consecutive_fire_counts[members]
        neurons.was_candidate[:] = state.was_candidate[members]
        if self._packed.layout.plastic is not None:
            neurons.last_fired[:] = state.last_fired
            neurons.streak[:] = state.fire_streak
        self._counters[HISTORY] = state.history_bursts
        self._counters[CLAMPED] = state.clamped
        fired = state.fired_ids[self._partition.owner[state.fired_ids] == self._shard]
        self._last = self._partition.local_ids()[fired] if self._key.restart_fired else _NO_PLACES
        if not self._key.features.refractory_periods and state.refractory_countdowns.any():
            self._compile(features=dataclasses.replace(self._key.features, refractory_periods=True))
        self._restore_pending(state)

    def _restore_pending(self, state: EngineState) -> None:
        members = self._packed.members
        arriving = state.pending_candidate[:, members] & self._network.neurons.valid_mask[members]
        sums = np.where(arriving, state.pending[:, members], 0)
        if bool((arriving & (sums == 0)).any()):
            self._use_flags()
        shape = self._packed.layout.max_delay, len(members)
        slots = self._slots(state.burst_count)
        self._ring.sums.reshape(shape)[slots] = sums
        if self._key.flagged:
            self._ring.flags.reshape(shape)[slots] = arriving

    def _restore_weights(self, state: EngineState) -> None:
        """Take over weights and eligibility; pack again if a constant contribution is another one now."""
        weights = state.weights[self._packed.rows]
        different = weights != self._weights
        different[self._computed_places()] = False
        if different.any():
            self._repack(np.where(different, weights, self._network.synapses.weights[self._packed.rows]))
        self._restored = True
        self._weights = weights
        self._computed.weights[:] = weights[self._computed_places()]
        self._eligibility = state.eligibility_traces[self._packed.rows]
        self._plastic.eligibility[:] = self._eligibility[self._plastic_places()]

    def _repack(self, weights: npt.NDArray[np.float32]) -> None:
        packed = build_shard_layout(
            self._network, self._options, self._fixed_point, self._facts, self._partition, self._shard, weights
        )
        refuse_overflow(packed.layout, self._network, self._options, self._fixed_point, packed.members)
        self._packed = packed
        self._take_rows()
        self._compile(static_clamps=self._general or packed.layout.static.clamped_sources is not None)
        if packed.layout.needs_flags:
            self._use_flags()

    def close(self) -> None:
        """Nothing to give back."""
