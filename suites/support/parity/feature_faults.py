"""Faulty engines for features: the reference with one rule of FEATURES.md changed, by section.

Each must fail a case worked out by hand. A fault in a part of the reference replaces that part of the engine.
"""

from __future__ import annotations

import dataclasses
from typing import Any
from unittest import mock

import numpy as np

from burstproof.engine import reference, reference_memory
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.reference_associative import MadeSynapses
from burstproof.engine.reference_features import Degeneration, Homeostats, Modulators, Trains
from burstproof.engine.reference_memory import Memories
from burstproof.network.features import MemoryChange

ONE, ZERO = np.float32(1), np.float32(0)

# Section 1 ---------------------------------------------------------------------------------------------------------


class AverageWithUpdates(Homeostats):
    """1: the average moves only in bursts with an update."""

    def after(self, burst: int, fired: Any, neurons: Any) -> Any:
        before = self.rates.copy()
        found = super().after(burst, fired, neurons)
        for ids, homeostat in self._areas:
            if burst % homeostat.update_every:
                self.rates[ids] = before[ids]
        return found


class CountsFromLoad(Homeostats):
    """1: bursts between updates are counted from the load."""

    _done = 0

    def after(self, burst: int, fired: Any, neurons: Any) -> Any:
        self._done += 1
        return super().after(self._done, fired, neurons)


class ClampedAtLoad(Homeostats):
    """1: the leak is clamped before its first update."""

    def after(self, burst: int, fired: Any, neurons: Any) -> Any:
        found = super().after(burst, fired, neurons)
        leaks = found.leak_coefficients.copy()
        for ids, _ in self._areas:
            leaks[ids] = self.leaks[ids]
        return dataclasses.replace(found, leak_coefficients=leaks)


class UnboundedLeak(Homeostats):
    """1: the leak has no bounds but 0 and 1."""

    def _regulate(self, ids: Any, homeostat: Any) -> None:
        super()._regulate(ids, dataclasses.replace(homeostat, leak_min=0.0, leak_max=1.0))


class ForcedNotAveraged(ReferenceEngine):
    """1: forced firings do not count in the average."""

    def _join_forced(self, fired: Any, potentials: Any, forced: Any, held: Any) -> None:
        super()._join_forced(fired, potentials, forced, held)
        self._itself = fired

    def _modulate(self) -> None:
        before = self.homeostats.rates.copy(), self.homeostats.leaks.copy(), self.neurons
        super()._modulate()
        self.homeostats.rates, self.homeostats.leaks = before[0], before[1]
        self.neurons = self.homeostats.after(self.burst_count, self._itself, before[2])


# Section 2 ---------------------------------------------------------------------------------------------------------


class SummedFactors(Modulators):
    """2: signals are added before they are a factor."""

    def product(self, positions: Any) -> Any:
        return ONE + self.total(positions)


class CountedOnce(Modulators):
    """2: an id listed twice counts once."""

    def of_kind(self, area: int, kind: Any) -> Any:
        return tuple(dict.fromkeys(super().of_kind(area, kind)))


class AnyKind(Modulators):
    """2: a modulator acts on whatever parameter subscribes to it."""

    def of_kind(self, area: int, kind: Any) -> Any:
        found = self._features.areas.get(area)
        return found.modulators if found else ()


class WrittenWhenDriven(Modulators):
    """2: parameters are written only where a driver fired."""

    def after(self, neurons: Any, homeostats: Any) -> Any:
        return super().after(neurons, homeostats) if self.signals.any() else neurons


class ScaledOnAndOn(Modulators):
    """2: the factor is applied to the parameter in force, not to its base."""

    def after(self, neurons: Any, homeostats: Any) -> Any:
        self._base = found = super().after(neurons, homeostats)
        return found


class LimitsScaled(Modulators):
    """2: threshold limits are scaled with thresholds."""

    def after(self, neurons: Any, homeostats: Any) -> Any:
        found = super().after(neurons, homeostats)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = self._base.threshold_limits * (found.thresholds[: len(self._base)] / self._base.thresholds)
        limits = np.concatenate([scaled, found.threshold_limits[len(scaled) :]]).astype(np.float32)
        return dataclasses.replace(found, threshold_limits=limits)


class ScaledHomeostat(Modulators):
    """2: the homeostat goes on from the scaled leak."""

    def after(self, neurons: Any, homeostats: Any) -> Any:
        found = super().after(neurons, homeostats)
        homeostats.leaks = np.where(homeostats.leaks > 0, found.leak_coefficients, homeostats.leaks)
        return found


