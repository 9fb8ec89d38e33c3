"""Turns dataclasses into JSON values and back; every field that is read is checked.

JSON has no NaN. A float that is not finite is written as ``null`` and read as NaN. Only the value of a measurement is
restored exactly: ``validity`` beside it says ``ok``, ``missing``, ``nan``, ``inf`` or ``-inf``.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from burstproof.errors import InputError
from reports.values.measurement import Measurement

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value")
_Place: TypeAlias = "str | tuple[_Place, str | int]"
"""Location of a value: the name of the document, or a location with a field or index; made text for errors only."""
_Reader: TypeAlias = Callable[[object, _Place], object]

_VALIDITY = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(record: DataclassInstance) -> dict[str, object]:
    """Turn a record, or any dataclass in one, into JSON values."""
    document = {name: _encode(getattr(record, name)) for name in _names(type(record))}
    return document | {"validity": _validity(record.value)} if isinstance(record, Measurement) else document


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def _encode(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_encode(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return encode(value)
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    raise InputError("a record holds JSON values only", got=value)


def decode(kind: type[Value], value: object, where: str) -> Value:
    """Turn JSON values into ``kind``, a dataclass or a plain type.

    Raises
    ------
    InputError
        A field is unknown, missing or of the wrong type; the error names it.
    """
    return cast("Value", _reader(cast("Any", kind))(value, where))


def _validity(value: float | None) -> str:
    if value is None:
        return "missing"
    if math.isfinite(value):
        return "ok"
    return "nan" if math.isnan(value) else f"{value}"


@cache
def _reader(kind: Any) -> _Reader:
    """The function that decodes values of a type; type hints are resolved once for each type, not for each value."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return partial(_decode_union, arguments, {_json_type(one): _reader(one) for one in reversed(arguments)})
    if origin is tuple:
        return partial(_decode_list, _reader(arguments[0]))
    if origin is not None:
        return partial(_decode_mapping, _reader(arguments[1]))
    if not isinstance(kind, type) or kind is object:
        return lambda value, where: value
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return partial(_decode_dataclass, kind, {name: _reader(hints[name]) for name in _names(kind)}, _needed(kind))
    if kind is float:
        return _decode_float
    return partial(_decode_enum if issubclass(kind, Enum) else _decode_plain, kind)


def _needed(kind: type[DataclassInstance]) -> tuple[str, ...]:
    """Fields without a default."""
    plain = (field for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING)
    return tuple(field.name for field in plain)


def _json_type(kind: type) -> type:
    return dict if is_dataclass(kind) else list if get_origin(kind) is tuple else kind


def _decode_union(kinds: tuple[type, ...], readers: Mapping[type, _Reader], value: object, where: _Place) -> object:
    if value is None:
        return None if types.NoneType in kinds else math.nan
    read = readers.get(type(value)) or (readers.get(float) if type(value) is int else None)
    if read is None:
        raise _wrong(" or ".join(_json_type(kind).__name__ for kind in kinds), value, where)
    return read(value, where)


def _decode_list(read: _Reader, value: object, where: _Place) -> object:
    if not isinstance(value, list):
        raise _wrong("a list", value, where)
    return tuple([read(element, (where, index)) for index, element in enumerate(value)])


def _decode_mapping(read: _Reader, value: object, where: _Place) -> object:
    if not isinstance(value, dict):
        raise _wrong("an object", value, where)
    return {key: read(element, (where, key)) for key, element in value.items()}


def _decode_float(value: object, where: _Place) -> object:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong("a number or null", value, where)
    try:
        return float(value)
    except OverflowError:
        raise _wrong("a number that float64 holds", value, where) from None


def _decode_enum(kind: type[Enum], value: object, where: _Place) -> object:
    try:
        return kind(value)
    except ValueError as error:
        raise _wrong(" or ".join(repr(item.value) for item in kind), value, where) from error


def _decode_plain(kind: type, value: object, where: _Place) -> object:
    if type(value) is not kind:
        raise _wrong(kind.__name__, value, where)
    return value


def _decode_dataclass(
    kind: type, readers: Mapping[str, _Reader], needed: Iterable[str], value: object, where: _Place
) -> object:
    if not isinstance(value, dict):
        raise _wrong("an object", value, where)
    for key in value:
        if key not in readers and not (kind is Measurement and key == "validity"):
            raise InputError("unknown field", where=_words(where), got=key, allowed=", ".join(readers))
    for name in needed:
        if name not in value:
            raise InputError(f"the field {name} is missing", where=_words(where))
    decoded = {name: read(value[name], (where, name)) for name, read in readers.items() if name in value}
    if kind is Measurement and "validity" in value:
        validity, known_ones = value["validity"], ("ok", "missing", *_VALIDITY)
        if validity not in known_ones:
            raise _wrong(" or ".join(map(repr, known_ones)), validity, (where, "validity"))
        if validity in _VALIDITY:
            decoded["value"] = _VALIDITY[validity]
    return kind(**decoded)


def _wrong(wanted: str, value: object, where: _Place) -> InputError:
    return InputError("a field of the wrong type", where=_words(where), got=value, allowed=wanted)


def _words(where: _Place) -> str:
    if isinstance(where, str):
        return where
    outer, inner = where
    return f"{_words(outer)}[{inner}]" if isinstance(inner, int) else f"{_words(outer)}.{inner}"
