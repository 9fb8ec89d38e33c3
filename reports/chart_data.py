"""What the charts of the report show, picked from a record; :mod:`reports.charts` lays it out."""

from __future__ import annotations

import math

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


def size_lines(record: RunRecord) -> dict[str, list[tuple[float, float]]]:
    """Latency in ms over neurons for each backend and scope at 100 synapses and 1 % firing; the best of each size."""
    lines: dict[str, dict[float, float]] = {}
    for measurement in (m for case in record.cases for m in case.measurements if m.name == "burst.latency"):
        known, value, size = measurement.conditions, measurement.value, number(measurement, "neurons")
        usual = known.get("synapses_per_neuron") == 100 and known.get("firing_rate") == 0.01
        if not usual or not size or value is None or units.dimension(measurement.unit) != "time":
            continue
        if not math.isfinite(value) or value <= 0.0:
            continue
        line = lines.setdefault(f"{known.get('backend', '')} {known.get('scope', '')}".strip(), {})
        time_ms = units.convert(value, measurement.unit, "ms")
        line[size] = min(time_ms, line.get(size, math.inf))
    return {name: list(points.items()) for name, points in lines.items()}
