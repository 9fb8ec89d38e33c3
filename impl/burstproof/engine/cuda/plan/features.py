"""What features need on a device: sizes, constants, and the factors that follow from signals.

A *class* is the neurons of an area whose parameters change; class 0 is all other neurons.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.features.levels import clamped_levels
from burstproof.engine.features.signals import factors_of
from burstproof.engine.features.tables import EXCITABILITY, FeatureTables, Lists, can_train, feature_tables
from burstproof.engine.layout import Layout
from burstproof.engine.rules import CERTAIN
from burstproof.network.features import Features
from burstproof.network.model import Network, NeuronTable
from burstproof.network.schema import NEURON_FIELDS

HOMEOSTATIC, LEAKS, UPDATES = 1, 2, 4
"""Flags of a class in a burst: it has a homeostat; its leaks are in force; it updates them after the burst."""
CAN_TRAIN, IN_TRAIN, DRIVES = 1, 2, 4
"""Bits of a neuron's kind: its firings start a spike train, it is in one, and it is in a driver area."""
CLASS_SHIFT = 3
"""A neuron's kind has its class above these bits."""
REGULATED = 1 << 63
"""Bit in the phase of a class: the homeostat has replaced the leaks that were loaded."""
NOT_FIRED = (1 << 64) - 1
"""The word of a driver area in which nothing fired."""
MOST_MODULATORS, MOST_CLASSES = 64, 64
"""Most for which each block computes the factors itself."""
DRIVE_ROWS = 4
"""Rows of driver areas that take turns if blocks compute factors: one is read, one written, one cleared."""
HOMEOSTAT_NUMBERS = 6
"""Numbers of a class with a homeostat: keep, alpha, target, gain, least leak, most leak."""

Array = npt.NDArray[Any]
Members = npt.NDArray[np.uint32] | slice
Contents = Iterator[tuple[str, Array]]


@dataclass(frozen=True)
class FeatureSizes:
    """Numbers of classes, driver areas, modulators, values of the column ``rules``, plastic pairs, and list entries."""

    classes: int = 0
    drivers: int = 0
    modulators: int = 0
    rules: int = 0
    pairs: int = 0
    items: int = 0

    @property
    def lists(self) -> int:
        """Number of lists of modulators."""
        return 3 * self.classes + 2 * self.rules + 2 * self.pairs


def levels_of(network: Network, loaded: int) -> NeuronTable:
    """The neurons of ``network``; the precision clamps thresholds and limits of the first ``loaded``."""
    kept = clamped_levels(network)
    columns = {name: np.array(getattr(kept, name)) for name in ("thresholds", "threshold_limits")}
    for name, column in columns.items():
        column[loaded:] = getattr(network.neurons, name)[loaded:]
    return replace(kept, **columns)


NO_FEATURES = FeatureSizes()
"""Sizes of a network without features."""


