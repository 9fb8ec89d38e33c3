"""From the payload of a ``.connectome`` file to its value, with every count, index and number checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.network.files.connectome_format import Container, PayloadReader
from burstproof.network.files.connectome_index import index_length
from burstproof.network.files.connectome_value import (
    NEURON_ORDER,
    SCHEMA_VERSION,
    SYNAPSE_EXTRAS,
    SYNAPSE_ORDER,
    Connectome,
    Metadata,
)
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS

LARGEST_BURST_COUNT = 1 << 62
_LEAST_AREA_BYTES = 12
_LEAST_TAG_BYTES = 16


def parse_payload(container: Container, name: str) -> Connectome:
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
        provenance={"source": "connectome", "file": Path(reader.name).name},
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
