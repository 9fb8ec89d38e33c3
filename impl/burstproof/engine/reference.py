"""The executable specification: SEMANTICS.md in plain NumPy, one statement per rule, no thought of speed.

It computes nothing with the code of the engines that it judges: scale, rounding, clamping, conversion, packing of
stimulus and the format of stored potentials are its own (``reference_numbers.py``). It takes from others the values
that go in and out, and the refusal of what no engine takes; ``suites/harness/test_imports.py`` lists what it imports.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_network, check_state
from burstproof.engine.feature_state import FeatureState
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.recorder import record_steps
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
from burstproof.engine.reference_numbers import float_of_sums, quantised, scale_of, stored
from burstproof.engine.reference_plasticity import decay_of, factor_of, traced, weighed
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import check_stimulus, coming_bursts
from burstproof.network.features import Features
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS = 10_000, 1_000_000
UNLIMITED_FIRES = 65535
FORCED_POTENTIAL = np.float32(100)


class ReferenceEngine(Appearing, Engine):
    """Engine that steps a network as SEMANTICS.md says; the methods that begin with an underscore are its sections."""

    backend = "reference"
    HOMEOSTATS, MODULATORS, TRAINS, DEGENERATION = Homeostats, Modulators, Trains, Degeneration
    MEMORIES, MADE = Memories, MadeSynapses

    def __init__(self, network: Network, options: EngineOptions) -> None:
        check_network(network, options)
        self.network = network
        self.options = options
        self._start()
        learning = [mapping for mapping, rows in self._plastic_rules if len(rows)]
        self.fixed_point: FixedPoint = scale_of(network, options, learning=learning)

    def _start(self) -> None:
        """The state in which the network was loaded."""
        network = self.network
        self.neurons = network.neurons
        if network.features.clamp_potentials:
            self.neurons = clamped_neurons(network.neurons, network.neuron_count)
        self._load(network)
        self._load_features(network.features)
        self._group_synapses(network)

    @classmethod
    def create(cls, network: Network, options: EngineOptions | None = None) -> ReferenceEngine:
        """An engine over ``network``.

        Raises
        ------
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        """
        return cls(network, options or EngineOptions())

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
        """The sections of FEATURES.md, each with its own state."""
        self.homeostats = self.HOMEOSTATS(features, self.neurons)
        self.modulators = self.MODULATORS(features, self.neurons)
        self.trains = self.TRAINS(features, self.neurons)
        self.degeneration = self.DEGENERATION(features)
        self.memories = self.MEMORIES(features)
        self.made = self.MADE()
        self.twins: list[tuple[int, int]] = []
        self.psps = self.network.synapses.postsynaptic_potentials.copy()

    def _stored(self, potentials: Floats) -> Floats:
        """Potentials as they are kept between bursts."""
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
        """Section 5: of the rules for an ordered pair of areas the last one governs all valid synapses of the pair."""
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

    # Section 1 -------------------------------------------------------------------------------------------------

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst (SEMANTICS section 1)."""
        check_stimulus(stimulus, self.network, self.options)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._burst(stimulus)

    def _burst(self, stimulus: Stimulus) -> Burst:
        self.burst_count += 1
        sums, in_fcl = self._collect(stimulus)
        self._restart()
        memory_sums, injected = self._collect_memories()
        candidates = np.flatnonzero(in_fcl)
        count = len(candidates) + len(memory_sums)
        batch = self.options.emulate_batch_path and count >= BATCH_PATH_CANDIDATES
        forced, forced_potentials = self._forced(stimulus)
        refractory = self.rc > 0
        self._tick(self._ticking(refractory, in_fcl, forced))
        free = np.flatnonzero(in_fcl & ~refractory)
        fired, potentials = self._dynamics(free, self._net_input(free, sums), batch)
        remembered = self.memories.fire(self.burst_count, memory_sums, injected)
        self._join_forced(fired, potentials, forced, forced_potentials)
        self.fired_ids = np.concatenate([self.fired_ids, remembered[0]])
        self.fired_potentials = np.concatenate([self.fired_potentials, remembered[1]])
        self.was_candidate = self._restarting(in_fcl)
        self.trains.advance(*self._fired_dense(), self.neurons, self.rc, self.cc)
        if self.options.profile.plastic_all_window:
            self._learn()
            self._propagate()
        else:
            self._propagate()
            self._degenerate()
            self._learn()
        self._modulate()
        self._memorise(np.asarray(stimulus.memories_early).astype(np.int64))
        self.bursts_since_load = 1
        self.v = self._stored(self.v)
        return Burst(self.burst_count, self.fired_ids.astype(np.uint32), self.fired_potentials.copy(), count)

    def _collect(self, stimulus: Stimulus) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Steps 2, 3, 4 and 6: what arrives in this burst, and who is a candidate."""
        sums, in_fcl = self.pending[0].copy(), self.pending_candidate[0].copy()
        self.pending = np.concatenate([self.pending[1:], np.zeros_like(self.pending[:1])])
        self.pending_candidate = np.concatenate([self.pending_candidate[1:], np.zeros_like(in_fcl)[None]])
        self._put(np.asarray(stimulus.ids).astype(np.int64), np.asarray(stimulus.amounts, np.float32), sums, in_fcl)
        power = self.network.power_neuron
        if power is not None:
            self._put(np.array([power]), np.array([self.network.power_amount], np.float32), sums, in_fcl)
        self._due_replays = self.memories.due_replays(self.burst_count)
        added = [one for one in self._due_replays if one.adds]
        neurons, potentials = (np.array([getattr(one, name) for one in added]) for name in ("neuron", "potential"))
        self._put(neurons.astype(np.int64), potentials.astype(np.float32), sums, in_fcl)
        return sums, in_fcl & self.neurons.valid_mask

    def _restart(self) -> None:
        """Step 5: non-accumulating neurons restart from 0."""
        restarting = ~self.neurons.mp_charge_accumulation
        if not self.options.profile.restart_all:
            self.v[self.was_candidate & (self.rc == 0)] = 0
        elif self.network.neuron_count < LARGE_NETWORK_NEURONS:
            self.v[restarting] = 0
        else:
            self.v[self.fired_ids[restarting[self.fired_ids]]] = 0

    def _restarting(self, in_fcl: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Step 5: who restarts in the next burst, unless refractory: candidates that did not fire, forced or not."""
        restarting = in_fcl & ~self.neurons.mp_charge_accumulation
        restarting[self._fired_dense()[0]] = False
        return restarting

    def _net_input(self, candidates: Ids, sums: npt.NDArray[np.int64]) -> Floats:
        """End of section 2: the sum as float32; a negative one counts as 0 where the neuron accumulates."""
        x = float_of_sums(sums[candidates], self.fixed_point.k)
        if not self.options.profile.negative_sum_lowers:
            accumulates = self.neurons.mp_charge_accumulation[candidates]
            x = np.where(accumulates & (x < 0), np.float32(0), x)
        return x

    # Section 3 -------------------------------------------------------------------------------------------------

    def _finite_limit(self) -> npt.NDArray[np.bool_]:
        limits = self.neurons.consecutive_fire_limits
        return np.not_equal(limits, 0) & np.not_equal(limits, UNLIMITED_FIRES)

    def _ticking(self, refractory: npt.NDArray[np.bool_], in_fcl: npt.NDArray[np.bool_], forced: Ids) -> Ids:
        """Step 8: whose countdown ticks: not that of invalid neurons, nor of forced ones."""
        ticking = refractory & self.neurons.valid_mask
        if self.options.profile.countdown_only_candidates:
            ticking &= in_fcl
        ticking[forced] = False
        return np.flatnonzero(ticking)

    def _tick(self, neurons: Ids) -> None:
        """Step 8 for neurons whose countdown runs."""
        self.rc[neurons] -= 1
        ended = neurons[self.rc[neurons] == 0]
        limit = self.neurons.consecutive_fire_limits
        self.cc[ended[self._finite_limit()[ended] & (self.cc[ended] >= limit[ended])]] = 0

    def _dynamics(self, candidates: Ids, x: Floats, batch: bool) -> tuple[Ids, Floats]:
        """Section 3 for all candidates that rule 1 does not block.

        Returns the fired ids and their potentials before the reset.
        """
        self._integrate(candidates, x)
        window = self._in_window(candidates, batch)
        blocked = window & self._exhausted(candidates)
        fires = window & ~blocked & self._excited(candidates)
        fired = candidates[fires]
        potentials = self.v[fired].copy()
        self._block(candidates[blocked], batch)
        self._fire(fired, batch)
        self._stay_quiet(candidates[~fires & ~blocked])
        return fired, potentials

    def _keep(self, neurons: Ids) -> Floats:
        return np.float32(1) - self.neurons.leak_coefficients[neurons]

    def _integrate(self, candidates: Ids, x: Floats) -> None:
        """Rule 2: the input is added before any leak."""
        self.v[candidates] = self.v[candidates] + x
        if self.network.features.clamp_potentials:
            self.v = within_range(self.v, self.network.neuron_count)

    def _in_window(self, candidates: Ids, batch: bool) -> npt.NDArray[np.bool_]:
        """Rule 2: at or above the threshold and not above the limit."""
        v, neurons = self.v[candidates], self.neurons
        above = v > neurons.threshold_limits[candidates]
        if batch and self.options.profile.batch_ignores_limit_and_zeroes:
            above[:] = False
        return (v >= neurons.thresholds[candidates]) & ~above

    def _exhausted(self, candidates: Ids) -> npt.NDArray[np.bool_]:
        """Rule 3: the consecutive-fire limit is reached; one that is not finite acts like 65535."""
        limits = self.neurons.consecutive_fire_limits[candidates]
        return self.cc[candidates] >= np.where(self._finite_limit()[candidates], limits, UNLIMITED_FIRES)

    def _block(self, blocked: Ids, batch: bool) -> None:
        """Rule 3: the count restarts, v stays; the batch path leaks or zeroes, and keeps a count of 65535."""
        self.cc[blocked[self._finite_limit()[blocked]] if batch else blocked] = 0
        if batch:
            zeroes = self.options.profile.batch_ignores_limit_and_zeroes
            self.v[blocked] = 0 if zeroes else self.v[blocked] * self._keep(blocked)

    def _excited(self, candidates: Ids) -> npt.NDArray[np.bool_]:
        """Rule 4: whether the excitability test passes."""
        excitability = self.neurons.excitabilities[candidates]
        drawn = draw(candidates, self.burst_count) < excitability
        return (excitability >= np.float32(0.999)) | ((excitability > 0) & drawn)

    def _fire(self, fired: Ids, batch: bool) -> None:
        """Rule 5: reset, count, refractory period and snooze."""
        neurons = self.neurons
        self.v[fired] = 0
        self.cc[fired] = np.minimum(self.cc[fired] + 1, 65535)
        self.rc[fired] = neurons.refractory_periods[fired]
        if not batch:
            snoozing = fired[self._exhausted(fired) & self._finite_limit()[fired]]
            period = neurons.refractory_periods[snoozing].astype(np.int64) + neurons.snooze_periods[snoozing]
            self.rc[snoozing] = np.minimum(period, 65535)

    def _stay_quiet(self, quiet: Ids) -> None:
        """Rule 6: the count restarts, the potential leaks."""
        self.cc[quiet[self._finite_limit()[quiet]]] = 0
        self.v[quiet] = self.v[quiet] * self._keep(quiet)

    # Section 4 -------------------------------------------------------------------------------------------------

    def _forced(self, stimulus: Stimulus) -> tuple[Ids, Floats]:
        """Who is forced to fire, each once, and with which potential: spike trains, manual stimulation, replays."""
        manual = np.asarray(stimulus.forced).astype(np.int64)
        held, held_potentials = self.trains.continuing()
        replays = [(one.neuron, one.potential) for one in self._due_replays if not one.adds]
        replayed, replayed_potentials = np.array(replays, np.float64).reshape(-1, 2).T
        ids, first = np.unique(np.concatenate([held, manual, replayed.astype(np.int64)]), return_index=True)
        potentials = held_potentials, np.full(len(manual), FORCED_POTENTIAL), replayed_potentials.astype(np.float32)
        return ids, np.concatenate(potentials)[first]

    def _join_forced(self, fired: Ids, potentials: Floats, forced: Ids, forced_potentials: Floats) -> None:
        """The fired list of this burst: who fired, then who was forced to and did not fire anyway."""
        extra = ~np.isin(forced, fired)
        ids = np.concatenate([fired, forced[extra]])
        values = np.concatenate([potentials, forced_potentials[extra]])
        order = np.argsort(ids)
        self.fired_ids, self.fired_potentials = ids[order], values[order]
        if self.network.plastic_mappings:
            streak = np.where(self.last_fired == self.burst_count - 1, self.fire_streak, 0)
            self.fire_streak[self.fired_ids] = np.minimum(streak[self.fired_ids] + 1, self.longest_window)
            self.last_fired[self.fired_ids] = self.burst_count

    # Section 2 -------------------------------------------------------------------------------------------------

    def _propagate(self) -> None:
        """Every neuron that fired contributes through each valid outgoing synapse."""
        synapses = self.network.synapses
        rows, potentials = self._outgoing_rows()
        reachable = self.neurons.valid_mask[synapses.target_neurons[rows]]
        rows, potentials = rows[reachable], potentials[reachable]
        transmitted = self._contributions(rows, potentials) * self.modulators.transmission()[synapses.rules[rows]]
        integers, clamped = quantised(transmitted, self.fixed_point)
        self.clamped = self.clamped or clamped
        signed = np.where(synapses.types[rows] == 0, integers, -integers)
        arrivals = synapses.delay_bursts[rows].astype(np.int64) - 1, synapses.target_neurons[rows]
        np.add.at(self.pending, arrivals, signed)
        self.pending_candidate[arrivals] = True
        if len(self.made):
            self._propagate_made()

    def _outgoing_rows(self) -> tuple[Ids, Floats]:
        """Valid synapses of the neurons that fired, and the potential with which the source of each did."""
        fired, potentials = self._fired_dense()
        counts = self._outgoing[fired]
        first = np.repeat(self._row_start[fired], counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._synapses_by_source[first + within], np.repeat(potentials, counts)

    def _contributions(self, rows: Ids, source_potentials: Floats) -> Floats:
        """Contributions of synapses before the sign of their type; their sources fired with these potentials."""
        products = self.weights[rows] * self._psps(rows, source_potentials)
        return products / self._divisors(rows) if self.network.flags_registered else products

    def _psps(self, rows: Ids, source_potentials: Floats) -> Floats:
        """The psp of each synapse, or the source's potential where its area is mp-driven."""
        synapses = self.network.synapses
        psps = self.psps[rows]
        if not self.network.flags_registered:
            return psps
        driven = np.maximum(source_potentials, np.float32(0))
        if self.options.profile.round_mp_driven:
            driven = np.minimum(np.floor(driven.astype(np.float64) + 0.5), 255).astype(np.float32)
        return np.where(self._mp_driven[synapses.source_neurons[rows]], driven, psps)

    def _divisors(self, rows: Ids) -> Floats:
        """What the contribution of each synapse is divided by."""
        sources = self.network.synapses.source_neurons[rows]
        outgoing = self._outgoing[sources] + (self.made.outgoing(sources.astype(np.int64)) if len(self.made) else 0)
        return np.where(self._uniform[sources], 1, outgoing).astype(np.float32)

    # Section 5 -------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Plasticity of this burst, then the history moves on."""
        for mapping, rows in self._plastic_rules:
            if self.history_bursts >= mapping.window - 1 and not mapping.frozen:
                rise, fall = self._steps(*self._truncated(mapping))
                self._change_weights(mapping, rows, rise, fall)
        for number, mapping, rows in self._associative_rules:
            if self.history_bursts >= mapping.window - 1 and not mapping.frozen:
                self._associate(number, mapping, rows, *self._steps(*self._truncated(mapping)))
        self.history_bursts = min(self.history_bursts + 1, self.longest_window - 1)

    def _truncated(self, mapping: PlasticMapping) -> tuple[float, float, float]:
        """Constant, ltp and ltd as whole numbers."""
        return math.trunc(mapping.constant), math.trunc(mapping.ltp_multiplier), math.trunc(mapping.ltd_multiplier)

    def _steps(self, constant: float, ltp: float, ltd: float) -> tuple[np.float32, np.float32]:
        """The steps of potentiation and of depression."""
        return np.float32(min(max(constant * ltp, 0), 255)), np.float32(min(max(constant * ltd, 0), 255))

    def _change_weights(self, mapping: PlasticMapping, rows: Ids, rise: np.float32, fall: np.float32) -> None:
        """Section 5 and FEATURES section 4: traces, then weights."""
        sources = self.network.synapses.source_neurons[rows]
        targets = self.network.synapses.target_neurons[rows]
        fired = (self.last_fired > 0) & (self.last_fired > self.burst_count - mapping.window)
        either, both = fired[sources] | fired[targets], fired[sources] & fired[targets]
        if self.options.profile.plastic_all_window:
            unbroken = (self.last_fired == self.burst_count) & (self.fire_streak >= mapping.window)
            both = unbroken[sources] & unbroken[targets]
        factor = factor_of(mapping, self.modulators)
        if rise == 0 and fall == 0 and factor == 0:
            return
        traces = traced(self.eligibility[rows], decay_of(mapping), both, either & ~both, rise, fall)
        weights = weighed(self.weights[rows], traces, mapping, factor)
        self.eligibility[rows] = traces
        self.weights[rows] = np.clip(weights, 0, 255) if self.options.profile.plastic_all_window else weights

    # Features --------------------------------------------------------------------------------------------------

    def _degenerate(self) -> None:
        """FEATURES section 5: psps of the neurons that fired, after their contributions."""
        if not self.degeneration.acts:
            return
        rows, _ = self._outgoing_rows()
        areas = self.neurons.cortical_areas[self.network.synapses.source_neurons[rows]]
        self.psps[rows] = self.degeneration.after(self.psps[rows], areas)
        made = np.flatnonzero(np.isin(self.made.sources, self.fired_ids))
        self.made.psps[made] = self.degeneration.after(self.made.psps[made], self._areas_of(self.made.sources[made]))

    def _modulate(self) -> None:
        """FEATURES sections 1 and 2: the parameters of the next burst."""
        self.neurons = self.homeostats.after(self.burst_count, self._fired_dense()[0], self.neurons)
        self.modulators.measure(self.fired_ids, self.fired_potentials, self._areas_of(self.fired_ids))
        self.neurons = self.modulators.after(self.neurons, self.homeostats)
        if self.network.features.clamp_potentials:
            self.neurons = clamped_neurons(self.neurons, self.network.neuron_count)

    # The rest of the protocol ------------------------------------------------------------------------------------

    def run(
        self,
        bursts: int,
        plan: StimulusPlan = NO_PLAN,
        record: Record = Record.FIRED,
        progress: Progress | None = None,
    ) -> Recording:
        """Run ``bursts`` bursts one by one."""
        coming = coming_bursts(self.burst_count, bursts)
        return record_steps(coming, lambda number: self.step(plan.get(number, NO_STIMULUS)), record, progress)

    def state(self) -> EngineState:
        """A copy of everything that the next burst depends on."""
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
        """A copy of what the features add."""
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
        return self.v[ids]

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``; see ``Engine.restore``."""
        check_state(state, self.network, self.fixed_point)
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

    def inject(self, state: EngineState) -> EngineState:
        """``state`` with the contributions of its fired list put under way, as if it had just fired."""
        self.restore(state)
        with np.errstate(over="ignore", invalid="ignore"):
            self._propagate()
        return self.state()

    def close(self) -> None:
        """Nothing to give back."""


def draw(neurons: npt.NDArray[Any], burst: int) -> Floats:
    """The excitability draws of ``neurons`` (any integer array) in burst ``burst``: float32 in [0, 1], same shape."""
    ids = neurons.astype(np.uint32)
    seed = ids * np.uint32(2654435761) + np.array([burst & 0xFFFFFFFF], np.uint32) * np.uint32(1597334677)
    state = seed * np.uint32(747796405) + np.uint32(2891336453)
    word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    mixed = (word >> np.uint32(22)) ^ word
    drawn: Floats = mixed.astype(np.float32) / np.float32(4294967296)
    return drawn
