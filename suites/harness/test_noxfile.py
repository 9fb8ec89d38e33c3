"""The doors: sessions of the noxfile, the choice of packages, and life without nox."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.store import load_run
from stages import bootstrap, compare
from stages.command import _parser
from stages.driver import Driver, ask_driver, choose, find_package_set
from stages.plan import STAGES

pytestmark = pytest.mark.requirement("RE-6")

ROOT = Path(__file__).parents[2]
SESSIONS = {"stages", "gpu_free", "tests", "compare", "lint", *(stage.name for stage in STAGES)}

FAKE_NOX = """
import sys
from types import SimpleNamespace
options = SimpleNamespace()
sessions = {}
Session = object
def session(function=None, *, name=None, **settings):
    def add(one):
        sessions[name or one.__name__] = (one, settings)
        return one
    return add(function) if function else add
"""

LOAD_NOXFILE = """
import json, os, runpy, sys
sys.path[:0] = [sys.argv[1], os.path.dirname(sys.argv[2])]
import nox
from stages import driver
driver.find_package_set = lambda: driver.PackageSet(os.environ["CHOSEN"], "as told")
runpy.run_path(sys.argv[2], run_name="noxfile")
class Session:
    posargs = sys.argv[5:]
    def __init__(self, backend):
        self.venv_backend, self.calls = backend, []
    def log(self, *words): self.calls.append(["log"])
    def install(self, *words):
        self.calls.append(["install", *words])
        sys.modules["stages.run_folder"].time.strftime = lambda *_: "named-after-the-set-up"
    def run(self, *words, **settings): self.calls.append(["run", *words])
def calls(name):
    function, settings = nox.sessions[name]
    before = [call for one in settings.get("requires", []) for call in calls(one)]
    session = Session(sys.argv[4])
    function(session)
    return before + session.calls
