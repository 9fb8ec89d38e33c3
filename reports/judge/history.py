"""The history of runs: for each machine a trend of each measurement (requirement RE-5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.judge.difference import EQUAL, NOISE, Change, Difference
from reports.judge.direction import lower_is_better
from reports.judge.pairing import Figure, Key, figures, words
from reports.judge.variation import Variation, pair_difference, seen_variation
from reports.judge.verdict import run_verdict
from reports.values import units
from reports.values.grouped import grouped
from reports.values.machine import Machine, machine_of
from reports.values.record import RunRecord


@dataclass(frozen=True)
class Point:
    """One run's figure, in the unit of the trend."""

    run_id: str
    value: float


@dataclass(frozen=True)
class Trend:
    """One measurement in two or more runs of a machine, oldest first; ``change`` compares the last two."""

    name: str
    conditions: str
    unit: str
    points: tuple[Point, ...]
    change: Difference

    @property
    def first(self) -> str:
        """The oldest figure as text."""
        return units.readable(self.points[0].value, self.unit)

    @property
    def last(self) -> str:
        """The newest figure as text."""
        return units.readable(self.points[-1].value, self.unit)

    @property
    def is_steady(self) -> bool:
        """Whether the figures of the last two runs are the same."""
        return self.change.change is Change.SAME

    @property
    def low(self) -> str:
        """The smallest figure as text, for the bottom of the sparkline."""
        return units.readable(min(point.value for point in self.points), self.unit)

    @property
    def high(self) -> str:
        """The largest figure as text, for the top of the sparkline."""
        return units.readable(max(point.value for point in self.points), self.unit)


@dataclass(frozen=True)
class RunLine:
    """One run: when it began, its commit, which stages it ran, and its verdict."""

    run_id: str
    started_utc: str
    commit: str
    scope: str
    verdict: str


@dataclass(frozen=True)
class MachineHistory:
    """One machine: its runs, oldest first; trends, largest last change first; the number of figures in one run only."""

    machine: Machine
    runs: tuple[RunLine, ...]
    trends: tuple[Trend, ...]
    once: int

    @property
    def repeated(self) -> bool:
        """Whether there is more than one run."""
        return len(self.runs) > 1


@dataclass(frozen=True)
class History:
    """The machines, that of the newest run first, and the folders that could not be read, with the reasons."""

    machines: tuple[MachineHistory, ...]
    unreadable: tuple[tuple[str, str], ...]


def history_of(records: Sequence[RunRecord], unreadable: Sequence[tuple[str, str]] = ()) -> History:
    """Follow every measurement over ``records``, at least one, separately for each machine.

    ``unreadable`` has the folders that could not be read, with the reasons.
    """
    groups: list[tuple[Machine, list[RunRecord]]] = []
    for record in sorted(records, key=lambda record: record.started_utc):
        machine = machine_of(record)
        known = next((runs for other, runs in groups if other.same_machine(machine)), None)
        if known is None:
            groups.append((machine, [record]))
        else:
            known.append(record)
    groups.sort(key=lambda group: group[1][-1].started_utc, reverse=True)
    return History(tuple(_of_machine(machine, runs) for machine, runs in groups), tuple(unreadable))


def _of_machine(machine: Machine, runs: Sequence[RunRecord]) -> MachineHistory:
    variation = seen_variation(runs, "this machine")
    every = [(key, run, figure) for run in runs for key, figure in figures(run).items()]
    by_key = grouped(every, lambda entry: entry[0])
    repeated = {key: [entry[1:] for entry in found] for key, found in by_key.items() if len(found) > 1}
    trends = [_trend(key, entries, variation) for key, entries in repeated.items()]
    trends.sort(key=lambda trend: (-_size(trend.change.ratio), trend.name, trend.conditions))
    return MachineHistory(machine, tuple(map(_run_line, runs)), tuple(trends), len(by_key) - len(repeated))


def _run_line(run: RunRecord) -> RunLine:
    commit = run.environment.git_commit[:8] + ("+" if run.environment.git_dirty else "")
    return RunLine(run.run_id, run.started_utc, commit or "unknown", _scope(run), run_verdict(run).value)


def _scope(run: RunRecord) -> str:
    """What ran: the stages asked for; of an unfinished run those with a case, marked if they ran in part."""
    if run.finished_utc and not any(stage.problem for stage in run.stages):
        return f"{run.plan} plan, {', '.join(run.asked) or 'all stages'}"
    with_cases = {case.stage for case in run.cases}
    ran = [
        f"a part of {stage.stage}" if stage.problem else stage.stage
        for stage in run.stages
        if stage.stage in with_cases
    ]
    return f"a part of the {run.plan} plan: {', '.join(ran) or 'nothing'}"


def _trend(key: Key, entries: Sequence[tuple[RunRecord, Figure]], variation: Variation) -> Trend:
    measurement = entries[-1][1].measurement
    unit = measurement.unit
    points = tuple(
        Point(run.run_id, units.convert(figure.centre, figure.measurement.unit, unit))
        for run, figure in entries
        if units.dimension(figure.measurement.unit) == units.dimension(unit)
    )
    lower = lower_is_better(measurement)
    return Trend(key[0], words(key[1]), unit, points, _last_change(key, points, lower, variation))


def _last_change(key: Key, points: Sequence[Point], lower: bool | None, variation: Variation) -> Difference:
    before, after = points[-2].value if len(points) > 1 else math.nan, points[-1].value
    if before == after:
        return Difference(Change.SAME, 1.0, None, reason=EQUAL)
    if not (before > 0.0 and after > 0.0) or lower is None:
        return Difference(Change.UNKNOWN, math.nan, None, reason="no ratio, or nothing says which way is better")
    known = variation.limit(key)
    if known is None:
        reason = "too few runs of one clean commit on this machine to show how much its runs vary"
        return Difference(Change.UNKNOWN, after / before, None, reason=reason)
    return pair_difference(after / before, known, NOISE, lower)


def _size(ratio: float) -> float:
    return abs(math.log(ratio)) if ratio > 0.0 else 0.0
