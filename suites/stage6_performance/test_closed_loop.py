"""Closed loops on a GPU: the latency of a call and its distribution, with few and with many stimulated neurons."""

from __future__ import annotations

import numpy as np
import pytest

from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.loop_bench import CALLS, measure_loop
from suites.support.bench.rows import Row

pytestmark = [pytest.mark.requirement("ST-6", "BE-20"), pytest.mark.gate("gpu")]

ROWS = (Row(100_000, 0.01), Row(1_000_000, 0.01, checked_bursts=30))
STIMULATED = (16, 1000)
PERCENTILES = {"closed_loop.p50": 50.0, "closed_loop.p99": 99.0, "closed_loop.p999": 99.9}
WAITS = "closed_loop.wait_p999"


def _conditions(row: Row, stimulated: int) -> dict[str, object]:
    return {"backend": "cuda", "gpus": 1, "stimulated": stimulated, "calls": CALLS, **row.conditions}


CASES = [
    pytest.param(
        row,
        stimulated,
        id=f"{row.name}, {stimulated} stimulated",
        marks=pytest.mark.measures(*PERCENTILES, WAITS, device=..., **_conditions(row, stimulated)),
    )
    for row in ROWS
    for stimulated in STIMULATED
]


@pytest.mark.parametrize(("row", "stimulated"), CASES)
def test_closed_loop(row: Row, stimulated: int, card: Card, measure: Measure) -> None:
    """Stimulus in, one burst, fired list on the host: every call timed by itself."""
    result = measure_loop(row, stimulated, card.watch)
    assert result.problems == (), "; ".join(result.problems)
    assert result.timed is not None
    assert result.latencies is not None
    assert result.waits is not None
    where = {**_conditions(row, stimulated), "device": card.runtime.name}
    note = (
        f"wall clock of loop.step, {CALLS} calls in a row; {row.checked_bursts} bursts before equal the CPU engine's, "
        f"all timed ones a run's; fired at {result.firing_rate:.3%}"
    )
    for name, percentile in PERCENTILES.items():
        measure(
            name,
            np.percentile(result.latencies, percentile),
            "us",
            samples=result.timed.samples.values if percentile == 50.0 else (),
            conditions=where,
            telemetry=result.timed.telemetry,
            note=note,
        )
    alone = f"99.9th percentile of {CALLS} waits as long as the median call, in which the host only reads its clock"
    measure(WAITS, np.percentile(result.waits, 99.9), "us", conditions=where, note=alone)
