"""The table of goals: for each the best figure of others, the limit, what was measured, and the hardware's floor."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from reports.judge.absent import stage_of_target, why_absent
from reports.judge.bases import settled
from reports.judge.decided import by_of, worst_named
from reports.judge.doubts import Doubts, doubts_of
from reports.judge.statistics import interval_of
from reports.judge.targets import (
    DEFAULTS,
    Other,
    Target,
    later_goals,
    load_targets,
    meets,
)
from reports.judge.verdict import FLOOR_CONDITION, WORST_FIRST, higher_is_better
from reports.values import units
from reports.values.grouped import grouped
from reports.values.judgement import JudgedMeasurement, Judgement, ReasonCode
from reports.values.measurement import Measurement, Verdict
from reports.values.record import RunRecord

NOT_MEASURED = "not measured"
HERE = "this run"
"""Source of another program's figure if this run timed the program, too."""

_RESIDENT = "device-resident"
HEADS = ("figure", "best other", "goal", "measured", "floor", "share", "verdict")
_NAME_WIDTH = 60
"""A longer name is printed on a line of its own, above the figures."""

_READING = (
    "best other: timed by this run where no note says otherwise",
    "worst of n: n figures were held against the goal; in brackets: how many times as fast as the best other",
    "floor: what the hardware cannot beat; share: how much of what it allows was reached; without: no floor is known",
)
_GOALS_OF = ("burst.latency", "burst.scaled")
_PEERS = "peer.latency"
_SAME_WORK = ("neurons", "synapses_per_neuron", "firing_rate", "kind", "connectivity", "device")
"""Conditions in which the figure of another program must agree with the goal beside which it is shown."""

_EXACT = ("parity.", "prerequisite.", "accuracy.")
_PROGRAMS = {"pytorch": "PyTorch", "standard": "standard attention"}
_OF_NO_ACCOUNT = "met by a figure that counts for nothing"
_NOT_COUNTED = "met, not counted"
_SO_FAR = "its stage did not finish: figures of other cases may be held against it"
_MET = (Verdict.PASS.value, Verdict.MARGINAL.value)
_MISSED = (Verdict.FAIL.value, Verdict.AMBIGUOUS.value)
_Judged = tuple[JudgedMeasurement, Measurement]
"""A judgement and the measurement that was judged."""


@dataclass(frozen=True)
class GoalRow:
    """One goal as text; a field is empty if there is nothing to show.

    Attributes
    ----------
    row : str
        Name of what is limited.
    other : str
        The best figure of another program, and the program's name.
    other_from : str
        ``this run`` if this run timed the program, else ``elsewhere`` and the date of the figure.
    against_other : str
        How many times as fast as the other program.
    goal, measured, interval : str
    worst_of : str
        ``worst of 3`` if three figures were judged by the goal; the row shows the worst.
    floor : str
        What the hardware cannot beat: the least time, or the greatest rate or share.
    of_floor : str
        How much of the floor was reached; 100 % cannot be beaten.
    verdict : str
        FAIL if the case failed or its result was wrong, else that of the judgement; ``not measured`` without a figure.
    of_figure : str
        The verdict of the judgement, with or without a doubt.
    by : str
        By how much the figure misses the goal: ``2.6 %``; empty if it does not, or if that is no share or factor.
    sources : str
        Sources of all figures of other programs.
    doubt : str
        Why the figure does not count: its case failed, its result was wrong, or it is a ratio of an impossible figure.
    absent : str
        Why there is no figure.
    earlier : str
        Until when it was a goal, if a later goal replaced it.
    so_far : bool
        Whether it is met, but its stage did not finish, so that cases to come may miss it. Never of a latency, which is
        the goal of one network.
    is_latency : bool
        Whether the figure is the latency of a burst.
    is_exact : bool
        Whether the figure says how right a result is, not how fast: disagreements, rounding errors.
    """

    row: str
    other: str
    goal: str
    is_latency: bool
    is_exact: bool = False
    measured: str = ""
    worst_of: str = ""
    interval: str = ""
    against_other: str = ""
    floor: str = ""
    of_floor: str = ""
    verdict: str = NOT_MEASURED
    of_figure: str = NOT_MEASURED
    by: str = ""
    sources: str = ""
    other_from: str = ""
    doubt: str = ""
    absent: str = ""
    earlier: str = ""
    so_far: bool = False

    @property
    def decided(self) -> str:
        """``PASS``, ``PASS, so far``, ``FAIL, by 2.6 %``, ``FAIL, by 2.6 %, no floor``, or verdict and doubt."""
        if self.doubt:
            return f"{self.verdict}, {self.doubt}"
        if self.verdict not in _MISSED:
            return f"{self.verdict}, so far" if self.so_far else self.verdict
        parts = self.verdict, f"by {self.by}" if self.by else "", "" if self.floor else "no floor"
        return ", ".join(filter(None, parts))

    @property
    def word(self) -> str:
        """The verdict as it is shown, ``FAIL by 2.6 %``; a figure that met its goal but does not count did not miss."""
        if self.is_not_counted:
            return _NOT_COUNTED
        return f"{self.verdict} so far" if self.so_far else f"{self.verdict} by {self.by}" if self.by else self.verdict

    @property
    def is_not_counted(self) -> bool:
        """Whether the figure met its goal but does not count."""
        return bool(self.doubt) and self.of_figure in _MET

    @property
    def is_measured(self) -> bool:
        """Whether this run has a figure for the goal."""
        return self.verdict != NOT_MEASURED


