"""A value of the genome together with its place, and the typed ways to read it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from burstproof.errors import GenomeError

FLOAT32_MAX = 3.4028234663852886e38
"""The largest finite float32."""


class _Plain(str):
    """Text that an error message shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def is_number(value: object) -> bool:
    """Whether a JSON value is a number; a boolean is none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def readable(text: str) -> str:
    """``text`` on one line, printable, at most 60 characters."""
    shown = text if text.isprintable() else ascii(text)[1:-1]
    return shown if len(shown) <= 60 else shown[:57] + "..."


def _summary(value: object) -> object:
    """What an error message shows of a value; containers may be huge and are only counted."""
    if value is None:
        return _Plain("null")
    if isinstance(value, dict):
        return _Plain(f"an object with {len(value)} {'key' if len(value) == 1 else 'keys'}")
    if isinstance(value, list):
        return _Plain(f"a list of {len(value)}")
    return value


@dataclass(frozen=True, slots=True)
class Field:
    """A JSON value and where it stands: ``file``, and ``path`` inside it.

    Every method that reads a type raises ``GenomeError`` when the value is of another one.
    """

    file: str
    path: str
    value: Any

    @property
    def where(self) -> str:
        """File and place as messages name them."""
        return f"{self.file}: {self.path}" if self.path else self.file

    def error(self, problem: str, *, allowed: str, cure: str) -> GenomeError:
        """An error about this value."""
        return GenomeError(problem, where=self.where, got=_summary(self.value), allowed=allowed, cure=cure)

    def item(self, key: str | int) -> Field:
        """The value under ``key`` of an object, or at that position of a list."""
        if isinstance(key, int):
            return Field(self.file, f"{self.path}[{key}]", self.value[key])
        shown = readable(key)
        return Field(self.file, f"{self.path}.{shown}" if self.path else shown, self.value[key])

    def mapping(self) -> dict[str, Any]:
        """An object."""
        if not isinstance(self.value, dict):
            raise self.error("wrong type", allowed="an object", cure="Write {...} here")
        return self.value

    def items(self) -> Iterator[tuple[str, Field]]:
        """Keys and values of an object."""
        for key in self.mapping():
            yield key, self.item(key)

    def elements(self) -> Iterator[Field]:
        """The elements of a list, one after another."""
        if not isinstance(self.value, list):
            raise self.error("wrong type", allowed="a list", cure="Write [...] here")
        return (self.item(position) for position in range(len(self.value)))

    def triple(self) -> list[Field]:
        """The elements of a list of three."""
        elements = self.elements()
        if len(self.value) != 3:
            raise self.error("wrong length", allowed="a list of 3", cure="Give one element per axis x, y, z")
        return list(elements)

    def text(self) -> str:
        """A string."""
        if not isinstance(self.value, str):
            raise self.error("wrong type", allowed="a string", cure="Put the value in quotes")
        return self.value

    def truth(self) -> bool:
        """A boolean; 0 and 1 count as false and true."""
        if isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, int) and self.value in (0, 1):
            return bool(self.value)
        raise self.error("wrong type", allowed="true or false", cure="Write true or false")

    def number(self) -> float:
        """A number that float32 can hold."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self.error("wrong type", allowed="a number", cure="Write a number without quotes")
        if not abs(self.value) <= FLOAT32_MAX:
            raise self.error(
                "the number does not fit float32",
                allowed=f"-{FLOAT32_MAX:g}...{FLOAT32_MAX:g}",
                cure="Write a smaller number",
            )
        return float(self.value)

    def integer(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``; 3.0 counts as 3."""
        value = self.value
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        allowed = f"a whole number {low}...{high}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error("wrong type", allowed=allowed, cure="Write a whole number without quotes")
        if not low <= value <= high:
            raise self.error("out of range", allowed=allowed, cure="Write a number in that range")
        return value
