"""A case that overruns its time limit is named as an error, and the others run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burstproof.errors import ExitCode
from reports.values.measurement import Outcome
from reports.values.record import RunRecord
from stages import pytest_command, suite_process
from suites.support.small_plan import MARK, Checkout, run

pytestmark = [pytest.mark.requirement("RE-2"), pytest.mark.thorough("starts runs of its own: seconds each")]

HANGS = {
    "sleep": "time.sleep(600)",
    "except": "\n    while True:\n        try: time.sleep(600)\n        except Exception: pass",
    "child": "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])",
}
# Waits in C, with the GIL held, for a mutex that nobody unlocks: no Python code of the process runs any more.
IN_C_CODE = """
    library, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    library.pthread_mutex_lock(mutex)
    library.pthread_mutex_lock(mutex)
"""


def run_limited(checkout: Checkout, cases: str, *, side_by_side: bool = False) -> tuple[int, RunRecord]:
    imports = "import ctypes, subprocess, sys, time\n"
    root, (stage,) = checkout(MARK + imports + cases + "\ndef test_last(): pass\n")
    # The plugin of the checkout under test, with a watchdog that does not let anyone wait.
    quick = "import stages.time_limit\nstages.time_limit.WATCHDOG_S = 1.0\n"
    (root / "conftest.py").write_text(quick + (root / "conftest.py").read_text(encoding="utf-8"), encoding="utf-8")
    limited = replace(stage, case_limit_s=2.0, side_by_side=side_by_side, time_limit_s=60.0)
    code, _, record = run((root, (limited,)))
    return code, record


@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_a_case_that_hangs_is_an_error_and_the_process_goes_on(checkout: Checkout, hang: str) -> None:
    code, record = run_limited(checkout, f"def test_hangs(): {hang}\n")
    hung, last = record.cases
    assert code == ExitCode.UNDECIDED
    assert (hung.outcome, last.outcome) == (Outcome.ERROR, Outcome.PASSED)
    assert "test_hangs overran its time limit of 2 s" in hung.reason
    assert record.stages[0].problem == ""


@pytest.mark.thorough("seconds")
@pytest.mark.parametrize("phase", ["setup", "teardown"])
def test_the_limit_holds_for_fixtures(checkout: Checkout, phase: str) -> None:
    hang = {"setup": "    time.sleep(600)\n    yield\n", "teardown": "    yield\n    time.sleep(600)\n"}
    cases = f"@pytest.fixture\ndef held():\n{hang[phase]}def test_hangs(held): pass\n"
    _, record = run_limited(checkout, cases)
    assert [case.outcome for case in record.cases] == [Outcome.ERROR, Outcome.PASSED]
    assert f"{phase}: " in record.cases[0].reason
    assert "overran its time limit" in record.cases[0].reason


@pytest.mark.thorough("seconds")
@pytest.mark.parametrize("side_by_side", [False, True])
def test_a_case_that_hangs_in_c_code_is_ended_and_the_others_run(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, side_by_side: bool
) -> None:
    if side_by_side:
        monkeypatch.setattr(pytest_command, "PLUGINS", ("benchmark", "xdist"))
        monkeypatch.setattr(pytest_command, "_spread", lambda workers: ["-n", "2", "--dist", "loadgroup"])
    code, record = run_limited(checkout, f"def test_hangs(): {IN_C_CODE}\n", side_by_side=side_by_side)
    assert code == ExitCode.UNDECIDED
    outcomes = {case.case.split("::")[-1]: case.outcome for case in record.cases}
    assert outcomes == {"test_hangs": Outcome.ERROR, "test_last": Outcome.PASSED}
    assert "a case overran its time limit and could not be interrupted" in record.stages[0].problem


def test_a_case_states_a_limit_of_its_own(checkout: Checkout) -> None:
    code, record = run_limited(checkout, "@pytest.mark.time_limit(30)\ndef test_long(): time.sleep(3)\n")
    assert (code, record.cases[0].outcome) == (ExitCode.PASS, Outcome.PASSED)


def test_a_stage_in_which_nothing_happens_is_ended(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hang outside every case, which no limit of a case ends."""
    monkeypatch.setattr(suite_process, "WATCHDOG_S", 0.0)
    monkeypatch.setattr(suite_process, "_GRACE_S", 1.0)
    root, (stage,) = checkout(MARK + "def test_it(): pass\n")
    hang = "import time\ndef pytest_sessionfinish(): time.sleep(600)\n"
    (root / "part1" / "conftest.py").write_text(hang, encoding="utf-8")
    code, _, record = run((root, (replace(stage, case_limit_s=3.0),)))
    assert code == ExitCode.UNDECIDED
    assert record.stages[0].problem.startswith("ended after 4 s in which no case began or ended")
    assert record.cases[0].outcome is Outcome.PASSED
