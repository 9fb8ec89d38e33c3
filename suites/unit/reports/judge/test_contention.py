"""A busy machine is named where timings were not good, and only there."""

from __future__ import annotations

import pytest

from reports.judge.contention import in_doubt
from reports.judge.summary import first_line
from reports.judge.verdict import exit_code
from reports.values.judgement import JudgedMeasurement, Judgement, ReasonCode
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import Environment, RunRecord, StageRun

pytestmark = pytest.mark.requirement("RE-2", "RE-7")


def busy_record(verdict: Verdict, unit: str = "ms", **contention: float) -> RunRecord:
    """A run of stage 6 with one judged figure."""
    stage = StageRun("stage6", "performance", True, "", contention=contention)
    case = CaseResult("t", "stage6", (), Outcome.PASSED, measurements=(Measurement("burst.latency", 1.0, unit),))
    judged = JudgedMeasurement("t", 0, "burst.latency", "x", Judgement(verdict, ReasonCode.BEYOND_LIMIT, "so"))
    environment = Environment("3.11", "Linux", {})
    return RunRecord("r", "s", "f", (), (), (stage,), environment, cases=(case,), judgements=(judged,))


def test_the_first_line_says_whose_fault_an_ambiguous_timing_is() -> None:
    """The exit code stays 2: the run could not be judged."""
    record = busy_record(Verdict.AMBIGUOUS, others=0.6, steal=0.02)
    sentence = (
        "timings of stage6 could not be judged: other processes took 60 % of the CPU; run again on an idle machine"
    )
    assert sentence in first_line(record)
    assert exit_code(record) == 2


def test_a_missed_target_may_be_the_machines() -> None:
    (said,) = in_doubt(busy_record(Verdict.FAIL, "GB/s", others=0.12, steal=0.3))
    assert "other processes took 12 % of the CPU and the hypervisor took 30 % of the CPU" in said
    assert said.startswith("timings of stage6 may have missed their targets because ")


@pytest.mark.parametrize(
    "record",
    [
        busy_record(Verdict.AMBIGUOUS, others=0.05, steal=0.05),
        busy_record(Verdict.AMBIGUOUS),
        busy_record(Verdict.PASS, others=0.6),
        busy_record(Verdict.FAIL, "1", others=0.6),
    ],
    ids=["idle machine", "not known", "good figures", "no timing"],
)
def test_otherwise_nothing_is_excused(record: RunRecord) -> None:
    assert in_doubt(record) == []
