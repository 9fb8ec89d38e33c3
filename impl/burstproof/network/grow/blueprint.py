"""The parsed form of a genome: areas, mappings and rules, the same for every genome format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from burstproof.errors import GenomeError
from burstproof.network.cortical_ids import readable_id
from burstproof.network.features import Homeostat, MemoryArea, ModulatorKind
from burstproof.network.grow.fields import readable
from burstproof.network.grow.morphology import Morphology, WiringRule, resolve

CORE_AREAS = ("___death", "___power", "___fatig", "___pain_", "___pleas", "___fear_", "___hope_")
"""Ids of the areas that every network has; the position is the cortical index."""


@dataclass(frozen=True)
class GenomePolicy:
    """What a reader is told about genomes that burstproof cannot grow as they stand.

    Attributes
    ----------
    ignore_unmodelled : bool
        Read past keys that the released engine acts on and that are not modelled (FEATURES section 13). The network
        says so in ``provenance["unmodelled"]``.
    as_the_engine : bool
        A rule at which the released engine fails (FEATURES section 4) makes no synapses and ends the growth of its
        source area, as there. The network says so in ``provenance["as_the_engine"]``.

    Without them each of the two is an error.
    """

    ignore_unmodelled: bool = False
    as_the_engine: bool = False


STRICT = GenomePolicy()
"""Nothing is left out: what a reader does unless told otherwise."""


@dataclass(frozen=True)
class RuleSpec:
    """One rule of a mapping, as the genome states it.

    Attributes
    ----------
    morphology : str
        Name of the morphology.
    multiplier : float
        Weight and, by its sign, type of the synapses.
    delay_bursts : int
        Delay in bursts; above 255 counts as 1.
    attractivity : float
        Probability of each synapse in percent; 100 and more keeps all.
    plastic : bool
        Whether the rule makes all synapses of its pair of areas learn; ``window`` (bursts), ``constant`` and the
        multipliers say how, as the genome states them.
    mode : str
        ``stdp``, ``rstdp`` or ``off``; ``eligibility_decay`` (bursts), ``eta``, ``max_weight`` and ``frozen`` belong
        to it (FEATURES section 4).
    modulators : tuple of str
        Ids of modulators as the genome lists them; those that are unknown or of another kind do nothing.
    old_sources : tuple of (str, str)
        Keys ``reward_source_area``, ``punishment_source_area`` and ``gate_source_area`` that the schema version
        migrates, with their areas (base64).
    failure : str
        Why the released engine fails at the rule; empty if it does not. No rule of a ``Genome`` has one.
    place : str
        File and place of the rule, for messages.
    """

    morphology: str
    multiplier: float = 1.0
    delay_bursts: int = 1
    attractivity: float = 100.0
    plastic: bool = False
    window: int = 1
    constant: float = 1.0
    ltp_multiplier: float = 1.0
    ltd_multiplier: float = 1.0
    mode: str = "stdp"
    eligibility_decay: int = 0
    eta: float = 1.0
    max_weight: float | None = None
    frozen: bool = False
    modulators: tuple[str, ...] = ()
    old_sources: tuple[tuple[str, str], ...] = ()
    failure: str = ""
    place: str = ""


def wiring_rule(rule: RuleSpec, defined: Mapping[str, Morphology]) -> WiringRule:
    """What connects the voxels of ``rule``; ``defined`` are the genome's morphologies.

    Raises
    ------
    GenomeError
        Nothing explains the morphology's name.
    """
    found = resolve(rule.morphology, defined)
    if found is None:
        raise GenomeError(
            "unknown morphology",
            where=rule.place,
            got=readable(rule.morphology),
            allowed="a name under neuron_morphologies or a core morphology",
            cure="Correct the name or define the morphology",
        )
    return found


@dataclass(frozen=True)
class MappingSpec:
    """The rules from one area to the area ``target`` (base64 id), in the order in which they apply.

    ``key`` is the id of the target as the genome writes it.
    """

    target: str
    rules: tuple[RuleSpec, ...]
    key: str = ""


@dataclass(frozen=True)
class AreaFeatureSpec:
    """What an area adds to leaky integrate-and-fire; keys that do not act have their defaults (FEATURES section 13).

    Attributes
    ----------
    homeostat, spike_train, degeneration
        As in ``features.AreaFeatures``.
    modulators : tuple of str
        Ids as the genome lists them; those that are unknown or of another kind do nothing.
    memory : MemoryArea or None
        Parameters of a memory area; its upstream areas and twins follow from rules.
    twins : tuple of (str, str)
        Upstream area and its twin (base64), as a memory area states them.
    twin_of : str
        Upstream area (base64), as a twin area states it.
    """

    homeostat: Homeostat | None = None
    modulators: tuple[str, ...] = ()
    spike_train: bool = False
    degeneration: float = 0.0
    memory: MemoryArea | None = None
    twins: tuple[tuple[str, str], ...] = ()
    twin_of: str = ""


@dataclass(frozen=True)
class AreaSpec:
    """A cortical area as the genome states it; growth translates the values into neuron fields.

    Attributes
    ----------
    cortical_id : str
        base64 of the 8 id bytes.
    dimensions : tuple of int
        Width, height, depth in voxels.
    threshold_increments : tuple of float
        Change of the threshold per voxel along x, y, z.
    features : AreaFeatureSpec
        What the area adds to leaky integrate-and-fire.
    place : str
        File and place of the area, for messages.

    Notes
    -----
    The defaults are those of an area that states nothing about its neurons.
    Source: golden/growth/RULES.md, "Areas and neurons".
    """

    cortical_id: str
    name: str = ""
    dimensions: tuple[int, int, int] = (1, 1, 1)
    neurons_per_voxel: int = 1
    firing_threshold: float = 1.0
    threshold_increments: tuple[float, float, float] = (0.0, 0.0, 0.0)
    threshold_limit: float = 0.0
    leak_coefficient: float = 0.0
    refractory_period: int = 0
    consecutive_fire_limit: int = 0
    snooze_length: int = 0
    excitability: float = 1.0
    mp_charge_accumulation: bool = False
    postsynaptic_current: float = 1.0
    psp_uniform_distribution: bool = False
    mp_driven_psp: bool = False
    mappings: tuple[MappingSpec, ...] = ()
    features: AreaFeatureSpec = AreaFeatureSpec()
    place: str = ""

    @property
    def voxel_count(self) -> int:
        """Number of voxels."""
        width, height, depth = self.dimensions
        return width * height * depth

    @property
    def neuron_count(self) -> int:
        """Number of neurons."""
        return self.voxel_count * self.neurons_per_voxel


def label(area: AreaSpec) -> str:
    """How messages call an area: its id, and its name where that says more."""
    own = readable_id(area.cortical_id)
    name = area.name if area.name.isprintable() else ascii(area.name)[1:-1]
    return own if name in ("", own) else f"{own} ({name[:40]})"


@dataclass(frozen=True)
class ModulatorSpec:
    """A modulator instance of the genome; ``driver`` is the base64 id of its driver area, the rest as in
    ``features.Modulator``."""

    name: str
    kind: ModulatorKind
    driver: str
    magnitude_percent: float
    full_scale_potential: float | None = None


@dataclass(frozen=True)
class Genome:
    """A genome read and checked: every rule names a known morphology and an area that exists.

    Attributes
    ----------
    areas : tuple of AreaSpec
        In order of cortical index: the seven core areas, then the areas in the order of the file, then the driver
        areas that migration adds.
    modulators : tuple of ModulatorSpec
        In the order of the file, then those that migration adds.
    morphologies : Mapping
        Name to definition, as the file gives them; ``morphology.resolve`` adds the core ones.
    physiology : Mapping
        The scalar entries of the file's ``physiology``.
    sha256 : str
        Of the file's bytes as stored.
    ignored_blueprint_keys : int
        Keys of the blueprint that no known format explains; they made no area.
    schema : int
        Schema version 2...7, stated or taken from ``version``.
    notes : Mapping
        What is to be said of a network grown from it, one line each: ``unmodelled`` keys that were ignored,
        ``as_the_engine`` rules at which growth ended, ``skipped_areas``, keys that were ``not_examined``.
    """

    title: str
    version: str
    areas: tuple[AreaSpec, ...]
    modulators: tuple[ModulatorSpec, ...] = ()
    morphologies: Mapping[str, Morphology] = field(default_factory=lambda: MappingProxyType({}))
    physiology: Mapping[str, int | float | str | bool] = field(default_factory=lambda: MappingProxyType({}))
    path: Path = Path()
    sha256: str = ""
    ignored_blueprint_keys: int = 0
    schema: int = 7
    notes: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
