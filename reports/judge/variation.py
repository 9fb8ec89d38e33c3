"""By how much runs of one machine, or of one class of machines, have been seen to differ (requirement RE-8).

Runs of one clean commit are A/A runs of every figure. Runs of any commit are A/A runs of the machine's own limits and
of other people's code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reports.judge.difference import CONFIDENCE, ERROR, Difference, change_of, student_quantile
from reports.judge.pairing import Figure, Key, figures
from reports.judge.thermometer import Kind, thermometer_kind
from reports.values.judgement import Interval
from reports.values.record import RunRecord

_LEAST_FREEDOM = 2
"""Degrees of freedom from which a figure's own spread counts: three runs of one commit."""

_LEAST_GAPS = 20
"""Differences between A/A runs, over all figures, below which nothing is said of figures without runs of their own."""


@dataclass(frozen=True)
class Variation:
    """What A/A runs have shown.

    Attributes
    ----------
    whose : str
        ``this machine``, ``machines of this class``, ``machines of the old side's class``.
    runs : int
        Records that were looked at.
    spreads : mapping
        Standard deviation of a figure's logarithm from run to run, and its degrees of freedom.
    largest : float or None
        What 99 % of all differences between two A/A runs stay below, as a logarithm; ``None`` with fewer than
        ``_LEAST_GAPS`` of them.
    """

    whose: str
    runs: int
    spreads: Mapping[Key, tuple[float, int]]
    largest: float | None

    def limit(self, key: Key) -> tuple[float, str] | None:
        """What a difference of one pair of runs has to exceed, as a logarithm, and where that comes from."""
        spread, freedom = self.spreads.get(key, (0.0, 0))
        if freedom >= _LEAST_FREEDOM:
            bound = student_quantile(1.0 - ERROR, freedom) * math.sqrt(2.0) * spread
            return bound, f"this figure varies by {_percent(bound)} between runs of {self.whose}"
        if self.largest is None:
            return None
        return self.largest, f"{self.runs} runs of {self.whose} differ by up to {_percent(self.largest)}"


def pair_difference(ratio: float, known: tuple[float, str], noise: float, lower: bool) -> Difference:
    """What one pair of runs says: nothing below ``known``, the limit that A/A runs have shown, and its reason."""
    bound, reason = known
    interval = Interval(ratio * math.exp(-bound), ratio * math.exp(bound), CONFIDENCE)
    return Difference(change_of(ratio, interval, noise, lower), ratio, interval, reason=reason)


def seen_variation(records: Sequence[RunRecord], whose: str) -> Variation:
    """What ``records``, all of one machine or class, show of the variation from run to run."""
    read = [figures(record) for record in records]
    groups: dict[str, list[Mapping[Key, Figure]]] = {}
    for record, found in zip(records, read, strict=True):
        if record.environment.git_commit and not record.environment.git_dirty:
            groups.setdefault(record.environment.git_commit, []).append(found)
    gathered = _Gathered()
    for group in groups.values():
        gathered.add(group, lambda kind: kind is None)
    gathered.add(read, lambda kind: kind is not None)
    enough = len(gathered.gaps) >= _LEAST_GAPS
    largest = float(np.quantile(gathered.gaps, 1.0 - ERROR, method="higher")) if enough else None
    return Variation(whose, len(records), gathered.spreads(), largest)


class _Gathered:
    """Sums of squares of each figure's logarithm about the mean of its group, and the gaps between its runs."""

    def __init__(self) -> None:
        self.gaps: list[float] = []
        self._squares: dict[Key, tuple[float, int]] = {}

    def add(self, group: Iterable[Mapping[Key, Figure]], wanted: Callable[[Kind | None], bool]) -> None:
        logs: dict[Key, list[float]] = {}
        for run in group:
            for key, figure in run.items():
                if figure.centre > 0.0 and figure.measurement.samples and wanted(thermometer_kind(figure.measurement)):
                    logs.setdefault(key, []).append(math.log(figure.centre))
        for key, values in logs.items():
            squares, freedom = self._squares.get(key, (0.0, 0))
            middle = sum(values) / len(values)
            squares += sum((value - middle) ** 2 for value in values)
            self._squares[key] = squares, freedom + len(values) - 1
            self.gaps += [abs(a - b) for place, a in enumerate(values) for b in values[:place]]

    def spreads(self) -> dict[Key, tuple[float, int]]:
        known = ((key, squares, freedom) for key, (squares, freedom) in self._squares.items() if freedom)
        return {key: (math.sqrt(squares / freedom), freedom) for key, squares, freedom in known}


def _percent(log: float) -> str:
    return f"{100.0 * math.expm1(log):.2g} %" if log < math.log(2.0) else f"a factor of {math.exp(log):.2g}"
