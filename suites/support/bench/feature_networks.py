"""Networks with features, for the rows of stage 6: all that change neurons on one network, and memories beside one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from burstproof.network.features import AreaFeatures, Features, Homeostat, Modulator, ModulatorKind
from burstproof.network.model import FIRST_OWN_AREA_INDEX, Network

AREAS = 8
_KINDS = (ModulatorKind.FIRING_THRESHOLD, ModulatorKind.LEAK, ModulatorKind.FIRING_PROBABILITY)
_MAGNITUDES = 5.0, -10.0, 5.0
_DRIVER_LIMIT, _DRIVER_SNOOZE = 3, 4
TRAINED = 0.106
"""What the excitability is multiplied with where a firing starts a train, so that as many neurons fire; found by
running 100 K neurons."""


def with_every_feature(network: Network, excitability: float = TRAINED) -> Network:
    """``network`` in ``AREAS`` areas: a homeostat, a modulator of each kind, and spike trains for every neuron.

    The last three neurons are areas of their own, which drive the modulators in short trains of firings.
    """
    table, count = network.neurons, network.neuron_count
    drivers = np.arange(count - len(_KINDS), count)
    areas = FIRST_OWN_AREA_INDEX + np.arange(count, dtype=np.int64) * AREAS // count
    areas[drivers] = FIRST_OWN_AREA_INDEX + AREAS + np.arange(len(_KINDS))
    columns = {
        "thresholds": np.float32(1),
        "refractory_periods": 0,
        "consecutive_fire_limits": _DRIVER_LIMIT,
        "snooze_periods": _DRIVER_SNOOZE,
        "excitabilities": 1,
    }
    changed = {name: np.array(getattr(table, name)) for name in columns}
    changed["excitabilities"] *= np.float32(excitability)
    for name, value in columns.items():
        changed[name][drivers] = value
    neurons = replace(table, cortical_areas=areas.astype(table.cortical_areas.dtype), **changed)
    modulators = tuple(
        Modulator(kind.value, kind, int(areas[driver]), magnitude)
        for kind, driver, magnitude in zip(_KINDS, drivers, _MAGNITUDES, strict=True)
    )
    every = AreaFeatures(Homeostat(target=0.01, leak_min=0.05), tuple(range(len(_KINDS))), spike_train=True)
    features = Features(modulators, {int(one): every for one in np.unique(areas)})
    return network.replace(neurons=neurons, features=features)
