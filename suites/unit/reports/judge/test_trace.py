"""What counts as proof of a requirement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.judge.trace import Status, TraceRow, trace
from reports.values.measurement import CaseResult, Outcome
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3")

ELSEWHERE = CaseResult("suites/unit/test_it.py::test_it", "harness", ("BE-6",), Outcome.PASSED)
SANITY = CaseResult("suites/stage5_parity/test_it.py::test_data", "stage5", (), Outcome.PASSED, bears_on=("BE-6",))
PROOF = CaseResult("suites/stage5_parity/test_it.py::test_it", "stage5", ("BE-6",), Outcome.PASSED)
FAILED = Outcome.FAILED


def row_of(*cases: CaseResult) -> TraceRow:
    record = replace(sample_record(faults=False), cases=cases, judgements=())
    return next(row for row in trace(record) if row.requirement.id == "BE-6")


@pytest.mark.parametrize(
    ("cases", "status"),
    [
        ((), Status.NOT_PROVEN),
        ((ELSEWHERE,), Status.NOT_PROVEN),
        ((SANITY,), Status.NOT_PROVEN),
        ((PROOF,), Status.PROVEN),
        ((PROOF, ELSEWHERE, SANITY), Status.PROVEN),
        ((PROOF, replace(ELSEWHERE, outcome=FAILED)), Status.FAILED),
        ((PROOF, replace(SANITY, outcome=FAILED)), Status.FAILED),
        ((replace(PROOF, outcome=Outcome.SKIPPED, reason="no GPU"), ELSEWHERE), Status.NOT_PROVEN),
    ],
)
def test_only_cases_of_its_stages_that_claim_it_prove_a_requirement(
    cases: tuple[CaseResult, ...], status: Status
) -> None:
    """What bears on it cannot prove it, and can fail it."""
    assert row_of(*cases).status is status


def test_a_requirement_that_nothing_proves_says_what_bears_on_it() -> None:
    assert row_of(ELSEWHERE, SANITY).reason == "2 cases bear on it, none proves it"
    assert row_of(replace(ELSEWHERE, outcome=Outcome.SKIPPED, reason="no GPU")).reason == "not here: no GPU"
    assert row_of(PROOF, ELSEWHERE).cases == (PROOF.case,)


def test_what_bears_on_a_requirement_does_not_hide_that_its_stage_did_not_run() -> None:
    """A case elsewhere that was skipped is no reason for what the stages of the requirement did not show."""
    skipped = replace(ELSEWHERE, outcome=Outcome.SKIPPED, reason="no GPU")
    record = replace(sample_record(faults=False), cases=(skipped,), judgements=(), stages=())
    (row,) = (row for row in trace(record) if row.requirement.id == "BE-6")
    assert row.reason.endswith(" not in this run")


def test_a_gap_of_the_repository_is_told_from_a_fault_of_the_run() -> None:
    """OP-3 has no case in the suites, whatever is run; a requirement with cases that were not run has no such words."""
    rows = {row.requirement.id: row.reason for row in trace(replace(sample_record(faults=False), judgements=()))}
    assert rows["OP-3"] == "a known gap of the repository, no fault of this run: no case of the suites proves it yet"
    assert row_of().reason == "no case bears on it"
