"""Building a base commit beside the working tree, and running both in turns; the runs themselves are stand-ins."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from reports.judge.difference import LEAST_RUNS, are_interleaved
from reports.store import write_run
from stages import compare
from stages.bootstrap import session_commands
from stages.compare import PAGE, SUMMARY, Turn, carry_out, main, measure, turns
from stages.signals import Interrupted
from suites.support.sample_runs import run, timed

pytestmark = pytest.mark.requirement("RE-4", "ST-6")
ROOT = Path(__file__).parents[3]


def git(folder: Path, *words: str) -> str:
    named = ("-c", "user.name=a", "-c", "user.email=a@b.c", *words)
    return subprocess.run(["git", *named], cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository of two commits, whose file says how long a burst takes."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for text in ("0.010", "0.012"):
        (folder / "takes").write_text(text)
        git(folder, "add", "takes")
        git(folder, "commit", "-q", "-m", text)
    return folder


class Stand:
    """Runs nothing: a run of stage 6 writes a record whose latency is what the checkout's file says."""

    def __init__(self) -> None:
        self.trees: list[Path] = []

    def __call__(self, command: Sequence[str], folder: Path) -> int:
        if command[2] == "reports":
            paths = {"PYTHONPATH": f"{ROOT / 'impl'}:{ROOT}"}
            return subprocess.run(command, cwd=ROOT, env=paths, check=False, stdout=subprocess.DEVNULL).returncode
        place = len(self.trees)
        self.trees.append(folder)
        takes = float((folder / "takes").read_text()) * (1.0 + 0.001 * (place % 3))
        hardware = {"host": {"name": "here", "cpu": "a CPU", "usable_cores": 2}, "problem": None}
        record = replace(run(place, timed(takes, place), commit="ab"[takes > 0.011]), hardware=hardware)
        write_run(Path(command[-1]), record)
        return 1


def test_turns_alternate() -> None:
    planned = turns(Path("base"), Path("new"), Path("out"), 5)
    assert "".join(turn.side[0] for turn in planned) == "bnnbbnnbbn"
    places = {side: [n for n, turn in enumerate(planned) if turn.side == side] for side in ("base", "new")}
    assert are_interleaved(places["base"], places["new"])
    assert len({turn.folder for turn in planned}) == 10


@pytest.mark.thorough("seconds")
def test_a_slower_commit_is_confirmed(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand = Stand()
    monkeypatch.setattr(compare, "_call", stand)
    out = tmp_path / "out"
    assert main(["--out", str(out), "--base", "HEAD~1"], checkout) == 1
    assert len(stand.trees) == 10
    assert set(stand.trees) == {checkout, out / "base"}
    assert (out / SUMMARY).read_text().startswith("**1 confirmed regression")
    assert "confirmed slower" in (out / PAGE).read_text()
    assert not (out / "base").exists()
    assert git(checkout, "worktree", "list").count("\n") == 0


def test_without_a_name_the_base_is_what_came_before(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    assert compare._base(checkout) == git(checkout, "rev-parse", "HEAD~1")
    git(checkout, "switch", "-q", "-c", "branch")
    git(checkout, "commit", "-q", "--allow-empty", "-m", "more")
    assert compare._base(checkout) == head
    (checkout / "takes").write_text("0.013")
    assert compare._base(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_run_without_a_record_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"left no record \(exit code 3\).*printed above says why"):
        measure(Turn("base", tmp_path, tmp_path / "run"), lambda command, folder: 3)
    with pytest.raises(InputError, match="left no record"):
        carry_out(tmp_path, tmp_path, tmp_path / "out", 3, (), lambda command, folder: 0)


def test_wrong_use_is_answered(checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--base", "absent", "--out", str(tmp_path / "out")], checkout) == 4
    assert "git rev-parse" in capsys.readouterr().err
    assert main(["--out", str(tmp_path)], checkout) == 4
    assert "Delete it, or name another" in capsys.readouterr().err
    (tmp_path / "file").touch()
    assert main(["--out", str(tmp_path / "file" / "out")], checkout) == 3
    assert "stages.compare: error: [Errno 20] Not a directory" in capsys.readouterr().err
    for wrong, said in ((["--runs", "2"], "fewer than"), (["--stric"], "Did you mean --strict?")):
        with pytest.raises(SystemExit) as ended:
            main(wrong, checkout)
        assert ended.value.code == 4
        assert said in capsys.readouterr().err


def test_an_interrupted_comparison_leaves_no_worktree(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ended(command: Sequence[str], folder: Path) -> int:
        assert folder.is_dir()
        raise Interrupted("SIGTERM")

    monkeypatch.setattr(compare, "_call", ended)
    assert main(["--out", str(tmp_path / "out")], checkout) == ExitCode.UNDECIDED
    assert "interrupted (SIGTERM)" in capsys.readouterr().err
    assert git(checkout, "worktree", "list").count("\n") == 0


def test_a_worktree_that_git_did_not_finish_is_removed(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that is killed while it checks out leaves its worktree locked."""

    def killed(command: Sequence[str], folder: Path) -> int:
        git(checkout, "worktree", "lock", str(tmp_path / "out" / "base"))
        raise Interrupted("SIGTERM")

    monkeypatch.setattr(compare, "_call", killed)
    assert main(["--out", str(tmp_path / "out")], checkout) == ExitCode.UNDECIDED
    assert git(checkout, "worktree", "list").count("\n") == 0


def test_each_side_imports_its_own_packages(tmp_path: Path) -> None:
    """The base commit's modules come first, although this checkout is installed."""
    (tmp_path / "impl" / "burstproof").mkdir(parents=True)
    (tmp_path / "impl" / "burstproof" / "__init__.py").write_text("name = 'base'\n")
    asked = "import burstproof, sys; sys.exit(7 if burstproof.__dict__.get('name') == 'base' else 0)"
    assert compare._call([sys.executable, "-c", asked], tmp_path) == 7


def test_the_workflow_asks_for_what_there_is() -> None:
    """Its command is one of the session's, and what it publishes is what the session writes."""
    steps = (ROOT / ".github" / "workflows" / "compare.yml").read_text(encoding="utf-8")
    (asked,) = re.findall(r"run: python3 noxfile.py -s compare -- (.+)", steps)
    (command,) = session_commands("compare", shlex.split(asked))
    assert command[0] == compare.__name__
    options = compare._parser().parse_args(command[1:])
    assert (options.strict, options.runs >= LEAST_RUNS) == (True, True)
    assert f"run: cat {options.out / SUMMARY} >>" in steps
    assert f"path: {options.out}/" in steps
    assert "fetch-depth: 0" in steps, "the base commit is built from the history"
