"""The history of runs: a trend for each measurement (requirement RE-5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reports.judge.compare import Key, figures, samples_of, words
from reports.judge.statistics import Difference, difference, median
from reports.judge.verdict import run_verdict
from reports.values import units
from reports.values.measurement import Measurement
from reports.values.record import RunRecord


@dataclass(frozen=True)
class Point:
    """One run's figure, in the unit of the trend."""

    run_id: str
    started_utc: str
    value: float
    samples: tuple[float, ...]


@dataclass(frozen=True)
class Trend:
    """One measurement over the runs, oldest first.

    ``change`` holds the last run against the one before; ``None`` for a single run.
    """

    name: str
    conditions: str
    unit: str
    points: tuple[Point, ...]
    change: Difference | None

    @property
    def first(self) -> str:
        """The oldest figure for people."""
        return units.readable(self.points[0].value, self.unit)

    @property
    def last(self) -> str:
        """The newest figure for people."""
        return units.readable(self.points[-1].value, self.unit)


@dataclass(frozen=True)
class History:
    """Runs (id, start, verdict), oldest first, their trends, and the folders that could not be read, with why."""

    runs: tuple[tuple[str, str, str], ...]
    trends: tuple[Trend, ...]
    unreadable: tuple[tuple[str, str], ...]


def history_of(records: Sequence[RunRecord], unreadable: Sequence[tuple[str, str]] = ()) -> History:
    """Follow every measurement over ``records``, at least one; ``unreadable`` names what else lay there, and why."""
    ordered = sorted(records, key=lambda record: record.started_utc)
    runs = tuple((record.run_id, record.started_utc, run_verdict(record).value) for record in ordered)
    return History(runs, _trends(ordered), tuple(unreadable))


def _trends(records: list[RunRecord]) -> tuple[Trend, ...]:
    """Trends of times and rates; the device stays part of the key, so that machines are never mixed."""
    found: dict[Key, list[tuple[RunRecord, Measurement]]] = {}
    for record in records:
        for key, measurement in figures(record, frozenset({"floor"})).items():
            found.setdefault(key, []).append((record, measurement))
    return tuple(_trend(key, entries) for key, entries in sorted(found.items()))


def _trend(key: Key, entries: list[tuple[RunRecord, Measurement]]) -> Trend:
    unit = entries[0][1].unit
    usable = [(record, m) for record, m in entries if units.dimension(m.unit) == units.dimension(unit)]
    points = tuple(_point(record, measurement, unit) for record, measurement in usable)
    change = None
    if len(points) > 1 and points[-2].value > 0.0:
        lower = units.lower_is_better(unit) is True
        change = difference(points[-2].samples, points[-1].samples, lower_is_better=lower)
    return Trend(key[0], words(key[1]), unit, points, change)


def _point(record: RunRecord, measurement: Measurement, unit: str) -> Point:
    samples = tuple(units.convert(sample, measurement.unit, unit) for sample in samples_of(measurement))
    return Point(record.run_id, record.started_utc, median(samples), samples)