@dataclass(frozen=True, eq=False)
class FeaturePlan:
    """Tables of a network with features, and its lists of modulators.

    Attributes
    ----------
    lists : Lists
        One after another: thresholds, leaks and excitabilities of each class, gains of each rule, gates of each rule,
        learning rates of each plastic pair, rewards of each plastic pair.
    trains, drives : bool (N,)
        Neurons whose firings start a spike train, and neurons of driver areas.
    loaded : int
        Neurons that were loaded; the others are twins.
    levels : NeuronTable
        See ``levels_of``.
    """

    features: Features
    tables: FeatureTables
    lists: Lists
    trains: npt.NDArray[np.bool_]
    drives: npt.NDArray[np.bool_]
    loaded: int
    levels: NeuronTable

    @classmethod
    def of(cls, network: Network, loaded: int) -> FeaturePlan:
        """The plan of ``network``, whose first ``loaded`` neurons were loaded."""
        tables = feature_tables(network)
        m = tables.modulators
        joined = (m.area_factors, m.gains, m.gates, m.learning_rates, m.rewards)
        lengths = np.concatenate([np.diff(one.starts) for one in joined])
        items = np.concatenate([one.items for one in joined])
        lists = Lists(np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint32), items.astype(np.uint32))
        trains, drives = can_train(network), tables.driver_of != 0
        return cls(network.features, tables, lists, trains, drives, loaded, levels_of(network, loaded))

    def taken(self, members: Members) -> FeaturePlan:
        """The plan of a shard with the neurons ``members``, ids ascending; driver areas stay those of the network."""
        if isinstance(members, slice):
            return self
        levels = {name: getattr(self.levels, name)[members] for name in NEURON_FIELDS}
        return replace(
            self,
            tables=self.tables._replace(classes=self.tables.classes[members]),
            trains=self.trains[members],
            drives=self.drives[members],
            loaded=int(np.searchsorted(members, self.loaded)),
            levels=NeuronTable.build(len(members), **levels),
        )

    @property
    def sizes(self) -> FeatureSizes:
        """Sizes of the tables."""
        m = self.tables.modulators
        return FeatureSizes(
            classes=len(self.tables.areas.alphas),
            drivers=m.driver_count,
            modulators=len(m.magnitudes),
            rules=len(m.gains.starts) - 1,
            pairs=len(m.rewarded),
            items=len(self.lists.items),
        )

    def constants(self) -> Contents:
        """Buffers that never change."""
        areas, m = self.tables.areas, self.tables.modulators
        numbers = (areas.keeps, areas.alphas, areas.targets, areas.gains, areas.leak_mins, areas.leak_maxs)
        yield "homeostats", np.stack(numbers, axis=1).ravel()
        yield "homeostat_periods", areas.update_every
        yield "base_leaks", self.levels.leak_coefficients
        yield "driver_of", self.tables.driver_of
        yield "magnitudes", m.magnitudes
        yield "full_scales", m.full_scales
        yield "modulator_drivers", m.drivers
        yield "list_starts", self.lists.starts
        yield "list_items", self.lists.items
        yield "rewarded", m.rewarded
        yield "largest_excitabilities", self.largest_excitabilities

    def kinds(self, in_train: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint32]:
        """Kinds of the neurons, (N,): class and bits; those that are ``in_train`` have this bit, too."""
        bits = self.trains * CAN_TRAIN | in_train * IN_TRAIN | self.drives * DRIVES
        return (self.tables.classes.astype(np.uint32) << np.uint32(CLASS_SHIFT)) | bits.astype(np.uint32)

    @property
    def largest_excitabilities(self) -> npt.NDArray[np.float32]:
        """Largest excitability of each class, (C,); infinite if one is negative, since scaling may turn the order."""
        own, found = self.levels.excitabilities, np.zeros(self.sizes.classes, np.float32)
        np.maximum.at(found, self.tables.classes, np.where(own < 0, np.float32(np.inf), own))
        return found

    def phases(self, burst: int, regulated: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
        """Phases of the classes in ``burst``, in the row for its parity; (2 C,)."""
        found = np.zeros((2, len(regulated)), np.uint64)
        phase = np.array([burst % int(period) for period in self.tables.areas.update_every], np.uint64)
        found[burst & 1] = phase | np.where(regulated, np.uint64(REGULATED), np.uint64(0))
        return found.ravel()

    def states(self, burst: int, regulated: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint8]:
        """Flags of the classes in ``burst``, in the row for its parity; (2 C,)."""
        areas, found = self.tables.areas, np.zeros((2, len(regulated)), np.uint8)
        due = np.array([burst % int(period) == 0 for period in areas.update_every], np.bool_)
        found[burst & 1] = areas.homeostatic * (HOMEOSTATIC + LEAKS * regulated + UPDATES * due)
        found[1 - (burst & 1)] = areas.homeostatic * HOMEOSTATIC
        return found.ravel()

    def factors(self, signals: npt.NDArray[np.float32], since_load: bool) -> Contents:
        """Buffers of the factors that follow from ``signals``, the same for bursts of both parities."""
        found = factors_of(self.tables.modulators, signals)
        areas = np.where(self.tables.areas.subscribes & since_load, found.areas, np.float32(np.nan))
        yield "signals", np.tile(signals, 2)
        yield "area_factors", np.tile(areas.ravel(), 2)
        yield "sleep_bounds", np.tile(self._bounds(areas[:, EXCITABILITY]), 2)
        yield "transmission", np.tile(found.transmission, 2)
        yield "learning", np.tile(found.learning, 2)
        yield "drives", np.full(DRIVE_ROWS * self.sizes.drivers, NOT_FIRED, np.uint64)

    def _bounds(self, factors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Bounds of the classes, (C,): a larger draw keeps every neuron silent; infinite if one may need no draw."""
        largest, one = self.largest_excitabilities, np.float32(1)
        scaled = ~np.isnan(factors) & (largest < np.inf)
        bounds = largest.copy()
        bounds[scaled] = np.clip(largest[scaled] * factors[scaled], np.float32(0), one)
        return np.where(bounds < CERTAIN, bounds, np.float32(np.inf))


def mode_columns(layout: Layout) -> Contents:
    """Constants of the plastic pairs, if some do more than steps of the weight."""
    assert layout.plastic is not None
    yield "rule_decays", layout.plastic.decays
    yield "etas", layout.plastic.etas
    yield "max_weights", layout.plastic.max_weights
    yield "frozen", layout.plastic.frozen
