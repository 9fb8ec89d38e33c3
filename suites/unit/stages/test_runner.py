"""The runner on small plans of its own: run folder, exit codes, crash, time limit, resume, explain."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import marshal
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.judge.judging import targets_sha256
from reports.judge.targets import load_targets
from reports.judge.verdict import run_verdict
from reports.store import load_run
from reports.values.measurement import Outcome, Verdict
from stages import gating, pytest_command
from stages.command import main
from stages.plan import PLAN
from stages.results import numbered
from suites.support.small_plan import GOOD, MARK, ROOT, Checkout, run

pytestmark = [
    pytest.mark.requirement("RE-1", "RE-2", "RE-6"),
    pytest.mark.thorough("starts runs of its own: seconds each"),
]


def test_a_run_leaves_one_folder_with_record_junit_benchmarks_and_report(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = (
        MARK
        + "def test_timed(benchmark, measure):\n    measure('a.b', benchmark.pedantic(sum, ([1, 2],), rounds=1), '1')\n"
    )
    code, folder, record = run(checkout(GOOD, timed))
    assert code == ExitCode.PASS
    assert record.finished_utc
    assert [case.stage for case in record.cases] == ["stage1", "stage2"]
    assert record.cases[1].measurements[0].value == 3.0
    assert record.environment.packages["pytest"] == pytest.__version__
    assert [suite.get("name") for suite in ET.parse(folder / "junit.xml").getroot()] == ["stage1", "stage2"]
    benchmarks = json.loads((folder / "benchmark.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in benchmarks["benchmarks"]] == ["test_timed"]
    assert benchmarks["machine_info"]
    assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    said = capsys.readouterr().out
    assert said.startswith("Every gate of this plan is open.")
    assert said.rstrip().endswith(f"Report: {folder / 'report.html'}")


def test_attachments_carry_the_hash_of_what_lies_there(checkout: Checkout) -> None:
    _, folder, record = run(checkout(GOOD))
    names = {one.path for one in record.attachments}
    assert {"junit.xml", "benchmark.json", "stages/stage1/pytest.log", "stages/stage1/environment.json"} <= names
    for one in record.attachments:
        assert hashlib.sha256((folder / one.path).read_bytes()).hexdigest() == one.sha256


@pytest.mark.parametrize(
    ("source", "code", "outcome", "reason"),
    [
        ("def test_it(): assert 1 == 2", ExitCode.FAIL, Outcome.FAILED, "1 == 2"),
        ("def test_it(measure): measure('a', None, 'ms')", ExitCode.FAIL, Outcome.PASSED, ""),
        ("def test_it(absent): pass", ExitCode.UNDECIDED, Outcome.ERROR, "fixture 'absent' not found"),
        ("import absent_module", ExitCode.UNDECIDED, Outcome.ERROR, "absent_module"),
        ("def test_it(): pytest.skip()", ExitCode.UNDECIDED, Outcome.ERROR, "without a reason"),
        ("import os\ndef test_it(): os._exit(0)", ExitCode.UNDECIDED, Outcome.ERROR, "began and never ended"),
        ("import os\ndef test_it(): os.abort()", ExitCode.UNDECIDED, Outcome.ERROR, "SIGABRT"),
    ],
    ids=["failure", "missing figure", "missing fixture", "import error", "skip without a reason", "exit", "abort"],
)
def test_what_did_not_pass_is_never_green(
    checkout: Checkout, source: str, code: ExitCode, outcome: Outcome, reason: str
) -> None:
    """A failure, a missing figure, an error, a crash: each has its exit code, and the other stage still runs."""
    got, _, record = run(checkout(MARK + source, GOOD))
    assert got == code
    assert record.cases[0].outcome is outcome
    assert reason in record.cases[0].reason
    assert record.cases[-1].case == "part2/test_part2.py::test_good"


DIES_AT_EXIT = (
    "import atexit, os, signal\n"
    "def test_first(measure):\n    measure('a.b', 1.0, '1')\n"
    "    atexit.register(os.kill, os.getpid(), signal.SIGSEGV)\n"
    "def test_second(): pass\n"
)


@pytest.mark.thorough("seconds")
@pytest.mark.parametrize(
    ("side_by_side", "problem"),
    [
        (False, "pytest died of signal 11 (SIGSEGV) after its last case, with every result kept"),
        (True, "a process that ran cases died: Segmentation fault; its stack is in pytest.log"),
    ],
)
def test_a_death_after_the_last_case_is_found_and_loses_nothing(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, side_by_side: bool, problem: str
) -> None:
    """As the interpreter ends, of the stage's process or of one of those in which its cases run side by side."""
    root, stages = checkout(MARK + DIES_AT_EXIT, GOOD)
    if side_by_side:
        monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
        monkeypatch.setattr(pytest_command, "_spread", lambda workers: ["-n", "2", "--dist", "loadgroup"])
    stages = tuple(replace(stage, side_by_side=side_by_side) for stage in stages)
    code, folder, record = run((root, stages))
    assert code == ExitCode.UNDECIDED
    assert [stage.problem for stage in record.stages] == [problem, ""]
    assert [case.outcome for case in record.cases] == [Outcome.PASSED] * 3
    assert sum(len(case.measurements) for case in record.cases) == 1
    assert run_verdict(record) is Verdict.ERROR
    assert "Segmentation fault" in (folder / "stages/stage1/pytest.log").read_text(encoding="utf-8")
    errors = [error.get("message", "") for error in ET.parse(folder / "junit.xml").getroot().iter("error")]
    assert errors == [problem]


