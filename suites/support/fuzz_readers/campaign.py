"""Drawing inputs for the readers and judging what each does with them."""

from __future__ import annotations

import os
import random
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from burstproof.errors import BurstproofError
from suites.support.fuzz_readers.readers import Files, Reader

MOST_CPU_S = 5.0
"""Processor time that one input may take."""

MOST_WALL_S = 120
"""Seconds after which an input that does not end is given up."""

MEMORY = "/dev/shm"
"""Folder in memory, where there is one: writers wait for the disk, which nobody measures here."""

MOST_GROWTH_BYTES = 1 << 29
"""By how much the largest memory of the process may grow over a reader's inputs; above, they are not bounded."""


@dataclass(frozen=True)
class Finding:
    """An input that broke the rules: kept in ``folder``, found as number ``number``."""

    number: int
    problem: str
    folder: str

    @property
    def kind(self) -> str:
        """The problem without its particulars."""
        return self.problem.partition(": ")[0]


@dataclass
class Tally:
    """What became of the inputs of one reader."""

    reader: str
    inputs: int = 0
    accepted: int = 0
    refused: int = 0
    slowest_s: float = 0.0
    findings: list[Finding] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        """Count what became of further inputs; of each kind of problem the first finding stays."""
        self.inputs += other.inputs
        self.accepted += other.accepted
        self.refused += other.refused
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        kinds = {finding.kind for finding in self.findings}
        self.findings += [finding for finding in other.findings if finding.kind not in kinds]


class _HangingError(Exception):
    """An input that does not end."""


@contextmanager
def _time_limit() -> Iterator[None]:
    def give_up(_: int, __: FrameType | None) -> None:
        raise _HangingError(f"no end after {MOST_WALL_S} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(MOST_WALL_S)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def fuzz(reader: Reader, inputs: int, seed: int, kept: Path, first: int = 0) -> Tally:
    """Have ``reader`` read so many inputs; input number i is the same for the same ``seed``.

    Parameters
    ----------
    reader : Reader
    inputs, seed : int
    kept : Path
        Folder for the inputs that break the rules; one of each kind of problem.
    first : int
        Number of the first input.

    Returns
    -------
    Tally
    """
    tally = Tally(reader.name)
    with tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None) as name:
        folder = Path(name)
        seeds = list(reader.seeds(_made(folder / "seeds")))
        valid = Tally(reader.name)
        for files in seeds:
            problem = _problem(reader, files, _made(folder / "valid"), valid)
            if problem or valid.refused:
                raise AssertionError(f"a valid {reader.name} is not read: {problem}")
        largest = _largest_bytes()
        for number in range(first, first + inputs):
            files = reader.draw(random.Random(f"{seed} {reader.name} {number}"), seeds)
            problem = _problem(reader, files, _made(folder / "input"), tally)
            grown = _largest_bytes() - largest
            if problem is None and grown > MOST_GROWTH_BYTES:
                problem, largest = f"takes too much memory: {grown} bytes", largest + grown
            tally.inputs += 1
            if problem is not None:
                _keep(tally, number, problem, files, kept)
    return tally


def _largest_bytes() -> int:
    """The most memory that this process had at once; Linux counts in KiB."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def _problem(reader: Reader, files: Files, folder: Path, tally: Tally) -> str | None:
    """Read one input; what is wrong with how that ended, or ``None``."""
    for name, content in files.items():
        (folder / name).write_bytes(content)
    started = time.process_time()
    problem = None
    try:
        with _time_limit():
            reader.check(folder)
        tally.accepted += 1
    except BurstproofError as error:
        tally.refused += 1
        if not str(error).isprintable() and not str(error).replace("\n", "").replace("\t", "").isprintable():
            problem = f"an error message with control characters: {error!s:.200}"
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"{type(error).__name__} in {Path(last.filename).name}:{last.lineno}: {error!s:.200}"
    taken_s = time.process_time() - started
    tally.slowest_s = max(tally.slowest_s, taken_s)
    if problem is None and taken_s > MOST_CPU_S:
        problem = f"takes too long: {taken_s:.0f} s"
    return problem


def _keep(tally: Tally, number: int, problem: str, files: Files, kept: Path) -> None:
    """Add a finding; its files are kept for the first of its kind."""
    folder = kept / f"{tally.reader}-{number}"
    finding = Finding(number, problem, str(folder))
    if finding.kind not in {known.kind for known in tally.findings}:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        tally.findings.append(finding)


def table(tallies: Sequence[Tally]) -> str:
    """What became of the inputs, a line for each reader and each finding."""
    lines = [f"{'reader':14} {'inputs':>9} {'accepted':>9} {'refused':>9} {'slowest ms':>11} {'findings':>9}"]
    for one in tallies:
        lines.append(
            f"{one.reader:14} {one.inputs:9} {one.accepted:9} {one.refused:9} {1e3 * one.slowest_s:11.1f} "
            f"{len(one.findings):9}"
        )
    lines += [f"  {one.reader} {f.number}: {f.problem} ({f.folder})" for one in tallies for f in one.findings]
    return "\n".join(lines)
