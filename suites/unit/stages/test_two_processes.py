"""A stage that times only what stands behind its gate: its other cases run side by side, those then alone."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from burstproof.errors import ExitCode
from reports.values.measurement import Outcome
from stages import pytest_command
from suites.support.small_plan import MARK, Checkout, run

pytestmark = [
    pytest.mark.requirement("RE-1", "RE-2", "RE-6"),
    pytest.mark.thorough("starts runs of its own: seconds each"),
]

GATED = (
    MARK
    + """
@pytest.mark.gate('none')
def test_timed(worker_id): assert worker_id == 'master'
def test_other(worker_id): assert worker_id == WORKER
def test_third(): pass
"""
)


@pytest.mark.parametrize(("gate", "worker"), [("none", "gw0"), ("none", "gw7"), ("gpu", "gw0")])
def test_a_stage_that_times_gpus_only_spreads_the_cases_without_its_gate_and_then_runs_the_others_alone(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, gate: str, worker: str
) -> None:
    monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
    monkeypatch.setattr(pytest_command, "_spread", lambda workers: ["-n", "1", "--dist", "loadgroup"])
    source = GATED.replace("WORKER", repr(worker)).replace("'none'", repr(gate))
    root, (stage,) = checkout(source, gates=(gate,))
    asked = ["--gpu-free"] if gate == "gpu" else []
    code, folder, record = run((root, (replace(stage, times_gpus_only=True),)), *asked)
    outcomes = {case.case.rpartition("::")[2]: case.outcome for case in record.cases}
    other = Outcome.PASSED if worker == "gw0" else Outcome.FAILED
    timed = Outcome.PASSED if gate == "none" else Outcome.SKIPPED
    assert outcomes == {"test_other": other, "test_third": Outcome.PASSED, "test_timed": timed}
    assert code == (ExitCode.PASS if worker == "gw0" else ExitCode.FAIL)
    assert (record.stages[0].problem, record.stages[0].collected) == ("", 3)
    assert len(record.invocations) == 1
    assert gate != "none" or [*outcomes][-1] == "test_timed"
    cases = ET.parse(folder / "junit.xml").getroot().iter("testcase")
    assert len([*cases]) == 3


@pytest.mark.parametrize(("text", "order"), [("timed", "timed other third"), ("third", "third other timed")])
def test_what_is_asked_for_first_runs_before_all_others_timed_or_not(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, text: str, order: str
) -> None:
    monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
    monkeypatch.setattr(pytest_command, "_spread", lambda workers: ["-n", "1", "--dist", "loadgroup"])
    root, (stage,) = checkout(GATED.replace("WORKER", repr("gw0")), gates=("none",))
    code, _, record = run((root, (replace(stage, times_gpus_only=True),)), "--first", text)
    assert code == ExitCode.PASS
    assert [case.case.rpartition("_")[2] for case in record.cases] == order.split()


def test_a_stage_whose_other_cases_have_results_goes_on_with_those_of_its_gate(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
    monkeypatch.setattr(pytest_command, "_spread", lambda workers: ["-n", "1", "--dist", "loadgroup"])
    gated = "@pytest.mark.gate('none')\n"
    slow, timed = f"{gated}def test_slow(): time.sleep(4)\n", f"{gated}def test_timed(): pass\n"
    source = f"{MARK}import time\n{slow}{timed}def test_other(): pass\n"
    root, (stage,) = checkout(source, gates=("none",))
    where = root, (replace(stage, times_gpus_only=True),)
    _, folder, first = run(where, "--time-limit", "4")
    assert len(first.cases) < 3
    code, _, record = run(where, "--resume", str(folder))
    assert (code, {case.outcome for case in record.cases}, len(record.cases)) == (ExitCode.PASS, {Outcome.PASSED}, 3)
