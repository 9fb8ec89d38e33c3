"""The table of kinds on a GPU: checked, timed, scaled to its contributions, held against goal and floor (BE-21)."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from stages.measuring import Measure
from suites.stage6_performance.conftest import Bench
from suites.support.bench.cuda_bench import RESIDENT, RowResult
from suites.support.bench.floors import CardLimits
from suites.support.bench.putting import conditions_of, put_latency, put_scaled
from suites.support.bench.rows import BETWEEN_ROWS, KIND_ROWS, Row
from suites.support.bench.steady import to_us

pytestmark = [pytest.mark.requirement("BE-21", "ST-6", "BE-6"), pytest.mark.gate("gpu")]

SAMPLED = ("everything", 100_000)
"""What the quick plan takes of the table."""

COMPARED = ("power-law", "areas")
"""Kinds that are held against the uniform row of as many contributions."""

RATE_TOLERANCE = 0.25


def _declared(row: Row) -> ParameterSet:
    """The row with what it delivers."""
    on_gpu = {"backend": "cuda", "gpus": 1, "device": ..., "scope": RESIDENT, **row.conditions}
    marks = [
        pytest.mark.measures("burst.latency", "burst.fraction_of_floor", "burst.scaled", **on_gpu),
        pytest.mark.measures("burst.energy", "event.energy", only_if="the card counts its energy", **on_gpu),
    ]
    if row.kind in COMPARED:
        marks.append(pytest.mark.measures("burst.against_uniform", **on_gpu))
    if (row.kind, row.neurons) != SAMPLED:
        marks.append(pytest.mark.thorough("builds and checks a large network"))
    return pytest.param(row, id=row.slug, marks=marks)


@pytest.fixture(params=[_declared(row) for row in sorted((*KIND_ROWS, *BETWEEN_ROWS), key=lambda row: row.synapses)])
def result(request: pytest.FixtureRequest, bench: Bench) -> RowResult:
    """The measured row; measuring happens here, so that a throttled card is an ERROR and not a FAIL."""
    row: Row = request.param
    return bench(row)


def test_kind(known_limits: CardLimits, result: RowResult, bench: Bench, measure: Measure) -> None:
    """Results equal a trusted engine's before and after the timing, the rate was held, then the figures."""
    assert result.problems == (), result.problems[0]
    off = abs(result.firing_rate / result.row.firing_rate - 1.0)
    assert off < RATE_TOLERANCE, f"the network fired at {result.firing_rate:.3%} while it was timed"
    timed = result.timings[RESIDENT]
    latency = put_latency(result, RESIDENT, timed, known_limits, measure)
    put_scaled(result, timed, known_limits, measure)
    if result.row.kind in COMPARED:
        uniform = bench(Row(result.row.neurons, result.row.firing_rate))
        assert uniform.problems == (), uniform.problems[0]
        equal = to_us(uniform.timings[RESIDENT].samples.estimate) * result.events / uniform.events
        note = f"{equal:.2f} us the uniform row takes, scaled to {result.events:.0f} contributions"
        conditions = conditions_of(result, RESIDENT, known_limits.device)
        measure("burst.against_uniform", latency / equal, "x", conditions=conditions, note=note)
