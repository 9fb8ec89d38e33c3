"""By how much A/A runs of one machine, or of one class of machines, differ (requirement RE-8).

Runs of one clean commit are A/A runs for every figure. For figures of the thermometer (limits of the machine, other
people's code) runs of any commit are.
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
"""Least degrees of freedom with which a figure's own spread is used: three runs of one commit."""

_LEAST_GAPS = 20
"""Least number of differences between A/A runs, over all figures, to judge figures without runs of their own."""


@dataclass(frozen=True)
class Variation:
    """How A/A runs vary.

    Attributes
    ----------
    whose : str
        ``this machine``, ``machines of this class``, ``machines of the old side's class``.
    runs : int
        Number of records examined.
    spreads : mapping
        Standard deviation of a figure's logarithm from run to run, and its degrees of freedom.
    largest : float or None
        99 % quantile of all differences between two A/A runs, as a logarithm; ``None`` with fewer than
        ``_LEAST_GAPS`` differences.
    """

    whose: str
    runs: int
    spreads: Mapping[Key, tuple[float, int]]
    largest: float | None

    def limit(self, key: Key) -> tuple[float, str] | None:
        """The logarithm that the ratio of one pair of runs has to exceed to count, and the reason as text."""
        spread, freedom = self.spreads.get(key, (0.0, 0))
        if freedom >= _LEAST_FREEDOM:
            bound = student_quantile(1.0 - ERROR, freedom) * math.sqrt(2.0) * spread
            return bound, f"this figure varies by {_percent(bound)} between runs of {self.whose}"
        if self.largest is None:
            return None
        return self.largest, f"{self.runs} runs of {self.whose} differ by up to {_percent(self.largest)}"


def pair_difference(ratio: float, known: tuple[float, str], noise: float, lower: bool) -> Difference:
    """Judge one pair of runs by ``known``: the limit that A/A runs show (:meth:`Variation.limit`), and its reason."""
    bound, reason = known
    interval = Interval(ratio * math.exp(-bound), ratio * math.exp(bound), CONFIDENCE)
    return Difference(change_of(ratio, interval, noise, lower), ratio, interval, reason=reason)


def seen_variation(records: Sequence[RunRecord], whose: str) -> Variation:
    """The variation from run to run in ``records``, which are all of one machine or class."""
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
