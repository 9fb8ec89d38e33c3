"""Faults of FEATURES.md, sections 3 to 6: spike trains, rewards, degeneration, clamped potentials."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from burstproof.engine import reference
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.reference_features import Degeneration, Modulators, Trains
from suites.support.parity.feature_faults.parts import engines_with

ZERO = np.float32(0)

# Section 3 ----------------------------------------------------------------------------------------------------------


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


# Section 4 ----------------------------------------------------------------------------------------------------------


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


# Sections 5 and 6 ---------------------------------------------------------------------------------------------------


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


FAULTS: tuple[type[ReferenceEngine], ...] = (
    *engines_with("TRAINS", NoTrains, TrainsWithoutLimit, ManualCounts, NoRest, HeldHundred),
    *engines_with("MODULATORS", RewardsMultiply),
    *engines_with("DEGENERATION", BelowZero, EveryArea),
    *(ManualFirst, NegativeOnNegative, NoLargestWeight, NoEta, NotFrozen, NoDecay, NotRewarded, NoRates),
    *(DecaysBeforeHistory, DecaysWithoutSteps, DegeneratesFirst, ClampedAfterTest, WholeBytes, FreeThresholds),
)
