"""Starts ``python3 noxfile.py`` on a machine with nothing but Python: installs nox, or runs without it.

Standard library only.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from stages.plan import STAGES
from stages.signals import Interrupted, call

NOX = "nox>=2025.5.1"
FOLDER = ".nox-bootstrap"
DEFAULT_SESSION = "stages"
USAGE = 4
"""Exit code of wrong usage, the same as the runner's."""

INTERRUPTED = 130
"""Exit code after a signal that ends a run, the same as nox's."""

SPREAD = ("-n", "2", "--dist", "loadfile")
"""The test suite runs in two processes; a file stays in one, since the fixtures that its cases share are costly."""

LARGER_PLANS = ("--thorough", "--nightly")
"""Arguments that ask for more than the quick plan."""

OF_SESSIONS = frozenset(
    f"--{name}"
    for name in (
        *("base", "explain", "first", "gpu-free", "nightly", "only", "out", "resume", "run", "runs", "strict"),
        *("targets", "thorough", "time-limit", "workers"),
    )
)
"""Options of the commands in the sessions. nox has none of them, so before ``--`` they are an error."""

IMPORTS = "suites/harness/test_imports.py"
"""The test of the import rules, which the linters do not check."""


def start(root: Path, arguments: Sequence[str]) -> int:
    """Run nox with ``arguments`` and return its exit code.

    nox is that of this environment, or is installed into a virtual environment under ``root``. If that fails, or
    ``--no-venv`` forbids it, the commands of the sessions run directly in this environment. A signal that ends a run
    (:mod:`stages.signals`) ends the started process first.
    """
    before, after = _split(arguments)
    misplaced = [place for place, one in enumerate(before) if one.partition("=")[0] in OF_SESSIONS]
    if misplaced:
        first = misplaced[0]
        line = ["python3 noxfile.py", *(before[:first] or ["-s", "SESSION"]), "--", *before[first:], *after]
        hint = f"put the runner's options after --: {' '.join(line)}"
        print(f"noxfile: error: nox has no option {before[first]}; {hint}", file=sys.stderr)
        return USAGE
    try:
        return _start(root, arguments)
    except Interrupted:
        return INTERRUPTED


def _start(root: Path, arguments: Sequence[str]) -> int:
    if find_spec("nox") is not None:
        return _nox(sys.executable, root, arguments)
    if "--no-venv" in arguments:
        return run_directly(root, arguments, "nox is not installed and --no-venv installs nothing")
    python, problem = fetch_nox(root / FOLDER)
    if python is None:
        return run_directly(root, arguments, f"nox is not installed and cannot be fetched ({problem})")
    return _nox(python, root, arguments)


def fetch_nox(folder: Path) -> tuple[str | None, str]:
    """The interpreter of a virtual environment with nox, which is made if need be, or ``None`` and the problem."""
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if python.is_file() and not _problem([str(python), "-c", "import nox"]):
        return str(python), ""
    print(f"noxfile: installing nox into {folder.name}", file=sys.stderr, flush=True)
    ours = find_spec("pip") is not None  # our pip can install there; an environment without pip is made faster
    pip = [sys.executable, "-m", "pip", "--python", str(python)] if ours else [str(python), "-m", "pip"]
    for command in (
        [sys.executable, "-m", "venv", "--clear", *(["--without-pip"] if ours else []), str(folder)],
        [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-compile", NOX],
    ):
        problem = _problem(command)
        if problem:
            return None, problem
    return str(python), ""


def run_directly(root: Path, arguments: Sequence[str], reason: str) -> int:
    """Carry out the asked sessions without nox, in this environment, and say so."""
    print(f"noxfile: {reason}; running in the current environment ({sys.executable})", file=sys.stderr, flush=True)
    before, after = _split(arguments)
    parser = argparse.ArgumentParser(prog="noxfile.py", allow_abbrev=False)
    parser.add_argument("-s", "-e", "--session", "--sessions", nargs="+", action="extend", default=[])
    parser.add_argument("--no-venv", action="store_true")
    try:
        options, unknown = parser.parse_known_args(before)
    except SystemExit:
        return USAGE
    if unknown:
        print(f"noxfile: error: without nox only -s SESSION is known, not {' '.join(unknown)}", file=sys.stderr)
        return USAGE
    worst = 0
    for session in options.session or [DEFAULT_SESSION]:
        try:
            planned = session_commands(session, after)
        except KeyError:
            print(f"noxfile: no session {session!r}", file=sys.stderr)
            return USAGE
        for command in planned:
            status = call([sys.executable, "-m", *command], root)
            worst = worst or status
    return worst


def session_commands(session: str, positional: Sequence[str]) -> list[list[str]]:
    """The commands that a session runs after its set-up, without the leading ``python -m``.

    Raises
    ------
    KeyError
        If there is no such session.
    """
    table = {
        "stages": [["stages", "run", *positional]],
        "gpu_free": [["stages", "run", "--gpu-free", *positional]],
        "tests": [["pytest", *SPREAD, *_planned(positional)]],
        "compare": [["stages.compare", *positional]],
        "lint": [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"], ["pytest", "-q", IMPORTS]],
    }
    one_stage = {stage.name: [["stages", "run", stage.name, *positional]] for stage in STAGES}
    return (table | one_stage)[session]


def is_quick(positional: Sequence[str]) -> bool:
    """Whether the arguments of a session ask for the quick plan, the default; a resumed run has its own plan."""
    return not {*LARGER_PLANS, "--resume"} & set(positional)


def of_one_sitting(positional: Sequence[str]) -> list[str]:
    """The arguments of a session that are not part of the plan: a second start of the runner needs them again."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--workers", "--time-limit", "--first"):
        parser.add_argument(name, action="append", default=[])
    found = vars(parser.parse_known_args(list(positional))[0])
    return [f"--{name.replace('_', '-')}={value}" for name, values in found.items() for value in values]


def _planned(positional: Sequence[str]) -> list[str]:
    """Arguments for pytest, which knows the plans by the option ``--bp-plan``."""
    plan = next((name for name in LARGER_PLANS if name in positional), "--quick").removeprefix("--")
    return [f"--bp-plan={plan}", *(one for one in positional if one not in LARGER_PLANS)]


def _nox(python: str, root: Path, arguments: Sequence[str]) -> int:
    return call([python, "-m", "nox", "--noxfile", str(root / "noxfile.py"), *arguments])


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split at the first ``--``, which separates the session's own arguments."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def _problem(command: Sequence[str]) -> str:
    """Run a command quietly; return the last line of its output if it fails, else an empty text."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    if done.returncode == 0:
        return ""
    said = (done.stderr or done.stdout).strip().splitlines()
    return said[-1] if said else f"exit status {done.returncode}"