class Ungraded(Modulators):
    """2: every signal has strength 1."""

    def measure(self, fired: Any, potentials: Any, areas: Any) -> None:
        super().measure(fired, np.full_like(potentials, np.inf), areas)


class Uncapped(Modulators):
    """2: strengths go beyond 1."""

    def measure(self, fired: Any, potentials: Any, areas: Any) -> None:
        super().measure(fired, potentials, areas)
        for number, one in enumerate(self._features.modulators):
            if one.full_scale_potential is not None and self.signals[number]:
                own = potentials[areas == one.driver][0]
                self.signals[number] = one.magnitude_percent / 100 * own / one.full_scale_potential


class LastListed(Modulators):
    """2: the last firing of a driver area decides."""

    def measure(self, fired: Any, potentials: Any, areas: Any) -> None:
        super().measure(fired[::-1], potentials[::-1], areas[::-1])


class SignalsAtOnce(ReferenceEngine):
    """2: transmission follows the signals of the burst itself."""

    def _propagate(self) -> None:
        self.modulators.measure(self.fired_ids, self.fired_potentials, self._areas_of(self.fired_ids))
        super()._propagate()


class GatesAddUp(Modulators):
    """2: open gates add up."""

    def strongest(self, positions: Any) -> Any:
        return max(self.total(positions), ZERO)


class NegativeGates(Modulators):
    """2: a gate may be of negative strength."""

    def strongest(self, positions: Any) -> Any:
        return np.float32(max(self.signals[one] for one in positions))


class OpenGates(Modulators):
    """2: an open gate lets everything through."""

    def strongest(self, positions: Any) -> Any:
        return ONE if super().strongest(positions) > 0 else ZERO


class OpenAtStart(Modulators):
    """2: gates are open in the first burst."""

    _measured = False

    def measure(self, fired: Any, potentials: Any, areas: Any) -> None:
        super().measure(fired, potentials, areas)
        self._measured = True

    def strongest(self, positions: Any) -> Any:
        return super().strongest(positions) if self._measured else ONE


class FactorBeforeDivision(ReferenceEngine):
    """2: the transmission factor comes before the division."""

    def _contributions(self, rows: Any, source_potentials: Any) -> Any:
        scaled = self.weights[rows] * self._psps(rows, source_potentials)
        scaled = scaled * Modulators.transmission(self.modulators)[self.network.synapses.rules[rows]]
        return scaled / self._divisors(rows) if self.network.flags_registered else scaled

    def _propagate(self) -> None:
        with mock.patch.object(
            self.modulators, "transmission", return_value=np.ones(len(self.network.features.rules) + 1)
        ):
            super()._propagate()


# Section 3 ---------------------------------------------------------------------------------------------------------


class NoTrains(Trains):
    """3: a neuron fires once."""

    def advance(self, fired: Any, potentials: Any, neurons: Any, rc: Any, cc: Any) -> None:
        pass


class TrainsWithoutLimit(Trains):
    """3: a limit that is not finite makes an endless train."""

    def advance(self, fired: Any, potentials: Any, neurons: Any, rc: Any, cc: Any) -> None:
        limits = np.where(
            neurons.consecutive_fire_limits == 0, 65534, np.minimum(neurons.consecutive_fire_limits, 65534)
        )
        super().advance(fired, potentials, dataclasses.replace(neurons, consecutive_fire_limits=limits), rc, cc)


class ManualCounts(Trains):
    """3: the manual stimulation that starts a train counts as one of its firings."""

    def advance(self, fired: Any, potentials: Any, neurons: Any, rc: Any, cc: Any) -> None:
        fresh = fired[(potentials == 100) & ~self.active[fired]]
        cc[fresh] += 1
        super().advance(fired, potentials, neurons, rc, cc)


class NoRest(Trains):
    """3: no snooze at the end of a train."""

    def advance(self, fired: Any, potentials: Any, neurons: Any, rc: Any, cc: Any) -> None:
        none = dataclasses.replace(neurons, snooze_periods=np.zeros_like(neurons.snooze_periods))
        super().advance(fired, potentials, none, rc, cc)


class HeldHundred(Trains):
    """3: forced firings of a train carry 100."""

    def continuing(self) -> Any:
        ids, held = super().continuing()
        return ids, np.full_like(held, 100)


