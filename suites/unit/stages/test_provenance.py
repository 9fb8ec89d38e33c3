"""Who ran and who judged a run: nothing that contributed is lost when it is resumed or judged again."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from burstproof.errors import ExitCode, InputError
from reports.html import render
from reports.judge.admit import reasons_against
from reports.judge.judging import targets_sha256
from reports.judge.targets import load_targets
from reports.store import load_run
from reports.values.provenance import invocation_rows, provenance_lines
from reports.values.record import Environment, Invocation, StageRun
from reports.values.serialise import encode
from stages import environment, gating
from stages.command import main
from stages.environment import environment_since, take_environment, written_files
from stages.evidence import join_benchmarks
from stages.plan import NO_GATE, Stage
from stages.provenance import environment_of, note_invocation, read_invocations
from stages.run_folder import RunFolder, RunPlan, write_sealed

pytestmark = [pytest.mark.requirement("RE-1", "RE-9"), pytest.mark.thorough("starts runs of its own: seconds each")]

ROOT = Path(__file__).parents[3]
GOOD = "import pytest\npytestmark = pytest.mark.requirement('BE-1')\ndef test_good(): assert 1 + 1 == 2\n"
PLAN = tuple(Stage(f"stage{n}", "part", NO_GATE, "the CPU", (f"part{n}",), "it works") for n in (1, 2))


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A committed checkout of two stages, and no GPU."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "impl"), str(ROOT)]))
    monkeypatch.setattr(gating, "machine_gates", lambda _worker: gating.closed_gates())
    root = tmp_path / "checkout"
    for stage in PLAN:
        (root / stage.suites[0]).mkdir(parents=True)
        (root / stage.suites[0] / f"test_{stage.name}.py").write_text(GOOD, encoding="utf-8")
    (root / "pyproject.toml").touch()
    (root / "conftest.py").write_text('pytest_plugins = ["stages.plugin"]\n', encoding="utf-8")
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n", encoding="utf-8")
    (root / ".gitignore").write_text("/run/\n/quick/\n__pycache__/\n.benchmarks/\n.hypothesis/\n", encoding="utf-8")
    (root / "reports").mkdir()
    shutil.copy(ROOT / "reports" / "targets.toml", root / "reports")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    return root


def test_an_untracked_file_is_a_change_and_is_named(checkout: Path) -> None:
    clean = take_environment(checkout)
    assert (clean.git_commit, clean.git_dirty, clean.git_changes) == (git(checkout, "rev-parse", "HEAD"), False, ())
    (checkout / "run").mkdir()
    (checkout / "run" / "ignored").touch()
    assert not take_environment(checkout).git_dirty
    (checkout / "part1" / "conftest.py").touch()
    (checkout / "conftest.py").write_text("\n", encoding="utf-8")
    found = take_environment(checkout)
    assert found.git_dirty
    assert found.git_changes == (" M conftest.py", "?? part1/conftest.py")


def test_a_name_that_is_no_unicode_is_a_change_like_others(checkout: Path) -> None:
    git(checkout, "config", "core.quotepath", "false")
    (checkout / os.fsdecode(b"na\xefve.py")).touch()
    assert take_environment(checkout).git_changes == ("?? na\\xefve.py",)


def test_variables_of_git_name_no_other_repository(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git sets them for its hooks: the commit of another checkout would stand in the record."""
    monkeypatch.setenv("GIT_DIR", str(ROOT / ".git"))
    assert take_environment(checkout).git_commit != take_environment(ROOT).git_commit


