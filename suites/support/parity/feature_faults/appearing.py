"""Faults of FEATURES.md, sections 7 and 8: memory neurons and their twins, synapses that appear."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from burstproof.engine import reference_memory
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.reference_associative import MadeSynapses
from burstproof.engine.reference_memory import Memories
from burstproof.network.features import MemoryChange
from suites.support.parity.feature_faults.parts import engines_with

ONE, ZERO = np.float32(1), np.float32(0)

# Section 7 ----------------------------------------------------------------------------------------------------------


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


# Section 8 ----------------------------------------------------------------------------------------------------------


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


FAULTS: tuple[type[ReferenceEngine], ...] = (
    *engines_with("MEMORIES", InjectsNext, InjectsOnce, NeedsNoHistory, Unordered, FiringAnywhere, IdsAgain),
    *engines_with("MEMORIES", InjectsTheDead, LongtermAtOnce, LongtermAges, NoGrowth, NoCap, EvictsAlways),
    *engines_with("MEMORIES", EvictsNewest, FormationGraded, FormationStopsAll, Leaky, InjectionResets, TwinsAtOnce),
    *engines_with("MEMORIES", ReplaysTogether, LearnsAtOnce, HalfEven, OnlyBoth),
    *engines_with("MADE", LearnsWhenMade, DividesByStatic, SynapsesOfTheDead),
    *(FormationLater, TwinsAsTheyAre, TwinsWithoutLimit, ReplaysPotential, ReplaysNever),
    *(OwnEnds, MadeAnyway, MadeTwice),
)
