"""The proof of the parity suite: each faulty engine fails it (SEMANTICS section 8)."""

from __future__ import annotations

import pytest

from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import replay
from suites.support.parity.builder import run_case
from suites.support.parity.cases import CASES
from suites.support.parity.faults import FAULTS, NUMBERED, REVISED, UNRECORDED
from suites.support.parity.mixed import MIXES, compare_mix
from suites.support.parity.recordings import NAMES, RANDOM_NAMES, recording

pytestmark = [pytest.mark.requirement("BE-4", "ST-5"), pytest.mark.not_proof]


def test_every_line_has_a_fault() -> None:
    """Lines 1 to 18, the tenth with its two halves, the six that recordings cannot expose, and revision 2."""
    lines = [fault.__doc__.split(":")[0] for fault in NUMBERED]
    expected = [str(n) for n in range(1, 19) if n != 10]
    assert sorted(lines) == sorted([*expected, "10a", "10b"])
    assert len(UNRECORDED) == 6
    assert len(REVISED) == 22
    assert len(set(FAULTS)) == len(NUMBERED) + len(UNRECORDED) + len(REVISED)


def _disagree(names: tuple[str, ...], fault: type[ReferenceEngine]) -> list[str]:
    return [name for name in names if not replay(recording(name), fault.create).agrees]


@pytest.mark.measures("parity.rule_faults_caught", backend="copies of the reference", planted=len(FAULTS))
@pytest.mark.thorough("all cases against each fault: seconds")
def test_every_fault_is_caught(measure) -> None:
    """Each fault fails a case worked out by hand; the share stands beside those of the real engines."""
    cases = sorted(CASES, key=lambda case: len(case.fired))  # a fault is caught at the first: the short ones come first
    missed = [str(fault.__doc__) for fault in FAULTS if not any(run_case(case, fault.create) for case in cases)]
    share = 100 * (len(FAULTS) - len(missed)) / len(FAULTS)
    conditions = {"backend": "copies of the reference", "planted": len(FAULTS)}
    measure("parity.rule_faults_caught", share, "%", conditions=conditions, note="; ".join(missed))
    assert not missed, f"no case worked out by hand catches: {'; '.join(missed)}"


@pytest.mark.thorough("all mixes and recordings against each fault: seconds each")
@pytest.mark.measures(
    "parity.faults_caught_by_cases",
    "parity.faults_caught_by_mixes",
    "parity.faults_caught_by_traces",
    fault=...,
)
@pytest.mark.measures(
    "parity.faults_caught_by_random_recordings", only_if="faults that revision 2 corrected", fault=...
)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_what_catches_a_fault(fault: type[ReferenceEngine], measure) -> None:
    """How many cases, mixes and recordings find it; random ones are held against the faults of revision 2 alone."""
    caught_by = {
        "cases": [case.name for case in CASES if run_case(case, fault.create)],
        "mixes": [mix.name for mix in MIXES if compare_mix(mix, fault.create)],
        "traces": _disagree(NAMES, fault),
    }
    if fault in REVISED:
        caught_by["random_recordings"] = _disagree(RANDOM_NAMES, fault)
    note = (fault.__doc__ or "").strip()
    for kind, caught in caught_by.items():
        measure(f"parity.faults_caught_by_{kind}", len(caught), "1", conditions={"fault": fault.__name__}, note=note)