class ManualFirst(ReferenceEngine):
    """3: manual stimulation decides the potential of a neuron in its train."""

    def _forced(self, stimulus: Any) -> Any:
        ids, potentials = super()._forced(stimulus)
        return ids, np.where(np.isin(ids, stimulus.forced), np.float32(100), potentials)


# Section 4 ---------------------------------------------------------------------------------------------------------


class NegativeOnNegative(ReferenceEngine):
    """4: a negative factor raises weights with a negative trace."""

    def _change_weights(self, mapping: Any, rows: Any, rise: Any, fall: Any) -> None:
        before = self.weights[rows].copy()
        super()._change_weights(mapping, rows, rise, fall)
        factor = reference.factor_of(mapping, self.modulators)
        traces = self.eligibility[rows]
        both = (factor < 0) & (traces < 0)
        self.weights[rows] = np.where(both, before + np.float32(mapping.eta) * factor * traces, self.weights[rows])


def _mapping_fault(name: str, text: str, **changed: Any) -> type[ReferenceEngine]:
    """An engine that reads plastic mappings with other values."""

    def learn(self: Any) -> None:
        rules = self._plastic_rules
        self._plastic_rules = [(dataclasses.replace(mapping, **changed), rows) for mapping, rows in rules]
        ReferenceEngine._learn(self)
        self._plastic_rules = rules

    return type(name, (ReferenceEngine,), {"_learn": learn, "__doc__": text})


NoLargestWeight = _mapping_fault("NoLargestWeight", "4: max_weight is ignored.", max_weight=None)
NoEta = _mapping_fault("NoEta", "4: eta is ignored.", eta=1.0)
NotFrozen = _mapping_fault("NotFrozen", "4: a frozen mapping learns.", frozen=False)
NoDecay = _mapping_fault("NoDecay", "4: a decay of bursts counts as none.", eligibility_decay=0)
NotRewarded = _mapping_fault("NotRewarded", "4: rewards are ignored, and weights follow the traces.", rewarded=False)
NoRates = _mapping_fault("NoRates", "4: learning rates are ignored.", learning_rates=())


class RewardsMultiply(Modulators):
    """4: rewards are multiplied like learning rates."""

    def total(self, positions: Any) -> Any:
        return self.product(positions) if positions else ZERO


class DecaysBeforeHistory(ReferenceEngine):
    """4: traces decay before the window is known."""

    def _learn(self) -> None:
        for mapping, rows in self._plastic_rules:
            if self.history_bursts < mapping.window - 1:
                self.eligibility[rows] = reference.traced(
                    self.eligibility[rows], reference.decay_of(mapping), *(np.zeros(len(rows), bool),) * 2, ZERO, ZERO
                )
        super()._learn()


class DecaysWithoutSteps(ReferenceEngine):
    """4: traces decay where there are neither steps nor a reward."""

    def _change_weights(self, mapping: Any, rows: Any, rise: Any, fall: Any) -> None:
        if rise == 0 and fall == 0:
            self.eligibility[rows] = self.eligibility[rows] * reference.decay_of(mapping)
        super()._change_weights(mapping, rows, rise, fall)


# Sections 5 and 6 --------------------------------------------------------------------------------------------------


class DegeneratesFirst(ReferenceEngine):
    """5: psp falls before the contributions of the firing."""

    def _propagate(self) -> None:
        super()._degenerate()
        super()._propagate()

    def _degenerate(self) -> None:
        pass


class BelowZero(Degeneration):
    """5: psp falls below 0."""

    def after(self, psps: Any, source_areas: Any) -> Any:
        for index, loss in self._losses.items():
            psps = np.where(source_areas == index, psps - loss, psps)
        return psps


class EveryArea(Degeneration):
    """5: psp falls in every area."""

    def after(self, psps: Any, source_areas: Any) -> Any:
        for loss in self._losses.values():
            psps = np.maximum(psps - loss, ZERO)
        return psps


class ClampedAfterTest(ReferenceEngine):
    """6: a potential is clamped after the test, not before."""

    def _integrate(self, candidates: Any, x: Any) -> None:
        self.v[candidates] = self.v[candidates] + x


class WholeBytes(ReferenceEngine):
    """6: potentials are whole numbers."""

    def _stored(self, potentials: Any) -> Any:
        found = super()._stored(potentials)
        return np.rint(found) if self.network.features.clamp_potentials else found


class FreeThresholds(ReferenceEngine):
    """6: thresholds are not clamped."""

    def _start(self) -> None:
        super()._start()
        self.neurons = self.network.neurons


