"""``python -m suites.support.parity.fuzz_campaign --cases N``: random cases with all features crossed, in processes.

Each case runs on the reference and on one backend, as ``burstproof fuzz`` does. ``--out`` writes a summary: commit,
seeds, cases, cases by section of FEATURES.md, and what differs. Exit codes: 0 no case
differs, 1 one does, 2 none was compared.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

if __name__ == "__main__":  # where burstproof is not installed the checkout itself serves
    sys.path.append(str(Path(__file__).resolve().parents[3] / "impl"))

from burstproof.door import UsageParser, guarded
from burstproof.engine.features.support import EVERYTHING, sections_of
from burstproof.errors import EnvironmentInvalidError, ExitCode
from burstproof.fuzz.compare import compare
from burstproof.fuzz.draw import draw_case
from burstproof.network.files.atomic import write_atomically
from suites.support.commit import commit_of_today
from suites.support.parity.backends import CPU_BACKENDS, Backend

PART = 50
"""Cases that a process does at a time."""


@dataclass
class Part:
    """What became of some cases; ``sections`` counts cases by what they need, ``differences`` are by seed."""

    cases: int = 0
    bursts: int = 0
    refused: int = 0
    sections: Counter[str] = field(default_factory=Counter)
    differences: dict[int, str] = field(default_factory=dict)

    def add(self, other: Part) -> None:
        """Take in ``other``."""
        self.cases, self.bursts = self.cases + other.cases, self.bursts + other.bursts
        self.refused += other.refused
        self.sections.update(other.sections)
        self.differences.update(other.differences)


def backend_named(name: str, shards: int) -> Backend:
    """The backend under test, over so many shards."""
    if name == "cpu":
        return replace(CPU_BACKENDS[0], shards=shards)
    from burstproof.engine.options import CudaOptions

    return Backend(name, cuda=CudaOptions(), shards=shards)


def run_part(name: str, shards: int, families: int, deadline: float, seeds: range) -> Part:
    """The cases of ``seeds``, until the clock reaches ``deadline``."""
    backend, done = backend_named(name, shards), Part()
    for seed in seeds:
        if time.time() > deadline:
            break
        case = draw_case(seed, families, EVERYTHING)
        try:
            found = compare(case, backend.create)
        except EnvironmentInvalidError:
            done.refused += 1
            continue
        done.cases, done.bursts = done.cases + 1, done.bursts + case.bursts
        done.sections.update(section.value for section in sections_of(case.network))
        if found is not None:
            done.differences[seed] = str(found)
    return done


def parts_of(first: int, cases: int, families: int) -> list[range]:
    """Seeds by part; with families, whose cases share kernels, a part has those of one family."""
    end = first + cases
    if families:
        return [range(first + family, end, families) for family in range(min(families, cases))]
    return [range(low, min(low + PART, end)) for low in range(first, end, PART)]


def main() -> int:
    """Run the campaign that the command line names and print what became of it."""
    options = _parser().parse_args()
    deadline = time.time() + 60 * options.minutes
    work = partial(run_part, options.backend, options.shards, options.families, deadline)
    total = Part()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=context) as pool:
        futures = [pool.submit(work, seeds) for seeds in parts_of(options.seed, options.cases, options.families)]
        for future in as_completed(futures):
            total.add(future.result())
    document = _document(options, total)
    if options.out is not None:
        write_atomically(options.out, (json.dumps(document, indent=1) + "\n").encode())
    print(json.dumps(document, indent=1))
    if total.differences:
        return ExitCode.FAIL
    return ExitCode.PASS if total.cases else ExitCode.UNDECIDED


def _document(options: argparse.Namespace, total: Part) -> dict[str, object]:
    return {
        "commit": commit_of_today(),
        "backend": options.backend,
        "shards": options.shards,
        "first_seed": options.seed,
        "families": options.families,
        "cases_asked": options.cases,
        "cases": total.cases,
        "bursts": total.bursts,
        "refused": total.refused,
        "cases_with": dict(sorted(total.sections.items())),
        "differences": {str(seed): text for seed, text in sorted(total.differences.items())},
    }


def _parser() -> argparse.ArgumentParser:
    parser = UsageParser(prog="python -m suites.support.parity.fuzz_campaign", description=__doc__)
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shards", type=int, default=0, metavar="N", help="shards of it; 0: none")
    parser.add_argument("--cases", type=int, default=10_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first case")
    parser.add_argument("--families", type=int, default=0, metavar="F", help="sets of switches; 0: one for each case")
    parser.add_argument("--processes", type=int, default=len(os.sched_getaffinity(0)), metavar="P")
    parser.add_argument("--minutes", type=float, default=60.0, metavar="M", help="begin no more cases after so long")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the summary there")
    return parser


if __name__ == "__main__":
    sys.exit(guarded("fuzz_campaign", main))
