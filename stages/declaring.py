"""The marker ``measures``, by which a case declares the names and conditions of the measurements that it delivers.

``@pytest.mark.measures("burst.latency", backend="cuda", neurons=[100_000, 1_000_000], device=...)`` says that the case
delivers ``burst.latency`` whenever it passes. A condition has one value or a list of alternatives; an ellipsis stands
for a value that only the machine knows. A case may have several markers. If only some parameters deliver a measurement,
the marker is put on these parameters. With ``only_if="words"`` a measurement may be missing, since it depends on
something that may not be installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from types import EllipsisType
from typing import cast

import pytest

from reports.judge.targets import DEFAULTS, Target, describe, meets
from reports.values.measurement import Measurement, Scalar

MARKER = "measures"

Alternatives = tuple[Scalar, ...] | EllipsisType
"""Values that a condition may have; an ellipsis allows any value."""


@dataclass(frozen=True)
class Declared:
    """One declaration of a case.

    Attributes
    ----------
    names : tuple of str
        Measurements that the case delivers when it passes.
    conditions : mapping of str to Alternatives
        Their conditions. A measurement may have others as well, but these do not meet the conditions of a target.
    only_if : str
        What the measurements depend on besides the gates of the case; empty if the case must deliver all of them.
    """

    names: tuple[str, ...]
    conditions: Mapping[str, Alternatives]
    only_if: str = ""

    @classmethod
    def of(cls, mark: pytest.Mark) -> Declared:
        """Read a marker.

        Raises
        ------
        pytest.UsageError
            There is no name, a name is no text, or a condition has no value.
        """
        names = tuple(name for name in mark.args if isinstance(name, str))
        if len(names) != len(mark.args) or not names:
            raise pytest.UsageError(f"the marker {MARKER} takes names of measurements, got {mark.args!r}")
        given = dict(mark.kwargs)
        only_if = given.pop("only_if", "")
        if not isinstance(only_if, str):
            raise pytest.UsageError(f"{MARKER}(only_if=...) takes words, got {only_if!r}")
        return cls(names, {name: _alternatives(name, value) for name, value in given.items()}, only_if)

    def allows(self, measurement: Measurement) -> str:
        """Why ``measurement`` contradicts the declaration; empty if it does not."""
        if measurement.name not in self.names:
            return f"{measurement.name} is not declared"
        for name, allowed in self.conditions.items():
            found = measurement.conditions.get(name, DEFAULTS.get(name))
            if found is None:
                return f"{measurement.name} does not say its {name}, which is declared"
            if allowed is not ... and not any(meets(found, value) for value in allowed):
                return f"{name} of {measurement.name} is {found}, declared {_in_words(allowed)}"
        return ""

    def reaches(self, target: Target) -> str:
        """Why ``target`` cannot judge any measurement of the declaration; empty if it can."""
        if not any(fnmatchcase(name, target.measurement) for name in self.names):
            return f"no {target.measurement} is declared"
        for name, wanted in target.conditions.items():
            allowed = self.conditions.get(name, _default(name))
            if allowed is ... or any(meets(value, wanted) for value in allowed):
                continue
            found = _in_words(allowed) if allowed else "not declared"
            return f"{name} is {found}, wanted {describe(wanted)}"
        return ""


def declared_by(item: pytest.Item) -> tuple[Declared, ...]:
    """The declarations of a case, those of its own markers first."""
    return tuple(Declared.of(mark) for mark in item.iter_markers(MARKER))


def breach(declared: Sequence[Declared], taken: Sequence[Measurement]) -> str:
    """A measurement that was declared but not delivered, or delivered but not declared; empty if there is none."""
    for one in declared:
        for name in () if one.only_if else one.names:
            against = [one.allows(measurement) for measurement in taken if measurement.name == name]
            if not against:
                return f"{name} is declared and was not measured"
            if all(against):
                return against[0]
    for measurement in taken:
        against = [one.allows(measurement) for one in declared if measurement.name in one.names]
        if all(against):
            return against[0] if against else f"{measurement.name} was measured and is not declared"
    return ""


def _alternatives(name: str, value: object) -> Alternatives:
    if value is ...:
        return ...
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values or not all(isinstance(one, str | int | float | bool) for one in values):
        raise pytest.UsageError(f"{MARKER}({name}=...) takes a value, a list of values or an ellipsis, got {value!r}")
    return cast(tuple[Scalar, ...], values)


def _default(name: str) -> tuple[Scalar, ...]:
    return (DEFAULTS[name],) if name in DEFAULTS else ()


def _in_words(allowed: tuple[Scalar, ...]) -> str:
    return " or ".join(map(str, allowed))
