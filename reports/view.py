"""Everything that the report of a run shows, computed from its record. The templates only lay it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.evidence import Evidence, evidence_of
from reports.judge.absent import unjudged
from reports.judge.bases import settled
from reports.judge.decided import Counts, decided_targets, stage_counts, told
from reports.judge.goals import GoalRow, goal_rows, goal_tally, open_goals
from reports.judge.rightness import rightness
from reports.judge.summary import Summary, first_line, remarks, summarise
from reports.judge.targets import Target, load_targets
from reports.judge.trace import Status, TraceRow, is_left_out, reasons, status_text, trace, unknown_ids
from reports.judge.verdict import WORST_FIRST, case_verdict, stage_verdict
from reports.rows import Line, Row, lines_of, measurement_rows
from reports.values import units
from reports.values.grouped import grouped
from reports.values.machine import machine_of
from reports.values.measurement import SPAN, CaseResult, Outcome, Verdict
from reports.values.record import RunRecord, StageRun

_TILES, _FEW_GOALS, _MOST_GOALS = 8, 14, 24
_LONGEST_REASON = 80
_LATENCY, _PARITY = "burst.latency", "parity."


@dataclass(frozen=True)
class StageCard:
    """One stage at a glance.

    ``ended`` counts how its cases ended, ``figures`` what is wrong with their figures. ``bars`` has the percentage of
    the cases with each verdict.
    """

    run: StageRun
    verdict: Verdict
    ended: Counts
    figures: Counts
    bars: tuple[tuple[str, float], ...]

    @property
    def duration(self) -> str:
        """As text: ``12.5 s``, ``11.0 min``; a dash for a stage without a duration."""
        seconds = self.run.duration_s
        if seconds == 0.0:
            return "-"
        return f"{seconds:.1f} s" if seconds < 90.0 else f"{seconds / 60.0:.1f} min"


@dataclass(frozen=True)
class Finding:
    """Cases of one stage that did not pass, with the same verdict and reasons: the first one, and the ``others``."""

    verdict: Verdict
    case: CaseResult
    reasons: tuple[str, ...]
    others: tuple[CaseResult, ...]

    @property
    def requirements(self) -> tuple[str, ...]:
        """The requirements of all the cases, each once."""
        return tuple(dict.fromkeys(name for case in (self.case, *self.others) for name in case.requirements))


@dataclass(frozen=True)
class Group:
    """Measurements of one name, the worst verdict first; ``lines`` are the same in a table, ``counts`` by verdict."""

    name: str
    rows: tuple[Row, ...]
    lines: tuple[Line, ...]
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Family:
    """Groups whose names begin with the same word: ``matmul`` of ``matmul.latency``."""

    name: str
    groups: tuple[Group, ...]

    @property
    def figures(self) -> int:
        """How many measurements there are."""
        return sum(len(group.rows) for group in self.groups)

    @property
    def worse(self) -> tuple[tuple[str, int], ...]:
        """The number of measurements by verdict, without PASS and SKIPPED."""
        verdicts = [row.verdict for group in self.groups for row in group.rows]
        return tuple((one.value, verdicts.count(one)) for one in WORST_FIRST[:4] if one in verdicts)


@dataclass(frozen=True)
class View:
    """Everything the report template needs.

    Attributes
    ----------
    line : str
        The summary in one line, without the verdict.
    remarks : tuple of str
        What a reader has to know before trusting the figures.
    cases, requirements : tuple of (class, word, count)
        The counts add up to all cases and all requirements; the class is that of the badge in the style sheet.
    right : Verdict and str
        Whether results were right, and a sentence about it.
    headline : tuple of GoalRow
        The goals on the first screen.
    skipped : str
        How many cases were skipped, and the most frequent reasons; empty if there are none. Cases that the plan leaves
        out are not among them.
    skips : tuple of (str, list of str)
        Each reason, with the cases that were skipped for it.
    gaps : tuple of (str, list of TraceRow)
        Each reason, with the requirements that are not proven for it.
    goals, goals_more, goals_met : tuple of GoalRow
        The table of goals in three parts: shown, folded because the table would be too long, folded because met.
    goals_tally : str
        How many goals were missed and met.
    goals_open : tuple of (str, tuple of GoalRow)
        Each reason, with the goals that were not measured for it.
    latency, parity, others : tuple
        All measurements, each in one of the three.
    usual_telemetry : mapping
        Values that most measurements share. The row of a measurement shows only those that differ.
    unjudged : tuple of (Target, str)
        Targets that no measurement of this run was judged by, and why.
    """

    record: RunRecord
    line: str
    remarks: tuple[str, ...]
    machine: str
    summary: Summary
    cases: tuple[tuple[str, str, int], ...]
    requirements: tuple[tuple[str, str, int], ...]
    right: tuple[Verdict, str]
    headline: tuple[GoalRow, ...]
    stages: tuple[StageCard, ...]
    findings: tuple[Finding, ...]
    skipped: str
    skips: tuple[tuple[str, list[str]], ...]
    gaps: tuple[tuple[str, list[TraceRow]], ...]
    goals: tuple[GoalRow, ...]
    goals_more: tuple[GoalRow, ...]
    goals_met: tuple[GoalRow, ...]
    goals_tally: str
    goals_open: tuple[tuple[str, tuple[GoalRow, ...]], ...]
    latency: tuple[Line, ...]
    parity: tuple[Group, ...]
    others: tuple[Family, ...]
    telemetry: tuple[Row, ...]
    usual_telemetry: Mapping[str, str]
    unjudged: tuple[tuple[Target, str], ...]
    trace: tuple[TraceRow, ...]
    evidence: Evidence
    unknown_ids: tuple[str, ...]
    hardware: tuple[tuple[str, str], ...]
    gpus: tuple[Mapping[str, str], ...]

    @property
    def thinned(self) -> str:
        """A sentence about figures of an older baseline that stand for several; empty if there are none."""
        aggregates = [m.aggregate for m in self.record.measurements if m.aggregate]
        if not aggregates:
            return ""
        figures = "figure stands" if len(aggregates) == 1 else "figures stand"
        return (
            f"A thinned record: {len(aggregates)} {figures} for {sum(one.count for one in aggregates)} that passed, "
            "and long rows of samples are shortened."
        )

    def status(self, row: TraceRow) -> str:
        """The status of a requirement in words."""
        return status_text(row.status, self.record.plan)


def build_view(record: RunRecord, targets: Sequence[Target] | None = None) -> View:
    """Compute everything the report shows; ``targets`` are those of the checkout by default."""
    known = load_targets() if targets is None else tuple(targets)
    record = settled(record)
    rows = trace(record)
    summary = summarise(record, rows)
    every = measurement_rows(record, known)
    latency = sorted((row for row in every if row.name == _LATENCY), key=lambda row: row.sort_key)
    parity = [row for row in every if row.name.startswith(_PARITY)]
    others = [row for row in every if row.name not in (_LATENCY, SPAN) and not row.name.startswith(_PARITY)]
    with_telemetry = tuple(row for row in every if row.telemetry)
    goals = goal_rows(record, known)
    measured = [goal for goal in goals if goal.is_measured]
    few = len(measured) <= _FEW_GOALS
    shown = tuple(goal for goal in measured if few or goal.is_latency or goal.verdict != Verdict.PASS.value)
    return View(
        record=record,
        line=first_line(record, summary, why_skipped=False).partition(": ")[2],
        remarks=remarks(record),
        machine=machine_of(record).label,
        summary=summary,
        cases=_case_counts(summary),
        requirements=_requirement_counts(summary, record.plan),
        right=rightness(record),
        headline=_headline(goals),
        stages=tuple(_stage_cards(record)),
        findings=_findings(record),
        skipped=_skipped(record.cases),
        skips=_skips(record.cases),
        gaps=_gaps(rows),
        goals=shown[:_MOST_GOALS],
        goals_more=shown[_MOST_GOALS:],
        goals_met=tuple(goal for goal in measured if goal not in shown),
        goals_tally=goal_tally(goals),
        goals_open=open_goals(goals),
        latency=lines_of(latency),
        parity=_groups(parity),
        others=_families(others),
        telemetry=with_telemetry,
        usual_telemetry=_usual([row.telemetry for row in with_telemetry]),
        unjudged=unjudged(record, known),
        trace=rows,
        evidence=evidence_of(rows),
        unknown_ids=unknown_ids(record),
        hardware=tuple(_flat({key: value for key, value in record.hardware.items() if key != "gpus"})),
        gpus=_gpus(record.hardware.get("gpus")),
    )


def _case_counts(summary: Summary) -> tuple[tuple[str, str, int], ...]:
    """Counts of cases by verdict, the worst first, with FAIL and SKIPPED split by cause; none is 0 but PASS."""
    counts = [("fail", "failed by figures", summary.by_figures), ("fail", "broken", summary.broken)]
    counts += [(one.value.lower(), one.value.lower(), summary.cases.get(one, 0)) for one in WORST_FIRST[1:-1]]
    counts += [("skipped", "skipped", summary.skipped), ("skipped", "left out by the plan", summary.left_out)]
    return tuple(one for one in counts if one[2] or one[1] == "pass")


def _requirement_counts(summary: Summary, plan: str) -> tuple[tuple[str, str, int], ...]:
    looks = {
        Status.PROVEN: "pass",
        Status.PARTLY: "marginal",
        Status.FAILED: "fail",
        Status.UNDECIDED: "error",
        Status.NOT_PROVEN: "skipped",
        Status.LEFT_OUT: "skipped",
    }
    found = summary.requirements
    return tuple(
        (look, status_text(status, plan), found.get(status, 0))
        for status, look in looks.items()
        if status in found or status is Status.PROVEN
    )


def _headline(goals: Sequence[GoalRow]) -> tuple[GoalRow, ...]:
    """The goals for the first screen: missed ones first, then those that another program's figure is known for."""
    measured = [goal for goal in goals if goal.is_measured and not goal.is_exact]

    def rank(goal: GoalRow) -> tuple[bool, bool, bool]:
        return goal.verdict == Verdict.PASS.value, not goal.against_other, not goal.floor

    chosen = sorted(measured, key=rank)[:_TILES]
    return tuple(goal for goal in measured if goal in chosen)


