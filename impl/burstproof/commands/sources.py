"""The files that hold networks: which kind a file is, by its ending, and how each is read and written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from burstproof.commands.progress import task
from burstproof.errors import InputError
from burstproof.network.blueprint import STRICT, GenomePolicy
from burstproof.network.model import Network


class Kind(Enum):
    """What a file holds; the value is how it is called on the command line."""

    GENOME = "genome"
    CONNECTOME = "connectome"
    NETWORK = "network"


ENDINGS = {
    ".json": Kind.GENOME,
    ".json.gz": Kind.GENOME,
    ".connectome": Kind.CONNECTOME,
    ".bpnet": Kind.NETWORK,
}
"""Kind of a file by the ending of its name."""


def kind_of(path: Path, where: str) -> Kind:
    """Kind of the file at ``path``.

    Raises
    ------
    InputError
        Another ending.
    """
    name = path.name.lower()
    for ending, kind in ENDINGS.items():
        if name.endswith(ending):
            return kind
    raise InputError("unknown ending", where=where, got=str(path), allowed=", ".join(ENDINGS))


def check_input(path: Path, where: str) -> None:
    """Refuse an input that is no readable file.

    Raises
    ------
    InputError
        The file does not exist, is a folder or cannot be opened.
    """
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", where=where, got=str(path), cure="Check the path"
        ) from None


@dataclass(frozen=True)
class Reading:
    """How a file becomes a network.

    ``seed`` and the two caps are for growing a genome (``None`` keeps growth's own cap); ``apply_flags`` takes the
    psp flags from the genome inside a connectome, which are not applied otherwise (SEMANTICS section 1b); ``policy``
    says what to do with a genome that cannot be grown as it stands; ``bars`` allows progress bars.
    """

    seed: int = 0
    max_neurons: int | None = None
    max_synapses: int | None = None
    apply_flags: bool = False
    policy: GenomePolicy = STRICT
    bars: bool = True


def read_network(path: Path, kind: Kind, reading: Reading) -> Network:
    """The network in a file; a genome is grown."""
    if kind is Kind.GENOME:
        return _grow(path, reading)
    with task(f"reading {path.name}", shown=reading.bars):
        if kind is Kind.CONNECTOME:
            from burstproof.network.connectome import read_connectome

            return read_connectome(path, apply_flags=reading.apply_flags).network
        from burstproof.network.storage import load_network

        return load_network(path)


def _grow(path: Path, reading: Reading) -> Network:
    """The network grown from a genome file."""
    from burstproof.network.genome import read_genome
    from burstproof.network.growth import DEFAULT_MAX_NEURONS, DEFAULT_MAX_SYNAPSES, grow

    with task(f"growing {path.name}", shown=reading.bars) as bar:
        return grow(
            read_genome(path, reading.policy),
            reading.seed,
            bar.reach,
            max_neurons=DEFAULT_MAX_NEURONS if reading.max_neurons is None else reading.max_neurons,
            max_synapses=DEFAULT_MAX_SYNAPSES if reading.max_synapses is None else reading.max_synapses,
        )


def write_network(path: Path, kind: Kind, network: Network, *, bars: bool = True) -> None:
    """Write ``network`` as a connectome or a network file, replaced in one step.

    Raises
    ------
    InputError
        ``kind`` is a genome, which cannot be had back from a grown network.
    """
    with task(f"writing {path.name}", shown=bars):
        if kind is Kind.CONNECTOME:
            from burstproof.network.connectome import write_connectome

            write_connectome(path, network)
        elif kind is Kind.NETWORK:
            from burstproof.burst.engine import EngineOptions
            from burstproof.burst.fixed_point import plan_fixed_point
            from burstproof.network.storage import save_network

            save_network(path, network.replace(fixed_point=plan_fixed_point(network, EngineOptions())))
        else:
            raise InputError(
                "a genome cannot be made from a network",
                got=str(path),
                allowed=".connectome, .bpnet",
                cure="Keep the genome it was grown from",
            )