# Section 7 ---------------------------------------------------------------------------------------------------------


class InjectsNext(Memories):
    """7.3: a pattern is injected in the next burst."""

    def recognise(self, index: int, area: Any, burst: int, modulators: Any, early: Any) -> Any:
        return super().recognise(index, area, burst, modulators, np.array([index]))


class InjectsOnce(Memories):
    """7.3: two injections into a burst count as one."""

    def due_injections(self, burst: int) -> Any:
        return list(dict.fromkeys(super().due_injections(burst)))


class NeedsNoHistory(Memories):
    """7.1: a pattern needs no history of its depth."""

    def window(self, area: Any) -> Any:
        empty = {index: (np.empty(0, np.int64), np.empty(0, np.float32)) for index in area.upstream}
        lacking = area.temporal_depth - len(self.frames)
        return [*[empty] * lacking, *({i: f[i] for i in area.upstream} for f in self.frames[-area.temporal_depth :])]


class Unordered(Memories):
    """7.1: the order of the bursts of a pattern does not matter."""

    def key_of(self, area: Any, window: Any) -> Any:
        keys = [super(Unordered, self).key_of(area, list(order)) for order in (window, window[::-1])]
        return min((key for key in keys if key is not None), default=None)


class FiringAnywhere(Memories):
    """7.1: what fires outside the upstream areas forms patterns, too."""

    def key_of(self, area: Any, window: Any) -> Any:
        found = super().key_of(area, window)
        return 0 if found is None and window and area.change is MemoryChange.NONE else found


class IdsAgain(Memories):
    """7.2: the id of a neuron that is gone is used again."""

    def forget(self, number: int) -> None:
        super().forget(number)
        self.next_id = min(self.next_id, number)


class InjectsTheDead(Memories):
    """7.2: injections of a neuron that goes stay."""

    def forget(self, number: int) -> None:
        kept, gone = self.injections, self.live[number]
        super().forget(number)
        self.injections = kept
        self._gone = {**getattr(self, "_gone", {}), number: gone}

    def due_injections(self, burst: int) -> Any:
        for one in self.injections:
            if one.due == burst and one.memory not in self.live:
                self.live[one.memory] = self._gone[one.memory]
        return super().due_injections(burst)


class LongtermAtOnce(Memories):
    """7.2: a neuron becomes long-term in the burst in which its lifespan reaches the threshold."""

    def recognise(self, index: int, area: Any, burst: int, modulators: Any, early: Any) -> Any:
        found = super().recognise(index, area, burst, modulators, early)
        self.promote(index, area)
        return found


class LongtermAges(Memories):
    """7.2: long-term neurons age like others."""

    def age(self, index: int, touched: Any) -> None:
        flags = {number: one.longterm for number, one in self.live.items()}
        for one in self.live.values():
            one.longterm = False
        super().age(index, touched)
        for number, one in self.live.items():
            one.longterm = flags[number]


class NoGrowth(Memories):
    """7.2: a reactivation does not lengthen a life."""

    def recognise(self, index: int, area: Any, burst: int, modulators: Any, early: Any) -> Any:
        return super().recognise(index, dataclasses.replace(area, lifespan_growth=0), burst, modulators, early)


class NoCap(Memories):
    """7.2: there is no cap."""

    def forms(self, index: int, area: Any, modulators: Any) -> bool:
        return super().forms(index, dataclasses.replace(area, neuron_cap=0), modulators)


class EvictsAlways(Memories):
    """7.2: a cap always evicts."""

    def forms(self, index: int, area: Any, modulators: Any) -> bool:
        return super().forms(index, dataclasses.replace(area, evicts=True), modulators)


class EvictsNewest(Memories):
    """7.2: the neuron with the longest life makes room."""

    def forms(self, index: int, area: Any, modulators: Any) -> bool:
        found = self.of_area(index)
        if area.neuron_cap and len(found) >= area.neuron_cap and area.evicts:
            self.forget(max(found, key=lambda number: reference_memory.least_used(number, found[number])))
        return super().forms(index, area, modulators)


class FormationLater(ReferenceEngine):
    """7.2: formation follows the signals of the burst before."""

    def _modulate(self) -> None:
        self._signals = self.modulators.signals.copy()
        super()._modulate()

    def _memorise(self, early: Any) -> None:
        now, self.modulators.signals = self.modulators.signals, self._signals
        super()._memorise(early)
        self.modulators.signals = now