def _groups(rows: Iterable[Row]) -> tuple[Group, ...]:
    return tuple(_group(name, members) for name, members in grouped(rows, lambda row: row.name).items())


def _group(name: str, rows: list[Row]) -> Group:
    verdicts = [row.verdict for row in rows]
    counts = tuple((verdict.value, verdicts.count(verdict)) for verdict in WORST_FIRST if verdict in verdicts)
    ordered = tuple(sorted(rows, key=lambda row: WORST_FIRST.index(row.verdict)))
    return Group(name, ordered, lines_of(ordered), counts)


def _families(rows: Iterable[Row]) -> tuple[Family, ...]:
    families = grouped(_groups(rows), lambda group: group.name.partition(".")[0])
    return tuple(Family(name, tuple(groups)) for name, groups in sorted(families.items()))


def _stage_cards(record: RunRecord) -> Iterable[StageCard]:
    decided = decided_targets(record)
    for stage in record.stages:
        cases = record.cases_of(stage.stage)
        verdicts = [case_verdict(case, record.judgements_of(case.case)) for case in cases]
        counts = [(verdict.value, verdicts.count(verdict)) for verdict in WORST_FIRST]
        bars = tuple((name, round(100.0 * count / len(verdicts), 2)) for name, count in counts if count)
        yield StageCard(stage, stage_verdict(record, stage), *stage_counts(record, stage.stage, decided), bars)


