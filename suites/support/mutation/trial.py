"""Planting mutants in copies of the checkout, and the log of what became of them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue

from suites.support.mutation.forks import SLOWEST
from suites.support.mutation.groups import ROOT, Group
from suites.support.mutation.mutants import Mutant


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
        command = self._pytest("-x", *cases)
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self._environment(), capture_output=True, timeout=limit_s
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def noticed_in_forks(self, chosen: Sequence[Planted], workers: int, deadline: float) -> Iterator[int]:
        """Places of those that the cases notice when only the code of a function is exchanged (``forks.py``)."""
        file = self.folder / "planted.json"
        mutants = [
            (one.module.removeprefix("impl/").removesuffix(".py").replace("/", "."), one.mutant.source)
            for one in chosen
        ]
        until = min(deadline, sys.float_info.max)
        file.write_text(json.dumps({"mutants": mutants, "workers": workers, "until": until}), encoding="utf-8")
        reader, writer = os.pipe()
        asked = ["-p", "suites.support.mutation.forks", f"--planted={file}", f"--planted-to={writer}"]
        command = self._pytest(*asked, *chosen[0].group.cases)
        with (
            tempfile.TemporaryFile() as said,
            subprocess.Popen(
                command, cwd=self.folder, env=self._environment(), pass_fds=[writer], stdout=said, stderr=said
            ) as process,
        ):
            os.close(writer)
            with os.fdopen(reader) as results:
                for place, lives in map(str.split, results):
                    if lives == "0":
                        yield int(place)
            if process.wait() != 0:
                said.seek(0)
                raise SystemExit(f"{chosen[0].group.name}: {said.read().decode()[-2000:]}")

    def _pytest(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]

    def _environment(self) -> dict[str, str]:
        paths = [str(self.folder / "impl"), str(self.folder), os.environ.get("PYTHONPATH", "")]
        return {
            **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
            "PYTHONPATH": os.pathsep.join(paths),
            "XDG_CACHE_HOME": str(self.folder / ".cache"),
        }

    def survives(self, planted: Planted, limit_s: float) -> bool:
        """Whether the cases pass with the mutant."""
        file = self.folder / planted.module
        original = file.read_text(encoding="utf-8")
        _write(file, planted.mutant.source)
        try:
            return self.passes(planted.group.cases, limit_s)
        finally:
            _write(file, original)


def _write(file: Path, source: str) -> None:
    """Write a module, and remove what Python kept of the one before: it tells them by size and second alone."""
    for compiled in Path(cache_from_source(str(file))).parent.glob(f"{file.stem}.*.pyc"):
        compiled.unlink()
    file.write_text(source, encoding="utf-8")


class Log:
    """What became of each mutant, a line of JSON each: a pass that was ended, or divided, goes on from it.

    Parameters
    ----------
    file : Path or None
        Lines are appended to it; without one, nothing is kept.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.is_file() else []
        self._noticed: set[tuple[str, str, str]] = set()
        self._lived: dict[str, set[tuple[str, str]]] = {}
        for row in map(json.loads, lines):
            self._count(row)

    def add(self, planted: Planted, lives: bool) -> None:
        """Write down what became of a mutant."""
        row = {
            "group": planted.group.name,
            "module": planted.module,
            "source": _digest(planted.module),
            "mutant": planted.mutant.name,
            "lives": lives,
        }
        self._count(row)
        if self._file is not None:
            with self._file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")

    def has_noticed(self, planted: Planted) -> bool:
        """Whether the cases noticed this mutant of the module as it is today; cases only ever notice more."""
        return (planted.module, _digest(planted.module), planted.mutant.name) in self._noticed

    def lived(self, group: Group) -> int:
        """How many mutants of a group lived when they were tried first, or later."""
        return len(self._lived.get(group.name, ()))

    def _count(self, row: dict[str, str]) -> None:
        if row["lives"]:
            self._lived.setdefault(row["group"], set()).add((row["module"], row["mutant"]))
        else:
            self._noticed.add((row["module"], row["source"], row["mutant"]))


def _digest(module: str) -> str:
    return hashlib.sha256((ROOT / module).read_bytes()).hexdigest()[:16]


def tried(group: Group, chosen: Sequence[Planted], workers: int, deadline: float) -> Iterator[tuple[Planted, bool]]:
    """Each chosen mutant with whether it lives; those whose turn comes after ``deadline`` are left out.

    First they are tried in forks, which takes a fraction of the time. What lives there, or cannot be planted so, is
    written into a copy of the checkout and tried in a process that imports it.
    """
    if not chosen:
        return
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        first = Copy(Path(folder) / "0")
        left = dict(enumerate(chosen))
        for place in first.noticed_in_forks(chosen, workers, deadline):
            yield left.pop(place), False
        if not left or time.monotonic() >= deadline:
            return
        began = time.monotonic()
        if not first.passes(group.cases, 3600.0):
            raise SystemExit(f"{group.name}: the cases fail without a mutant; mend them first")
        limit_s = SLOWEST * (time.monotonic() - began) + 30
        copies.put(first)
        for number in range(1, workers):
            copies.put(Copy(Path(folder) / str(number)))

        def try_one(planted: Planted) -> bool | None:
            copy = copies.get()
            try:
                return copy.survives(planted, limit_s) if time.monotonic() < deadline else None
            finally:
                copies.put(copy)

        with ThreadPoolExecutor(workers) as pool:
            for planted, lives in zip(left.values(), pool.map(try_one, left.values()), strict=True):
                if lives is not None:
                    yield planted, lives
