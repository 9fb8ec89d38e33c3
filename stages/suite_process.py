"""One stage's suites in a pytest process of their own, so that no crash or hang takes the runner along."""

from __future__ import annotations

import math
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from reports.values.record import NIGHTLY, THOROUGH
from stages import supervisor
from stages.collected import longest_limit_s, read_collection
from stages.environment import IGNORED
from stages.plan import Stage
from stages.results import read_lines, reopen
from stages.run_folder import StageFiles
from stages.time_limit import WATCHDOG_S

TICK_S = 0.5
MOST_WORKERS = 12
"""Processes of a stage whose cases run side by side, unless told; each may hold a context on every GPU."""

_GRACE_S = 10.0
_MOST_DEATHS = 8
_PLUGINS = ("xdist", "benchmark")
_USAGE_ERROR, _NOTHING_RAN = 4, 5
_FATAL = re.compile(r"Fatal Python error: (?P<what>[^\n]+)")
_WATCHDOG = re.compile(r"Timeout \([\d:.]+\)!\nThread 0x")
_HEADING = re.compile(r"^=+ (?P<name>.+?) =+$", re.MULTILINE)
_PROBLEMS = {
    2: "pytest was interrupted",
    3: "pytest had an internal error",
    _USAGE_ERROR: "pytest refused to start",
    _NOTHING_RAN: "no case was collected",
}


@dataclass(frozen=True)
class SuiteEnd:
    """How pytest ended: its exit status, what kept it from finishing (empty: nothing), and the wall time in seconds.

    ``cut_off`` says that a time limit did, and that another sitting can run the cases that are left.
    """

    status: int
    problem: str
    duration_s: float
    cut_off: bool = False


def run_suites(
    stage: Stage,
    root: Path,
    files: StageFiles,
    *,
    gpu_free: bool,
    plan: str = THOROUGH,
    tick: Callable[[], None] = lambda: None,
    workers: int = MOST_WORKERS,
    lock: int | None = None,
    until_s: float = math.inf,
    first: Sequence[str] = (),
    later: str = "",
) -> SuiteEnd:
    """Run the suites of a stage and wait for them; where the process dies during a case, run the others in another one.

    Cases that ``files.begun`` lists are not run.

    Parameters
    ----------
    stage : Stage
    root : Path
        The checkout; pytest runs in it, with its ``pyproject.toml`` as the only file of options.
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
    lock : int or None
        A file descriptor that the supervisor keeps open, too.
    until_s : float
        On the monotonic clock, in seconds: no case begins at that time or later.
    first : sequence of str
        Cases whose names hold the first of these run before all others, those that hold the second come next.
    later : str
        A gate; its cases run one at a time, after all others. Empty: all run as the stage says.
    """
    began = time.monotonic()
    deadline = began + stage.time_limit_s
    options = [f"--bp-until={until_s!r}"] if until_s < math.inf else []
    options += [f"--bp-first={text}" for text in first]
    options += [f"--bp-stage-end={deadline!r}"] if plan == NIGHTLY else []
    processes = [(stage, [*options, f"--bp-later={later}"]), (replace(stage, side_by_side=False), options)]
    commands = [
        [*pytest_command(how, root, files, gpu_free=gpu_free, plan=plan, workers=workers), *more]
        for how, more in (processes if later else [(stage, options)])
    ]
    continued = files.begun.is_file()
    problems: list[str] = []
    failed = False
    while True:
        status, problem = _run_once(commands[0], stage, root, files, deadline, tick, lock)
        failed = failed or status == 1
        if status == _NOTHING_RAN and len(commands) > 1:
            problem = ""  # all that is left waits for the other process
        lines = read_lines(files.results)
        begun = {*(case.case for case in lines.cases), *lines.unfinished}
        died_between = status < 0 and _cases_left(files, begun)
        if lines.closed or lines.damage or not (lines.unfinished or died_between):
            late = time.monotonic() > min(deadline, until_s)
            if len(commands) == 1 or problem or lines.damage or late or not _cases_left(files, begun):
                break
            del commands[0]
            _make_ready_for_another(files, begun)
            continue
        during = f" during {lines.unfinished[-1]}" if lines.unfinished else " between two cases"
        problems.append(f"{problem or f'pytest ended with exit status {status}'}{during}")
        problem = ""
        if len(problems) > _MOST_DEATHS or time.monotonic() > deadline or not _cases_left(files, begun):
            break
        files.begun.write_text("\n".join(sorted(begun)), encoding="utf-8")
    if (problems or continued) and status == _NOTHING_RAN:
        problem = ""
    ended = time.monotonic()
    died = files.begun.read_text(encoding="utf-8").splitlines() if files.begun.is_file() else []
    in_order = lines.closed and not lines.damage and not problem
    last_s = deadline - longest_limit_s(files.collected, 0.0) if in_order and plan == NIGHTLY else deadline
    cut_off = ended > min(last_s, until_s) and _cases_left(files, {*(case.case for case in lines.cases), *died})
    if cut_off and in_order:
        limit = "--time-limit" if ended > until_s else f"the stage ({stage.time_limit_s:g} s)"
        problem = f"the time of {limit} was over"
    status = 1 if failed and status == 0 else status
    return SuiteEnd(status, "; ".join([*problems, *filter(None, [problem])]), ended - began, cut_off)


def _make_ready_for_another(files: StageFiles, begun: set[str]) -> None:
    """Let another process append to what one wrote that ended in order."""
    files.begun.write_text("\n".join(sorted(begun)), encoding="utf-8")
    reopen(files.results, [])
    files.set_aside(files.junit)
    files.set_aside(files.benchmark)


