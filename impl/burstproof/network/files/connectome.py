"""Read and write the engine's own binary, the ``.connectome`` file (requirement BE-2)."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import ConnectomeError, GenomeError, NetworkError
from burstproof.network.files.atomic import atomic_write, refused_write
from burstproof.network.files.connectome_format import (
    CONTAINER_VERSION,
    MANIFEST_OFFSET,
    Container,
    PayloadReader,
    check_manifest,
    damaged,
    pack_container,
    unpack_container,
)
from burstproof.network.files.connectome_index import build_index, index_length
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.schema import NEURON_FIELDS, NEURONS, SYNAPSE_FIELDS
from burstproof.version import __version__

SCHEMA_VERSION = 1
MANIFEST_TAG = "brain_artifact_manifest"

NEURON_ORDER = (
    "membrane_potentials",
    "thresholds",
    "leak_coefficients",
    "resting_potentials",
    "neuron_types",
    "refractory_periods",
    "refractory_countdowns",
    "excitabilities",
    "cortical_areas",
    "coordinates",
    "valid_mask",
    "threshold_limits",
    "consecutive_fire_counts",
    "consecutive_fire_limits",
    "snooze_periods",
    "mp_charge_accumulation",
)
"""Neuron columns in file order."""

SYNAPSE_ORDER = (
    "source_neurons",
    "target_neurons",
    "weights",
    "postsynaptic_potentials",
    "types",
    "delay_bursts",
    "valid_mask",
)
"""Synapse columns in front of the synapse index."""

SYNAPSE_EXTRAS = ("edge_flags", "eligibility_traces")
"""Synapse columns behind the synapse index."""

LARGEST_BURST_COUNT = 1 << 62
_NOTES_OF_GROWTH = ("unmodelled", "as_the_engine", "skipped_areas", "not_examined")
_LEAST_AREA_BYTES = 12
_LEAST_TAG_BYTES = 16


@dataclass(frozen=True)
class Metadata:
    """Who saved the file: ``timestamp`` as the engine writes it (u64), texts, and ``tags`` in file order."""

    timestamp: int = 0
    description: str = ""
    source: str = "burstproof"
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, eq=False)
class Connectome:
    """A ``.connectome`` file as a value: writing it gives the payload that was read, byte for byte.

    Attributes
    ----------
    network : Network
        Tables, areas in file order (no flags unless asked for; dimensions are the extent of the coordinates in
        use), burst count and power amount. The file does not hold plastic mappings.
    manifest : str
        JSON text of the container's manifest.
    fire_ledger_window : int
        Bursts that the engine's fire ledger keeps.
    neuron_capacity, synapse_capacity, synapse_count : int
        As the file states them. The stated synapse count may be stale: the vectors are what counts.
    metadata : Metadata
        Timestamp, description, source and tags.
    persist_mode : int
        0 is a full save.
    genome : str or None
        Text of the embedded genome.
    private_sections : bytes
        What follows the genome: sections private to the engine, kept verbatim.
    index_map : bytes or None
        The map source -> synapses in file order; ``None`` builds it from the table when written.
    compressed : bool
        Whether the payload is an LZ4 block.
    """

    network: Network
    manifest: str
    fire_ledger_window: int = 20
    neuron_capacity: int = 0
    synapse_capacity: int = 0
    synapse_count: int = 0
    metadata: Metadata = dataclasses.field(default_factory=Metadata)
    persist_mode: int = 0
    genome: str | None = None
    private_sections: bytes = b""
    index_map: bytes | None = None
    compressed: bool = True

    @classmethod
    def of(cls, network: Network, genome: str | None = None, description: str = "") -> Connectome:
        """A connectome of a network of any origin, with an empty tail or the ``genome`` text in it."""
        digest = hashlib.sha256(genome.encode("utf-8")).hexdigest() if genome is not None else ""
        manifest = json.dumps(
            {
                "contract_version": 1,
                "container_format_version": CONTAINER_VERSION,
                "connectome_schema_version": SCHEMA_VERSION,
                "genome_schema_version": 7,
                "genome_sha256": digest,
                "producer_version": f"burstproof {__version__}",
                "migration_steps": [],
            },
            separators=(",", ":"),
        )
        return cls(
            network,
            manifest,
            neuron_capacity=network.neuron_count,
            synapse_capacity=network.synapse_count,
            synapse_count=network.synapse_count,
            metadata=Metadata(description=description, tags=((MANIFEST_TAG, manifest),)),
            genome=genome,
        )


def connectome_losses(network: Network) -> tuple[str, ...]:
    """What ``network`` has and a ``.connectome`` cannot hold, one clause each; empty if nothing is lost."""
    losses = []
    if network.plastic_mappings:
        losses.append(f"{len(network.plastic_mappings)} plastic mappings")
    if network.features:
        losses.append("the features of the genome (only an embedded genome carries them)")
    if network.flags_registered:
        losses.append("psp flags of the areas (only an embedded genome carries them)")
    if any(area.name for area in network.areas):
        losses.append("the names of the areas (name them by their ids; only an embedded genome carries names)")
    beyond = (column for column in NEURONS if column.name not in NEURON_ORDER)
    losses += [f"the column {c.name}" for c in beyond if (getattr(network.neurons, c.name) != c.default).any()]
    losses += [f"the note {key}" for key in _NOTES_OF_GROWTH if key in network.provenance]
    return tuple(losses)


def read_connectome(path: str | os.PathLike[str], apply_flags: bool = False) -> Connectome:
    """Read a ``.connectome`` file, container version 3.

    Parameters
    ----------
    path : path-like
        The file.
    apply_flags : bool
        Give the areas the names, dimensions and psp flags of the embedded genome, and the network its plastic mappings
        and features. Without it no flag is registered and nothing is divided or learnt, which is what the engine does
        after importing a connectome alone. Keys of that genome that act and are not modelled are no error, since
        nothing is grown: ``provenance["unmodelled"]`` lists them.

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
    connectome = _parse_payload(container, str(file))
    return _with_flags(connectome, str(file)) if apply_flags else connectome


