"""A device that is lost in the middle of a stage ends in a verdict with the cure, and the next run passes.

No GPU is needed: the engine runs in the CUDA simulator, and the driver's errors are planted at its seam
(``suites/support/parity/failing.py``).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burstproof.errors import ExitCode
from reports.values.measurement import Outcome
from suites.support.small_plan import ROOT, run, small_checkout

pytestmark = pytest.mark.requirement("BE-15", "ST-3")

CURES = {
    "unavailable": "End the program that holds it",
    "memory error": "have the device reset",
    "launch": "If it fails again",
    "context": "restart the machine",
    "memory": "run a smaller network",
}
SOURCE = """
import os

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"

import pytest

from suites.support.parity.failing import SAID, Seam, planted, ring
from suites.support.parity.batch_checks import runs_differ

pytestmark = pytest.mark.requirement("BE-15")


@pytest.mark.parametrize("kind", {kinds})
def test_engine(kind):
    subject = ring()
    with planted(Seam({call}, SAID[kind])), subject.create(subject.network, subject.options) as engine:
        engine.run(5, subject.plan)


def test_next_engine():
    subject = ring()
    assert runs_differ(subject.network, subject.options, 3, dict(subject.plan)) == []
"""


@pytest.mark.thorough("two runs of a stage in the simulator")
def test_a_lost_device_is_a_verdict_and_the_next_run_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "impl"), str(ROOT)]))
    lost = small_checkout(tmp_path / "lost", SOURCE.format(kinds=list(CURES), call=60), limit_s=120.0)
    code, _, record = run(lost)
    assert code == ExitCode.FAIL
    told = {case.case.rpartition("::")[2]: case for case in record.cases}
    assert told.pop("test_next_engine").outcome is Outcome.PASSED
    assert {name: case.outcome for name, case in told.items()} == {
        f"test_engine[{kind}]": Outcome.FAILED for kind in CURES
    }
    for kind, cure in CURES.items():
        assert cure in told[f"test_engine[{kind}]"].reason
    whole = small_checkout(tmp_path / "whole", SOURCE.format(kinds=list(CURES), call=0), limit_s=120.0)
    assert run(whole)[0] == ExitCode.PASS
