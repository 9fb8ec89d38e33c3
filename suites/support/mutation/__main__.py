"""``python -m suites.support.mutation``: plant small faults in the modules that decide something; see who notices."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from burstproof.door import UsageParser
from burstproof.errors import ExitCode
from suites.support.commit import commit_of_today
from suites.support.mutation.groups import GROUPS, ROOT, Group, equivalent
from suites.support.mutation.mutants import mutants_of
from suites.support.mutation.trial import Log, Planted, tried

MOST_SURVIVING = 0.03


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


def note(file: Path, options: argparse.Namespace, group: Group, tried: int, lived: int, survived: int) -> None:
    """Put a group's numbers into a summary; the same sample tried again keeps what survived at first."""
    rows = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    sample = {"group": group.name, "sample": options.sample, "seed": options.seed}
    earlier = [row for row in rows if sample.items() <= row.items()]
    first = earlier[0]["survived_at_first"] if earlier else lived
    numbers = {"tried": tried, "survived_at_first": first, "survived": survived, "commit": commit_of_today()}
    rows = sorted(
        [*(row for row in rows if row not in earlier), {**sample, **numbers}],
        key=lambda row: (row["group"], row["seed"]),
    )
    file.write_text("[\n" + ",\n".join(f"  {json.dumps(row)}" for row in rows) + "\n]\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Plant, run, print; 0 unless more than 3 % of the mutants of a group survive."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.part and options.summary:
        parser.error("a summary is of whole groups or of samples, not of --part")
    unknown = set(options.groups) - {group.name for group in GROUPS}
    if unknown:
        parser.error(f"no such group: {', '.join(sorted(unknown))}")
    deadline = time.monotonic() + 60 * options.minutes
    results = [_try(group, options, deadline) for group in GROUPS if not options.groups or group.name in options.groups]
    return ExitCode.PASS if all(results) else ExitCode.FAIL


def _parser() -> argparse.ArgumentParser:
    parser = UsageParser(prog="python -m suites.support.mutation", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(group.name for group in GROUPS))
    parser.add_argument("--sample", type=int, help="mutants of each group; all by default")
    parser.add_argument("--seed", type=int, default=0, help="of the sample (default 0)")
    parser.add_argument("--part", type=_part, metavar="I/N", help="only part I of N of each group's mutants")
    parser.add_argument("--workers", type=int, default=1, help="mutants tried side by side (default 1)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="try no more after so long")
    parser.add_argument("--log", type=Path, metavar="FILE", help="note each mutant; what FILE has noticed is not tried")
    parser.add_argument("--summary", type=Path, metavar="FILE", help="put the numbers of whole passes into this file")
    return parser


def _try(group: Group, options: argparse.Namespace, deadline: float) -> bool:
    """Plant the mutants of a group, say which survive, and return whether they are few enough."""
    chosen = part_of(planted_in(group, options.sample, options.seed), options.part or (1, 1))
    log = Log(options.log)
    begun = [one for one in chosen if not log.has_noticed(one)]
    ended = 0
    alive = []
    for one, lives in tried(group, begun, options.workers, deadline):
        log.add(one, lives)
        ended += 1
        alive += [one] if lives else []
    noticed = len(chosen) - len(begun) + ended - len(alive)
    left = f"; {len(begun) - ended} not tried" if ended < len(begun) else ""
    print(f"{group.name}: {len(alive)} of {noticed + len(alive)} mutants survive{left}", flush=True)
    for one in alive:
        print(f"  {one.module}:{one.mutant.line} {one.mutant.name}", flush=True)
    if options.summary is not None and not left:
        note(options.summary, options, group, len(chosen), log.lived(group), len(alive))
    return len(alive) <= MOST_SURVIVING * (noticed + len(alive))


if __name__ == "__main__":
    sys.exit(main())
