"""Modulators, homeostats and their lists as tables: what changes by area or by rule, not by neuron or synapse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.network.features import AreaFeatures, Features, Homeostat, ModulatorKind
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import UNLIMITED_FIRES

Array = npt.NDArray[Any]

THRESHOLD, LEAK, EXCITABILITY = 0, 1, 2
"""Columns of the area factors."""

_AREA_KINDS = (ModulatorKind.FIRING_THRESHOLD, ModulatorKind.LEAK, ModulatorKind.FIRING_PROBABILITY)


def decay_of(bursts: float) -> np.float32:
    """exp(-1 / bursts): the float32 nearest to the exponential of the float32 quotient."""
    with np.errstate(divide="ignore", over="ignore"):
        quotient = np.float32(-1) / np.float32(bursts)
    return np.float32(math.exp(float(quotient)))


class AreaTable(NamedTuple):
    """One row for each area class, (C,) each; class 0 is an area that changes none of its neurons' parameters.

    ``alphas`` and ``keeps`` (1 - alpha) move the average; ``update_every`` counts bursts. ``subscribes`` (C, 3) bool
    says which parameters modulators scale.
    """

    homeostatic: Array
    alphas: Array
    keeps: Array
    targets: Array
    gains: Array
    leak_mins: Array
    leak_maxs: Array
    update_every: Array
    subscribes: Array


class Lists(NamedTuple):
    """Positions of modulators in lists: list i is ``items[starts[i]:starts[i + 1]]``."""

    starts: Array
    items: Array


class ModulatorTable(NamedTuple):
    """M modulators, and who lists them.

    Attributes
    ----------
    magnitudes : float32 (M,)
        magnitude_percent / 100.
    full_scales : float32 (M,)
        0 where the modulator is not graded.
    drivers : int64 (M,)
        Number of the driver area among the D that drive anything.
    driver_count : int
        D.
    area_factors : Lists
        3 lists a class: threshold, leak, excitability.
    gains, gates : Lists
        By value of the synapse column ``rules``.
    rewards, learning_rates : Lists
        By plastic pair.
    rewarded : bool (P,)
    """

    magnitudes: Array
    full_scales: Array
    drivers: Array
    driver_count: int
    area_factors: Lists
    gains: Lists
    gates: Lists
    rewards: Lists
    learning_rates: Lists
    rewarded: Array


class FeatureTables(NamedTuple):
    """What engines derive from a network's features.

    Attributes
    ----------
    classes : uint16 (N,)
        Area class of each neuron.
    driver_of : uint16 (N,)
        Number + 1 of the driver area that the neuron belongs to, 0 for none.
    areas : AreaTable
    modulators : ModulatorTable
    """

    classes: npt.NDArray[np.uint16]
    driver_of: npt.NDArray[np.uint16]
    areas: AreaTable
    modulators: ModulatorTable


def feature_tables(network: Network) -> FeatureTables:
    """The tables of ``network``."""
    features = network.features
    changing = {index: area for index, area in features.areas.items() if _changes(area, features)}
    rows = [AreaFeatures(), *changing.values()]
    drivers = sorted({one.driver for one in features.modulators})
    pairs = network.plastic_pairs
    modulators = ModulatorTable(
        np.array([np.float32(one.magnitude_percent) / np.float32(100) for one in features.modulators], np.float32),
        np.array([one.full_scale_potential or 0.0 for one in features.modulators], np.float32),
        np.array([drivers.index(one.driver) for one in features.modulators], np.int64),
        len(drivers),
        _lists([_of_kind(row.modulators, kind, features) for row in rows for kind in _AREA_KINDS]),
        _lists([(), *(rule.gains for rule in features.rules)]),
        _lists([(), *(rule.gates for rule in features.rules)]),
        _lists([pair.rewards for pair in pairs]),
        _lists([pair.learning_rates for pair in pairs]),
        np.array([pair.rewarded for pair in pairs], np.bool_),
    )
    return FeatureTables(
        _numbered(network, list(changing)), _numbered(network, drivers), _area_table(rows, features), modulators
    )


def can_train(network: Network) -> npt.NDArray[np.bool_]:
    """Neurons whose firings start a spike train (section 3)."""
    neurons = network.neurons
    areas = [index for index, area in network.features.areas.items() if area.spike_train]
    limits = neurons.consecutive_fire_limits
    finite = (limits != 0) & (limits != UNLIMITED_FIRES)
    able: npt.NDArray[np.bool_] = finite & neurons.valid_mask & np.isin(neurons.cortical_areas, areas)
    return able


def has_modes(pairs: Sequence[PlasticMapping]) -> bool:
    """Whether any of the plastic ``pairs`` does more than steps of the weight (FEATURES section 4)."""
    return any(
        pair.rewarded
        or pair.eligibility_decay > 0
        or pair.eta != 1.0
        or pair.max_weight is not None
        or pair.frozen
        or pair.learning_rates
        for pair in pairs
    )


def _changes(area: AreaFeatures, features: Features) -> bool:
    return area.homeostat is not None or any(_of_kind(area.modulators, kind, features) for kind in _AREA_KINDS)


def _of_kind(positions: Sequence[int], kind: ModulatorKind, features: Features) -> tuple[int, ...]:
    return tuple(position for position in positions if features.modulators[position].kind is kind)


def _numbered(network: Network, areas: Sequence[int]) -> npt.NDArray[np.uint16]:
    """Place + 1 in ``areas`` of each neuron's area, 0 where it is not among them."""
    own = network.neurons.cortical_areas
    found = np.zeros(network.neuron_count, np.uint16)
    for number, index in enumerate(areas, 1):
        found[own == index] = number
    return found


def _area_table(rows: Sequence[AreaFeatures], features: Features) -> AreaTable:
    homeostats = [row.homeostat for row in rows]
    decays = [decay_of(one.tau) if one else np.float32(1) for one in homeostats]
    alphas = np.float32(1) - np.array(decays, np.float32)

    def column(value: Callable[[Homeostat], float]) -> Array:
        return np.array([value(one) if one else 0.0 for one in homeostats], np.float32)

    return AreaTable(
        np.array([one is not None for one in homeostats], np.bool_),
        alphas,
        np.float32(1) - alphas,
        column(lambda one: one.target),
        column(lambda one: one.gain),
        column(lambda one: one.leak_min),
        column(lambda one: one.leak_max),
        np.array([one.update_every if one else 1 for one in homeostats], np.int64),
        np.array([[bool(_of_kind(row.modulators, kind, features)) for kind in _AREA_KINDS] for row in rows], np.bool_),
    )


def _lists(lists: Sequence[Sequence[int]]) -> Lists:
    starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])]).astype(np.int64)
    return Lists(starts, np.array([item for one in lists for item in one], np.int64))
