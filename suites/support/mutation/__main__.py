"""``python -m suites.support.mutation``: plant small faults in the modules that decide something; see who notices."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from burstproof.door import UsageParser
from burstproof.errors import ExitCode
from suites.support.mutation.groups import GROUPS, ROOT, Group, equivalent
from suites.support.mutation.mutants import Mutant, mutants_of

SLOWEST = 5
"""A mutant under which the cases take so many times as long has been noticed."""
MOST_SURVIVING = 0.03


@dataclass(frozen=True)
class Planted:
    """A mutant of a module."""

    group: Group
    module: str
    mutant: Mutant


class Copy:
    """A copy of the checkout, to plant mutants in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            cwd=ROOT,
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split("\0")
        for name in filter(None, names):
            if (ROOT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, folder / name)

    def passes(self, cases: Sequence[str], limit_s: float) -> bool:
        """Whether the cases pass in time."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *cases]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(
                [str(self.folder / "impl"), str(self.folder), os.environ.get("PYTHONPATH", "")]
            ),
            "XDG_CACHE_HOME": str(self.folder / ".cache"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        try:
            done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, timeout=limit_s)
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def survives(self, planted: Planted, limit_s: float) -> bool:
        """Whether the cases pass with the mutant."""
        file = self.folder / planted.module
        original = file.read_text(encoding="utf-8")
        file.write_text(planted.mutant.source, encoding="utf-8")
        try:
            return self.passes(planted.group.cases, limit_s)
        finally:
            file.write_text(original, encoding="utf-8")


def planted_in(group: Group, sample: int | None, seed: int) -> list[Planted]:
    """A sample of a group's mutants, or all; those that nobody could notice are drawn, too, and then left out."""
    found = [
        Planted(group, module, mutant)
        for module in group.modules
        for mutant in mutants_of((ROOT / module).read_text(encoding="utf-8"))
    ]
    if sample is not None and sample < len(found):
        found = random.Random(seed).sample(found, sample)
    return [one for one in found if one.mutant.name not in equivalent().get(one.module, {})]


def part_of(chosen: Sequence[Planted], part: tuple[int, int]) -> list[Planted]:
    """The part I of N of the mutants: every N-th of them."""
    number, parts = part
    return list(chosen[number - 1 :: parts])


def _part(text: str) -> tuple[int, int]:
    """``I/N`` as two numbers, 1 <= I <= N."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal() and 1 <= int(number) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part I/N, as 2/5")
    return int(number), int(parts)


def survivors_of(group: Group, chosen: Sequence[Planted], workers: int) -> list[Planted]:
    """The chosen mutants that no case notices."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(workers):
            copies.put(Copy(Path(folder) / str(number)))
        first = copies.get()
        began = time.monotonic()
        if not first.passes(group.cases, 3600.0):
            raise SystemExit(f"{group.name}: the cases fail without a mutant; mend them first")
        limit_s = SLOWEST * (time.monotonic() - began) + 30
        copies.put(first)

        def try_one(planted: Planted) -> bool:
            copy = copies.get()
            try:
                return copy.survives(planted, limit_s)
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            return [one for one, lives in zip(chosen, pool.map(try_one, chosen), strict=True) if lives]


def commit_of_today() -> str:
    """The commit, and whether the checkout differs from it."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.strip()


def note(file: Path, options: argparse.Namespace, group: Group, tried: int, survived: int, commit: str) -> None:
    """Put a group's numbers into a summary; the same sample tried again keeps what survived at first."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    sample = {"group": group.name, "sample": options.sample, "seed": options.seed}
    earlier = [row for row in rows if sample.items() <= row.items()]
    first = earlier[0]["survived_at_first"] if earlier else survived
    row = {**sample, "tried": tried, "survived_at_first": first, "survived": survived, "commit": commit}
    rows = sorted([*(row for row in rows if row not in earlier), row], key=lambda row: (row["group"], row["seed"]))
    file.write_text("[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant, run, print; 0 unless more than 3 % of the mutants of a group survive."""
    parser = UsageParser(prog="python -m suites.support.mutation", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(group.name for group in GROUPS))
    parser.add_argument("--sample", type=int, help="mutants of each group; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    parser.add_argument("--part", type=_part, metavar="I/N", help="only part I of N of each group's mutants")
    parser.add_argument("--workers", type=int, default=1, help="mutants tried side by side (default 1)")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="put the numbers into this JSON file")
    options = parser.parse_args(arguments)
    if options.part and options.summary:
        parser.error("a summary is of whole groups or of samples, not of --part")
    unknown = set(options.groups) - {group.name for group in GROUPS}
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    good = True
    for group in GROUPS:
        if options.groups and group.name not in options.groups:
            continue
        commit = commit_of_today()
        chosen = part_of(planted_in(group, options.sample, options.seed), options.part or (1, 1))
        alive = survivors_of(group, chosen, options.workers)
        print(f"{group.name}: {len(alive)} of {len(chosen)} mutants survive", flush=True)
        for one in alive:
            print(f"  {one.module}:{one.mutant.line} {one.mutant.name}", flush=True)
        if options.summary is not None:
            note(options.summary, options, group, len(chosen), len(alive), commit)
        good &= len(alive) <= MOST_SURVIVING * len(chosen)
    return ExitCode.PASS if good else ExitCode.FAIL


if __name__ == "__main__":
    sys.exit(main())
