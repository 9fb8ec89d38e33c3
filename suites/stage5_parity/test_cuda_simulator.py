"""The CUDA engine's own kernels in the CUDA simulator, in a process of their own: their logic, without a GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hardware.gates import evaluate_gates
from hardware.inventory import take_inventory
from suites.support.parity.simulator_check import simulated_checks
from suites.support.plans import asked, thinned

pytestmark = [pytest.mark.requirement("BE-4", "BE-6", "BE-17", "ST-5"), pytest.mark.xdist_group("simulator")]

ROOT = Path(__file__).parents[2]
TIME_LIMIT_S = 2400
NAMES = [name for name, _ in simulated_checks()]
LONG = ("synapses in host memory", "train", "lists too long to stage", "late bursts", "stimulus beyond capacity")


def _quick(place: int, name: str) -> bool:
    """Every case worked out by hand, a few of the mixes, and the checks of a fraction of a second."""
    return place % 6 == 0 if name.startswith("mix: ") else name not in LONG


@pytest.fixture(scope="module")
def problems(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """Problems of each check, from one process with the simulator switched on."""
    if evaluate_gates(take_inventory())["gpu"].is_open:
        pytest.skip(
            "a GPU is here: the same kernels run on it, the simulator stands in for it only where there is none"
        )
    paths = os.pathsep.join([str(ROOT / "impl"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "suites.support.parity.simulator_check", *asked(request, "name")],
        cwd=ROOT,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", thinned(NAMES, "up to two seconds each in the simulator", keep=_quick))
def test_simulated_engine(name: str, problems: dict[str, list[str]]) -> None:
    """The simulated engine does what the reference does."""
    assert problems[name] == []