def test_what_failed_cases_print_is_no_death(checkout: Checkout) -> None:
    source = MARK + "def test_it():\n    print('Fatal Python error: of a child')\n    assert False"
    code, _, record = run(checkout(source))
    assert code == ExitCode.FAIL
    assert record.stages[0].problem == ""


def test_fail_outranks_error(checkout: Checkout) -> None:
    code, _, _ = run(checkout(MARK + "import os\ndef test_it(): os._exit(3)", MARK + "def test_it(): assert False"))
    assert code == ExitCode.FAIL


@pytest.mark.thorough("seconds")
@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "no case was collected"),
        ("import pytest\n@pytest.mark.gate('tpu')\ndef test_it(): pass", "unknown gate 'tpu'"),
    ],
    ids=["empty module", "unknown gate"],
)
def test_a_stage_that_ran_nothing_could_not_be_judged(checkout: Checkout, source: str, problem: str) -> None:
    code, folder, record = run(checkout(source, GOOD))
    assert code == ExitCode.UNDECIDED
    assert problem in record.stages[0].problem
    errors = [error.get("message", "") for error in ET.parse(folder / "junit.xml").getroot().iter("error")]
    assert any(problem in message for message in errors)


def test_a_stage_beyond_its_time_limit_is_ended(checkout: Checkout) -> None:
    source = MARK + "import time\ndef test_first(): pass\ndef test_hangs(): time.sleep(600)"
    code, _, record = run(checkout(source, limit_s=4.0))
    assert code == ExitCode.UNDECIDED
    assert "time limit of 4 s" in record.stages[0].problem
    assert record.cases[0].outcome is Outcome.PASSED
    assert record.stages[0].duration_s < 60


