"""The checkpoint format: entries of the header, and the columns and their layout.

Everything is checked before it is used: each entry of the header; element type, shape, offset and CRC-32 of each
column; the zeros between columns; the length of the file. So every changed byte is detected, and a forged header with
a correct CRC-32 is refused with an error message.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.admission import STATE_FORMS
from burstproof.engine.feature_admission import strange_ids
from burstproof.engine.feature_state import FORMS, PREFIX
from burstproof.errors import CheckpointError, NetworkFileError
from burstproof.network.features import FIRST_MEMORY_ID
from burstproof.network.files.bpnet_format import HEAD, VERSION, Column, decoded, layout, refuse_constant
from burstproof.network.fixed_point import FixedPoint

MAGIC = b"\x89BPSTAT\n"

RECORDING = "recording."
"""Prefix of the columns of the recording."""

_NEXT_MEMORY = f"{PREFIX}memory.next_id"
_LONGEST_DELAY = 255
_CURE = "Use an earlier checkpoint, or run from the beginning"

STATE_COLUMNS = {
    name: (np.dtype(dtype).newbyteorder("<").str, letters) for name, (dtype, letters) in STATE_FORMS.items()
}
"""Columns of the state in file order: element type, and a letter for each dimension (``EngineState``)."""

FEATURE_COLUMNS = {name: (dtype.newbyteorder("<").str, letter) for name, (dtype, letter) in FORMS.items()}
"""Columns after those of the state if the network has features; all of them or none."""

RECORDING_COLUMNS = {
    f"{RECORDING}bursts": ("<i8", "B"),
    f"{RECORDING}fired_counts": ("<i8", "B"),
    f"{RECORDING}candidate_counts": ("<i8", "B"),
    f"{RECORDING}fired_ids": ("<u4", "K"),
    f"{RECORDING}fired_potentials": ("<f4", "K"),
}
"""Columns of the recording, after those of the state; all of them or none."""


@dataclass(frozen=True)
class Scalars:
    """The scalar values of a state."""

    burst_count: int
    history_bursts: int
    clamped: bool
    fixed_point: FixedPoint | None


@dataclass(frozen=True)
class Header:
    """The header: everything except the contents of the columns."""

    state: Scalars
    identity: Mapping[str, Any]
    columns: tuple[Column, ...]


def damaged(problem: str, where: str, got: object = None, allowed: str | None = None) -> CheckpointError:
    """The error for a damaged checkpoint."""
    return CheckpointError(f"the checkpoint is damaged: {problem}", where=where, got=got, allowed=allowed, cure=_CURE)


def read_header(content: bytes, name: str) -> tuple[Header, int]:
    """The header of a file and its length in bytes; checks the type of every entry.

    Raises
    ------
    CheckpointError
        No checkpoint, another version, a wrong CRC-32, or an entry that is absent, unknown or ill-typed.
    """
    if len(content) < HEAD.size or content[: len(MAGIC)] != MAGIC:
        raise CheckpointError("this is no checkpoint", where=name, cure="Name a file that --checkpoint wrote")
    _, version, checksum, length = HEAD.unpack(content[: HEAD.size])
    if version != VERSION:
        raise CheckpointError(
            "a checkpoint of another version", where=name, got=version, allowed=str(VERSION), cure=_CURE
        )
    text = content[HEAD.size : HEAD.size + length]
    if len(text) != length or zlib.crc32(text) != checksum:
        raise damaged("its header", name)
    try:
        tree = json.loads(text.decode("ascii"), parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        raise damaged(f"the header is not strict JSON: {error}", name) from None
    return _header(tree, name), length


def _header(tree: Any, name: str) -> Header:
    if not isinstance(tree, dict) or set(tree) != {"state", "identity", "columns"}:
        raise damaged("the header has other parts than state, identity and columns", name)
    state, identity = tree["state"], tree["identity"]
    if isinstance(state, dict):
        state.setdefault("fixed_point", None)  # files of before 2026-11-22 have none
    if not isinstance(identity, dict) or not all(isinstance(value, str | int | float) for value in identity.values()):
        raise damaged("the identity of the run is no list of names and plain values", name)
    try:
        scalars: Scalars = decoded(Scalars, state, f"{name}: header.state")
        columns: tuple[Column, ...] = decoded(tuple[Column, ...], tree["columns"], f"{name}: header.columns")
    except NetworkFileError as error:
        raise damaged(error.problem, error.where or name, error.got, error.allowed) from None
    return Header(scalars, identity, columns)


def read_columns(content: bytes, header: Header, length: int, name: str) -> dict[str, npt.NDArray[Any]]:
    """All columns as separate arrays; ``length`` is that of the header.

    Raises
    ------
    CheckpointError
        Other columns than those of a state, inconsistent sizes, or a changed byte.
    """
    wanted = dict(STATE_COLUMNS)
    found = [column.name for column in header.columns]
    for prefix, others in ((PREFIX, FEATURE_COLUMNS), (RECORDING, RECORDING_COLUMNS)):
        wanted |= others if any(name.startswith(prefix) for name in found) else {}
    if found != list(wanted):
        raise damaged("its columns are not those of a state", name, sorted(set(found) ^ set(wanted)))
    sizes = {"1": 1}
    for column in header.columns:
        _check_shape(column, *wanted[column.name], sizes, name)
    if not 1 <= sizes["D"] <= _LONGEST_DELAY:
        raise damaged("pending has no row for each burst of a delay", name, sizes["D"], f"1...{_LONGEST_DELAY} rows")
    offsets = layout([column.bytes for column in header.columns], length)
    end = HEAD.size + length
    for column, offset in zip(header.columns, offsets, strict=True):
        if column.offset != offset or any(content[end:offset]):
            raise damaged(f"the bytes in front of {column.name}", name)
        end = offset + column.bytes
    if len(content) != end:
        raise damaged("the file has another length than its columns", name, len(content), f"{end} bytes")
    return {column.name: _array(content, column, name) for column in header.columns}


def _check_shape(column: Column, dtype: str, letters: str, sizes: dict[str, int], name: str) -> None:
    """Check element type, dimensions and bytes; ``sizes`` collects the length for each dimension letter."""
    fits = column.dtype == dtype and len(column.shape) == len(letters) and not column.repeated
    fits = fits and all(sizes.setdefault(key, size) == size for key, size in zip(letters, column.shape, strict=True))
    count = int(np.prod(np.array(column.shape, dtype=object), initial=1))
    if not fits or column.bytes != np.dtype(dtype).itemsize * count:
        raise damaged(f"{column.name} has another form", name, (column.dtype, column.shape), f"{dtype}, {letters}")


def _array(content: bytes, column: Column, name: str) -> npt.NDArray[Any]:
    raw = content[column.offset : column.offset + column.bytes]
    if f"{zlib.crc32(raw):08x}" != column.crc32:
        raise damaged(column.name, name)
    if column.dtype == "|b1" and raw.translate(None, b"\0\1"):
        raise damaged(f"a truth value of {column.name} is neither 0 nor 1", name)
    stored = np.frombuffer(raw, np.dtype(column.dtype)).reshape(column.shape)
    return stored.astype(stored.dtype.newbyteorder("="))


def check_firings(columns: Mapping[str, npt.NDArray[Any]], state: Scalars, name: str) -> None:
    """Check that fired lists ascend within the network, and that the recording ends at the state.

    Raises
    ------
    CheckpointError
        One does not.
    """
    neurons, fired = len(columns["membrane_potentials"]), columns["fired_ids"]
    formed = int(columns[_NEXT_MEMORY][0]) if _NEXT_MEMORY in columns else 0
    if strange_ids(fired, neurons, formed).any() or bool((fired[1:] <= fired[:-1]).any()):
        raise damaged("fired_ids do not ascend within the network", name)
    if f"{RECORDING}bursts" not in columns:
        return
    bursts, counts = columns[f"{RECORDING}bursts"], columns[f"{RECORDING}fired_counts"]
    last = state.burst_count
    if not np.array_equal(bursts, np.arange(last - len(bursts) + 1, last + 1)):
        raise damaged("the recorded bursts do not lead up to the state", name)
    recorded = columns[f"{RECORDING}fired_ids"]
    most = neurons + max(formed - FIRST_MEMORY_ID, 0)
    within = bool((counts >= 0).all() and (counts <= most).all())
    strange = bool(strange_ids(recorded, neurons, formed).any())
    if not within or strange or (len(recorded) and int(counts.sum()) != len(recorded)):
        raise damaged("the recorded firings do not fit their counts", name)