def goal_rows(record: RunRecord, targets: Sequence[Target] | None = None) -> tuple[GoalRow, ...]:
    """Every goal with what the run measured, or why it measured nothing; ``targets`` are the checkout's by default.

    Latencies come first, those for GPUs before the others. The worst of several figures counts. A goal that a later one
    replaced is listed only if the run has a figure for it and none for the later one, and says so.
    """
    record = settled(record)
    measurements = record.by_place
    known = ((one, measurements.get((one.case, one.index))) for one in record.judgements if one.target)
    judged = grouped(
        ((one, measurement) for one, measurement in known if measurement is not None), lambda pair: pair[0].target
    )
    doubts = doubts_of(record)
    unfinished = {stage.stage for stage in record.stages if stage.problem and not stage.ended_utc}
    goals = [(_with_peer(target, record), judged.get(target.id, [])) for target in _goals(targets, judged)]
    later = later_goals(target for target, _ in goals)
    rows = []
    for target, found in goals:
        if not found:
            rows.append(replace(_named(target), absent=why_absent(target, record)))
            continue
        row = replace(_row(target, found, doubts), earlier=_earlier(later.get(target.id)))
        is_met = row.verdict in _MET and not row.is_latency
        rows.append(replace(row, so_far=is_met and stage_of_target(target) in unfinished))
    return tuple(rows)


def open_goals(rows: Iterable[GoalRow]) -> tuple[tuple[str, tuple[GoalRow, ...]], ...]:
    """Goals without a figure by reason, the most frequent reason first."""
    by_reason = grouped((row for row in rows if not row.is_measured), lambda row: row.absent)
    return tuple((why, tuple(found)) for why, found in sorted(by_reason.items(), key=lambda item: -len(item[1])))


def _earlier(later: Target | None) -> str:
    return f"a goal until {later.date}; for the one that took its place there is no figure" if later else ""


def _goals(targets: Sequence[Target] | None, judged: Collection[str]) -> list[Target]:
    """The goals in force, and replaced ones that alone have a figure; latencies first, those for GPUs before others."""
    goals = [target for target in (load_targets() if targets is None else targets) if target.is_goal]
    later = later_goals(goals)
    goals = [t for t in goals if t.id not in later or (t.id in judged and later[t.id].id not in judged)]
    return sorted(goals, key=lambda t: (t.measurement not in _GOALS_OF, t.conditions.get("backend") != "cuda"))


