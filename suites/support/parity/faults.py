"""Faulty engines: the reference with one rule changed, one for each defect that a parity suite must be able to catch.

The numbers are the lines of SEMANTICS.md section 8; the letters behind 10 tell its two halves apart, and the faults
without a number are the ones that the same section says recordings alone cannot expose, then those of revision 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.engine.reference import ReferenceEngine, draw
from burstproof.engine.state import EngineState
from burstproof.network.schema import NO_LIMIT

TINY = 2.0**-149
"""The smallest positive float32."""


class LeakFirst(ReferenceEngine):
    """1: leak before the input and towards the resting potential."""

    def _integrate(self, candidates: Any, x: Any) -> None:
        rest = self.network.neurons.resting_potentials[candidates]
        leak = self.network.neurons.leak_coefficients[candidates]
        self.v[candidates] = self.v[candidates] - leak * (self.v[candidates] - rest) + x

    def _stay_quiet(self, quiet: Any) -> None:
        self.cc[quiet[self._finite_limit(quiet)]] = 0


class ResetToRest(ReferenceEngine):
    """2: reset to the resting potential instead of 0."""

    def _fire(self, fired: Any, batch: bool) -> None:
        super()._fire(fired, batch)
        self.v[fired] = self.network.neurons.resting_potentials[fired]


class RefractoryThree(ReferenceEngine):
    """3: refractory period fixed at 3."""

    def _fire(self, fired: Any, batch: bool) -> None:
        super()._fire(fired, batch)
        self.rc[fired] = 3


class ZeroSumSkipped(ReferenceEngine):
    """4: candidates whose sum is 0 are skipped."""

    def _collect(self, stimulus: Any) -> Any:
        sums, in_fcl = super()._collect(stimulus)
        return sums, in_fcl & (sums != 0)


class ShiftedLcg(ReferenceEngine):
    """5: a 64-bit LCG scaled by 2^-32 after a shift by 33: draws never reach 0.5."""

    def _excited(self, candidates: Any) -> Any:
        seed = candidates.astype(np.uint64) + np.uint64(self.burst_count)
        state = seed * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        drawn = (state >> np.uint64(33)).astype(np.float32) / np.float32(4294967296)
        excitability = self.network.neurons.excitabilities[candidates]
        return (excitability >= np.float32(0.999)) | ((excitability > 0) & (drawn < excitability))


class NarrowAccumulator(ReferenceEngine):
    """6: 32-bit accumulation of weight x psp x 1000."""

    def _net_input(self, candidates: Any, sums: Any) -> Any:
        thousandths = sums * 1000 >> self.fixed_point.k
        wrapped = thousandths.astype(np.int32).astype(np.int64)
        overflown = (wrapped << self.fixed_point.k) // 1000
        return super()._net_input(candidates, np.where(wrapped == thousandths, sums, overflown))


class NoDivision(ReferenceEngine):
    """7: no division for non-uniform areas."""

    def _divisors(self, rows: Any) -> Any:
        return np.ones(len(rows), np.float32)


class NoMpDriven(ReferenceEngine):
    """8: psp is never replaced by the potential at firing."""

    def _psps(self, rows: Any, source_potentials: Any) -> Any:
        return self.network.synapses.postsynaptic_potentials[rows]


class NoThresholdLimit(ReferenceEngine):
    """9: no threshold limit."""

    def _in_window(self, candidates: Any, batch: bool) -> Any:
        return self.v[candidates] >= self.network.neurons.thresholds[candidates]


class NoFireLimit(ReferenceEngine):
    """10a: no consecutive-fire limit."""

    def _finite_limit(self, neurons: Any) -> Any:
        return np.zeros(len(neurons), np.bool_)


class NoSnooze(ReferenceEngine):
    """10b: no snooze."""

    def _fire(self, fired: Any, batch: bool) -> None:
        super()._fire(fired, batch)
        self.rc[fired] = self.network.neurons.refractory_periods[fired]


class NoRestart(ReferenceEngine):
    """11: non-accumulating neurons do not restart."""

    def _restart(self) -> None:
        return


class ExcitabilityStrict(ReferenceEngine):
    """12: fails only when the draw is above e, and e of 0 or less is no special case."""

    def _excited(self, candidates: Any) -> Any:
        excitability = self.network.neurons.excitabilities[candidates]
        return (excitability >= np.float32(0.999)) | ~(draw(candidates, self.burst_count) > excitability)


class IntegratesWhileRefractory(ReferenceEngine):
    """13: input and leak are applied during the refractory countdown."""

    def _collect(self, stimulus: Any) -> Any:
        self._arrived, in_fcl = super()._collect(stimulus)
        return self._arrived, in_fcl

    def _ticking(self, refractory: Any, in_fcl: Any, forced: Any) -> Any:
        blocked = np.flatnonzero(refractory & in_fcl)
        self.v[blocked] = (self.v[blocked] + self._net_input(blocked, self._arrived)) * self._keep(blocked)
        return super()._ticking(refractory, in_fcl, forced)


class ShortProbe(ReferenceEngine):
    """14: the synapses of a source lie in a hash table whose look-up gives up after 16 probes."""

    PROBES = 16

    def _group_synapses(self, network: Any) -> None:
        super()._group_synapses(network)
        taken: set[int] = set()
        self._found = np.ones(network.neuron_count, np.bool_)
        for source in np.flatnonzero(self._outgoing).tolist():
            slot = source >> 5 << 5
            probe = next(n for n in range(network.neuron_count + 1) if slot + n not in taken)
            taken.add(slot + probe)
            self._found[source] = probe < self.PROBES

    def _contributions(self, rows: Any, source_potentials: Any) -> Any:
        found = self._found[self.network.synapses.source_neurons[rows]]
        return super()._contributions(rows, source_potentials) * found.astype(np.float32)


class TruncatedPotentials(ReferenceEngine):
    """15: potentials are truncated to 0.001 on the way to the device."""

    def _load(self, network: Any) -> None:
        super()._load(network)
        self.v = (np.trunc(self.v.astype(np.float64) * 1000) / 1000).astype(np.float32)


class StaleHostCopy(ReferenceEngine):
    """16: the state stays on the device and the host copy is the one from the start."""

    def state(self) -> EngineState:
        current = super().state()
        start = self.network.neurons
        return EngineState(
            **{
                **vars(current),
                "membrane_potentials": start.membrane_potentials,
                "refractory_countdowns": start.refractory_countdowns,
                "consecutive_fire_counts": start.consecutive_fire_counts,
            }
        )


class CountKept(ReferenceEngine):
    """17: the count does not restart when the neuron does not fire."""

    def _stay_quiet(self, quiet: Any) -> None:
        self.v[quiet] = self.v[quiet] * self._keep(quiet)


class InvalidSynapses(ReferenceEngine):
    """18: invalid synapses are not masked."""

    def _group_synapses(self, network: Any) -> None:
        super()._group_synapses(network)
        outgoing = self._outgoing
        sources = network.synapses.source_neurons
        self._synapses_by_source = np.argsort(sources, kind="stable")
        self._outgoing = np.bincount(sources, minlength=network.neuron_count)
        self._row_start = np.concatenate([[0], np.cumsum(self._outgoing)])
        self._divided_by = outgoing

    def _divisors(self, rows: Any) -> Any:
        sources = self.network.synapses.source_neurons[rows]
        return np.where(self._uniform[sources], 1, np.maximum(self._divided_by[sources], 1)).astype(np.float32)


class ForcedNotLearnt(ReferenceEngine):
    """Forced firings do not count in plasticity."""

    def _join_forced(self, fired: Any, potentials: Any, forced: Any, held: Any) -> None:
        super()._join_forced(fired, potentials, forced, held)
        if self.network.plastic_mappings:
            extra = np.setdiff1d(forced, fired)
            self.last_fired[extra] = 0
            self.fire_streak[extra] = 0


class ForcedTwice(ReferenceEngine):
    """A forced id that fires anyway is added a second time."""

    def _join_forced(self, fired: Any, potentials: Any, forced: Any, held: Any) -> None:
        super()._join_forced(fired, potentials, forced, held)
        again = np.intersect1d(forced, fired)
        ids = np.concatenate([self.fired_ids, again])
        values = np.concatenate([self.fired_potentials, np.full(len(again), np.float32(100))])
        order = np.argsort(ids, kind="stable")
        self.fired_ids, self.fired_potentials = ids[order], values[order]


class NegativeMpDriven(ReferenceEngine):
    """A negative potential at firing is passed on."""

    def _psps(self, rows: Any, source_potentials: Any) -> Any:
        psps = super()._psps(rows, source_potentials)
        driven = self._mp_driven[self.network.synapses.source_neurons[rows]] & self.network.flags_registered
        return np.where(driven & (source_potentials < 0), source_potentials, psps)


class DivisionFirst(ReferenceEngine):
    """psp is divided before it is multiplied with the weight."""

    def _contributions(self, rows: Any, source_potentials: Any) -> Any:
        psps = self._psps(rows, source_potentials)
        if self.network.flags_registered:
            psps = psps / self._divisors(rows)
        return self.weights[rows] * psps


class DoubleIntegration(ReferenceEngine):
    """v + x is compared in float64."""

    def _integrate(self, candidates: Any, x: Any) -> None:
        self._wide = dict(
            zip(candidates.tolist(), self.v[candidates].astype(np.float64) + x.astype(np.float64), strict=True)
        )
        super()._integrate(candidates, x)

    def _in_window(self, candidates: Any, batch: bool) -> Any:
        wide = np.array([self._wide[i] for i in candidates.tolist()], np.float64)
        return super()._in_window(candidates, batch) & (wide >= self.network.neurons.thresholds[candidates])


class DoubleLeak(ReferenceEngine):
    """The leak factor is formed and applied in float64."""

    def _stay_quiet(self, quiet: Any) -> None:
        before = self.v[quiet].astype(np.float64)
        super()._stay_quiet(quiet)
        self.v[quiet] = (before * (1.0 - self.network.neurons.leak_coefficients[quiet].astype(np.float64))).astype(
            np.float32
        )


class RestartsWhileRefractory(ReferenceEngine):
    """A non-accumulating candidate that did not fire restarts although its countdown runs."""

    def _restart(self) -> None:
        super()._restart()
        self.v[self.was_candidate] = 0


class RestartsAfterForced(ReferenceEngine):
    """A non-accumulating candidate restarts after a forced firing."""

    def _join_forced(self, fired: Any, potentials: Any, forced: Any, held: Any) -> None:
        super()._join_forced(fired, potentials, forced, held)
        self._fired_itself = fired

    def _restarting(self, in_fcl: Any) -> Any:
        restarting = in_fcl & ~self.network.neurons.mp_charge_accumulation
        restarting[self._fired_itself] = False
        return restarting


class ForcedTicks(ReferenceEngine):
    """The countdown ticks in the burst of a forced firing."""

    def _ticking(self, refractory: Any, in_fcl: Any, forced: Any) -> Any:
        return super()._ticking(refractory, in_fcl, forced[:0])


class InvalidTicks(ReferenceEngine):
    """The countdown of an invalid neuron ticks."""

    def _ticking(self, refractory: Any, in_fcl: Any, forced: Any) -> Any:
        ticking = super()._ticking(refractory, in_fcl, forced)
        return np.union1d(ticking, np.flatnonzero(refractory & ~self.network.neurons.valid_mask))


class FullCountFires(ReferenceEngine):
    """Without a finite limit a neuron fires at a count of 65535 too."""

    def _exhausted(self, candidates: Any) -> Any:
        return super()._exhausted(candidates) & self._finite_limit(candidates)


class FullCountResetByBatch(ReferenceEngine):
    """The batch path resets a count of 65535."""

    def _block(self, blocked: Any, batch: bool) -> None:
        super()._block(blocked, batch)
        self.cc[blocked] = 0


class FullCountSnoozes(ReferenceEngine):
    """A neuron without a finite limit snoozes when its count reaches 65535."""

    def _fire(self, fired: Any, batch: bool) -> None:
        super()._fire(fired, batch)
        full = fired[self._exhausted(fired) & ~self._finite_limit(fired)]
        self.rc[full] = self.rc[full] + self.network.neurons.snooze_periods[full]


class ExcitabilityBeforeLimit(ReferenceEngine):
    """A neuron whose excitability fails is not blocked by its count, and leaks."""

    def _exhausted(self, candidates: Any) -> Any:
        return super()._exhausted(candidates) & self._excited(candidates)


class InvalidDivided(ReferenceEngine):
    """Invalid synapses count in the division."""

    def _divisors(self, rows: Any) -> Any:
        sources = self.network.synapses.source_neurons
        outgoing = np.bincount(sources, minlength=self.network.neuron_count)[sources[rows]]
        return np.where(self._uniform[sources[rows]], 1, outgoing).astype(np.float32)


class NegativeContributionsLost(ReferenceEngine):
    """A negative weight or psp counts as 0."""

    def _contributions(self, rows: Any, source_potentials: Any) -> Any:
        lost = (self.weights[rows] < 0) | (self._psps(rows, source_potentials) < 0)
        return np.where(lost, np.float32(0), super()._contributions(rows, source_potentials))


class OwnSynapsesLearn(ReferenceEngine):
    """Only the synapses that a plastic rule made learn by it."""

    def _group_plastic(self, network: Any) -> None:
        super()._group_plastic(network)
        self._plastic_rules = [(m, np.intersect1d(rows, m.synapses)) for m, rows in self._plastic_rules]


class FirstRuleTeaches(ReferenceEngine):
    """Of the plastic rules of a pair the first one counts."""

    def _group_plastic(self, network: Any) -> None:
        super()._group_plastic(network.replace(plastic_mappings=network.plastic_mappings[::-1]))


class FractionalSteps(ReferenceEngine):
    """Constant, ltp and ltd are multiplied as they are, not truncated."""

    def _truncated(self, mapping: Any) -> Any:
        return mapping.constant, mapping.ltp_multiplier, mapping.ltd_multiplier


class FlooredSteps(ReferenceEngine):
    """Constant, ltp and ltd are rounded down, not towards 0."""

    def _truncated(self, mapping: Any) -> Any:
        return tuple(np.floor([mapping.constant, mapping.ltp_multiplier, mapping.ltd_multiplier]))


class LongSteps(ReferenceEngine):
    """Steps are not clamped at 255."""

    def _steps(self, constant: float, ltp: float, ltd: float) -> Any:
        return np.float32(max(constant * ltp, 0)), np.float32(max(constant * ltd, 0))


class NegativeSteps(ReferenceEngine):
    """Steps are not clamped at 0: a negative potentiation lowers the weight."""

    def _steps(self, constant: float, ltp: float, ltd: float) -> Any:
        return np.float32(min(constant * ltp, 255)), np.float32(min(constant * ltd, 255))


class DepressionOfZero(ReferenceEngine):
    """A depression step of 0 raises a negative weight to 0."""

    def _change_weights(self, mapping: Any, rows: Any, rise: Any, fall: Any) -> None:
        super()._change_weights(mapping, rows, rise, np.maximum(fall, np.float32(TINY)))


class RoundedContributions(ReferenceEngine):
    """Contributions are rounded to 2^-20, the coarsest scale of the first version."""

    DIGITS = 20

    def _contributions(self, rows: Any, source_potentials: Any) -> Any:
        scale = 2.0**self.DIGITS
        return (np.rint(super()._contributions(rows, source_potentials) * scale) / scale).astype(np.float32)


class FinelyRoundedContributions(RoundedContributions):
    """Contributions are rounded to 2^-30, the finest scale of the first version."""

    DIGITS = 30


class FloatSums(ReferenceEngine):
    """Sums go to float32 by way of float64, which rounds twice."""

    def _net_input(self, candidates: Any, sums: Any) -> Any:
        twice = np.zeros_like(sums)
        twice[candidates] = sums[candidates].astype(np.float64)
        return super()._net_input(candidates, twice)


class NanClamped(ReferenceEngine):
    """A contribution that is NaN counts as the largest one."""

    def _contributions(self, rows: Any, source_potentials: Any) -> Any:
        contributions = super()._contributions(rows, source_potentials)
        return np.where(np.isnan(contributions), np.float32(np.inf), contributions)


class InfinityRefused(ReferenceEngine):
    """Potentials end at the largest float32."""

    def _stay_quiet(self, quiet: Any) -> None:
        super()._stay_quiet(quiet)
        self.v[quiet] = np.clip(self.v[quiet], -NO_LIMIT, NO_LIMIT)


NUMBERED = (
    LeakFirst,
    ResetToRest,
    RefractoryThree,
    ZeroSumSkipped,
    ShiftedLcg,
    NarrowAccumulator,
    NoDivision,
    NoMpDriven,
    NoThresholdLimit,
    NoFireLimit,
    NoSnooze,
    NoRestart,
    ExcitabilityStrict,
    IntegratesWhileRefractory,
    ShortProbe,
    TruncatedPotentials,
    StaleHostCopy,
    CountKept,
    InvalidSynapses,
)
UNRECORDED = (ForcedNotLearnt, ForcedTwice, NegativeMpDriven, DivisionFirst, DoubleIntegration, DoubleLeak)
REVISED = (
    RestartsWhileRefractory,
    RestartsAfterForced,
    ForcedTicks,
    InvalidTicks,
    FullCountFires,
    FullCountResetByBatch,
    FullCountSnoozes,
    ExcitabilityBeforeLimit,
    InvalidDivided,
    NegativeContributionsLost,
    OwnSynapsesLearn,
    FirstRuleTeaches,
    FractionalSteps,
    FlooredSteps,
    LongSteps,
    NegativeSteps,
    DepressionOfZero,
    RoundedContributions,
    FinelyRoundedContributions,
    FloatSums,
    NanClamped,
    InfinityRefused,
)
"""Readings that revision 2 corrected, and others of what it says."""
FAULTS: tuple[type[ReferenceEngine], ...] = (*NUMBERED, *UNRECORDED, *REVISED)
