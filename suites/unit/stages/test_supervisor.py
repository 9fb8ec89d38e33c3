"""However a stage ends, none of its processes is left, and a process that died stalls nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.values.measurement import Outcome
from stages import pytest_command, supervisor
from suites.support.small_plan import MARK, ROOT, Checkout, run

pytestmark = [
    pytest.mark.requirement("RE-2"),
    pytest.mark.thorough("starts runs of its own: seconds each"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux finds processes that left their group"),
]

PATIENCE_S = 60.0
# A child, a child with a session of its own, and one whose parent is gone; their ids are written to the file named.
FAMILY = """
import os, pathlib, subprocess, sys, time
sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
ids = [os.getpid(), subprocess.Popen(sleep).pid, subprocess.Popen(sleep, start_new_session=True).pid]
read, write = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(write, str(os.getpid()).encode())
        time.sleep(600)
    os._exit(0)
os.wait()
ids.append(int(os.read(read, 20)))
note = pathlib.Path(sys.argv[1])
note.with_suffix(".partial").write_text(" ".join(map(str, ids)))
note.with_suffix(".partial").rename(note)
"""


def is_running(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    return False


def wait_for(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()


def all_gone(ids: list[int]) -> bool:
    try:
        return wait_for(lambda: not any(map(is_running, ids)))
    finally:
        for pid in filter(is_running, ids):
            os.kill(pid, signal.SIGKILL)


def start(*command: str, **options: object) -> subprocess.Popen[bytes]:
    supervised = [sys.executable, "-I", "-S", supervisor.__file__, sys.executable, *command]
    return subprocess.Popen(supervised, stdin=subprocess.PIPE, **options)


def ids_in(note: Path) -> list[int]:
    assert wait_for(note.is_file)
    return [int(pid) for pid in note.read_text(encoding="ascii").split()]


@pytest.mark.parametrize(
    ("end", "status"),
    [("returns", 0), ("exits", 3), ("is killed", -signal.SIGKILL), ("is closed", -signal.SIGINT)],
)
def test_nothing_survives_the_command(tmp_path: Path, end: str, status: int) -> None:
    """The command returns, exits, is killed, or its runner closes the pipe; its status is passed on."""
    last = {
        "returns": "",
        "exits": "sys.exit(3)",
        "is killed": "os.kill(os.getpid(), 9)",
        "is closed": "time.sleep(600)",
    }
    process = start("-c", FAMILY + last[end], str(tmp_path / "ids"))
    ids = ids_in(tmp_path / "ids")
    if end == "is closed":
        process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == status
    assert all_gone(ids)


def test_nothing_survives_a_command_that_ignores_the_interrupt(tmp_path: Path) -> None:
    process = start(
        "-c", FAMILY + "import signal; signal.signal(2, signal.SIG_IGN); time.sleep(600)", str(tmp_path / "ids")
    )
    ids = ids_in(tmp_path / "ids")
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    assert all_gone(ids)


def test_a_command_started_in_the_background_can_be_interrupted(tmp_path: Path) -> None:
    """A shell lets what it starts in the background ignore SIGINT; the command does not inherit that."""
    source = (  # told of within the try: the interrupt comes as soon as the note is there
        "import pathlib, sys, time\nnote = pathlib.Path(sys.argv[1])\n"
        "try:\n    note.touch()\n    time.sleep(600)\nexcept KeyboardInterrupt:\n    note.write_text('torn down')\n"
    )
    script = 'trap "" INT; exec "$@"'
    command = [sys.executable, "-I", "-S", supervisor.__file__, sys.executable, "-c", source, str(tmp_path / "note")]
    process = subprocess.Popen(["sh", "-c", script, "sh", *command], stdin=subprocess.PIPE)
    assert wait_for((tmp_path / "note").is_file)
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == 0
    assert (tmp_path / "note").read_text(encoding="ascii") == "torn down"


def test_a_command_ends_with_a_supervisor_that_is_killed(tmp_path: Path) -> None:
    """Its case may be the one that kills its parent; the next process writes into the same files."""
    source = (
        "import os, pathlib, signal, sys, time; pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGKILL); time.sleep(600)"
    )
    command = [sys.executable, "-I", "-S", supervisor.__file__, sys.executable, "-c", source, str(tmp_path / "note")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert process.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    pid = int((tmp_path / "note").read_text(encoding="ascii"))
    assert all_gone([pid])


def test_a_process_does_not_outlive_its_parent_for_long(tmp_path: Path) -> None:
    """While the command goes on: the child of a worker that died would hold the pipe on which pytest waits."""
    program = "import sys; from stages import supervisor; supervisor.ORPHAN_S = 0.5\n"
    program += "supervisor.supervise([sys.executable, *sys.argv[1:]], sys.stdin.fileno())"
    command = ["-c", FAMILY + "time.sleep(600)", str(tmp_path / "ids")]
    process = subprocess.Popen([sys.executable, "-c", program, *command], stdin=subprocess.PIPE, cwd=ROOT)
    *family, orphan = ids_in(tmp_path / "ids")
    assert wait_for(lambda: not is_running(orphan))
    assert all(map(is_running, family))
    process.stdin.close()
    process.wait(timeout=PATIENCE_S)
    assert all_gone(family)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_nothing_survives_the_runner(checkout: Checkout, tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "ids"
    body = "".join(f"    {line}\n" for line in FAMILY.replace("sys.argv[1]", repr(str(note))).splitlines())
    root, _ = checkout(MARK + f"def test_it():\n{body}    time.sleep(600)\n")
    program = (
        "import signal, sys; from pathlib import Path; from stages.command import main; from stages.plan import Stage\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the suite under nohup ignores it\n"
        f"plan = (Stage('stage1', 'part', 'none', '', ('part1',), ''),)\n"
        f"sys.exit(main(['run', '--run', {str(root / 'run')!r}], Path({str(root)!r}), plan))"
    )
    process = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT)
    ids = ids_in(note)
    process.send_signal(number)
    process.wait(timeout=PATIENCE_S)
    assert all_gone(ids)


@pytest.mark.thorough("seconds")
def test_a_worker_that_dies_loses_its_case_and_stalls_nothing(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of cases that run side by side: the others are run by the workers that are left."""
    monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
    monkeypatch.setattr(pytest_command, "_spread", lambda workers: ["-n", "2", "--dist", "loadgroup"])
    many = "@pytest.mark.parametrize('n', range(6))\ndef test_{0}(n): time.sleep(0.1)\n"
    dies = "def test_dies(): os.kill(os.getpid(), 9)\n"
    source = MARK + "import os, time\n" + many.format("before") + dies + many.format("after")
    root, (stage,) = checkout(source)
    code, _, record = run((root, (replace(stage, side_by_side=True, time_limit_s=PATIENCE_S),)))
    assert code == ExitCode.UNDECIDED
    outcomes = {case.case.split("::")[-1]: case.outcome for case in record.cases}
    assert outcomes.pop("test_dies") is Outcome.ERROR
    assert list(outcomes.values()) == [Outcome.PASSED] * 12
    assert record.stages[0].problem == ""


