"""Features of the reference: FEATURES.md sections 1, 2, 3, 5 and 6, each as written there.

All arithmetic is float32 in the order written. Neurons that are added while a network runs (section 7.5) have neither
homeostat nor modulators, because both act on values at load.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.network.features import Features, Homeostat, ModulatorKind
from burstproof.network.schema import NeuronTable

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

ONE, ZERO = np.float32(1), np.float32(0)
LARGEST_POTENTIAL = np.float32(255)
MOST_FIRES = 65534
"""The longest consecutive-fire limit that is finite."""


def exponential(exponent: np.float32) -> np.float32:
    """The float32 nearest to exp of a float32."""
    return np.float32(np.exp(np.float64(exponent)))


def in_areas(neurons: NeuronTable, areas: Iterable[int]) -> Bools:
    """Mask of the neurons that lie in one of the areas."""
    return np.isin(neurons.cortical_areas, np.array(sorted(areas), np.uint32))


class Homeostats:
    """Section 1: ``rates`` r and ``leaks`` g of each neuron, 0 outside homeostatic areas."""

    def __init__(self, features: Features, neurons: NeuronTable) -> None:
        self.rates = np.zeros(len(neurons), np.float32)
        self.leaks = np.zeros(len(neurons), np.float32)
        self._areas: list[tuple[Ids, Homeostat]] = []
        for index, area in features.areas.items():
            if area.homeostat is not None:
                ids = np.flatnonzero(neurons.cortical_areas == index)
                self._areas.append((ids, area.homeostat))
                self.leaks[ids] = np.clip(neurons.leak_coefficients[ids], ZERO, ONE)

    def after(self, burst: int, fired: Ids, neurons: NeuronTable) -> NeuronTable:
        """The neurons with their leaks from the next burst on."""
        if not self._areas:
            return neurons
        fires = np.zeros(len(neurons), np.float32)
        fires[fired] = ONE
        leaks = neurons.leak_coefficients.copy()
        for ids, homeostat in self._areas:
            self._average(ids, fires[ids], homeostat)
            if burst % homeostat.update_every == 0:
                self._regulate(ids, homeostat)
                leaks[ids] = self.leaks[ids]
        return dataclasses.replace(neurons, leak_coefficients=leaks)

    def _average(self, ids: Ids, fires: Floats, homeostat: Homeostat) -> None:
        """The average r, in every burst."""
        alpha = ONE - exponential(-ONE / np.float32(homeostat.tau))
        self.rates[ids] = (ONE - alpha) * self.rates[ids] + alpha * fires

    def _regulate(self, ids: Ids, homeostat: Homeostat) -> None:
        """The leak g, every n bursts."""
        moved = self.leaks[ids] + np.float32(homeostat.gain) * (self.rates[ids] - np.float32(homeostat.target))
        self.leaks[ids] = np.clip(moved, np.float32(homeostat.leak_min), np.float32(homeostat.leak_max))


class Modulators:
    """Section 2: ``signals`` of the burst just done; they act in the next one."""

    def __init__(self, features: Features, neurons: NeuronTable) -> None:
        self.signals = np.zeros(len(features.modulators), np.float32)
        self._features = features
        self._base = neurons

    def measure(self, potentials: Floats, areas: npt.NDArray[np.uint32]) -> None:
        """Section 2.1: the signals of this burst; ``potentials`` and ``areas`` of the fired neurons."""
        for number, modulator in enumerate(self._features.modulators):
            driving = np.flatnonzero(areas == modulator.driver)
            strength = ZERO
            if len(driving):
                strength = ONE
                if modulator.full_scale_potential is not None:
                    strength = min(potentials[driving[0]] / np.float32(modulator.full_scale_potential), ONE)
            self.signals[number] = np.float32(modulator.magnitude_percent) / np.float32(100) * strength

    def product(self, positions: Iterable[int]) -> np.float32:
        """((1 (1 + s1)) (1 + s2))... over the modulators at ``positions``."""
        factor = ONE
        for position in positions:
            factor = factor * (ONE + self.signals[position])
        return factor

    def total(self, positions: Iterable[int]) -> np.float32:
        """s1 + s2 + ..."""
        found = ZERO
        for position in positions:
            found = found + self.signals[position]
        return found

    def strongest(self, positions: Iterable[int]) -> np.float32:
        """max(0, s1, s2, ...)."""
        return np.float32(max([ZERO, *(self.signals[position] for position in positions)]))

    def of_kind(self, area: int, kind: ModulatorKind) -> tuple[int, ...]:
        """Positions of the modulators of one kind that an area subscribes to, in list order."""
        found = self._features.areas.get(area)
        positions = found.modulators if found is not None else ()
        return tuple(one for one in positions if self._features.modulators[one].kind is kind)

    def transmission(self) -> Floats:
        """Section 2.3: the factor T of each rule; entry 0 is for synapses without one."""
        factors = [ONE]
        for rule in self._features.rules:
            gain = self.product(rule.gains)
            factors.append(gain * self.strongest(rule.gates) if rule.gates else gain)
        return np.array(factors, np.float32)

    def after(self, neurons: NeuronTable, homeostats: Homeostats) -> NeuronTable:
        """Section 2.2: the neurons with their parameters from the next burst on."""
        columns = {
            "thresholds": (ModulatorKind.FIRING_THRESHOLD, np.float32(np.inf)),
            "leak_coefficients": (ModulatorKind.LEAK, ONE),
            "excitabilities": (ModulatorKind.FIRING_PROBABILITY, ONE),
        }
        changed: dict[str, Any] = {}
        for index, area in self._features.areas.items():
            ids = np.flatnonzero(self._base.cortical_areas == index)
            for name, (kind, most) in columns.items():
                positions = self.of_kind(index, kind)
                if positions:
                    base = getattr(self._base, name)[ids]
                    if name == "leak_coefficients" and area.homeostat is not None:
                        base = homeostats.leaks[ids]
                    column = changed.setdefault(name, getattr(neurons, name).copy())
                    column[ids] = np.clip(base * self.product(positions), ZERO, most)
        return dataclasses.replace(neurons, **changed)


class Trains:
    """Section 3: neurons that a spike train forces to fire in the next burst (``active``), and their potentials."""

    def __init__(self, features: Features, neurons: NeuronTable) -> None:
        self.active = np.zeros(len(neurons), np.bool_)
        self.held = np.zeros(len(neurons), np.float32)
        self._areas = [index for index, area in features.areas.items() if area.spike_train]

    def continuing(self) -> tuple[Ids, Floats]:
        """The firings that trains force in this burst: ids and potentials."""
        ids = np.flatnonzero(self.active)
        return ids, self.held[ids]

    def advance(self, fired: Ids, potentials: Floats, neurons: NeuronTable, rc: Ids, cc: Ids) -> None:
        """Start, continue or end the trains of the fired neurons; updates ``rc`` and ``cc``."""
        if not self._areas:
            return
        limits = neurons.consecutive_fire_limits.astype(np.int64)
        able = in_areas(neurons, self._areas) & (limits > 0) & (limits <= MOST_FIRES)
        ids, potentials = fired[able[fired]], potentials[able[fired]]
        active = self.active[ids]
        starts = ~active & (cc[ids] < limits[ids])
        going = ids[active]
        cc[going] += 1
        ends = going[cc[going] >= limits[going]]
        self.held[ids[starts]] = potentials[starts]
        self.held[ends] = ZERO
        self.active[ids[starts]] = True
        self.active[ends] = False
        rc[ids[self.active[ids]]] = 1
        period = neurons.refractory_periods.astype(np.int64) + neurons.snooze_periods
        rc[ends] = np.minimum(period[ends], 65535)


class Degeneration:
    """Section 5: a firing lowers the psp of each outgoing synapse of its neuron."""

    def __init__(self, features: Features) -> None:
        self.acts = any(area.degeneration > 0 for area in features.areas.values())
        self._losses = {index: np.float32(a.degeneration) for index, a in features.areas.items() if a.degeneration > 0}

    def after(self, psps: Floats, source_areas: npt.NDArray[np.uint32]) -> Floats:
        """The psps of synapses whose sources, neurons of ``source_areas``, have fired."""
        for index, loss in self._losses.items():
            worn = np.maximum(psps - loss, ZERO)
            psps = np.where(source_areas == index, worn, psps)
        return psps


def clamped_neurons(neurons: NeuronTable, count: int) -> NeuronTable:
    """Section 6: thresholds and limits of the first ``count`` neurons within 0...255; twins come after them."""
    names = "thresholds", "threshold_limits"
    changed: dict[str, Any] = {name: within_range(getattr(neurons, name), count) for name in names}
    return dataclasses.replace(neurons, **changed)


def within_range(values: Floats, count: int) -> Floats:
    """Section 6: the first ``count`` values within 0...255."""
    return np.concatenate([np.clip(values[:count], ZERO, LARGEST_POTENTIAL), values[count:]])
