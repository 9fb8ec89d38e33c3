"""Stages that are cut off and go on: what is kept, what runs again, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from hardware.gates import Gate
from reports.values.measurement import CaseResult, Outcome
from reports.values.provenance import stages_of
from reports.values.record import Invocation, RunRecord
from reports.values.serialise import encode
from stages import pytest_command
from stages.assembling import stage_cases
from stages.command import TO_BE_CONTINUED, main
from stages.console import Console
from stages.provenance import note_invocation, read_invocations
from stages.results import ResultLines, read_lines, reopen
from stages.run_folder import RunFolder, write_sealed
from stages.sittings import Earlier, FoundMachine, go_on, note_end, refuse_to_mix
from suites.support.sample_record import sample_record
from suites.support.small_plan import GOOD, MARK, Checkout, run

pytestmark = pytest.mark.requirement("RE-1", "RE-6")

ENVIRONMENT = replace(sample_record(faults=False).environment, git_dirty=False, git_changes=())
FIRST = Invocation(("run",), "2026-11-22T10:00:00Z", ENVIRONMENT, (), "machine a")
SECOND = replace(FIRST, command=("run", "--resume"), started_utc="2026-11-22T11:00:00Z")
GATES = {"gpu": Gate("gpu", True, "one GPU")}
H200 = {"gpus": [{"name": "NVIDIA H200", "uuid": "GPU-1", "memory_total_bytes": 2**37}]}

COUNTED = (
    f"{MARK}import os, time, pathlib\nHERE = pathlib.Path(__file__).parent\n"
    "@pytest.fixture(autouse=True)\n"
    "def count(request):\n"
    "    with (HERE / 'begun.txt').open('a') as file: print(request.node.name, file=file)\n"
)
LIMIT_S = 20.0
"""Of a sitting: time for pytest to begin on a busy machine too."""
SLOW = COUNTED + (
    "@pytest.fixture\ndef late(request):\n    until = request.config.getoption('--bp-until')\n"
    "    while until and time.monotonic() < until: time.sleep(0.1)\n"
    "def test_a(): pass\ndef test_b(late): pass\ndef test_c(): pass\ndef test_d(): pass\n"
)


def result(name: str, outcome: Outcome = Outcome.PASSED) -> CaseResult:
    return CaseResult(name, "stage6", ("BE-1",), outcome, "")


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A run whose stage was killed: a has a result, in b a process died, c was running."""
    made = RunFolder(tmp_path)
    lines = ResultLines(made.files("stage6").results)
    for name in "abc":
        lines.started(name)
    lines.finished(result("a"))
    lines.let_go()
    made.files("stage6").begun.write_text("a\nb", encoding="utf-8")
    made.files("stage6").junit.write_text("<testsuites/>", encoding="utf-8")
    note_invocation(made, "stage6", FIRST)
    write_sealed(made.files("stage6").machine, encode(FoundMachine(H200, GATES)))
    return made


def test_what_was_running_runs_again_and_what_died_does_not(folder: RunFolder) -> None:
    files = folder.files("stage6")
    assert go_on(files) == Earlier(frozenset("a"))
    assert files.begun.read_text(encoding="utf-8").splitlines() == ["a", "b"]
    assert read_lines(files.results).unfinished == ("b",)
    assert [path.name for path in files.of_all_sittings(files.junit)] == ["junit.1.xml"]
    note_invocation(folder, "stage6", SECOND)
    lines = ResultLines(files.results)
    lines.started("c")
    lines.finished(result("c", Outcome.FAILED))
    lines.close()
    ended = sample_record(faults=False).stages[0]
    cases = stage_cases(replace(ended, stage="stage6"), read_lines(files.results))
    assert [(case.case, case.outcome) for case in cases] == [
        ("a", Outcome.PASSED),
        ("c", Outcome.FAILED),
        ("b", Outcome.ERROR),
    ]
    found = read_invocations(folder, ("stage6",))
    assert [(one.started_utc, one.stages, one.cases) for one in found] == [
        (FIRST.started_utc, ("stage6",), ("a",)),
        (SECOND.started_utc, ("stage6",), ("c",)),
    ]
    record = replace(sample_record(faults=False), cases=cases, invocations=found)
    assert [stages_of(record, one) for one in found] == [("stage6 (1 case)",)] * 2


