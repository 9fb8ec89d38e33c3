"""The network's own file: saved as a whole or not at all, loaded memory-mapped and checked (requirement BE-2)."""

from __future__ import annotations

import dataclasses
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError, NetworkFileError
from burstproof.network.files.atomic import refused_write
from burstproof.network.files.bpnet_format import (
    ALWAYS_WHOLE,
    HEAD,
    MAGIC,
    Column,
    Header,
    check_columns,
    damaged,
    decode_header,
    expected_columns,
    mapping_of,
    read_head,
    rule_of,
    stored_column,
    write_columns,
)
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS

_Stored = tuple[Column, npt.NDArray[Any]]


def save_network(path: str | os.PathLike[str], network: Network) -> None:
    """Save ``network`` as a network file, as a whole or not at all.

    Parameters
    ----------
    path : path-like
        Takes the file, by custom with the ending ``.bpnet``; a file that is there is replaced.
    network : Network
        Any network. Columns of one repeated value (zero stride) take one value in the file.

    Raises
    ------
    NetworkFileError
        A value that the format cannot hold (a power amount that is not finite, a provenance that is no text,
        plastic rows that are not ascending), or a path that cannot be written.
    """
    name = os.fspath(path)
    stored = _stored_columns(network)
    columns, values = [column for column, _ in stored], [array for _, array in stored]
    header = _header(network)
    try:
        raw = dataclasses.replace(header, columns=tuple(columns)).encode()
    except (ValueError, TypeError) as error:
        raise NetworkFileError(
            f"the network holds a value that the file cannot: {error}",
            where=name,
            allowed="finite numbers, texts as provenance",
            cure="Correct the value",
        ) from error
    decode_header(raw, zlib.crc32(raw), name)
    _check_plastic([mapping.synapses for mapping in network.plastic_mappings], network.synapse_count, name)
    try:
        write_columns(path, MAGIC, columns, values, lambda placed: dataclasses.replace(header, columns=placed).encode())
    except OSError as error:
        raise refused_write(error, name, NetworkFileError) from error


def _stored_columns(network: Network) -> list[_Stored]:
    """Every column as it goes to the file, with its entry of the table (offset 0 for now)."""
    plastic = [np.asarray(mapping.synapses) for mapping in network.plastic_mappings]
    expected = expected_columns(network.neuron_count, network.synapse_count, tuple(len(rows) for rows in plastic))
    stored = []
    for name, (dtype, shape) in expected.items():
        table, field = name.split(".", 1)
        values = plastic[int(field.split(".")[0])] if table == "plastic" else getattr(getattr(network, table), field)
        repeated = bool(values.size) and not any(values.strides)
        repeated = repeated and name not in ALWAYS_WHOLE and table != "plastic"
        if repeated:
            values = values.reshape(-1)[:1]
        values = np.ascontiguousarray(values, dtype=dtype)
        stored.append((stored_column(name, values, shape, repeated), values))
    return stored


def _header(network: Network) -> Header:
    """The header without its columns."""
    return Header(
        columns=(),
        areas=network.areas,
        burst_count=network.burst_count,
        power_amount=network.power_amount,
        plastic_mappings=tuple(rule_of(mapping) for mapping in network.plastic_mappings),
        provenance=dict(network.provenance),
        fixed_point=network.fixed_point,
        features=network.features,
    )


def load_network(path: str | os.PathLike[str], verify: bool = True) -> Network:
    """Load a network file; the columns are read-only views of the mapped file.

    Parameters
    ----------
    path : path-like
        A file saved by ``save_network``.
    verify : bool
        Compare every column with its CRC-32, which reads the whole file once. Without it only head, header,
        layout, synapse ends and plastic rows are checked; for files whose integrity is known otherwise.

    Raises
    ------
    NetworkFileError
        The file cannot be read, is damaged, cut short, extended or of another version, or a synapse points outside.

    Notes
    -----
    Do not overwrite the file in place while the network is in use; ``save_network`` to the same path is safe,
    because it replaces the file and leaves the mapped one alone.
    """
    name = os.fspath(path)
    mapped = _map(Path(path), name)
    crc, length = read_head(mapped[: HEAD.size].tobytes(), len(mapped), name)
    header = decode_header(mapped[HEAD.size : HEAD.size + length].tobytes(), crc, name)
    check_columns(header, length, len(mapped), name)
    if verify:
        _verify(mapped, header, length, name)
    values = {column.name: _view(mapped, column) for column in header.columns}
    return _assemble(header, values, name)


