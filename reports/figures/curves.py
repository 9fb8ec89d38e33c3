"""Latency of a burst over network size, synapses per neuron and firing rate, with the fitted model of its costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.drawing import LINE_CHART, Figure, LineChart, Lines, line_charts
from reports.values.record import RunRecord


@dataclass(frozen=True)
class Curve:
    """Latency over one condition while the others stay at ``fixed``."""

    title: str
    condition: str
    axis: str
    fixed: Mapping[str, float]
    unit: str = "1"


CURVES = (
    Curve(
        "Latency of one burst by network size, 100 synapses per neuron, 1 % firing",
        "neurons",
        "neurons",
        {"synapses_per_neuron": 100, "firing_rate": 0.01},
    ),
    Curve(
        "Latency of one burst by synapses per neuron, 1 M neurons, 1 % firing",
        "synapses_per_neuron",
        "synapses per neuron",
        {"neurons": 1_000_000, "firing_rate": 0.01},
    ),
    Curve(
        "Latency of one burst by firing rate, 1 M neurons, 100 synapses per neuron",
        "firing_rate",
        "of the neurons fire",
        {"neurons": 1_000_000, "synapses_per_neuron": 100},
        "%",
    ),
)
_DRAWN_SCOPES = frozenset({"device-resident", "launch to download", "step", ""})
_COSTS = ("burst.cost_fixed", "burst.cost_per_event", "burst.cost_per_neuron")


def curve_lines(record: RunRecord, curve: Curve) -> Lines:
    """Latency in ms by the curve's condition, a line for each backend and scope with the best figure of each point.

    Scopes with a cold cache or with stimulus are in the table only. Lines of one point are left out if another has
    more. The fitted model is another line if the run measured its costs and a device-resident line.
    """
    lines: dict[str, dict[float, float]] = {}
    for measurement in record.measured("burst.latency"):
        known, value, place = measurement.conditions, measurement.in_unit("ms"), measurement.number(curve.condition)
        usual = all(known.get(name) == wanted for name, wanted in curve.fixed.items()) and "connectivity" not in known
        if not usual or place is None or value is None or min(value, place) <= 0.0:
            continue
        if known.get("scope", "") in _DRAWN_SCOPES:
            line = lines.setdefault(f"{known.get('backend', '')} {known.get('scope', '')}".strip(), {})
            line[place] = min(value, line.get(place, math.inf))
    drawn = {name: list(points.items()) for name, points in lines.items()}
    if any(len(points) > 1 for points in drawn.values()):
        drawn = {name: points for name, points in drawn.items() if len(points) > 1}
    fit = _fitted(record, curve, [place for place, _ in drawn.get("cuda device-resident", [])])
    return {**drawn, "fit of device-resident": fit} if fit else drawn


def _fitted(record: RunRecord, curve: Curve, places: Sequence[float]) -> list[tuple[float, float]]:
    """The fitted model in ms at ``places``; empty if the run has no fit."""
    found = {m.name: m.in_unit("ms") for m in record.measurements if m.name in _COSTS}
    costs = [cost for cost in map(found.get, _COSTS) if cost is not None]
    if len(costs) < len(_COSTS):
        return []
    fixed, event, neuron = costs
    points = []
    for place in places:
        at = {**curve.fixed, curve.condition: place}
        events = at["neurons"] * at["synapses_per_neuron"] * at["firing_rate"]
        points.append((place, fixed + event * events + neuron * at["neurons"]))
    return [point for point in points if point[1] > 0.0]


def _charts(record: RunRecord) -> list[LineChart]:
    empty = ((curve, LineChart(curve.condition, curve.title, curve.axis, curve.unit)) for curve in CURVES)
    return [chart for curve, one in empty for chart in line_charts(curve_lines(record, curve), "ms", one)]


FIGURE = Figure(20, _charts, LINE_CHART, is_chart=True)