def _findings(record: RunRecord) -> tuple[Finding, ...]:
    found: dict[tuple[str, Verdict, tuple[str, ...]], list[CaseResult]] = {}
    for case in record.cases:
        verdict = case_verdict(case, record.judgements_of(case.case))
        if verdict not in (Verdict.PASS, Verdict.SKIPPED):
            found.setdefault((case.stage, verdict, tuple(_why_not_passed(case, record))), []).append(case)
    findings = (Finding(verdict, first, why, tuple(rest)) for (_, verdict, why), (first, *rest) in found.items())
    return tuple(sorted(findings, key=lambda finding: WORST_FIRST.index(finding.verdict)))


def _why_not_passed(case: CaseResult, record: RunRecord) -> Iterable[str]:
    if case.reason and case.outcome is not Outcome.PASSED:
        yield case.reason
    for judged in record.judgements_of(case.case):
        if judged.judgement.verdict is not Verdict.PASS:
            source = f" [target {judged.target}]" if judged.target else ""
            yield f"{judged.measurement}: {units.typeset(told(judged.judgement))}{source}"


def _skipped(cases: Iterable[CaseResult]) -> str:
    """A line about the cases that were skipped, without those that the plan leaves out."""
    found = [case for case in cases if case.outcome is Outcome.SKIPPED and not is_left_out(case)]
    if not found:
        return ""
    why = reasons(found, longest=_LONGEST_REASON).removesuffix(".")
    return f"{units.counted(len(found), 'case')} skipped: {why}."


