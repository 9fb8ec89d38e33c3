"""The state of the reference engine: loading, copying, restoring."""

from __future__ import annotations

import dataclasses

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_network, check_state, refuse_large_sums
from burstproof.engine.feature_state import FeatureState
from burstproof.engine.interruption import KeepingFailure, refuse_failed
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference_appearing import Appearing
from burstproof.engine.reference_associative import MadeSynapses
from burstproof.engine.reference_features import (
    Degeneration,
    Homeostats,
    Modulators,
    Trains,
    clamped_neurons,
    within_range,
)
from burstproof.engine.reference_memory import Memories
from burstproof.engine.reference_memory_state import restore as restore_memories
from burstproof.engine.reference_memory_state import state_of
from burstproof.engine.reference_numbers import constant_synapses, scale_of, stored, sums_of
from burstproof.engine.state import EngineState
from burstproof.network.features import Features
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


class ReferenceState(Appearing):
    """The state of the reference engine; ``reference.py`` runs its bursts."""

    HOMEOSTATS, MODULATORS, TRAINS, DEGENERATION = Homeostats, Modulators, Trains, Degeneration
    MEMORIES, MADE = Memories, MadeSynapses

    def __init__(self, network: Network, options: EngineOptions) -> None:
        check_network(network, options)
        self.network = network
        self.options = options
        self.failure: Exception | None = None
        self._start()
        learning = [mapping for mapping, rows in self._plastic_rules if len(rows)]
        self.fixed_point: FixedPoint = scale_of(network, options, learning=learning)

    def _start(self) -> None:
        """Set the state at load."""
        network = self.network
        self.neurons = network.neurons
        if network.features.clamp_potentials:
            self.neurons = clamped_neurons(network.neurons, network.neuron_count)
        self._load(network)
        self._load_features(network.features)
        self._group_synapses(network)

    def _load(self, network: Network) -> None:
        neurons, synapses = network.neurons, network.synapses
        count = network.neuron_count
        slots = int(synapses.delay_bursts[synapses.valid_mask].max(initial=1))
        self.burst_count = network.burst_count
        self.v = self._stored(neurons.membrane_potentials)
        self.rc = neurons.refractory_countdowns.astype(np.int64)
        self.cc = neurons.consecutive_fire_counts.astype(np.int64)
        self.weights = synapses.weights.copy()
        self.eligibility = synapses.eligibility_traces.copy()
        self.was_candidate = np.zeros(count, np.bool_)
        self.pending = np.zeros((slots, count), np.int64)
        self.pending_candidate = np.zeros((slots, count), np.bool_)
        self.fired_ids: Ids = np.empty(0, np.int64)
        self.fired_potentials: Floats = np.empty(0, np.float32)
        self.last_fired = np.zeros(count, np.int64)
        self.fire_streak = np.zeros(count, np.int64)
        self._group_plastic(network)
        self.history_bursts = 0
        self.clamped = False
        self.bursts_since_load = 0

    def _load_features(self, features: Features) -> None:
        """Set up the sections of FEATURES.md, each with its own state."""
        self.homeostats = self.HOMEOSTATS(features, self.neurons)
        self.modulators = self.MODULATORS(features, self.neurons)
        self.trains = self.TRAINS(features, self.neurons)
        self.degeneration = self.DEGENERATION(features)
        self.memories = self.MEMORIES(features)
        self.made = self.MADE()
        self.twins: list[tuple[int, int]] = []
        self.psps = self.network.synapses.postsynaptic_potentials.copy()

    def _stored(self, potentials: Floats) -> Floats:
        """Potentials rounded to the storage format."""
        if self.network.features.clamp_potentials:
            potentials = within_range(potentials, self.network.neuron_count)
        return stored(potentials, self.options.precision, self.network.neurons.thresholds)

    def _group_synapses(self, network: Network) -> None:
        synapses = network.synapses
        rows = np.flatnonzero(synapses.valid_mask)
        sources = synapses.source_neurons[rows]
        self._synapses_by_source = rows[np.argsort(sources, kind="stable")]
        self._outgoing = np.bincount(sources, minlength=network.neuron_count)
        self._incoming = np.bincount(synapses.target_neurons[rows], minlength=network.neuron_count)
        self._row_start = np.concatenate([[0], np.cumsum(self._outgoing)])
        self._uniform = network.area_flag("psp_uniform_distribution")
        self._mp_driven = network.area_flag("mp_driven_psp")

    def _group_plastic(self, network: Network) -> None:
        """Section 5: for each ordered pair of areas the last rule governs all its valid synapses."""
        synapses, area = network.synapses, network.neurons.cortical_areas
        associative = {one.plastic: (at, one) for at, one in enumerate(network.features.associative)}
        rules: dict[tuple[int, int], int] = {}
        for number, mapping in enumerate(network.plastic_mappings):
            rows = mapping.synapses
            ends = np.column_stack([area[synapses.source_neurons[rows]], area[synapses.target_neurons[rows]]])
            rules.update(dict.fromkeys(map(tuple, ends.tolist()), number))
            if number in associative:
                _, one = associative[number]
                rules[one.source, one.target] = number
        self._plastic_rules: list[tuple[PlasticMapping, Ids]] = []
        self._associative_rules: list[tuple[int, PlasticMapping, Ids]] = []
        for (source, target), number in rules.items():
            between = (area[synapses.source_neurons] == source) & (area[synapses.target_neurons] == target)
            mapping, rows = network.plastic_mappings[number], np.flatnonzero(between & synapses.valid_mask)
            if number in associative:
                self._associative_rules.append((associative[number][0], mapping, rows))
            else:
                self._plastic_rules.append((mapping, rows))
        idle = [one.window for one in network.plastic_mappings if not len(one.synapses)]
        self.longest_window = max([1, *idle, *(network.plastic_mappings[one].window for one in rules.values())])

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
        refuse_failed(self)
        matters = self.last_fired >= self._oldest_firing()
        return EngineState(
            burst_count=self.burst_count,
            membrane_potentials=self.v.copy(),
            refractory_countdowns=self.rc.astype(np.uint16),
            consecutive_fire_counts=self.cc.astype(np.uint16),
            weights=self.weights.copy(),
            eligibility_traces=self.eligibility.copy(),
            was_candidate=self.was_candidate.copy(),
            pending=self.pending.copy(),
            pending_candidate=self.pending_candidate.copy(),
            fired_ids=self.fired_ids.astype(np.uint32),
            fired_potentials=self.fired_potentials.copy(),
            last_fired=np.where(matters, self.last_fired, 0),
            fire_streak=np.where(matters, self.fire_streak, 0).astype(np.uint16),
            history_bursts=self.history_bursts,
            clamped=self.clamped,
            fixed_point=self.fixed_point,
            features=self._feature_state() if self.network.features else None,
        )

    def _feature_state(self) -> FeatureState:
        """A copy of the features' state."""
        return FeatureState(
            thresholds=self.neurons.thresholds.copy(),
            leak_coefficients=self.neurons.leak_coefficients.copy(),
            excitabilities=self.neurons.excitabilities.copy(),
            firing_rates=self.homeostats.rates.copy(),
            homeostat_leaks=self.homeostats.leaks.copy(),
            trains=self.trains.active.copy(),
            held_potentials=self.trains.held.copy(),
            signals=self.modulators.signals.copy(),
            bursts_since_load=self.bursts_since_load,
            postsynaptic_potentials=self.psps.copy(),
            made=self._made_state(),
            memory=state_of(self.memories, self.burst_count, self._oldest_firing(), self.twins),
        )

    def _oldest_firing(self) -> int:
        """The first burst whose firings plasticity still reads."""
        return max(1, self.burst_count - (self.longest_window - 1) + 1)

    def potentials(self, ids: npt.NDArray[np.uint32]) -> Floats:
        """Membrane potentials of ``ids`` after the last burst."""
        refuse_failed(self)
        return self.v[ids]

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``; see ``Engine.restore``."""
        check_state(state, self.network, self.fixed_point, len(self.pending))
        self._check_weights(state.weights)
        with KeepingFailure(self):
            self._take(state)
        self.failure = None

    def _take(self, state: EngineState) -> None:
        """Copy the arrays of ``state``, which was checked."""
        if state.features is not None:
            self._restore_features(state.features, state.burst_count)
        self.burst_count = state.burst_count
        self.v = self._stored(state.membrane_potentials)
        self.rc = state.refractory_countdowns.astype(np.int64)
        self.cc = state.consecutive_fire_counts.astype(np.int64)
        self.weights = state.weights.copy()
        self.eligibility = state.eligibility_traces.copy()
        self.was_candidate = state.was_candidate.copy()
        self.pending = state.pending.copy()
        self.pending_candidate = state.pending_candidate.copy()
        self.fired_ids = state.fired_ids.astype(np.int64)
        self.fired_potentials = state.fired_potentials.copy()
        self.last_fired = state.last_fired.copy()
        self.fire_streak = state.fire_streak.astype(np.int64)
        self.history_bursts = state.history_bursts
        self.clamped = state.clamped

    def _check_weights(self, weights: Floats) -> None:
        """Refuse weights of constant contributions that the accumulator cannot hold."""
        network, synapses = self.network, self.network.synapses
        other = weights != synapses.weights
        if not other.any():
            return
        learning = [rows for *_, rows in (*self._plastic_rules, *self._associative_rules)]
        constant = constant_synapses(network, np.concatenate([np.empty(0, np.int64), *learning]))
        if (constant & other).any():
            changed = dataclasses.replace(synapses, weights=np.where(constant, weights, synapses.weights))
            sums = sums_of(network.replace(synapses=changed), constant, self.fixed_point)
            refuse_large_sums(sums, network, self.options, self.fixed_point)

    def _restore_features(self, state: FeatureState, burst: int) -> None:
        if self.twins or len(state.memory.twin_areas):
            self._start()
        for area in state.memory.twin_areas.tolist():
            self._add_neuron(area)
        self.neurons = dataclasses.replace(
            self.neurons,
            thresholds=state.thresholds.copy(),
            leak_coefficients=state.leak_coefficients.copy(),
            excitabilities=state.excitabilities.copy(),
        )
        self.homeostats.rates, self.homeostats.leaks = state.firing_rates.copy(), state.homeostat_leaks.copy()
        self.trains.active, self.trains.held = state.trains.copy(), state.held_potentials.copy()
        self.modulators.signals = state.signals.copy()
        self.bursts_since_load = state.bursts_since_load
        self.psps = state.postsynaptic_potentials.copy()
        restore_memories(self.memories, state.memory, burst)
        self.twins = list(zip(state.memory.twin_areas.tolist(), state.memory.twin_memories.tolist(), strict=True))
        made = state.made
        self.made = self.MADE()
        self.made.sources, self.made.targets = made.sources.astype(np.int64), made.targets.astype(np.int64)
        self.made.mappings, self.made.weights = made.mappings.astype(np.int64), made.weights.copy()
        self.made.psps, self.made.traces = made.postsynaptic_potentials.copy(), made.eligibility_traces.copy()