class FormationGraded(Memories):
    """7.2: only a full formation forms."""

    def forms(self, index: int, area: Any, modulators: Any) -> bool:
        listening = self.features.areas[index].modulators
        return super().forms(index, area, modulators) and not any(modulators.signals[list(listening)] < 0)


class FormationStopsAll(Memories):
    """7.2: without formation nothing is reactivated."""

    def recognise(self, index: int, area: Any, burst: int, modulators: Any, early: Any) -> Any:
        if modulators.product(self.features.areas[index].modulators) <= 0:
            return None
        return super().recognise(index, area, burst, modulators, early)


class Leaky(Memories):
    """7.3: memory neurons lose what does not fire them."""

    def fire(self, burst: int, sums: Any, injected: Any) -> Any:
        for one in self.live.values():
            one.v = ZERO
        return super().fire(burst, sums, injected)


class InjectionResets(Memories):
    """7.3: an injection takes and resets the potential."""

    def fire(self, burst: int, sums: Any, injected: Any) -> Any:
        for number in injected:
            sums[number] = sums[number] + self.live[number].v
            self.live[number].v = ZERO
        return super().fire(burst, sums, injected)


class TwinsAtOnce(Memories):
    """7.5: a twin is there in the burst in which its neuron becomes long-term."""

    def after(self, burst: int, modulators: Any, early: Any) -> Any:
        super().after(burst, modulators, early)
        return [number for number, one in self.live.items() if one.twin_due]


class TwinsAsTheyAre(ReferenceEngine):
    """7.5: a twin gets the potential of its neuron, even below its threshold."""

    def _feed_twins(self, fired: Any) -> None:
        thresholds = self.neurons.thresholds
        self.neurons = dataclasses.replace(self.neurons, thresholds=np.full_like(thresholds, -np.inf))
        super()._feed_twins(fired)
        self.neurons = dataclasses.replace(self.neurons, thresholds=thresholds)


class TwinsWithoutLimit(ReferenceEngine):
    """7.5: an absent limit is none for twins, too."""

    def _add_neuron(self, area: int) -> None:
        super()._add_neuron(area)
        limits = self.neurons.threshold_limits.copy()
        limits[-1] = limits[-1] or np.float32(1e30)
        self.neurons = dataclasses.replace(self.neurons, threshold_limits=limits)


class ReplaysTogether(Memories):
    """7.6: all bursts of a pattern are replayed at once."""

    def due_replays(self, burst: int) -> Any:
        found, self.replays = self.replays, []
        return found


class ReplaysPotential(ReferenceEngine):
    """7.6: replays always carry the potential of the memory neuron."""

    def _replay(self, memory: Any, potential: Any) -> None:
        start = len(self.memories.replays)
        super()._replay(memory, potential)
        self.memories.replays[start:] = [
            one if one.adds else dataclasses.replace(one, potential=potential) for one in self.memories.replays[start:]
        ]


class ReplaysNever(ReferenceEngine):
    """7.6: replays carry 1, also in mp-driven memory areas."""

    def _replay(self, memory: Any, potential: Any) -> None:
        super()._replay(memory, ONE)


class LearnsAtOnce(Memories):
    """7.7: potentials are averaged when the pattern occurs."""

    def recognise(self, index: int, area: Any, burst: int, modulators: Any, early: Any) -> Any:
        found = super().recognise(index, area, burst, modulators, early)
        if self.injections and self.injections[-1].learnt is not None:
            one = self.injections[-1]
            memory = self.live[one.memory]
            memory.frames = [reference_memory.averaged(*pair) for pair in zip(memory.frames, one.learnt, strict=True)]
            self.injections[-1] = dataclasses.replace(one, learnt=None)
        return found


class HalfEven(Memories):
    """7.7: halves are rounded to even."""

    def step_of(self, area: Any, old: Any, new: Any) -> Any:
        found = super().step_of(area, old, new)
        if area.change is MemoryChange.RATIO:
            return found
        potentials = [{i: dict(zip(*frame[i], strict=True)) for i in area.upstream} for frame in (old, new)]
        size = area.delta_quantization
        return [
            [(i, round((potentials[1][up].get(i, 0.0) - potentials[0][up].get(i, 0.0)) / size)) for i, _ in pairs]
            for up, pairs in zip(sorted(area.upstream), found, strict=True)
        ]


class OnlyBoth(Memories):
    """7.7: a step has only who fired in both bursts, in both modes."""

    def step_of(self, area: Any, old: Any, new: Any) -> Any:
        found = super().step_of(area, old, new)
        return [
            [pair for pair in pairs if pair[0] in old[up][0] and pair[0] in new[up][0]]
            for up, pairs in zip(sorted(area.upstream), found, strict=True)
        ]


