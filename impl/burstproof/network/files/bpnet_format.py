"""The layout of a network file: head, JSON header with the column table, aligned raw columns.

=========  ======  ==========================================================================
offset     type    content
=========  ======  ==========================================================================
0          8 B     magic
8          u32     version, 1
12         u32     CRC-32 of the header
16         u64     L = length of the header
24         L B     header, JSON UTF-8 (``Header.encode``)
aligned    raw     the columns, in the order of the table, each at a multiple of 64 bytes
=========  ======  ==========================================================================

Everything is little endian; the gaps are zero and the file ends with its last column, so that no byte of the
file can change unnoticed. A column of one repeated value is stored as that value alone. The masks of valid neurons
and the two ends of the synapses are always stored whole: thus the file's size bounds what its tables can claim.
"""

from __future__ import annotations

import dataclasses
import json
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.errors import NetworkFileError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Area
from burstproof.network.schema import NEURON_FIELDS, SYNAPSE_FIELDS

MAGIC = b"\x89BPNET\r\n"
VERSION = 1
ALIGNMENT = 64
HEAD = struct.Struct("<8sIIQ")
ALWAYS_WHOLE = ("neurons.valid_mask", "synapses.source_neurons", "synapses.target_neurons")
"""Columns that are never stored as one repeated value (the rows of plastic mappings neither)."""

_LARGEST_COUNT = 1 << 62
_CURE = "Copy the file again from its origin, or save the network again"
_MAPPING_FLOATS = ("constant", "ltp_multiplier", "ltd_multiplier")


@dataclass(frozen=True)
class Column:
    """One stored column: ``bytes`` at ``offset`` from the start of the file, ``crc32`` in hexadecimal."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    repeated: bool
    offset: int
    bytes: int
    crc32: str


@dataclass(frozen=True)
class Header:
    """Everything but the columns' contents; ``plastic_mappings`` holds the parameters of each mapping."""

    columns: tuple[Column, ...]
    areas: tuple[Area, ...]
    burst_count: int
    power_amount: float
    plastic_mappings: tuple[Mapping[str, Any], ...]
    provenance: Mapping[str, str]
    fixed_point: FixedPoint | None = None

    def encode(self) -> bytes:
        """The header as JSON.

        Raises
        ------
        ValueError, TypeError
            A value that strict JSON cannot hold.
        """
        tree = {
            "columns": [dataclasses.asdict(column) for column in self.columns],
            "areas": [dataclasses.asdict(area) for area in self.areas],
            "burst_count": self.burst_count,
            "power_amount": self.power_amount,
            "plastic_mappings": [dict(mapping) for mapping in self.plastic_mappings],
            "provenance": dict(self.provenance),
        }
        if self.fixed_point is not None:
            tree["fixed_point"] = dataclasses.asdict(self.fixed_point)
        return json.dumps(tree, separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: object) -> Any:
    """A NumPy scalar as a number of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} has no form in JSON")


def align(offset: int) -> int:
    """The next multiple of ``ALIGNMENT``."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def expected_columns(neurons: int, synapses: int, plastic: tuple[int, ...]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name -> (dtype, shape) of every column of such a network, in file order."""
    columns: dict[str, tuple[str, tuple[int, ...]]] = {}
    for table, fields, count in (("neurons", NEURON_FIELDS, neurons), ("synapses", SYNAPSE_FIELDS, synapses)):
        for name, dtype in fields.items():
            shape = (count, 3) if name == "coordinates" else (count,)
            columns[f"{table}.{name}"] = (np.dtype(dtype).newbyteorder("<").str, shape)
    for position, count in enumerate(plastic):
        columns[f"plastic.{position}.synapses"] = ("<i8", (count,))
    return columns


def layout(sizes: list[int], header_length: int) -> list[int]:
    """Offsets of columns of the given sizes in bytes behind a header of that length."""
    offsets, position = [], HEAD.size + header_length
    for size in sizes:
        offsets.append(align(position))
        position = offsets[-1] + size
    return offsets


def damaged(problem: str, where: str, got: object = None, allowed: str | None = None) -> NetworkFileError:
    """The error for a network file that cannot be trusted."""
    return NetworkFileError(problem, where=where, got=got, allowed=allowed, cure=_CURE)


