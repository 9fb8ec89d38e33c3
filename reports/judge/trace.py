"""The matrix of requirements: which cases and measurements prove each one, or why nothing does."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from reports.judge.verdict import case_verdict
from reports.values import units
from reports.values.measurement import CaseResult, Outcome, Verdict
from reports.values.record import PLAN_KINDS, RunRecord
from reports.values.requirements import Requirement, load_requirements

_LEFT_OUT = tuple(f"{kind} plan: " for kind in PLAN_KINDS)
_CLOSED = re.compile(r"gate (?P<gate>\w+) is closed: (?P<cause>.+)", re.DOTALL)


class Status(Enum):
    """What a run shows about a requirement."""

    PROVEN = "proven"
    PARTLY = "proven in part"
    FAILED = "failed"
    UNDECIDED = "could not be judged"
    NOT_PROVEN = "not proven"
    LEFT_OUT = "left out by the plan"


def status_text(status: Status, plan: str) -> str:
    """The status as text; a requirement that the plan leaves out reads *not proven*, with the name of the plan."""
    return f"{Status.NOT_PROVEN.value} ({plan} plan)" if status is Status.LEFT_OUT else status.value


@dataclass(frozen=True)
class TraceRow:
    """What a run shows about one requirement.

    ``reason`` says why it is not proven, or not in full. ``cases`` are the node ids of the cases that prove it,
    ``measurements`` the names of their measurements, both in order.
    """

    requirement: Requirement
    status: Status
    reason: str
    cases: tuple[str, ...]
    measurements: tuple[str, ...]


def trace(record: RunRecord) -> tuple[TraceRow, ...]:
    """One row per requirement, in the order of ``requirements.toml``, with or without cases."""
    bearing: dict[str, list[CaseResult]] = {}
    for case in record.cases:
        for name in _carried(case) | set(case.bears_on):
            bearing.setdefault(name, []).append(case)
    return tuple(_row(requirement, bearing.get(requirement.id, []), record) for requirement in load_requirements())


def unknown_ids(record: RunRecord) -> tuple[str, ...]:
    """Ids that cases or measurements carry although no requirement has them: misprints in a suite."""
    known = {requirement.id for requirement in load_requirements()}
    carried = {name for case in record.cases for name in _carried(case)}
    return tuple(sorted(carried - known))


def _carried(case: CaseResult) -> set[str]:
    measured = {name for measurement in case.measurements for name in measurement.requirements}
    return measured | set(case.requirements)


def _row(requirement: Requirement, bearing: list[CaseResult], record: RunRecord) -> TraceRow:
    cases = [case for case in bearing if proves(case, requirement)]
    names = [m.name for case in cases for m in case.measurements if _bears(requirement.id, case, m.requirements)]
    status, reason = _status(requirement, cases, bearing, record)
    return TraceRow(requirement, status, reason, tuple(case.case for case in cases), tuple(dict.fromkeys(names)))


def proves(case: CaseResult, requirement: Requirement) -> bool:
    """Whether a case counts as proof: it carries the requirement's id and is in one of the requirement's stages.

    Cases of other stages, such as the unit tests, only bear on it: their failure counts, their pass does not.
    """
    return requirement.id in _carried(case) and case.stage in requirement.stages


def _bears(name: str, case: CaseResult, requirements: tuple[str, ...]) -> bool:
    """Whether a measurement bears on a requirement: by its own ids, or by those of its case if it has none."""
    return name in (requirements or case.requirements)


def _status(
    requirement: Requirement, cases: list[CaseResult], bearing: list[CaseResult], record: RunRecord
) -> tuple[Status, str]:
    judged = [(case, case_verdict(case, record.judgements_of(case.case))) for case in bearing]
    for status, *bad in (Status.FAILED, Verdict.FAIL), (Status.UNDECIDED, Verdict.ERROR, Verdict.AMBIGUOUS):
        hit = [case for case, verdict in judged if verdict in bad]
        if hit:
            return status, f"{units.counted(len(hit), 'case')} of {len(bearing)}: {hit[0].case}"
    proofs = {case.case for case in cases}  # the others bear on the requirement, but do not prove it
    skipped = [case for case, verdict in judged if verdict is Verdict.SKIPPED and case.case in proofs]
    if cases and all(map(is_left_out, cases)):
        return Status.LEFT_OUT, reasons(skipped)
    if len(skipped) == len(cases):
        return Status.NOT_PROVEN, _why_not(requirement, skipped, bearing, record)
    gaps = []
    if skipped:
        gaps.append(f"{units.counted(len(skipped), 'case')} of {len(cases)} skipped: {reasons(skipped)}")
    idle = [name for name in requirement.stages if all(case.stage != name for case in cases)]
    if idle:
        gaps.append(f"no case in {' and '.join(idle)}")
    return (Status.PARTLY, "; ".join(gaps)) if gaps else (Status.PROVEN, "")


def is_left_out(case: CaseResult) -> bool:
    """Whether the case was skipped because only a larger plan runs it."""
    return case.outcome is Outcome.SKIPPED and case.reason.startswith(_LEFT_OUT)


def _why_not(requirement: Requirement, skipped: list[CaseResult], bearing: list[CaseResult], record: RunRecord) -> str:
    """Why nothing proves a requirement: of the cases that would prove it, all were ``skipped``, or there are none."""
    if skipped:
        return f"not here: {reasons(skipped)}"
    planned = {stage.stage: stage for stage in record.stages}
    absent = [name for name in requirement.stages if name not in planned]
    if absent:
        return f"{units.listed(absent)} not in this run"
    if bearing and all(case.outcome is Outcome.SKIPPED for case in bearing):
        return f"not here: {reasons(bearing)}"
    with_cases = {case.stage for case in record.cases}
    for stage in (planned[name] for name in requirement.stages if name not in with_cases):
        if stage.problem or not stage.gate_open:
            return f"no case; {stage.stage}: {stage.problem or stage.gate_reason}"
    if requirement.gap:
        return f"a known gap of the repository, no fault of this run: {requirement.gap}"
    return f"{units.counted(len(bearing), 'case')} bear on it, none proves it" if bearing else "no case bears on it"


def reasons(skipped: Sequence[CaseResult], most: int = 3, longest: int | None = None) -> str:
    """The ``most`` frequent reasons of skipped cases; if there are several, each with its number of cases.

    Gates that are closed for the same cause count as one reason. A reason of more than ``longest`` characters is cut.
    """
    causes: dict[tuple[str, str], Counter[str]] = {}
    for case in skipped:
        gate, cause = _gate_and_cause(case.reason or "no reason given")
        causes.setdefault((cause, "gate" if gate else ""), Counter())[gate] += 1
    ordered = sorted(causes.items(), key=lambda item: -item[1].total())
    texts = [(_shortened(_reason(cause, gates), longest), gates.total()) for (cause, _), gates in ordered]
    if len(texts) == 1:
        return texts[0][0]
    shown = [f"{text.removesuffix('.')} ({count})" for text, count in texts[:most]]
    rest = len(ordered) - len(shown)
    return "; ".join(shown) + (f"; and {units.counted(rest, 'other reason')}" if rest else "")


def _shortened(text: str, longest: int | None) -> str:
    return text if longest is None else textwrap.shorten(text, longest, placeholder=" …")


def _gate_and_cause(reason: str) -> tuple[str, str]:
    found = _CLOSED.fullmatch(reason)
    return (found["gate"], found["cause"]) if found else ("", reason)


def _reason(cause: str, gates: Iterable[str]) -> str:
    names = [gate for gate in gates if gate]
    closed = f"gate {names[0]} is" if len(names) == 1 else f"gates {', '.join(names)} are"
    return f"{closed} closed: {cause}" if names else cause
