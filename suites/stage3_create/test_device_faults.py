"""What goes wrong on a device ends in an error of the package, and the next run works.

A case takes all memory of the device: these belong to a stage whose cases do not run side by side.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.requirement("BE-15", "ST-3"), pytest.mark.gate("gpu")]

ROOT = Path(__file__).parents[2]
TIME_LIMIT_S = 300
KINDS = {
    "kernel": ["running", "DeviceFaultError"],
    "loop": ["running", "DeviceFaultError"],
    "memory": ["running", "OutOfMemoryError", "agrees"],
}


def _start(kind: str) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(ROOT / "impl"), str(ROOT)])
    return subprocess.Popen(
        [sys.executable, "-m", "suites.support.parity.device_fault_check", kind],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        text=True,
    )


def _lines(kind: str) -> list[str]:
    output, _ = _start(kind).communicate(timeout=TIME_LIMIT_S)
    return output.split("\n")[:-1]


@pytest.mark.parametrize("kind", KINDS)
def test_fault_is_named_and_the_next_run_works(kind: str) -> None:
    """A kernel that faults, or memory that runs out in the middle: the package's error; then a run that agrees."""
    assert _lines(kind) == KINDS[kind]
    assert _lines("none") == ["agrees"]


@pytest.mark.parametrize("kind", ["killed", "looped"])
def test_killed_process_leaves_the_device_usable(kind: str) -> None:
    """A process that is killed while its engine runs, or in a closed loop: the next run agrees."""
    process = _start(kind)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1.0)
    process.kill()
    process.communicate(timeout=TIME_LIMIT_S)
    assert _lines("none") == ["agrees"]
