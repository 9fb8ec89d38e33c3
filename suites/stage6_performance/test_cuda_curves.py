"""How a burst scales on a GPU with neurons, synapses per neuron and firing rate, and what that costs (ST-6)."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from stages.measuring import Measure
from suites.stage6_performance.conftest import Bench
from suites.support.bench.card_limits import Card
from suites.support.bench.cuda_bench import RESIDENT, RowResult
from suites.support.bench.floors import CardLimits
from suites.support.bench.putting import put_latency
from suites.support.bench.rows import CURVE_ROWS, FITTED_ROWS, Row
from suites.support.bench.scaling import fit_costs

pytestmark = [pytest.mark.requirement("ST-6", "BE-6"), pytest.mark.gate("gpu")]


def _declared(row: Row) -> ParameterSet:
    where = {"backend": "cuda", "gpus": 1, "device": ..., "scope": RESIDENT, **row.conditions}
    marks = [
        pytest.mark.measures("burst.latency", "burst.fraction_of_floor", **where),
        pytest.mark.measures("burst.energy", "event.energy", only_if="the card counts its energy", **where),
    ]
    return pytest.param(row, id=row.name, marks=marks)


@pytest.fixture(params=[_declared(row) for row in CURVE_ROWS])
def point(request: pytest.FixtureRequest, bench: Bench) -> RowResult:
    """One point of a curve, device-resident only."""
    return bench(request.param)


@pytest.mark.thorough("measures for seconds")
def test_point(known_limits: CardLimits, point: RowResult, measure: Measure) -> None:
    """A point of the curves over synapses per neuron and firing rate, at a million neurons."""
    assert point.problems == (), point.problems[0]
    put_latency(point, RESIDENT, point.timings[RESIDENT], known_limits, measure)


@pytest.fixture
def table(bench: Bench) -> list[tuple[Row, float]]:
    """Every row that costs are fitted over, with its latency in microseconds."""
    results = [bench(row) for row in FITTED_ROWS]
    for result in results:
        assert result.problems == (), f"{result.row.name}: {result.problems[0]}"
    return [(result.row, 1e3 * result.timings[RESIDENT].samples.estimate) for result in results]


@pytest.mark.measures("burst.cost_fixed", "burst.cost_per_event", "burst.cost_per_neuron", device=..., scope=RESIDENT)
@pytest.mark.thorough("measures for seconds")
def test_costs_over_the_curves(card: Card, table: list[tuple[Row, float]], measure: Measure) -> None:
    """Device-resident latency as a fixed cost, a cost per contribution and one per neuron, fitted over all points."""
    model = fit_costs([row for row, _ in table], [latency for _, latency in table])
    conditions = {"backend": "cuda", "device": card.runtime.name, "scope": RESIDENT}
    note = f"least squares over {len(table)} rows up to 5 M neurons; the worst lies {model.worst_deviation:.0%} off"
    measure("burst.cost_fixed", model.fixed_us, "us", conditions=conditions, note=note)
    measure("burst.cost_per_event", model.event_ns, "ns", conditions=conditions, note=note)
    measure("burst.cost_per_neuron", model.neuron_ns, "ns", conditions=conditions, note=note)
