"""The command line and the environment that pytest runs a stage's suites with."""

from __future__ import annotations

import os
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

from reports.values.record import THOROUGH
from stages.environment import IGNORED, PLUGINS
from stages.plan import Stage
from stages.run_folder import StageFiles

MOST_WORKERS = 12
"""Processes of a stage whose cases run side by side, unless told; each may hold a context on every GPU."""


def pytest_command(
    stage: Stage, root: Path, files: StageFiles, *, gpu_free: bool, plan: str = THOROUGH, workers: int = MOST_WORKERS
) -> list[str]:
    """Return the command line that runs a stage's suites.

    Options come from it and from the checkout's ``pyproject.toml`` alone, plugins are those that the suites need, and
    conftest files those of the checkout.
    """
    command = [sys.executable, "-m", "pytest", *stage.suites, "-p", "no:cacheprovider", "--color=no"]
    command += [f"--config-file={root / 'pyproject.toml'}", f"--rootdir={root}", f"--confcutdir={root}"]
    command += ["--disable-plugin-autoload", *(part for name in _plugins() for part in ("-p", name))]
    command += ["--continue-on-collection-errors", f"--bp-results={files.results}", f"--bp-plan={plan}"]
    command += [f"--bp-collected={files.collected}", f"--bp-case-limit={stage.case_limit_s:g}"]
    command += [f"--junitxml={files.junit}", f"--benchmark-json={files.benchmark}"]
    command += ["--gpu-free"] if gpu_free else []
    return [*command, *_spread(min(os.cpu_count() or 1, workers))] if stage.side_by_side else command


def _plugins() -> list[str]:
    """Return the plugins of other packages that the suites need, of those that are installed."""
    installed = {entry.name for entry in entry_points(group="pytest11")}
    return [name for name in PLUGINS if name in installed]


def _spread(workers: int) -> list[str]:
    """Return the options that run cases in several processes; those marked with one ``xdist_group`` stay in one."""
    if workers < 2 or find_spec("xdist") is None:
        return []
    return ["-n", str(workers), "--dist", "loadgroup"]


def suite_environment(root: Path, compiled: Path) -> dict[str, str]:
    """Return the environment of the process: this one, with both source roots first on the path.

    Without pytest's variables, which add options and plugins or make the process somebody's worker, and without those
    of the interpreter that alter what runs: ``PYTHONOPTIMIZE`` removes assertions, ``PYTHONWARNINGS`` raises errors.
    What Python compiles lies in ``compiled``, since files that lie beside the sources may be of other code. A process
    that a signal kills leaves its stack in the log, at the end of the interpreter too.
    """
    paths = [str(root / "impl"), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name not in IGNORED}
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": str(compiled.resolve())}
    return {**kept, "PYTHONFAULTHANDLER": "1", **own}
