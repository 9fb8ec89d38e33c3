"""What the report shows, computed from a record: plain values that the templates only lay out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports.judge.goals import GoalRow, measured_goals
from reports.judge.summary import Summary, first_line, summarise
from reports.judge.targets import Target, load_targets, mismatch
from reports.judge.trace import Status, TraceRow, trace, unknown_ids
from reports.judge.verdict import WORST_FIRST, case_verdict, stage_verdict
from reports.rows import Row, measurement_rows
from reports.values import units
from reports.values.measurement import SPAN, CaseResult, Measurement, Outcome, Verdict
from reports.values.record import RunRecord, StageRun

_FEW = 12
_LATENCY, _PARITY = "burst.latency", "parity."


@dataclass(frozen=True)
class StageCard:
    """One stage at a glance; ``bars`` are (verdict, count, percent of the stage's cases)."""

    run: StageRun
    verdict: Verdict
    bars: tuple[tuple[str, int, float], ...]

    @property
    def duration(self) -> str:
        """For people: ``12.5 s``, ``11.0 min``."""
        seconds = self.run.duration_s
        return f"{seconds:.1f} s" if seconds < 90.0 else f"{seconds / 60.0:.1f} min"


@dataclass(frozen=True)
class Finding:
    """Cases of a stage that are not PASS, with one verdict and for the same reasons; ``others`` follow the first."""

    verdict: Verdict
    case: CaseResult
    reasons: tuple[str, ...]
    others: tuple[CaseResult, ...]

    @property
    def requirements(self) -> tuple[str, ...]:
        """Those of all the cases, each once."""
        return tuple(dict.fromkeys(name for case in (self.case, *self.others) for name in case.requirements))


@dataclass(frozen=True)
class Group:
    """Measurements of one name; ``unfolded`` where there are few, or one of them is not PASS."""

    name: str
    rows: tuple[Row, ...]
    counts: tuple[tuple[str, int], ...]
    unfolded: bool


@dataclass(frozen=True)
class View:
    """Everything the report template needs.

    ``skips`` are reasons with the cases skipped for them, ``unjudged`` targets that nothing in this run was held
    against, and why; ``latency``, ``parity`` and ``others`` are the measurements, each in one of them.
    """

    record: RunRecord
    first_line: str
    summary: Summary
    stages: tuple[StageCard, ...]
    findings: tuple[Finding, ...]
    skips: tuple[tuple[str, list[str]], ...]
    goals: tuple[GoalRow, ...]
    latency: tuple[Row, ...]
    parity: tuple[Group, ...]
    others: tuple[Group, ...]
    telemetry: tuple[Row, ...]
    unjudged: tuple[tuple[Target, str], ...]
    trace: tuple[TraceRow, ...]
    unknown_ids: tuple[str, ...]
    hardware: tuple[tuple[str, str], ...]
    gpus: tuple[Mapping[str, str], ...]

    @property
    def thinned(self) -> str:
        """What was put together when the record was thinned; empty of a whole one."""
        wholes = [m.aggregate for m in self.record.measurements if m.aggregate]
        if not wholes:
            return ""
        figures = "figure stands" if len(wholes) == 1 else "figures stand"
        return (
            f"A thinned record: {len(wholes)} {figures} for {sum(whole.count for whole in wholes)} that passed, "
            "and long rows of samples are shortened."
        )

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """Cases by verdict, worst first, PASS always among them."""
        return tuple(
            (verdict.value, self.summary.cases.get(verdict, 0))
            for verdict in WORST_FIRST
            if self.summary.cases.get(verdict) or verdict is Verdict.PASS
        )

    @property
    def proven(self) -> int:
        """How many requirements are proven without reservation."""
        return self.summary.requirements.get(Status.PROVEN, 0)

    @property
    def gaps(self) -> tuple[TraceRow, ...]:
        """Requirements that are not proven at all."""
        return tuple(row for row in self.trace if row.status is Status.NOT_PROVEN)


def build_view(record: RunRecord) -> View:
    """Compute everything the report shows."""
    rows = trace(record)
    summary = summarise(record, rows)
    every = measurement_rows(record)
    latency = sorted((row for row in every if row.name == _LATENCY), key=lambda row: row.sort_key)
    parity = [row for row in every if row.name.startswith(_PARITY)]
    others = [row for row in every if row.name not in (_LATENCY, SPAN) and not row.name.startswith(_PARITY)]
    return View(
        record=record,
        first_line=first_line(record, summary),
        summary=summary,
        stages=tuple(_stage_cards(record)),
        findings=_findings(record),
        skips=_skips(record.cases),
        goals=measured_goals(record),
        latency=tuple(latency),
        parity=_groups(parity),
        others=_groups(others),
        telemetry=tuple(row for row in every if row.telemetry),
        unjudged=_unjudged(record),
        trace=rows,
        unknown_ids=unknown_ids(record),
        hardware=tuple(_flat({key: value for key, value in record.hardware.items() if key != "gpus"})),
        gpus=_gpus(record.hardware.get("gpus")),
    )


def _groups(rows: Iterable[Row]) -> tuple[Group, ...]:
    named: dict[str, list[Row]] = {}
    for row in rows:
        named.setdefault(row.name, []).append(row)
    return tuple(_group(name, members) for name, members in named.items())


def _group(name: str, rows: list[Row]) -> Group:
    verdicts = [row.verdict for row in rows]
    counts = tuple((verdict.value, verdicts.count(verdict)) for verdict in WORST_FIRST if verdict in verdicts)
    ordered = sorted(rows, key=lambda row: WORST_FIRST.index(row.verdict))
    return Group(name, tuple(ordered), counts, len(rows) <= _FEW or any(v is not Verdict.PASS for v in verdicts))


def _stage_cards(record: RunRecord) -> Iterable[StageCard]:
    for stage in record.stages:
        verdicts = [case_verdict(case, record.judgements) for case in record.cases if case.stage == stage.stage]
        counts = [(verdict.value, verdicts.count(verdict)) for verdict in WORST_FIRST]
        bars = tuple((name, count, round(100.0 * count / len(verdicts), 2)) for name, count in counts if count)
        yield StageCard(stage, stage_verdict(record, stage), bars)


def _findings(record: RunRecord) -> tuple[Finding, ...]:
    found: dict[tuple[str, Verdict, tuple[str, ...]], list[CaseResult]] = {}
    for case in record.cases:
        verdict = case_verdict(case, record.judgements)
        if verdict in (Verdict.PASS, Verdict.SKIPPED):
            continue
        reasons = [case.reason] if case.reason and case.outcome is not Outcome.PASSED else []
        for judged in record.judgements:
            if judged.case == case.case and judged.judgement.verdict is not Verdict.PASS:
                source = f" [target {judged.target}]" if judged.target else ""
                reasons.append(f"{judged.measurement}: {judged.judgement.text}{source}")
        found.setdefault((case.stage, verdict, tuple(reasons)), []).append(case)
    findings = (Finding(verdict, first, why, tuple(rest)) for (_, verdict, why), (first, *rest) in found.items())
    return tuple(sorted(findings, key=lambda finding: WORST_FIRST.index(finding.verdict)))


def _skips(cases: Iterable[CaseResult]) -> tuple[tuple[str, list[str]], ...]:
    found: dict[str, list[str]] = {}
    for case in cases:
        if case.outcome is Outcome.SKIPPED:
            found.setdefault(case.reason or "no reason given", []).append(case.case)
    return tuple(sorted(found.items(), key=lambda item: -len(item[1])))


def _unjudged(record: RunRecord) -> tuple[tuple[Target, str], ...]:
    used, measurements = {judged.target for judged in record.judgements}, record.measurements
    unused = (target for target in load_targets() if target.id not in used)
    return tuple((target, _why_unjudged(target, measurements)) for target in unused)


def _why_unjudged(target: Target, measurements: Iterable[Measurement]) -> str:
    """The reason given by the measurement that came closest to the target's conditions."""
    if target.not_judged:
        return target.not_judged
    names = list(target.conditions)
    reasons = [mismatch(m, target) for m in measurements if m.name == target.measurement]
    if not reasons:
        return "nothing here measures it"
    return max(reasons, key=lambda reason: next((i for i, name in enumerate(names) if f"{name} " in reason), -1))


def _gpus(value: object) -> tuple[Mapping[str, str], ...]:
    if not isinstance(value, list | tuple):
        return ()
    return tuple(dict(_flat(gpu)) for gpu in value if isinstance(gpu, Mapping))


def _flat(value: object, name: str = "") -> Iterable[tuple[str, str]]:
    """Nested values as (dotted name, text), leaving out what is not there."""
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