def test_a_git_that_does_not_say_what_changed_leaves_no_clean_checkout(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where reading a large checkout takes too long."""
    commit, real = git(checkout, "rev-parse", "HEAD"), shutil.which("git")
    (tmp_path / "bin").mkdir()
    slow = tmp_path / "bin" / "git"
    slow.write_text(f'#!/bin/sh\ncase "$*" in *" status "*) exec sleep 60; esac\nexec {real} "$@"\n', encoding="utf-8")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent), prepend=os.pathsep)
    monkeypatch.setattr(environment, "_GIT_S", 2.0)
    found = take_environment(checkout)
    assert (found.git_commit, found.git_dirty) == (commit, True)
    assert found.git_changes == ("?? git status gave no answer",)


@pytest.mark.parametrize("asked", [("ls-tree", "-d"), ("ls-files", "--others"), ("ls-tree", "-r")])
def test_each_question_that_git_does_not_answer_leaves_no_clean_checkout(
    checkout: Path, asked: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = environment._git
    monkeypatch.setattr(environment, "_git", lambda root, *args: None if args[:2] == asked else answers(root, *args))
    assert take_environment(checkout).git_changes == (f"?? git {asked[0]} gave no answer",)


def test_what_git_was_told_to_hide_is_a_change(checkout: Path) -> None:
    """Marks of its index hide what differs, and nothing else."""
    (checkout / ".git" / "info" / "exclude").write_text("hidden/\n/part1/conftest.py\n", encoding="utf-8")
    (checkout / "part1" / "conftest.py").touch()
    (checkout / "part1" / "__pycache__").mkdir()
    (checkout / "part1" / "__pycache__" / "conftest.pyc").touch()
    git(checkout, "update-index", "--assume-unchanged", "conftest.py")
    git(checkout, "update-index", "--skip-worktree", "pyproject.toml")
    assert take_environment(checkout).git_changes == ("!! part1/conftest.py",)
    (checkout / "conftest.py").write_text("\n", encoding="utf-8")
    (checkout / "pyproject.toml").unlink()
    assert git(checkout, "status", "--porcelain") == ""
    assert take_environment(checkout).git_changes == (" M conftest.py", " D pyproject.toml", "!! part1/conftest.py")


def test_a_commit_that_another_one_replaces_is_not_what_lies_here(checkout: Path) -> None:
    """Git says the one's name, and checks the files of the other out."""
    (checkout / "conftest.py").write_text("\n", encoding="utf-8")
    git(checkout, "commit", "-qam", "second")
    git(checkout, "replace", "HEAD", "HEAD~1")
    git(checkout, "reset", "-q", "--hard", "HEAD")
    assert git(checkout, "status", "--porcelain") == ""
    assert " M conftest.py" in take_environment(checkout).git_changes


def test_an_index_that_knows_no_change_is_not_believed(checkout: Path) -> None:
    """A filter gave git what was committed; it is gone, and git does not look again."""
    git(checkout, "config", "filter.x.clean", "git cat-file blob HEAD:conftest.py")
    attributes = checkout / ".git" / "info" / "attributes"
    attributes.write_text("conftest.py filter=x\n", encoding="utf-8")
    (checkout / "conftest.py").write_text("\n", encoding="utf-8")
    time.sleep(1.1)  # git reads a file that is as young as its index
    git(checkout, "add", "conftest.py")
    git(checkout, "config", "--unset", "filter.x.clean")
    attributes.unlink()
    assert git(checkout, "status", "--porcelain") == ""
    assert take_environment(checkout).git_changes == (" M conftest.py",)


def test_line_ends_of_the_system_are_no_change(checkout: Path) -> None:
    git(checkout, "config", "core.autocrlf", "true")
    (checkout / "conftest.py").unlink()
    git(checkout, "checkout", "conftest.py")
    assert (checkout / "conftest.py").read_bytes().endswith(b"\r\n")
    assert take_environment(checkout).git_changes == ()


@pytest.mark.parametrize("how", ["link", "repository"])
def test_ignored_packages_into_which_git_does_not_look_are_changes(checkout: Path, tmp_path: Path, how: str) -> None:
    """One in the top folder or among the sources stands in for an installed one; other folders do not."""
    names = ("jinja2", "part1/numpy", "notes")
    (checkout / ".git" / "info" / "exclude").write_text("\n".join(names), encoding="utf-8")
    for name in names:
        folder = tmp_path / name if how == "link" else checkout / name
        folder.mkdir(parents=True)
        (folder / ("notes.txt" if name == "notes" else "__init__.py")).touch()
        if how == "link":
            (checkout / name).symlink_to(folder)
        else:
            git(folder, "init", "-q")
            git(folder, "add", ".")
            git(folder, "commit", "-qm", "own")
    assert [change.rstrip("/") for change in take_environment(checkout).git_changes] == [
        "!! jinja2",
        "!! part1/numpy",
    ]


@pytest.mark.parametrize(
    "settings", [("core.fsmonitor", "hook"), ("core.trustctime", "false", "core.checkStat", "minimal")]
)
def test_settings_of_git_hide_no_change(checkout: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    """A monitor of files that says that none was written; a file of the former size and time."""
    monitor = tmp_path / "monitor"
    monitor.write_text("#!/bin/sh\nprintf 'token\\0'\n", encoding="utf-8")
    monitor.chmod(0o755)
    for name, value in zip(settings[::2], settings[1::2], strict=True):
        git(checkout, "config", name, value.replace("hook", str(monitor)))
    time.sleep(1.1)  # git reads a file that is as young as its index
    git(checkout, "update-index", "--refresh", *(["--fsmonitor"] if "hook" in settings else []))
    git(checkout, "status")
    file = checkout / "conftest.py"
    before = file.stat()
    file.write_text(file.read_text(encoding="utf-8").replace("stages", "stagez"), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert git(checkout, "status", "--porcelain") == ""
    assert take_environment(checkout).git_changes == (" M conftest.py",)


def test_a_working_tree_elsewhere_is_a_change(checkout: Path, tmp_path: Path) -> None:
    shutil.copytree(checkout, tmp_path / "copy")
    git(checkout, "config", "core.worktree", str(tmp_path / "copy"))
    (checkout / "conftest.py").write_text("\n", encoding="utf-8")
    assert take_environment(checkout).git_changes == (" M conftest.py", f"!! git looks at {tmp_path / 'copy'}")


def test_ignored_modules_beside_the_sources_and_a_sitecustomize_are_changes(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each can stand in for a package of the suites, or alter pytest before it begins."""
    (checkout / ".git" / "info" / "exclude").write_text("/numpy.py\n/jinja2/\n/plain/\n", encoding="utf-8")
    for folder in ("jinja2", "plain"):
        (checkout / folder).mkdir()
    for name in ("numpy.py", "jinja2/__init__.py", "plain/notes.txt"):
        (checkout / name).touch()
    assert take_environment(checkout).git_changes == ("!! jinja2/__init__.py", "!! numpy.py")
    injected = tmp_path / "elsewhere" / "usercustomize.py"
    injected.parent.mkdir()
    injected.touch()
    monkeypatch.syspath_prepend(injected.parent)
    assert take_environment(checkout).git_changes[-1] == f"!! {injected}"


def test_modules_that_stand_in_for_others_are_changes(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For one of Python, of an installed package, of the project; wherever a relative folder begins."""
    for name in ("dataclasses", "pytest", "burstproof", "mine"):
        (tmp_path / "evil").mkdir(exist_ok=True)
        (tmp_path / "evil" / f"{name}.py").touch()
    changes = tuple(f"!! {tmp_path / 'evil' / name}" for name in ("burstproof", "dataclasses", "pytest"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "evil"))
    assert tuple(sorted(take_environment(checkout).git_changes)) == changes
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["../evil", "impl", "."]))
    assert tuple(sorted(take_environment(checkout).git_changes)) == changes
    monkeypatch.delenv("PYTHONPATH")
    monkeypatch.chdir(tmp_path / "evil")
    assert tuple(sorted(take_environment(checkout).git_changes)) == changes


def test_entry_points_on_the_path_are_changes(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins of pytest where they bear the name of one that the suites ask for, and what other packages load."""
    for name, plugin, group in (
        ("evil", "benchmark", "pytest11"),
        ("snapshots", "snapshots", "pytest11"),
        ("plain", "benchmark", "console_scripts"),
        ("extension", "init", "numba_extensions"),
    ):
        about = tmp_path / "path" / f"{name}-1.dist-info"
        about.mkdir(parents=True)
        (about / "entry_points.txt").write_text(f"[{group}]\n{plugin} = {name}\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "path"))
    found = sorted(take_environment(checkout).git_changes)
    assert found == [f"!! {tmp_path / 'path'}: {entry}" for entry in ("numba_extensions init", "pytest11 benchmark")]


@pytest.mark.parametrize("paths", ["impl:.", ":impl", str(ROOT), ""])
def test_the_projects_own_folders_on_the_path_are_no_change(
    checkout: Path, paths: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", paths.replace(":", os.pathsep))
    assert take_environment(checkout).git_changes == ()


def test_variables_by_which_other_code_runs_are_in_the_record(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"PYTHONPATH": "impl:.", "LD_LIBRARY_PATH": "/x", "LD_AUDIT": "y", "BURSTPROOF_CUDA_DEVICE_ID": "2"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    assert given.items() <= take_environment(checkout).variables.items()


def test_a_link_in_pythons_own_folder_is_no_change(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's Python has its sitecustomize in /etc, and a link to it beside the standard library."""
    (tmp_path / "etc.py").touch()
    own = tmp_path / "python"
    own.mkdir()
    (own / "usercustomize.py").symlink_to(tmp_path / "etc.py")
    monkeypatch.syspath_prepend(own)
    assert take_environment(checkout).git_changes == (f"!! {own / 'usercustomize.py'}",)
    monkeypatch.setattr(sys, "prefix", str(own))
    assert take_environment(checkout).git_changes == ()


def test_only_the_first_changes_are_named(checkout: Path) -> None:
    for number in range(30):
        (checkout / f"new{number}").touch()
    assert len(take_environment(checkout).git_changes) == 10


def test_resuming_after_a_checkout_does_not_launder_a_dirty_run(checkout: Path) -> None:
    folder = checkout / "run"
    dropping = checkout / "part1" / "conftest.py"
    dropping.write_text("collect_ignore = []\n", encoding="utf-8")
    assert main(["run", "--run", str(folder), "--only", "stage1"], checkout, PLAN) == ExitCode.UNDECIDED
    dropping.unlink()
    assert main(["run", "--resume", str(folder)], checkout, PLAN) == ExitCode.PASS
    record = load_run(folder)
    assert [(one.stages, one.environment.git_dirty) for one in record.invocations] == [
        (("stage1",), True),
        (("stage2",), False),
    ]
    assert record.invocations[0].command[-2:] == ("--only", "stage1")
    assert record.invocations[1].command == ("python", "-m", "stages", "run", "--resume", "run")
    assert record.environment.git_dirty
    assert record.environment.git_changes == ("?? part1/conftest.py",)
    stages, commit = invocation_rows(record)
    assert stages == ("stages", ("stage1", "stage2"))
    assert commit[0] == "commit"
    assert commit[1][0] == f"{commit[1][1]} with local changes"
    assert "part1/conftest.py" in render(record)


def test_an_edit_that_is_taken_back_before_the_stage_ends_is_a_change(checkout: Path) -> None:
    """Whatever time the file says it was written at."""
    source = (
        "import os, pathlib\nFILE = pathlib.Path('part2/test_stage2.py')\n"
        "def test_edit():\n    was, time_ns = FILE.read_bytes(), FILE.stat().st_mtime_ns\n"
        "    FILE.write_bytes(b'')\n    FILE.write_bytes(was)\n    os.utime(FILE, ns=(time_ns, time_ns))\n"
    )
    (checkout / "part1" / "test_stage1.py").write_text(GOOD + source, encoding="utf-8")
    git(checkout, "commit", "-qam", "edits")
    main(["run", "--run", str(checkout / "run"), "stage1"], checkout, PLAN)
    (found,) = read_invocations(RunFolder(checkout / "run"), ("stage1",))
    assert found.environment.git_dirty
    assert found.environment.git_changes == ("part2/test_stage2.py written since the stage began",)


def test_what_changes_while_a_stage_runs_is_known_of_one_that_is_interrupted(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        (checkout / "conftest.py").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("stages.runner.run_suites", interrupted)
    main(["run", "--run", str(checkout / "run"), "stage1"], checkout, PLAN)
    (found,) = read_invocations(RunFolder(checkout / "run"), ("stage1",))
    assert found.environment.git_changes == ("conftest.py written since the stage began",)


def test_a_commit_while_a_stage_runs_is_a_change(checkout: Path) -> None:
    before, written = take_environment(checkout), written_files(checkout)
    assert environment_since(checkout, before, written) == before
    (checkout / "new").touch()
    git(checkout, "add", "new")
    git(checkout, "commit", "-qm", "second")
    commit = git(checkout, "rev-parse", "HEAD")
    found = environment_since(checkout, before, written)
    assert found.git_commit == before.git_commit
    assert found.git_changes == (f"commit {commit[:12]} since the stage began", "new written since the stage began")


def test_a_whole_clean_run_may_be_quoted(checkout: Path) -> None:
    """From the runner to the admission: what it writes lacks nothing, until a case is left out."""
    folder = checkout / "run"
    main(["run", "--run", str(folder), "--thorough"], checkout, PLAN)
    assert reasons_against(load_run(folder), checkout) == ()
    assert main(["run", "--run", str(checkout / "quick"), "stage1"], checkout, PLAN) == ExitCode.PASS
    assert reasons_against(load_run(checkout / "quick"), checkout) == (
        "only the quick plan was run",
        "only stage1 of the plan was asked for",
    )


def test_judging_again_leaves_a_mark_and_moves_no_time(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = checkout / "run"
    main(["run", "--run", str(folder)], checkout, PLAN)
    first = load_run(folder)
    assert first.finished_utc == max(stage.ended_utc for stage in first.stages)
    assert [(one.commit, one.dirty, one.targets_sha256) for one in first.judged] == [
        (first.environment.git_commit, False, targets_sha256())
    ]
    (checkout / "part1" / "later").touch()
    monkeypatch.setattr("stages.assembling.utc_now", lambda: "2050-01-01T00:00:00Z")
    monkeypatch.setattr("stages.runner.take_inventory", lambda: pytest.fail("a judging of an old run on a new machine"))
    main(["run", "--resume", str(folder)], checkout, PLAN)
    second = load_run(folder)
    assert second.finished_utc == first.finished_utc
    assert second.invocations == first.invocations
    assert second.judged == (*first.judged, replace(first.judged[0], utc="2050-01-01T00:00:00Z", dirty=True))
    (folder / "record.json").unlink()
    main(["record", str(folder)], checkout, PLAN)
    third = load_run(folder)
    assert (third.finished_utc, len(third.judged)) == (first.finished_utc, 3)
    assert any("Judged 3 times" in line for line in provenance_lines(third))


def test_a_run_of_two_commits_is_dirty_whatever_each_was() -> None:
    clean = Environment("3.11", "Linux", {}, "a" * 40)
    assert environment_of([Invocation((), "", clean, ())]) == clean
    two = environment_of([Invocation((), "", clean, ()), Invocation((), "", replace(clean, git_commit="b" * 40), ())])
    assert two.git_dirty
    assert "2 commits: aaaaaaaaaaaa, bbbbbbbbbbbb" in two.git_changes[0]


def test_a_stage_belongs_to_the_invocation_that_ran_it_last(tmp_path: Path) -> None:
    environment = Environment("3.11", "Linux", {})
    first, second = (Invocation(("run",), time, environment, ()) for time in ("1", "2"))
    folder = RunFolder(tmp_path)
    for stage, invocation in (("stage1", first), ("stage2", first), ("stage2", second), ("stage3", second)):
        folder.files(stage).folder.mkdir(parents=True, exist_ok=True)
        note_invocation(folder, stage, invocation)
    found = read_invocations(folder, ("stage3", "stage1", "stage2", "stage4"))
    assert found == (replace(first, stages=("stage1",)), replace(second, stages=("stage3", "stage2")))


def test_the_digest_of_targets_follows_what_they_say() -> None:
    targets = load_targets()
    assert targets_sha256(targets) == targets_sha256()
    assert targets_sha256((*targets[:-1], replace(targets[-1], marginal=0.5))) != targets_sha256()
    assert targets_sha256(targets[1:]) != targets_sha256()


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b"[]", b"{}", b"9" * 5000, b"[" * 100_000],
    ids=["cut short", "no text", "a list", "nothing", "a long number", "deep"],
)
@pytest.mark.parametrize("name", ["plan.json", "machine.json", "judged.json", "stages/stage1/environment.json"])
def test_a_damaged_file_of_the_run_is_named_without_a_traceback(
    checkout: Path, name: str, content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(checkout / "run")
    folder.write_plan(RunPlan((), ("stage1",), gpu_free=True, started_utc="", command=()))
    folder.files("stage1").folder.mkdir(parents=True)
    note_invocation(folder, "stage1", Invocation((), "", Environment("3.11", "Linux", {}), ()))
    write_sealed(folder.files("stage1").done, encode(StageRun("stage1", "part", gate_open=True, gate_reason="")))
    (folder.path / name).write_bytes(content)
    assert main(["record", str(folder.path)], checkout, PLAN) == ExitCode.USAGE
    assert f"error: {folder.path / name}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "was", "edited"),
    [
        ("plan.json", '"quick"', '"nightly"'),
        ("plan.json", '"stage1",', ""),
        ("machine.json", '"is_open": false', '"is_open": true'),
        ("judged.json", '"dirty": true', '"dirty": false'),
        ("stages/stage1/stage.json", '"gate_open": true', '"gate_open": false'),
        ("stages/stage1/environment.json", '"git_dirty": true', '"git_dirty": false'),
        ("stages/stage1/environment.json", '"sha256"', '"sha1"'),
    ],
)
def test_an_edited_file_of_the_run_gets_no_new_seal(
    checkout: Path, name: str, was: str, edited: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record is written from them again: what was changed would stand in it as if it had been measured."""
    (checkout / "part1" / "notes.txt").touch()
    folder = checkout / "run"
    assert main(["run", "--run", str(folder)], checkout, PLAN) == ExitCode.PASS
    before, file = (folder / "record.json").read_bytes(), folder / name
    text = file.read_text(encoding="utf-8")
    assert was in text
    file.write_text(text.replace(was, edited, 1), encoding="utf-8")
    assert main(["run", "--resume", str(folder)], checkout, PLAN) == ExitCode.USAGE
    assert f"{file}: changed after it was written" in capsys.readouterr().err
    assert (folder / "record.json").read_bytes() == before


@pytest.mark.parametrize("gates", [{}, {"gpu": encode(gating.closed_gates()["gpu"])}])
def test_a_machine_without_the_gate_of_a_stage_is_refused(
    checkout: Path, gates: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(checkout / "run")
    assert main(["run", "--run", str(folder.path)], checkout, PLAN) == ExitCode.PASS
    write_sealed(folder.machine, {"hardware": {}, "gates": gates})
    assert main(["run", "--resume", str(folder.path)], checkout, PLAN) == ExitCode.USAGE
    assert f"{folder.machine}: gate none is not among those that the run found" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"plan": "evil"}, {"stages": []}])
def test_a_plan_of_nothing_is_refused(
    checkout: Path, change: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(checkout / "run")
    plan = RunPlan((), ("stage1",), gpu_free=True, started_utc="", command=())
    folder.write_plan(plan)
    write_sealed(folder.path / "plan.json", {**asdict(plan), **change})
    assert main(["run", "--resume", str(folder.path)], checkout, PLAN) == ExitCode.USAGE
    assert "not the plan of a run" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["[]", "[1]", '{"benchmarks": 3}', '{"benchmarks": NaN}', "{"])
def test_a_damaged_file_of_benchmarks_holds_none(tmp_path: Path, content: str) -> None:
    folder = RunFolder(tmp_path)
    folder.files("stage1").folder.mkdir(parents=True)
    folder.files("stage1").benchmark.write_text(content, encoding="utf-8")
    join_benchmarks(folder, (StageRun("stage1", "part", gate_open=True, gate_reason=""),))
    assert json.loads((tmp_path / "benchmark.json").read_text(encoding="utf-8"))["benchmarks"] == []


def test_a_full_disk_is_a_sentence_and_exit_3(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    assert main(["run", "--run", str(checkout / "run")], checkout, PLAN) == ExitCode.INVALID_ENVIRONMENT
    assert "plan.json: cannot be written: No space left on device" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="a process is killed by a signal")
def test_a_run_killed_before_its_record_gets_it_from_its_folder(checkout: Path) -> None:
    """Killed after it had joined the evidence: the record of the part before no longer fits, and is written anew."""
    folder = checkout / "run"
    main(["run", "--run", str(folder), "--only", "stage1"], checkout, PLAN)
    program = (
        "import os, signal, sys; from pathlib import Path; from stages import runner\n"
        "from suites.unit.stages.test_provenance import PLAN\nfrom stages.command import main\n"
        "runner.write_run = lambda *arguments: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"main(['run', '--resume', {str(folder)!r}], Path({str(checkout)!r}), PLAN)\n"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False).returncode == -signal.SIGKILL
    with pytest.raises(InputError, match=r"changed after.*'junit.xml'.*stages record"):
        load_run(folder)
    assert main(["record", str(folder)], checkout, PLAN) == ExitCode.PASS
    record = load_run(folder)
    assert record.finished_utc == max(stage.ended_utc for stage in record.stages)
    assert [one.stages for one in record.invocations] == [("stage1",), ("stage2",)]
    assert record.seal in (folder / "report.html").read_text(encoding="utf-8")
