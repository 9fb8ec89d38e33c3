"""What a genome adds to leaky integrate-and-fire, as plain values: FEATURES.md sections 1 to 8, one value a feature.

Areas are named by cortical index, modulators and rules by their position in ``Features``. Numbers are those of the
genome; what an engine derives from them (alpha, steps, base values) is the engine's own matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType

FIRST_MEMORY_ID = 50_000_000
"""Id of the first memory neuron; ids ascend over all memory areas and are never used again."""

LONGEST_LIFESPAN = 2**32 - 1
"""Bursts at which the lifespan of a memory stops growing, which has 32 bits."""


class ModulatorKind(Enum):
    """What a modulator acts on: parameters of an area, the formation of memories, or the synapses of a rule."""

    FIRING_THRESHOLD = "neuro.firing_threshold"
    LEAK = "neuro.leak"
    FIRING_PROBABILITY = "neuro.firing_probability"
    MEMORY_FORMATION = "memory.formation"
    TRANSMISSION_GAIN = "synaptic.transmission_gain"
    GATE = "synaptic.gate"
    REWARD = "synaptic.reward"
    LEARNING_RATE = "synaptic.learning_rate"

    @property
    def synaptic(self) -> bool:
        """Whether it acts on the synapses of a rule."""
        return self.value.startswith("synaptic.")


@dataclass(frozen=True)
class Modulator:
    """One instance: its signal is magnitude / 100 times a strength that its driver's firing decides (section 2.1).

    Attributes
    ----------
    name : str
        Its id in the genome.
    kind : ModulatorKind
    driver : int
        Cortical index of the driver area; its first listed firing decides.
    magnitude_percent : float
        At least -100.
    full_scale_potential : float or None
        Potential of strength 1 where the modulator is graded; None: strength 1 whenever the driver fires.
    """

    name: str
    kind: ModulatorKind
    driver: int
    magnitude_percent: float
    full_scale_potential: float | None = None


@dataclass(frozen=True)
class Homeostat:
    """Rate-modulated leak of every neuron of an area (section 1).

    ``target`` firings per burst, ``tau`` bursts, ``gain``, bounds of the leak, and the bursts between two updates of
    the leak (at least 1).
    """

    target: float = 0.1
    tau: float = 50.0
    gain: float = 0.2
    leak_min: float = 0.02
    leak_max: float = 0.5
    update_every: int = 1


class MemoryChange(Enum):
    """What identifies a memory beside or instead of who fired (section 7.7)."""

    NONE = "none"
    DIFFERENTIAL = "mp_differential"
    RATIO = "mp_ratio"


@dataclass(frozen=True)
class MemoryArea:
    """A memory area (section 7).

    Attributes
    ----------
    upstream : tuple of int
        Areas with an ``episodic_memory`` rule into it, ascending.
    temporal_depth : int
        Bursts D of a pattern.
    init_lifespan, lifespan_growth, longterm_threshold : int
        Bursts.
    neuron_cap : int
        Most live neurons; 0: no cap.
    evicts : bool
        At the cap the least recently used neuron goes (``lru``); otherwise nothing is formed.
    mp_learning : bool
        Frames keep potentials, which replay adds to the sums.
    change : MemoryChange
    delta_quantization, ratio_quantization : float
    twins : Mapping of int to int
        Twin area of an upstream area, where a ``memory_replay`` rule makes them act.
    """

    upstream: tuple[int, ...] = ()
    temporal_depth: int = 1
    init_lifespan: int = 9
    lifespan_growth: int = 1
    longterm_threshold: int = 100
    neuron_cap: int = 0
    evicts: bool = True
    mp_learning: bool = False
    change: MemoryChange = MemoryChange.NONE
    delta_quantization: float = 1.0
    ratio_quantization: float = 20.0
    twins: Mapping[int, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True)
class AreaFeatures:
    """What one area adds: any of a homeostat, modulators (positions, in list order), spike trains, degeneration of
    psp per firing, memory. Twins take their parameters from the area's first dense neuron (section 7.5)."""

    homeostat: Homeostat | None = None
    modulators: tuple[int, ...] = ()
    spike_train: bool = False
    degeneration: float = 0.0
    memory: MemoryArea | None = None


@dataclass(frozen=True)
class RuleFeatures:
    """What the rule that made a synapse adds to its contribution: positions of gains and of gates (section 2.3)."""

    gains: tuple[int, ...] = ()
    gates: tuple[int, ...] = ()


@dataclass(frozen=True)
class AssociativeMapping:
    """An ``associative_memory`` rule from one area to another (section 8).

    ``plastic`` is the position of its parameters in the network's ``plastic_mappings``; new synapses get ``psp`` and
    are inhibitory where ``inhibitory`` says so. ``rule`` is what their synapse column ``rules`` would hold.
    """

    source: int
    target: int
    plastic: int
    psp: float = 1.0
    inhibitory: bool = False
    rule: int = 0


@dataclass(frozen=True)
class Features:
    """All that a genome adds to its network.

    Attributes
    ----------
    modulators : tuple of Modulator
    areas : Mapping of int to AreaFeatures
        By cortical index; an area that adds nothing is absent.
    rules : tuple of RuleFeatures
        The synapse column ``rules`` holds position + 1; 0 stands for a rule that adds nothing.
    associative : tuple of AssociativeMapping
    memory_order : tuple of int
        Memory areas in the order in which they hand out ids in one burst; ascending where it is empty.
    clamp_potentials : bool
        The precision ``feagi-int8``: potentials, thresholds and limits are clamped to 0...255 (section 6).
    """

    modulators: tuple[Modulator, ...] = ()
    areas: Mapping[int, AreaFeatures] = field(default_factory=lambda: MappingProxyType({}))
    rules: tuple[RuleFeatures, ...] = ()
    associative: tuple[AssociativeMapping, ...] = ()
    memory_order: tuple[int, ...] = ()
    clamp_potentials: bool = False

    def __bool__(self) -> bool:
        return self != NO_FEATURES


NO_FEATURES = Features()
"""A network of leaky integrate-and-fire neurons alone."""
