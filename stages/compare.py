"""``python -m stages.compare``: build a base commit beside the working tree, run both in turns, compare (RE-4, ST-6).

The base is checked out as a git worktree. Each side runs the GPU-free part of stage 6 several times, in the order ABBA,
on this machine and in this environment, so that neither a slow machine nor one that becomes slower looks like a
regression. Exit codes are those of ``python -m reports compare``.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from burstproof.door import UsageParser, guarded
from burstproof.errors import ExitCode, InputError
from reports.git import ask_git
from stages import signals

STAGE = "stage6"
RUNS = 5
PAGE, SUMMARY = "compare.html", "compare.md"

Call = Callable[[Sequence[str], Path], int]
"""Runs a command in a folder and returns its exit code."""


@dataclass(frozen=True)
class Turn:
    """One run: the side (``base`` or ``new``), its checkout, and its folder of evidence."""

    side: str
    tree: Path
    folder: Path


def turns(base: Path, new: Path, out: Path, runs: int) -> tuple[Turn, ...]:
    """The runs in order: base, new, new, base, base, new ..., so that a drift of the machine affects both sides."""
    planned: list[Turn] = []
    for place in range(runs):
        pair = [Turn("base", base, out / f"base-{place + 1}"), Turn("new", new, out / f"new-{place + 1}")]
        planned += reversed(pair) if place % 2 else pair
    return tuple(planned)


def measure(turn: Turn, call: Call) -> None:
    """Run the GPU-free part of the stage on one side.

    Raises
    ------
    InputError
        If the run left no record.
    """
    command = [sys.executable, "-m", "stages", "run", STAGE, "--gpu-free", "--run", str(turn.folder)]
    status = call(command, turn.tree)
    if not (turn.folder / "record.json").is_file():
        problem, cure = f"the run left no record (exit code {status})", "What it printed above says why"
        raise InputError(problem, where=str(turn.folder), got=" ".join(command), cure=cure)


def carry_out(root: Path, base: Path, out: Path, runs: int, options: Sequence[str], call: Call) -> int:
    """Run both sides in turns and compare; return the comparison's exit code."""
    planned = turns(base, root, out, runs)
    for number, turn in enumerate(planned, 1):
        print(f"run {number} of {len(planned)}: {turn.side}, the GPU-free part of {STAGE}", flush=True)
        measure(turn, call)
    sides = ([f"--{side}", *(str(turn.folder) for turn in planned if turn.side == side)] for side in ("base", "new"))
    files = ["--out", str(out / PAGE), "--markdown", str(out / SUMMARY)]
    words = [word for side in sides for word in side]
    return call([sys.executable, "-m", "reports", "compare", *words, *files, *options], root)


def main(arguments: Sequence[str], root: Path) -> int:
    """Carry out the command line; every error is one message and an exit code."""
    return guarded("python -m stages.compare", lambda: _main(_parser().parse_args(arguments), root), plain=False)


def _main(options: argparse.Namespace, root: Path) -> int:
    out = options.out.resolve()
    if out.exists():
        raise InputError("this folder exists already", where="--out", got=str(out), cure="Delete it, or name another")
    base = _git(root, "rev-parse", "--verify", f"{options.base}^{{commit}}") if options.base else _base(root)
    print(f"base {base[:12]}, new {_git(root, 'describe', '--always', '--dirty')}", flush=True)
    out.mkdir(parents=True)
    tree, passed_on = out / "base", ["--strict"] if options.strict else []
    try:
        _git(root, "worktree", "add", "--detach", str(tree), base)
        return carry_out(root, tree, out, options.runs, passed_on, _call)
    except KeyboardInterrupt as signal:
        print(f"interrupted ({signal}); the runs so far are in {out}", file=sys.stderr)
        return ExitCode.UNDECIDED
    finally:
        if tree.exists():
            _git(root, "worktree", "remove", "--force", "--force", str(tree))  # twice: it may be locked


def _base(root: Path) -> str:
    """The default base: HEAD if files were changed, else the commit where the branch left main, else HEAD~1."""
    head = _git(root, "rev-parse", "HEAD")
    if _git(root, "status", "--porcelain"):
        return head
    for name in ("origin/main", "main"):
        try:
            left = _git(root, "merge-base", "HEAD", name)
        except InputError:
            continue
        if left != head:
            return left
    return _git(root, "rev-parse", "HEAD~1")


def _git(root: Path, *words: str) -> str:
    done = ask_git(root, *words)
    if done.returncode:
        why = done.stderr.decode(errors="backslashreplace").strip()
        raise InputError(f"git {words[0]}: {why}", where=str(root), cure="Name a commit with --base.")
    return done.stdout.decode(errors="backslashreplace").strip()


def _call(command: Sequence[str], folder: Path) -> int:
    """Run in a checkout whose own packages come first."""
    paths = [str(folder / "impl"), str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
    return signals.call(command, folder, {**os.environ, "PYTHONPATH": os.pathsep.join(paths)})


def _parser() -> argparse.ArgumentParser:
    parser = UsageParser(
        prog="stages.compare", description="Run a base commit and the working tree in turns and compare."
    )
    parser.add_argument(
        "--base", metavar="COMMIT", help="default: HEAD if files were changed, else where main was left"
    )
    parser.add_argument("--runs", type=_several, default=RUNS, help=f"runs a side (default {RUNS})")
    parser.add_argument("--out", type=Path, default=Path("runs/compare"), metavar="DIR", help="folder of the evidence")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="exit 1 also if anything is slower or vanished, 2 if a figure is undecided",
    )
    return parser


def _several(text: str) -> int:
    from reports.judge.difference import LEAST_RUNS

    if not text.isdigit() or int(text) < LEAST_RUNS:
        raise argparse.ArgumentTypeError(f"{text} is fewer than {LEAST_RUNS} runs a side, which confirm nothing")
    return int(text)


if __name__ == "__main__":
    signals.end_in_order()
    sys.exit(main(sys.argv[1:], Path(__file__).resolve().parents[1]))
