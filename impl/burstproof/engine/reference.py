"""The executable specification: SEMANTICS.md in plain NumPy, one statement per rule, without regard to speed.

It shares no computation with the engines that it judges: scale, rounding, clamping, conversion, packing of stimulus and
storage formats are its own (``reference_numbers.py``). It shares only the values that go in and out, and the checks of
invalid input; ``suites/harness/test_imports.py`` lists its imports. This module runs a burst;
``reference_state.py`` loads, copies and restores the state.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.interruption import KeepingFailure, closed, refuse_failed
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.recorder import record_steps
from burstproof.engine.reference_features import clamped_neurons, within_range
from burstproof.engine.reference_numbers import float_of_sums, quantised
from burstproof.engine.reference_plasticity import decay_of, factor_of, traced, weighed
from burstproof.engine.reference_state import ReferenceState
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import check_stimulus, coming_bursts, planned
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS = 10_000, 1_000_000
UNLIMITED_FIRES = 65535
FORCED_POTENTIAL = np.float32(100)


class ReferenceEngine(ReferenceState, Engine):
    """Engine that steps a network as SEMANTICS.md says; its private methods implement the sections."""

    backend = "reference"

    @classmethod
    def create(cls, network: Network, options: EngineOptions | None = None) -> ReferenceEngine:
        """An engine over ``network``.

        Raises
        ------
        NetworkError
            A network that the profile refuses, or a contribution that is not finite.
        """
        return cls(network, options or EngineOptions())

    # Section 1 -------------------------------------------------------------------------------------------------

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """Run one burst (SEMANTICS section 1)."""
        check_stimulus(stimulus, self.network, self.options)
        refuse_failed(self)
        with np.errstate(over="ignore", invalid="ignore"), KeepingFailure(self):
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
        """Steps 2, 3, 4 and 6: the sums of this burst, and the candidates."""
        sums, in_fcl = self.pending[0].copy(), self.pending_candidate[0].copy()
        for rows in (self.pending, self.pending_candidate):
            for row in range(len(rows) - 1):
                rows[row] = rows[row + 1]
            rows[-1] = 0
        self._stimulate(stimulus, sums, in_fcl)
        power = self.network.power_neuron
        if power is not None:
            self._put(np.array([power]), np.array([self.network.power_amount], np.float32), sums, in_fcl)
        self._due_replays = self.memories.due_replays(self.burst_count)
        added = [one for one in self._due_replays if one.adds]
        neurons, potentials = (np.array([getattr(one, name) for one in added]) for name in ("neuron", "potential"))
        self._put(neurons.astype(np.int64), potentials.astype(np.float32), sums, in_fcl)
        return sums, in_fcl & self.neurons.valid_mask

    def _stimulate(self, stimulus: Stimulus, sums: npt.NDArray[np.int64], in_fcl: npt.NDArray[np.bool_]) -> None:
        """Step 3: the amounts of a neuron add up, and the sum is clamped like each of them."""
        integers, clamped = quantised(np.asarray(stimulus.amounts, np.float32), self.fixed_point)
        totals: dict[int, int] = {}
        for one, amount in zip(np.asarray(stimulus.ids).tolist(), integers.tolist(), strict=True):
            totals[one] = totals.get(one, 0) + amount
        most = self.fixed_point.clamp
        for one, total in totals.items():
            sums[one] += min(max(total, -most), most)
            in_fcl[one] = True
            clamped = clamped or abs(total) > most
        self.clamped = self.clamped or clamped

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
        """End of section 2: the sum as float32; a negative one counts as 0 if the neuron accumulates."""
        x = float_of_sums(sums[candidates], self.fixed_point.k)
        if not self.options.profile.negative_sum_lowers:
            accumulates = self.neurons.mp_charge_accumulation[candidates]
            x = np.where(accumulates & (x < 0), np.float32(0), x)
        return x

    # Section 3 -------------------------------------------------------------------------------------------------

    def _finite_limit(self, neurons: Ids) -> npt.NDArray[np.bool_]:
        limits = self.neurons.consecutive_fire_limits[neurons]
        return np.not_equal(limits, 0) & np.not_equal(limits, UNLIMITED_FIRES)

    def _ticking(self, refractory: npt.NDArray[np.bool_], in_fcl: npt.NDArray[np.bool_], forced: Ids) -> Ids:
        """Step 8: neurons whose countdown ticks; those of invalid and of forced neurons do not."""
        ticking = refractory & self.neurons.valid_mask
        if self.options.profile.countdown_only_candidates:
            ticking &= in_fcl
        ticking[forced] = False
        return np.flatnonzero(ticking)

    def _tick(self, neurons: Ids) -> None:
        """Step 8 for neurons whose countdown ticks."""
        self.rc[neurons] -= 1
        ended = neurons[self.rc[neurons] == 0]
        limit = self.neurons.consecutive_fire_limits
        self.cc[ended[self._finite_limit(ended) & (self.cc[ended] >= limit[ended])]] = 0

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
        """Rule 3: whether the consecutive-fire limit is reached; a limit that is not finite acts like 65535."""
        limits = self.neurons.consecutive_fire_limits[candidates]
        return self.cc[candidates] >= np.where(self._finite_limit(candidates), limits, UNLIMITED_FIRES)

    def _block(self, blocked: Ids, batch: bool) -> None:
        """Rule 3: the count becomes 0, v stays; the batch path leaks or zeroes v, and keeps a count of 65535."""
        self.cc[blocked[self._finite_limit(blocked)] if batch else blocked] = 0
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
            snoozing = fired[self._exhausted(fired) & self._finite_limit(fired)]
            period = neurons.refractory_periods[snoozing].astype(np.int64) + neurons.snooze_periods[snoozing]
            self.rc[snoozing] = np.minimum(period, 65535)

    def _stay_quiet(self, quiet: Ids) -> None:
        """Rule 6: a count with a finite limit becomes 0, and the potential leaks."""
        self.cc[quiet[self._finite_limit(quiet)]] = 0
        self.v[quiet] = self.v[quiet] * self._keep(quiet)

    # Section 4 -------------------------------------------------------------------------------------------------

    def _forced(self, stimulus: Stimulus) -> tuple[Ids, Floats]:
        """Forced neurons, each once, and their potentials: spike trains, then manual stimulation, then replays."""
        manual = np.asarray(stimulus.forced).astype(np.int64)
        held, held_potentials = self.trains.continuing()
        replays = [(one.neuron, one.potential) for one in self._due_replays if not one.adds]
        replayed, replayed_potentials = np.array(replays, np.float64).reshape(-1, 2).T
        ids, first = np.unique(np.concatenate([held, manual, replayed.astype(np.int64)]), return_index=True)
        potentials = held_potentials, np.full(len(manual), FORCED_POTENTIAL), replayed_potentials.astype(np.float32)
        return ids, np.concatenate(potentials)[first]

    def _join_forced(self, fired: Ids, potentials: Floats, forced: Ids, forced_potentials: Floats) -> None:
        """The fired list of this burst: neurons that fired, and forced ones that did not fire by themselves."""
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
        """Valid outgoing synapses of the neurons that fired, and the potential of each one's source."""
        fired, potentials = self._fired_dense()
        counts = self._outgoing[fired]
        first = np.repeat(self._row_start[fired], counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._synapses_by_source[first + within], np.repeat(potentials, counts)

    def _contributions(self, rows: Ids, source_potentials: Floats) -> Floats:
        """Contributions of synapses, without the sign of the type; their sources fired with these potentials."""
        products = self.weights[rows] * self._psps(rows, source_potentials)
        return products / self._divisors(rows) if self.network.flags_registered else products

    def _psps(self, rows: Ids, source_potentials: Floats) -> Floats:
        """The psp of each synapse, or its source's potential if the source's area is mp-driven."""
        synapses = self.network.synapses
        psps = self.psps[rows]
        if not self.network.flags_registered:
            return psps
        driven = np.maximum(source_potentials, np.float32(0))
        if self.options.profile.round_mp_driven:
            driven = np.minimum(np.floor(driven.astype(np.float64) + 0.5), 255).astype(np.float32)
        return np.where(self._mp_driven[synapses.source_neurons[rows]], driven, psps)

    def _divisors(self, rows: Ids) -> Floats:
        """Divisor of each synapse's contribution."""
        sources = self.network.synapses.source_neurons[rows]
        outgoing = self._outgoing[sources] + (self.made.outgoing(sources.astype(np.int64)) if len(self.made) else 0)
        return np.where(self._uniform[sources], 1, outgoing).astype(np.float32)

    # Section 5 -------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Plasticity of this burst; then the known history is one burst longer."""
        for mapping, rows in self._plastic_rules:
            if self.history_bursts >= mapping.window - 1 and not mapping.frozen:
                rise, fall = self._steps(*self._truncated(mapping))
                self._change_weights(mapping, rows, rise, fall)
        for number, mapping, rows in self._associative_rules:
            if self.history_bursts >= mapping.window - 1 and not mapping.frozen:
                self._associate(number, mapping, rows, *self._steps(*self._truncated(mapping)))
        self.history_bursts = min(self.history_bursts + 1, self.longest_window - 1)

    def _truncated(self, mapping: PlasticMapping) -> tuple[float, float, float]:
        """Constant, ltp and ltd, truncated to integers."""
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
        self.modulators.measure(self.fired_potentials, self._areas_of(self.fired_ids))
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
        """Run ``bursts`` bursts one by one; the whole plan is checked before the first one."""
        coming = coming_bursts(self.burst_count, bursts)
        for number in planned(plan, coming):
            check_stimulus(plan[number], self.network, self.options)
        return record_steps(coming, lambda number: self.step(plan.get(number, NO_STIMULUS)), record, progress)

    def inject(self, state: EngineState) -> EngineState:
        """``state`` with the contributions of its fired list pending, as if it had just fired."""
        self.restore(state)
        with np.errstate(over="ignore", invalid="ignore"):
            self._propagate()
        return self.state()

    def close(self) -> None:
        """Holds no resources; later calls are refused."""
        self.failure = closed()


def draw(neurons: npt.NDArray[Any], burst: int) -> Floats:
    """The excitability draws of ``neurons`` (any integer array) in burst ``burst``: float32 in [0, 1], same shape."""
    ids = neurons.astype(np.uint32)
    seed = ids * np.uint32(2654435761) + np.array([burst & 0xFFFFFFFF], np.uint32) * np.uint32(1597334677)
    state = seed * np.uint32(747796405) + np.uint32(2891336453)
    word = ((state >> ((state >> np.uint32(28)) + np.uint32(4))) ^ state) * np.uint32(277803737)
    mixed = (word >> np.uint32(22)) ^ word
    drawn: Floats = mixed.astype(np.float32) / np.float32(4294967296)
    return drawn
