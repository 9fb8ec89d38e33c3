"""The command line of the runner."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from burstproof.door import refuse_bare_dashes
from burstproof.errors import BurstproofError, ExitCode, InputError
from burstproof.parsing import ExactParser
from reports.judge.targets import load_targets
from reports.judge.verdict import exit_code
from reports.values.record import NIGHTLY, QUICK, REPORT_NAME, THOROUGH
from stages.console import Console, closing, closing_part, explanation, listing, opening, plan_line
from stages.folder_lock import LOCK_NAME, hold
from stages.gating import Gatekeeper
from stages.plan import PLAN, Stage
from stages.pytest_command import MOST_WORKERS
from stages.recovery import recover
from stages.run_folder import RunFolder, RunPlan, new_run_path, utc_now
from stages.runner import Runner

PROGRAM = "python -m stages"
TO_BE_CONTINUED = 75
"""Exit code if a time limit came before the end of the plan; EX_TEMPFAIL of sysexits.h."""


class _Parser(ExactParser):
    """A parser that raises usage errors as :class:`InputError`, with exit code 4."""

    def error(self, message: str) -> NoReturn:
        where = self.prog.removeprefix(PROGRAM).strip() or None
        raise InputError(message, where=where, cure=f"{self.hint(message)}See --help.")


def main(arguments: Sequence[str], root: Path, plan: Sequence[Stage] = PLAN) -> int:
    """Carry out a command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str
        Without the program's name.
    root : Path
        The checkout.
    plan : sequence of Stage
        All stages.
    """
    try:
        refuse_bare_dashes(arguments)
        options = _parser(plan).parse_args(arguments)
        if options.command == "list":
            Console().say(*listing(plan))
            return ExitCode.PASS
        if options.command == "record":
            return _record(RunFolder(options.run), root, plan)
        return _run(options, root, plan)
    except BurstproofError as error:
        print(f"{PROGRAM}: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"{PROGRAM}: interrupted", file=sys.stderr)
        return ExitCode.UNDECIDED


def select(names: Sequence[str], plan: Sequence[Stage] = PLAN) -> tuple[Stage, ...]:
    """The named stages in the order of the plan; the whole plan if none is named.

    Raises
    ------
    InputError
        If a name is not in the plan.
    """
    known = {stage.name for stage in plan}
    for name in names:
        if name not in known:
            raise InputError("no such stage", where="run", got=name, allowed=", ".join(sorted(known)))
    return tuple(stage for stage in plan if not names or stage.name in names)


def _processes(text: str) -> int:
    """A number of processes, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of processes, 1 or more")
    return int(text)


def _text(text: str) -> str:
    """A text that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("an empty text is in every name")
    return text


def _seconds(text: str) -> float:
    """A time in seconds, more than 0."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds, more than 0")
    return seconds


