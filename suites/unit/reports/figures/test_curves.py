"""Scaling curves with their fit, and the timeline: what is picked from a record and where it is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reports.drawing import LineChart, line_charts
from reports.figures.curves import CURVES, Curve, curve_lines
from reports.figures.timeline import timelines
from reports.html import render
from reports.judge.pairing import figures
from reports.values.measurement import SPAN, CaseResult, Measurement, Outcome
from reports.values.record import RunRecord
from suites.support.report_page import Page
from suites.support.sample_record import sample_record

pytestmark = pytest.mark.requirement("RE-3", "ST-6")

POINTS = ((1_000_000, 100, 0.01), (1_000_000, 10, 0.01), (1_000_000, 100, 0.1), (100_000, 100, 0.01))


def cost(neurons: int, fan: int, rate: float) -> float:
    """Microseconds of a burst that costs 3 us, 12 ps per event and 2 ps per neuron."""
    return 3.0 + 12e-6 * neurons * fan * rate + 2e-6 * neurons


def point(neurons: int, fan: int, rate: float, **more: str) -> Measurement:
    conditions = {"backend": "cuda", "scope": "device-resident", "neurons": neurons, "firing_rate": rate, **more}
    return Measurement(
        "burst.latency", cost(neurons, fan, rate), "us", conditions={**conditions, "synapses_per_neuron": fan}
    )


def record_of(*measurements: Measurement) -> RunRecord:
    case = CaseResult("suites/stage6_performance/case", "stage6", (), Outcome.PASSED, measurements=measurements)
    return replace(sample_record(faults=False), cases=(case,), judgements=())


COSTS = (
    Measurement("burst.cost_fixed", 3.0, "us"),
    Measurement("burst.cost_per_event", 0.012, "ns"),
    Measurement("burst.cost_per_neuron", 0.002, "ns"),
)
WHOLE = record_of(*(point(*one) for one in POINTS), point(1_000_000, 100, 0.01, connectivity="block"), *COSTS)


PLACES = ((100_000, 1_000_000), (10, 100), (0.01, 0.1))


@pytest.mark.parametrize(
    ("curve", "places"), list(zip(CURVES, PLACES, strict=True)), ids=[curve.condition for curve in CURVES]
)
def test_each_curve_and_its_fit(curve: Curve, places: tuple[float, float]) -> None:
    """Each curve takes the points that share its other conditions; the fit runs through points made from it."""
    lines = curve_lines(WHOLE, curve)
    assert sorted(place for place, _ in lines["cuda device-resident"]) == list(places)
    measured, fitted = (dict(lines[name]) for name in ("cuda device-resident", "fit of device-resident"))
    assert measured == pytest.approx(fitted)
    (chart,) = line_charts(lines, "ms", LineChart("key", curve.title, curve.axis))
    assert curve.axis in chart.series[0].points[0][2]


def test_without_costs_there_is_no_fit() -> None:
    assert list(curve_lines(record_of(*(point(*one) for one in POINTS)), CURVES[0])) == ["cuda device-resident"]
    none = replace(COSTS[0], value=None)
    assert "fit of device-resident" not in curve_lines(record_of(point(*POINTS[0]), none, *COSTS[1:]), CURVES[0])


SPANS = (("up", 10.0, 5.0), ("bursts", 15.0, 85.0), ("down", 60.0, 50.0))
TIMED = record_of(
    *(Measurement(SPAN, length, "us", conditions={"lane": lane, "start_us": start}) for lane, start, length in SPANS)
)


def test_timeline_by_hand() -> None:
    """From 10 to 110 us over 410 pixels: bars lie where their times are."""
    (chart,) = timelines(TIMED)
    bars = {lane.name: (lane.bars[0].x, lane.bars[0].width) for lane in chart.lanes}
    assert bars == {"up": (150.0, 20.5), "bursts": (170.5, 348.5), "down": (355.0, 205.0)}
    assert chart.ticks[0] == (150.0, "0 µs")
    assert chart.ticks[-1][0] == 560.0
    assert timelines(WHOLE) == ()
    assert timelines(record_of(Measurement(SPAN, None, "us", conditions={"start_us": 1.0}))) == ()


def test_they_stand_in_the_report() -> None:
    """All curves and the timeline, with ids of their own; spans are no rows and are not compared."""
    page = Page(render(replace(WHOLE, cases=(*WHOLE.cases, *TIMED.cases))))
    ids = [attributes["id"] for _, attributes in page.elements if attributes.get("id")]
    assert len(ids) == len(set(ids))
    assert {*(f"line-title-{curve.condition}" for curve in CURVES), "timeline-title"} <= set(ids)
    assert SPAN not in "".join(page.text)
    assert figures(TIMED, frozenset()) == {}


@pytest.mark.parametrize(
    ("length", "ticks"),
    [(2651.0, ["0 µs", "1 ms", "2 ms"]), (0.9, ["0 µs", "0.2 µs", "0.4 µs", "0.6 µs", "0.8 µs"]), (500.0, 6)],
)
def test_a_timeline_has_round_ticks(length: float, ticks: int | list[str]) -> None:
    span = Measurement(SPAN, length, "us", conditions={"lane": "copy", "start_us": 3.0})
    (chart,) = timelines(record_of(span))
    found = [text for _, text in chart.ticks]
    assert (found if isinstance(ticks, list) else len(found)) == ticks
