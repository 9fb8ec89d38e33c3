"""Checkpoints of a run: the canonical state between two bursts and the recording so far, in one checksummed file.

The file has the head of a network file (``network/files/bpnet_format.py``) with its own magic: version, CRC-32 and
length of a JSON header, which lists raw little-endian columns with their offsets and CRC-32; ``checkpoint_format.py``
checks every byte. It replaces the last checkpoint atomically, so a run that is killed leaves a complete one. The state
is that of the whole network: a run can continue from it on any number of shards and any backend.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from burstproof.engine.feature_state import columns_of, from_columns
from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.checkpoint_format import (
    FEATURE_COLUMNS,
    MAGIC,
    RECORDING,
    RECORDING_COLUMNS,
    check_firings,
    read_columns,
    read_header,
)
from burstproof.engine.state import EngineState, Recording, StimulusPlan
from burstproof.errors import CheckpointError, EnvironmentInvalidError
from burstproof.network.files.bpnet_format import Column, plain_values, rule_of, stored_column, write_columns
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NEURONS, SYNAPSES
from burstproof.regular_file import check_regular


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A run, stopped between two bursts.

    Attributes
    ----------
    state : EngineState
    identity : mapping of str to str or number
        Identifies its run, see ``run_identity`` and ``stimulus_so_far``.
    recording : Recording or None
        All bursts up to the state, if the run is recorded.
    """

    state: EngineState
    identity: Mapping[str, Any]
    recording: Recording | None = None


def run_identity(network: Network, options: EngineOptions, fixed_point: FixedPoint) -> dict[str, Any]:
    """All that determines the result of a run except its stimulus: network, rules and scale, but not backend or shards.

    Reads every column of the network once.
    """
    return {
        "network": _network_digest(network),
        "neurons": network.neuron_count,
        "synapses": network.synapse_count,
        **options.rules(),
        "fixed_point": f"k = {fixed_point.k} in {fixed_point.bits} bit",
    }


def check_identity(checkpoint: Checkpoint, identity: Mapping[str, Any], where: str) -> None:
    """Refuse a checkpoint of another run.

    Raises
    ------
    CheckpointError
        Names the first difference.
    """
    for name, value in identity.items():
        if checkpoint.identity.get(name) != value:
            raise CheckpointError(
                f"the checkpoint belongs to another run: its {name.replace('_', ' ')} is another one",
                where=where,
                got=checkpoint.identity.get(name),
                allowed=str(value),
                cure="Resume with the options and the network of the run that wrote it",
            )


def save_checkpoint(path: str | os.PathLike[str], checkpoint: Checkpoint) -> None:
    """Write ``checkpoint`` atomically; replaces an existing file.

    Raises
    ------
    EnvironmentInvalidError
        The path cannot be written.
    """
    values = _values(checkpoint.state)
    if checkpoint.state.features is not None:
        values |= columns_of(checkpoint.state.features)
    if checkpoint.recording is not None:
        values |= _values(checkpoint.recording, RECORDING)
    arrays = {
        name: np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        for name, value in values.items()
        if isinstance(value, np.ndarray)
    }
    columns = [stored_column(name, array, array.shape) for name, array in arrays.items()]
    try:
        write_columns(path, MAGIC, columns, list(arrays.values()), lambda placed: _json(checkpoint, placed))
    except OSError as error:
        raise EnvironmentInvalidError(
            f"the checkpoint cannot be written: {error.strerror}", where=os.fspath(path), cure="Free space there"
        ) from None


def load_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint and check every byte of it.

    Raises
    ------
    CheckpointError
        A file that cannot be read, is no checkpoint, is of another version, or is damaged.
    """
    name = os.fspath(path)
    try:
        check_regular(Path(path))
        content = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(f"cannot be read: {error.strerror}", where=name, cure="Check the path") from None
    header, length = read_header(content, name)
    columns: dict[str, Any] = read_columns(content, header, length, name)
    check_firings(columns, header.state, name)
    held = {item: columns.pop(item) for item in FEATURE_COLUMNS if item in columns}
    recorded = {item: columns.pop(item) for item in RECORDING_COLUMNS if item in columns}
    scalars: dict[str, Any] = {item.name: getattr(header.state, item.name) for item in dataclasses.fields(header.state)}
    recording = (
        Recording(**{item.removeprefix(RECORDING): values for item, values in recorded.items()}) if recorded else None
    )
    features = from_columns(held) if held else None
    return Checkpoint(EngineState(**columns, **scalars, features=features), header.identity, recording)


def _values(part: EngineState | Recording, prefix: str = "") -> dict[str, Any]:
    """The fields of ``part`` by name."""
    return {f"{prefix}{item.name}": getattr(part, item.name) for item in dataclasses.fields(part)}


def _json(checkpoint: Checkpoint, columns: tuple[Column, ...]) -> bytes:
    scalars = {name: value for name, value in _values(checkpoint.state).items() if not isinstance(value, np.ndarray)}
    del scalars["features"]
    point = scalars.pop("fixed_point")
    if point is not None:
        scalars["fixed_point"] = dataclasses.asdict(point)
    tree = {
        "state": scalars,
        "identity": dict(checkpoint.identity),
        "columns": [dataclasses.asdict(column) for column in columns],
    }
    return json.dumps(tree, separators=(",", ":"), allow_nan=False).encode("ascii")


def _network_digest(network: Network) -> str:
    """Digest of all columns, areas, plastic mappings and features of a network.

    Features and newer columns that a network does not use do not change it, so older checkpoints still match.
    """
    digest = hashlib.sha256()
    for table, schema in ((network.neurons, NEURONS), (network.synapses, SYNAPSES)):
        for spec in schema:
            name, column = spec.name, getattr(table, spec.name)
            if spec.since > 1 and (column == spec.default).all():
                continue
            repeated = len(column) > 0 and not column.strides[0]
            digest.update(f"{name} {column.shape} {repeated}".encode())
            digest.update(
                np.ascontiguousarray(column[:1] if repeated else column).data.cast("B") if column.size else b""
            )
    for mapping in network.plastic_mappings:
        digest.update(_as_text(mapping).encode())
        digest.update(np.ascontiguousarray(mapping.synapses).tobytes())
    digest.update(repr((network.areas, network.burst_count, network.power_amount)).encode())
    if network.features:
        digest.update(json.dumps(plain_values(network.features), sort_keys=True).encode())
    return digest.hexdigest()[:32]


def _as_text(mapping: PlasticMapping) -> str:
    """The parameters of a plastic mapping as text, without feature parameters that have their defaults."""
    stated = [("synapses", np.empty(0, np.int64)), *plain_values(rule_of(mapping)).items()]
    return f"PlasticMapping({', '.join(f'{name}={value!r}' for name, value in stated)})"


def stimulus_so_far(plan: StimulusPlan, burst_count: int) -> dict[str, str]:
    """The stimulus up to burst ``burst_count``, as a part of the run's identity."""
    digest = hashlib.sha256()
    for number in sorted(number for number in plan if number <= burst_count):
        stimulus = plan[number]
        digest.update(f"{number} {len(stimulus.ids)} {len(stimulus.forced)}".encode())
        for array in (stimulus.ids, stimulus.amounts, stimulus.forced, stimulus.memories_early):
            digest.update(np.ascontiguousarray(array).tobytes())
    return {"stimulus": digest.hexdigest()[:32]}
