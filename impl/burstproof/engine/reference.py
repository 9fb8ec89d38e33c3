"""The executable specification: SEMANTICS.md in plain NumPy, one statement per rule, no thought of speed.

It computes nothing with the code of the engines that it judges: scale, rounding, clamping, conversion, packing of
stimulus and the format of stored potentials are its own (``reference_numbers.py``). It takes from others the values
that go in and out, and the refusal of what no engine takes; ``suites/harness/test_imports.py`` lists what it imports.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import check_network, check_state
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine, Progress
from burstproof.engine.recorder import record_steps
from burstproof.engine.reference_numbers import float_of_sums, quantised, scale_of, stored
from burstproof.engine.state import NO_PLAN, NO_STIMULUS, Burst, EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.stimulus import check_stimulus, coming_bursts
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

BATCH_PATH_CANDIDATES, LARGE_NETWORK_NEURONS = 10_000, 1_000_000
UNLIMITED_FIRES = 65535
FORCED_POTENTIAL = np.float32(100)


class ReferenceEngine(Engine):
    """Engine that steps a network as SEMANTICS.md says; the methods that begin with an underscore are its sections."""

    backend = "reference"

    def __init__(self, network: Network, options: EngineOptions) -> None:
        check_network(network, options)
        self.network = network
        self.options = options
        self._load(network)
        self._group_synapses(network)
        learns = any(len(rows) for _, rows in self._plastic_rules)
        self.fixed_point: FixedPoint = scale_of(network, options, plastic=learns)

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

    def _stored(self, potentials: Floats) -> Floats:
        """Potentials as they are kept between bursts."""
        return stored(potentials, self.options.precision, self.network.neurons.thresholds)

    def _group_synapses(self, network: Network) -> None:
        synapses = network.synapses
        rows = np.flatnonzero(synapses.valid_mask)
        sources = synapses.source_neurons[rows]
        self._synapses_by_source = rows[np.argsort(sources, kind="stable")]
        self._outgoing = np.bincount(sources, minlength=network.neuron_count)
        self._row_start = np.concatenate([[0], np.cumsum(self._outgoing)])
        self._uniform = network.area_flag("psp_uniform_distribution")
        self._mp_driven = network.area_flag("mp_driven_psp")

    def _group_plastic(self, network: Network) -> None:
        """Section 5: of the rules for an ordered pair of areas the last one governs all valid synapses of the pair."""
        synapses, area = network.synapses, network.neurons.cortical_areas
        rules: dict[tuple[int, int], PlasticMapping] = {}
        windows = [1]
        for mapping in network.plastic_mappings:
            rows = mapping.synapses
            ends = np.column_stack([area[synapses.source_neurons[rows]], area[synapses.target_neurons[rows]]])
            rules.update(dict.fromkeys(map(tuple, ends.tolist()), mapping))
            windows += [] if len(rows) else [mapping.window]
        self._plastic_rules: list[tuple[PlasticMapping, Ids]] = []
        for (source, target), mapping in rules.items():
            between = (area[synapses.source_neurons] == source) & (area[synapses.target_neurons] == target)
            self._plastic_rules.append((mapping, np.flatnonzero(between & synapses.valid_mask)))
        self.longest_window = max(windows + [mapping.window for mapping in rules.values()])

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
        candidates = np.flatnonzero(in_fcl)
        batch = self.options.emulate_batch_path and len(candidates) >= BATCH_PATH_CANDIDATES
        forced = np.unique(np.asarray(stimulus.forced)).astype(np.int64)
        refractory = self.rc > 0
        self._tick(self._ticking(refractory, in_fcl, forced))
        free = np.flatnonzero(in_fcl & ~refractory)
        fired, potentials = self._dynamics(free, self._net_input(free, sums), batch)
        self._join_forced(fired, potentials, forced)
        self.was_candidate = self._restarting(in_fcl)
        if self.options.profile.plastic_all_window:
            self._learn()
            self._propagate()
        else:
            self._propagate()
            self._learn()
        self.v = self._stored(self.v)
        return Burst(self.burst_count, self.fired_ids.astype(np.uint32), self.fired_potentials.copy(), len(candidates))

    def _collect(self, stimulus: Stimulus) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
        """Steps 2, 3, 4 and 6: what arrives in this burst, and who is a candidate."""
        sums, in_fcl = self.pending[0].copy(), self.pending_candidate[0].copy()
        self.pending = np.concatenate([self.pending[1:], np.zeros_like(self.pending[:1])])
        self.pending_candidate = np.concatenate([self.pending_candidate[1:], np.zeros_like(in_fcl)[None]])
        self._put(np.asarray(stimulus.ids).astype(np.int64), np.asarray(stimulus.amounts, np.float32), sums, in_fcl)
        power = self.network.power_neuron
        if power is not None:
            self._put(np.array([power]), np.array([self.network.power_amount], np.float32), sums, in_fcl)
        return sums, in_fcl & self.network.neurons.valid_mask

    def _put(self, ids: Ids, amounts: Floats, sums: Ids, in_fcl: npt.NDArray[np.bool_]) -> None:
        """Steps 3 and 4: amounts from outside, several to one neuron add up."""
        integers, clamped = quantised(amounts, self.fixed_point)
        np.add.at(sums, ids, integers)
        in_fcl[ids] = True
        self.clamped = self.clamped or clamped

    def _restart(self) -> None:
        """Step 5: non-accumulating neurons restart from 0."""
        restarting = ~self.network.neurons.mp_charge_accumulation
        if not self.options.profile.restart_all:
            self.v[self.was_candidate & (self.rc == 0)] = 0
        elif self.network.neuron_count < LARGE_NETWORK_NEURONS:
            self.v[restarting] = 0
        else:
            self.v[self.fired_ids[restarting[self.fired_ids]]] = 0

    def _restarting(self, in_fcl: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Step 5: who restarts in the next burst, unless refractory: candidates that did not fire, forced or not."""
        restarting = in_fcl & ~self.network.neurons.mp_charge_accumulation
        restarting[self.fired_ids] = False
        return restarting

    def _net_input(self, candidates: Ids, sums: npt.NDArray[np.int64]) -> Floats:
        """End of section 2: the sum as float32; a negative one counts as 0 where the neuron accumulates."""
        x = float_of_sums(sums[candidates], self.fixed_point.k)
        if not self.options.profile.negative_sum_lowers:
            accumulates = self.network.neurons.mp_charge_accumulation[candidates]
            x = np.where(accumulates & (x < 0), np.float32(0), x)
        return x

    # Section 3 -------------------------------------------------------------------------------------------------

    def _finite_limit(self) -> npt.NDArray[np.bool_]:
        limits = self.network.neurons.consecutive_fire_limits
        return np.not_equal(limits, 0) & np.not_equal(limits, UNLIMITED_FIRES)

    def _ticking(self, refractory: npt.NDArray[np.bool_], in_fcl: npt.NDArray[np.bool_], forced: Ids) -> Ids:
        """Step 8: whose countdown ticks: not that of invalid neurons, nor of forced ones."""
        ticking = refractory & self.network.neurons.valid_mask
        if self.options.profile.countdown_only_candidates:
            ticking &= in_fcl
        ticking[forced] = False
        return np.flatnonzero(ticking)

    def _tick(self, neurons: Ids) -> None:
        """Step 8 for neurons whose countdown runs."""
        self.rc[neurons] -= 1
        ended = neurons[self.rc[neurons] == 0]
        limit = self.network.neurons.consecutive_fire_limits
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
        return np.float32(1) - self.network.neurons.leak_coefficients[neurons]

    def _integrate(self, candidates: Ids, x: Floats) -> None:
        """Rule 2: the input is added before any leak."""
        self.v[candidates] = self.v[candidates] + x

    def _in_window(self, candidates: Ids, batch: bool) -> npt.NDArray[np.bool_]:
        """Rule 2: at or above the threshold and not above the limit."""
        v, neurons = self.v[candidates], self.network.neurons
        above = v > neurons.threshold_limits[candidates]
        if batch and self.options.profile.batch_ignores_limit_and_zeroes:
            above[:] = False
        return (v >= neurons.thresholds[candidates]) & ~above

    def _exhausted(self, candidates: Ids) -> npt.NDArray[np.bool_]:
        """Rule 3: the consecutive-fire limit is reached; one that is not finite acts like 65535."""
        limits = self.network.neurons.consecutive_fire_limits[candidates]
        return self.cc[candidates] >= np.where(self._finite_limit()[candidates], limits, UNLIMITED_FIRES)

    def _block(self, blocked: Ids, batch: bool) -> None:
        """Rule 3: the count restarts, v stays; the batch path leaks or zeroes, and keeps a count of 65535."""
        self.cc[blocked[self._finite_limit()[blocked]] if batch else blocked] = 0
        if batch:
            zeroes = self.options.profile.batch_ignores_limit_and_zeroes
            self.v[blocked] = 0 if zeroes else self.v[blocked] * self._keep(blocked)

    def _excited(self, candidates: Ids) -> npt.NDArray[np.bool_]:
        """Rule 4: whether the excitability test passes."""
        excitability = self.network.neurons.excitabilities[candidates]
        drawn = draw(candidates, self.burst_count) < excitability
        return (excitability >= np.float32(0.999)) | ((excitability > 0) & drawn)

    def _fire(self, fired: Ids, batch: bool) -> None:
        """Rule 5: reset, count, refractory period and snooze."""
        neurons = self.network.neurons
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

    def _join_forced(self, fired: Ids, potentials: Floats, forced: Ids) -> None:
        """The fired list of this burst: who fired, then who was forced to and did not fire anyway."""
        extra = np.setdiff1d(forced, fired)
        ids = np.concatenate([fired, extra])
        values = np.concatenate([potentials, np.full(len(extra), FORCED_POTENTIAL)])
        order = np.argsort(ids)
        self.fired_ids, self.fired_potentials = ids[order], values[order]
        if self.network.plastic_mappings:
            streak = np.where(self.last_fired == self.burst_count - 1, self.fire_streak, 0)
            self.fire_streak[self.fired_ids] = np.minimum(streak[self.fired_ids] + 1, self.longest_window)
            self.last_fired[self.fired_ids] = self.burst_count

    # Section 2 -------------------------------------------------------------------------------------------------

    def _propagate(self) -> None:
        """Every neuron that fired contributes through each valid outgoing synapse."""
        counts = self._outgoing[self.fired_ids]
        first = np.repeat(self._row_start[self.fired_ids], counts)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        rows = self._synapses_by_source[first + within]
        synapses = self.network.synapses
        reachable = self.network.neurons.valid_mask[synapses.target_neurons[rows]]
        rows, potentials = rows[reachable], np.repeat(self.fired_potentials, counts)[reachable]
        integers, clamped = quantised(self._contributions(rows, potentials), self.fixed_point)
        self.clamped = self.clamped or clamped
        signed = np.where(synapses.types[rows] == 0, integers, -integers)
        arrivals = synapses.delay_bursts[rows].astype(np.int64) - 1, synapses.target_neurons[rows]
        np.add.at(self.pending, arrivals, signed)
        self.pending_candidate[arrivals] = True

    def _contributions(self, rows: Ids, source_potentials: Floats) -> Floats:
        """Contributions of synapses before the sign of their type; their sources fired with these potentials."""
        products = self.weights[rows] * self._psps(rows, source_potentials)
        return products / self._divisors(rows) if self.network.flags_registered else products

    def _psps(self, rows: Ids, source_potentials: Floats) -> Floats:
        """The psp of each synapse, or the source's potential where its area is mp-driven."""
        synapses = self.network.synapses
        psps = synapses.postsynaptic_potentials[rows]
        if not self.network.flags_registered:
            return psps
        driven = np.maximum(source_potentials, np.float32(0))
        if self.options.profile.round_mp_driven:
            driven = np.minimum(np.floor(driven.astype(np.float64) + 0.5), 255).astype(np.float32)
        return np.where(self._mp_driven[synapses.source_neurons[rows]], driven, psps)

    def _divisors(self, rows: Ids) -> Floats:
        """What the contribution of each synapse is divided by."""
        sources = self.network.synapses.source_neurons[rows]
        return np.where(self._uniform[sources], 1, self._outgoing[sources]).astype(np.float32)

    # Section 5 -------------------------------------------------------------------------------------------------

    def _learn(self) -> None:
        """Plasticity of this burst, then the history moves on."""
        for mapping, rows in self._plastic_rules:
            if self.history_bursts >= mapping.window - 1:
                rise, fall = self._steps(*self._truncated(mapping))
                self._change_weights(rows, mapping.window, rise, fall)
        self.history_bursts = min(self.history_bursts + 1, self.longest_window - 1)

    def _truncated(self, mapping: PlasticMapping) -> tuple[float, float, float]:
        """Constant, ltp and ltd as whole numbers."""
        return math.trunc(mapping.constant), math.trunc(mapping.ltp_multiplier), math.trunc(mapping.ltd_multiplier)

    def _steps(self, constant: float, ltp: float, ltd: float) -> tuple[np.float32, np.float32]:
        """The steps of potentiation and of depression."""
        return np.float32(min(max(constant * ltp, 0), 255)), np.float32(min(max(constant * ltd, 0), 255))

    def _change_weights(self, rows: Ids, window: int, ltp: np.float32, ltd: np.float32) -> None:
        sources = self.network.synapses.source_neurons[rows]
        targets = self.network.synapses.target_neurons[rows]
        any_in_window = (self.last_fired > 0) & (self.last_fired > self.burst_count - window)
        either = any_in_window[sources] | any_in_window[targets]
        if self.options.profile.plastic_all_window:
            all_window = (self.last_fired == self.burst_count) & (self.fire_streak >= window)
            both = all_window[sources] & all_window[targets]
        else:
            both = any_in_window[sources] & any_in_window[targets]
        falls = either & ~both & (ltd > 0)
        change = np.select([both, falls], [ltp, -ltd], np.float32(0)).astype(np.float32)
        weights = self.weights[rows]
        weights = np.select([both, falls], [weights + ltp, np.maximum(weights - ltd, np.float32(0))], weights)
        if self.options.profile.plastic_all_window:
            weights = np.clip(weights, np.float32(0), np.float32(255))
        self.weights[rows] = weights
        self.eligibility[rows] = change

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
        matters = self.last_fired > max(0, self.burst_count - (self.longest_window - 1))
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
        )

    def potentials(self, ids: npt.NDArray[np.uint32]) -> Floats:
        """Membrane potentials of ``ids`` after the last burst."""
        return self.v[ids]

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``; see ``Engine.restore``."""
        check_state(state, self.network, self.fixed_point)
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