def _cases_left(files: StageFiles, begun: set[str]) -> bool:
    collection = read_collection(files.collected)
    return collection is not None and not begun.issuperset({*collection.collected} - {*collection.deselected})


def _run_once(
    command: Sequence[str],
    stage: Stage,
    root: Path,
    files: StageFiles,
    deadline: float,
    tick: Callable[[], None],
    lock: int | None,
) -> tuple[int, str]:
    """Run pytest to its end; return its exit status, and what kept it from finishing."""
    again = [f"--bp-begun={files.begun}"] if files.begun.is_file() else []
    with files.log.open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", supervisor.__file__, *command, *again],
            cwd=root,
            env=suite_environment(root, files.compiled),
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
        )
        try:
            problem = _wait(process, stage, files, deadline, tick)
        finally:
            _end(process)
    return process.returncode, problem or describe_status(process.returncode, files)


def pytest_command(
    stage: Stage, root: Path, files: StageFiles, *, gpu_free: bool, plan: str = THOROUGH, workers: int = MOST_WORKERS
) -> list[str]:
    """Return the command line that runs a stage's suites.

    Options come from it and from the checkout's ``pyproject.toml`` alone, plugins are those that the suites need, and
    conftest files those of the checkout.
    """
    command = [sys.executable, "-m", "pytest", *stage.suites, "-p", "no:cacheprovider", "--color=no"]
    command += [f"--config-file={root / 'pyproject.toml'}", f"--rootdir={root}", f"--confcutdir={root}"]
    command += ["--disable-plugin-autoload", *(part for name in _plugins() for part in ("-p", name))]
    command += ["--continue-on-collection-errors", f"--bp-results={files.results}", f"--bp-plan={plan}"]
    command += [f"--bp-collected={files.collected}", f"--bp-case-limit={stage.case_limit_s:g}"]
    command += [f"--junitxml={files.junit}", f"--benchmark-json={files.benchmark}"]
    command += ["--gpu-free"] if gpu_free else []
    return [*command, *_spread(min(os.cpu_count() or 1, workers))] if stage.side_by_side else command


def _plugins() -> list[str]:
    """Return the plugins of other packages that the suites need, of those that are installed."""
    installed = {entry.name for entry in entry_points(group="pytest11")}
    return [name for name in _PLUGINS if name in installed]


def _spread(workers: int) -> list[str]:
    """Return the options that run cases in several processes; those marked with one ``xdist_group`` stay in one."""
    if workers < 2 or find_spec("xdist") is None:
        return []
    return ["-n", str(workers), "--dist", "loadgroup"]


def suite_environment(root: Path, compiled: Path) -> dict[str, str]:
    """Return the environment of the process: this one, with both source roots first on the path.

    Without pytest's variables, which add options and plugins or make the process somebody's worker, and without those
    of the interpreter that alter what runs: ``PYTHONOPTIMIZE`` removes assertions, ``PYTHONWARNINGS`` raises errors.
    What Python compiles lies in ``compiled``, since files that lie beside the sources may be of other code. A process
    that a signal kills leaves its stack in the log, at the end of the interpreter too.
    """
    paths = [str(root / "impl"), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name not in IGNORED}
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": str(compiled.resolve())}
    return {**kept, "PYTHONFAULTHANDLER": "1", **own}


def describe_status(status: int, files: StageFiles) -> str:
    """Return what an exit status and the log say went wrong; passed (0) and failed (1) alone say nothing.

    A process that died after it wrote its JUnit file had run all its cases. Processes in which cases run side by side
    have no exit status of their own here: what is known of their end is what the interpreter left in the log.
    """
    if not files.log.is_file():
        return f"{files.log.name} was removed while the stage ran"
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
    text = _said(log)
    headings = list(_HEADING.finditer(text))
    reports = [heading for heading in headings if heading["name"] in ("FAILURES", "ERRORS")]
    if reports:
        text = text[: reports[0].start()] + text[headings[-1].end() :]
    if _WATCHDOG.search(text):
        return f"a case overran its time limit and could not be interrupted; its stack is in {log.name}"
    found = _FATAL.search(text)
    return f"a process that ran cases died: {found['what']}; its stack is in {log.name}" if found else ""


def _said(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in _said(log).splitlines()]
    said = [line for line in lines if line.startswith(("ERROR:", "INTERNALERROR>"))] or [line for line in lines if line]
    said = [line.removeprefix("INTERNALERROR>").strip() for line in said]
    return " ".join(said[-3:])[:500] or "it printed nothing"


def _wait(
    process: subprocess.Popen[bytes], stage: Stage, files: StageFiles, deadline: float, tick: Callable[[], None]
) -> str:
    """Wait for the process; return why it has to be ended, or the empty string if it ended by itself."""
    size, since = -1, time.monotonic()
    while True:
        left = deadline - time.monotonic()
        try:
            process.wait(timeout=max(0.0, min(TICK_S, left)))
        except subprocess.TimeoutExpired:
            if left <= 0:
                return f"ended after its time limit of {stage.time_limit_s:g} s"
            now = files.results.stat().st_size if files.results.is_file() else 0
            if now != size:
                size, since = now, time.monotonic()
            quiet_s, allowance_s = time.monotonic() - since, WATCHDOG_S + _GRACE_S
            if quiet_s > stage.case_limit_s + allowance_s:
                limit_s = longest_limit_s(files.collected, stage.case_limit_s) + allowance_s
                if quiet_s > limit_s:
                    return f"ended after {limit_s:g} s in which no case began or ended"
            tick()
        else:
            return ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let the supervisor interrupt pytest, so that it can tear down, and kill what is left of it."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=2.0 * supervisor.GRACE_S + _GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
