"""Runs the suites of a stage in a pytest process, so that neither a crash nor a hang ends the runner."""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reports.values.record import NIGHTLY, THOROUGH
from stages import supervisor
from stages.collected import longest_limit_s, read_collection
from stages.plan import Stage
from stages.pytest_command import MOST_WORKERS, pytest_command, suite_environment
from stages.pytest_log import NOTHING_RAN, describe_status
from stages.results import CaseLines, read_lines, reopen
from stages.run_folder import StageFiles
from stages.time_limit import WATCHDOG_S

TICK_S = 0.5
_GRACE_S = 10.0
_MOST_DEATHS = 8


@dataclass(frozen=True)
class SuiteEnd:
    """How pytest ended: exit status, the problem that kept it from finishing (empty: none), wall time in seconds.

    ``cut_off``: a time limit ended it while cases were left, or it was killed before they were known; another sitting
    can run them.
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
    """Run the suites of a stage to their end. If the process dies during a case, another process runs the other cases.

    Cases that ``files.begun`` lists are not run.

    Parameters
    ----------
    stage : Stage
    root : Path
        The checkout, in which pytest runs; its ``pyproject.toml`` is the only configuration file.
    files : StageFiles
        Where the evidence goes.
    gpu_free : bool
        Treat every hardware gate as closed.
    plan : str
        How much is run: one of ``PLAN_KINDS``.
    tick : callable
        Called about twice a second while pytest runs.
    workers : int
        Most processes in which cases run side by side.
    lock : int or None
        A file descriptor that the supervisor keeps open as well.
    until_s : float
        On the monotonic clock, in seconds: no case begins at that time or later.
    first : sequence of str
        Cases whose names contain the first text run before all others, then those that contain the second, and so on.
    later : str
        Name of a gate, whose cases run one at a time after all others, those that ``first`` names before; empty: none.
    """
    began = time.monotonic()
    files = StageFiles(files.folder.resolve())  # pytest runs in another folder
    deadline = began + stage.time_limit_s
    options = [f"--bp-until={until_s!r}"] if until_s < math.inf else []
    options += [f"--bp-first={text}" for text in first]
    options += [f"--bp-stage-end={deadline!r}"] if plan == NIGHTLY else []
    processes = [(stage, options)]
    if later:
        alone = replace(stage, side_by_side=False)
        processes = [(stage, [*options, f"--bp-later={later}"]), (alone, options)]
        if first:
            processes.insert(0, (alone, [*options, f"--bp-sooner={later}"]))
    commands = [
        [*pytest_command(how, root, files, gpu_free=gpu_free, plan=plan, workers=workers), *more]
        for how, more in processes
    ]
    attempts = _Attempts(
        stage,
        files,
        commands,
        lambda command: _run_once(command, stage, root, files, deadline, tick, lock),
        deadline=deadline,
        until_s=until_s,
    )
    while not attempts.is_over:
        attempts.run_next()
    return attempts.end(began, plan)


class _Attempts:
    """The processes that run the cases of a stage: one for each command, and another one after each that dies.

    Parameters
    ----------
    stage : Stage
    files : StageFiles
    commands : list of list of str
        The commands to run, one after the other; each runs the cases that those before it left.
    run : callable
        Runs a command to its end; returns its exit status and the problem that kept it from finishing.
    deadline, until_s : float
        On the monotonic clock, in seconds: when the stage has to end, and from when on no case begins.

    Attributes
    ----------
    is_over : bool
        Whether no case is left, or none may begin.
    """

    def __init__(
        self,
        stage: Stage,
        files: StageFiles,
        commands: list[list[str]],
        run: Callable[[Sequence[str]], tuple[int, str]],
        *,
        deadline: float,
        until_s: float,
    ) -> None:
        self.is_over = False
        self._stage, self._files, self._commands, self._run = stage, files, commands, run
        self._deadline, self._until_s = deadline, until_s
        self._continued = files.begun.is_file()
        self._deaths: list[str] = []
        self._lines = CaseLines()
        self._status, self._problem, self._failed = 0, "", False

    def run_next(self) -> None:
        """Run one process with the cases that have not begun yet, and prepare the next one if cases are left."""
        self._status, self._problem = self._run(self._commands[0])
        self._failed = self._failed or self._status == 1
        if self._status == NOTHING_RAN and len(self._commands) > 1:
            self._problem = ""  # all cases that are left belong to the next command
        self._lines = read_lines(self._files.results)
        begun = {*(case.case for case in self._lines.cases), *self._lines.unfinished}
        died = self._died(begun)
        if died:
            self._note_death()
        self.is_over = self._is_last(died=died) or not _cases_left(self._files, begun)
        if not self.is_over:
            self._files.begun.write_text("\n".join(sorted(begun)), encoding="utf-8")
            if not died:
                self._prepare_next_command()

    def _died(self, begun: set[str]) -> bool:
        """Whether the process died, during a case or between two."""
        if self._lines.closed or self._lines.damage:
            return False
        return bool(self._lines.unfinished) or (self._status < 0 and _cases_left(self._files, begun))

    def _note_death(self) -> None:
        during = f" during {self._lines.unfinished[-1]}" if self._lines.unfinished else " between two cases"
        self._deaths.append(f"{self._problem or f'pytest ended with exit status {self._status}'}{during}")
        self._problem = ""

    def _is_last(self, *, died: bool) -> bool:
        """Whether no other process may follow, even if cases are left."""
        if died:
            return len(self._deaths) > _MOST_DEATHS or time.monotonic() > self._deadline
        late = time.monotonic() > min(self._deadline, self._until_s)
        return len(self._commands) == 1 or late or bool(self._problem or self._lines.damage)

    def _prepare_next_command(self) -> None:
        """Let the next process append to the results of the last one, which ended in order."""
        del self._commands[0]
        reopen(self._files.results, [])
        self._files.set_aside(self._files.junit)
        self._files.set_aside(self._files.benchmark)

    def end(self, began: float, plan: str) -> SuiteEnd:
        """How the stage ended; ``began`` is on the monotonic clock, in seconds, ``plan`` one of ``PLAN_KINDS``."""
        ended = time.monotonic()
        nothing_ran = self._status == NOTHING_RAN and (self._deaths or self._continued)
        problem = "" if nothing_ran else self._problem
        in_order = self._lines.closed and not self._lines.damage and not problem
        longest_s = longest_limit_s(self._files.collected, 0.0) if in_order and plan == NIGHTLY else 0.0
        over = ended > min(self._deadline - longest_s, self._until_s)
        begun = {*(case.case for case in self._lines.cases), *self._begun_before()}
        killed_early = self._status == -signal.SIGKILL and read_collection(self._files.collected) is None
        cut_off = killed_early or (over and _cases_left(self._files, begun))
        if cut_off and in_order:
            limit = "--time-limit" if ended > self._until_s else f"the stage ({self._stage.time_limit_s:g} s)"
            problem = f"the time of {limit} was over"
        status = 1 if self._failed and self._status == 0 else self._status
        return SuiteEnd(status, "; ".join([*self._deaths, *filter(None, [problem])]), ended - began, cut_off)

    def _begun_before(self) -> list[str]:
        """Cases that earlier processes, of this sitting or of one before it, began and that are not run again."""
        begun = self._files.begun
        return begun.read_text(encoding="utf-8").splitlines() if begun.is_file() else []


def _cases_left(files: StageFiles, begun: set[str]) -> bool:
    """Whether a collected case has not begun."""
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
    """Run pytest to its end; return its exit status and the problem that kept it from finishing."""
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


def _wait(
    process: subprocess.Popen[bytes], stage: Stage, files: StageFiles, deadline: float, tick: Callable[[], None]
) -> str:
    """Wait for the process; return why it has to be ended, or an empty text if it ended by itself."""
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
    """Let the supervisor interrupt pytest, so that fixtures are torn down, and kill what does not end."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(timeout=2.0 * supervisor.GRACE_S + _GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
