"""The sentence of the first screen on results that were compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.judge.rightness import rightness
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3")


def compared(backend: str | None, value: float, outcome: Outcome = Outcome.PASSED, stage: str = "stage5") -> CaseResult:
    conditions = {} if backend is None else {"backend": backend}
    taken = (Measurement("parity.bursts_agreeing", value, "1", conditions=conditions),)
    measured = taken if outcome is Outcome.PASSED else ()
    return CaseResult(f"a.py::t[{backend}-{outcome.value}-{value}]", stage, ("BE-4",), outcome, "", 0.0, "t", measured)


@pytest.mark.parametrize(
    ("cases", "verdict", "sentence"),
    [
        (
            (compared("cpu, 1 thread", 1.0), compared("cpu, 2 threads", 1.0), compared("cuda, graphs", 1.0)),
            Verdict.PASS,
            "Right: 3 of 3 comparisons agree in every burst (cpu 2, cuda 1); "
            "of the cases of parity 3 passed, 0 failed.",
        ),
        (
            (compared(None, 1.0, stage="stage7"),),
            Verdict.PASS,
            "Right: 1 of 1 comparisons agree in every burst (several GPUs 1).",
        ),
        (
            (compared("cpu", 1.0), compared("cpu", 0.5)),
            Verdict.FAIL,
            "Not right: 1 of 2 comparisons agree in every burst (cpu 1); of the cases of parity 2 passed, 0 failed.",
        ),
        (
            (compared("cpu", 1.0, Outcome.FAILED),),
            Verdict.FAIL,
            "Not right: of the cases of parity 0 passed, 1 failed.",
        ),
        (
            (compared("cpu", 1.0), compared("wgpu", 1.0, Outcome.ERROR)),
            Verdict.ERROR,
            "Right so far: 1 of 1 comparisons agree in every burst (cpu 1); of the cases of parity 1 passed, 0 failed; "
            "1 case could not be judged.",
        ),
        (
            (compared("wgpu", 1.0, Outcome.SKIPPED),),
            Verdict.SKIPPED,
            "Right? No results were compared in this run; stages 6 and 7 take no figure of a result that was not "
            "checked first.",
        ),
    ],
    ids=["all agree", "several GPUs", "one differs", "one failed", "one broken", "none"],
)
def test_the_sentence(cases: tuple[CaseResult, ...], verdict: Verdict, sentence: str) -> None:
    record = replace(sample_record(faults=False), cases=cases, judgements=())
    assert rightness(record) == (verdict, sentence)