def _skips(cases: Iterable[CaseResult]) -> tuple[tuple[str, list[str]], ...]:
    """Skipped cases by reason, the most frequent first; reasons of cases that the plan leaves out come last."""
    skipped = [case for case in cases if case.outcome is Outcome.SKIPPED]
    by_reason = grouped(skipped, lambda case: (is_left_out(case), case.reason or "no reason given"))
    ordered = sorted(by_reason.items(), key=lambda item: (item[0][0], -len(item[1])))
    return tuple((reason, [case.case for case in found]) for (_, reason), found in ordered)


def _usual(telemetry: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The value that more than half of the measurements have, and more than one, by name; of names that all have."""
    counts: dict[str, Counter[str]] = {}
    for one in telemetry:
        for name, value in one.items():
            counts.setdefault(name, Counter())[value] += 1
    most = {name: values.most_common(1)[0] for name, values in counts.items() if values.total() == len(telemetry)}
    return {name: value for name, (value, count) in most.items() if count > max(1, len(telemetry) / 2)}


def _gaps(rows: Iterable[TraceRow]) -> tuple[tuple[str, list[TraceRow]], ...]:
    """Requirements that nothing proves, by reason, the most frequent reason first."""
    unproven = (row for row in rows if row.status in (Status.NOT_PROVEN, Status.LEFT_OUT))
    by_reason = grouped(unproven, lambda row: row.reason)
    return tuple(sorted(by_reason.items(), key=lambda item: -len(item[1])))


def _gpus(value: object) -> tuple[Mapping[str, str], ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(dict(_flat(gpu)) for gpu in value if isinstance(gpu, Mapping))


def _flat(value: object, name: str = "") -> Iterable[tuple[str, str]]:
    """Nested values as pairs of dotted name and text, without those that are ``None``."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        if all(not isinstance(item, Mapping | list | tuple) for item in value):
            yield name, ", ".join(map(units.scalar_text, value)) or "none"
        else:
            for index, item in enumerate(value):
                yield from _flat(item, f"{name}[{index}]")
    elif value is not None:
        yield name, _named_scalar(name, value)


def _named_scalar(name: str, value: object) -> str:
    if name.endswith("_bytes") and isinstance(value, int) and not isinstance(value, bool):
        return f"{value / 1e9:.1f} GB"
    return units.scalar_text(value)
