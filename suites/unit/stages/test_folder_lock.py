"""One runner at a time in a folder, and only in one that is its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.command import main as reports_main
from stages.command import main
from stages.folder_lock import hold
from suites.support.small_plan import GOOD, MARK, ROOT, Checkout, run

pytestmark = [pytest.mark.requirement("RE-1", "RE-2"), pytest.mark.thorough("starts runs of its own: seconds each")]

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no flock")


@posix
def test_a_run_that_is_under_way_is_neither_resumed_nor_recorded(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    where = checkout(GOOD, GOOD)
    _, folder, _ = run(where, "--only", "stage1")
    before = (folder / "record.json").read_bytes()
    capsys.readouterr()
    with hold(folder):
        assert main(["run", "--resume", str(folder)], *where) == ExitCode.USAGE
        assert main(["record", str(folder)], *where) == ExitCode.USAGE
    assert capsys.readouterr().err.count("another run is under way in this folder") == 2
    assert (folder / "record.json").read_bytes() == before
    assert run(where, "--resume", str(folder))[0] == ExitCode.PASS


@posix
def test_a_suite_sees_its_folder_locked(checkout: Checkout) -> None:
    """While a stage runs, another process cannot take the lock."""
    program = "from pathlib import Path; from stages.folder_lock import hold\nwith hold(Path('run')): pass"
    source = MARK + (
        "import subprocess, sys\ndef test_it():\n"
        f"    said = subprocess.run([sys.executable, '-c', {program!r}], capture_output=True, text=True).stderr\n"
        "    assert 'another run is under way' in said\n"
    )
    assert run(checkout(source))[0] == ExitCode.PASS


@posix
def test_a_lock_lasts_as_long_as_a_process_that_inherited_it(tmp_path: Path) -> None:
    """A killed runner leaves its supervisor behind for a while, and that one's suite."""
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with hold(tmp_path) as lock:
        assert lock is not None
        heir = subprocess.Popen(program, stdin=subprocess.PIPE, pass_fds=(lock,))
    with pytest.raises(Exception, match="another run is under way"), hold(tmp_path):
        pass
    heir.communicate()
    with hold(tmp_path):
        pass


@pytest.mark.parametrize("place", ["", ".", "part1"])
def test_a_run_never_lies_among_other_files(
    checkout: Checkout, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, plan = checkout(GOOD)
    monkeypatch.chdir(root)
    before = sorted(root.rglob("*"))
    assert main(["run", "--run", place], root, plan) == ExitCode.USAGE
    assert "a folder with other files in it" in capsys.readouterr().err
    assert sorted(root.rglob("*")) == before


def test_an_empty_folder_serves(checkout: Checkout) -> None:
    where = checkout(GOOD)
    (where[0] / "run").mkdir()
    assert run(where)[0] == ExitCode.PASS


@pytest.mark.parametrize("option", ["--targets", "--run", "--resume", "--workers"])
def test_dashes_are_no_value(checkout: Checkout, option: str, capsys: pytest.CaptureFixture[str]) -> None:
    root, plan = checkout(GOOD)
    assert main(["run", f"{option}=--"], root, plan) == ExitCode.USAGE
    assert f"an option without a value (got '{option}=--')" in capsys.readouterr().err
    assert reports_main(["render", "run", "--out=--"]) == ExitCode.USAGE


def test_a_signal_while_the_record_is_written_loses_no_record(checkout: Checkout, tmp_path: Path) -> None:
    root, _ = checkout(GOOD)
    program = (
        "import os, signal; from pathlib import Path; from stages import runner; from stages.plan import Stage\n"
        "from stages.command import main; from stages.signals import end_in_order\n"
        "end_in_order()\nwrite = runner.write_run\n"
        "runner.write_run = lambda *given: (os.kill(os.getpid(), signal.SIGTERM), write(*given))[1]\n"
        "plan = (Stage('stage1', 'part', 'none', '', ('part1',), ''),)\n"
        f"raise SystemExit(main(['run', '--run', {str(tmp_path / 'own')!r}], Path({str(root)!r}), plan))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == ExitCode.UNDECIDED, done.stderr
    assert "Interrupted (SIGTERM)" in done.stdout
    assert (tmp_path / "own" / "record.json").is_file()
    assert (tmp_path / "own" / "report.html").is_file()