def _map(file: Path, name: str) -> npt.NDArray[np.uint8]:
    try:
        if not file.is_file():
            raise NetworkFileError("no such file", where=name, cure="Give the path of a saved network")
        if file.stat().st_size == 0:
            raise damaged("the file is empty", name)
        return np.asarray(np.memmap(file, np.uint8, mode="r"))
    except (OSError, ValueError) as error:
        raise NetworkFileError(
            f"cannot be read: {error}", where=name, cure="Check the path and its permissions"
        ) from error


def _view(mapped: npt.NDArray[np.uint8], column: Column) -> npt.NDArray[Any]:
    raw = mapped[column.offset : column.offset + column.bytes].view(column.dtype)
    return np.broadcast_to(raw.reshape(()), column.shape) if column.repeated else raw.reshape(column.shape)


def _verify(mapped: npt.NDArray[np.uint8], header: Header, length: int, name: str) -> None:
    """Checksums of the columns, zeros between them, and truth values that are 0 or 1."""
    end = HEAD.size + length
    for column in header.columns:
        if mapped[end : column.offset].any():
            raise damaged("the gap in front of a column is not zero", f"{name}: byte {end}...{column.offset - 1}")
        end = column.offset + column.bytes
        raw = mapped[column.offset : end]
        place = f"{name}: column {column.name} (byte {column.offset})"
        actual = f"{zlib.crc32(raw.data):08x}"
        if actual != column.crc32:
            raise damaged("the column does not have the stated CRC-32", place, actual, column.crc32)
        if column.dtype == "|b1" and int(raw.max(initial=0)) > 1:
            raise damaged("a truth value is neither 0 nor 1", place, int(raw.max()), "0 or 1")


def _check_plastic(rows: list[npt.NDArray[np.int64]], count: int, name: str) -> None:
    """The plastic rows of each mapping ascend and exist."""
    for position, synapses in enumerate(rows):
        place = f"{name}: column plastic.{position}.synapses"
        if len(synapses) and not (int(synapses.min()) >= 0 and int(synapses.max()) < count):
            outside = int(synapses.max()) if int(synapses.min()) >= 0 else int(synapses.min())
            raise damaged("a plastic row points outside", place, outside, f"0...{count - 1}")
        if bool((np.diff(synapses) <= 0).any()):
            raise damaged("the plastic rows of a mapping must ascend", place)


def _assemble(header: Header, values: dict[str, npt.NDArray[Any]], name: str) -> Network:
    neurons = {field: values[f"neurons.{field}"] for field in NEURON_FIELDS if f"neurons.{field}" in values}
    synapses = {field: values[f"synapses.{field}"] for field in SYNAPSE_FIELDS if f"synapses.{field}" in values}
    rows = [values[f"plastic.{position}.synapses"] for position in range(len(header.plastic_mappings))]
    try:
        network = Network(
            NeuronTable.build(len(neurons["valid_mask"]), **neurons),
            SynapseTable.build(**synapses),
            header.areas,
            header.burst_count,
            header.power_amount,
            tuple(mapping_of(rule, own) for own, rule in zip(rows, header.plastic_mappings, strict=True)),
            header.provenance,
            header.fixed_point,
            header.features,
        )
    except NetworkError as error:
        raise damaged(error.problem, f"{name}: {error.where}", error.got, error.allowed) from error
    _check_plastic(rows, network.synapse_count, name)
    return network