def goal_lines(rows: Sequence[GoalRow], *, every: bool = False) -> list[str]:
    """The table of the goals measured, or of ``every`` goal, the tally, the worst miss, and why others are absent."""
    table = goal_table([row for row in rows if every or row.is_measured])
    worst = worst_named((row.by, row.row) for row in rows if row.of_figure == Verdict.FAIL.value)
    tally = [goal_tally(rows) + (f"; worst miss {worst}" if worst else "")] if table else []
    absent = [f"{units.counted(len(found), 'goal')} not measured: {why}" for why, found in open_goals(rows)]
    return [*table, *tally, *absent]


def goal_tally(rows: Iterable[GoalRow]) -> str:
    """Counts of the goals measured: ``83 goals measured: 43 missed, 2 ambiguous, 38 met``.

    A goal that is missed counts as missed even if its result was not right, as in the first line of the run.
    """
    measured = [row for row in rows if row.is_measured]
    words = {Verdict.FAIL.value: "missed", Verdict.ERROR.value: "not judged", Verdict.AMBIGUOUS.value: "ambiguous"}
    met = [_OF_NO_ACCOUNT if row.doubt else "met so far" if row.so_far else "met" for row in measured]
    found = [words.get(row.of_figure, good) for row, good in zip(measured, met, strict=True)]
    order = (*words.values(), _OF_NO_ACCOUNT, "met so far", "met")
    counts = [f"{found.count(word)} {word}" for word in order if word in found]
    return f"{units.counted(len(found), 'goal')} measured: {', '.join(counts)}"


def goal_table(rows: Iterable[GoalRow]) -> list[str]:
    """The table as lines of text with aligned columns, then the notes, each once; empty without rows."""
    notes: dict[str, str] = {}
    lines = [line for row in rows for line in _lines(row, notes)]
    if not lines:
        return []
    widths = [max(map(len, column)) for column in zip(HEADS, *(line for line in lines if len(line) > 1), strict=True)]
    table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in (HEADS, *lines)]
    return [*table, "", *_READING, *(f"{mark} {text}" for text, mark in notes.items())]


def _lines(row: GoalRow, notes: dict[str, str]) -> list[tuple[str, ...]]:
    """The cells of a goal: one line, or two if the name is long. Notes that it refers to are added to ``notes``."""

    def noted(cell: str, note: str) -> str:
        return f"{cell} {notes.setdefault(note, f'[{len(notes) + 1}]')}" if cell and note else cell

    beside = row.other_from == HERE and not row.is_latency
    measured = row.measured if beside or not row.against_other else f"{row.measured} ({row.against_other})"
    other = noted(row.other, "" if row.other_from == HERE else row.other_from)
    cells = other, row.goal, measured, row.floor, row.of_floor, noted(row.word, _SO_FAR if row.so_far else row.doubt)
    figures = tuple(cell or "-" for cell in cells)
    name = noted(f"{row.row} ({row.worst_of})" if row.worst_of else row.row, row.earlier)
    return [(name, *figures)] if len(name) <= _NAME_WIDTH else [(name,), ("", *figures)]


def _worst(target: Target, judged: Sequence[_Judged]) -> _Judged:
    """The figure with the worst verdict of those judged by ``target``; of these a missing one, or the worst value."""
    least_is_worst = math.isfinite(target.low)

    def goodness(one: _Judged) -> tuple[int, float]:
        value = one[1].in_unit(target.unit)
        rank = WORST_FIRST.index(one[0].judgement.verdict)
        return rank, -math.inf if value is None else value if least_is_worst else -value

    return min(judged, key=goodness)


