"""The first line and what stands below it: counts that add up, misses and breaks apart, how the run came about."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from reports.html import render
from reports.judge.decided import decided_targets, stage_counts
from reports.judge.goals import goal_lines, goal_rows, goal_tally
from reports.judge.summary import first_line, remarks, summarise
from reports.judge.trace import Status, trace
from reports.judge.verdict import judge_cases
from reports.store import BASELINES, load_run
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import Invocation, RunRecord
from reports.view import build_view
from suites.support.report_page import Page
from suites.support.sample_record import latency, sample_record

pytestmark = pytest.mark.requirement("RE-3")

HALF = "500 K neurons × 100, 1 % firing"
LEFT_OUT = "quick plan: a thousand networks take minutes"


def record_of(*cases: CaseResult) -> RunRecord:
    return replace(sample_record(faults=False), cases=cases, judgements=judge_cases(cases))


def timed(neurons: int, centre_us: float, **more: object) -> CaseResult:
    figure = latency("cuda", neurons, centre_us / 1e3, device="NVIDIA H200")
    steady = replace(figure, value=centre_us / 1e3, samples=())
    fields: dict[str, object] = {"outcome": Outcome.PASSED, "measurements": (steady,), **more}
    return CaseResult(f"suites/stage6/test_burst[{neurons}]", "stage6", ("BE-6",), **fields)  # type: ignore[arg-type]


def broken(name: str, stage: str = "stage1") -> CaseResult:
    return CaseResult(f"suites/{stage}/{name}", stage, ("KL-4",), Outcome.FAILED, "assert 4 == 0")


def skipped(name: str, reason: str, requirement: str = "TO-9") -> CaseResult:
    return CaseResult(f"suites/stage5/{name}", "stage5", (requirement,), Outcome.SKIPPED, reason)


def test_missed_goals_and_broken_cases_are_counted_apart() -> None:
    """500 K at 9.315 us (goal 9) and 1 M at 16.74 us (goal 16) miss theirs; two cases break; one passes."""
    record = record_of(
        timed(500_000, 9.315), timed(1_000_000, 16.74), timed(100_000, 4.0), broken("one"), broken("two")
    )
    line = first_line(record)
    assert line.startswith(
        "FAIL: 2 goals missed, the worst by 4.6 %: 1 M neurons × 100, 1 % firing; 2 cases failed by figures; "
        "2 cases broken; 1 of 5 cases that ran "
    )


def test_one_goal_is_missed_once_and_a_figure_that_is_missing_is_no_goal() -> None:
    absent = Measurement("a.b", float("nan"), "ms")
    twice = replace(timed(500_000, 9.9), case="suites/stage6/again")
    record = record_of(
        timed(500_000, 9.18), twice, replace(broken("x"), outcome=Outcome.PASSED, measurements=(absent,))
    )
    assert first_line(record).startswith(
        f"FAIL: 1 goal missed, by 10.0 %: {HALF}; 1 figure missing or not finite; 3 cases failed by figures; "
        "0 of 3 cases"
    )
    many = record_of(*(timed(n, 1e6) for n in (100_000, 500_000, 1_000_000, 5_000_000)))
    assert ": 4 goals missed, the worst by a factor of 222222.2: 100 K neurons × 100, 1 % firing; " in first_line(many)


def test_a_target_of_the_notes_is_no_goal_and_a_stage_tells_cases_from_goals() -> None:
    """One figure misses a goal and one what the notes say; no case passed, which the row of the stage says first."""
    slow = replace(
        latency("cuda", 1_000_000, 30.0, scope="launch to download", device="NVIDIA H100"), samples=(), value=30.0
    )
    noted = CaseResult("suites/stage6/noted", "stage6", ("BE-6",), Outcome.PASSED, measurements=(slow,))
    record = record_of(timed(500_000, 9.9), noted)
    line = first_line(record)
    assert line.startswith(
        f"FAIL: 1 goal missed, by 10.0 %: {HALF}; 3 targets of the notes missed, the worst by a factor of 3.0: "
    )
    assert "; 2 cases failed by figures; 0 of 2 cases that ran passed" in line
    ended, figures = stage_counts(record, "stage6", decided_targets(record))
    assert ended == ((Verdict.FAIL, "2 failed by figures"),)
    assert figures == ((Verdict.FAIL, "1 goal missed"), (Verdict.FAIL, "3 targets of the notes missed"))
    page = "".join(Page(render(record)).text)
    assert "2 failed by figures; 1 goal missed, 3 targets of the notes missed" in page
    assert "1 goal measured: 1 missed." in page
    assert [(name, count) for _, name, count in build_view(record).cases][:2] == [("failed by figures", 2), ("pass", 0)]


@pytest.mark.thorough("reads every record")
@pytest.mark.parametrize("run", sorted(path.name for path in BASELINES.iterdir() if path.is_dir()))
def test_every_count_of_missed_goals_is_one_number(run: str) -> None:
    """First line, line below the table of goals, and stages; cases by what became of them add up to those that ran."""
    record = load_run(BASELINES / run)
    summary = summarise(record)
    missed = sum(one.is_goal for one in summary.missed)
    counted = re.search(r"(\d+) missed", goal_tally(goal_rows(record)))
    assert missed == (int(counted[1]) if counted else 0)
    decided = decided_targets(record)
    told = [text for stage in record.stages for _, text in stage_counts(record, stage.stage, decided)[1]]
    assert missed == sum(int(text.split()[0]) for text in told if re.search(r"goals? missed", text))
    others = sum(summary.cases.get(one, 0) for one in Verdict if one not in (Verdict.FAIL, Verdict.SKIPPED))
    assert summary.by_figures + summary.broken + others == summary.ran


def test_below_a_doubt_missed_goals_are_counted_as_such() -> None:
    """A parity case failed: one goal is missed anyway, one was met by a figure that counts for nothing."""
    wrong = CaseResult("suites/stage5_parity/x[cuda-a]", "stage5", ("BE-4",), Outcome.FAILED, "burst 41")
    record = record_of(timed(500_000, 9.9), timed(100_000, 4.0), wrong)
    rows = goal_rows(record)
    counts = "1 missed, 1 met by a figure that counts for nothing"
    assert goal_tally(rows) == f"2 goals measured: {counts}"
    assert f"{goal_tally(rows)}; worst miss by 10.0 %: {HALF}" in goal_lines(rows)
    assert f"FAIL: 1 goal missed, by 10.0 %: {HALF}; 1 case failed by figures; 1 case broken; " in first_line(record)


@pytest.mark.parametrize("faults", [True, False])
@pytest.mark.parametrize("gpu", [True, False])
def test_counts_add_up_to_all_cases_and_all_requirements(gpu: bool, faults: bool) -> None:
    base = sample_record(gpu=gpu, faults=faults)
    record = replace(base, cases=(*base.cases, skipped("fuzz", LEFT_OUT)))
    view = build_view(record)
    assert sum(count for _, _, count in view.cases) == len(record.cases)
    assert sum(count for _, _, count in view.requirements) == len(trace(record))
    assert f"of {len(trace(record))} requirements " in first_line(record)


def test_what_the_plan_leaves_out_is_not_proven_and_names_the_plan() -> None:
    """A requirement all of whose cases were left out; one with a closed gate beside it is plainly not proven."""
    record = replace(
        record_of(skipped("a", LEFT_OUT), skipped("b", LEFT_OUT, "TO-10"), skipped("c", "no GPU here", "TO-10")),
        plan="quick",
    )
    rows = {row.requirement.id: row for row in trace(record)}
    assert rows["TO-9"].status is Status.LEFT_OUT
    assert rows["TO-10"].status is Status.NOT_PROVEN
    line = first_line(record)
    assert "1 not proven (quick plan)" in line
    assert "2 cases left out by the quick plan; 1 case skipped: no GPU here." in line
    assert any("--thorough runs them" in remark for remark in remarks(record))
    assert "not proven (quick plan)" in "".join(Page(render(record)).text)


def test_a_narrowed_run_says_so_before_everything_else() -> None:
    base = record_of(timed(100_000, 4.0))
    stages = (replace(base.stages[0], collected=495, deselected=("a.py::one", "a.py::two")), *base.stages[1:])
    record = replace(base, stages=stages)
    assert ": a narrowed run: 2 of 495 cases were left out: a.py::one and 1 more; " in first_line(record)
    page = "".join(Page(render(record)).text)
    assert page.index("a narrowed run") < page.index("requirements")


def test_how_the_run_came_about_is_said_below_the_verdict() -> None:
    """Contention, several starts, other commits, local changes; a quiet run says none of it."""
    base = sample_record(faults=False)
    clean = replace(base.environment, git_dirty=False)
    quiet = replace(base, environment=clean, stages=tuple(replace(s, contention={"others": 0.02}) for s in base.stages))
    assert not [text for text in remarks(quiet) if "busy" in text or "start" in text or "commit" in text]
    other = replace(clean, git_commit="f" * 40, git_dirty=True)
    starts = tuple(
        Invocation(("python",), f"2026-11-22T0{n}:00:00Z", env, ("stage6",)) for n, env in enumerate((clean, other))
    )
    loud = replace(
        base,
        environment=clean,
        stages=(replace(base.stages[0], contention={"others": 0.4, "steal": 0.25}), *base.stages[1:]),
        invocations=starts,
    )
    said = " ".join(remarks(loud))
    assert "stage1 (other processes took 40 % of the CPU and the hypervisor took 25 %" in said
    assert "2 starts of the runner contributed: 2026-11-22T00:00:00Z, stage6" in said
    assert "different commits: 81110db3c0ff, ffffffffffff" in said
    assert "the checkout had local changes" in said
    page = render(loud)
    assert page.index('class="remarks"') < page.index('class="facts"')


def test_the_goal_table_shows_no_pass_for_a_wrong_result() -> None:
    """A parity case on CUDA failed: its latencies count for nothing; those of the CPU stand."""
    wrong = CaseResult(
        "suites/stage5_parity/test_traces.py::test_agrees[cuda-stdp_w3]",
        "stage5",
        ("BE-4",),
        Outcome.FAILED,
        "burst 41",
    )
    slow = latency("cpu", 100_000, 0.42, scope="step", threads=1)
    cpu = CaseResult("suites/stage6/cpu", "stage6", ("BE-5",), Outcome.PASSED, measurements=(slow,))
    record = record_of(timed(100_000, 4.0), cpu, wrong)
    row = next(row for row in goal_rows(record) if row.measured == "4 µs")
    assert (row.verdict, row.decided.partition(":")[0]) == ("FAIL", "FAIL, the result was not right")
    assert "test_agrees[cuda-stdp_w3]" in row.doubt
    assert not any("4 µs" in line and line.endswith("PASS") for line in goal_lines(goal_rows(record)))
    assert "the result was not right" in render(record)
    right = record_of(timed(100_000, 4.0), cpu, replace(wrong, case=wrong.case.replace("cuda", "cpu")))
    assert next(row for row in goal_rows(right) if row.measured == "4 µs").decided == "PASS"
    failed = record_of(timed(100_000, 4.0, outcome=Outcome.FAILED, reason="wrong"))
    assert "the case that measured it failed" in next(r for r in goal_rows(failed) if r.measured == "4 µs").decided


def test_the_best_other_was_measured_in_this_run_or_carries_a_date() -> None:
    """Nobody's estimate is the best other; a ratio that a case took against a program names it."""
    conditions = {"backend": "cuda", "against": "pytorch", "rows": 8192, "columns": 4096}
    ratio = Measurement("rows.against_pytorch", 1.25, "x", conditions=conditions)
    case = CaseResult("suites/stage6/rows", "stage6", ("TO-3",), Outcome.PASSED, measurements=(ratio,))
    rows = goal_rows(record_of(timed(1_000_000, 15.0), case))
    beside = next(row for row in rows if row.measured == "1.25×")
    assert (beside.other, beside.other_from, beside.against_other) == ("PyTorch", "this run", "1.25×")
    burst = next(row for row in rows if row.measured == "15 µs")
    assert (burst.other, burst.other_from, burst.against_other) == (
        "51.2 µs brainevent",
        "elsewhere, 2026-11-20",
        "3.4×",
    )
    assert not any("design notes" in row.other + row.sources for row in rows)


def test_one_reason_for_many_cases_is_one_row() -> None:
    reason = "no WGPU adapter: not installed: wgpu"
    record = record_of(*(skipped(f"wgpu[{n}]", reason) for n in range(257)))
    view = build_view(record)
    assert [(why, len(cases)) for why, cases in view.skips] == [(reason, 257)]
    assert reason not in view.line
    assert summarise(record).skipped == 257
    assert "".join(Page(render(record)).text).count(reason) <= 3 + sum(row.reason.count(reason) for row in view.trace)
