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
import os
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkFileError
from burstproof.network.features import NO_FEATURES, Features
from burstproof.network.files.atomic import atomic_write
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Area
from burstproof.network.plasticity import LARGEST_WINDOW, PlasticMapping
from burstproof.network.schema import NEURONS, SYNAPSES

MAGIC = b"\x89BPNET\r\n"
VERSION = 1
ALIGNMENT = 64
HEAD = struct.Struct("<8sIIQ")
ALWAYS_WHOLE = ("neurons.valid_mask", "synapses.source_neurons", "synapses.target_neurons")
"""Columns that are never stored as one repeated value (the rows of plastic mappings neither)."""

_LARGEST_COUNT = 1 << 62
_CURE = "Copy the file again from its origin, or save the network again"


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
class Rule:
    """The parameters of a plastic mapping (``PlasticMapping``)."""

    window: int
    constant: float
    ltp_multiplier: float
    ltd_multiplier: float
    rewarded: bool = False
    eligibility_decay: int = 0
    eta: float = 1.0
    max_weight: float | None = None
    frozen: bool = False
    rewards: tuple[int, ...] = ()
    learning_rates: tuple[int, ...] = ()


def rule_of(mapping: PlasticMapping) -> Rule:
    """The parameters of a plastic mapping."""
    return Rule(*(getattr(mapping, item.name) for item in dataclasses.fields(Rule)))


def mapping_of(rule: Rule, synapses: npt.NDArray[np.int64]) -> PlasticMapping:
    """The plastic mapping with these parameters over ``synapses`` (P,) int64."""
    return PlasticMapping(synapses, *(getattr(rule, item.name) for item in dataclasses.fields(rule)))


@dataclass(frozen=True)
class Header:
    """Everything but the columns' contents."""

    columns: tuple[Column, ...]
    areas: tuple[Area, ...]
    burst_count: int
    power_amount: float
    plastic_mappings: tuple[Rule, ...]
    provenance: Mapping[str, str]
    fixed_point: FixedPoint | None = None
    features: Features = NO_FEATURES

    def encode(self) -> bytes:
        """The header as JSON.

        Raises
        ------
        ValueError, TypeError
            A value that strict JSON cannot hold.
        """
        return json.dumps(plain_values(self), separators=(",", ":"), allow_nan=False, default=_plain).encode("ascii")


def _plain(value: object) -> Any:
    """A NumPy scalar as a number of Python."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{value!r} has no form in JSON")


_LATER_KEYS: dict[type, tuple[str, ...]] = {
    Header: ("fixed_point", "features"),
    Rule: ("rewarded", "eligibility_decay", "eta", "max_weight", "frozen", "rewards", "learning_rates"),
}
"""Keys that older files do not have; at their defaults they are left out."""


def plain_values(value: Any) -> Any:
    """A value made of frozen dataclasses, enumerations, tuples and mappings as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        later = _LATER_KEYS.get(type(value), ())
        items = ((item, getattr(value, item.name)) for item in dataclasses.fields(value))
        return {item.name: plain_values(one) for item, one in items if not (item.name in later and one == item.default)}
    if isinstance(value, Mapping):
        return {str(key): plain_values(one) for key, one in value.items()}
    if isinstance(value, tuple):
        return [plain_values(one) for one in value]
    return value.value if isinstance(value, Enum) else value


def align(offset: int) -> int:
    """The next multiple of ``ALIGNMENT``."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def expected_columns(neurons: int, synapses: int, plastic: tuple[int, ...]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Name -> (dtype, shape) of every column of such a network, in file order."""
    columns: dict[str, tuple[str, tuple[int, ...]]] = {}
    for table, schema, count in (("neurons", NEURONS, neurons), ("synapses", SYNAPSES, synapses)):
        for spec in schema:
            shape = (count,) if spec.width == 1 else (count, spec.width)
            columns[f"{table}.{spec.name}"] = (np.dtype(spec.dtype).newbyteorder("<").str, shape)
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


def stored_column(name: str, values: npt.NDArray[Any], shape: tuple[int, ...], repeated: bool = False) -> Column:
    """The entry of a column whose ``values``, contiguous and little endian, go to a file; its offset is still 0."""
    return Column(name, values.dtype.str, shape, repeated, 0, values.nbytes, f"{zlib.crc32(raw_bytes(values)):08x}")


