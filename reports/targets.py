"""Targets: limits with their provenance, read from ``targets.toml`` and checked on the way in."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from burstproof.errors import ConfigError
from reports import units
from reports.measurement import Measurement, Scalar

_FILE = Path(__file__).with_name("targets.toml")
_OPTIONAL_WORDS = ("stated", "scope", "note", "not_judged")
_NEEDED = ("id", "measurement", "metric", "comparison", "unit", "source", "status", "date")
_KEYS = frozenset({*_NEEDED, *_OPTIONAL_WORDS, "limit", "low", "high", "marginal", "floor", "conditions", "others"})
_SOURCES = ("A", "B", "C", "D", "E", "F", "goal")
# What a measurement means where it does not say: one GPU, and random targets.
_DEFAULTS: Mapping[str, Scalar] = {"gpus": 1, "connectivity": "uniform"}


class Status(Enum):
    """How the figure came about: estimated by its notes, measured by them, or our own goal."""

    ESTIMATE = "estimate"
    MEASURED = "measured"
    GOAL = "goal"


class Comparison(Enum):
    """How a value is held against the limit."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="
    RANGE = "range"


@dataclass(frozen=True)
class Span:
    """A numeric condition: from ``low`` to ``high``, both included."""

    low: float = -math.inf
    high: float = math.inf


Condition = str | int | float | bool | Span | tuple[str, ...]


@dataclass(frozen=True)
class Other:
    """What another program reached at the same work; ``value`` is ``None`` where it cannot do it.

    ``source`` says where the figure comes from.
    """

    name: str
    value: float | None
    source: str


@dataclass(frozen=True)
class Target:
    """A limit, what it holds for, and who says so.

    Attributes
    ----------
    id : str
        Unique and permanent.
    measurement : str
        Name of the measurements it judges; may hold ``*``.
    metric : str
        What is limited, in words.
    comparison : Comparison
    low, high : float
        Bounds in ``unit``; infinite on the side that has none.
    unit : str
    marginal : float
        Width of the MARGINAL band as a fraction of the limit, on its good side; 0 for none.
    floor : float or None
        What the hardware cannot beat, in ``unit``; a better figure is an ERROR of the measurement.
    stated : str
        The figure as its source words it (``5-10x``), where that says more than the limit.
    scope : str
        What the figure covers; for people (the scope that must match is among ``conditions``).
    source : str
        Design notes ``A`` ... ``F``, or ``goal``.
    status : Status
    date : str
        ISO date on which the row was entered.
    note : str
        Assumptions made in turning the source's words into conditions.
    not_judged : str
        Why no measurement is held against it (the source names no hardware); empty where one is.
    conditions : mapping
        Name to value, glob pattern, list of patterns, or :class:`Span`.
    others : tuple of Other
        What others reached, in ``unit``, the best first.
    """

    id: str
    measurement: str
    metric: str
    comparison: Comparison
    low: float
    high: float
    unit: str
    source: str
    status: Status
    date: str
    marginal: float = 0.0
    floor: float | None = None
    stated: str = ""
    scope: str = ""
    note: str = ""
    not_judged: str = ""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    others: tuple[Other, ...] = ()

    @property
    def limit_text(self) -> str:
        """The limit for people: ``<= 0.6 ms``, ``2 ... 5 ms``."""
        if self.comparison is Comparison.RANGE:
            return f"{units.shown(self.low)} ... {units.shown(self.high, self.unit)}"
        limit = self.high if math.isfinite(self.high) else self.low
        return f"{self.comparison.value} {units.shown(limit, self.unit)}"