found = {name: os.environ[name] for name in ("PIP_NO_COMPILE", "PYTHONDONTWRITEBYTECODE") if name in os.environ}
loaded = {"environment": found, "cwd": os.getcwd(), "sessions": sorted(nox.sessions), "calls": calls(sys.argv[3])}
print(json.dumps(loaded))
"""


def load_noxfile(
    tmp_path: Path, session: str, backend: str = "virtualenv", *posargs: str, root: Path = ROOT, extra: str = ""
) -> dict[str, Any]:
    """Carry out a session of the noxfile against a nox that only writes down; started in another folder."""
    (tmp_path / "nox.py").write_text(FAKE_NOX, encoding="utf-8")
    command = [sys.executable, "-c", LOAD_NOXFILE, str(tmp_path), str(root / "noxfile.py"), session, backend, *posargs]
    environment = {**os.environ, "CHOSEN": extra, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded: dict[str, Any] = json.loads(done.stdout)
    loaded["runs"] = [call[2:] for call in loaded["calls"] if call[0] == "run"]
    loaded["installs"] = [call[1:] for call in loaded["calls"] if call[0] == "install"]
    return loaded


def test_every_door_is_there_and_opens_from_any_folder(tmp_path: Path) -> None:
    loaded = load_noxfile(tmp_path, "tests")
    assert set(loaded["sessions"]) >= SESSIONS
    assert Path(loaded["cwd"]) == ROOT
    assert loaded["runs"] == [["-m", "pytest", *bootstrap.SPREAD, "--bp-plan=quick"]]


@pytest.mark.parametrize("session", ["stages", "gpu_free"])
def test_stage_1_has_its_own_environment_and_the_run_is_one(tmp_path: Path, session: str) -> None:
    """Two environments, one run folder: the second part resumes what the first began."""
    sitting = ("--time-limit", "500", "--first", "20M", "--first=5M")
    loaded = load_noxfile(tmp_path, session, "virtualenv", "--gpu-free", "--thorough", *sitting)
    first, second = loaded["runs"]
    run = first[first.index("--run") + 1]
    assert Path(run).name.startswith("named-after-the-set-up-")
    assert first[-2:] == ["--only", "stage1"]
    assert {"--gpu-free", "--thorough", "--time-limit"} <= set(first)
    assert second == ["-m", "stages", "run", "--resume", run, "--time-limit=500", "--first=20M", "--first=5M"]
    assert loaded["installs"][0] == ["-e", ".[compile,test]"]
    assert loaded["installs"][1][1].startswith(".[test")


@pytest.mark.parametrize("session", ["stages", "gpu_free"])
def test_the_quick_plan_is_installed_once_and_run_at_once(tmp_path: Path, session: str) -> None:
    """One environment has what every stage needs; nothing in it is compiled before it is used."""
    loaded = load_noxfile(tmp_path, session)
    assert loaded["installs"] == [["-e", ".[compile,test]"]]
    assert loaded["runs"] == [["-m", *bootstrap.session_commands(session, [])[0]]]
    assert loaded["environment"]["PIP_NO_COMPILE"] == "1"
    assert "PYTHONDONTWRITEBYTECODE" not in loaded["environment"]


def test_the_quick_plan_has_two_environments_where_tools_of_cuda_13_rule_out_those_of_12(tmp_path: Path) -> None:
    loaded = load_noxfile(tmp_path, "stages", "virtualenv", extra="cuda13")
    assert loaded["installs"] == [["-e", ".[compile,test]"], ["-e", ".[test,cuda13]"]]
    assert len(loaded["runs"]) == 2


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["--bp-plan=quick"]),
        (["--thorough", "-k", "x"], ["--bp-plan=thorough", "-k", "x"]),
        (["-x", "--nightly"], ["--bp-plan=nightly", "-x"]),
    ],
)
def test_the_test_suite_has_the_plans_too(arguments: list[str], expected: list[str]) -> None:
    assert bootstrap.session_commands("tests", arguments) == [["pytest", *bootstrap.SPREAD, *expected]]


def test_stages_pass_resume_and_explain_on(tmp_path: Path) -> None:
    resumed = load_noxfile(tmp_path, "stages", "virtualenv", "--resume", "RUN")["runs"]
    assert resumed == [
        ["-m", "stages", "run", "--resume", "RUN", "--only", "stage1"],
        ["-m", "stages", "run", "--resume", "RUN"],
    ]
    assert load_noxfile(tmp_path, "stages", "virtualenv", "--explain")["runs"] == [["-m", "stages", "run", "--explain"]]


def test_options_of_a_session_before_the_dashes_are_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """nox would answer with the whole of its usage; without nox the option would be ignored."""
    started: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "call", lambda command, root=ROOT: started.append(list(command)) or 0)
    assert bootstrap.start(ROOT, ["-s", "stages", "--explain"]) == 4
    assert bootstrap.start(ROOT, ["--no-venv", "-s", "stages", "--time-limit=9"]) == 4
    said = capsys.readouterr().err
    assert "put the runner's options after --: python3 noxfile.py -s stages -- --explain" in said
    assert "-- --time-limit=9" in said
    assert bootstrap.start(ROOT, ["--only", "stage4", "--", "--thorough"]) == 4
    assert "python3 noxfile.py -s SESSION -- --only stage4 --thorough\n" in capsys.readouterr().err
    assert not started
    assert bootstrap.start(ROOT, ["--no-venv", "-s", "stages", "--", "--explain"]) == 0
    assert started


@pytest.mark.parametrize("arguments", [["--list"], ["-k", "foo"], ["-s"]])
def test_what_only_nox_knows_starts_nothing_without_it(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "call", lambda command, root=ROOT: started.append(list(command)) or 0)
    assert bootstrap.run_directly(ROOT, arguments, "nox is not here") == 4
    assert arguments[0] in capsys.readouterr().err
    assert not started


def test_the_options_of_the_sessions_are_those_of_their_parsers() -> None:
    runner, side = (*_parser(STAGES).commands["run"]._actions, *compare._parser()._actions), {"-h", "--help"}
    assert {name for action in runner for name in action.option_strings} - side == bootstrap.OF_SESSIONS


def test_one_stage_passes_its_arguments_on(tmp_path: Path) -> None:
    assert load_noxfile(tmp_path, "stage5", "virtualenv", "--explain")["runs"] == [
        ["-m", "stages", "run", "stage5", "--explain"]
    ]
    stage1 = load_noxfile(tmp_path, "stage1")
    assert stage1["installs"] == [["-e", ".[compile,test]"]]
    assert stage1["runs"] == [["-m", "stages", "run", "stage1"]]


NEW_STAGE = """    Stage(
        name="stage99",
        title="one more",
        gate=NO_GATE,
        gpu_free="everything",
        suites=("suites/stage99_more",),
        proves="a row and a folder are enough",
        extras=("metis",),
    ),
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with one more stage: a row in the plan, and its folder with a case."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "stages", root / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "noxfile.py", root)
    for name in ("conftest.py", "pyproject.toml", "impl", "hardware", "reports"):
        (root / name).symlink_to(ROOT / name)
    plan = root / "stages" / "plan.py"
    before, end, after = plan.read_text(encoding="utf-8").partition(")\n\nPLAN")
    plan.write_text(before + NEW_STAGE + end + after, encoding="utf-8")
    folder = root / "suites" / "stage99_more"
    folder.mkdir(parents=True)
    case = "import pytest\n@pytest.mark.requirement('RE-6')\ndef test_more(): pass\n"
    (folder / "test_more.py").write_text(case, encoding="utf-8")
    return root


