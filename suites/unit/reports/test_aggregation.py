"""Figures put together: the worst stays, counts are explicit, and nothing that did not pass is touched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.aggregation import LEAST_FIGURES, aggregate
from reports.baseline import thin
from reports.goals import goal_rows
from reports.html import render
from reports.measurement import Aggregate, CaseResult, Measurement, Outcome
from reports.record import RunRecord
from reports.summary import first_line
from reports.traceability import trace
from reports.verdict import judge_cases
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-1", "RE-4")


def _record(*cases: CaseResult) -> RunRecord:
    return replace(sample_record(), cases=cases, judgements=judge_cases(cases))


def _cases(
    values: list[float], name: str = "parity.disagreements", outcome: Outcome = Outcome.PASSED
) -> list[CaseResult]:
    return [
        CaseResult(
            f"suites/stage5_parity/test_x.py::test_x[{i}]",
            "stage5",
            ("BE-4", "ST-5"),
            outcome,
            measurements=(
                Measurement(name, value, "1", conditions={"backend": "cuda", "trace": str(i)}),
                Measurement("burst.latency", 1.0 + i, "us", conditions={"backend": "cuda"}),
            ),
        )
        for i, value in enumerate(values)
    ]


def _kept(record: RunRecord, name: str) -> list[Measurement]:
    return [m for case in record.cases for m in case.measurements if m.name == name]


def test_the_worst_stays_with_what_it_stands_for() -> None:
    record = thin(_record(*_cases([0.0] * 9)))
    (figure,) = _kept(record, "parity.disagreements")
    assert figure.aggregate == Aggregate(9, 0.0, 0.0)
    assert len(_kept(record, "burst.latency")) == 9
    assert len(record.cases) == 9


@pytest.mark.parametrize(("name", "worst"), [("parity.bursts_agreeing", 1.0), ("kernel.registers", 3.0)])
def test_a_lower_limit_makes_the_least_the_worst(name: str, worst: float) -> None:
    record = _record(*_cases([3.0, 2.0, 1.0, 2.0], name))
    (figure,) = _kept(thin(record), name)
    assert (figure.value, figure.aggregate) == (worst, Aggregate(4, 1.0, 3.0))


def test_judgements_follow_their_figures() -> None:
    record = _record(*_cases([0.0] * 6))
    kept = thin(record)
    figures = {(case.case, index): m.name for case in kept.cases for index, m in enumerate(case.measurements)}
    assert kept.judgements
    assert all(figures[one.case, one.index] == one.measurement for one in kept.judgements)
    goals = [one for one in kept.judgements if one.target == "goal-parity"]
    assert len(goals) == 1
    assert goals == [one for one in record.judgements if (one.case, one.target) == (goals[0].case, "goal-parity")]


def test_goals_requirements_and_verdict_are_those_of_the_whole_record() -> None:
    record = _record(*_cases([0.0] * 6), *sample_record().cases)
    kept = thin(record)
    goals = [[replace(row, interval="") for row in goal_rows(one)] for one in (kept, record)]
    assert goals[0] == goals[1]
    assert "3, worst of 27" in [row.measured for row in goals[0]]
    assert first_line(kept) == first_line(record)
    assert [(row.status, row.reason, row.measurements) for row in trace(kept)] == [
        (row.status, row.reason, row.measurements) for row in trace(record)
    ]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.ERROR])
def test_what_did_not_pass_stays_whole(outcome: Outcome) -> None:
    cases = _cases([0.0] * 6, outcome=outcome)
    assert aggregate(cases, judge_cases(cases))[0] == tuple(cases)


def test_a_missed_limit_is_not_put_together() -> None:
    cases = _cases([0.0, 0.0, 0.0, 0.0, 2.0])
    kept = thin(_record(*cases))
    figures = _kept(kept, "parity.disagreements")
    assert [figure.value for figure in figures] == [0.0, 2.0]
    assert [figure.aggregate for figure in figures] == [Aggregate(4, 0.0, 0.0), None]


def test_few_figures_stay_single() -> None:
    cases = _cases([0.0] * (LEAST_FIGURES - 1))
    assert aggregate(cases, judge_cases(cases))[0] == tuple(cases)


def test_thinning_twice_changes_nothing() -> None:
    once = thin(_record(*_cases([0.0] * 6)))
    assert thin(once) == once


def test_the_report_says_what_was_put_together() -> None:
    page = render(thin(_record(*_cases([0.0] * 6))))
    assert "A thinned record: 1 figure stands for 6 that passed" in page
    assert "Stands for the 6 figures of its test function, all 0" in page
    assert "A thinned record" not in render(_record(*_cases([0.0] * 6)))
