"""One stage's suites in a pytest process of their own, so that no crash or hang takes the runner along."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from reports.values.record import THOROUGH
from stages.plan import Stage
from stages.run_folder import StageFiles

TICK_S = 0.5
MOST_WORKERS = 12
"""Processes of a stage whose cases run side by side, unless told; each may hold a context on every GPU."""

_GRACE_S = 10.0
_USAGE_ERROR = 4
_FATAL = re.compile(r"Fatal Python error: (?P<what>[^\n]+)")
_HEADING = re.compile(r"^=+ (?P<name>.+?) =+$", re.MULTILINE)
_PROBLEMS = {
    2: "pytest was interrupted",
    3: "pytest had an internal error",
    _USAGE_ERROR: "pytest refused to start",
    5: "no case was collected",
}


@dataclass(frozen=True)
class SuiteEnd:
    """How pytest ended: its exit status, what kept it from finishing (empty: nothing), and the wall time."""

    status: int
    problem: str
    duration_s: float


def run_suites(
    stage: Stage,
    root: Path,
    files: StageFiles,
    *,
    gpu_free: bool,
    plan: str = THOROUGH,
    tick: Callable[[], None] = lambda: None,
    workers: int = MOST_WORKERS,
) -> SuiteEnd:
    """Run the suites of a stage and wait for them.

    Parameters
    ----------
    stage : Stage
    root : Path
        The checkout; pytest runs in it.
    files : StageFiles
        Where the evidence goes.
    gpu_free : bool
        Close every hardware gate.
    plan : str
        How much is run: one of ``PLAN_KINDS``.
    tick : callable
        Called about twice a second while pytest runs.
    workers : int
        Most processes that cases of a stage run side by side in.
    """
    began = time.monotonic()
    with files.log.open("wb") as log:
        process = subprocess.Popen(
            pytest_command(stage, files, gpu_free=gpu_free, plan=plan, workers=workers),
            cwd=root,
            env=suite_environment(root),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            in_time = _wait(process, stage.time_limit_s, tick)
        except BaseException:
            _end(process)
            raise
        if not in_time:
            _end(process)
    duration = time.monotonic() - began
    limit = f"ended after its time limit of {stage.time_limit_s:g} s"
    problem = describe_status(process.returncode, files) if in_time else limit
    return SuiteEnd(process.returncode, problem, duration)


def pytest_command(
    stage: Stage, files: StageFiles, *, gpu_free: bool, plan: str = THOROUGH, workers: int = MOST_WORKERS
) -> list[str]:
    """Return the command line that runs a stage's suites."""
    command = [sys.executable, "-m", "pytest", *stage.suites, "-p", "no:cacheprovider", "--color=no"]
    command += ["--continue-on-collection-errors", f"--bp-results={files.results}", f"--bp-plan={plan}"]
    command += [f"--junitxml={files.junit}", f"--benchmark-json={files.benchmark}"]
    command += ["--gpu-free"] if gpu_free else []
    return [*command, *_spread(min(os.cpu_count() or 1, workers))] if stage.side_by_side else command


def _spread(workers: int) -> list[str]:
    """Return the options that run cases in several processes; those marked with one ``xdist_group`` stay in one."""
    if workers < 2 or find_spec("xdist") is None:
        return []
    return ["-n", str(workers), "--dist", "loadgroup"]


def suite_environment(root: Path) -> dict[str, str]:
    """Return the environment of the process: this one, with both source roots first on the path.

    Without the variables of pytest-xdist: the process is nobody's worker, and a worker takes no benchmarks. A process
    that a signal kills leaves its stack in the log, at the end of the interpreter too.
    """
    paths = [str(root / "impl"), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")}
    return {**kept, "PYTHONPATH": os.pathsep.join(paths), "PYTHONFAULTHANDLER": "1"}


def describe_status(status: int, files: StageFiles) -> str:
    """Return what an exit status and the log say went wrong; passed (0) and failed (1) alone say nothing.

    A process that died after it wrote its JUnit file had run all its cases. Processes in which cases run side by side
    have no exit status of their own here: what is known of their end is what the interpreter left in the log.
    """
    if status in (0, 1):
        return _death_in(files.log)
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = "unknown"
        when = " after its last case, with every result kept" if files.junit.is_file() else ""
        return f"pytest died of signal {-status} ({name}){when}"
    problem = _PROBLEMS.get(status, f"pytest ended with exit status {status}")
    return f"{problem}: {_last_words(files.log)}" if status in (3, _USAGE_ERROR) else problem


def _death_in(log: Path) -> str:
    """What the log says of a process that died beside pytest; what failed cases printed lies between the headings."""
    text = log.read_text(encoding="utf-8", errors="replace")
    headings = list(_HEADING.finditer(text))
    reports = [heading for heading in headings if heading["name"] in ("FAILURES", "ERRORS")]
    if reports:
        text = text[: reports[0].start()] + text[headings[-1].end() :]
    found = _FATAL.search(text)
    return f"a process that ran cases died: {found['what']}; its stack is in {log.name}" if found else ""


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    said = [line for line in lines if line.startswith(("ERROR:", "INTERNALERROR>"))] or [line for line in lines if line]
    said = [line.removeprefix("INTERNALERROR>").strip() for line in said]
    return " ".join(said[-3:])[:500] or "it printed nothing"


def _wait(process: subprocess.Popen[bytes], limit_s: float, tick: Callable[[], None]) -> bool:
    """Wait for the process; ``False`` if the limit came first."""
    deadline = time.monotonic() + limit_s
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(timeout=max(0.0, min(TICK_S, left)))
        except subprocess.TimeoutExpired:
            if left <= 0:
                return False
            tick()
        else:
            return True


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children: an interrupt first, so that pytest can tear down, then by force."""
    _signal(process, signal.SIGINT)
    try:
        process.wait(timeout=_GRACE_S)
    except subprocess.TimeoutExpired:
        _signal(process, getattr(signal, "SIGKILL", signal.SIGTERM))
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    if sys.platform == "win32":
        process.terminate()
        return
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
