"""The thermometer: figures that depend on the machine and not on our code (limits of the card, other programs)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from reports.judge.targets import meets
from reports.values.measurement import Measurement
from reports.values.serialise import decode

_FILE = Path(__file__).parents[1] / "thermometer.toml"


class Kind(Enum):
    """What a figure of the thermometer measures."""

    LIMIT = "limit"
    """A limit of the card, its links or its driver."""
    PEER = "peer"
    """A program of somebody else."""


@dataclass(frozen=True)
class Row:
    """Measurements of one kind, by name, which may contain ``*``, and by conditions that they must have."""

    kind: Kind
    measurement: str
    conditions: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    def holds(self, measurement: Measurement) -> bool:
        """Whether the row matches ``measurement``."""
        if not fnmatchcase(measurement.name, self.measurement):
            return False
        given = measurement.conditions
        return all(name in given and meets(given[name], wanted) for name, wanted in self.conditions.items())


@cache
def thermometer_rows() -> tuple[Row, ...]:
    """The rows of ``thermometer.toml``.

    Raises
    ------
    InputError
        Naming the row and the key that is unknown, missing or of the wrong type.
    """
    document = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(decode(Row, row, f"{_FILE.name}: row {number}") for number, row in enumerate(document["row"], 1))


def thermometer_kind(measurement: Measurement) -> Kind | None:
    """The kind of ``measurement``; ``None`` if it is one of our own figures."""
    return next((row.kind for row in thermometer_rows() if row.holds(measurement)), None)