def test_a_new_stage_has_its_session_and_its_part_in_a_run_of_all(tmp_path: Path, checkout: Path) -> None:
    loaded = load_noxfile(tmp_path, "stage99", root=checkout)
    assert {"stage99", *SESSIONS} <= set(loaded["sessions"])
    assert loaded["installs"] == [["-e", ".[metis,test]"]]
    assert loaded["runs"] == [["-m", "stages", "run", "stage99"]]
    first, second, rest = load_noxfile(tmp_path, "stages", "virtualenv", "--thorough", root=checkout)["runs"]
    run = first[first.index("--run") + 1]
    assert second == ["-m", "stages", "run", "--resume", run, "--only", "stage99"]
    assert rest == ["-m", "stages", "run", "--resume", run]


@pytest.mark.thorough("starts sessions of a checkout of its own")
def test_a_new_stage_runs_from_every_door(checkout: Path) -> None:
    """Without nox, by the runner, and in the record."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "impl"), str(checkout)])}
    command = [sys.executable, "-S", "-c", "from stages.bootstrap import *; print(session_commands('stage99', ['-x']))"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[['stages', 'run', 'stage99', '-x']]\n"
    command = [sys.executable, "-m", "stages", "run", "stage99", "--gpu-free", "--run", "out"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    record = load_run(checkout / "out")
    assert [(stage.stage, stage.title) for stage in record.stages] == [("stage99", "one more")]
    assert [(case.case, case.stage) for case in record.cases] == [
        ("suites/stage99_more/test_more.py::test_more", "stage99")
    ]


@pytest.mark.requirement("RE-7")
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sh and /proc are those of Linux")
@pytest.mark.parametrize(
    ("number", "group"),
    [
        (signal.SIGINT, False),
        pytest.param(signal.SIGTERM, False, marks=pytest.mark.thorough("seconds each")),
        pytest.param(signal.SIGINT, True, marks=pytest.mark.thorough("seconds each")),
    ],
    ids=["SIGINT in the background", "SIGTERM in the background", "Ctrl-C"],
)
def test_a_session_ends_in_order(checkout: Path, tmp_path: Path, number: signal.Signals, group: bool) -> None:
    """The run has its record, and nothing is left.

    In the background SIGINT is ignored at first, and the signal reaches noxfile.py alone; Ctrl-C reaches all at once.
    """
    case = "import pytest, time\n@pytest.mark.requirement('RE-6')\ndef test_more(): time.sleep(600)\n"
    (checkout / "suites" / "stage99_more" / "test_more.py").write_text(case, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "impl"), str(checkout)])}
    command = f"{sys.executable} {checkout}/noxfile.py --no-venv -s stage99 -- --run out"
    command = f"exec {command}" if group else f"{command} & echo $!; wait"
    said = tmp_path / "said.txt"
    with said.open("w", encoding="utf-8") as out:
        shell = subprocess.Popen(
            ["sh", "-c", command], cwd=checkout, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    results = checkout / "out" / "stages" / "stage99" / "results.jsonl"
    deadline = time.monotonic() + 60
    while not (results.is_file() and "started" in results.read_text(encoding="utf-8")):
        assert time.monotonic() < deadline, said.read_text(encoding="utf-8")
        time.sleep(0.2)
    if group:
        os.killpg(shell.pid, number)
    else:
        os.kill(int(said.read_text(encoding="utf-8").split()[0]), number)
    shell.wait(timeout=90)
    left = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
    assert [line for line in left if str(checkout).encode() in line] == []
    assert not load_run(checkout / "out").finished_utc
    assert said.read_text(encoding="utf-8").count("Interrupted (") == 1


@pytest.mark.parametrize("session", sorted(SESSIONS))
def test_without_a_virtual_environment_nothing_is_installed(tmp_path: Path, session: str) -> None:
    loaded = load_noxfile(tmp_path, session, "none")
    assert loaded["installs"] == []
    assert loaded["runs"]
    assert all(call[1] == sys.executable for call in loaded["calls"] if call[0] == "run")


@pytest.mark.parametrize(
    ("cuda", "capabilities", "extra"),
    [
        ((11, 8), ((9, 0),), ""),
        ((12, 0), ((7, 0),), "cuda12"),
        ((12, 9), ((9, 0),), "cuda12"),
        ((13, 0), ((9, 0), (9, 0)), "cuda13"),
        ((13, 0), ((9, 0), (7, 0)), "cuda12"),
        ((13, 0), ((7, 5),), "cuda13"),
        ((13, 0), (), ""),
    ],
)
def test_packages_follow_the_driver(
    cuda: tuple[int, int], capabilities: tuple[tuple[int, int], ...], extra: str
) -> None:
    chosen = choose(Driver(cuda, capabilities))
    assert chosen.extra == extra
    assert f"{cuda[0]}.{cuda[1]}" in chosen.reason


def fake_library(version: int, capabilities: list[tuple[int, int]], *, initialises: bool = True) -> SimpleNamespace:
    """The functions of the driver library that are asked, writing through pointers as C does."""

    def write(pointer: Any, value: int) -> int:
        pointer._obj.value = value
        return 0

    return SimpleNamespace(
        cuDriverGetVersion=lambda pointer: write(pointer, version) if version else 100,
        cuInit=lambda flags: 0 if initialises else 100,
        cuDeviceGetCount=lambda pointer: write(pointer, len(capabilities)),
        cuDeviceGet=lambda pointer, ordinal: write(pointer, ordinal),
        cuDeviceGetAttribute=lambda pointer, attribute, device: write(
            pointer, capabilities[device.value][{75: 0, 76: 1}[attribute]]
        ),
    )


def test_the_driver_library_is_asked_for_version_and_capabilities() -> None:
    assert ask_driver(fake_library(12090, [(9, 0), (7, 5)])) == Driver((12, 9), ((9, 0), (7, 5)))
    assert ask_driver(fake_library(13000, [(9, 0)], initialises=False)) == Driver((13, 0), ())
    assert ask_driver(fake_library(0, [])) is None


def test_without_a_driver_the_cpu_set_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    assert find_package_set().extra == ""
    assert find_package_set().reason == "no NVIDIA driver"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Commands that would have been started, instead of starting them; nox is not importable."""
    started: list[list[str]] = []

    def call(command: list[str], _: Path | None = None) -> int:
        started.append(command)
        return 7 if "stage6" in command else 0

    monkeypatch.setattr(bootstrap, "find_spec", lambda name: None)
    monkeypatch.setattr(bootstrap, "call", call)
    return started