def _with_peer(target: Target, record: RunRecord) -> Target:
    """``target``; if this run timed other programs at the same work, the best of them replaces the older figures."""
    if target.measurement not in _GOALS_OF or target.conditions.get("scope") != _RESIDENT:
        return target
    wanted = {name: target.conditions[name] for name in _SAME_WORK if name in target.conditions}
    found = [
        Other(str(m.conditions["against"]), HERE, value)
        for m in record.measurements
        if m.name == _PEERS and (value := m.in_unit(target.unit)) is not None
        if all(meets(m.conditions.get(name, DEFAULTS.get(name, "")), one) for name, one in wanted.items())
    ]
    return replace(target, others=(min(found, key=lambda one: one.value or math.inf),)) if found else target


def _named(target: Target) -> GoalRow:
    """The row of a goal without a figure of this run."""
    best = target.others[0] if target.others else None
    other = "" if best is None else best.name
    if best is not None and best.value is not None:
        other = f"{units.shown(best.value, target.unit)} {best.name}"
    here = best is not None and best.source == HERE
    since = HERE if here else f"elsewhere, {target.date}" if other else ""
    sources = "; ".join(
        (one.name if one.value is None else f"{one.name}: {units.shown(one.value, target.unit)}") + f" ({one.source})"
        for one in target.others
    )
    return GoalRow(
        target.words,
        other,
        target.limit_text,
        target.measurement in _GOALS_OF,
        target.measurement.startswith(_EXACT),
        sources=sources,
        other_from=since,
    )


def _row(target: Target, judged: Sequence[_Judged], doubts: Doubts) -> GoalRow:
    """The row of a goal, with the worst of the figures that were judged by it."""
    decided, measurement = _worst(target, judged)
    value = measurement.in_unit(target.unit)
    failed = doubts.about(decided.case, measurement)
    without_base = decided.judgement.reason_code is ReasonCode.BASE_IMPOSSIBLE
    floor = _floor(decided.judgement, measurement, target)
    count = sum(one.aggregate.count if one.aggregate else 1 for _, one in judged)
    return replace(
        _beside_other(target, measurement, value),
        measured="missing" if value is None else units.fitting(value, target.unit),
        worst_of="" if count == 1 else f"worst of {count}",
        interval=_interval(measurement, target),
        floor="" if floor is None else units.fitting(floor, target.unit),
        of_floor="" if floor is None or not value else _share(value, floor, target),
        verdict=Verdict.FAIL.value if failed else decided.judgement.verdict.value,
        of_figure=decided.judgement.verdict.value,
        by=by_of(decided.judgement),
        doubt=failed or (decided.judgement.text if without_base else ""),
    )


def _beside_other(target: Target, measurement: Measurement, value: float | None) -> GoalRow:
    """The row of a goal with the gain over the other program, which the case of a ratio measured and names itself."""
    row = _named(target)
    against = str(measurement.conditions.get("against", "")) if target.unit == "x" else ""
    if against:
        gain = "" if value is None else units.shown(round(value, 2), "x")
        return replace(row, other=_PROGRAMS.get(against, against), other_from=HERE, against_other=gain)
    best = target.others[0].value if target.others else None
    return replace(row, against_other=units.shown(round(best / value, 1), "x")) if best is not None and value else row


def _floor(judgement: Judgement, measurement: Measurement, target: Target) -> float | None:
    """The floor of the judgement, which may be the target's; in records without limits that of the measurement."""
    if judgement.limits and judgement.limits.floor is not None:
        return units.converted(judgement.limits.floor, judgement.unit, target.unit)
    return units.converted(measurement.number(FLOOR_CONDITION), measurement.unit, target.unit)


def _share(value: float, floor: float, target: Target) -> str:
    """The share of the floor that was reached: at most 100 %, for times and for rates."""
    reached = value / floor if floor and higher_is_better(target.unit, target) else floor / value
    return f"{100.0 * reached:.0f} %"


def _interval(measurement: Measurement, target: Target) -> str:
    interval = interval_of(measurement)
    ends = () if interval is None else (interval.low, interval.high)
    in_unit = [units.converted(end, measurement.unit, target.unit) for end in ends]
    return " to ".join(units.fitting(end, target.unit) for end in in_unit if end is not None)
