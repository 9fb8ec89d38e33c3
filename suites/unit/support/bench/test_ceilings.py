"""What no program can exceed on a card, from the profiles of its model."""

from __future__ import annotations

import pytest

from reports.judge.verdict import judge_cases
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from suites.support.bench.ceilings import TENSOR_PEAKS, ceiling, least_ms

pytestmark = pytest.mark.requirement("RE-2")

H200 = "NVIDIA H200"


def test_peaks_come_in_the_rate_s_unit() -> None:
    assert ceiling(H200, "memory_bandwidth_gb_per_s") == {"floor": 4800}
    assert ceiling(H200, TENSOR_PEAKS["bfloat16"], 1000.0) == {"floor": 989_500}
    assert least_ms(H200, 989.5e9, "fp16_tensor_tflops") == {"floor": pytest.approx(1.0)}


def test_what_no_profile_knows_bounds_nothing() -> None:
    assert ceiling("Some other card", "fp32_tflops") == {}
    assert ceiling(H200, TENSOR_PEAKS.get("float64")) == {}
    assert least_ms("Some other card", 1e12, "fp32_tflops") == {}


@pytest.mark.parametrize(("rate", "verdict"), [(4700.0, None), (5200.0, Verdict.ERROR)])
def test_a_rate_above_the_peak_is_an_error(rate: float, verdict: Verdict | None) -> None:
    figure = Measurement("rows.rate", rate, "GB/s", conditions=ceiling(H200, "memory_bandwidth_gb_per_s"))
    case = CaseResult("case", "stage6", (), Outcome.PASSED, "", 0.0, "", (figure,))
    assert [one.judgement.verdict for one in judge_cases([case])] == ([] if verdict is None else [verdict])
