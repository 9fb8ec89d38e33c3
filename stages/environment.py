"""The software that a stage runs with, as the record names it."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path

from reports.values.record import Environment

_CHANGES_NAMED = 10
_GIT_S = 30.0
_LOOK = ("core.fsmonitor=false", "core.untrackedCache=false", "core.trustctime=true", "core.checkStat=default")
"""Settings of git: it looks at every file, whatever those of the checkout save it."""
_MODULES = (".py", ".pyc", ".so", ".pyd")
_PREFIXES = ("LD_PRELOAD", "CUDA_", "NUMBA_", "OMP_", "CUPY_", "NCCL_", "NVIDIA_VISIBLE_DEVICES")
IGNORED = (
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"),
    *("PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONIOENCODING", "PYTHONBREAKPOINT", "PYTHONVERBOSE"),
    *("PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONMALLOC", "PYTHONDUMPREFS", "PYTHONPROFILEIMPORTTIME"),
)
"""Variables that would narrow, alter or slow down the suites; their process does not get them."""


def take_environment(root: Path) -> Environment:
    """Describe this interpreter, its packages and the checkout at ``root``.

    Untracked files that git does not ignore are changes, too: a ``conftest.py`` can drop cases. So are modules among
    the sources that git ignores, files whose changes git was told not to report, another folder that git was told to
    look at, and a ``sitecustomize`` on ``PYTHONPATH``, which can alter pytest itself. Where git does not say what
    changed, nobody knows: that is a change.
    """
    commit = _git(root, "rev-parse", "HEAD")
    changed = _injected()
    if commit:
        changed = [*_asked(root, "status", "--porcelain", "--untracked-files=normal"), *_hidden(root), *changed]
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_packages(),
        git_commit=commit or "",
        git_dirty=bool(changed),
        git_changes=tuple(changed[:_CHANGES_NAMED]),
        variables=_variables(),
    )


def _hidden(root: Path) -> list[str]:
    """What ``git status`` keeps to itself: ``!!`` ignored modules where tracked ones lie, ``h`` and ``S`` as git."""
    listed = _asked(root, "ls-tree", "-d", "--name-only", "HEAD")
    folders = [name for name in listed if name[0] not in ".?"]
    top = (":(top,glob)*", ":(top,glob)*/__init__.*")
    ignored = _asked(root, "ls-files", "--others", "--ignored", "--exclude-standard", "--", *top, *folders)
    modules = [f"!! {name}" for name in ignored if name.endswith(_MODULES) and "__pycache__" not in name]
    marked = [line for line in _asked(root, "ls-files", "-v") if line[0].islower() or line[0] in "S?"]
    silent = [line for line in (*listed, *ignored) if line.startswith("??")]
    looked_at = Path(*_asked(root, "rev-parse", "--show-toplevel")).resolve()
    elsewhere = [] if looked_at in (root.resolve(), *root.resolve().parents) else [f"!! git looks at {looked_at}"]
    return [*silent, *modules, *marked, *elsewhere]


def _injected() -> list[str]:
    """Modules that every process of the suites imports at its start, from outside of Python's own folders.

    A link in one of these belongs to them: Debian's leads to ``/etc``.
    """
    own = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    found = [find_spec(name) for name in ("sitecustomize", "usercustomize")]
    files = [Path(spec.origin) for spec in found if spec is not None and spec.origin]
    return [f"!! {file}" for file in files if not own.intersection((*file.parents, *file.resolve().parents))]


def _variables() -> dict[str, str]:
    """The variables that bear on results, and those that would but are kept from the suites."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    ignored = {name: f"{os.environ[name]} (ignored)" for name in IGNORED if name in os.environ}
    return dict(sorted((kept | ignored).items()))


@cache
def _packages() -> dict[str, str]:
    named = {str(one.metadata["Name"]): one.version for one in distributions() if one.metadata["Name"]}
    return dict(sorted(named.items(), key=lambda item: item[0].lower()))


def _asked(root: Path, *args: str) -> list[str]:
    """The lines that git says of a checkout, or one that it said nothing."""
    said = _git(root, *args)
    return [f"?? git {args[0]} gave no answer"] if said is None else said.splitlines()


def _git(root: Path, *args: str) -> str | None:
    """Return what git says of ``root``, whatever repository its variables name; ``None`` where it has no answer."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        said = subprocess.run(
            ["git", *(word for setting in _LOOK for word in ("-c", setting)), *args],
            cwd=root,
            env=own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="backslashreplace",
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.rstrip() if said.returncode == 0 else None