def test_nox_is_used_where_it_can_be_imported(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "find_spec", lambda name: name)
    assert bootstrap.start(ROOT, ["-s", "tests", "--", "-k", "x"]) == 0
    expected = [sys.executable, "-m", "nox", "--noxfile", str(ROOT / "noxfile.py"), "-s", "tests", "--", "-k", "x"]
    assert calls == [expected]


def test_nox_is_fetched_into_an_environment_of_its_own(calls: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "fetch_nox", lambda folder: (str(folder / "python"), ""))
    assert bootstrap.start(ROOT, ["-s", "stages"]) == 0
    assert calls[0][:3] == [str(ROOT / bootstrap.FOLDER / "python"), "-m", "nox"]


@pytest.mark.parametrize("arguments", [["--no-venv", "-s", "stage4"], ["-s", "stage4"]])
def test_without_nox_the_runner_is_called_directly_and_says_so(
    calls: list[list[str]], arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "fetch_nox", lambda folder: (None, "no network"))
    assert bootstrap.start(ROOT, [*arguments, "--", "--explain"]) == 0
    assert calls == [[sys.executable, "-m", "stages", "run", "stage4", "--explain"]]
    said = capsys.readouterr().err
    assert "running in the current environment" in said
    assert ("installs nothing" in said) == ("--no-venv" in arguments)


