"""Modulators and homeostats by area class: what the host knows of them from burst to burst (FEATURES 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FeatureState
from burstproof.engine.features.levels import clamped_levels
from burstproof.engine.features.signals import Factors, factors_of, levels_in_force, signals_of
from burstproof.engine.features.tables import (
    EXCITABILITY,
    LEAK,
    THRESHOLD,
    AreaTable,
    ModulatorTable,
    feature_tables,
)
from burstproof.engine.wgpu.batches import Classes
from burstproof.engine.wgpu.shaders import BATCH_WORDS
from burstproof.network.model import Network

Floats = npt.NDArray[np.float32]
Words = npt.NDArray[np.uint32]

_UPDATES, _REGULATED, _HOMEOSTATIC = 1, 2, 32
_SCALES = {THRESHOLD: 4, LEAK: 8, EXCITABILITY: 16}
_ITEM_WORDS = 3


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
        self._constants, self._lists = _class_words(self._tables.areas), _list_words(self._tables.modulators)
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

    def class_table(self, bursts: Sequence[int], first: int) -> tuple[Words, Classes]:
        """What the table of a batch has of area classes from word ``first`` on: constants, (C, 6), lists of modulators,
        and flags for each of the ``bursts``, (B, C)."""
        flags = np.concatenate([self._flags(burst) for burst in bursts]).astype(np.uint32)
        lists = first + len(self._constants)
        classes = Classes(
            constants=first,
            lists=lists,
            flags=lists + len(self._lists),
            count=self._class_count,
            drivers=BATCH_WORDS + 6 * self._class_count,
            driver_count=self._tables.modulators.driver_count,
        )
        return np.concatenate([self._constants, self._lists, flags]), classes

    def factor_words(self) -> Words:
        """Factors of areas in the next burst, for bursts of both parities, and room for two words of each driver."""
        factors = self.factors.areas.ravel().view(np.uint32)
        return np.concatenate([factors, factors, np.zeros(2 * self._tables.modulators.driver_count, np.uint32)])

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


def _class_words(areas: AreaTable) -> Words:
    """Constants of the homeostats, (C, 6), flat."""
    numbers = (areas.keeps, areas.alphas, areas.targets, areas.gains, areas.leak_mins, areas.leak_maxs)
    return np.stack(numbers, axis=1).astype(np.float32).view(np.uint32).ravel()


def _list_words(m: ModulatorTable) -> Words:
    """The lists of modulators of the area classes: 3 C + 1 places, in items from the first word on, then the items.

    An item has three words: magnitude, full scale and number of the driver area.
    """
    lists = m.area_factors
    columns = m.magnitudes.view(np.uint32), m.full_scales.view(np.uint32), m.drivers.astype(np.uint32)
    items = np.stack(columns, axis=1)[lists.items]
    before = -(-len(lists.starts) // _ITEM_WORDS)
    places = np.zeros(_ITEM_WORDS * before, np.uint32)
    places[: len(lists.starts)] = before + lists.starts
    return np.concatenate([places, items.ravel()])
