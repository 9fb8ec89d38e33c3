"""Measurements as rows of the report: the figure, its interval, its samples, and the limits it was held against."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from reports import charts, units
from reports.judgement import JudgedMeasurement
from reports.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.record import RunRecord
from reports.statistics import median_interval
from reports.targets import Target, load_targets

ORDER = (Verdict.FAIL, Verdict.ERROR, Verdict.AMBIGUOUS, Verdict.MARGINAL, Verdict.PASS, Verdict.SKIPPED)
_HIDDEN_CONDITIONS = frozenset({"backend", "neurons", "synapses_per_neuron", "firing_rate", "scope", "device"})


@dataclass(frozen=True)
class Limit:
    """One target beside a figure."""

    verdict: Verdict
    target: Target | None
    text: str
    reason: str


@dataclass(frozen=True)
class Row:
    """One measurement, ready for a table."""

    name: str
    subject: str
    conditions: str
    value: str
    interval: str
    count: int
    spark: str
    limits: tuple[Limit, ...]
    verdict: Verdict
    note: str
    case: str
    telemetry: Mapping[str, str]
    sort_key: tuple[str, str, float]


def measurement_rows(record: RunRecord) -> tuple[Row, ...]:
    """Every measurement of a run, in the order of its cases."""
    targets = {target.id: target for target in load_targets()}
    judged = _by_measurement(record.judgements)
    return tuple(_row(case, index, judged, targets) for case in record.cases for index in range(len(case.measurements)))


def _by_measurement(judgements: Iterable[JudgedMeasurement]) -> dict[tuple[str, int], list[JudgedMeasurement]]:
    found: dict[tuple[str, int], list[JudgedMeasurement]] = {}
    for judged in judgements:
        found.setdefault((judged.case, judged.index), []).append(judged)
    return found


def _row(
    case: CaseResult,
    index: int,
    judged: Mapping[tuple[str, int], list[JudgedMeasurement]],
    targets: Mapping[str, Target],
) -> Row:
    measurement = case.measurements[index]
    own = judged.get((case.case, index), [])
    limits = tuple(
        Limit(
            item.judgement.verdict,
            targets.get(item.target),
            targets[item.target].limit_text if item.target in targets else item.target,
            item.judgement.text,
        )
        for item in own
    )
    verdicts = [limit.verdict for limit in limits]
    if case.outcome is Outcome.FAILED or measurement.value is None or not math.isfinite(measurement.value):
        verdicts.append(Verdict.FAIL)
    return Row(
        name=measurement.name,
        subject=subject(measurement),
        conditions=_conditions(measurement),
        value=_value(measurement),
        interval=_interval(measurement),
        count=len(measurement.samples),
        spark=charts.sparkline([sample for sample in measurement.samples if math.isfinite(sample)]),
        limits=limits,
        verdict=min(verdicts, key=ORDER.index, default=Verdict.PASS),
        note=_note(measurement),
        case=case.case,
        sort_key=_sort_key(measurement),
        telemetry={name: scalar_text(value) for name, value in measurement.telemetry.items()},
    )


def _sort_key(measurement: Measurement) -> tuple[str, str, float]:
    """Backend, scope, size: the order of a latency table."""
    known = measurement.conditions
    return str(known.get("backend", "")), str(known.get("scope", "")), number(measurement, "neurons") or 0.0


def _value(measurement: Measurement) -> str:
    value = measurement.value
    if value is None or not math.isfinite(value):
        return "missing" if value is None else str(value)
    return units.readable(value, measurement.unit)


def _note(measurement: Measurement) -> str:
    whole = measurement.aggregate
    if whole is None:
        return measurement.note
    least, greatest = (units.readable(end, measurement.unit) for end in (whole.least, whole.greatest))
    span = f"all {least}" if whole.least == whole.greatest else f"{least} to {greatest}"
    kept = f"Stands for the {whole.count} figures of its test function, {span}; all passed, the others are not kept."
    return f"{measurement.note.rstrip('. ')}. {kept}" if measurement.note else kept


def _interval(measurement: Measurement) -> str:
    finite = all(math.isfinite(sample) for sample in measurement.samples)
    interval = median_interval(measurement.samples) if finite else None
    if interval is None:
        return ""
    return f"{units.readable(interval.low, measurement.unit)} to {units.readable(interval.high, measurement.unit)}"


def number(measurement: Measurement, condition: str) -> float | None:
    """A numeric condition of a measurement; ``None`` where it is absent or no number."""
    value = measurement.conditions.get(condition)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if usable and value is not None else None


def subject(measurement: Measurement) -> str:
    """The network and the backend of a burst figure; the name of anything else."""
    neurons, fan_out = number(measurement, "neurons"), number(measurement, "synapses_per_neuron")
    rate = number(measurement, "firing_rate")
    if neurons is None:
        return measurement.name
    words = f"{units.shown(neurons)} neurons"
    if fan_out is not None:
        words += f" × {fan_out:g}"  # noqa: RUF001
    if rate is not None:
        words += f", {100.0 * rate:g} % firing"
    return words


def _conditions(measurement: Measurement) -> str:
    known = measurement.conditions
    hidden = _HIDDEN_CONDITIONS if number(measurement, "neurons") is not None else frozenset()
    first = [scalar_text(known[key]) for key in ("backend", "scope", "device") if key in known]
    rest = [f"{key} {scalar_text(value)}" for key, value in known.items() if key not in hidden]
    return ", ".join((first if hidden else []) + rest)


def scalar_text(value: object) -> str:
    """One value for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
