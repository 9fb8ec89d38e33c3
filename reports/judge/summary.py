"""What a run comes to in one line, and the counts behind it: the first line of console and report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from reports.judge.trace import Status, TraceRow, reasons, trace
from reports.judge.verdict import case_verdict, run_verdict
from reports.values import units
from reports.values.measurement import Verdict
from reports.values.record import RunRecord


@dataclass(frozen=True)
class Summary:
    """Counts of a run: cases by verdict, requirements by status, and the closed gates."""

    verdict: Verdict
    cases: dict[Verdict, int]
    requirements: dict[Status, int]
    skipped: str
    problems: tuple[str, ...]
    narrowed: str = ""

    @property
    def case_count(self) -> int:
        """All cases, skipped ones included."""
        return sum(self.cases.values())

    @property
    def ran(self) -> int:
        """Cases that were not skipped."""
        return self.case_count - self.cases.get(Verdict.SKIPPED, 0)


def summarise(record: RunRecord, rows: Iterable[TraceRow] | None = None) -> Summary:
    """Count a run; ``rows`` saves tracing twice."""
    verdicts = [(case, case_verdict(case, record.judgements)) for case in record.cases]
    skipped = [case for case, verdict in verdicts if verdict is Verdict.SKIPPED]
    problems = [f"{stage.stage} did not finish: {stage.problem}" for stage in record.stages if stage.problem]
    planned = {case.stage for case in record.cases}
    for stage in record.stages:
        if not stage.problem and stage.gate_open and stage.stage not in planned:
            problems.append(f"{stage.stage} ran no case although its gate is open")
    if not record.finished_utc:
        problems.append("the run was interrupted")
    return Summary(
        verdict=run_verdict(record),
        cases=dict(Counter(verdict for _, verdict in verdicts)),
        requirements=dict(Counter(row.status for row in (trace(record) if rows is None else rows))),
        skipped=f"{units.counted(len(skipped), 'case')} skipped: {reasons(skipped)}" if skipped else "",
        problems=tuple(problems),
        narrowed=_narrowed(record),
    )


def _narrowed(record: RunRecord) -> str:
    """Say what something other than the plan left out; empty where nothing was."""
    gone = [case for stage in record.stages for case in stage.deselected]
    collected = sum(stage.collected for stage in record.stages)
    more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
    return f"a narrowed run: {len(gone)} of {collected} cases were left out: {gone[0]}{more}" if gone else ""


def first_line(record: RunRecord, summary: Summary | None = None) -> str:
    """The verdict, what is wrong, and what was not proven or skipped, in one line without markup."""
    known = summary or summarise(record)
    parts = [*filter(None, [known.narrowed]), _found(known), *known.problems]
    unproven = known.requirements.get(Status.NOT_PROVEN, 0)
    partly = known.requirements.get(Status.PARTLY, 0)
    total = sum(known.requirements.values())
    if unproven or partly:
        also = f", {partly} proven in part" if partly else ""
        parts.append(f"{unproven} of {total} requirements not proven{also}")
    if known.skipped:
        parts.append(known.skipped)
    return f"{known.verdict.value}: " + "; ".join(parts).removesuffix(".") + "."


def _found(summary: Summary) -> str:
    if not summary.ran:
        return "nothing ran"
    words = {Verdict.FAIL: "failed", Verdict.ERROR: "could not be judged", Verdict.AMBIGUOUS: "ambiguous"}
    bad = [f"{summary.cases[verdict]} {text}" for verdict, text in words.items() if summary.cases.get(verdict)]
    cases = units.counted(summary.ran, "case")
    if bad:
        return f"of {cases} that ran {', '.join(bad)}"
    marginal = summary.cases.get(Verdict.MARGINAL, 0)
    close = f", {marginal} of them close to a limit" if marginal else ""
    return f"all {cases} that ran passed{close}" if summary.ran > 1 else f"the one case that ran passed{close}"