def test_a_skip_keeps_the_exit_code_and_the_first_line_says_it(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    skipping = GOOD + "@pytest.mark.gate('gpu')\ndef test_gpu(): pass\n"
    code, _, record = run(checkout(GOOD, skipping, gates=("none", "gpu")), "--gpu-free")
    assert code == ExitCode.PASS
    assert {case.outcome for case in record.cases} == {Outcome.PASSED, Outcome.SKIPPED}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"Only their GPU-free part runs here: stage2 ({gating.GPU_FREE_REASON})"
    assert any("1 case skipped" in line and gating.GPU_FREE_REASON in line for line in lines[1:])


def test_a_named_stage_with_a_closed_gate_exits_3(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, record = run(checkout(GOOD, GOOD, gates=("none", "gpu")), "stage2")
    assert code == ExitCode.INVALID_ENVIRONMENT
    assert record.asked == ("stage2",)
    assert [stage.stage for stage in record.stages] == ["stage2"]
    assert record.stages[0].gate_reason == "no gpu here"
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "Exit code 3: asked for by name, and the gate is closed: stage2."


def test_a_named_stage_whose_gpu_free_part_was_asked_for_says_so(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, _ = run(checkout(GOOD, GOOD, gates=("none", "gpu")), "stage2", "--gpu-free")
    assert code == ExitCode.INVALID_ENVIRONMENT
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "Exit code 3: of stage2 only the GPU-free part was asked for, and ran."


@pytest.mark.thorough("seconds")
def test_a_run_in_which_nothing_ran_exits_3(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, record = run(checkout(MARK + "def test_it(): pytest.skip('no board')"))
    assert code == ExitCode.INVALID_ENVIRONMENT
    assert run_verdict(record) is Verdict.SKIPPED
    assert capsys.readouterr().out.splitlines()[-1] == "Exit code 3: nothing ran."


def test_a_stage_that_the_run_lacks_cannot_be_run_alone(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    root, plan = checkout(GOOD, GOOD)
    assert main(("run", "stage1", "--only", "stage2"), root, plan) == ExitCode.USAGE
    assert not (root / "runs").exists()
    assert "a stage that is not in the run's plan (got 'stage2'; allowed: stage1)" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "stage9"),
        ("run", "--only", "stage9"),
        ("run", "--bogus"),
        ("run", "stage1", "--gpu-fre"),
        ("run", "--workers", "0"),
        ("run", "--workers=-3"),
        ("walk",),
        (),
        ("run", "--resume", "nowhere"),
        ("run", "stage1", "--resume", "nowhere"),
    ],
)
def test_usage_errors_exit_4_and_leave_nothing(
    checkout: Checkout, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, plan = checkout(GOOD)
    monkeypatch.chdir(root)
    assert main(arguments, root, plan) == ExitCode.USAGE
    assert not (root / "runs").exists()
    assert capsys.readouterr().err.startswith("python -m stages: ")


def test_the_help_names_a_command_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--help"], ROOT)
    assert capsys.readouterr().out.startswith("usage: python -m stages run ")


def test_a_run_is_where_it_was_asked_for(checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the checkout, in which pytest runs: another run may have that name there."""
    root, plan = checkout(GOOD)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(("run", "--run", "runs/own", "--thorough"), root, plan) == ExitCode.PASS
    assert load_run(elsewhere / "runs" / "own").finished_utc
    assert not (root / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [(("run", "--explian"), "--explain"), (("run", "--gpu-fre"), "--gpu-free"), (("rnu",), "run")],
)
def test_a_slip_is_answered_with_what_may_have_been_meant(
    checkout: Checkout, arguments: tuple[str, ...], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments, *checkout(GOOD)) == ExitCode.USAGE
    assert f"Did you mean {meant}? See --help." in capsys.readouterr().err


def test_an_environment_without_the_tools_exits_3(tmp_path: Path) -> None:
    """An interpreter without site-packages names what is missing, without a traceback."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {[str(ROOT), str(ROOT / 'impl')]!r}\n"]
    command[-1] += "from stages.__main__ import main\nsys.argv[1:] = ['run']\nsys.exit(main())"
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.INVALID_ENVIRONMENT
    assert "numpy, numba, jinja2, pytest, pytest_benchmark cannot be imported" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_the_runner_is_imported_is_a_sentence() -> None:
    """Not a traceback with exit code 1, which says that a requirement is not met."""
    program = (
        "import os, signal, sys\nclass Finder:\n    def find_spec(self, name, *_):\n"
        "        if name == 'stages.command': os.kill(os.getpid(), signal.SIGINT)\n"
        "from stages.__main__ import main\nsys.meta_path.insert(0, Finder())\nsys.argv[1:] = ['list']\nsys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "python -m stages: error: interrupted\n")


def test_an_existing_run_is_not_overwritten(checkout: Checkout) -> None:
    where = checkout(GOOD)
    run(where)
    assert main(["run", "--run", str(where[0] / "run")], *where) == ExitCode.USAGE


def test_only_runs_a_part_and_resume_the_rest(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    """The two halves of a plan run in two processes and end in one record."""
    where = checkout(GOOD, GOOD, GOOD)
    code, folder, record = run(where, "--only", "stage2")
    assert code == ExitCode.UNDECIDED
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == f"A part of the run; still to run: stage1, stage3. Continue with --resume {folder}"
    assert not any("did not finish" in line or "Not proven" in line for line in said)
    assert record.command == ("python", "-m", "stages", "run")
    assert not record.finished_utc
    assert [bool(stage.problem) for stage in record.stages] == [True, False, True]
    first = (folder / "stages/stage2/results.jsonl").read_bytes()
    code, _, record = run(where, "--resume", str(folder))
    assert code == ExitCode.PASS
    assert record.finished_utc
    assert [case.stage for case in record.cases] == ["stage1", "stage2", "stage3"]
    assert (folder / "stages/stage2/results.jsonl").read_bytes() == first
    capsys.readouterr()
    code, _, again = run(where, "--resume", "run", "--runs", str(where[0]))
    assert code == ExitCode.PASS
    assert again.cases == record.cases
    assert "stage1 part ..." not in capsys.readouterr().out


def test_a_resumed_run_keeps_what_was_asked(checkout: Checkout) -> None:
    where = checkout(GOOD, GOOD, gates=("none", "gpu"))
    run(where, "stage2", "stage1", "--gpu-free", "--only", "stage1")
    code, folder, record = run(where, "--resume", str(where[0] / "run"))
    assert code == ExitCode.INVALID_ENVIRONMENT
    assert record.asked == ("stage2", "stage1")
    assert record.stages[1].gate_reason == gating.GPU_FREE_REASON
    assert "--gpu-free" in record.command
    assert main(["run", "--resume", str(folder), "--gpu-free"], *where) == ExitCode.USAGE


def processes_of(root: Path) -> list[str]:
    """Command lines of this machine's processes that name ``root``."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if str(root) in line]


@pytest.mark.requirement("RE-7")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sh, setsid, nohup and /proc are those of Linux")
@pytest.mark.parametrize(
    ("start", "number"),
    [
        ("exec python", signal.SIGINT),
        ("python & echo $!; wait", signal.SIGINT),
        pytest.param("nohup python & echo $!; wait", signal.SIGTERM, marks=pytest.mark.thorough("seconds each")),
        pytest.param("setsid python & echo $!; wait", signal.SIGHUP, marks=pytest.mark.thorough("seconds each")),
    ],
    ids=["foreground, SIGINT", "background, SIGINT", "nohup, SIGTERM", "setsid, SIGHUP"],
)
def test_an_interrupted_run_is_recorded_and_its_running_stage_runs_again(
    checkout: Checkout, tmp_path: Path, start: str, number: signal.Signals
) -> None:
    """However it was started: the first stage is kept, nothing is left running, --resume runs the second again.

    A shell starts what runs in the background with SIGINT ignored. The case ignores what its process inherits, so the
    handlers that reach it are those of the runner.
    """
    flag = tmp_path / "second_time"
    slow = MARK + (
        "import pathlib, subprocess, sys, time\ndef test_slow():\n"
        f"    if not pathlib.Path({str(flag)!r}).exists():\n"
        f"        subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', {str(tmp_path)!r}])\n"
        "        time.sleep(600)\n"
    )
    root, plan = checkout(GOOD, slow)
    folder = root / "run"
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from pathlib import Path; from stages.command import main; from stages.plan import Stage\n"
        "import signal; from stages.signals import end_in_order\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the suite under nohup ignores it\n"
        "end_in_order()\n"
        f"plan = tuple(Stage(f'stage{{n}}', 'part', 'none', '', (f'part{{n}}',), '') for n in (1, 2))\n"
        f"sys.exit(main(['run', '--run', {str(folder)!r}], Path({str(root)!r}), plan))",
        encoding="utf-8",
    )
    said, script = tmp_path / "said.txt", start.replace("python", f"{sys.executable} {program}")
    with said.open("w", encoding="utf-8") as out:
        shell = subprocess.Popen(["sh", "-c", script], cwd=ROOT, stdout=out, stderr=out)
    results = folder / "stages/stage2/results.jsonl"
    deadline = time.monotonic() + 60
    while not (results.is_file() and "started" in results.read_text(encoding="utf-8")):
        assert time.monotonic() < deadline, said.read_text(encoding="utf-8")
        time.sleep(0.2)
    pid = said.read_text(encoding="utf-8").split()[0]
    os.kill(int(pid) if pid.isdecimal() else shell.pid, number)
    assert shell.wait(timeout=60) == (0 if "wait" in start else ExitCode.UNDECIDED)
    assert processes_of(tmp_path) == []
    words = said.read_text(encoding="utf-8").replace(str(tmp_path), "")
    assert words.lower().count("interrupted") == 1, words
    assert f"Interrupted ({number.name})" in words
    record = load_run(folder)
    assert not record.finished_utc
    assert record.stages[0].problem == ""
    assert record.stages[1].problem == "it was interrupted: 0 of 1 cases have a result; continue with --resume"
    assert record.stages[1].collected == 1
    assert record.stages[1].duration_s > 0.0
    flag.touch()
    code, _, record = run((root, plan), "--resume", str(folder))
    assert code == ExitCode.PASS
    assert [case.outcome for case in record.cases] == [Outcome.PASSED, Outcome.PASSED]


LONGER = MARK + (
    "@pytest.fixture(scope='module')\ndef costly(): raise AssertionError('made')\n"
    "@pytest.mark.thorough('it takes a minute')\ndef test_long(costly): pass\n"
    "@pytest.mark.nightly('it takes hours')\ndef test_longer(costly): pass\n"
    "def test_short(): pass\n"
)


@pytest.mark.requirement("RE-7")
def test_a_smaller_plan_leaves_out_and_names_what_a_larger_one_holds(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    """Quick by default; what is left out stands in the record with its reason, and its fixtures are not made."""
    where = checkout(LONGER)
    code, folder, record = run(where)
    assert code == ExitCode.PASS
    assert record.plan == "quick"
    assert [(case.outcome, case.reason) for case in record.cases] == [
        (Outcome.SKIPPED, "quick plan: left to --thorough: it takes a minute"),
        (Outcome.SKIPPED, "quick plan: left to --nightly: it takes hours"),
        (Outcome.PASSED, ""),
    ]
    assert capsys.readouterr().out.splitlines()[1].startswith("Quick plan: ")
    assert main(["run", "--resume", str(folder), "--thorough"], *where) == ExitCode.USAGE
    assert main(["run", "--thorough", "--nightly"], *where) == ExitCode.USAGE


@pytest.mark.requirement("RE-7")
@pytest.mark.parametrize(("plan", "ran"), [("thorough", 2), ("nightly", 3)])
def test_a_larger_plan_runs_more_and_resumes_as_what_it_was(checkout: Checkout, plan: str, ran: int) -> None:
    where = checkout(LONGER.replace("raise AssertionError('made')", "pass"), GOOD)
    code, folder, record = run(where, f"--{plan}", "--only", "stage2")
    assert record.plan == plan
    assert record.command[-1] == f"--{plan}"
    code, _, record = run(where, "--resume", str(folder))
    assert code == ExitCode.PASS
    outcomes = [case.outcome for case in record.cases if case.stage == "stage1"]
    assert outcomes.count(Outcome.PASSED) == ran
    assert outcomes.count(Outcome.SKIPPED) == 3 - ran


@pytest.mark.requirement("RE-7")
def test_a_stage_says_what_else_kept_the_machine_busy(checkout: Checkout) -> None:
    _, _, record = run(checkout(GOOD))
    if sys.platform.startswith("linux"):
        assert {"others", "steal", "load"} <= set(record.stages[0].contention)
    assert all(value >= 0.0 for value in record.stages[0].contention.values())


def test_explain_says_what_would_run_and_runs_nothing(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    root, plan = checkout(GOOD, "raise AssertionError('ran')", gates=("none", "gpu"))
    assert main(["run", "--explain", "--run", str(root / "run")], root, plan) == ExitCode.PASS
    said = capsys.readouterr().out
    assert said.splitlines()[0] == "Only their GPU-free part runs here: stage2 (no gpu here)"
    assert "would run: the CPU" in said
    assert "not the rest: gate gpu is closed: no gpu here" in said
    assert not (root / "run").exists()


def test_list_names_every_stage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"], ROOT) == ExitCode.PASS
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [stage.name for stage in PLAN]


def test_a_run_whose_runner_is_gone_still_gets_its_record(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the folder of a run holds that was cut off in its second stage becomes a record that says so."""
    where = checkout(GOOD, GOOD)
    _, folder, whole = run(where)
    for name in ("record.json", "report.html", "stages/stage2/stage.json", "stages/stage2/junit.xml"):
        (folder / name).unlink()
    lines = (folder / "stages/stage2/results.jsonl").read_text(encoding="utf-8").splitlines()
    begun = numbered(len(lines), {"started": "part2/test_part2.py::test_another"})
    (folder / "stages/stage2/results.jsonl").write_text("\n".join([*lines[:-1], begun, ""]), encoding="utf-8")
    root, plan = where
    assert main(["record", str(folder)], root, plan) == ExitCode.UNDECIDED
    record = load_run(folder)
    assert record.hardware == whole.hardware
    assert record.environment == whole.environment
    assert (record.finished_utc, record.stages[0]) == ("", whole.stages[0])
    assert record.stages[1].problem == ("the runner ended before the stage did; of 2 cases that had begun, 1 had ended")
    assert [case.outcome for case in record.cases] == [Outcome.PASSED, Outcome.PASSED, Outcome.ERROR]
    assert main(["record", str(folder)], root, plan) == ExitCode.UNDECIDED
    main(["run", "--resume", str(folder)], root, plan)
    assert main(["record", str(folder)], root, plan) == ExitCode.USAGE
    assert "this run has its record" in capsys.readouterr().err


@pytest.mark.thorough("seconds")
def test_gates_that_were_not_kept_follow_from_the_cases(checkout: Checkout) -> None:
    source = MARK + "@pytest.mark.gate('gpu')\ndef test_gpu(): pass\n\ndef test_cpu(): pass\n"
    where = checkout(source, GOOD, gates=("gpu", "gpu"))
    _, folder, _ = run(where, "--gpu-free")
    for name in ("record.json", "machine.json", "stages/stage1/stage.json", "stages/stage2/stage.json"):
        (folder / name).unlink()
    main(["record", str(folder)], *where)
    first, second = load_run(folder).stages
    assert (first.gate_open, "gate gpu is closed" in first.gate_reason) == (False, True)
    assert (second.gate_open, second.gate_reason) == (True, "no case that ran was skipped for it")


OWN = """
[[target]]
id = "mine"
measurement = "mine.size"
metric = "the size that I need"
comparison = ">="
limit = 5.0
unit = "B"
source = "own"
status = "goal"
date = "2026-11-22"
"""
SIZED = MARK + "def test_size(measure): measure('mine.size', 4.0, 'B')\n"


def test_a_run_is_judged_by_a_users_targets(
    checkout: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Missed, named in the first line, in the table and in the report; a copy is evidence and serves --resume."""
    path = tmp_path / "mine.toml"
    path.write_text(OWN, encoding="utf-8")
    where = checkout(SIZED)
    code, folder, record = run(where, "--targets", str(path))
    assert code == ExitCode.FAIL
    assert [judged.target for judged in record.judgements] == ["mine"]
    assert record.judged[-1].targets_sha256 == targets_sha256(load_targets(path)) != targets_sha256()
    assert "targets.toml" in {one.path for one in record.attachments}
    said = capsys.readouterr().out
    assert "FAIL: 1 goal missed, by 20.0 %" in said
    assert "the size that I need" in said
    assert "the size that I need" in (folder / "report.html").read_text(encoding="utf-8")
    path.unlink()
    code, _, again = run(where, "--resume", str(folder))
    assert (code, again.judgements) == (ExitCode.FAIL, record.judgements)


def test_a_faulty_file_stops_the_run_before_it_has_a_folder(
    checkout: Checkout, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(OWN.replace('"B"', '"furlong"'), encoding="utf-8")
    root, plan = checkout(SIZED)
    assert main(["run", "--run", str(root / "run"), "--targets", str(path)], root, plan) == ExitCode.USAGE
    assert "mine.toml: target 1 (mine).unit" in capsys.readouterr().err
    assert not (root / "run").exists()


def forged(source: Path, code: str) -> None:
    """Put ``code`` where Python keeps what it compiled of ``source``, as if it were of that."""
    was = source.stat()
    header = importlib.util.MAGIC_NUMBER + struct.pack("<3I", 0, int(was.st_mtime), was.st_size)
    kept = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    kept.parent.mkdir(exist_ok=True)
    kept.write_bytes(header + marshal.dumps(compile(code, source, "exec")))


def test_compiled_files_beside_the_sources_do_not_run(checkout: Checkout) -> None:
    """Neither in the suites, nor in a process that a case starts; what the suites compile is gone at the end."""
    source = (
        "import subprocess, sys, helper\ndef test_here(): assert helper.VALUE == 1\ndef test_there():\n"
        "    assert subprocess.check_output([sys.executable, '-c', 'import helper; print(helper.VALUE)']) == b'1\\n'\n"
    )
    root, plan = checkout(MARK + source)
    (root / "helper.py").write_text("VALUE = 1\n", encoding="utf-8")
    forged(root / "helper.py", "VALUE = 2")
    code, folder, record = run((root, plan))
    assert (code, [case.outcome for case in record.cases]) == (ExitCode.PASS, [Outcome.PASSED] * 2)
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["stages"]
    assert [path.name for path in (root / "part1").iterdir()] == ["test_part1.py"]


def test_the_runner_itself_runs_no_compiled_files_beside_its_sources(tmp_path: Path) -> None:
    (tmp_path / "impl").symlink_to(ROOT / "impl")
    for package in ("hardware", "reports", "stages"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    forged(tmp_path / "stages" / "command.py", "import sys\nsys.exit('forged')")
    command = [sys.executable, "-m", "stages", "run", "--explain", "--gpu-free"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (ExitCode.PASS, "")
