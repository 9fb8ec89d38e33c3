"""Where networks come from and where they go: files by their extension, a genome grown, a seed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burstproof.errors import InputError
from burstproof.network.grow.blueprint import STRICT, GenomePolicy
from burstproof.network.model import Network

if TYPE_CHECKING:
    from burstproof.engine.stimulation import Part
    from burstproof.network.synthetic.kinds import SeededNetwork

GrowthProgress = Callable[[int, int], None]
"""Called with (rules done, rules in all)."""


class Kind(Enum):
    """What a network comes from; the value is how it is called on the command line."""

    GENOME = "genome"
    CONNECTOME = "connectome"
    NETWORK = "network"
    SYNTHETIC = "synthetic"


EXTENSIONS = {
    ".json": Kind.GENOME,
    ".json.gz": Kind.GENOME,
    ".connectome": Kind.CONNECTOME,
    ".bpnet": Kind.NETWORK,
}
"""Kind of a file by its extension."""

WRITTEN = tuple(extension for extension, kind in EXTENSIONS.items() if kind is not Kind.GENOME)
"""Extensions of files that can be written: no genome can be had back from a network."""


def kind_of(path: Path, where: str, allowed: Iterable[str] = EXTENSIONS) -> Kind:
    """Kind of the file at ``path``; the error of another extension names those that are ``allowed``.

    Raises
    ------
    InputError
        Another extension.
    """
    name = path.name.lower()
    for extension, kind in EXTENSIONS.items():
        if name.endswith(extension):
            return kind
    raise InputError("unknown extension", where=where, got=str(path), allowed=", ".join(allowed))


def kind_to_write(path: Path, where: str) -> Kind:
    """Kind of the file that is to be written as ``path``.

    Raises
    ------
    InputError
        Another extension, or that of a genome, which cannot be had back from a grown network.
    """
    kind = kind_of(path, where, WRITTEN)
    if kind is Kind.GENOME:
        raise InputError(
            "a genome cannot be made from a network",
            where=where,
            got=str(path),
            allowed=", ".join(WRITTEN),
            cure="Keep the genome it was grown from",
        )
    return kind


@dataclass(frozen=True)
class Reading:
    """How a file becomes a network.

    ``seed`` and the two caps are for growing a genome (``None`` keeps growth's own cap); ``apply_flags`` takes the
    psp flags, plasticity and features from the genome inside a connectome, which are not applied otherwise; ``policy``
    says what to do with a genome that cannot be grown as it stands.
    """

    seed: int = 0
    max_neurons: int | None = None
    max_synapses: int | None = None
    apply_flags: bool = False
    policy: GenomePolicy = STRICT


@dataclass(frozen=True)
class Source:
    """What a network comes from: a file, or a specification.

    Attributes
    ----------
    name : str
        For people: the file's name, or the sizes of a synthetic network.
    kind : Kind
    path : Path
        The file, unless the network is synthetic.
    seeded : SeededNetwork or None
        What a synthetic network is made from.
    """

    name: str
    kind: Kind
    path: Path = Path()
    seeded: SeededNetwork | None = None

    @property
    def where(self) -> str:
        """Path of the file, or the sizes."""
        return str(self.path) if self.seeded is None else self.name

    @property
    def files(self) -> list[Path]:
        """The files that must not be written over."""
        return [self.path] if self.seeded is None else []

    def read(self, reading: Reading, progress: GrowthProgress | None = None) -> Network:
        """The network; a genome is grown."""
        if self.kind is Kind.CONNECTOME:
            from burstproof.network.files.connectome import read_connectome

            return read_connectome(self.path, apply_flags=reading.apply_flags).network
        if self.kind is Kind.NETWORK:
            from burstproof.network.files.bpnet import load_network

            return load_network(self.path)
        if self.seeded is not None:
            return self.seeded.network()
        from burstproof.network.grow import growth
        from burstproof.network.grow.genome import read_genome

        return growth.grow(
            read_genome(self.path, reading.policy),
            reading.seed,
            progress,
            max_neurons=growth.DEFAULT_MAX_NEURONS if reading.max_neurons is None else reading.max_neurons,
            max_synapses=growth.DEFAULT_MAX_SYNAPSES if reading.max_synapses is None else reading.max_synapses,
        )

    def start(self) -> tuple[Part, ...]:
        """Stimulus that sets the network going, for its first bursts; none for a file."""
        if self.seeded is None:
            return ()
        from burstproof.engine.stimulation import Part

        return tuple(Part(range(burst, burst + 1), ids, None) for burst, ids in self.seeded.start().items())


def synthetic_source(
    neurons: int,
    synapses_per_neuron: int | None = None,
    rate: float | None = None,
    seed: int = 0,
    kind: str = "uniform",
) -> Source:
    """A synthetic network that keeps firing by itself: ``rate`` (1 %) of its neurons a burst, 100 synapses each.

    Raises
    ------
    NetworkError
        No such kind, sizes that are out of range, or between which the rate cannot be held.
    """
    from burstproof.network.synthetic.kinds import UNIFORM, seeded_network

    made = seeded_network(kind, neurons, synapses_per_neuron, rate, seed)
    fan, fraction = made.spec.synapses_per_neuron, made.spec.initial_firing
    name = f"{neurons} x {fan} synapses, rate {fraction:g}, seed {seed}"
    return Source(name if kind == UNIFORM else f"{kind}, {name}", Kind.SYNTHETIC, seeded=made)


def write_network(path: Path, kind: Kind, network: Network) -> None:
    """Write ``network`` as a file of ``kind``, see ``kind_to_write``, replaced in one step."""
    if kind is Kind.CONNECTOME:
        from burstproof.network.files.connectome import write_connectome

        write_connectome(path, network)
    else:
        from burstproof.engine.fixed_point import plan_fixed_point
        from burstproof.engine.options import EngineOptions
        from burstproof.network.files.bpnet import save_network

        save_network(path, network.replace(fixed_point=plan_fixed_point(network, EngineOptions())))


def load(path: str | os.PathLike[str], *, apply_flags: bool = False) -> Network:
    """Read a network: a genome, which is grown with seed 0, a connectome or a network file.

    Parameters
    ----------
    path : path
        ``.json`` or ``.json.gz`` (genome), ``.connectome``, or ``.bpnet``, whose columns are mapped, not read.
    apply_flags : bool
        Take psp flags, plastic mappings and features from the genome inside a connectome, which the real engine does
        not apply.

    Raises
    ------
    InputError
        Another extension, or a file that cannot be read, is damaged or cannot be grown.
    """
    file = Path(path)
    return Source(file.name, kind_of(file, "path"), file).read(Reading(apply_flags=apply_flags))


def grow(
    path: str | os.PathLike[str],
    seed: int = 0,
    *,
    ignore_unmodelled: bool = False,
    as_the_engine: bool = False,
    max_neurons: int | None = None,
    max_synapses: int | None = None,
) -> Network:
    """Grow the network of a genome file.

    Parameters
    ----------
    path : path
        ``.json`` or ``.json.gz``.
    seed : int
        Decides which synapses of a rule with an attractivity below 100 exist.
    ignore_unmodelled, as_the_engine : bool
        As the options of ``burstproof run``: read past keys that are not modelled; stop where the engine fails.
    max_neurons, max_synapses : int, optional
        Caps, checked before anything is allocated; by default 20 million and 100 million.

    Raises
    ------
    GenomeError
        A genome that cannot be read or grown.
    InputError
        No genome by its extension, or a seed out of range.
    """
    file = Path(path)
    kind = kind_of(file, "path")
    if kind is not Kind.GENOME:
        raise InputError(f"a {kind.value} is not grown", where="path", got=str(file), cure="Read it with load")
    policy = GenomePolicy(ignore_unmodelled, as_the_engine)
    return Source(file.name, kind, file).read(Reading(seed, max_neurons, max_synapses, policy=policy))


def save(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network, replaced in one step.

    Parameters
    ----------
    network : Network
    path : path
        ``.bpnet``, which holds everything, or ``.connectome``, which does not hold plastic mappings, features, flags
        and names of areas, and the notes of growth.

    Raises
    ------
    InputError
        Another extension, or something else than a network.
    NetworkFileError
        The file cannot be written, or cannot hold a value.
    """
    if not isinstance(network, Network):
        raise InputError("not a network", where="network", got=network, cure="Pass a bp.Network")
    file = Path(path)
    write_network(file, kind_to_write(file, "path"), network)


def synthetic(neurons: int, synapses_per_neuron: int, seed: int = 0, **laws: Any) -> Network:
    """Make a network from a seed; the same on every machine.

    Parameters
    ----------
    neurons, synapses_per_neuron : int
    seed : int
        0...2^32 - 1.
    **laws
        Fields of ``burstproof.network.synthetic.spec.SyntheticSpec``, where they are described: ``connectivity``,
        ``weights``, ``delays``, ``inhibitory_fraction``, ``threshold``, ``leak``, ``refractory_period``, ...

    Raises
    ------
    NetworkError
        A law that does not exist, or a value out of range.
    """
    from dataclasses import fields

    from burstproof.errors import NetworkError
    from burstproof.network.synthetic.build import synthesize
    from burstproof.network.synthetic.spec import SyntheticSpec

    known = [item.name for item in fields(SyntheticSpec)]
    unknown = sorted(set(laws) - set(known))
    if unknown:
        raise NetworkError("a synthetic network has no such law", got=unknown, allowed=", ".join(known))
    return synthesize(SyntheticSpec(neurons, synapses_per_neuron, seed, **laws))