def test_directly_every_session_runs_and_the_first_failure_is_kept(calls: list[list[str]]) -> None:
    assert bootstrap.start(ROOT, ["--no-venv", "-s", "stage6", "tests", "-s", "lint"]) == 7
    assert [command[2] for command in calls] == ["stages", "pytest", "ruff", "ruff", "mypy", "pytest"]


def test_directly_the_default_is_all_stages(calls: list[list[str]]) -> None:
    assert bootstrap.start(ROOT, ["--no-venv"]) == 0
    assert calls == [[sys.executable, "-m", "stages", "run"]]


def test_directly_an_unknown_session_is_a_usage_error(calls: list[list[str]]) -> None:
    assert bootstrap.start(ROOT, ["--no-venv", "-s", "bogus"]) == 4
    assert calls == []


def test_a_nox_that_cannot_be_fetched_is_reported_with_pips_last_word(tmp_path: Path) -> None:
    """The folder for the environment cannot be made, since a file is in its place."""
    blocked = tmp_path / "file"
    blocked.write_text("", encoding="utf-8")
    python, problem = bootstrap.fetch_nox(blocked / "environment")
    assert python is None
    assert problem


@pytest.mark.parametrize("pip", [None, "here"])
def test_the_environment_of_nox_is_made_without_a_pip_where_there_is_one(
    pip: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(bootstrap, "find_spec", lambda name: pip if name == "pip" else None)
    monkeypatch.setattr(bootstrap, "_problem", lambda command: asked.append(list(command)) or "")
    python, _ = bootstrap.fetch_nox(tmp_path)
    made, installed = asked
    assert ("--without-pip" in made) == (pip is not None)
    by = [sys.executable, "-m", "pip", "--python", python] if pip else [python, "-m", "pip"]
    assert installed[: len(by) + 1] == [*by, "install"]


def test_the_noxfile_names_the_python_it_needs() -> None:
    """It parses on Python 3.6, so that an old interpreter reaches the sentence."""
    import ast

    ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"), feature_version=(3, 6))


@pytest.mark.skipif(os.name == "nt", reason="bash is not part of Windows")
def test_ci_ends_with_pytests_summary_and_fails_when_tests_fail(tmp_path: Path) -> None:
    """The CI script around a python3 that plays the noxfile: lint passes, tests fail."""
    (tmp_path / ".ci").mkdir()
    script = tmp_path / ".ci" / "run"
    script.write_bytes((ROOT / ".ci" / "run").read_bytes())
    fake = tmp_path / "bin" / "python3"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\n[ "$3" = lint ] && exit 0\n[ "$4 $5" = "-- --thorough" ] || exit 9\n'
        "echo '==== 1 failed, 2 passed in 3.00s ===='\necho nox failed\nexit 1\n",
        encoding="utf-8",
    )
    fake.chmod(0o755)
    environment = {**os.environ, "PATH": f"{fake.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", str(script)], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "==== 1 failed, 2 passed in 3.00s ===="
    fake.write_text("#!/bin/sh\necho '==== 3 passed in 3.00s ===='\n", encoding="utf-8")
    assert subprocess.run(["bash", str(script)], env=environment, check=False, capture_output=True).returncode == 0
    fake.write_text("#!/bin/sh\necho nothing\n", encoding="utf-8")
    assert subprocess.run(["bash", str(script)], env=environment, check=False, capture_output=True).returncode == 1