def _with_flags(connectome: Connectome, name: str) -> Connectome:
    """The network as the embedded genome describes it; areas that it does not name stay as they are."""
    from burstproof.network.grow.blueprint import GenomePolicy
    from burstproof.network.grow.genome import parse_genome
    from burstproof.network.grow.genome_features import with_features

    if connectome.genome is None:
        raise ConnectomeError(
            "flags were asked for, but the file embeds no genome",
            where=name,
            cure="Read it without apply_flags (--apply-flags)",
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
            cure="Read it without apply_flags (--apply-flags), or save it again with the engine",
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
    try:
        network = with_features(network, genome)
    except NetworkError as error:
        raise ConnectomeError(
            f"the embedded genome is of another network: {error.problem}",
            where=place,
            got=error.got,
            cure="Read it without apply_flags (--apply-flags), or save it again with the engine",
        ) from error
    return dataclasses.replace(connectome, network=network)


def _parse_payload(container: Container, name: str) -> Connectome:
    """The connectome in an opened container; ``name`` is the file's name in errors.

    Raises
    ------
    ConnectomeError
        A part that reaches past the end, contradicts another part, or holds a value that is not allowed.
    """
    reader = PayloadReader(container.payload, name)
    schema = reader.number("schema version", "I")
    if schema != SCHEMA_VERSION:
        reader.position = 0
        raise reader.error("unknown connectome schema version", "schema version", schema, str(SCHEMA_VERSION))
    neurons, neuron_capacity = _read_neurons(reader)
    synapses, index_map, synapse_count, synapse_capacity = _read_synapses(reader, len(neurons))
    areas = _read_areas(reader, neurons)
    burst_count = _burst_count(reader)
    power_amount = reader.number("power_amount", "f")
    if not np.isfinite(power_amount):
        raise reader.error("not a finite number", "power_amount", power_amount, "a finite float32")
    window = reader.number("fire_ledger_window", "Q")
    metadata = _read_metadata(reader)
    uncovered = _uncovered(container, metadata, name)
    persist_mode = reader.number("persist mode", "I")
    tag = reader.number("embedded genome tag", "B")
    if tag > 1:
        raise reader.error("not an option tag", "embedded genome tag", tag, "0 or 1")
    genome = reader.text("embedded genome") if tag else None
    network = Network(
        neurons,
        synapses,
        areas,
        burst_count,
        power_amount,
        provenance={"source": "connectome", "file": Path(reader.name).name, **uncovered},
    )
    return Connectome(
        network=network,
        manifest=container.manifest,
        fire_ledger_window=window,
        neuron_capacity=neuron_capacity,
        synapse_capacity=synapse_capacity,
        synapse_count=synapse_count,
        metadata=metadata,
        persist_mode=persist_mode,
        genome=genome,
        private_sections=reader.rest(),
        index_map=index_map,
        compressed=container.compressed,
    )


def _uncovered(container: Container, metadata: Metadata, name: str) -> dict[str, str]:
    """A note if the payload, and so the checksum, does not repeat the manifest as the engine has it."""
    repeated = dict(metadata.tags).get(MANIFEST_TAG)
    if repeated not in (None, container.manifest):
        place = f"{name}: manifest (byte {MANIFEST_OFFSET})"
        raise damaged("the manifest is not the one that the payload repeats", place, container.manifest, repeated)
    return {} if repeated else {"not_covered": "the manifest, which the payload of this file does not repeat"}


def _burst_count(reader: PayloadReader) -> int:
    count = int(reader.number("burst_count", "Q"))
    if count > LARGEST_BURST_COUNT:
        raise reader.error("burst count out of range", "burst_count", count, f"0...{LARGEST_BURST_COUNT}")
    return count


def _aligned(values: npt.NDArray[Any], dtype: type[np.generic]) -> npt.NDArray[Any]:
    """A copy that does not keep the payload alive, in native byte order and alignment."""
    return values.astype(dtype)


def _read_neurons(reader: PayloadReader) -> tuple[NeuronTable, int]:
    count = reader.number("neurons.count", "Q")
    capacity = reader.number("neurons.capacity", "Q")
    columns: dict[str, npt.NDArray[Any]] = {}
    for name in NEURON_ORDER:
        field, dtype = f"neurons.{name}", NEURON_FIELDS[name]
        values = reader.vector(field, dtype, 3 * count if name == "coordinates" else count)
        if dtype is np.float32 and bool(np.isnan(values).any()):
            row = int(np.argmax(np.isnan(values)))
            raise reader.error("not a number", f"{field}[{row}]", float("nan"), "a number")
        columns[name] = _aligned(values, dtype)
    columns["coordinates"] = columns["coordinates"].reshape(count, 3)
    return NeuronTable.build(count, **columns), capacity


def _read_synapses(reader: PayloadReader, neurons: int) -> tuple[SynapseTable, bytes, int, int]:
    """Table, index map, stated count and stated capacity."""
    stated = reader.number("synapses.count", "Q")
    capacity = reader.number("synapses.capacity", "Q")
    columns: dict[str, npt.NDArray[Any]] = {}
    count: int | None = None
    for name in SYNAPSE_ORDER:
        values = reader.vector(f"synapses.{name}", SYNAPSE_FIELDS[name], count)
        count = len(values)
        if name in ("source_neurons", "target_neurons"):
            _check_ends(reader, name, values, neurons)
        columns[name] = _aligned(values, SYNAPSE_FIELDS[name])
    _check_contributions(reader, columns)
    index_map = _read_index(reader, columns["source_neurons"])
    for name in SYNAPSE_EXTRAS:
        columns[name] = _aligned(reader.vector(f"synapses.{name}", SYNAPSE_FIELDS[name], count), SYNAPSE_FIELDS[name])
    return SynapseTable.build(**columns), index_map, stated, capacity


def _check_ends(reader: PayloadReader, name: str, ends: npt.NDArray[Any], neurons: int) -> None:
    outside = ends >= neurons
    if bool(outside.any()):
        row = int(np.argmax(outside))
        allowed = f"0...{neurons - 1}" if neurons else "no synapse in a network without neurons"
        raise reader.error("a synapse points outside the network", f"synapses.{name}[{row}]", int(ends[row]), allowed)


def _check_contributions(reader: PayloadReader, columns: dict[str, npt.NDArray[Any]]) -> None:
    """SEMANTICS section 2: a finite product of weight and psp, delay >= 1, for valid synapses."""
    weights, psps, valid = columns["weights"], columns["postsynaptic_potentials"], columns["valid_mask"]
    with np.errstate(over="ignore", invalid="ignore"):
        bad = valid & ~np.isfinite(weights * psps)
    if bool(bad.any()):
        row = int(np.argmax(bad))
        raise reader.error(
            "weight x psp of a synapse is not finite",
            f"synapses.weights[{row}], postsynaptic_potentials[{row}]",
            (float(weights[row]), float(psps[row])),
            "a finite product",
        )
    late = valid & (columns["delay_bursts"] == 0)
    if bool(late.any()):
        raise reader.error("delay is 0", f"synapses.delay_bursts[{int(np.argmax(late))}]", 0, "1...255 bursts")


def _read_index(reader: PayloadReader, sources: npt.NDArray[np.uint32]) -> bytes:
    length, problem = index_length(reader.payload[reader.position :], sources)
    if problem is not None:
        reader.position += length
        raise reader.error(problem, "synapses.source index")
    return reader.take("synapses.source index", length)


def _read_areas(reader: PayloadReader, neurons: NeuronTable) -> tuple[Area, ...]:
    found: dict[int, str] = {}
    for position in range(reader.count("areas", _LEAST_AREA_BYTES)):
        index = reader.number(f"areas[{position}] index", "I")
        if index in found:
            raise reader.error("area index appears twice", f"areas[{position}] index", index)
        found[index] = reader.text(f"areas[{position}] id")
    extents = _extents(neurons)
    return tuple(
        Area(index, cortical_id, dimensions=extents.get(index, (1, 1, 1))) for index, cortical_id in found.items()
    )


def _extents(neurons: NeuronTable) -> dict[int, tuple[int, int, int]]:
    """Per area index the box of voxels that its neurons occupy, from voxel 0."""
    indices, rows = np.unique(neurons.cortical_areas, return_inverse=True)
    largest = np.zeros((len(indices), 3), np.uint32)
    np.maximum.at(largest, rows, neurons.coordinates)
    return {int(index): (int(x) + 1, int(y) + 1, int(z) + 1) for index, (x, y, z) in zip(indices, largest, strict=True)}


def _read_metadata(reader: PayloadReader) -> Metadata:
    timestamp = reader.number("metadata.timestamp", "Q")
    description = reader.text("metadata.description")
    source = reader.text("metadata.source")
    tags: dict[str, str] = {}
    for position in range(reader.count("metadata.tags", _LEAST_TAG_BYTES)):
        key = reader.text(f"metadata.tags[{position}] key")
        if key in tags:
            raise reader.error("tag appears twice", f"metadata.tags[{position}] key", key)
        tags[key] = reader.text(f"metadata.tags[{position}] value")
    return Metadata(timestamp, description, source, tuple(tags.items()))


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
    _parse_payload(container, name)
    try:
        with atomic_write(path) as stream:
            stream.write(head)
            stream.write(stored)
    except OSError as error:
        raise refused_write(error, name, ConnectomeError) from error


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
