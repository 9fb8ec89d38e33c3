"""What the command says where its launcher and its MPI do not belong together, or a rank fails (MG-5)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from suites.support.shards import mpi_door

pytestmark = pytest.mark.requirement("MG-5", "ST-7")

GENOME = Path(__file__).parents[1] / "data" / "golden" / "genomes" / "barebones_genome.json"


@pytest.mark.skipif(bool(mpi_door.why_not()), reason=mpi_door.why_not() or "MPI is here")
def test_a_launcher_of_another_mpi_is_told(tmp_path: Path) -> None:
    """A launcher that started two processes which the library does not see as two ranks: each would run it all."""
    if mpi_door.is_open_mpi():
        pytest.skip("the other launcher is played by Open MPI's variables, and the library here is Open MPI itself")
    strange = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2"}
    command = [sys.executable, "-m", "burstproof", "run", str(GENOME), "--bursts", "2"]
    environment = {**mpi_door.environment(), **strange}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3
    assert "the launcher and the MPI library do not belong together (got '2 ranks started, 1 seen')" in done.stderr


@pytest.mark.skipif(bool(mpi_door.why_not()), reason=mpi_door.why_not() or "MPI is here")
def test_ranks_that_no_launcher_started_are_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "burstproof", "run", str(GENOME), "--bursts", "2", "--mpi", "on"]
    done = subprocess.run(
        command, cwd=tmp_path, env=mpi_door.environment(), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 3
    assert "no launcher started several ranks (got '1 rank'). Start with mpiexec -n RANKS" in done.stderr


def _ended(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A Python program that stands guard, run to its end."""
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=mpi_door.environment(), capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_guard_names_its_rank_and_passes_codes_on() -> None:
    """The child's code becomes the guard's; a child that a signal ends is named with the advice."""
    program = (
        "import os, signal, sys\n"
        "from burstproof.engine.cluster.launch import Place, stand_guard\n"
        "stand_guard(Place(2, 5), lambda: 'Try again')\n"
        "os.kill(os.getpid(), signal.SIGKILL) if sys.argv[1] == 'killed' else sys.exit(int(sys.argv[1]))\n"
    )
    assert [_ended(program, code).returncode for code in ("0", "7")] == [0, 7]
    killed = _ended(program, "killed")
    assert killed.returncode == 3
    assert killed.stderr == f"burstproof: error: rank 2 of 5 was ended by {signal.SIGKILL.name}. Try again\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot fork here")
def test_a_guard_that_is_asked_to_end_after_its_child_has_ended_says_so() -> None:
    """A launcher that signals all processes reaches the child first; the guard gets its SIGTERM while it waits."""
    program = (
        "import os, signal\n"
        "from burstproof.engine.cluster import launch\n"
        "launch.time.sleep = lambda seconds: os.kill(os.getpid(), signal.SIGTERM)\n"
        "launch.stand_guard(launch.Place(0, 2), lambda: 'Try again')\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    ended = _ended(program)
    assert ended.stderr == "burstproof: the run was ended by SIGTERM. Try again\n"
    assert ended.returncode == 128 + signal.SIGTERM
