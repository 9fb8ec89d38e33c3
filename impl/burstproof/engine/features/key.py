"""Which features kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.engine.features.synapses import degeneration, transmitting
from burstproof.engine.features.tables import feature_tables, has_modes
from burstproof.network.model import Network


@dataclass(frozen=True)
class ExtrasKey:
    """Which features the kernels are compiled for; the names are those of FEATURES.md's sections."""

    trains: bool = False
    homeostats: bool = False
    area_modulators: bool = False
    modulators: bool = False
    transmits: bool = False
    degenerates: bool = False
    modes: bool = False

    def __bool__(self) -> bool:
        return self != NO_KEY

    @property
    def adapts(self) -> bool:
        """Whether parameters of neurons change from burst to burst."""
        return self.homeostats or self.area_modulators

    @property
    def by_neuron(self) -> bool:
        """Whether the neurons of a burst have more to do than without features."""
        return self.trains or self.adapts or self.modulators

    def general(self) -> ExtrasKey:
        """The key of kernels that serve every network: everything, or nothing."""
        return ExtrasKey(True, True, True, True, True, True, True) if self else self


NO_KEY = ExtrasKey()


def extras_key(network: Network) -> ExtrasKey:
    """What of the features ``network`` uses."""
    if not network.features:
        return ExtrasKey(modes=has_modes(network.plastic_pairs))
    tables = feature_tables(network)
    return ExtrasKey(
        trains=any(area.spike_train for area in network.features.areas.values()),
        homeostats=bool(tables.areas.homeostatic.any()),
        area_modulators=bool(tables.areas.subscribes.any()),
        modulators=bool(network.features.modulators),
        transmits=transmitting(network) is not None,
        degenerates=degeneration(network) is not None,
        modes=has_modes(network.plastic_pairs),
    )
