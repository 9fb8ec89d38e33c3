"""No ratio is met or missed that divides by a figure which no hardware reaches."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from reports.judge.bases import settled
from reports.judge.decided import decided_targets, target_counts, told
from reports.judge.targets import Comparison, Status, Target
from reports.judge.verdict import judge, judge_cases, run_verdict
from reports.values.judgement import JudgedMeasurement, Judgement, ReasonCode
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-2")
SLOW = {"devices": 2, "neurons": 50_000_000, "firing_rate": 0.1}
SPEEDUP = Measurement("shard.slow_speedup", 1.1, "x", conditions=SLOW)
AGREE = Measurement("parity.disagreements", 0.0, "1", conditions={"backend": "cuda"})


def case_of(floor: float) -> CaseResult:
    """A burst of 2.9 ms on one device, and what two gain."""
    base = Measurement("shard.burst", 2.9, "ms", conditions={**SLOW, "devices": 1, "floor": floor})
    return CaseResult("suites/stage7/case", "stage7", ("MG-4",), Outcome.PASSED, measurements=(base, SPEEDUP, AGREE))


def test_a_ratio_on_an_impossible_base_is_an_error() -> None:
    judged = {one.measurement: one.judgement for one in judge_cases([case_of(3.2)])}
    speedup = judged["shard.slow_speedup"]
    assert (speedup.verdict, speedup.reason_code) == (Verdict.ERROR, ReasonCode.BASE_IMPOSSIBLE)
    assert speedup.text.endswith("measured wrongly: shard.burst, 2.9 ms is better than the floor of 3.2 ms")
    assert judged["parity.disagreements"].verdict is Verdict.PASS
    right = {one.measurement: one.judgement.verdict for one in judge_cases([case_of(2.0)])}
    assert right["shard.slow_speedup"] is Verdict.FAIL


@pytest.mark.parametrize("name", ["elementwise.copy_fraction", "transfer.link_fraction"])
@pytest.mark.parametrize(("floor", "verdict"), [(2.0, Verdict.ERROR), (0.0, Verdict.ERROR), (0.5, Verdict.PASS)])
def test_a_share_of_unit_1_is_a_ratio_by_its_name(name: str, floor: float, verdict: Verdict) -> None:
    copy = Measurement("copy.time", 1.0, "us", conditions={"floor": floor})
    share = Measurement(name, 0.99, "1")
    case = CaseResult("suites/stage6/case", "stage6", (), Outcome.PASSED, measurements=(copy, share))
    target = Target("t", name, "share", Comparison.AT_LEAST, 0.9, math.inf, "1", "goal", Status.GOAL, "2026-11-27")
    (found,) = (one.judgement for one in judge_cases([case], [target]) if one.measurement == name)
    assert found.verdict is verdict


def test_an_older_record_is_read_as_if_it_had_been_judged_so() -> None:
    case = case_of(3.2)
    old = tuple(
        replace(one, judgement=replace(one.judgement, verdict=Verdict.FAIL, reason_code=ReasonCode.BEYOND_LIMIT))
        if one.measurement == "shard.slow_speedup"
        else one
        for one in judge_cases([case])
    )
    record = replace(sample_record(faults=False), cases=(case,), judgements=old)
    assert run_verdict(record) is Verdict.FAIL
    assert settled(record).judgements == judge_cases([case])
    assert [text for _, text in target_counts(decided_targets(record))] == ["1 goal not judged"]
    sound = replace(record, cases=(case_of(2.0),), judgements=judge_cases([case_of(2.0)]))
    assert settled(sound) is sound


def test_by_how_much_an_older_record_misses_is_counted_as_a_reader_does() -> None:
    """1.344 falls short of 1.9 by 29.3 %; records said 41.4 %, with limits and, in version 1, without them."""
    (one,) = (one for one in judge_cases([case_of(2.0)]) if one.measurement == "shard.slow_speedup")
    assert one.judgement.text == "1.1× misses ≥ 1.82× by 39.6 %"
    said = replace(one.judgement, text="1.1× misses ≥ 1.82× by 65.5 %")
    assert told(said) == one.judgement.text
    first = Judgement(Verdict.FAIL, ReasonCode.BEYOND_LIMIT, "1.344x misses >= 1.9x by 41.4 %", 1.344, "x")
    assert told(first) == "1.344x misses >= 1.9x by 29.3 %"
    above = replace(first, text="2.3x misses <= 2x by 15.0 %")
    assert told(above) == above.text
    assert told(judge(AGREE, None)) == judge(AGREE, None).text
    assert isinstance(one, JudgedMeasurement)


@pytest.mark.parametrize("much", ["1.2.3 %", ". %", "a factor of 1..2", "a factor of ."])
def test_a_miss_that_is_no_number_is_left_as_it_was_written(much: str) -> None:
    case = case_of(2.0)
    (one,) = (one for one in judge_cases([case]) if one.measurement == "shard.slow_speedup")
    edited = replace(one, judgement=replace(one.judgement, text=f"misses >= 2 by {much}", limits=None))
    assert told(edited.judgement) == edited.judgement.text
    record = replace(sample_record(faults=False), cases=(case,), judgements=(edited,))
    assert [found.by for found in decided_targets(record)] == [""]
