"""compute-sanitizer over recordings of the real engine: no kernel reads or writes what it should not, or races."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from suites.support.parity.sanitized import RECORDINGS

pytestmark = [pytest.mark.requirement("BE-6", "ST-5"), pytest.mark.gate("gpu")]

ROOT = Path(__file__).parents[2]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86
"""Exit status that the tool is told to give when it has found something."""
TIME_LIMIT_S = 900


def _sanitize(tool: str, what: str) -> subprocess.CompletedProcess[str]:
    """Run ``what`` under a tool of compute-sanitizer."""
    command = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if command is None:
        pytest.skip("compute-sanitizer is not installed; it comes with the CUDA toolkit")
    options = [f"--tool={tool}", f"--error-exitcode={FOUND}", "--show-backtrace=no"]
    if tool == "memcheck":
        options.append("--report-api-errors=no")  # libraries ask the driver for functions that it need not have
    return subprocess.run(
        [command, *options, sys.executable, "-m", "suites.support.parity.sanitized", what],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "impl"), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIME_LIMIT_S,
    )


def _refused(done: subprocess.CompletedProcess[str]) -> bool:
    return "Device not supported" in done.stdout or "Unable to initialize" in done.stdout


@pytest.mark.parametrize("tool", TOOLS)
def test_recordings_are_clean(tool: str) -> None:
    """Replaying recordings under the tool shows nothing, and the replays agree."""
    done = _sanitize(tool, RECORDINGS)
    if _refused(done):
        pytest.skip(f"compute-sanitizer does not support this device: {done.stdout[:200]}")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "all agree" in done.stdout


@pytest.mark.not_proof
@pytest.mark.parametrize("tool", ["memcheck", "racecheck", "initcheck"])
def test_planted_fault_is_found(tool: str) -> None:
    """A kernel with the fault that the tool looks for is found: a clean replay means something."""
    done = _sanitize(tool, tool)
    if _refused(done):
        pytest.skip(f"compute-sanitizer does not support this device: {done.stdout[:200]}")
    assert done.returncode == FOUND, done.stdout[-3000:] + done.stderr[-1000:]