# Section 8 ---------------------------------------------------------------------------------------------------------


class OwnEnds(ReferenceEngine):
    """8: a synapse learns only where its own ends fired."""

    def _associate(self, number: int, mapping: Any, rows: Any, *steps: Any) -> None:
        made = self.made
        own = made.of_mapping(number)
        before = made.weights[own].copy(), made.traces[own].copy()
        super()._associate(number, mapping, rows, *steps)
        fired = np.isin(made.sources[own], self.fired_ids) & np.isin(made.targets[own], self.fired_ids)
        made.weights[own] = np.where(fired, made.weights[own], before[0])
        made.traces[own] = np.where(fired, made.traces[own], before[1])


class LearnsWhenMade(MadeSynapses):
    """8: a synapse learns in the burst in which it is made."""

    def make(self, mapping: int, sources: Any, targets: Any, weight: Any, psp: Any) -> None:
        super().make(mapping, sources, targets, weight, psp)
        self.weights[len(self.weights) - len(sources) :] += weight


class MadeAnyway(ReferenceEngine):
    """8: synapses are made without a reward."""

    def _associate(self, number: int, mapping: Any, rows: Any, *steps: Any) -> None:
        super()._associate(number, mapping, rows, *steps)
        unrewarded = dataclasses.replace(mapping, rewarded=False, learning_rates=(), eta=1e-30)
        super()._associate(number, unrewarded, rows, *steps)


class MadeTwice(ReferenceEngine):
    """8: a synapse of the network does not keep a second one from being made."""

    def _associate(self, number: int, mapping: Any, rows: Any, *steps: Any) -> None:
        super()._associate(number, mapping, rows[:0], *steps)


class DividesByStatic(MadeSynapses):
    """8: made synapses do not count in the division."""

    def outgoing(self, neurons: Any) -> Any:
        return np.zeros(len(neurons), np.int64) + (np.isin(neurons, self.sources) & (neurons >= 50_000_000))


class SynapsesOfTheDead(MadeSynapses):
    """8: synapses of a memory neuron that is gone stay."""

    def keep(self, rows: Any) -> None:
        pass


_PARTS = {
    "HOMEOSTATS": (AverageWithUpdates, CountsFromLoad, ClampedAtLoad, UnboundedLeak),
    "MODULATORS": (
        *(SummedFactors, CountedOnce, AnyKind, WrittenWhenDriven, ScaledOnAndOn, LimitsScaled, ScaledHomeostat),
        *(Ungraded, Uncapped, LastListed, GatesAddUp, NegativeGates, OpenGates, OpenAtStart, RewardsMultiply),
    ),
    "TRAINS": (NoTrains, TrainsWithoutLimit, ManualCounts, NoRest, HeldHundred),
    "DEGENERATION": (BelowZero, EveryArea),
    "MEMORIES": (
        *(InjectsNext, InjectsOnce, NeedsNoHistory, Unordered, FiringAnywhere, IdsAgain, InjectsTheDead),
        *(LongtermAtOnce, LongtermAges, NoGrowth, NoCap, EvictsAlways, EvictsNewest, FormationGraded),
        *(FormationStopsAll, Leaky, InjectionResets, TwinsAtOnce, ReplaysTogether, LearnsAtOnce, HalfEven, OnlyBoth),
    ),
    "MADE": (LearnsWhenMade, DividesByStatic, SynapsesOfTheDead),
}

FEATURE_FAULTS: tuple[type[ReferenceEngine], ...] = (
    *(
        type(part.__name__, (ReferenceEngine,), {name: part, "__doc__": part.__doc__})
        for name, parts in _PARTS.items()
        for part in parts
    ),
    *(ForcedNotAveraged, SignalsAtOnce, FactorBeforeDivision, ManualFirst),
    *(NegativeOnNegative, NoLargestWeight, NoEta, NotFrozen, NoDecay, NotRewarded, NoRates),
    *(DecaysBeforeHistory, DecaysWithoutSteps, DegeneratesFirst, ClampedAfterTest, WholeBytes, FreeThresholds),
    *(FormationLater, TwinsAsTheyAre, TwinsWithoutLimit, ReplaysPotential, ReplaysNever),
    *(OwnEnds, MadeAnyway, MadeTwice),
)
"""Every faulty engine; the number in its text is the section."""
