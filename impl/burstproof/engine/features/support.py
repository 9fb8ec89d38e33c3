"""Refusing, by name, the features that an engine does not model."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from burstproof.engine.features.tables import has_modes
from burstproof.engine.options import EngineOptions
from burstproof.errors import NetworkError, UnmodelledError
from burstproof.network.model import Network


class Section(Enum):
    """Sections of FEATURES.md; the value is what a refusal calls them."""

    HOMEOSTAT = "homeostatic leak"
    MODULATORS = "modulators"
    TRAINS = "spike trains"
    PLASTICITY = "reward-modulated, bounded or frozen plasticity"
    DEGENERATION = "degeneration of psp"
    INT8 = "the precision feagi-int8"
    MEMORY = "memory areas"
    ASSOCIATIONS = "associative mappings"


NOTHING: frozenset[Section] = frozenset()
EVERYTHING = frozenset(Section)
ONE_BURST = frozenset(Section) - {Section.MEMORY, Section.ASSOCIATIONS}
"""Sections 1 to 6: neurons and synapses stay as many as they are."""

MODELLED: Mapping[str, frozenset[Section]] = {
    "reference": frozenset(Section),
    "cpu": frozenset(Section),
    "cuda": EVERYTHING,
    "wgpu": ONE_BURST,
}
"""What each backend models, on one device or over shards."""


def sections_of(network: Network) -> list[Section]:
    """The sections that ``network`` needs."""
    features = network.features
    areas = features.areas.values()
    needed = {
        Section.HOMEOSTAT: any(area.homeostat is not None for area in areas),
        Section.MODULATORS: bool(features.modulators),
        Section.TRAINS: any(area.spike_train for area in areas),
        Section.PLASTICITY: has_modes(network.plastic_mappings),
        Section.DEGENERATION: any(area.degeneration > 0 for area in areas),
        Section.INT8: features.clamp_potentials,
        Section.MEMORY: any(area.memory is not None for area in areas),
        Section.ASSOCIATIONS: bool(features.associative),
    }
    return [section for section, wanted in needed.items() if wanted]


def refuse_features(network: Network, options: EngineOptions, modelled: frozenset[Section]) -> None:
    """Refuse what of the features of ``network`` an engine has not ``modelled``; they belong to feagi-2.6 alone.

    Raises
    ------
    UnmodelledError
        Names the features.
    NetworkError
        Features under a profile that knows none.
    """
    wanted = sections_of(network)
    missing = [section.value for section in wanted if section not in modelled]
    if missing:
        raise UnmodelledError(
            "features that this engine does not model",
            where="network.features",
            got=", ".join(missing),
            allowed=", ".join(section.value for section in Section if section in modelled) or "none",
            cure="Take the backend cpu, cuda or reference",
        )
    if wanted and options.profile.byte_synapses:
        raise NetworkError(
            f"features of a genome under the profile {options.profile.name}",
            where="network.features",
            got=", ".join(section.value for section in wanted),
            cure="Take the profile feagi-2.6",
        )