def _parser(plan: Sequence[Stage]) -> _Parser:
    spread = ", ".join(stage.name for stage in plan if stage.side_by_side or stage.times_gpus_only)
    parser = _Parser(prog=PROGRAM, description="The staged test plan.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="list the stages")
    record = commands.add_parser("record", help="write the record of a run whose runner is gone; nothing runs")
    record.add_argument("run", type=Path, metavar="RUN", help="the run's folder")
    run = commands.add_parser("run", help="run stages; without a name: all of them")
    run.add_argument("names", nargs="*", metavar="NAME", help=", ".join(stage.name for stage in plan))
    run.add_argument("--resume", type=Path, metavar="RUN", help="continue this run (a folder, or its name in --runs)")
    run.add_argument("--explain", action="store_true", help="say what would run here and why not the rest")
    run.add_argument("--runs", type=Path, default=Path("runs"), metavar="DIR", help="where runs lie (default: runs)")
    run.add_argument("--run", type=Path, metavar="RUN", help="the folder of this run, instead of a new one in --runs")
    run.add_argument("--only", action="append", default=[], metavar="NAME", help="run only this stage of the plan now")
    run.add_argument(
        "--workers",
        type=_processes,
        default=MOST_WORKERS,
        metavar="N",
        help=f"processes for the cases of {spread} (default: a core each, at most {MOST_WORKERS})",
    )
    run.add_argument(
        "--time-limit",
        type=_seconds,
        default=math.inf,
        metavar="S",
        help=f"begin no case after S seconds; where some are left, exit with {TO_BE_CONTINUED}: go on with --resume",
    )
    run.add_argument(
        "--first",
        type=_text,
        action="append",
        default=[],
        metavar="TEXT",
        help="run cases whose names contain TEXT first; repeat it for those that come next; --resume needs it again",
    )
    kinds = run.add_mutually_exclusive_group()
    for kind, what in ((THOROUGH, "all that CI runs"), (NIGHTLY, "also what takes longer than CI may")):
        kinds.add_argument(
            f"--{kind}",
            dest="plan",
            action="store_const",
            const=kind,
            default=QUICK,
            help=f"run the {kind} plan: {what} (default: the quick plan)",
        )
    run.add_argument("--targets", type=Path, metavar="FILE", help="judge by the targets of this file too")
    run.add_argument("--gpu-free", action="store_true", help="treat every hardware gate as closed")
    return parser


def _run(options: argparse.Namespace, root: Path, plan: Sequence[Stage]) -> int:
    until_s = time.monotonic() + options.time_limit
    console = Console()
    how = _options_of_start(options)
    if options.resume is not None:
        folder = _resumed(options)
        asked = folder.read_plan()
    else:
        load_targets(options.targets)
        asked = RunPlan(
            asked=tuple(dict.fromkeys(options.names)),
            stages=tuple(stage.name for stage in select(options.names, plan)),
            gpu_free=options.gpu_free,
            started_utc=utc_now(),
            command=("python", "-m", "stages", "run", *options.names, *_options_of_plan(options), *how),
            plan=options.plan,
        )
        folder = RunFolder(new_run_path(options.runs) if options.run is None else options.run)
    stages = select(asked.stages, plan)
    gates = Gatekeeper(gpu_free=asked.gpu_free).gates
    strange = [name for name in options.only if name not in asked.stages]
    if strange:
        allowed = ", ".join(asked.stages)
        raise InputError("a stage that is not in the run's plan", where="--only", got=strange[0], allowed=allowed)
    if options.explain:
        console.say(*explanation(stages, gates, asked.plan))
        return ExitCode.PASS
    if options.resume is None:
        _refuse_used(folder)
    with hold(folder.path) as lock:
        if options.resume is None:
            _refuse_used(folder)
            folder.write_plan(asked, options.targets)
        console.say(opening(stages, gates), plan_line(asked.plan), f"Run: {folder.path}")
        runner = Runner(root, folder, console, plan, options.workers, lock, until_s, how, tuple(options.first))
        return _carry_out(runner, options.only)


def _carry_out(runner: Runner, only: Sequence[str]) -> int:
    """Run the stages, print the summary, and return the exit code."""
    console, folder = runner.console, runner.folder
    try:
        record = runner.run(only)
    except KeyboardInterrupt as signal:
        named = f" ({signal})" if str(signal) else ""
        console.say(
            f"Interrupted{named}. Report so far: {folder.path / REPORT_NAME}. Go on with --resume {folder.path}"
        )
        return ExitCode.UNDECIDED
    unfinished = not record.finished_utc
    late = unfinished and (time.monotonic() >= runner.until_s or runner.stopped_in_order(record))
    part = late or (unfinished and bool(only))
    texts = runner.unmatched(stage.stage for stage in record.stages)
    unmatched = [f"--first {text}: no case has this in its name." for text in texts]
    console.say(*unmatched, *(closing_part if part else closing)(record, folder.path))
    return TO_BE_CONTINUED if late else exit_code(record)


def _refuse_used(folder: RunFolder) -> None:
    """Refuse a folder with another run or with other files for a new run."""
    if folder.exists:
        raise InputError("this run exists already", where="--run", got=str(folder.path), cure="Use --resume.")
    if folder.path.is_dir() and any(path.name != LOCK_NAME for path in folder.path.iterdir()):
        cure = "Name a folder that is empty, or that is not there yet."
        raise InputError("a folder with other files in it", where="--run", got=str(folder.path), cure=cure)


def _options_of_plan(options: argparse.Namespace) -> list[str]:
    """Options that are part of the plan of a run."""
    kind = [] if options.plan == QUICK else [f"--{options.plan}"]
    targets = [] if options.targets is None else ["--targets", str(options.targets)]
    return [*kind, *(["--gpu-free"] if options.gpu_free else []), *targets]


def _options_of_start(options: argparse.Namespace) -> tuple[str, ...]:
    """Options that hold for this start of the runner only."""
    workers = () if options.workers == MOST_WORKERS else ("--workers", str(options.workers))
    limit = () if math.isinf(options.time_limit) else ("--time-limit", f"{options.time_limit:g}")
    return (*workers, *limit, *(f"--first={text}" for text in options.first))


def _record(folder: RunFolder, root: Path, plan: Sequence[Stage]) -> int:
    if not folder.exists:
        raise _no_run("record", folder.path)
    with hold(folder.path):
        record = recover(folder, plan, root)
    Console().say(*closing(record, folder.path))
    return exit_code(record)


def _resumed(options: argparse.Namespace) -> RunFolder:
    if options.names or options.run or _options_of_plan(options):
        cure = "Leave NAME, --thorough, --nightly, --gpu-free and --targets out."
        raise InputError("a resumed run has its plan already", where="--resume", cure=cure)
    for path in (options.resume, options.runs / options.resume):
        if RunFolder(path).exists:
            return RunFolder(path)
    raise _no_run("--resume", options.resume)


def _no_run(where: str, path: Path) -> InputError:
    cure = "Name the folder of a run, as the line Run: of its start shows it."
    return InputError("no run with a plan here", where=where, got=str(path), cure=cure)
