"""Faults of FEATURES.md, sections 1 and 2: homeostatic leak, and modulators."""

from __future__ import annotations

import dataclasses
from typing import Any
from unittest import mock

import numpy as np

from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.reference_features import Homeostats, Modulators
from suites.support.parity.feature_faults.parts import engines_with

ONE, ZERO = np.float32(1), np.float32(0)

# Section 1 ----------------------------------------------------------------------------------------------------------


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


# Section 2 ----------------------------------------------------------------------------------------------------------


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

    def measure(self, potentials: Any, areas: Any) -> None:
        super().measure(np.full_like(potentials, np.inf), areas)


class Uncapped(Modulators):
    """2: strengths go beyond 1."""

    def measure(self, potentials: Any, areas: Any) -> None:
        super().measure(potentials, areas)
        for number, one in enumerate(self._features.modulators):
            if one.full_scale_potential is not None and self.signals[number]:
                own = potentials[areas == one.driver][0]
                self.signals[number] = one.magnitude_percent / 100 * own / one.full_scale_potential


class LastListed(Modulators):
    """2: the last firing of a driver area decides."""

    def measure(self, potentials: Any, areas: Any) -> None:
        super().measure(potentials[::-1], areas[::-1])


class SignalsAtOnce(ReferenceEngine):
    """2: transmission follows the signals of the burst itself."""

    def _propagate(self) -> None:
        self.modulators.measure(self.fired_potentials, self._areas_of(self.fired_ids))
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

    def measure(self, potentials: Any, areas: Any) -> None:
        super().measure(potentials, areas)
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


FAULTS: tuple[type[ReferenceEngine], ...] = (
    *engines_with("HOMEOSTATS", AverageWithUpdates, CountsFromLoad, ClampedAtLoad, UnboundedLeak),
    *engines_with("MODULATORS", SummedFactors, CountedOnce, AnyKind, WrittenWhenDriven, ScaledOnAndOn, LimitsScaled),
    *engines_with("MODULATORS", ScaledHomeostat, Ungraded, Uncapped, LastListed, GatesAddUp, NegativeGates),
    *engines_with("MODULATORS", OpenGates, OpenAtStart),
    *(ForcedNotAveraged, SignalsAtOnce, FactorBeforeDivision),
)
