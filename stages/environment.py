"""The software environment of a stage: interpreter, packages, variables, and changes in the checkout."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.machinery import PathFinder
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules

from reports.git import ask_git
from reports.values.record import Environment

_HERE = Path(__file__).resolve().parents[1]
_CHANGES_NAMED = 10
_GIT_S = 30.0
_MODULES = (".py", ".pyc", ".so", ".pyd")
_PREFIXES = ("BURSTPROOF_", "PYTHON", "LD_", "CUDA_", "NUMBA_", "OMP_", "CUPY_", "NCCL_", "NVIDIA_VISIBLE_DEVICES")
IGNORED = (
    *("PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"),
    *("PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONIOENCODING", "PYTHONBREAKPOINT", "PYTHONVERBOSE"),
    *("PYTHONDEVMODE", "PYTHONTRACEMALLOC", "PYTHONMALLOC", "PYTHONDUMPREFS", "PYTHONPROFILEIMPORTTIME"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
)
"""Variables that would narrow, alter or slow down the suites, and are not passed on to them."""
_PYTEST = "pytest11"
_HARMLESS = ("console_scripts", "gui_scripts", _PYTEST)
"""Groups of entry points that are not loaded automatically; of pytest's plugins the suites load ``PLUGINS`` only."""

PLUGINS = ("xdist", "benchmark")
"""Entry points of the pytest plugins that the suites need."""


def take_environment(root: Path) -> Environment:
    """Describe this interpreter, its packages and the checkout at ``root``.

    These count as changes of the checkout:

    - a tracked file that differs from the commit in more than line ends, whatever git was told to assume of it;
    - an untracked file that git does not ignore, since a ``conftest.py`` can drop cases;
    - an ignored module beside the sources, also in a link or in a repository of its own;
    - a working tree elsewhere, if git was told to use one;
    - on ``PYTHONPATH`` a ``sitecustomize``, which can alter pytest itself, a plugin of pytest, and a module that
      shadows one of Python, of its packages or of the project;
    - git gives no answer, so that nobody knows what changed.
    """
    commit = _git(root, "rev-parse", "HEAD")
    changed = [*_injected(), *_standing_in(root)]
    if commit:
        reported = _asked(root, "status", "--porcelain", "--untracked-files=normal")
        changed = [*dict.fromkeys((*reported, *_altered(root))), *_hidden(root), *changed]
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        packages=_packages(),
        git_commit=commit or "",
        git_dirty=bool(changed),
        git_changes=tuple(changed[:_CHANGES_NAMED]),
        variables=_variables(),
    )


