"""Command line and environment of the pytest process that runs the suites of a stage."""

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
"""Most processes of a stage by default; each may hold a context on every GPU."""


def pytest_command(
    stage: Stage, root: Path, files: StageFiles, *, gpu_free: bool, plan: str = THOROUGH, workers: int = MOST_WORKERS
) -> list[str]:
    """Return the command line that runs a stage's suites.

    pytest takes options from it and from the checkout's ``pyproject.toml`` only, loads only plugins that the suites
    need, and only conftest files of the checkout.
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
    """The plugins of other packages that the suites need and that are installed."""
    installed = {entry.name for entry in entry_points(group="pytest11")}
    return [name for name in PLUGINS if name in installed]


def _spread(workers: int) -> list[str]:
    """Options with which cases run in several processes; the cases of one ``xdist_group`` stay in one process."""
    if workers < 2 or find_spec("xdist") is None:
        return []
    return ["-n", str(workers), "--dist", "loadgroup"]


def suite_environment(root: Path, compiled: Path) -> dict[str, str]:
    """The environment variables of the process: those of this one, with both source roots first on the path.

    The variables of pytest are removed: they add options and plugins, or make the process a worker. So are those of
    Python that change what runs: ``PYTHONOPTIMIZE`` removes assertions, ``PYTHONWARNINGS`` raises errors. Bytecode goes
    to ``compiled``, since files beside the sources may be of other code. ``PYTHONFAULTHANDLER`` leaves the stack of a
    process that a signal kills in the log, even while the interpreter ends.
    """
    paths = [str(root / "impl"), str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_") and name not in IGNORED}
    own = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONPYCACHEPREFIX": str(compiled.resolve())}
    return {**kept, "PYTHONFAULTHANDLER": "1", **own}