def test_a_process_that_dies_loses_its_case_and_another_runs_the_rest(checkout: Checkout) -> None:
    """Of cases that run one after the other."""
    dies = "def test_{0}(): os.kill(os.getpid(), {0})\n"
    source = MARK + "import os\ndef test_first(): pass\n" + dies.format(9) + dies.format(11) + "def test_last(): pass\n"
    code, _, record = run(checkout(source))
    assert code == ExitCode.UNDECIDED
    outcomes = {case.case.split("::")[-1]: case.outcome for case in record.cases}
    assert outcomes == {
        "test_first": Outcome.PASSED,
        "test_9": Outcome.ERROR,
        "test_11": Outcome.ERROR,
        "test_last": Outcome.PASSED,
    }
    assert "(SIGKILL) during part1/test_part1.py::test_9; " in record.stages[0].problem
    assert "(SIGSEGV) during part1/test_part1.py::test_11" in record.stages[0].problem
    assert record.stages[0].collected == 4


def test_a_process_that_dies_between_two_cases_loses_none(checkout: Checkout) -> None:
    """As for want of memory: the stage is an error, and another process runs the rest."""
    root, plan = checkout(MARK + "def test_first(): pass\ndef test_last(): pass\n")
    hook = "def pytest_runtest_logfinish(nodeid):\n    if nodeid.endswith('first'): os.kill(os.getpid(), 9)\n"
    (root / "part1" / "conftest.py").write_text(f"import os\n{hook}", encoding="utf-8")
    code, _, record = run((root, plan))
    assert code == ExitCode.UNDECIDED
    assert [case.outcome for case in record.cases] == [Outcome.PASSED] * 2
    assert record.stages[0].problem == "pytest died of signal 9 (SIGKILL) between two cases"
