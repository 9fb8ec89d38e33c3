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

from burstproof.errors import ConfigError
from reports.values import units
from reports.values.measurement import Measurement, Scalar
from reports.values.serialise import decode

_FILE = Path(__file__).parents[1] / "targets.toml"
_SOURCES = ("A", "B", "C", "D", "E", "F", "goal")
# What a measurement means where it does not say: one GPU, and random targets.
DEFAULTS: Mapping[str, Scalar] = {"gpus": 1, "connectivity": "uniform"}


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
    """A numeric condition: from ``min`` to ``max``, both included."""

    min: float = -math.inf
    max: float = math.inf


Condition = str | int | float | bool | Span | tuple[str, ...]


@dataclass(frozen=True)
class Other:
    """What another program reached at the same work; ``value`` is ``None`` where it cannot do it.

    ``source`` says where the figure comes from.
    """

    name: str
    source: str
    value: float | None = None


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
        """The limit for people: ``≤ 0.6 ms``, ``2 to 5 ms``."""
        if self.comparison is Comparison.RANGE:
            return f"{units.shown(self.low)} to {units.shown(self.high, self.unit)}"
        limit = self.high if math.isfinite(self.high) else self.low
        return units.typeset(f"{self.comparison.value} {units.fitting(limit, self.unit)}")

    @property
    def words(self) -> str:
        """The metric without what every burst and every H200 shares."""
        return self.metric.removeprefix("burst, ").removesuffix(", H200")


@cache
def load_targets(path: Path = _FILE) -> tuple[Target, ...]:
    """Read and check a file of targets.

    Raises
    ------
    InputError
        Naming the row and the key: unknown or missing key, wrong type, unknown unit, bad bounds, duplicate id.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"not valid TOML: {error}", where=path.name) from error
    return parse_targets(document, where=path.name)


def parse_targets(document: Mapping[str, object], where: str = "targets") -> tuple[Target, ...]:
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
        found = measurement.conditions.get(name, DEFAULTS.get(name))
        if found is None:
            return f"the measurement does not say its {name} (wanted {describe(wanted)})"
        if not meets(found, wanted):
            return f"{name} is {found}, wanted {describe(wanted)}"
    return ""


def describe(condition: Condition) -> str:
    """A condition for people."""
    if isinstance(condition, tuple):
        return " or ".join(condition)
    if not isinstance(condition, Span):
        return str(condition)
    if math.isinf(condition.max):
        return f"at least {condition.min:g}"
    if math.isinf(condition.min):
        return f"at most {condition.max:g}"
    return f"{condition.min:g} to {condition.max:g}"


def meets(found: Scalar, wanted: Condition) -> bool:
    """Whether the condition ``found`` of a measurement is what a target wants."""
    if isinstance(wanted, Span):
        numeric = isinstance(found, int | float) and not isinstance(found, bool)
        return numeric and wanted.min <= float(found) <= wanted.max
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
    target = decode(Target, _bounded(row, where), where)
    _check(target, where)
    return target


def _bounded(row: Mapping[str, object], where: str) -> dict[str, object]:
    """The row with the bounds ``low`` and ``high`` in place of its limit."""
    comparison = row.get("comparison")
    given = {"limit", "low", "high"} & set(row)
    wanted = {"low", "high"} if comparison == Comparison.RANGE.value else {"limit"}
    if given != wanted:
        words = " and ".join(sorted(wanted))
        raise ConfigError(f"comparison {comparison!r} takes {words}", where=where, got=sorted(given))
    rest = {key: value for key, value in row.items() if key != "limit"}
    if "limit" not in row:
        return rest
    limit = decode(float, row["limit"], f"{where}.limit")
    upper = comparison in (Comparison.BELOW.value, Comparison.AT_MOST.value)
    return {**rest, "low": -math.inf if upper else limit, "high": limit if upper else math.inf}


def _check(target: Target, where: str) -> None:
    """What types do not say."""
    for key in ("id", "measurement", "metric", "date"):
        if not getattr(target, key):
            raise ConfigError(f"{key} must not be empty", where=where)
    if target.source not in _SOURCES:
        raise ConfigError("unknown source", where=where, got=target.source, allowed=", ".join(_SOURCES))
    if not units.known(target.unit):
        raise ConfigError("unknown unit", where=where, got=target.unit, cure="Add it to reports/values/units.py.")
    bounds = [bound for bound in (target.low, target.high) if not math.isinf(bound)]
    numbers = [*bounds, *(other.value for other in target.others), target.floor]
    if not bounds or not all(math.isfinite(number) for number in numbers if number is not None):
        raise ConfigError("limits, floors and figures of others are finite numbers", where=where, got=numbers)
    if target.low >= target.high:
        raise ConfigError("low must lie below high", where=where, got=[target.low, target.high])
    if not 0.0 <= target.marginal < 1.0:
        raise ConfigError("marginal is a fraction of the limit", where=where, got=target.marginal, allowed="[0, 1)")
    if not all(other.name and other.source for other in target.others):
        raise ConfigError("name and source of others must not be empty", where=where)
    for name, wanted in target.conditions.items():
        if wanted == () or (isinstance(wanted, Span) and not wanted.min <= wanted.max):
            raise ConfigError("a condition that nothing meets", where=f"{where}: conditions.{name}", got=wanted)
