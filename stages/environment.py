"""The software that a stage runs with, as the record names it."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

from reports.values.record import Environment

_CHANGES_NAMED = 10
_PREFIXES = ("CUDA_", "NUMBA_", "OMP_", "CUPY_", "NCCL_", "NVIDIA_VISIBLE_DEVICES")
IGNORED = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD", "PYTHONOPTIMIZE")
"""Variables that would narrow or alter the suites; their process does not get them."""


def take_environment(root: Path) -> Environment:
    """Describe this interpreter, its packages and the checkout at ``root``.

    Untracked files that git does not ignore are changes, too: a ``conftest.py`` can drop cases. So are Python files
    among the sources that git ignores, and files whose changes git was told not to report.
    """
    commit = _git(root, "rev-parse", "HEAD")
    changed = [*_git(root, "status", "--porcelain", "--untracked-files=normal").splitlines(), *_hidden(root)]
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_packages(),
        git_commit=commit,
        git_dirty=bool(changed),
        git_changes=tuple(changed[:_CHANGES_NAMED]),
        variables=_variables(),
    )


def _hidden(root: Path) -> list[str]:
    """What ``git status`` keeps to itself: ``!!`` ignored Python files beside tracked ones, ``h`` and ``S`` as git."""
    folders = [name for name in _git(root, "ls-tree", "-d", "--name-only", "HEAD").splitlines() if name[0] != "."]
    ignored = ("ls-files", "--others", "--ignored", "--exclude-standard", "--", "conftest.py", *folders)
    python = [f"!! {name}" for name in _git(root, *ignored).splitlines() if name.endswith(".py")]
    marked = [line for line in _git(root, "ls-files", "-v").splitlines() if line[0].islower() or line[0] == "S"]
    return [*python, *marked]


def _variables() -> dict[str, str]:
    """The variables that bear on results, and those that would but are kept from the suites."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    ignored = {name: f"{os.environ[name]} (ignored)" for name in IGNORED if name in os.environ}
    return dict(sorted((kept | ignored).items()))


@cache
def _packages() -> dict[str, str]:
    named = {str(one.metadata["Name"]): one.version for one in distributions() if one.metadata["Name"]}
    return dict(sorted(named.items(), key=lambda item: item[0].lower()))


def _git(root: Path, *args: str) -> str:
    """Return what git says, or nothing where there is no git or no checkout."""
    try:
        said = subprocess.run(["git", *args], cwd=root, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return said.stdout.rstrip() if said.returncode == 0 else ""
