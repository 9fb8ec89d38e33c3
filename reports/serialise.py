"""Records as JSON and back, checked field by field on the way in.

JSON has no NaN: a float that is not finite is written as ``null`` and read back as NaN; the value of a measurement
carries ``validity`` beside it (``ok``, ``missing``, ``nan``, ``inf``, ``-inf``) and comes back as it was.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from burstproof.errors import InputError
from reports import packing
from reports.measurement import Measurement, Scalar
from reports.record import SCHEMA_VERSION, RunRecord
from reports.verdict import exit_code, run_verdict

Value = TypeVar("Value")

_VALIDITY = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def dumps(record: RunRecord) -> str:
    """Write a record whole, as JSON text, with a ``summary`` (verdict, exit code) for programs that read no further."""
    return json.dumps(_summarised(record), indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def dumps_packed(record: RunRecord) -> str:
    """Write a record in the packed form of :mod:`reports.packing`; fields that hold their default are left out."""
    return packing.lines(packing.pack(_summarised(record, sparse=True)))


def _summarised(record: RunRecord, *, sparse: bool = False) -> dict[str, Any]:
    summary = {"verdict": run_verdict(record).value, "exit_code": int(exit_code(record))}
    return {"summary": summary, **encode(record, sparse=sparse)}


def loads(text: str, where: str = "record") -> RunRecord:
    """Read a record from JSON text, whole or packed.

    Raises
    ------
    InputError
        Naming the field that does not fit, or the schema version that this version cannot read.
    """
    try:
        document = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"not a record: {error}", where=where) from error
    if not isinstance(document, dict):
        raise InputError("a record is a JSON object", where=where, got=type(document).__name__)
    if document.get("schema_version") == packing.PACKED_VERSION:
        document = packing.unpack(document, SCHEMA_VERSION, where)
    if document.get("schema_version") != SCHEMA_VERSION:
        raise InputError(
            "a record of another schema version",
            where=where,
            got=document.get("schema_version"),
            allowed=f"{SCHEMA_VERSION}, or {packing.PACKED_VERSION} where packed",
            cure="Read it with the version of the checkout that wrote it.",
        )
    document.pop("summary", None)
    record: RunRecord = _decode(RunRecord, document, where)
    return record


def encode(value: object, *, sparse: bool = False) -> Any:
    """Turn a record, or any part of one, into JSON values; ``sparse`` leaves out fields that hold their default."""
    if is_dataclass(value) and not isinstance(value, type):
        return _encode_dataclass(value, sparse)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(item, sparse=sparse) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [encode(item, sparse=sparse) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    raise InputError("a record holds JSON values only", got=value)


def _encode_dataclass(value: Any, sparse: bool) -> dict[str, Any]:
    items = ((field, getattr(value, field.name)) for field in fields(value))
    document = {
        field.name: encode(item, sparse=sparse)
        for field, item in items
        if not sparse or field.name == "schema_version" or not _is_default(field, item)
    }
    if isinstance(value, Measurement) and not (sparse and _validity(value.value) == "ok"):
        document["validity"] = _validity(value.value)
    return document


def _is_default(field: Field[Any], item: object) -> bool:
    if field.default is not MISSING:
        return bool(item == field.default)
    return field.default_factory is not MISSING and bool(item == field.default_factory())


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the whole new one."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def decode(kind: type[Value], value: object, where: str) -> Value:
    """Turn JSON values into the dataclass ``kind``.

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


def _decode(kind: Any, value: object, where: str) -> Any:
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
    if is_dataclass(kind):
        return _decode_dataclass(kind, value, where)
    return _decode_plain(kind, value, where)


def _decode_union(kinds: tuple[Any, ...], value: object, where: str) -> Any:
    if value is None:
        return None if types.NoneType in kinds else math.nan
    for kind in kinds:
        if kind is types.NoneType:
            continue
        if is_dataclass(kind) or type(value) is kind or (kind is float and type(value) is int and int not in kinds):
            return _decode(kind, value, where)
    raise _wrong(" or ".join(kind.__name__ for kind in kinds), value, where)


def _decode_plain(kind: Any, value: object, where: str) -> Any:
    if kind is object:
        return value
    if kind is float:
        if value is None:
            return math.nan
        if type(value) not in (int, float):
            raise _wrong("a number or null", value, where)
        return float(value)  # type: ignore[arg-type]
    if issubclass(kind, Enum):
        try:
            return kind(value)
        except ValueError as error:
            raise _wrong(" or ".join(repr(item.value) for item in kind), value, where) from error
    if type(value) is not kind:
        raise _wrong(kind.__name__, value, where)
    return value


def _decode_dataclass(kind: Any, value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong("an object", value, where)
    known: dict[str, Field[Any]] = {field.name: field for field in fields(kind)}
    extra = {"validity"} if kind is Measurement else set()
    for key in value:
        if key not in known and key not in extra:
            raise InputError("unknown field", where=where, got=key, allowed=", ".join(known))
    for name, field in known.items():
        if name not in value and field.default is MISSING and field.default_factory is MISSING:
            raise InputError(f"the field {name} is missing", where=where)
    hints = _hints(kind)
    decoded = {name: _decode(hints[name], value[name], f"{where}.{name}") for name in known if name in value}
    if kind is Measurement and value.get("validity") in _VALIDITY:
        decoded["value"] = _VALIDITY[str(value["validity"])]
    return kind(**decoded)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, localns={"Mapping": Mapping, "Scalar": Scalar})


def _wrong(wanted: str, value: object, where: str) -> InputError:
    return InputError("a field of the wrong type", where=where, got=value, allowed=wanted)
