"""Planting faults: copies of the package with one edit each, and the checks that run in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from suites.support.parity.planted.fault import PROBE, SIMULATED_SHARDS, SIMULATOR, Fault, Outcome
from suites.support.parity.planted.names import FAN

CHECKOUT = Path(__file__).parents[4]
PACKAGE = CHECKOUT / "impl" / "burstproof"
TIME_LIMIT_S = 600.0
Result = TypeVar("Result")


class Workshop:
    """A copy of the package in which faults are planted one at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(PACKAGE, folder / "burstproof", ignore=shutil.ignore_patterns("__pycache__"))
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        kept = [path for path in others if Path(path).resolve() != PACKAGE.parent.resolve()]
        paths = os.pathsep.join([str(folder), str(CHECKOUT), *kept])
        self._environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / "kernels"), "PYTHONPATH": paths}
        self._runs = 0

    def healthy(self, backend: str, checks: Iterable[str]) -> dict[str, list[str]]:
        """Problems that the checks find without a fault."""
        found, error = self._run(backend, checks)
        return {"the process": [error]} if error else {name: problems for name, problems in found.items() if problems}

    def try_out(self, backend: str, fault: Fault) -> Outcome:
        """Plant ``fault``, run what has to catch it, take it back.

        Raises
        ------
        ValueError
            The text to be edited does not stand in the file exactly once.
        """
        path = self._folder / "burstproof" / fault.file
        text = path.read_text("utf-8")
        if text.count(fault.old) != 1:
            raise ValueError(f"{fault.name}: {fault.file} holds the text {text.count(fault.old)} times: {fault.old!r}")
        try:
            self._write(path, text.replace(fault.old, fault.new))
            probed = fault.caught_by == (PROBE,)
            return Outcome(fault, *self._run(backend, [FAN] if probed else fault.caught_by))
        finally:
            self._write(path, text)

    def _write(self, path: Path, text: str) -> None:
        """Python may take a compiled file for that of a source of the same second and size."""
        path.write_text(text, "utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def _run(self, backend: str, checks: Iterable[str]) -> tuple[dict[str, list[str]], str]:
        self._runs += 1
        own = {"XDG_CACHE_HOME": str(self._folder / f"images {self._runs}")}  # no image of another run is taken
        if backend in (SIMULATOR, SIMULATED_SHARDS):
            own["NUMBA_ENABLE_CUDASIM"] = "1"
        try:
            done = subprocess.run(
                [sys.executable, "-m", "suites.support.parity.planted_check", backend, *checks],
                cwd=CHECKOUT,
                env=self._environment | own,
                capture_output=True,
                text=True,
                check=False,
                timeout=TIME_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            return {}, f"no answer within {TIME_LIMIT_S:.0f} s"
        if done.returncode:
            return {}, "\n".join(done.stderr.splitlines()[-3:])
        answer = json.loads(done.stdout.splitlines()[-1])
        if not Path(answer["package"]).is_relative_to(self._folder):
            return {}, f"the package that ran is {answer['package']}"
        return answer["problems"], ""


def plant(backend: str, faults: Iterable[Fault], jobs: int = 1) -> tuple[dict[str, list[str]], list[Outcome]]:
    """What is wrong without a fault (it should be empty), and what became of each fault; ``jobs`` run at once."""
    chosen = list(faults)
    free: SimpleQueue[Workshop] = SimpleQueue()

    def borrowed(work: Callable[[Workshop], Result]) -> Result:
        workshop = free.get()
        try:
            return work(workshop)
        finally:
            free.put(workshop)

    with tempfile.TemporaryDirectory(prefix="burstproof-planted-") as folder, ThreadPoolExecutor(jobs) as pool:
        for job in range(jobs):
            free.put(Workshop(Path(folder) / str(job)))
        names = sorted({name for fault in chosen for name in fault.caught_by} - {PROBE})
        healthy = pool.submit(borrowed, lambda workshop: workshop.healthy(backend, names))
        outcomes = pool.map(lambda fault: borrowed(lambda workshop: workshop.try_out(backend, fault)), chosen)
        return healthy.result(), list(outcomes)
