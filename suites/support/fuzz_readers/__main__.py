"""``python -m suites.support.fuzz_readers --inputs N --seed S``: every reader of a file, N mutated inputs each.

Exit codes: 0 every input was read or refused with an error of the package, 1 one was not, 4 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # where burstproof is not installed the checkout itself serves
    sys.path.append(str(Path(__file__).resolve().parents[3] / "impl"))

from burstproof.door import UsageParser, guarded
from burstproof.errors import ExitCode, InputError
from burstproof.network.files.atomic import write_atomically
from suites.support.commit import commit_of_today
from suites.support.fuzz_readers.campaign import Finding, Tally, fuzz, table
from suites.support.fuzz_readers.readers import READERS

ROUND = 1000
"""Inputs of one reader before it is the turn of the next, so that a campaign that is ended has read of all."""


def main() -> int:
    """Fuzz the readers that the command line names, and print what became of the inputs."""
    options = _parser().parse_args()
    names = options.readers.split(",") if options.readers else [reader.name for reader in READERS]
    unknown = sorted(set(names) - {reader.name for reader in READERS})
    if unknown or options.inputs < 1:
        allowed = ", ".join(reader.name for reader in READERS)
        raise InputError("no such reader, or no inputs", got=unknown or options.inputs, allowed=allowed)
    if options.processes < 1:
        raise InputError("fewer than one process", got=options.processes, cure="Give --processes a number from 1 on.")
    deadline = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    commit = commit_of_today()
    earlier, commits = _earlier(options)
    done = {name: earlier.get(name, Tally(name)) for name in names}
    first = {name: tally.inputs for name, tally in done.items()}
    before = sum(first.values())
    rounds = [(name, first[name] + begun) for begun in range(0, options.inputs, ROUND) for name in names]
    rounds = [(name, begun) for name, begun in rounds if begun < options.inputs]
    with ProcessPoolExecutor(options.processes) as pool:
        for tally in pool.map(partial(_round, options, deadline), rounds):
            done[tally.reader].add(tally)
            here = sum(tally.inputs for tally in done.values()) - before
            _write(options, {**commits, commit: commits.get(commit, 0) + here}, list(done.values()))
    print(table(list(done.values())))
    return ExitCode.FAIL if any(tally.findings for tally in done.values()) else ExitCode.PASS


def _round(options: argparse.Namespace, deadline: float, asked: tuple[str, int]) -> Tally:
    """One reader's inputs from a number on; none once the time is over."""
    name, begun = asked
    if time.monotonic() >= deadline:
        return Tally(name)
    (reader,) = (reader for reader in READERS if reader.name == name)
    return fuzz(reader, min(ROUND, options.inputs - begun), options.seed, options.findings, begun)


def _earlier(options: argparse.Namespace) -> tuple[dict[str, Tally], dict[str, int]]:
    """What earlier sittings of the campaign did, by reader, and their inputs by commit."""
    if not options.resume:
        return {}, {}
    if options.out is None or not options.out.is_file():
        raise InputError("no campaign to go on with", where="--resume", cure="Name its summary with --out.")
    document = json.loads(options.out.read_text(encoding="utf-8"))
    if document["seed"] != options.seed:
        raise InputError("a campaign of another seed", where="--seed", got=options.seed, allowed=str(document["seed"]))
    tallies = [
        Tally(**{**row, "findings": [Finding(**found) for found in row["findings"]]}) for row in document["readers"]
    ]
    return {tally.reader: tally for tally in tallies}, document["commits"]


def _parser() -> argparse.ArgumentParser:
    parser = UsageParser(prog="python -m suites.support.fuzz_readers", description=__doc__)
    parser.add_argument("--inputs", type=int, default=300, metavar="N", help="of each reader (default: 300)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the same seed gives the same inputs")
    parser.add_argument("--readers", metavar="A,B", help="only these")
    parser.add_argument("--processes", type=int, default=1, metavar="P", help="that read side by side (default: 1)")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no more rounds after so long")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"), metavar="DIR", help="kept inputs")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a summary as JSON, also on the way")
    parser.add_argument("--resume", action="store_true", help="go on with the campaign whose summary --out is")
    return parser


def _write(options: argparse.Namespace, commits: dict[str, int], tallies: list[Tally]) -> None:
    """The summary so far: inputs by commit, seed, what was asked for, and counts."""
    if options.out is None:
        return
    document: dict[str, Any] = {
        "commits": commits,
        "seed": options.seed,
        "inputs_asked": options.inputs,
        "inputs": sum(tally.inputs for tally in tallies),
        "findings": sum(len(tally.findings) for tally in tallies),
        "readers": [asdict(tally) for tally in tallies],
    }
    write_atomically(options.out, (json.dumps(document, indent=1) + "\n").encode())


if __name__ == "__main__":
    sys.exit(guarded("fuzz_readers", main))
