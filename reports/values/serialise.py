"""Frozen values as JSON and back, checked field by field on the way in.

JSON has no NaN: a float that is not finite is written as ``null`` and read back as NaN; the value of a measurement
carries ``validity`` beside it (``ok``, ``missing``, ``nan``, ``inf``, ``-inf``) and comes back as it was.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from burstproof.errors import InputError
from reports.values.measurement import Measurement

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value")

_VALIDITY = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encode(record: DataclassInstance) -> dict[str, object]:
    """Turn a record, or any dataclass of one, into JSON values."""
    document = {field.name: _encode(getattr(record, field.name)) for field in fields(record)}
    return document | {"validity": _validity(record.value)} if isinstance(record, Measurement) else document


def _encode(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return encode(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): _encode(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_encode(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    if value is None or isinstance(value, bool | int):
        return value
    raise InputError("a record holds JSON values only", got=value)


def decode(kind: type[Value], value: object, where: str) -> Value:
    """Turn JSON values into ``kind``, a dataclass or a plain type.

    Raises
    ------
    InputError
        Naming the field that is unknown, missing or of the wrong type.
    """
    return cast("Value", _decode(kind, value, where))


def _validity(value: float | None) -> str:
    if value is None:
        return "missing"
    if math.isfinite(value):
        return "ok"
    return "nan" if math.isnan(value) else f"{value}"


def _decode(kind: object, value: object, where: str) -> object:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(kind), value, where)
    if origin is tuple:
        if not isinstance(value, list):
            raise _wrong("a list", value, where)
        item = get_args(kind)[0]
        return tuple(_decode(item, element, f"{where}[{index}]") for index, element in enumerate(value))
    if origin is not None:
        if not isinstance(value, dict):
            raise _wrong("an object", value, where)
        inner = get_args(kind)[1]
        return {key: _decode(inner, element, f"{where}.{key}") for key, element in value.items()}
    if not isinstance(kind, type) or kind is object:
        return value
    return _decode_dataclass(kind, value, where) if is_dataclass(kind) else _decode_plain(kind, value, where)


def _decode_union(kinds: tuple[type, ...], value: object, where: str) -> object:
    if value is None:
        return None if types.NoneType in kinds else math.nan
    for kind in kinds:
        if type(value) is _json_type(kind) or (kind is float and type(value) is int and int not in kinds):
            return _decode(kind, value, where)
    raise _wrong(" or ".join(_json_type(kind).__name__ for kind in kinds), value, where)


def _json_type(kind: type) -> type:
    return dict if is_dataclass(kind) else list if get_origin(kind) is tuple else kind


def _decode_plain(kind: type, value: object, where: str) -> object:
    if kind is float:
        if value is None:
            return math.nan
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _wrong("a number or null", value, where)
        try:
            return float(value)
        except OverflowError:
            raise _wrong("a number that float64 holds", value, where) from None
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError as error:
            raise _wrong(" or ".join(repr(item.value) for item in kind), value, where) from error
    if type(value) is not kind:
        raise _wrong(kind.__name__, value, where)
    return value


def _decode_dataclass(kind: type, value: object, where: str) -> object:
    if not isinstance(value, dict):
        raise _wrong("an object", value, where)
    known = {field.name: field for field in fields(kind)}
    for key in value:
        if key not in known and not (kind is Measurement and key == "validity"):
            raise InputError("unknown field", where=where, got=key, allowed=", ".join(known))
    for name, field in known.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"the field {name} is missing", where=where)
    hints = _hints(kind)
    decoded = {name: _decode(hints[name], value[name], f"{where}.{name}") for name in known if name in value}
    if kind is Measurement and "validity" in value:
        validity, known_ones = value["validity"], ("ok", "missing", *_VALIDITY)
        if validity not in known_ones:
            raise _wrong(" or ".join(map(repr, known_ones)), validity, f"{where}.validity")
        if validity in _VALIDITY:
            decoded["value"] = _VALIDITY[validity]
    return kind(**decoded)


@cache
def _hints(kind: type) -> dict[str, object]:
    return get_type_hints(kind)


def _wrong(wanted: str, value: object, where: str) -> InputError:
    return InputError("a field of the wrong type", where=where, got=value, allowed=wanted)
