"""Faulty engines: the reference with one rule changed, one for each defect that a parity suite must be able to catch.

The numbers are the lines of SEMANTICS.md section 8; the letters behind 10 tell its two halves apart, and the faults
without a number are the ones that the same section says recordings alone cannot expose.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from burstproof.burst.engine import EngineState
from burstproof.burst.reference import ReferenceEngine, draw


class LeakFirst(ReferenceEngine):
    """1: leak before the input and towards the resting potential."""

    def _integrate(self, candidates: Any, x: Any) -> None:
        rest = self.network.neurons.resting_potentials[candidates]
        leak = self.network.neurons.leak_coefficients[candidates]
        self.v[candidates] = self.v[candidates] - leak * (self.v[candidates] - rest) + x

    def _stay_quiet(self, quiet: Any) -> None:
        self.cc[quiet[self._finite_limit()[quiet]]] = 0


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

    def _finite_limit(self) -> Any:
        return np.zeros(self.network.neuron_count, np.bool_)


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

    def _pass_refractory(self, candidates: Any, x: Any) -> Any:
        free = super()._pass_refractory(candidates, x)
        blocked = candidates[~free]
        self.v[blocked] = (self.v[blocked] + x[~free]) * self._keep(blocked)
        return free


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

    def _join_forced(self, fired: Any, potentials: Any, forced: Any) -> None:
        super()._join_forced(fired, potentials, forced)
        if self.network.plastic_mappings:
            extra = np.setdiff1d(forced, fired)
            self.last_fired[extra] = 0
            self.fire_streak[extra] = 0


class ForcedTwice(ReferenceEngine):
    """A forced id that fires anyway is added a second time."""

    def _join_forced(self, fired: Any, potentials: Any, forced: Any) -> None:
        super()._join_forced(fired, potentials, forced)
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
FAULTS: tuple[type[ReferenceEngine], ...] = (*NUMBERED, *UNRECORDED)