def raw_bytes(values: npt.NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array."""
    return values.reshape(-1).view(np.uint8).data


def write_columns(
    path: str | os.PathLike[str],
    magic: bytes,
    columns: Sequence[Column],
    values: Sequence[npt.NDArray[Any]],
    encode: Callable[[tuple[Column, ...]], bytes],
) -> None:
    """Write a file of this layout, as a whole or not at all; ``encode`` makes the header of columns with offsets.

    Raises
    ------
    OSError
        The path cannot be written.
    """
    header = encode(tuple(columns))
    length = -1
    while len(header) != length:  # the offsets are in the header, and follow from its length
        length = len(header)
        offsets = layout([column.bytes for column in columns], length)
        columns = [dataclasses.replace(column, offset=at) for column, at in zip(columns, offsets, strict=True)]
        header = encode(tuple(columns))
    with atomic_write(path) as stream:
        stream.write(HEAD.pack(magic, VERSION, zlib.crc32(header), length) + header)
        for column, array in zip(columns, values, strict=True):
            stream.write(bytes(column.offset - stream.tell()))
            stream.write(raw_bytes(array))


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


def refuse_constant(text: str) -> float:
    """For ``json.loads``: NaN and the infinities are no numbers of strict JSON."""
    raise ValueError(f"{text} is not a number of strict JSON")


def decoded(kind: Any, value: object, place: str) -> Any:
    """A value of the header as ``kind``: a dataclass, tuple, mapping, enumeration, optional or plain type.

    Raises
    ------
    NetworkFileError
        An entry that is absent, ill-typed or out of range.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is FixedPoint:
        try:
            return FixedPoint.from_values(value)
        except ValueError as error:
            raise damaged(str(error), place) from None
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object(kind, _plain_value(dict, value, place), place)
    if origin is UnionType:
        return None if value is None else decoded(arguments[0], value, place)
    if origin is tuple:
        values = _plain_value(list, value, place)
        if arguments[-1] is not Ellipsis and len(values) != len(arguments):
            raise damaged("header entry has another length", place, len(values), str(len(arguments)))
        return tuple(decoded(arguments[0], item, f"{place}[{number}]") for number, item in enumerate(values))
    if origin is Mapping:
        entries = _plain_value(dict, value, place)
        values = {key: decoded(arguments[1], item, f"{place}.{key}") for key, item in entries.items()}
        return {_index(key, place): one for key, one in values.items()} if arguments[0] is int else values
    if isinstance(kind, type) and issubclass(kind, Enum):
        known = {one.value: one for one in kind}
        if not isinstance(value, str) or value not in known:
            raise damaged("header entry has an unknown value", place, value, ", ".join(known))
        return known[value]
    return _plain_value(kind, value, place)


def _index(key: str, place: str) -> int:
    """A key that stands for a cortical index."""
    if not (key.isascii() and key.isdigit() and int(key) <= 0xFFFFFFFF):
        raise damaged("header entry has a key that is no cortical index", place, key)
    return int(key)


@cache
def _hints(kind: type) -> dict[str, Any]:
    """Evaluating annotations takes longer than anything else in a header."""
    return get_type_hints(kind)


def _object(kind: type, entries: dict[str, object], place: str) -> object:
    """A dataclass from all its fields; only what older files do not have may be absent."""
    found = {}
    for name, hint in _hints(kind).items():
        if name in entries:
            found[name] = decoded(hint, entries[name], f"{place}.{name}")
        elif name not in _LATER_KEYS.get(kind, ()):
            raise damaged(f"the header lacks the key {name!r}", place)
    return kind(**found)


def _plain_value(kind: type, value: object, place: str) -> Any:
    """``value`` if it is of exactly this type; an integer passes for a float."""
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        raise damaged("header entry has the wrong type", place, value, kind.__name__)
    if isinstance(value, float) and not math.isfinite(value):
        raise damaged("header entry is not finite", place, value, "a finite number")
    if kind is int:
        _check_range(place, value, 0, _LARGEST_COUNT)
    return value


def _check_range(place: str, value: Any, lowest: int, highest: int) -> None:
    if not lowest <= value <= highest:
        raise damaged("header entry out of range", place, value, f"{lowest}...{highest}")


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
        header: Header = decoded(Header, json.loads(raw.decode("ascii"), parse_constant=refuse_constant), place)
    except (ValueError, RecursionError, OverflowError) as error:
        raise damaged(f"the header is not strict JSON: {error}", place) from error
    for area in header.areas:
        _check_range(f"{place}.areas: index", area.index, 0, 0xFFFFFFFF)
    for rule in header.plastic_mappings:
        _check_range(f"{place}.plastic_mappings: window", rule.window, 1, LARGEST_WINDOW)
    return header


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