@cache
def load_targets(path: Path = _FILE) -> tuple[Target, ...]:
    """Read and check a file of targets.

    Raises
    ------
    ConfigError
        Naming the row and the key: unknown or missing key, wrong type, unknown unit, bad bounds, duplicate id.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}", where=path.name) from error
    return parse_targets(document, where=path.name)


def parse_targets(document: Mapping[str, Any], where: str = "targets") -> tuple[Target, ...]:
    """Turn a parsed file into targets; see :func:`load_targets`."""
    rows = document.get("target")
    if set(document) != {"target"} or not isinstance(rows, list) or not rows:
        raise ConfigError("a file of targets holds [[target]] tables only", where=where, got=sorted(document))
    targets = tuple(_target(row, f"{where}: target {number}") for number, row in enumerate(rows, 1))
    seen: set[str] = set()
    for target in targets:
        if target.id in seen:
            raise ConfigError("two targets carry the same id", where=where, got=target.id)
        seen.add(target.id)
    _check_dimensions(targets, where)
    return targets


def _check_dimensions(targets: Sequence[Target], where: str) -> None:
    first: dict[str, Target] = {}
    for target in targets:
        other = first.setdefault(target.measurement, target)
        if units.dimension(other.unit) != units.dimension(target.unit):
            raise ConfigError(
                f"{target.measurement} is limited in {other.unit} by {other.id} and in {target.unit} here",
                where=f"{where} ({target.id})",
                got=target.unit,
                allowed=f"a unit of {units.dimension(other.unit)}",
            )


def match(measurement: Measurement, targets: Sequence[Target] | None = None) -> tuple[Target, ...]:
    """Every target that judges ``measurement``; contradicting notes each stand on their own."""
    every = load_targets() if targets is None else targets
    return tuple(target for target in every if mismatch(measurement, target) == "")


def mismatch(measurement: Measurement, target: Target) -> str:
    """Why ``target`` does not judge ``measurement``, in words; empty if it does."""
    if not fnmatchcase(measurement.name, target.measurement):
        return f"judges {target.measurement}, not {measurement.name}"
    if target.not_judged:
        return target.not_judged
    for name, wanted in target.conditions.items():
        found = measurement.conditions.get(name, _DEFAULTS.get(name))
        if found is None:
            return f"the measurement does not say its {name} (wanted {describe(wanted)})"
        if not _meets(found, wanted):
            return f"{name} is {found}, wanted {describe(wanted)}"
    return ""


def describe(condition: Condition) -> str:
    """A condition for people."""
    if isinstance(condition, tuple):
        return " or ".join(condition)
    if not isinstance(condition, Span):
        return str(condition)
    if math.isinf(condition.high):
        return f"at least {condition.low:g}"
    if math.isinf(condition.low):
        return f"at most {condition.high:g}"
    return f"{condition.low:g} to {condition.high:g}"


def _meets(found: Scalar, wanted: Condition) -> bool:
    if isinstance(wanted, Span):
        numeric = isinstance(found, int | float) and not isinstance(found, bool)
        return numeric and wanted.low <= float(found) <= wanted.high
    if isinstance(wanted, str | tuple):
        patterns = (wanted,) if isinstance(wanted, str) else wanted
        return isinstance(found, str) and any(fnmatchcase(found.lower(), p.lower()) for p in patterns)
    if isinstance(wanted, bool) or isinstance(found, bool):
        return found is wanted
    return isinstance(found, int | float) and math.isclose(found, wanted, rel_tol=1e-6)


def _target(row: object, where: str) -> Target:
    if not isinstance(row, dict):
        raise ConfigError("a target is a table", where=where, got=row)
    where = f"{where} ({row.get('id', 'without id')})"
    for key in row:
        if key not in _KEYS:
            raise ConfigError("unknown key", where=where, got=key, allowed=", ".join(sorted(_KEYS)))
    for key in _NEEDED:
        if not isinstance(row.get(key), str) or not row[key]:
            raise ConfigError(f"{key} must be a non-empty string", where=where, got=row.get(key))
    for key in _OPTIONAL_WORDS:
        if not isinstance(row.get(key, ""), str):
            raise ConfigError(f"{key} must be a string", where=where, got=row[key])
    _check_words(row, where)
    comparison = Comparison(row["comparison"])
    low, high = _bounds(row, comparison, where)
    floor = None if "floor" not in row else _number(row, "floor", where)
    marginal = _number(row, "marginal", where) if "marginal" in row else 0.0
    if not 0.0 <= marginal < 1.0:
        raise ConfigError("marginal is a fraction of the limit", where=where, got=marginal, allowed="[0, 1)")
    words = {key: row[key] for key in (*_NEEDED, *_OPTIONAL_WORDS) if key in row}
    words |= {"comparison": comparison, "status": Status(row["status"])}
    conditions = _conditions(row.get("conditions", {}), where)
    others = _others(row.get("others", []), where)
    return Target(**words, low=low, high=high, marginal=marginal, floor=floor, conditions=conditions, others=others)


def _others(rows: object, where: str) -> tuple[Other, ...]:
    if not isinstance(rows, list):
        raise ConfigError("others is a list of tables", where=where, got=rows)
    return tuple(_other(row, where) for row in rows)


def _other(row: object, where: str) -> Other:
    if not isinstance(row, dict) or not {"name", "source"} <= set(row) <= {"name", "value", "source"}:
        raise ConfigError("not a figure of another program", where=where, got=row, allowed="name, value, source")
    if not all(isinstance(row[key], str) and row[key] for key in ("name", "source")):
        raise ConfigError("name and source must be non-empty strings", where=where, got=row)
    return Other(row["name"], _number(row, "value", where) if "value" in row else None, row["source"])


def _check_words(row: Mapping[str, Any], where: str) -> None:
    allowed = {
        "comparison": [item.value for item in Comparison],
        "status": [item.value for item in Status],
        "source": list(_SOURCES),
    }
    for key, words in allowed.items():
        if row[key] not in words:
            raise ConfigError(f"unknown {key}", where=where, got=row[key], allowed=", ".join(words))
    if not units.known(row["unit"]):
        raise ConfigError("unknown unit", where=where, got=row["unit"], cure="Add it to reports/units.py.")


def _bounds(row: Mapping[str, Any], comparison: Comparison, where: str) -> tuple[float, float]:
    wanted = {"low", "high"} if comparison is Comparison.RANGE else {"limit"}
    given = {"limit", "low", "high"} & set(row)
    if given != wanted:
        raise ConfigError(
            f"comparison {comparison.value!r} takes {' and '.join(sorted(wanted))}", where=where, got=sorted(given)
        )
    if comparison is Comparison.RANGE:
        low, high = _number(row, "low", where), _number(row, "high", where)
        if low >= high:
            raise ConfigError("low must lie below high", where=where, got=[low, high])
        return low, high
    limit = _number(row, "limit", where)
    upper = comparison in (Comparison.BELOW, Comparison.AT_MOST)
    return (-math.inf, limit) if upper else (limit, math.inf)


def _number(row: Mapping[str, Any], key: str, where: str) -> float:
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ConfigError(f"{key} must be a finite number", where=where, got=value)
    return float(value)


def _conditions(table: object, where: str) -> dict[str, Condition]:
    if not isinstance(table, dict):
        raise ConfigError("conditions is a table", where=where, got=table)
    return {name: _condition(value, f"{where}: conditions.{name}") for name, value in table.items()}


def _condition(value: object, where: str) -> Condition:
    if isinstance(value, list):
        if value and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif isinstance(value, dict):
        if value and set(value) <= {"min", "max"}:
            spans = {key: _number(value, key, where) for key in value}
            return Span(spans.get("min", -math.inf), spans.get("max", math.inf))
    elif isinstance(value, str | int | float | bool):
        return value
    raise ConfigError(
        "not a condition", where=where, got=value, allowed="a value, a list of patterns, {min = .., max = ..}"
    )
