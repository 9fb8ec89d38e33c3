"""Targets: limits with their provenance, read from ``targets.toml`` and checked on the way in."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from burstproof.errors import ConfigError, InputError, shortened
from burstproof.regular_file import check_regular
from reports.values import units
from reports.values.measurement import Measurement, Scalar
from reports.values.serialise import decode

_FILE = Path(__file__).parents[1] / "targets.toml"
OWN = "own"
"""Source of a user's targets."""
_SOURCES = ("A", "B", "C", "D", "E", "F", "goal", OWN)
_SOURCE_WORDS = {"goal": "goal", OWN: "own target"}
_MOST_BYTES = 1 << 20
_CURE = "Correct that key; the head of reports/targets.toml explains all keys."
# What a measurement means where it does not say: one GPU, random targets, and the plainest kind of network.
DEFAULTS: Mapping[str, Scalar] = {"gpus": 1, "connectivity": "uniform", "kind": "uniform", "recorded": "none"}


class Status(Enum):
    """Where the limit comes from: an estimate of the notes, a measurement of the notes, or a goal."""

    ESTIMATE = "estimate"
    MEASURED = "measured"
    GOAL = "goal"


class Comparison(Enum):
    """How a value is compared with the limit."""

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
    """What another program reached with the same work, and the source; ``value`` is ``None`` if it cannot do it."""

    name: str
    source: str
    value: float | None = None


