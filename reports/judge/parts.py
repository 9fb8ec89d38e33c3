"""In how many of a side's runs something holds, and whether the two sides differ in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reports.values import units


@dataclass(frozen=True)
class Part:
    """How many of a side's runs something holds for."""

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
        """Its share of the runs; 0 where there is none."""
        return self.count / max(self.runs, 1)


@dataclass(frozen=True)
class Parts:
    """The same of both sides."""

    old: Part
    new: Part

    def __str__(self) -> str:
        return f"{self.old} → {self.new}"

    @property
    def some(self) -> bool:
        """Whether the runs of a side disagree."""
        return self.old.is_some or self.new.is_some

    @property
    def differ(self) -> bool:
        """Whether the runs of a side disagree, and not as many of them as of the other side."""
        return self.some and self.old.share != self.new.share


def part_of(held: Iterable[bool]) -> Part:
    """The part that holds, of the answers of a side's runs."""
    answers = list(held)
    return Part(sum(answers), len(answers))


def parts_of(old: Iterable[bool], new: Iterable[bool]) -> Parts:
    """The parts of two sides."""
    return Parts(part_of(old), part_of(new))
