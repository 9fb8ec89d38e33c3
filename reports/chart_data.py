"""What the charts of the report show, picked from a record; :mod:`reports.charts` lays it out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports import units
from reports.charts import LimitRow
from reports.judgement import JudgedMeasurement
from reports.measurement import Measurement
from reports.record import RunRecord
from reports.rows import number, subject
from reports.targets import Comparison, Target, load_targets

_RIGHT_OR_WRONG = ("parity.", "prerequisite.")


def limit_rows(record: RunRecord) -> list[LimitRow]:
    """Judged figures with positive limits as fractions of the limit; each figure against its strictest target.

    Counts that are right or wrong, as those of parity and prerequisites, have no distance to show and are left out.
    """
    targets = {target.id: target for target in load_targets()}
    rows: dict[tuple[str, int], LimitRow] = {}
    measurements = {(case.case, i): m for case in record.cases for i, m in enumerate(case.measurements)}
    for judged in record.judgements:
        target, key = targets.get(judged.target), (judged.case, judged.index)
        fractions = _fractions(judged, target)
        if target is None or fractions is None or judged.measurement.startswith(_RIGHT_OR_WRONG):
            continue
        if key in rows and rows[key].fraction >= fractions[0]:
            continue
        what = measurements.get(key)
        label = _label(what) if what else judged.measurement
        backend = str(what.conditions.get("backend", "")) if what else ""
        detail = f"{backend} {target.limit_text} ({'goal' if target.source == 'goal' else 'notes ' + target.source})"
        rows[key] = LimitRow(label, detail.strip(), judged.judgement.verdict.value, *fractions)
    return sorted(rows.values(), key=lambda row: -row.fraction)


def _label(measurement: Measurement) -> str:
    """The network; what was measured as well, unless that is the latency of a burst."""
    known = subject(measurement)
    return known if measurement.name in ("burst.latency", known) else f"{measurement.name}, {known}"


def _fractions(judged: JudgedMeasurement, target: Target | None) -> tuple[float, float, float] | None:
    value, interval = judged.judgement.value, judged.judgement.interval
    if target is None or value is None or value <= 0.0 or target.comparison is Comparison.RANGE:
        return None
    low, high = (interval.low, interval.high) if interval else (value, value)
    if math.isfinite(target.high):
        return (value / target.high, low / target.high, high / target.high) if min(target.high, low) > 0.0 else None
    return (target.low / value, target.low / high, target.low / low) if min(target.low, low) > 0.0 else None


@dataclass(frozen=True)
class Curve:
    """Latency over one condition while the others stay at ``fixed``."""

    title: str
    condition: str
    axis: str
    fixed: Mapping[str, float]


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
    ),
)
_DRAWN_SCOPES = frozenset({"device-resident", "launch to download", "step", ""})
_COSTS = ("burst.cost_fixed", "burst.cost_per_event", "burst.cost_per_neuron")

Lines = dict[str, list[tuple[float, float]]]


def curve_lines(record: RunRecord, curve: Curve) -> Lines:
    """Latency in ms for each backend and usual scope over the curve's condition, the best of each point, and the fit.

    Scopes with a cold cache or with stimulus stand in the table only. Lines of one point are left out where another
    has more. The fit is drawn where the run measured costs and a device-resident line.
    """
    lines: dict[str, dict[float, float]] = {}
    for measurement in (m for case in record.cases for m in case.measurements if m.name == "burst.latency"):
        known, value, place = measurement.conditions, measurement.value, number(measurement, curve.condition)
        usual = all(known.get(name) == wanted for name, wanted in curve.fixed.items()) and "connectivity" not in known
        if not usual or not place or value is None or units.dimension(measurement.unit) != "time":
            continue
        if not math.isfinite(value) or min(value, place) <= 0.0 or known.get("scope", "") not in _DRAWN_SCOPES:
            continue
        line = lines.setdefault(f"{known.get('backend', '')} {known.get('scope', '')}".strip(), {})
        line[place] = min(units.convert(value, measurement.unit, "ms"), line.get(place, math.inf))
    drawn = {name: list(points.items()) for name, points in lines.items()}
    if any(len(points) > 1 for points in drawn.values()):
        drawn = {name: points for name, points in drawn.items() if len(points) > 1}
    fit = _fitted(record, curve, [place for place, _ in drawn.get("cuda device-resident", [])])
    return {**drawn, "fit of device-resident": fit} if fit else drawn


def loss_lines(record: RunRecord) -> Lines:
    """The losses of every training run over its steps, from 1 on; of a thinned record those that were kept."""
    lines: Lines = {}
    for measurement in (m for case in record.cases for m in case.measurements if m.name == "training.loss"):
        known, losses = measurement.conditions, measurement.samples
        if len(losses) < 2 or not all(math.isfinite(loss) and loss > 0.0 for loss in losses):
            continue
        steps = number(measurement, "steps") or float(len(losses))
        stride = (steps - 1.0) / (len(losses) - 1)
        name = f"{known.get('backend', '')} {known.get('dtype', '')}".strip() or "training"
        lines[name] = [(1.0 + round(index * stride), loss) for index, loss in enumerate(losses)]
    return lines


def _fitted(record: RunRecord, curve: Curve, places: Sequence[float]) -> list[tuple[float, float]]:
    """The fitted model in ms at ``places``; empty where the run has none."""
    found = {m.name: m for case in record.cases for m in case.measurements if m.name in _COSTS}
    costs = [_cost_ms(found.get(name)) for name in _COSTS]
    if any(cost is None for cost in costs):
        return []
    fixed, event, neuron = (cost for cost in costs if cost is not None)
    points = []
    for place in places:
        at = {**curve.fixed, curve.condition: place}
        events = at["neurons"] * at["synapses_per_neuron"] * at["firing_rate"]
        time_ms = fixed + event * events + neuron * at["neurons"]
        if time_ms > 0.0:
            points.append((place, time_ms))
    return points


def _cost_ms(measurement: Measurement | None) -> float | None:
    if measurement is None or measurement.value is None or not math.isfinite(measurement.value):
        return None
    if units.dimension(measurement.unit) != "time":
        return None
    return units.convert(measurement.value, measurement.unit, "ms")