@dataclass(frozen=True)
class Target:
    """A limit for measurements, with its conditions and its source.

    Attributes
    ----------
    id : str
        Unique and permanent.
    measurement : str
        Name of the measurements that it judges; may contain ``*``.
    metric : str
        Description of what is limited.
    comparison : Comparison
    low, high : float
        Bounds in ``unit``; infinite on the side without one.
    unit : str
    marginal : float
        Width of the MARGINAL band as a fraction of the limit, on its good side; 0 for none.
    floor : float or None
        What the hardware cannot beat, in ``unit``; a better figure is an ERROR of the measurement.
    near_floor : float
        A figure that misses the limit is MARGINAL within this factor of its floor, 1 or more; 0 for none.
    stated : str
        The words of the source (``5-10x``), if they say more than the limit.
    scope : str
        What the figure covers, in words; the scope that must match is in ``conditions``.
    source : str
        Design notes ``A`` ... ``F``, ``goal`` for those of this project, ``own`` for a user's.
    status : Status
    date : str
        ISO date on which the row was entered.
    note : str
        Assumptions made in turning the source's words into conditions.
    not_judged : str
        Why it judges no measurement (its source names no hardware); empty if it does.
    conditions : mapping
        By name a value, a glob pattern, a list of patterns, or a :class:`Span`.
    others : tuple of Other
        What other programs reached, in ``unit``, the best first.
    replaces : str
        Id of the earlier goal that this one replaces.
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
    near_floor: float = 0.0
    stated: str = ""
    scope: str = ""
    note: str = ""
    not_judged: str = ""
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    others: tuple[Other, ...] = ()
    replaces: str = ""

    @property
    def limit_text(self) -> str:
        """The limit as text: ``≤ 0.6 ms``, ``2 to 5 ms``."""
        if self.comparison is Comparison.RANGE:
            return f"{units.shown(self.low)} to {units.shown(self.high, self.unit)}"
        limit = self.high if math.isfinite(self.high) else self.low
        return units.typeset(f"{self.comparison.value} {units.fitting(limit, self.unit)}")

    @property
    def words(self) -> str:
        """The metric without ``burst,`` and ``H200``, which most have in common."""
        return self.metric.removeprefix("burst, ").removesuffix(", H200")

    @property
    def is_goal(self) -> bool:
        """Whether it is in the table of goals: a goal of this project or a target of the user."""
        return self.source in _SOURCE_WORDS

    @property
    def source_text(self) -> str:
        """The source as text: ``goal``, ``own target``, ``notes A``."""
        return _SOURCE_WORDS.get(self.source, f"notes {self.source}")


_KEYS = (*(field.name for field in fields(Target)), "limit")


def load_targets(extra: Path | None = None) -> tuple[Target, ...]:
    """Targets of the checkout, and those of a user's file.

    Parameters
    ----------
    extra : Path, optional
        A file with the same keys. A target of an id that the checkout has takes its place; others are added.

    Raises
    ------
    InputError
        Naming file, row, key and value: no readable TOML, unknown or missing key, wrong type, unknown unit, bad bounds,
        duplicate id, a unit of another dimension than the measurement's other targets have.
    """
    known = _of_checkout()
    if extra is None:
        return known
    added = {target.id: target for target in _read(extra)}
    merged = (*(added.pop(target.id, target) for target in known), *added.values())
    _check_dimensions(merged, extra.name)
    return merged


@cache
def _of_checkout() -> tuple[Target, ...]:
    return _read(_FILE)


def _read(path: Path) -> tuple[Target, ...]:
    try:
        check_regular(path)
        with path.open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"no file of targets: {error.strerror}", where=str(path)) from error
    if len(data) > _MOST_BYTES:
        raise ConfigError("too large for a file of targets", where=str(path), allowed=f"{_MOST_BYTES} bytes")
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # also an integer of more digits than Python converts
        raise ConfigError(f"not valid TOML: {error}", where=path.name, cure="Correct the file.") from error
    return parse_targets(document, where=path.name)


def parse_targets(document: Mapping[str, object], where: str = "targets") -> tuple[Target, ...]:
    """Turn a parsed file into targets; see :func:`load_targets`."""
    rows = document.get("target")
    if set(document) != {"target"} or not isinstance(rows, list) or not rows:
        raise ConfigError(
            "a file of targets holds [[target]] tables only",
            where=where,
            got=sorted(document),
            cure="Write a [[target]] line above the keys of each target.",
        )
    targets = tuple(_target(row, f"{where}: target {number}") for number, row in enumerate(rows, 1))
    seen: set[str] = set()
    for target in targets:
        if target.id in seen:
            raise ConfigError("two targets carry the same id", where=where, got=target.id, cure="Rename one.")
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
                cure="Convert the limit.",
            )


def match(measurement: Measurement, targets: Sequence[Target] | None = None) -> tuple[Target, ...]:
    """Every target that judges ``measurement``; statements that contradict each other are separate targets."""
    every = load_targets() if targets is None else targets
    return tuple(target for target in every if mismatch(measurement, target) == "")


def later_goals(targets: Iterable[Target]) -> dict[str, Target]:
    """Maps the id of each replaced goal to the goal that replaced it."""
    return {target.replaces: target for target in targets if target.replaces}


def mismatch(measurement: Measurement, target: Target) -> str:
    """Why ``target`` does not judge ``measurement``; empty if it does."""
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
    """A condition as text."""
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
    """Whether the value ``found`` in a measurement meets the condition ``wanted`` of a target."""
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
        raise ConfigError("a target is a table", where=where, got=row, cure="Write [[target]], in double brackets.")
    where = f"{where} ({shortened(str(row.get('id', 'without id')))})"
    try:
        target = decode(Target, _bounded(row, where), where)
        _check(target, where)
    except InputError as error:
        cure = error.cure or _CURE
        raise ConfigError(error.problem, where=error.where, got=error.got, allowed=error.allowed, cure=cure) from error
    return target


def _bounded(row: Mapping[str, object], where: str) -> dict[str, object]:
    """The row with ``limit`` replaced by the bounds ``low`` and ``high``."""
    for key in row:
        if key not in _KEYS:
            raise ConfigError("unknown key", where=where, got=key, allowed=", ".join(_KEYS))
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
    """Check what the types do not: values that must not be empty, bounds, units, ranges."""
    for key in ("id", "measurement", "metric", "date"):
        if not getattr(target, key):
            raise ConfigError(f"{key} must not be empty", where=f"{where}.{key}", got=getattr(target, key))
    if target.source not in _SOURCES:
        allowed = ", ".join(_SOURCES)
        raise ConfigError("unknown source", where=f"{where}.source", got=target.source, allowed=allowed)
    if not units.known(target.unit):
        allowed = ", ".join(units.names())
        raise ConfigError("unknown unit", where=f"{where}.unit", got=target.unit, allowed=allowed)
    bounds = [bound for bound in (target.low, target.high) if not math.isinf(bound)]
    numbers = [*bounds, *(other.value for other in target.others), target.floor]
    if not bounds or not all(math.isfinite(number) for number in numbers if number is not None):
        raise ConfigError("limits, floors and figures of others are finite numbers", where=where, got=numbers)
    if target.floor is not None and target.floor <= 0.0:
        raise ConfigError("a floor lies above 0", where=f"{where}.floor", got=target.floor, allowed="above 0")
    if target.low >= target.high:
        raise ConfigError("low must lie below high", where=where, got=[target.low, target.high])
    if not 0.0 <= target.marginal < 1.0:
        raise ConfigError(
            "marginal is a fraction of the limit", where=f"{where}.marginal", got=target.marginal, allowed="[0, 1)"
        )
    if target.near_floor and not 1.0 <= target.near_floor < math.inf:
        raise ConfigError(
            "near_floor is a factor of the floor",
            where=f"{where}.near_floor",
            got=target.near_floor,
            allowed="0, or a finite number from 1 on",
        )
    if not all(other.name and other.source for other in target.others):
        raise ConfigError("name and source of others must not be empty", where=f"{where}.others")
    for name, wanted in target.conditions.items():
        if wanted == () or (isinstance(wanted, Span) and not wanted.min <= wanted.max):
            raise ConfigError("a condition that nothing meets", where=f"{where}: conditions.{name}", got=wanted)