def test_a_file_that_was_closed_is_opened_again(folder: RunFolder) -> None:
    """An interrupted pytest closes its results; three sittings in a row end in one file that is whole."""
    files = folder.files("stage6")
    for name in "cde":
        go_on(files)
        note_invocation(folder, "stage6", replace(SECOND, started_utc=f"2026-11-22T1{ord(name) - 98}:00:00Z"))
        lines = ResultLines(files.results)
        lines.started(name)
        lines.finished(result(name))
        lines.close()
    found = read_lines(files.results)
    assert (found.damage, found.closed) == ("", True)
    assert [case.case for case in found.cases] == ["a", "c", "d", "e"]
    assert [one.cases for one in read_invocations(folder, ("stage6",))] == [("a",), ("c",), ("d",), ("e",)]


def test_a_sitting_without_a_result_contributed_nothing(folder: RunFolder) -> None:
    files = folder.files("stage6")
    go_on(files)
    note_invocation(folder, "stage6", SECOND)
    assert [one.started_utc for one in read_invocations(folder, ("stage6",))] == [FIRST.started_utc]
    go_on(files)
    note_invocation(folder, "stage6", replace(SECOND, started_utc="later"))
    assert [path.name for path in files.of_all_sittings(files.environment)] == [
        "environment.1.json",
        "environment.json",
    ]


def test_damaged_results_are_not_kept(folder: RunFolder) -> None:
    files = folder.files("stage6")
    files.results.write_text(files.results.read_text(encoding="utf-8").replace("passed", "failed"), encoding="utf-8")
    assert go_on(files) == Earlier()
    assert list(files.folder.iterdir()) == []


@pytest.mark.parametrize("outcome", [Outcome.PASSED, Outcome.FAILED])
def test_results_that_are_not_those_of_the_sitting_are_refused(folder: RunFolder, outcome: Outcome) -> None:
    files = folder.files("stage6")
    files.results.unlink()
    for name in ("a", "b"):
        lines = ResultLines(files.results)
        lines.finished(result(name, outcome))
        lines.let_go()
        if name == "a":
            note_end(files, sample_record(faults=False).stages[0], cut_off=True)
            assert go_on(files).cases == frozenset("a")
            note_end(files, sample_record(faults=False).stages[0], cut_off=True)
    with pytest.raises(
        InputError, match=r"results.jsonl changed after .* cut off.*delete .*stage6 to run the stage anew"
    ):
        go_on(files)


