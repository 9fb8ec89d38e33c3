"""Read and write the engine's own binary, the ``.connectome`` file (requirement BE-2)."""

from __future__ import annotations

import dataclasses
import os
import struct
from pathlib import Path
from typing import Any

import numpy.typing as npt

from burstproof.errors import ConnectomeError, GenomeError
from burstproof.network.files.atomic import atomic_write
from burstproof.network.files.connectome_format import (
    Container,
    check_manifest,
    pack_container,
    unpack_container,
)
from burstproof.network.files.connectome_index import build_index, index_length
from burstproof.network.files.connectome_parse import parse_payload
from burstproof.network.files.connectome_value import (
    NEURON_ORDER,
    SCHEMA_VERSION,
    SYNAPSE_EXTRAS,
    SYNAPSE_ORDER,
    Connectome,
    Metadata,
    connectome_losses,
)
from burstproof.network.model import Network

__all__ = ["Connectome", "Metadata", "connectome_losses", "read_connectome", "write_connectome"]


def read_connectome(path: str | os.PathLike[str], apply_flags: bool = False) -> Connectome:
    """Read a ``.connectome`` file, container version 3.

    Parameters
    ----------
    path : path-like
        The file.
    apply_flags : bool
        Give the areas the names, dimensions and psp flags of the embedded genome. Without it no flag is registered
        and nothing is divided, which is what the engine does after importing a connectome alone. Keys of that genome
        that act and are not modelled are no error, since nothing is grown: ``provenance["unmodelled"]`` lists them.

    Returns
    -------
    Connectome
        ``network`` holds the tables exactly as stored.

    Raises
    ------
    ConnectomeError
        The file cannot be read, is damaged, cut short, of another version or contradicts itself, or ``apply_flags``
        finds no readable genome. The message names file, field or byte, value and cure.

    Notes
    -----
    Allocates at most a small multiple of 255 bytes per byte of the file (the largest ratio of LZ4).
    Source: golden/README.md, ".connectome container, version 3".
    """
    file = Path(path)
    try:
        if not file.is_file():
            raise ConnectomeError("no such file", where=str(file), cure="Give the path of a .connectome file")
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        raise ConnectomeError(
            f"cannot be read: {error}", where=str(file), cure="Check the path and its permissions"
        ) from error
    container = unpack_container(data, str(file))
    connectome = parse_payload(container, str(file))
    return _with_flags(connectome, str(file)) if apply_flags else connectome


def _with_flags(connectome: Connectome, name: str) -> Connectome:
    """The areas as the embedded genome describes them; areas that it does not name stay as they are."""
    from burstproof.network.grow.blueprint import GenomePolicy
    from burstproof.network.grow.genome import parse_genome

    if connectome.genome is None:
        raise ConnectomeError(
            "flags were asked for, but the file embeds no genome", where=name, cure="Read it without apply_flags"
        )
    place = f"{name}: embedded genome"
    tables_win = GenomePolicy(ignore_unmodelled=True, as_the_engine=True)
    try:
        genome = parse_genome(connectome.genome.encode("utf-8"), place, tables_win)
    except GenomeError as error:
        raise ConnectomeError(
            f"the embedded genome cannot be used: {error.problem}",
            where=error.where or place,
            got=error.got,
            allowed=error.allowed,
            cure="Read it without apply_flags, or save it again with the engine",
        ) from error
    known = {area.cortical_id: area for area in genome.areas}
    areas = []
    for area in connectome.network.areas:
        spec = known.get(area.cortical_id)
        if spec is not None:
            area = dataclasses.replace(
                area,
                name=spec.name,
                dimensions=spec.dimensions,
                neurons_per_voxel=spec.neurons_per_voxel,
                psp_uniform_distribution=spec.psp_uniform_distribution,
                mp_driven_psp=spec.mp_driven_psp,
            )
        areas.append(area)
    network = connectome.network
    ignored = {key: text for key, text in genome.notes.items() if key == "unmodelled"}
    network = network.replace(areas=tuple(areas), provenance={**network.provenance, **ignored})
    return dataclasses.replace(connectome, network=network)


def write_connectome(path: str | os.PathLike[str], connectome: Connectome | Network) -> None:
    """Write a ``.connectome`` file, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        Takes the file; a file that is there is replaced.
    connectome : Connectome or Network
        A network is written as ``Connectome.of(network)``; ``connectome_losses`` says what that leaves out.

    Raises
    ------
    ConnectomeError
        A value that the format cannot hold or that the reader would refuse, an index map that does not fit the
        synapse table, or a path that cannot be written.
    """
    if isinstance(connectome, Network):
        connectome = Connectome.of(connectome)
    name = os.fspath(path)
    check_manifest(connectome.manifest, name)
    try:
        payload = b"".join(_payload_parts(connectome, name))
        container = Container(connectome.manifest, payload, connectome.compressed)
        head, stored = pack_container(container)
    except (struct.error, OverflowError, UnicodeEncodeError) as error:
        raise ConnectomeError(
            f"the network holds a value that the format cannot: {error}",
            where=name,
            allowed="unsigned counts of 64 bits, area indices of 32 bits, texts that have a UTF-8 form",
            cure="Correct the value or save a network file instead",
        ) from error
    parse_payload(container, name)
    try:
        with atomic_write(path) as stream:
            stream.write(head)
            stream.write(stored)
    except OSError as error:
        raise ConnectomeError(
            f"cannot be written: {error}", where=name, cure="Check folder, permissions and free space"
        ) from error


def _vector(values: npt.NDArray[Any]) -> bytes:
    stored = values.dtype.newbyteorder("<")
    return struct.pack("<Q", values.size) + values.astype(stored, copy=False).tobytes()


def _text(text: str) -> bytes:
    raw = text.encode("utf-8")
    return struct.pack("<Q", len(raw)) + raw


def _payload_parts(connectome: Connectome, name: str) -> list[bytes]:
    network = connectome.network
    neurons, synapses, metadata = network.neurons, network.synapses, connectome.metadata
    index_map = connectome.index_map if connectome.index_map is not None else build_index(network)
    length, problem = index_length(index_map, synapses.source_neurons)
    if problem is not None or length != len(index_map):
        raise ConnectomeError(
            problem or "the synapse index has bytes behind its end",
            where=f"{name}: index_map",
            cure="Replace index_map by None together with the network, so that it is built anew",
        )
    parts = [struct.pack("<IQQ", SCHEMA_VERSION, len(neurons), connectome.neuron_capacity)]
    parts += [_vector(getattr(neurons, column)) for column in NEURON_ORDER]
    parts += [struct.pack("<QQ", connectome.synapse_count, connectome.synapse_capacity)]
    parts += [_vector(getattr(synapses, column)) for column in SYNAPSE_ORDER]
    parts += [index_map]
    parts += [_vector(getattr(synapses, column)) for column in SYNAPSE_EXTRAS]
    parts += [struct.pack("<Q", len(network.areas))]
    parts += [struct.pack("<I", area.index) + _text(area.cortical_id) for area in network.areas]
    parts += [struct.pack("<QfQ", network.burst_count, network.power_amount, connectome.fire_ledger_window)]
    parts += [struct.pack("<Q", metadata.timestamp), _text(metadata.description), _text(metadata.source)]
    parts += [struct.pack("<Q", len(metadata.tags))]
    parts += [_text(key) + _text(value) for key, value in metadata.tags]
    parts += [struct.pack("<IB", connectome.persist_mode, connectome.genome is not None)]
    parts += [_text(connectome.genome)] if connectome.genome is not None else []
    return [*parts, connectome.private_sections]
