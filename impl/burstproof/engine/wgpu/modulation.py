"""Modulators and homeostats by area class: what the host knows of them from burst to burst (FEATURES 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.levels import clamped_levels
from burstproof.engine.features.signals import Factors, factors_of, levels_in_force, signals_of
from burstproof.engine.features.tables import EXCITABILITY, LEAK, THRESHOLD, feature_tables
from burstproof.network.model import Network

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]

_UPDATES, _REGULATED, _HOMEOSTATIC = 1, 2, 32
_SCALES = {THRESHOLD: 4, LEAK: 8, EXCITABILITY: 16}


class Modulation:
    """Signals of the burst just done, and the tables that the shaders read of area classes.

    Attributes
    ----------
    signals : float32 (M,)
    factors : Factors
        Those that follow from the signals, and act in the next burst.
    """

    def __init__(self, network: Network) -> None:
        self._network, self._tables = network, feature_tables(network)
        self._base = clamped_levels(network)
        self._loaded_at, self._loaded_regulated = network.burst_count, np.zeros(self._class_count, np.bool_)
        self._since_load = 0
        self._take(np.zeros(len(network.features.modulators), np.float32))

    def _take(self, signals: Floats) -> None:
        self.signals = signals
        self.factors: Factors = factors_of(self._tables.modulators, signals)

    @property
    def _class_count(self) -> int:
        return len(self._tables.areas.alphas)

    @property
    def first_leaks(self) -> Floats:
        """The homeostats' g at load, (N,): 0 outside homeostatic areas."""
        homeostatic = self._tables.areas.homeostatic[self._tables.classes]
        leaks = np.clip(self._base.leak_coefficients, np.float32(0), np.float32(1))
        return np.where(homeostatic, leaks, np.float32(0))

    def measure(self, ids: npt.NDArray[Any], potentials: Floats) -> None:
        """The signals of a burst with this fired list."""
        if len(self.signals):
            self._take(signals_of(self._tables, ids, potentials))

    def class_table(self, bursts: Sequence[int]) -> tuple[Words, int]:
        """Words of all area classes, and how many come before the rows, of which each of the ``bursts`` has one.

        First the constants, (C, 6), then the rows, (B, C, 4): flags, and the factors of the parameters.
        """
        areas, count = self._tables.areas, self._class_count
        numbers = (areas.keeps, areas.alphas, areas.targets, areas.gains, areas.leak_mins, areas.leak_maxs)
        constants = np.stack(numbers, axis=1).astype(np.float32).view(np.uint32).ravel()
        rows = np.zeros((len(bursts), count, 4), np.uint32)
        rows[:, :, 1:] = self.factors.areas.view(np.uint32)
        for row, burst in zip(rows, bursts, strict=True):
            row[:, 0] = self._flags(burst)
        return np.concatenate([constants, rows.ravel()]), len(constants)

    def _flags(self, burst: int) -> npt.NDArray[np.int64]:
        areas = self._tables.areas
        updates = burst % areas.update_every == 0
        flags = np.where(areas.homeostatic, _HOMEOSTATIC + updates * _UPDATES, 0)
        flags += self._regulated(burst - 1) * _REGULATED
        if self._acts(burst - 1):
            flags += areas.subscribes @ np.array([_SCALES[column] for column in range(3)])
        return flags

    def _regulated(self, burst: int) -> npt.NDArray[np.bool_]:
        """Classes whose homeostat has replaced the leaks that were loaded, after ``burst``."""
        areas = self._tables.areas
        updated = burst // areas.update_every > self._loaded_at // areas.update_every
        found: npt.NDArray[np.bool_] = areas.homeostatic & (updated | self._loaded_regulated)
        return found

    def _acts(self, burst: int) -> bool:
        """Whether factors are in force after ``burst``: a burst has ended since the load."""
        return bool(self._since_load) or burst > self._loaded_at

    def levels(self, burst: int, g: Floats) -> tuple[Floats, Floats, Floats]:
        """Thresholds, leaks and excitabilities in force after ``burst``, with the homeostats' ``g`` (N,)."""
        factors = self.factors if self._acts(burst) else None
        clamps = self._network.features.clamp_potentials
        return levels_in_force(self._base, self._tables, g, self._regulated(burst), factors, clamps)

    def bursts_since_load(self, burst: int) -> int:
        """0 or 1, as ``FeatureState`` has it."""
        return int(self._acts(burst))

    def restore(self, state: FeatureState, burst: int) -> None:
        """Go on from ``state`` after ``burst``."""
        raw = state.leak_coefficients != state.homeostat_leaks
        differing = np.zeros(self._class_count, np.bool_)
        differing[self._tables.classes[raw]] = True
        self._loaded_at, self._loaded_regulated = burst, ~differing
        self._since_load = state.bursts_since_load
        self._take(state.signals.copy())
