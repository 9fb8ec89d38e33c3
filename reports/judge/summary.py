"""Sums a run up in one line, the first of console and report, with the counts behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from reports.judge.bases import settled
from reports.judge.contention import busy, in_doubt
from reports.judge.decided import Decided, decided_targets, target_counts, worst_named
from reports.judge.plausible import more_than_linear
from reports.judge.trace import Status, TraceRow, is_left_out, reasons, status_text, trace
from reports.judge.verdict import case_verdict, run_verdict
from reports.values import units
from reports.values.judgement import ReasonCode
from reports.values.measurement import Outcome, Verdict
from reports.values.provenance import provenance_lines, stages_of
from reports.values.record import NIGHTLY, RunRecord

_SHOWN = 3
_NO_FIGURE = (
    ReasonCode.VALUE_MISSING,
    ReasonCode.VALUE_NAN,
    ReasonCode.VALUE_INFINITE,
    ReasonCode.SAMPLE_INVALID,
)


@dataclass(frozen=True)
class Summary:
    """Counts of a run.

    Attributes
    ----------
    verdict : Verdict
    cases : dict
        Number of cases by verdict, with those that were skipped or left out.
    requirements : dict
        Number of requirements by status; the sum is that of all requirements.
    left_out : int
        Skipped cases that the plan leaves out.
    missed : tuple of Decided
        Targets that were missed, also those of the notes.
    by_figures : int
        Cases that failed only because a figure missed its target: what they checked was right.
    broken : int
        Cases whose own checks failed.
    absent : int
        Figures that are missing or not finite.
    skipped : int
        Cases that were skipped for another reason than the plan.
    why_skipped : str
        The most frequent reasons of those.
    problems : tuple of str
        What kept stages from finishing.
    """

    verdict: Verdict
    cases: dict[Verdict, int]
    requirements: dict[Status, int]
    left_out: int
    missed: tuple[Decided, ...]
    by_figures: int
    broken: int
    absent: int
    skipped: int
    why_skipped: str
    problems: tuple[str, ...]

    @property
    def case_count(self) -> int:
        """All cases, skipped ones included."""
        return sum(self.cases.values())

    @property
    def ran(self) -> int:
        """Cases that were not skipped."""
        return self.case_count - self.cases.get(Verdict.SKIPPED, 0)


def summarise(record: RunRecord, rows: Iterable[TraceRow] | None = None) -> Summary:
    """Count a run; ``rows`` is its matrix of requirements, computed here if it is not given."""
    record = settled(record)
    verdicts = [(case, case_verdict(case, record.judgements_of(case.case))) for case in record.cases]
    skipped = [case for case, verdict in verdicts if verdict is Verdict.SKIPPED]
    others = [case for case in skipped if not is_left_out(case)]
    broken = sum(case.outcome is Outcome.FAILED for case in record.cases)
    return Summary(
        verdict=run_verdict(record),
        cases=dict(Counter(verdict for _, verdict in verdicts)),
        requirements=dict(Counter(row.status for row in (trace(record) if rows is None else rows))),
        left_out=len(skipped) - len(others),
        missed=tuple(one for one in decided_targets(record) if one.verdict is Verdict.FAIL),
        by_figures=sum(verdict is Verdict.FAIL for _, verdict in verdicts) - broken,
        broken=broken,
        absent=sum(judged.judgement.reason_code in _NO_FIGURE for judged in record.judgements),
        skipped=len(others),
        why_skipped=reasons(others) if others else "",
        problems=tuple(_problems(record)),
    )


def _problems(record: RunRecord) -> Iterable[str]:
    with_cases = {case.stage for case in record.cases}
    for stage in record.stages:
        if stage.problem:
            yield f"{stage.stage} did not finish: {stage.problem}"
        elif stage.gate_open and stage.stage not in with_cases:
            yield f"{stage.stage} ran no case although its gate is open"
    if not record.finished_utc:
        yield "the run was interrupted"


def first_line(record: RunRecord, summary: Summary | None = None, *, why_skipped: bool = True) -> str:
    """Verdict, what is wrong, and what was not proven or skipped, in one line of plain text.

    ``why_skipped=False`` leaves out the reasons of skipped cases.
    """
    known = summary or summarise(record)
    parts = [*_narrowed(record), *_found(known), *in_doubt(record), *known.problems, _requirements(known, record.plan)]
    if known.left_out:
        parts.append(f"{units.counted(known.left_out, 'case')} left out by the {record.plan} plan")
    if known.skipped:
        reason = f": {known.why_skipped}" if why_skipped else ""
        parts.append(f"{units.counted(known.skipped, 'case')} skipped{reason}")
    return units.typeset(f"{known.verdict.value}: " + "; ".join(parts).removesuffix(".") + ".")


def _narrowed(record: RunRecord) -> list[str]:
    """Cases that something other than the plan left out."""
    gone = [case for stage in record.stages for case in stage.deselected]
    collected = sum(stage.collected for stage in record.stages)
    named = units.first_of(gone, 1)
    return [f"a narrowed run: {len(gone)} of {collected} cases were left out: {named}"] if gone else []


def _found(summary: Summary) -> Iterable[str]:
    """Targets missed and figures missing; then counts of cases, which add up to those that ran."""
    if not summary.ran:
        yield "nothing ran"
        return
    for is_goal in (True, False):
        missed = [one for one in summary.missed if one.is_goal is is_goal]
        worst = worst_named((one.by, one.what) for one in missed)
        of_many = "the worst " if len(missed) > 1 else ""
        yield from (f"{text}, {of_many}{worst}" if worst else text for _, text in target_counts(missed))
    if summary.absent:
        yield f"{units.counted(summary.absent, 'figure')} missing or not finite"
    if summary.by_figures:
        yield f"{units.counted(summary.by_figures, 'case')} failed by figures"
    if summary.broken:
        yield f"{units.counted(summary.broken, 'case')} broken"
    for verdict, text in (Verdict.AMBIGUOUS, "ambiguous"), (Verdict.ERROR, "could not be judged"):
        if summary.cases.get(verdict):
            yield f"{units.counted(summary.cases[verdict], 'case')} {text}"
    passed = summary.cases.get(Verdict.PASS, 0) + summary.cases.get(Verdict.MARGINAL, 0)
    close = f", {summary.cases[Verdict.MARGINAL]} of them close to a limit" if Verdict.MARGINAL in summary.cases else ""
    if passed < summary.ran:
        yield f"{passed} of {units.counted(summary.ran, 'case')} that ran passed{close}"
    else:
        yield (f"all {passed} cases that ran passed" if passed > 1 else "the one case that ran passed") + close


def _requirements(summary: Summary, plan: str) -> str:
    """Requirements by status; each is in one of the counts."""
    found = summary.requirements
    counts = [f"{found[status]} {status_text(status, plan)}" for status in Status if status in found]
    return f"of {sum(found.values())} requirements {', '.join(counts)}"


def remarks(record: RunRecord) -> tuple[str, ...]:
    """What a reader has to know about a run before trusting its figures, a sentence each."""
    return tuple(_remarks(record))


def _remarks(record: RunRecord) -> Iterable[str]:
    lost = [name for stage in record.stages for name in stage.deselected]
    if lost:
        yield f"Narrowed by something other than the plan; not run: {_few(lost)}."
    left_out = sum(is_left_out(case) for case in record.cases)
    if left_out:
        wider = "--nightly" if record.plan == "thorough" else "--thorough"
        yield f"The {record.plan} plan leaves out {units.counted(left_out, 'case')}; {wider} runs them."
    elif record.plan != NIGHTLY and record.schema_version > 1 and not record.asked:
        yield f"The {record.plan} plan was run."
    if record.asked:
        yield f"Only {units.listed(record.asked)} of the plan {'was' if len(record.asked) == 1 else 'were'} asked for."
    others = [f"{stage.stage} ({text})" for stage in record.stages if (text := busy(stage))]
    if others:
        yield f"The machine was busy with other work, so timings may be too slow: {_few(others)}."
    many = [one for one in record.measurements if more_than_linear(one)]
    if many:
        figures = [f"{one.name} {units.readable(one.figure or 0.0, one.unit)}" for one in many]
        yield f"More than linear, which shows that the base is slow, not that the many are fast: {_few(figures)}."
    if len(record.invocations) > 1:
        starts = [f"{one.started_utc}, {' '.join(stages_of(record, one)) or 'no stage'}" for one in record.invocations]
        yield f"{len(record.invocations)} starts of the runner contributed: {_few(starts)}."
    environments = [record.environment, *(one.environment for one in record.invocations)]
    commits = tuple(dict.fromkeys(one.git_commit[:12] for one in environments if one.git_commit))
    if len(commits) > 1:
        yield f"The starts of the runner were at different commits: {_few(commits)}."
    if any(one.git_dirty for one in environments) and not record.environment.git_changes:
        yield "Not the commit itself: the checkout had local changes."
    yield from provenance_lines(record)


def _few(texts: Sequence[str]) -> str:
    return units.first_of(texts, _SHOWN)
