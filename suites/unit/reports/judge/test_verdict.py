"""Verdicts and exit codes, by example and by property."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burstproof.errors import ExitCode
from reports.judge.targets import Comparison, Status, Target
from reports.judge.verdict import case_verdict, exit_code, judge, judge_cases, run_verdict, stage_verdict, worst
from reports.values.judgement import Limits, ReasonCode
from reports.values.measurement import CaseResult, Measurement, Outcome, Scalar, Verdict
from reports.values.record import RunRecord, StageRun
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-2")
LIMIT = Target("t", "m", "time", Comparison.AT_MOST, -math.inf, 10.0, "ms", "A", Status.ESTIMATE, "2026-11-20")
BAND = replace(LIMIT, marginal=0.2)
RATE = replace(LIMIT, comparison=Comparison.AT_LEAST, low=10.0, high=math.inf, unit="GB/s")
LEAST_TIME = replace(RATE, unit="ms")
SPEEDUP = replace(RATE, low=1.0, unit="x", floor=2.0)
COST = replace(LIMIT, high=4.0, unit="x", floor=2.0)
RANK = [Verdict.PASS, Verdict.MARGINAL, Verdict.AMBIGUOUS, Verdict.FAIL]
POSITIVE = st.floats(1e-3, 1e3)
VERDICTS = st.sampled_from(Verdict)


def figure(value: float | None, unit: str = "ms", *samples: float) -> Measurement:
    return Measurement("m", value, unit, samples)


@pytest.mark.parametrize(
    ("measurement", "target", "verdict", "reason"),
    [
        (figure(9.0), LIMIT, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(10.0), LIMIT, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(10.0), replace(LIMIT, comparison=Comparison.BELOW), Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(10.01), LIMIT, Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(9000.0, "us"), LIMIT, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(11_000.0, "us"), LIMIT, Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(-0.01), LIMIT, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(9.0), BAND, Verdict.MARGINAL, ReasonCode.WITHIN_MARGIN),
        (figure(8.0), BAND, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(9.9, "ms", 9.0, 9.9, 10.8), LIMIT, Verdict.AMBIGUOUS, ReasonCode.INTERVAL_STRADDLES_LIMIT),
        (figure(9.0, "GB/s"), RATE, Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(11.0, "GB/s"), RATE, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(9.0, "GB"), LIMIT, Verdict.ERROR, ReasonCode.UNIT_MISMATCH),
        (figure(1.0), replace(LIMIT, floor=2.0), Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(30.0, "GB/s"), replace(RATE, floor=20.0), Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(1.97), replace(LIMIT, floor=2.0), Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(1.99), replace(LIMIT, floor=2.0), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(2.0 * 0.99), replace(LIMIT, floor=2.0), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(20.0 * 1.01, "GB/s"), replace(RATE, floor=20.0), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(12.0, "GB/s"), replace(RATE, marginal=0.2), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(11.9, "GB/s"), replace(RATE, marginal=0.2), Verdict.MARGINAL, ReasonCode.WITHIN_MARGIN),
        (figure(10.0, "GB/s"), replace(RATE, comparison=Comparison.ABOVE), Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(12.0), replace(LIMIT, floor=10.0, near_floor=1.25), Verdict.MARGINAL, ReasonCode.NEAR_FLOOR),
        (figure(12.5), replace(LIMIT, floor=10.0, near_floor=1.25), Verdict.MARGINAL, ReasonCode.NEAR_FLOOR),
        (figure(12.6), replace(LIMIT, floor=10.0, near_floor=1.25), Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(12.0), replace(LIMIT, floor=10.0), Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (figure(9.0), replace(LIMIT, floor=8.0, near_floor=1.25), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(9.0, "GB/s"), replace(RATE, floor=11.0, near_floor=1.25), Verdict.MARGINAL, ReasonCode.NEAR_FLOOR),
        (figure(0.0, "GB/s"), replace(RATE, floor=11.0, near_floor=1.25), Verdict.FAIL, ReasonCode.BEYOND_LIMIT),
        (
            figure(0.9, "GB/s"),
            replace(RATE, low=1.0, floor=1.0, near_floor=1.25),
            Verdict.MARGINAL,
            ReasonCode.NEAR_FLOOR,
        ),
        (figure(12.0), replace(LEAST_TIME, floor=5.0), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(3.0, "x"), SPEEDUP, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(1.5, "x"), SPEEDUP, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(1.0, "x"), COST, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(3.0, "x"), COST, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(3.0, "x"), replace(COST, low=1.0, comparison=Comparison.RANGE), Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(None), LIMIT, Verdict.FAIL, ReasonCode.VALUE_MISSING),
        (figure(math.nan), None, Verdict.FAIL, ReasonCode.VALUE_NAN),
        (figure(-math.inf), LIMIT, Verdict.FAIL, ReasonCode.VALUE_INFINITE),
        (figure(9.0, "ms", 9.0, math.nan), LIMIT, Verdict.FAIL, ReasonCode.SAMPLE_INVALID),
        (figure(9.0), None, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(0.0), LIMIT, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(-0.1), LIMIT, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(0.0), None, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(-5.0, "us"), None, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(-1.0, "J"), None, Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR),
        (figure(0.0, "J"), None, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
        (figure(-1.0, "C"), None, Verdict.PASS, ReasonCode.WITHIN_LIMIT),
    ],
)
def test_judgement(measurement: Measurement, target: Target | None, verdict: Verdict, reason: ReasonCode) -> None:
    judged = judge(measurement, target)
    assert (judged.verdict, judged.reason_code) == (verdict, reason)
    assert judged.text


@pytest.mark.parametrize(
    ("value", "target", "text"),
    [
        (15.0, LIMIT, "15 ms misses ≤ 10 ms by 50.0 %"),
        (20.0, LIMIT, "20 ms misses ≤ 10 ms by a factor of 2.0"),
        (45.0, LIMIT, "45 ms misses ≤ 10 ms by a factor of 4.5"),
        (10.0, replace(LIMIT, comparison=Comparison.BELOW), "10 ms misses < 10 ms by 0.0 %"),
        (8.0, RATE, "8 GB/s misses ≥ 10 GB/s by 20.0 %"),
        (0.5, RATE, "0.5 GB/s misses ≥ 10 GB/s by a factor of 20.0"),
        (0.0, RATE, "0 GB/s misses ≥ 10 GB/s"),
        (-1.0, RATE, "-1 GB/s misses ≥ 10 GB/s"),
        (1.0, replace(LIMIT, high=0.0, unit="1"), "1 misses ≤ 0"),
        (1.5, replace(LIMIT, high=1.0, unit="1"), "1.5 misses ≤ 1 by 50.0 %"),
        (4.0, replace(LIMIT, comparison=Comparison.RANGE, low=5.0), "4 ms misses 5 to 10 ms by 20.0 %"),
        (11.0, replace(LIMIT, comparison=Comparison.RANGE, low=5.0), "11 ms misses 5 to 10 ms by 10.0 %"),
    ],
)
def test_by_how_much_a_limit_is_missed(value: float, target: Target, text: str) -> None:
    assert judge(figure(value, target.unit), target).text == text


def test_the_tightest_floor_counts() -> None:
    """Of a time the longer, of a rate the lower; in the unit of the target."""
    time, rate = replace(LIMIT, floor=2.0), replace(RATE, floor=30.0)
    for own, verdict in ((1000.0, Verdict.PASS), (4000.0, Verdict.ERROR)):
        given = Measurement("m", 3000.0, "us", conditions={"floor": own})
        assert judge(given, time).verdict is verdict
    for own, verdict in ((40.0, Verdict.PASS), (20.0, Verdict.ERROR)):
        given = Measurement("m", 25.0, "GB/s", conditions={"floor": own})
        assert judge(given, rate).verdict is verdict


def test_the_interval_is_in_the_unit_of_the_target() -> None:
    judged = judge(figure(9.0, "MiB", 9.0, 9.0, 9.0), replace(LIMIT, unit="KiB", high=9500.0))
    assert (judged.value, judged.unit, judged.verdict) == (9216.0, "KiB", Verdict.PASS)
    assert judged.interval is not None
    assert (judged.interval.low, judged.interval.high) == (9216.0, 9216.0)
    assert judge(figure(9.0, "ms", 9.0), LIMIT).interval is None


@pytest.mark.parametrize(("stage", "verdict"), [("stage5", Verdict.PASS), ("stage6", Verdict.FAIL)])
def test_cases_outside_the_planned_stages_count(stage: str, verdict: Verdict) -> None:
    extra = CaseResult("extra", "stage6", (), Outcome.FAILED, "why")
    record = run_of(Outcome.PASSED)
    cases = (*record.cases, extra) if stage == "stage6" else record.cases
    assert run_verdict(replace(record, cases=cases)) is verdict


def test_a_narrowed_stage_is_an_error() -> None:
    (stage,) = run_of(Outcome.PASSED).stages
    record = replace(run_of(Outcome.PASSED), stages=(replace(stage, deselected=("a::x",)),))
    assert stage_verdict(record, record.stages[0]) is Verdict.ERROR


def test_a_figure_is_judged_by_every_target_that_it_meets() -> None:
    """Each is named; without one, only what cannot be a figure is listed."""
    case = CaseResult("c", "stage5", (), Outcome.PASSED, measurements=(figure(20.0), Measurement("n", 1.0, "ms")))
    judged = judge_cases([case], [LIMIT, replace(LIMIT, id="u", high=30.0)])
    assert [(one.index, one.measurement, one.target, one.judgement.verdict) for one in judged] == [
        (0, "m", "t", Verdict.FAIL),
        (0, "m", "u", Verdict.PASS),
    ]
    other = CaseResult("d", "stage5", (), Outcome.PASSED)
    assert case_verdict(other, judged) is Verdict.PASS
    assert case_verdict(case, judged) is Verdict.FAIL


def test_samples_that_are_no_figures_are_counted() -> None:
    judged = judge(figure(9.0, "ms", 9.0, math.nan, math.inf), LIMIT)
    assert judged.text == "2 of 3 samples of m are not finite"


def test_a_judgement_states_the_limits_it_was_made_with() -> None:
    assert judge(figure(9.0), BAND).limits == Limits("<=", None, 10.0, BAND.marginal)
    assert judge(figure(None), RATE).limits == Limits(RATE.comparison.value, RATE.low, None)
    own = replace(figure(9000.0, "us"), conditions={"floor": 3000.0})
    assert judge(own, replace(LIMIT, floor=2.0)).limits == Limits("<=", None, 10.0, floor=3.0)
    assert judge(figure(9.0), None).limits is None


def test_a_ratio_without_a_target_has_no_better_side() -> None:
    """Nothing says whether a speedup of 1.4 is better than 2.6 or worse, so that it cannot be impossible."""
    assert judge(replace(figure(1.4, "x"), conditions={"floor": 2.6}), None).verdict is Verdict.PASS
    assert judge(replace(figure(1.4), conditions={"floor": 2.6}), None).verdict is Verdict.ERROR


def test_a_range_has_two_sides() -> None:
    between = replace(LIMIT, comparison=Comparison.RANGE, low=5.0, high=10.0)
    found = [judge(figure(value), between).verdict for value in (4.9, 5.0, 10.0, 10.1)]
    assert found == [Verdict.FAIL, Verdict.PASS, Verdict.PASS, Verdict.FAIL]
    around = judge(figure(7.0, "ms", 1.0, 7.0, 20.0), between)
    assert around.verdict is Verdict.AMBIGUOUS


def test_a_measurement_may_declare_its_own_floor() -> None:
    too_fast = Measurement("m", 900.0, "us", conditions={"floor": 1000.0})
    assert judge(too_fast, LIMIT).verdict is Verdict.ERROR
    assert judge(too_fast, None).verdict is Verdict.ERROR


@pytest.mark.parametrize("floor", [0, -1, 0.0, "0.1", True, math.nan])
@pytest.mark.parametrize("target", [replace(LIMIT, near_floor=1.25), None])
def test_a_floor_that_is_no_number_above_0_is_an_error(floor: Scalar, target: Target | None) -> None:
    judged = judge(Measurement("m", 15_000.0, "us", (15_000.0,) * 6, {"floor": floor}), target)
    assert (judged.verdict, judged.reason_code) == (Verdict.ERROR, ReasonCode.FLOOR_IMPOSSIBLE)
    assert judged.text.startswith("a floor must be a number above 0, not ")


def test_a_floor_that_is_0_in_the_unit_of_the_target_is_an_error() -> None:
    """As 5e-324 us are in ms."""
    tiny = Measurement("m", 15_000.0, "us", conditions={"floor": 5e-324})
    assert judge(tiny, None).verdict is Verdict.PASS
    assert judge(tiny, LIMIT).reason_code is ReasonCode.FLOOR_IMPOSSIBLE


def test_a_fitted_cost_may_be_0_or_below_where_nothing_limits_it() -> None:
    fitted = Measurement("burst.cost_per_neuron", -0.1, "ns")
    assert judge(fitted, None).verdict is Verdict.PASS
    assert judge(fitted, LIMIT).verdict is Verdict.ERROR


@settings(deadline=None)
@given(
    st.sampled_from([None, math.nan, math.inf, -math.inf]),
    st.lists(POSITIVE, max_size=5),
    st.sampled_from([LIMIT, BAND, None]),
)
def test_what_is_no_figure_never_passes(value: float | None, samples: list[float], target: Target | None) -> None:
    assert judge(figure(value, "ms", *samples), target).verdict is Verdict.FAIL


@settings(deadline=None)
@given(POSITIVE, POSITIVE, st.sampled_from([LIMIT, BAND]))
def test_slower_is_never_better(one: float, other: float, target: Target) -> None:
    fast, slow = sorted((one, other))
    assert RANK.index(judge(figure(fast), target).verdict) <= RANK.index(judge(figure(slow), target).verdict)


@settings(deadline=None)
@given(st.lists(POSITIVE, min_size=2, max_size=9), POSITIVE, st.sampled_from([LIMIT, BAND]))
def test_a_shifted_sample_is_never_better(samples: list[float], delay: float, target: Target) -> None:
    def verdict(values: list[float]) -> int:
        middle = sorted(values)[len(values) // 2]
        return RANK.index(judge(figure(middle, "ms", *values), target).verdict)

    assert verdict(samples) <= verdict([sample + delay for sample in samples])


@settings(deadline=None)
@given(POSITIVE, st.lists(POSITIVE, max_size=5))
def test_units_do_not_change_the_verdict(value: float, samples: list[float]) -> None:
    in_us = figure(value * 1024.0, "KiB", *(sample * 1024.0 for sample in samples))
    target = replace(LIMIT, unit="MiB")
    assert judge(in_us, target).verdict is judge(figure(value, "MiB", *samples), target).verdict


@settings(deadline=None)
@given(st.lists(VERDICTS), VERDICTS)
def test_adding_a_verdict_never_improves(verdicts: list[Verdict], more: Verdict) -> None:
    order = [Verdict.SKIPPED, Verdict.PASS, Verdict.MARGINAL, Verdict.AMBIGUOUS, Verdict.ERROR, Verdict.FAIL]
    assert order.index(worst([*verdicts, more])) >= order.index(worst(verdicts))
    assert worst([*verdicts, Verdict.FAIL]) is Verdict.FAIL
    assert worst(verdicts) is worst(verdicts[::-1])


def run_of(*outcomes: Outcome, gate_open: bool = True, problem: str = "", asked: tuple[str, ...] = ()) -> RunRecord:
    cases = tuple(CaseResult(f"case {n}", "stage5", ("BE-4",), outcome, "why") for n, outcome in enumerate(outcomes))
    stage = StageRun("stage5", "parity", gate_open, "no GPU", problem=problem)
    return replace(sample_record(faults=False), stages=(stage,), cases=cases, judgements=(), asked=asked)


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (run_of(Outcome.PASSED), ExitCode.PASS),
        (run_of(Outcome.PASSED, Outcome.SKIPPED, gate_open=False), ExitCode.PASS),
        (run_of(Outcome.PASSED, Outcome.SKIPPED, gate_open=False, asked=("stage5",)), ExitCode.INVALID_ENVIRONMENT),
        (run_of(Outcome.PASSED, asked=("stage5",)), ExitCode.PASS),
        (run_of(Outcome.PASSED, asked=("stage9",)), ExitCode.USAGE),
        (run_of(Outcome.SKIPPED), ExitCode.INVALID_ENVIRONMENT),
        (run_of(gate_open=False), ExitCode.INVALID_ENVIRONMENT),
        (run_of(), ExitCode.UNDECIDED),
        (run_of(Outcome.PASSED, problem="timed out"), ExitCode.UNDECIDED),
        (run_of(Outcome.PASSED, Outcome.ERROR), ExitCode.UNDECIDED),
        (run_of(Outcome.ERROR, Outcome.FAILED, gate_open=False, asked=("stage5",)), ExitCode.FAIL),
        (replace(run_of(Outcome.PASSED), finished_utc=""), ExitCode.UNDECIDED),
        (replace(run_of(), stages=()), ExitCode.INVALID_ENVIRONMENT),
    ],
)
def test_exit_code(record: RunRecord, code: ExitCode) -> None:
    assert exit_code(record) is code
    assert exit_code(record, record.asked) is code


def test_ambiguous_is_undecided_and_marginal_passes() -> None:
    for samples, code in (((9.0, 9.9, 10.8), ExitCode.UNDECIDED), ((9.0, 9.1, 9.2), ExitCode.PASS)):
        case = CaseResult("c", "stage5", (), Outcome.PASSED, measurements=(figure(samples[1], "ms", *samples),))
        record = replace(run_of(), cases=(case,), judgements=judge_cases([case], [BAND]))
        assert exit_code(record) is code
        assert run_verdict(record) is (Verdict.MARGINAL if code is ExitCode.PASS else Verdict.AMBIGUOUS)


def test_a_missing_figure_fails_its_case_even_unjudged() -> None:
    case = CaseResult("c", "stage5", (), Outcome.PASSED, measurements=(figure(math.nan),))
    assert case_verdict(case, ()) is Verdict.FAIL
    (judged,) = judge_cases([case], [])
    assert judged.judgement.reason_code is ReasonCode.VALUE_NAN


@pytest.mark.thorough("seconds")
@settings(deadline=None)
@given(st.lists(st.sampled_from(Outcome), max_size=6), st.booleans())
def test_a_run_that_failed_or_ran_nothing_is_never_green(outcomes: list[Outcome], gate_open: bool) -> None:
    code = exit_code(run_of(*outcomes, gate_open=gate_open))
    if Outcome.FAILED in outcomes:
        assert code is ExitCode.FAIL
    if Outcome.PASSED not in outcomes:
        assert code is not ExitCode.PASS
    assert exit_code(run_of(*outcomes, Outcome.FAILED, gate_open=gate_open)) is ExitCode.FAIL


def test_stage_verdicts_of_the_sample() -> None:
    record = sample_record(gpu=True, faults=True)
    found = {stage.stage: stage_verdict(record, stage) for stage in record.stages}
    assert found["stage1"] is Verdict.PASS
    assert found["stage4"] is Verdict.AMBIGUOUS
    assert found["stage5"] is Verdict.FAIL
    assert found["stage7"] is Verdict.MARGINAL