def test_a_sitting_that_is_killed_at_once_loses_nothing(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed after it has opened the results again, before it has written anything else."""
    files = folder.files("stage6")
    note_end(files, sample_record(faults=False).stages[0], cut_off=True)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("stages.sittings.reopen", lambda *given: (reopen(*given), killed()))
        with pytest.raises(KeyboardInterrupt):
            go_on(files)
    assert go_on(files).cases == frozenset("a")


@pytest.mark.parametrize(
    ("commit", "hardware", "is_open", "problem"),
    [
        (ENVIRONMENT.git_commit, H200, True, ""),
        ("b" * 40, H200, True, r"cut off at another commit.*Check .* out, or delete .*stage6"),
        (ENVIRONMENT.git_commit, {"gpus": []}, True, "a machine of another class"),
        (ENVIRONMENT.git_commit, H200, False, r"gate gpu closed.*gate gpu open"),
    ],
    ids=["the same", "commit", "class", "gate"],
)
def test_another_commit_or_class_of_machine_is_refused(
    folder: RunFolder, commit: str, hardware: dict[str, object], is_open: bool, problem: str
) -> None:
    here = FoundMachine(hardware, {"gpu": Gate("gpu", is_open, "")})
    environment = replace(ENVIRONMENT, git_commit=commit)
    if not problem:
        refuse_to_mix(folder, "stage6", environment, here, "gpu")
        return
    with pytest.raises(InputError, match=problem):
        refuse_to_mix(folder, "stage6", environment, here, "gpu")


def test_another_stage_on_another_machine_in_between_changes_nothing(folder: RunFolder) -> None:
    """The run then names the machine of its last start; the stage that was cut off still belongs to its own."""
    elsewhere = FoundMachine({"gpus": []}, GATES)
    write_sealed(folder.machine, encode(elsewhere))
    with pytest.raises(InputError, match="a machine of another class"):
        refuse_to_mix(folder, "stage6", ENVIRONMENT, elsewhere, "gpu")


def begun(root: Path) -> list[str]:
    return (root / "part1" / "begun.txt").read_text(encoding="utf-8").split()


@pytest.mark.thorough("starts runs of its own: seconds each")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_time_limit_ends_a_sitting_and_another_goes_on(
    checkout: Checkout, workers: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With cases side by side too: those that have begun end, the others run in the next sitting, each once."""
    if workers > 1:
        monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
        monkeypatch.setattr(pytest_command, "_spread", lambda _: ["-n", "2", "--dist", "loadgroup"])
    root, plan = checkout(SLOW if workers == 1 else SLOW.replace("test_a()", "test_a(late)"), GOOD)
    plan = tuple(replace(stage, side_by_side=workers > 1) for stage in plan)
    code, folder, record = run((root, plan), "--time-limit", f"{LIMIT_S}")
    assert code == TO_BE_CONTINUED
    assert not record.finished_utc
    assert "the time of --time-limit was over: 2 of 4 cases have a result" in record.stages[0].problem
    said = capsys.readouterr().out
    assert "Cut off:\n  stage1: the time of --time-limit" in said
    assert said.rstrip().endswith(f"still to run: stage1, stage2. Continue with --resume {folder}")
    assert len(begun(root)) == 2
    code, _, record = run((root, plan), "--resume", str(folder), "--workers", "3")
    assert code == ExitCode.PASS
    assert sorted(begun(root)) == ["test_a", "test_b", "test_c", "test_d"]
    assert sorted(len(one.cases) for one in record.invocations) == [2, 2]
    assert record.command == ("python", "-m", "stages", "run", "--time-limit", f"{LIMIT_S:g}")
    resumed = ("python", "-m", "stages", "run", "--resume", folder.name, "--workers", "3")
    assert [one.command for one in record.invocations] == [record.command, resumed]
    assert record.finished_utc
    assert record.stages[0].duration_s > 2.0
    assert (folder / "junit.xml").read_text(encoding="utf-8").count("<testcase") == 5
    assert run((root, plan), "--resume", str(folder))[2].invocations == record.invocations


def test_a_text_of_first_that_no_case_has_in_its_name_is_named_at_once(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has one sitting on a lent GPU would wait for cases that do not come first. The case waits to be told."""
    waits = (
        "def test_small(): pass\n"
        "def test_large():\n"
        "    until = time.monotonic() + 30\n"
        "    while not (HERE / 'told').exists() and time.monotonic() < until: time.sleep(0.05)\n"
        "    assert (HERE / 'told').exists()\n"
    )
    where = checkout(COUNTED + waits)
    said: list[str] = []

    def say(_: Console, *lines: str) -> None:
        said.extend(line for line in lines if "--first" in line)
        if said:
            (where[0] / "part1" / "told").touch()

    monkeypatch.setattr(Console, "say", say)
    code, _, _ = run(where, "--first", "large", "--first", "larger")
    assert code == ExitCode.PASS
    assert said == [
        "  --first: no case of stage1 has this in its name: larger",
        "--first larger: no case has this in its name.",
    ]


def test_a_time_limit_that_no_case_ends_within_says_so(checkout: Checkout) -> None:
    """A script that goes on for as long as the exit code is 75 would never end."""
    slow = COUNTED + "time.sleep(3)\ndef test_a(): pass\n"
    code, _, record = run(checkout(slow), "--time-limit", "2")
    assert code == TO_BE_CONTINUED
    assert record.stages[0].problem.endswith("; no case ended within the time limit: allow more")


@pytest.mark.thorough("starts runs of its own: seconds each")
def test_a_stage_beyond_its_limit_goes_on_with_what_is_left(checkout: Checkout) -> None:
    once = "def test_b():\n    if (HERE / 'begun.txt').read_text().count('test_b') == 1: time.sleep(600)\n"
    root, plan = checkout(COUNTED + "def test_a(): assert False\n" + once + "def test_c(): pass\n", limit_s=6.0)
    code, folder, record = run((root, plan))
    assert code == ExitCode.FAIL
    assert "ended after its time limit of 6 s" in record.stages[0].problem
    assert "1 of 3 cases have a result; continue with --resume" in record.stages[0].problem
    code, _, record = run((root, plan), "--resume", str(folder))
    assert code == ExitCode.FAIL
    assert record.stages[0].problem == ""
    assert begun(root) == ["test_a", "test_b", "test_b", "test_c"]
    assert outcomes(record) == {"test_a": Outcome.FAILED, "test_b": Outcome.PASSED, "test_c": Outcome.PASSED}


@pytest.mark.thorough("starts runs of its own: seconds each")
def test_a_case_that_could_outlast_its_stage_waits_for_the_next_sitting(checkout: Checkout) -> None:
    """It runs first then; a case that a gate skips takes no time, whatever limit it states. The nightly plan only."""
    skipped = "@pytest.mark.gate('gpu')\n@pytest.mark.time_limit(52)\ndef test_c(): pass\n"
    slow = "def test_a(): time.sleep(9)\n@pytest.mark.time_limit(52)\ndef test_b(): pass\n"
    root, plan = checkout(COUNTED + slow + skipped, limit_s=60.0)
    code, folder, record = run((root, plan), "--nightly", "--gpu-free")
    assert code == TO_BE_CONTINUED
    said = "the time of the stage (60 s) was over: 2 of 3 cases have a result; continue with --resume"
    assert record.stages[0].problem == said
    code, _, record = run((root, plan), "--resume", str(folder))
    assert code == ExitCode.PASS
    assert begun(root) == ["test_a", "test_b"]
    assert list(outcomes(record).values()).count(Outcome.PASSED) == 2
    assert main(["run", "--thorough", "--run", str(root / "thorough")], root, plan) == ExitCode.PASS


@pytest.mark.thorough("starts runs of its own: seconds each")
def test_a_stage_killed_after_its_last_case_ends(checkout: Checkout) -> None:
    where = checkout(COUNTED + "def test_a(): pass\n")
    _, folder, _ = run(where)
    files = RunFolder(folder).files("stage1")
    files.done.unlink()
    assert run(where, "--resume", str(folder))[0] == ExitCode.PASS
    assert begun(where[0]) == ["test_a"]
    document = json.loads(files.of_all_sittings(files.environment)[0].read_text(encoding="utf-8"))
    write_sealed(files.of_all_sittings(files.environment)[0], {**document, "environment": encode(ENVIRONMENT)})
    files.done.unlink()
    assert main(["run", "--resume", str(folder)], *where) == ExitCode.USAGE


@pytest.mark.thorough("starts runs of its own: seconds each")
@pytest.mark.parametrize("killed", ["getpid", "getppid"], ids=["pytest", "its supervisor"])
def test_a_stage_killed_before_its_cases_were_known_runs_again(checkout: Checkout, killed: str) -> None:
    """As one whose machine lacks memory while modules are imported."""
    once = f"if not (HERE / 'told').exists():\n    (HERE / 'told').touch()\n    os.kill(os.{killed}(), 9)\n"
    where = checkout(f"{COUNTED}{once}    time.sleep(60)\ndef test_a(): pass\n", GOOD)
    code, folder, record = run(where)
    assert code == ExitCode.UNDECIDED
    assert not record.finished_utc
    said = "pytest died of signal 9 (SIGKILL): 0 cases have a result; continue with --resume"
    assert [stage.problem for stage in record.stages] == [said, ""]
    code, _, record = run(where, "--resume", str(folder))
    assert (code, outcomes(record)) == (ExitCode.PASS, {"test_a": Outcome.PASSED, "test_good": Outcome.PASSED})
    assert record.finished_utc


@pytest.mark.thorough("starts runs of its own: seconds each")
def test_a_stage_that_crashes_before_its_cases_are_known_has_ended(checkout: Checkout) -> None:
    """It would crash again."""
    code, _, record = run(checkout(f"{COUNTED}os.kill(os.getpid(), 11)\n"))
    assert (code, bool(record.finished_utc)) == (ExitCode.UNDECIDED, True)
    assert record.stages[0].problem == "pytest died of signal 11 (SIGSEGV)"


def outcomes(record: RunRecord) -> dict[str, Outcome]:
    return {case.case.rpartition("::")[2]: case.outcome for case in record.cases}


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "soon"])
def test_a_time_limit_is_a_time(checkout: Checkout, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", f"--time-limit={text}"], *checkout(GOOD)) == ExitCode.USAGE
    assert "is no time in seconds, more than 0" in capsys.readouterr().err
