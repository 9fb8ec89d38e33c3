"""Comparison and history of runs, and the command that draws them."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from hardware.inventory import take_inventory
from reports.command import describe_comparison, main
from reports.judge.compare import compare
from reports.judge.statistics import Change
from reports.store import load_history, write_run
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import RunRecord
from suites.support.sample_record import latency, sample_record

_BARE = """
import runpy, sys
sys.path.insert(0, {checkout!r})
sys.argv = [{room!r}]
runpy.run_module({room!r}, run_name="__main__")
"""
pytestmark = pytest.mark.requirement("RE-4")
BASE = sample_record(faults=False)


def scaled(record: RunRecord, factor: float, run_id: str) -> RunRecord:
    """The same run with every CUDA latency multiplied."""

    def slow(measurement: Measurement) -> Measurement:
        if measurement.conditions.get("backend") != "cuda" or measurement.value is None:
            return measurement
        samples = tuple(factor * sample for sample in measurement.samples)
        return replace(measurement, value=factor * measurement.value, samples=samples)

    cases = tuple(replace(case, measurements=tuple(map(slow, case.measurements))) for case in record.cases)
    return replace(record, run_id=run_id, started_utc="2026-11-22T00:00:00Z", cases=cases)


@pytest.mark.parametrize(
    ("factor", "change", "code"),
    [(1.0, Change.SAME, ExitCode.PASS), (1.08, Change.SLOWER, ExitCode.FAIL), (0.8, Change.FASTER, ExitCode.PASS)],
)
def test_change_is_found_and_judged(factor: float, change: Change, code: ExitCode) -> None:
    comparison = compare([BASE, scaled(BASE, factor, "candidate")])
    cuda = [row for row in comparison.rows if row.conditions.startswith("backend cuda")]
    assert len(cuda) == 6
    assert all(row.candidates[0] and row.candidates[0][1].change is change for row in cuda)
    assert comparison.exit_code is code
    others = [row for row in comparison.rows if row not in cuda]
    assert all(row.candidates[0] and row.candidates[0][1].change is Change.SAME for row in others)


def test_machines_are_paired_and_named() -> None:
    """H100 against H200: the same work is paired although the device differs, and the device is named."""
    cases = []
    inventory = {"gpus": [{"name": "NVIDIA H100"}], "host": {"cpu": "Intel Xeon", "usable_cores": 8}}
    for case in BASE.cases:
        figures = tuple(replace(m, conditions={**m.conditions, "device": "NVIDIA H100"}) for m in case.measurements)
        cases.append(replace(case, measurements=figures))
    other = replace(BASE, run_id="h100", cases=tuple(cases), hardware=inventory)
    comparison = compare([BASE, other])
    assert comparison.unpaired == ()
    assert comparison.environment[0] == ("GPUs", ("NVIDIA H200", "NVIDIA H100"))
    assert ("CPU", ("AMD EPYC 9554, 16 cores", "Intel Xeon, 8 cores")) in comparison.environment
    assert set(asdict(take_inventory().host)) >= {"cpu", "usable_cores"}


def test_backends_are_paired_on_request() -> None:
    def one(backend: str, centre: float) -> RunRecord:
        case = CaseResult(backend, "stage6", (), Outcome.PASSED, measurements=(latency(backend, 100_000, centre),))
        return replace(BASE, run_id=backend, cases=(case,))

    apart = compare([one("cpu", 0.5), one("cuda", 0.01)])
    assert apart.rows == ()
    assert apart.exit_code is ExitCode.UNDECIDED
    (row,) = compare([one("cpu", 0.5), one("cuda", 0.01)], across=["backend"]).rows
    assert row.candidates[0]
    assert row.candidates[0][1].change is Change.FASTER


def test_text_shows_the_first_differences_and_counts_the_rest() -> None:
    packages = {f"package{n:03}": "1" for n in range(300)}
    comparison = compare([BASE, replace(BASE, environment=replace(BASE.environment, packages=packages))])
    lines = [line for line in describe_comparison(comparison).splitlines() if line.startswith("  differs: ")]
    assert len(lines) == 13
    assert lines[-1] == f"  differs: and {len(comparison.environment) - 12} more; --out FILE writes all"


def test_a_case_that_now_fails_is_a_regression() -> None:
    comparison = compare([BASE, sample_record(faults=True)])
    worse = [change for change in comparison.cases if change.regression]
    assert [(change.before, change.after) for change in worse] == [(Verdict.PASS, Verdict.FAIL)]
    assert comparison.exit_code is ExitCode.FAIL
    with pytest.raises(InputError, match="two runs"):
        compare([BASE])


def test_command_compares_and_renders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base, slower = tmp_path / "runs" / "a", tmp_path / "runs" / "b"
    write_run(base, BASE)
    write_run(slower, scaled(BASE, 1.2, "slower"))
    page = tmp_path / "compare.html"
    assert main(["compare", str(base), str(slower), "--out", str(page)]) == 1
    assert "6 confirmed regressions" in page.read_text()
    assert main(["compare", str(base), str(base)]) == 0
    (base / "report.html").unlink()
    assert main(["render", str(base)]) == 0
    assert (base / "report.html").read_text().startswith("<!DOCTYPE html>")
    assert "6 confirmed regressions" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["render", "absent"], ["history", "absent"], ["compare", "absent", "absent"]])
def test_command_answers_wrong_use(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 4
    assert "absent" in capsys.readouterr().err
    for unknown in (["unknown"], ["compare", "a", "b", "--noise", "-1"]):
        with pytest.raises(SystemExit) as ended:
            main(unknown)
        assert ended.value.code == 4


def test_runs_without_a_common_figure_are_not_called_free_of_regressions() -> None:
    """A record whose hardware was lost says so too, rather than that there was no GPU."""
    bare = replace(BASE, run_id="bare", hardware={"problem": "lost"}, cases=())
    comparison = compare([BASE, bare])
    said = describe_comparison(comparison)
    assert said.startswith(f"nothing could be compared with {BASE.run_id}")
    assert "differs: GPUs: NVIDIA H200 | not recorded" in said
    assert comparison.exit_code is ExitCode.UNDECIDED


@pytest.mark.parametrize(
    "arguments", [("reports", "goals", "reports/baselines/h200"), ("stages", "run", "--explain"), ("hardware",)]
)
def test_a_reader_that_leaves_is_no_traceback(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", *arguments]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[4], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        assert started.stderr is not None
        started.stdout.close()
        assert started.stderr.read() == ""
    assert started.returncode == 141


@pytest.mark.parametrize("room", ["reports", "hardware"])
def test_a_room_runs_from_a_clone_where_burstproof_is_not_installed(room: str) -> None:
    """With nothing but Python there is an answer too: `hardware` needs no package, `reports` names what it misses."""
    checkout = Path(__file__).parents[4]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", _BARE.format(checkout=str(checkout), room=room)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if room == "hardware":
        assert done.returncode == 0, done.stderr
        assert "Gates:" in done.stdout
    else:
        assert done.returncode == 3, done.stderr
        assert "cannot be imported. pip install -e '.[test]'" in done.stderr


@pytest.mark.requirement("RE-5")
def test_history_follows_each_measurement(tmp_path: Path) -> None:
    write_run(tmp_path / "second", scaled(BASE, 1.2, "second"))
    write_run(tmp_path / "first", BASE)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "record.json").write_text("{")
    history = load_history(tmp_path)
    assert [run for run, _, _ in history.runs] == [BASE.run_id, "second"]
    assert [name for name, _ in history.unreadable] == ["broken"]
    trends = [trend for trend in history.trends if trend.conditions.startswith("backend cuda")]
    assert len(trends) == 6
    for trend in trends:
        assert trend.change
        assert trend.change.change is Change.SLOWER
        assert trend.points[1].value == pytest.approx(1.2 * trend.points[0].value)
    assert main(["history", str(tmp_path), "--out", str(tmp_path / "history.html")]) == 0
    assert (tmp_path / "history.html").read_text().count("<tr>") > 12
