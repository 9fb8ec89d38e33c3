"""The history of runs: one section per machine, trends, what could not be read."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.command import main
from reports.judge.difference import Change
from reports.judge.history import history_of
from reports.store import load_history, load_records, write_run
from reports.values.measurement import Measurement
from reports.values.record import RunRecord
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-5", "RE-8")
BASELINES = Path(__file__).parents[4] / "reports" / "baselines"
CLEAN = replace(sample_record().environment, git_commit="a" * 40, git_dirty=False)
BASE = replace(sample_record(faults=False), environment=CLEAN)


def scaled(factor: float, minute: int, commit: str = "a", uuid: str = "") -> RunRecord:
    """The sample run with every CUDA latency multiplied, begun in ``minute``, on the card ``uuid``."""

    def slow(measurement: Measurement) -> Measurement:
        if measurement.conditions.get("backend") != "cuda" or measurement.value is None:
            return measurement
        samples = tuple(factor * sample for sample in measurement.samples)
        return replace(measurement, value=factor * measurement.value, samples=samples)

    cases = tuple(replace(case, measurements=tuple(map(slow, case.measurements))) for case in BASE.cases)
    hardware = dict(BASE.hardware)
    if uuid:
        hardware["gpus"] = [{"name": "NVIDIA H200", "uuid": uuid, "memory_total_bytes": 141 << 30}]
    return replace(
        BASE,
        run_id=f"{uuid}{commit}{minute}",
        started_utc=f"2026-11-22T10:{minute:02}:00Z",
        cases=cases,
        environment=replace(CLEAN, git_commit=commit * 40),
        hardware=hardware,
    )


def test_history_follows_each_measurement(tmp_path: Path) -> None:
    """Three A/A runs within 0.4 %, then a commit that is 20 % slower; a broken folder is listed."""
    for minute, (factor, commit) in enumerate([(1.0, "a"), (1.004, "a"), (1.002, "a"), (1.2, "b")]):
        write_run(tmp_path / f"run{minute}", scaled(factor, minute, commit))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.json").write_text("{")
    history = load_history(tmp_path)
    (machine,) = history.machines
    assert [run.run_id for run in machine.runs] == ["a0", "a1", "a2", "b3"]
    assert {run.scope for run in machine.runs} == {f"{BASE.plan} plan, all stages"}
    assert [name for name, _ in history.unreadable] == ["broken"]
    trends = [trend for trend in machine.trends if trend.conditions.startswith("backend cuda")]
    slower = tuple(trend for trend in trends if trend.name == "burst.latency")
    assert len(slower) == 6
    assert all(trend.change.change is Change.SLOWER for trend in slower)
    assert machine.trends[:6] == slower
    trends = list(slower)
    assert (trends[0].low, trends[0].high) == (trends[0].first, trends[0].last)
    page = tmp_path / "history.html"
    assert main(["history", str(tmp_path), "--out", str(page)]) == 0
    text = page.read_text()
    assert text.count('class="spark"') == len(machine.trends)
    assert "broken" in text


def test_the_scale_of_a_trend_is_stated(tmp_path: Path) -> None:
    """Across one step a run, up from the row's lowest figure at the foot to its highest at the top, linear."""
    for minute, factor in enumerate([1.0, 1.5, 2.0, 1.25]):
        write_run(tmp_path / f"run{minute}", scaled(factor, minute))
    page = tmp_path / "history.html"
    assert main(["history", str(tmp_path), "--out", str(page)]) == 0
    text = page.read_text()
    assert "Trend, linear from its lowest to its highest figure" in text
    rows = re.findall(r'class="spark" d="M([^"]+)".*?<div class="soft small">([^<]+)</div>', text, re.DOTALL)
    (machine,) = load_history(tmp_path).machines
    drawn = sorted(
        (trend.low, trend.high, [point.value for point in trend.points])
        for trend in machine.trends
        if trend.points[0].value > 0 and trend.low != trend.high
    )
    assert drawn
    stated = [path for path, scale in rows if scale == f"foot {drawn[0][0]}, top {drawn[0][1]}"]
    low, high = min(drawn[0][2]), max(drawn[0][2])
    places = [tuple(map(float, place.split())) for place in stated[0].split(" L")]
    assert [x for x, _ in places] == [0.0, 40.0, 80.0, 120.0]
    shares = [(value - low) / (high - low) for value in drawn[0][2]]
    assert [y for _, y in places] == pytest.approx([20.0 - 18.0 * share for share in shares], abs=0.05)


@pytest.mark.parametrize(("unit", "word"), [("ms", "slower"), ("B", "worse")])
def test_more_bytes_are_worse_not_slower(unit: str, word: str) -> None:
    assert Change.SLOWER.word(unit) == word
    assert Change.SAME.word(unit) == "same"


def test_machines_are_never_mixed() -> None:
    """Two cards of one class that take turns, one of them half as fast: no trend sees both."""
    runs = [scaled(1.0 + (minute % 2), minute, uuid=f"GPU-{minute % 2}") for minute in range(6)]
    history = history_of(runs)
    assert [one.machine.gpu_uuids for one in history.machines] == [("GPU-1",), ("GPU-0",)]
    assert [len(one.runs) for one in history.machines] == [3, 3]
    assert all(trend.change.change is Change.SAME for one in history.machines for trend in one.trends)


def test_a_run_without_an_end_is_a_part_of_its_plan() -> None:
    """Stages that have a case, each whole or a part; one without a case is not named."""
    kept = BASE.stages[-2:]
    cases = tuple(case for case in BASE.cases if case.stage in (BASE.stages[-3].stage, kept[0].stage))
    stages = (*BASE.stages[:-2], *(replace(stage, problem="cut off") for stage in kept))
    (machine,) = history_of([replace(BASE, stages=stages, cases=cases, finished_utc="")]).machines
    ran = [stage.stage for stage in BASE.stages if any(case.stage == stage.stage for case in cases)]
    assert len(ran) == 2
    assert machine.runs[0].scope == f"a part of the {BASE.plan} plan: {ran[0]}, a part of {ran[1]}"
    (machine,) = history_of([replace(BASE, cases=(), finished_utc="")]).machines
    assert machine.runs[0].scope == f"a part of the {BASE.plan} plan: nothing"


def test_without_runs_of_one_commit_the_last_change_cannot_be_told() -> None:
    (machine,) = history_of([scaled(1.0, 0), scaled(1.2, 1, "b")]).machines
    changed = [trend for trend in machine.trends if trend.conditions.startswith("backend cuda")]
    changed = [trend for trend in changed if trend.name == "burst.latency"]
    assert {trend.change.change for trend in changed} == {Change.UNKNOWN}


@pytest.mark.thorough("reads the largest records")
def test_committed_records_are_one_section_per_machine() -> None:
    records, unreadable = load_records(BASELINES)
    assert unreadable == []
    machines = history_of(records).machines
    assert len(machines) == len({one.machine.gpu_uuids for one in machines}) >= 5
