"""Counts in how many runs of a side something holds, and compares the two sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from reports.values import units

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """Something holds in ``count`` of the ``runs`` of a side."""

    count: int
    runs: int

    def __str__(self) -> str:
        return f"in {self.count} of {units.counted(self.runs, 'run')}"

    @property
    def is_some(self) -> bool:
        """Whether the runs of the side disagree."""
        return 0 < self.count < self.runs

    @property
    def share(self) -> float:
        """Fraction of the runs; 0 if there is no run."""
        return self.count / max(self.runs, 1)


@dataclass(frozen=True)
class Parts:
    """In how many runs of each side the same thing holds."""

    old: Part
    new: Part

    def __str__(self) -> str:
        return f"{self.old} → {self.new}"

    @property
    def some(self) -> bool:
        """Whether the runs of either side disagree among themselves."""
        return self.old.is_some or self.new.is_some

    @property
    def differ(self) -> bool:
        """Whether the runs of either side disagree among themselves, and the sides have different shares."""
        return self.some and self.old.share != self.new.share


def part_of(held: Iterable[bool]) -> Part:
    """Count the answers of a side's runs."""
    answers = list(held)
    return Part(sum(answers), len(answers))


def parts_of(old: Iterable[Item], new: Iterable[Item], holds: Callable[[Item], bool]) -> Parts:
    """Count for both sides in how many runs ``holds`` is true; ``old`` and ``new`` have a value for each run."""
    return Parts(part_of(map(holds, old)), part_of(map(holds, new)))
