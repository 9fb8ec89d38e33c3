"""Starting ranks on this machine with ``mpiexec``, and finding the process of one of them."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[3]

_LAUNCHERS_OWN = ("PMI_", "OMPI_", "SLURM_", "HYDRA_")


def launcher() -> str | None:
    """The ``mpiexec`` of this interpreter's environment, else of the path; ``None`` without it or mpi4py."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    return shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def is_open_mpi() -> bool:
    """Whether the launcher, and so the library, is Open MPI."""
    found = launcher()
    if found is None:
        return False
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    return "Open MPI" in done.stdout or "OpenRTE" in done.stdout


def why_not() -> str:
    """Why no ranks can be started here; empty if they can."""
    if not sys.platform.startswith("linux"):
        return "ranks are started and found by the ways of Linux"
    return "" if launcher() else "mpi4py or mpiexec is not installed: pip install '.[cluster]'"


def environment() -> dict[str, str]:
    """The environment of ranks: this checkout importable before all else, nothing of a launcher that runs the tests.

    How Open MPI is set up on the machine (``OMPI_MCA_...``) stays.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("OMPI_MCA_") or not name.startswith(_LAUNCHERS_OWN)
    }
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    paths = [str(ROOT / "impl"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**kept, **root, "PYTHONPATH": os.pathsep.join(paths)}


def undecorated(text: str) -> str:
    """What ranks wrote, without the colours that a launcher may set around it (Open MPI 5 does, even into a pipe).

    Their escape is the byte, or as on one machine the four characters ``\\x1b`` that stand for it.
    """
    return re.sub(r"(?:\x1b|\\x1b)\[[0-9;]*m", "", text)


def start(ranks: int, arguments: Sequence[object], folder: Path) -> subprocess.Popen[str]:
    """``python -m arguments`` on so many ranks."""
    found = launcher()
    assert found is not None
    command = [found, "-n", str(ranks), sys.executable, "-m", *(str(argument) for argument in arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(), stdout=pipe, stderr=pipe, text=True)


def process_of(rank: int, mark: str) -> int:
    """The process in which ``rank`` runs, of those with ``mark`` in their command line: the child of its guard."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
            line = (folder / "cmdline").read_bytes()
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        named = any(f"{name}={rank}".encode() in variables for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK"))
        if named and mark.encode() in line:
            parents[int(folder.name)] = parent
    (child,) = [process for process, parent in parents.items() if parent in parents]
    return child
