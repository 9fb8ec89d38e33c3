"""The files that hold networks, for the command: checked before the work begins, read and written under a bar."""

from __future__ import annotations

from pathlib import Path

from burstproof import sources
from burstproof.cli.progress import task
from burstproof.errors import InputError
from burstproof.network.model import Network
from burstproof.sources import Kind, Reading


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


def read_network(path: Path, kind: Kind, reading: Reading, *, bars: bool = True) -> Network:
    """The network in a file; a genome is grown. ``bars`` allows a progress bar."""
    verb = "growing" if kind is Kind.GENOME else "reading"
    with task(f"{verb} {path.name}", shown=bars) as bar:
        return sources.read_network(path, kind, reading, bar.reach)


def write_network(path: Path, kind: Kind, network: Network, *, bars: bool = True) -> None:
    """Write ``network`` as a connectome or a network file, replaced in one step."""
    with task(f"writing {path.name}", shown=bars):
        sources.write_network(path, kind, network)
