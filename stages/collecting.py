"""Turns pytest's reports into results, one for each case, written after its teardown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from reports.values.measurement import CaseResult, Measurement, Outcome
from reports.values.serialise import decode, encode
from stages.plan import HARNESS, stage_of
from stages.results import ResultLines

NEVER_RAN = "a pass, but the function of the source did not run to its end: see the plugins of its stage"

_REASON_LIMIT = 2000
_ATTRIBUTE = "burstproof"


@dataclass(frozen=True)
class Findings:
    """What pytest's report of a case lacks.

    ``unjudged`` makes a failure an error. ``raised``: the phase ended with an exception, even if a hook of a conftest
    file turned it into a pass. ``ran``: the function in the case's source ran to its end.
    """

    requirements: tuple[str, ...]
    title: str
    measurements: tuple[Measurement, ...]
    unjudged: bool = False
    bears_on: tuple[str, ...] = ()
    raised: bool = False
    ran: bool = False

    def put_on(self, report: pytest.TestReport) -> None:
        """Attach plain values to the report, which pytest-xdist carries to the controller."""
        setattr(report, _ATTRIBUTE, encode(self))

    @classmethod
    def of(cls, report: pytest.TestReport) -> Findings:
        """Read what :meth:`put_on` attached; the report of a crashed worker has nothing attached."""
        plain = getattr(report, _ATTRIBUTE, None)
        return cls((), report.nodeid, (), unjudged=True) if plain is None else decode(cls, plain, report.nodeid)


class CaseCollector:
    """A pytest plugin that writes a result line for each case to ``lines``."""

    def __init__(self, lines: ResultLines) -> None:
        self._lines = lines
        self._phases: dict[str, list[pytest.TestReport]] = {}

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Write the name of the case before it can crash the interpreter."""
        self._lines.started(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather the phases of a case until its teardown, or the report of a crashed worker, completes it."""
        phases = self._phases.setdefault(report.nodeid, [])
        phases.append(report)
        if report.when not in ("setup", "call"):
            self._lines.finished(case_result(self._phases.pop(report.nodeid)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record modules that could not be collected or were skipped: their cases have no reports."""
        if report.passed:
            return
        outcome = Outcome.SKIPPED if report.skipped else Outcome.ERROR
        reason = skip_reason(report) if report.skipped else failure_reason(report)
        if not reason:
            outcome, reason = Outcome.ERROR, "skipped without a reason"
        stage = stage_of(report.nodeid) or HARNESS.name
        self._lines.finished(CaseResult(report.nodeid, stage, (), outcome, reason, 0.0, "collection"))

    def pytest_unconfigure(self) -> None:
        """Close the file."""
        self._lines.close()


def case_result(phases: Sequence[pytest.TestReport]) -> CaseResult:
    """Combine the reports of the phases of a case."""
    last = phases[-1]
    found = Findings.of(last)
    outcome, reason = _outcome(phases)
    return CaseResult(
        case=last.nodeid,
        stage=stage_of(last.nodeid) or HARNESS.name,
        requirements=found.requirements,
        outcome=outcome,
        reason=reason,
        duration_s=sum(report.duration for report in phases),
        title=found.title,
        measurements=found.measurements,
        bears_on=found.bears_on,
    )


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return why a case was skipped, without pytest's prefix; empty if no reason was given."""
    expected = getattr(report, "wasxfail", None)
    if expected is not None:
        text = expected.removeprefix("reason: ").strip()
        return f"expected failure: {text}" if text else ""
    message = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return message.removeprefix("Skipped").removeprefix(":").strip()


def failure_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return what went wrong in one paragraph, cut at 2000 characters."""
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else report.longreprtext
    text = " ".join(text.split())
    return text if len(text) <= _REASON_LIMIT else text[: _REASON_LIMIT - 3] + "..."


def _outcome(phases: Sequence[pytest.TestReport]) -> tuple[Outcome, str]:
    failed = [report for report in phases if report.failed]
    if failed:
        reason = "; ".join(_failure_with_phase(report) for report in failed)
        judged = failed[0].when == "call" and not Findings.of(failed[0]).unjudged
        return (Outcome.FAILED if judged else Outcome.ERROR), reason
    skipped = next((report for report in phases if report.skipped), None)
    if skipped is not None:
        return Outcome.SKIPPED, skip_reason(skipped)
    raised = next((report for report in phases if Findings.of(report).raised), None)
    if raised is not None:
        return Outcome.ERROR, f"{raised.when}: it raised, and a hook made a pass of that; see the plugins of its stage"
    if not any(Findings.of(report).ran for report in phases):
        return Outcome.ERROR, NEVER_RAN
    return Outcome.PASSED, ""


def _failure_with_phase(report: pytest.TestReport) -> str:
    reason = failure_reason(report)
    return reason if report.when == "call" else f"{report.when}: {reason}"