def written_files(root: Path) -> Mapping[str, tuple[int, ...]]:
    """Inode, size and times of each tracked file, which change even if an edit is undone."""
    names = (_git(root, "ls-files", "-z") or "").split("\0")
    found = {name: (root / name).lstat() for name in names if name and os.path.lexists(root / name)}
    return {name: (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for name, one in found.items()}


def environment_since(root: Path, before: Environment, written: Mapping[str, tuple[int, ...]]) -> Environment:
    """``before`` with all changes of the checkout since :func:`written_files` returned ``written``."""
    now, files = take_environment(root), written_files(root)
    changed = [*before.git_changes, *now.git_changes]
    if now.git_commit != before.git_commit:
        changed.append(f"commit {now.git_commit[:12] or 'none'} since the stage began")
    touched = sorted(name for name in {*written, *files} if written.get(name) != files.get(name))
    changed += [f"{name} written since the stage began" for name in touched]
    return replace(before, git_dirty=bool(changed), git_changes=tuple(dict.fromkeys(changed))[:_CHANGES_NAMED])


def _altered(root: Path) -> list[str]:
    """Tracked files that differ from the commit, as ``git status`` prints them."""
    said = _git(root, "ls-tree", "-r", "-z", "HEAD")
    if said is None:
        return [_no_answer("ls-tree")]
    found = []
    for about, _, name in (entry.partition("\t") for entry in said.split("\0") if entry):
        _, kind, digest = about.split()
        if kind == "blob" and not os.path.lexists(root / name):
            found.append(f" D {name}")
        elif kind == "blob" and not _is_blob(root / name, digest):
            found.append(f" M {name}")
    return found


def _is_blob(path: Path, digest: str) -> bool:
    """Whether a file or link has the content of the blob ``digest``; line ends may be those of the system."""
    if path.is_symlink():
        content = os.fsencode(path.readlink())
    elif path.is_file():
        content = path.read_bytes()
    else:
        return False
    kind = "sha1" if len(digest) == 40 else "sha256"
    texts = (content, *([content.replace(b"\r\n", b"\n")] if b"\r\n" in content else []))
    return any(hashlib.new(kind, b"blob %d\0%s" % (len(one), one)).hexdigest() == digest for one in texts)


def _hidden(root: Path) -> list[str]:
    """What ``git status`` does not report: ignored modules beside tracked ones, and a working tree elsewhere."""
    listed = _asked(root, "ls-tree", "-d", "--name-only", "HEAD")
    folders = [name for name in listed if name[0] not in ".?"]
    own = (":(glob)*", ":(glob)*/__init__.*")
    ignored = _asked(root, "ls-files", "--others", "--ignored", "--exclude-standard", "--", *own, *folders)
    modules = [f"!! {name}" for name in ignored if _holds_modules(root, name)]
    silent = [line for line in (*listed, *ignored) if line.startswith("??")]
    looked_at = Path(*_asked(root, "rev-parse", "--show-toplevel")).resolve()
    elsewhere = [] if looked_at in (root.resolve(), *root.resolve().parents) else [f"!! git looks at {looked_at}"]
    return [*silent, *modules, *elsewhere]


def _holds_modules(root: Path, name: str) -> bool:
    """Whether an ignored path is a module, or a folder with modules (a link or a repository, which git does not enter).

    Of a folder in the top folder only a package counts: nothing else can be imported from it.
    """
    path = root / name
    if not path.is_dir():
        return name.endswith(_MODULES) and "__pycache__" not in name
    files = path.glob("__init__.*") if path.parent == root else path.rglob("*")
    return any(file.suffix in _MODULES for file in files)


def _injected() -> list[str]:
    """Modules outside Python's own folders that every Python process imports at its start."""
    found = [find_spec(name) for name in ("sitecustomize", "usercustomize")]
    files = [Path(spec.origin) for spec in found if spec is not None and spec.origin]
    return [f"!! {file}" for file in files if not _is_pythons(file)]


def _standing_in(root: Path) -> list[str]:
    """Modules on ``PYTHONPATH`` and in the current folder that shadow one of Python, of a package or of the project.

    Entry points there count, too, since importing numba loads some; not those of commands, nor of pytest plugins that
    the suites do not load. A relative entry of ``PYTHONPATH`` is resolved against the folders of runner and suites.
    """
    own = {folder.resolve() for checkout in (root, _HERE) for folder in (checkout, checkout / "impl")}
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    folders = {Path(base, name).resolve() for name in ("", *named) for base in (Path.cwd(), root)} - own
    foreign = sorted(str(folder) for folder in folders if not _is_pythons(folder))
    others = [*map(str, own), *(entry for entry in sys.path if str(Path(entry).resolve()) not in foreign)]
    found = [Path(folder, module.name) for folder in foreign for module in iter_modules([folder])]
    modules = [f"!! {module}" for module in found if _is_importable(module.name, others)]
    brought = [
        f"!! {folder}: {entry.group} {entry.name}"
        for folder in foreign
        for one in distributions(path=[folder])
        for entry in one.entry_points
        if entry.group not in _HARMLESS or (entry.group == _PYTEST and entry.name in PLUGINS)
    ]
    return [*modules, *brought]


def _is_importable(name: str, folders: list[str]) -> bool:
    spec = PathFinder.find_spec(name, folders)
    return name in sys.stdlib_module_names or (spec is not None and spec.loader is not None)


def _is_pythons(path: Path) -> bool:
    """Whether a path is below Python's own folders, itself or its target: links of Debian's Python lead to ``/etc``."""
    own = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
    return bool(own.intersection((*path.parents, *path.resolve().parents)))


def _variables() -> dict[str, str]:
    """The environment variables that can affect results, and the ``IGNORED`` ones, marked as such."""
    kept = {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
    ignored = {name: f"{os.environ[name]} (ignored)" for name in IGNORED if name in os.environ}
    return dict(sorted((kept | ignored).items()))


@cache
def _packages() -> dict[str, str]:
    named = {str(one.metadata["Name"]): one.version for one in distributions() if one.metadata["Name"]}
    return dict(sorted(named.items(), key=lambda item: item[0].lower()))


def _asked(root: Path, *args: str) -> list[str]:
    """The lines that git prints, or one line that says that it gave no answer."""
    said = _git(root, *args)
    return [_no_answer(args[0])] if said is None else said.splitlines()


def _no_answer(asked: str) -> str:
    return f"?? git {asked} gave no answer"


def _git(root: Path, *args: str) -> str | None:
    """What git prints about ``root``; ``None`` if it fails or gives no answer."""
    try:
        said = ask_git(root, *args, timeout_s=_GIT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return said.stdout.decode(errors="backslashreplace").rstrip() if said.returncode == 0 else None
