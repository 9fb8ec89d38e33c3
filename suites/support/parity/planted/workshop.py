"""Planting faults: copies of the package, and processes that run the checks in them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from suites.support.parity.planted.fault import IN_FORKS, PROBE, SIMULATED_SHARDS, SIMULATOR, Fault, Outcome
from suites.support.parity.planted.forks import TIME_LIMIT_S, Answer, Problems, planted

CHECKOUT = Path(__file__).parents[4]
PACKAGE = CHECKOUT / "impl" / "burstproof"


def _environment(backend: str, folder: Path) -> dict[str, str]:
    """That of a process which imports the copy in ``folder``, and takes no machine code from elsewhere."""
    others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    kept = [path for path in others if Path(path).resolve() != PACKAGE.parent.resolve()]
    paths = os.pathsep.join([str(folder), str(CHECKOUT), *kept])
    own = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder / "kernels"), "XDG_CACHE_HOME": str(folder / "cache")}
    if backend in (SIMULATOR, SIMULATED_SHARDS):
        own["NUMBA_ENABLE_CUDASIM"] = "1"
    return {**os.environ, **own}


class Workshop:
    """A copy of the package in ``folder``, in which faults are planted one at a time."""

    def __init__(self, folder: Path, backend: str) -> None:
        self._folder, self._backend = folder, backend
        without = shutil.ignore_patterns("__pycache__")
        self._package = shutil.copytree(PACKAGE, folder / "burstproof", ignore=without)

    def try_out(self, checks: Sequence[str], faults: Sequence[Fault]) -> tuple[Problems, list[Outcome]]:
        """What ``checks`` find without a fault, and what becomes of each fault."""
        if self._backend in IN_FORKS:
            healthy, found = self._ask(checks, faults)
        else:
            healthy, found = self._ask(checks)[0], [self._try_in_process(fault) for fault in faults]
        problems, error = healthy
        wrong = {name: told for name, told in problems.items() if told}
        outcomes = [Outcome(fault, *answer) for fault, answer in zip(faults, found, strict=True)]
        return {"the process": [error]} if error else wrong, outcomes

    def _try_in_process(self, fault: Fault) -> Answer:
        with planted(self._package, fault):
            return self._ask(fault.checks)[0]

    def _ask(self, checks: Sequence[str], faults: Sequence[Fault] = ()) -> tuple[Answer, list[Answer]]:
        """What a process of ``planted_check`` answers without a fault, and under each that it plants."""
        asked = {"package": str(self._package), "checks": checks, "faults": [asdict(fault) for fault in faults]}
        error = ""
        try:
            done = subprocess.run(
                [sys.executable, "-m", "suites.support.parity.planted_check", self._backend],
                input=json.dumps(asked),
                cwd=CHECKOUT,
                env=_environment(self._backend, self._folder),
                capture_output=True,
                text=True,
                check=False,
                timeout=TIME_LIMIT_S * (1 + len(faults)),
            )
        except subprocess.TimeoutExpired as late:
            error = f"no answer within {late.timeout:.0f} s"
        else:
            error = "\n".join(done.stderr.splitlines()[-3:]) if done.returncode else ""
        if error:
            return ({}, error), [({}, error) for _ in faults]
        answer = json.loads(done.stdout.splitlines()[-1])
        return answer["healthy"], answer["found"]


def plant(backend: str, faults: Iterable[Fault], jobs: int = 1) -> tuple[Problems, list[Outcome]]:
    """What is wrong without a fault (it should be empty), and what became of each fault; ``jobs`` run at once."""
    chosen = list(faults)
    names = sorted({name for fault in chosen for name in fault.caught_by} - {PROBE})
    with tempfile.TemporaryDirectory(prefix="burstproof-planted-") as folder, ThreadPoolExecutor(jobs) as pool:
        running = [
            pool.submit(Workshop(Path(folder) / str(job), backend).try_out, [] if job else names, chosen[job::jobs])
            for job in range(jobs)
        ]
        (healthy, outcomes), *others = [job.result() for job in running]
        return healthy, [*outcomes, *(outcome for _, more in others for outcome in more)]