def read_head(head: bytes, file_bytes: int, name: str) -> tuple[int, int]:
    """Header CRC and header length from the first ``HEAD.size`` bytes.

    Raises
    ------
    NetworkFileError
        Wrong magic or version, or a file too short for its header.
    """
    if head[: len(MAGIC)] != MAGIC:
        raise NetworkFileError(
            "not a burstproof network file: wrong magic",
            where=f"{name}: byte 0",
            got=head[: len(MAGIC)],
            allowed=repr(MAGIC),
            cure="Give a file that burstproof saved",
        )
    if len(head) < HEAD.size:
        raise damaged("file ends inside its head", f"{name}: byte {len(head)}")
    _, version, crc, length = HEAD.unpack(head)
    if version != VERSION:
        raise NetworkFileError(
            "unknown version of the network file",
            where=f"{name}: byte 8",
            got=version,
            allowed=str(VERSION),
            cure="Save the network again with this burstproof",
        )
    if length > file_bytes - HEAD.size:
        raise damaged(
            "the header reaches past the end of the file",
            f"{name}: byte 16 (header length)",
            length,
            f"at most {file_bytes - HEAD.size}",
        )
    return crc, length


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number of strict JSON")


class _Tree:
    """Takes typed values out of the header; an error names the key's path."""

    def __init__(self, value: Any, place: str) -> None:
        self.value = value
        self.place = place

    def _typed(self, kind: type, allowed: str) -> Any:
        if type(self.value) is not kind:
            raise damaged("header entry has the wrong type", self.place, self.value, allowed)
        return self.value

    def item(self, key: str) -> _Tree:
        mapping = self._typed(dict, "an object")
        if key not in mapping:
            raise damaged(f"the header lacks the key {key!r}", self.place)
        return _Tree(mapping[key], f"{self.place}.{key}")

    def items(self) -> list[_Tree]:
        values = self._typed(list, "a list")
        return [_Tree(value, f"{self.place}[{position}]") for position, value in enumerate(values)]

    def text(self) -> str:
        value: str = self._typed(str, "a text")
        return value

    def truth(self) -> bool:
        value: bool = self._typed(bool, "true or false")
        return value

    def flag(self) -> bool | None:
        return None if self.value is None else self.truth()

    def integer(self, lowest: int = 0, highest: int = _LARGEST_COUNT) -> int:
        value: int = self._typed(int, "an integer")
        if not lowest <= value <= highest:
            raise damaged("header entry out of range", self.place, value, f"{lowest}...{highest}")
        return value

    def number(self) -> float:
        value: float = float(self.value) if type(self.value) is int else self._typed(float, "a number")
        if not math.isfinite(value):
            raise damaged("header entry is not finite", self.place, value, "a finite number")
        return value

    def texts(self) -> dict[str, str]:
        mapping = self._typed(dict, "an object of texts")
        return {key: _Tree(value, f"{self.place}.{key}").text() for key, value in mapping.items()}


def _area(tree: _Tree) -> Area:
    dimensions = [side.integer() for side in tree.item("dimensions").items()]
    if len(dimensions) != 3:
        raise damaged("an area has three dimensions", f"{tree.place}.dimensions", dimensions)
    return Area(
        index=tree.item("index").integer(0, 0xFFFFFFFF),
        cortical_id=tree.item("cortical_id").text(),
        name=tree.item("name").text(),
        dimensions=(dimensions[0], dimensions[1], dimensions[2]),
        neurons_per_voxel=tree.item("neurons_per_voxel").integer(),
        psp_uniform_distribution=tree.item("psp_uniform_distribution").flag(),
        mp_driven_psp=tree.item("mp_driven_psp").flag(),
    )


def _column(tree: _Tree) -> Column:
    return Column(
        name=tree.item("name").text(),
        dtype=tree.item("dtype").text(),
        shape=tuple(side.integer() for side in tree.item("shape").items()),
        repeated=tree.item("repeated").truth(),
        offset=tree.item("offset").integer(),
        bytes=tree.item("bytes").integer(),
        crc32=tree.item("crc32").text(),
    )


