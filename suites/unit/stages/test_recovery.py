"""Records of runs whose runner is gone, from folders laid out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from burstproof.errors import InputError
from hardware.gates import Gate
from reports.judge.verdict import stage_verdict
from reports.store import load_run
from reports.values.measurement import CaseResult, Outcome, Verdict
from reports.values.record import Invocation, RunRecord, StageRun
from reports.values.serialise import encode
from stages import recovery
from stages.plan import Stage
from stages.provenance import note_invocation
from stages.recovery import recover
from stages.results import ResultLines
from stages.run_folder import RunFolder, RunPlan, write_sealed
from stages.sittings import note_end
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-1")

ENVIRONMENT = sample_record(faults=False).environment
PLAN = tuple(Stage(f"stage{n}", f"part {n}", "gpu", "a GPU", (f"part{n}",), "it works") for n in (1, 2, 3))
CLOSED = "gate gpu is closed: no GPU here"


def result(name: str, outcome: Outcome = Outcome.PASSED, reason: str = "") -> CaseResult:
    return CaseResult(name, "stage1", ("BE-1",), outcome, reason)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run of two of three stages, of which nothing has begun."""
    monkeypatch.setattr(recovery, "take_environment", lambda _: ENVIRONMENT)
    made = RunFolder(tmp_path / "run")
    made.write_plan(RunPlan((), ("stage1", "stage2"), True, "2026-11-22T10:00:00Z", ("run",), "thorough"))
    return made


def begin(folder: RunFolder, *results: CaseResult, begun: tuple[str, ...] = ()) -> None:
    """Let the first stage begin, with these results and with cases that began."""
    lines = ResultLines(folder.files("stage1").results)
    note_invocation(folder, "stage1", Invocation(("run",), "2026-11-22T10:00:00Z", ENVIRONMENT, ()))
    for name in begun:
        lines.started(name)
    for one in results:
        lines.finished(one)


def recovered(folder: RunFolder) -> RunRecord:
    """The record, with which what Python compiled for the stages is gone."""
    folder.compiled.mkdir(exist_ok=True)
    record = recover(folder, PLAN, folder.path.parent)
    assert not folder.compiled.exists()
    assert load_run(folder.path).seal == record.seal
    return record


def test_nothing_began(folder: RunFolder) -> None:
    with pytest.raises(InputError, match=r"no stage of this run began.*--resume"):
        recover(folder, PLAN, folder.path.parent)


def test_a_stage_that_was_cut_off_says_how_far_it_came(folder: RunFolder) -> None:
    begin(folder, result("a"), result("b"), begun=("a", "b", "c"))
    record = recovered(folder)
    first, second = record.stages
    assert (first.stage, first.title, second.stage) == ("stage1", "part 1", "stage2")
    assert first.problem == ("the runner ended before the stage did; of 3 cases that had begun, 2 had ended")
    assert second.problem == "the runner ended before it began"
    assert [case.case for case in record.cases if case.outcome is Outcome.PASSED] == ["a", "b"]
    assert record.finished_utc == ""
    assert record.hardware == {
        "problem": "The hardware was not kept: the machine was gone before the record was written."
    }
    assert (first.gate_open, first.gate_reason) == (True, "no case that ran was skipped for it")
    assert (second.gate_open, second.gate_reason) == (False, record.hardware["problem"])
    assert stage_verdict(record, first) is Verdict.ERROR


def test_a_gate_is_what_the_skipped_cases_say(folder: RunFolder) -> None:
    begin(folder, result("a"), result("b", Outcome.SKIPPED, CLOSED), result("c", Outcome.SKIPPED, f"again {CLOSED}"))
    first = recovered(folder).stages[0]
    assert (first.gate_open, first.gate_reason) == (False, CLOSED)


def test_the_gates_that_the_run_found_come_first(folder: RunFolder) -> None:
    begin(folder, result("b", Outcome.SKIPPED, CLOSED))
    gates = {"gpu": Gate("gpu", True, "One GPU.")}
    write_sealed(folder.machine, encode(recovery.FoundMachine({"gpus": []}, gates)))
    record = recovered(folder)
    assert [(stage.gate_open, stage.gate_reason) for stage in record.stages] == [(True, "One GPU.")] * 2
    assert record.hardware == {"gpus": []}


def test_a_stage_that_ended_stays_as_it_ended(folder: RunFolder) -> None:
    begin(folder, result("a"))
    ended = StageRun("stage1", "part 1", True, "found", (), "timed out", ended_utc="2026-11-22T10:05:00Z")
    write_sealed(folder.files("stage1").done, encode(ended))
    assert recovered(folder).stages[0] == ended


def test_a_stage_that_was_cut_off_says_that_its_results_changed(folder: RunFolder) -> None:
    begin(folder, result("a"))
    cut = StageRun("stage1", "part 1", True, "found", (), "timed out; continue with --resume")
    note_end(folder.files("stage1"), cut, cut_off=True)
    assert recovered(folder).stages[0] == cut
    with folder.files("stage1").results.open("a", encoding="utf-8") as results:
        results.write("\n")
    assert (
        recovered(folder).stages[0].problem
        == f"results.jsonl changed after the stage ended or was cut off; {cut.problem}"
    )


def test_a_finished_record_is_kept_and_another_replaced(folder: RunFolder) -> None:
    begin(folder, result("a"))
    for number in (1, 2):
        folder.files(f"stage{number}").folder.mkdir(parents=True, exist_ok=True)
        ended = StageRun(f"stage{number}", "part", False, "closed", (), "timed out", ended_utc="2026-11-22T10:05:00Z")
        write_sealed(folder.files(f"stage{number}").done, encode(ended))
        assert bool(recovered(folder).finished_utc) is (number == 2)
    with pytest.raises(InputError, match="this run has its record"):
        recover(folder, PLAN, folder.path.parent)
