"""Synapses whose contribution is not a constant, on the host: mp-driven and plastic ones (SEMANTICS sections 2 and 5),
those of rules with transmission factors, and those whose psp degenerates (FEATURES sections 2.3, 4 and 5).

They need float32 division, and weights that change; WGSL promises neither to the last bit. So the host computes
between bursts what they contribute, and the device adds it to the sums under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.signals import Factors
from burstproof.engine.layout import ComputedRows, Layout, PlasticRules
from burstproof.engine.profile import Profile
from burstproof.engine.state import EngineState
from burstproof.network.fixed_point import FixedPoint

Ids = npt.NDArray[Any]
_BYTE_MAX = np.float32(255)
_ZERO = np.float32(0)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Contributions under way: ``cells`` (A,) int64 of the ring, each once, their ``sums`` (A,) int64."""

    cells: npt.NDArray[np.int64]
    sums: npt.NDArray[np.int64]
    clamped: bool


class HostRows:
    """The computed synapses of a network, with what they have learnt, what is left of their psp, and the history that
    this needs."""

    def __init__(self, layout: Layout, computed: ComputedRows, fixed_point: FixedPoint, profile: Profile) -> None:
        self._computed = computed
        self._plastic: PlasticRules | None = layout.plastic
        self._fixed_point = fixed_point
        self._profile = profile
        self._neurons, self._slots = layout.neuron_count, layout.max_delay
        self.weights, self.psps = computed.weights.copy(), computed.psps.copy()
        self._degenerates = bool(computed.degeneration.any())
        self.eligibility = np.zeros(len(self._learning), np.float32)
        self.last_fired = np.zeros(self._neurons, np.int64)
        self.streak = np.zeros(self._neurons, np.int64)
        self.history = 0

    @property
    def _learning(self) -> npt.NDArray[np.int64]:
        return np.empty(0, np.int64) if self._plastic is None else self._plastic.positions

    @property
    def table_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the network's synapse table, (C,), in the order of ``weights``."""
        return self._computed.rows

    @property
    def learning_rows(self) -> npt.NDArray[np.int64]:
        """Rows of the network's synapse table, (L,), in the order of ``eligibility``."""
        return self._computed.rows[self._learning]

    def after_burst(self, burst: int, ids: Ids, potentials: npt.NDArray[np.float32], factors: Factors) -> Arrivals:
        """What burst ``burst`` sends on its way, and what the synapses learn from it; ``factors`` are those in force
        in it."""
        self._remember(burst, ids)
        with np.errstate(over="ignore", invalid="ignore"):
            if self._profile.plastic_all_window:
                self._learn(burst, factors)
                return self._arrivals(burst, ids, potentials, factors)
            arrivals = self._arrivals(burst, ids, potentials, factors)
            self._learn(burst, factors)
            return arrivals

    def _arrivals(self, burst: int, ids: Ids, potentials: npt.NDArray[np.float32], factors: Factors) -> Arrivals:
        computed = self._computed
        counts = computed.offsets[ids + 1] - computed.offsets[ids]
        entries = np.repeat(computed.offsets[ids] - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
        sources, at_firing = np.repeat(ids, counts), np.repeat(potentials, counts)
        psps = np.where(computed.mp_driven[sources], self._driven(at_firing), self.psps[entries])
        values = (self.weights[entries] * psps) / computed.divisors[sources]
        values = values * factors.transmission[computed.rules[entries]]
        if self._degenerates:
            self.psps[entries] = _worn(self.psps[entries], computed.degeneration[sources])
        reaching = computed.signs[entries] != 0
        entries = entries[reaching]
        integers, clamped = self._fixed_point.quantise(values[reaching])
        delays = 1 if computed.delays is None else computed.delays[entries].astype(np.int64)
        cells = (burst + delays) % self._slots * self._neurons + computed.targets[entries].astype(np.int64)
        unique, places = np.unique(cells, return_inverse=True)
        sums = np.zeros(len(unique), np.int64)
        np.add.at(sums, places, integers * computed.signs[entries])
        return Arrivals(unique, sums, clamped)

    def _driven(self, potentials: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The potential at firing as psp: not below 0; under ``feagi-beta`` rounded half away from 0, at most 255."""
        psps = np.maximum(potentials, _ZERO)
        if self._profile.round_mp_driven:
            psps = np.minimum(np.floor(psps.astype(np.float64) + 0.5), _BYTE_MAX).astype(np.float32)
        return psps

    def _remember(self, burst: int, ids: Ids) -> None:
        if self._plastic is None:
            return
        unbroken = self.last_fired[ids] == burst - 1
        self.streak[ids] = np.minimum(np.where(unbroken, self.streak[ids], 0) + 1, self._plastic.longest_window)
        self.last_fired[ids] = burst

    def _learn(self, burst: int, factors: Factors) -> None:
        rules = self._plastic
        if rules is None:
            return
        for number, window in enumerate(rules.windows.tolist()):
            if self.history >= window - 1 and not rules.frozen[number]:
                self._change(rules, number, burst, window, factors.learning[number])
        self.history = min(self.history + 1, rules.longest_window - 1)

    def _change(self, rules: PlasticRules, number: int, burst: int, window: int, factor: np.float32) -> None:
        """One mapping: both sides fired, one of them did, or none; then what the traces make of the weights."""
        rise, fall = rules.potentiations[number], rules.depressions[number]
        if rise == 0 and fall == 0 and factor == 0:
            return
        part = slice(int(rules.starts[number]), int(rules.starts[number + 1]))
        recent = (self.last_fired > 0) & (self.last_fired > burst - window)
        complete = recent
        if self._profile.plastic_all_window:
            complete = (self.last_fired == burst) & (self.streak >= window)
        sources, targets = rules.sources[part], rules.targets[part]
        both, one = complete[sources] & complete[targets], recent[sources] | recent[targets]
        decay = rules.decays[number]
        traces = self.eligibility[part] * decay if decay else np.zeros(len(sources), np.float32)
        traces[both] += rise
        if fall > 0:
            traces[one & ~both] -= fall
        self.eligibility[part] = traces
        places = rules.positions[part]
        if factor != 0:
            self._weigh(places, traces, factor, rules.etas[number], rules.max_weights[number])
        if self._profile.plastic_all_window:
            self.weights[places] = np.clip(self.weights[places], _ZERO, _BYTE_MAX)

    def _weigh(
        self,
        places: npt.NDArray[np.int64],
        traces: npt.NDArray[np.float32],
        factor: np.float32,
        eta: np.float32,
        most: np.float32,
    ) -> None:
        """What traces other than 0 make of weights; beside a negative factor a negative trace does nothing."""
        moving = np.flatnonzero(traces > 0 if factor < 0 else traces)
        places, changes = places[moving], eta * factor * traces[moving]
        moved = self.weights[places] + changes
        self.weights[places] = np.where(changes >= 0, np.minimum(moved, most), np.maximum(moved, _ZERO))

    def history_of(self, burst: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        """``last_fired`` and ``fire_streak`` of the canonical state."""
        longest = 1 if self._plastic is None else self._plastic.longest_window
        last = np.where(self.last_fired > max(0, burst - (longest - 1)), self.last_fired, 0)
        return last, np.where(last > 0, self.streak, 0).astype(np.uint16)

    def restore(self, state: EngineState) -> None:
        """Take over what ``state`` says of these synapses."""
        self.weights = state.weights[self.table_rows]
        if state.features is not None:
            self.psps = state.features.postsynaptic_potentials[self.table_rows]
        self.eligibility = state.eligibility_traces[self.learning_rows]
        self.last_fired = state.last_fired.copy()
        self.streak = state.fire_streak.astype(np.int64)
        self.history = state.history_bursts


def _worn(psps: npt.NDArray[np.float32], losses: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """``psps`` after a firing that takes ``losses`` from them; where it takes nothing they stay as they are."""
    return np.where(losses > 0, np.maximum(psps - losses, _ZERO), psps)