def _fixed_point(tree: _Tree) -> FixedPoint | None:
    """The scale, which files of before 2026-11-22 do not have."""
    if "fixed_point" not in tree.value:
        return None
    try:
        return FixedPoint.from_values(tree.value["fixed_point"])
    except ValueError as error:
        raise damaged(str(error), f"{tree.place}.fixed_point") from None


def _mapping(tree: _Tree) -> dict[str, Any]:
    floats = {name: tree.item(name).number() for name in _MAPPING_FLOATS}
    return {"window": tree.item("window").integer(1, 65535), **floats}


def decode_header(raw: bytes, crc: int, name: str) -> Header:
    """The header, with every entry of the expected type.

    Raises
    ------
    NetworkFileError
        Wrong checksum, not strict JSON, or an entry that is absent, ill-typed or out of range.
    """
    place = f"{name}: header"
    if zlib.crc32(raw) != crc:
        raise damaged("the header does not have the stated CRC-32", place, f"{zlib.crc32(raw):08x}", f"{crc:08x}")
    try:
        tree = _Tree(json.loads(raw.decode("ascii"), parse_constant=_refuse_constant), place)
        return Header(
            columns=tuple(_column(item) for item in tree.item("columns").items()),
            areas=tuple(_area(item) for item in tree.item("areas").items()),
            burst_count=tree.item("burst_count").integer(),
            power_amount=tree.item("power_amount").number(),
            plastic_mappings=tuple(_mapping(item) for item in tree.item("plastic_mappings").items()),
            provenance=tree.item("provenance").texts(),
            fixed_point=_fixed_point(tree),
        )
    except (ValueError, RecursionError, OverflowError) as error:
        raise damaged(f"the header is not strict JSON: {error}", place) from error


def check_columns(header: Header, header_length: int, file_bytes: int, name: str) -> None:
    """The column table must be the one and only layout of its columns in a file of that size; others take defaults.

    Raises
    ------
    NetworkFileError
        An unknown column, an absent one without default, a wrong dtype, shape, size or offset, or a file of another
        length.
    """
    table = {column.name: column for column in header.columns}
    counts = []
    for key in ("neurons.valid_mask", "synapses.source_neurons"):
        column = table.get(key)
        if column is None or len(column.shape) != 1:
            raise damaged("the column table lacks a column of one dimension", f"{name}: header.columns", key)
        counts.append(column.shape[0])
    rows = []
    for position in range(len(header.plastic_mappings)):
        column = table.get(f"plastic.{position}.synapses")
        rows.append(math.prod(column.shape) if column is not None else 0)
    expected = expected_columns(counts[0], counts[1], tuple(rows))
    needed = {*ALWAYS_WHOLE, *(column for column in expected if column.startswith("plastic."))}
    if [column.name for column in header.columns] != [column for column in expected if column in table]:
        unequal = sorted(set(table) - set(expected)) or [column.name for column in header.columns]
        raise damaged("the column table does not name the columns of a network", f"{name}: header.columns", unequal)
    if not needed <= set(table):
        absent = sorted(needed - set(table))
        raise damaged("the column table lacks columns that have no default", f"{name}: header.columns", absent)
    offsets = layout([column.bytes for column in header.columns], header_length)
    for column, offset in zip(header.columns, offsets, strict=True):
        _check_column(column, expected[column.name], offset, name)
    end = header.columns[-1].offset + header.columns[-1].bytes
    if file_bytes != end:
        raise damaged("the file has another length than its columns", f"{name}: byte {end}", file_bytes, f"{end} bytes")


def _check_column(column: Column, expected: tuple[str, tuple[int, ...]], offset: int, name: str) -> None:
    place = f"{name}: column {column.name}"
    dtype, shape = expected
    if (column.dtype, column.shape) != (dtype, shape):
        raise damaged("wrong dtype or shape", place, (column.dtype, column.shape), f"{dtype}, {shape}")
    if column.repeated and (column.name in ALWAYS_WHOLE or column.name.startswith("plastic.")):
        raise damaged("this column is always stored whole", place, "repeated")
    size = np.dtype(dtype).itemsize * (1 if column.repeated else math.prod(shape))
    if (column.offset, column.bytes) != (offset, size):
        raise damaged("wrong offset or size", place, (column.offset, column.bytes), f"{offset}, {size}")
