"""Measurements as rows of the report: the figure, its interval, its samples, and the targets it was judged by."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.braces import braced
from reports.judge.decided import told
from reports.judge.plausible import more_than_linear
from reports.judge.statistics import interval_of
from reports.judge.targets import Target, load_targets
from reports.judge.verdict import FLOOR_CONDITION, worst
from reports.values import units
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import RunRecord

_HIDDEN_CONDITIONS = frozenset({"backend", "neurons", "synapses_per_neuron", "firing_rate", "scope", "device"})
_WITHOUT_NAME = ("backend", "scope", "device")


@dataclass(frozen=True)
class Limit:
    """One target that a figure was judged by; ``target`` is ``None`` if it is not among those known."""

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
    samples: tuple[float, ...]
    limits: tuple[Limit, ...]
    verdict: Verdict
    note: str
    telemetry: Mapping[str, str]
    sort_key: tuple[str, str, float]


@dataclass(frozen=True)
class Line:
    """Rows that differ in their conditions only, as one line of a table; ``row`` is the first of them."""

    row: Row
    conditions: tuple[str, ...]

    @property
    def in_short(self) -> tuple[str, ...]:
        """The conditions in brace notation (:mod:`reports.braces`)."""
        return braced(self.conditions, ", ")


def lines_of(rows: Iterable[Row]) -> tuple[Line, ...]:
    """Join rows that differ in their conditions only, in the order of the first ones; rows with samples stay alone."""
    found: dict[tuple[object, ...], list[Row]] = {}
    for place, row in enumerate(rows):
        limits = tuple(
            (limit.verdict, limit.text, limit.reason, limit.target and limit.target.id) for limit in row.limits
        )
        alone = place if row.samples else None
        shown = row.name, row.subject, row.value, row.interval, limits, row.verdict, row.note, alone
        found.setdefault(shown, []).append(row)
    return tuple(Line(same[0], tuple(row.conditions for row in same)) for same in found.values())


def measurement_rows(record: RunRecord, targets: Sequence[Target] | None = None) -> tuple[Row, ...]:
    """Every measurement of a run, in the order of its cases."""
    known = {target.id: target for target in (load_targets() if targets is None else targets)}
    limits: dict[tuple[str, int], list[Limit]] = {}
    for judged in record.judgements:
        target, judgement = known.get(judged.target), judged.judgement
        text = target.limit_text if target else judged.target
        limit = Limit(judgement.verdict, target, text, units.typeset(told(judgement)))
        limits.setdefault((judged.case, judged.index), []).append(limit)
    return tuple(
        _row(case, measurement, tuple(limits.get((case.case, index), ())))
        for case in record.cases
        for index, measurement in enumerate(case.measurements)
    )


def _row(case: CaseResult, measurement: Measurement, limits: tuple[Limit, ...]) -> Row:
    failed = case.outcome is Outcome.FAILED or measurement.figure is None
    return Row(
        name=measurement.name,
        subject=subject(measurement),
        conditions=conditions(measurement),
        value=_value(measurement),
        interval=_interval(measurement),
        samples=measurement.samples,
        limits=limits,
        verdict=worst([Verdict.FAIL if failed else Verdict.PASS, *(limit.verdict for limit in limits)]),
        note=_note(measurement),
        sort_key=_sort_key(measurement),
        telemetry={name: units.scalar_text(value) for name, value in measurement.telemetry.items()},
    )


def _sort_key(measurement: Measurement) -> tuple[str, str, float]:
    """Backend, scope, size: the order of a latency table."""
    known = measurement.conditions
    return str(known.get("backend", "")), str(known.get("scope", "")), measurement.number("neurons") or 0.0


def _value(measurement: Measurement) -> str:
    if measurement.figure is None:
        return "missing" if measurement.value is None else str(measurement.value)
    return units.readable(measurement.figure, measurement.unit)


def _note(measurement: Measurement) -> str:
    whole, said = measurement.aggregate, _sentences(measurement.note, more_than_linear(measurement))
    if whole is None:
        return said
    least, greatest = (units.readable(end, measurement.unit) for end in (whole.least, whole.greatest))
    span = f"all {least}" if whole.least == whole.greatest else f"{least} to {greatest}"
    kept = f"Stands for the {whole.count} figures of its test function, {span}; all passed, the others are not kept."
    return _sentences(said, kept)


def _sentences(first: str, second: str) -> str:
    return f"{first.rstrip('. ')}. {second}" if first and second else first or second


def _interval(measurement: Measurement) -> str:
    interval = interval_of(measurement)
    if interval is None:
        return ""
    return f"{units.readable(interval.low, measurement.unit)} to {units.readable(interval.high, measurement.unit)}"


def subject(measurement: Measurement) -> str:
    """The network of a burst, as text; the name of the measurement if it states no number of neurons."""
    neurons, fan_out = measurement.number("neurons"), measurement.number("synapses_per_neuron")
    rate = measurement.number("firing_rate")
    if neurons is None:
        return measurement.name
    words = f"{units.shown(neurons)} neurons"
    if fan_out is not None:
        words += f" × {fan_out:g}"
    if rate is not None:
        words += f", {100.0 * rate:g} % firing"
    return words


def conditions(measurement: Measurement, names: Collection[str] | None = None) -> str:
    """The conditions of a figure as text, without those that :func:`subject` names.

    Parameters
    ----------
    measurement : Measurement
    names : collection of str, optional
        Conditions to name; by default all. The floor, which has a column of its own, is never named.
    """
    known = measurement.conditions
    hidden = _HIDDEN_CONDITIONS if measurement.number("neurons") is not None else frozenset()
    first = [units.scalar_text(known[key]) for key in _WITHOUT_NAME if key in known and (names is None or key in names)]
    rest = [
        f"{key.replace('_', ' ')} {units.scalar_text(value)}"
        for key, value in known.items()
        if key not in hidden and key != FLOOR_CONDITION and (names is None or key in names)
    ]
    return ", ".join((first if hidden else []) + rest)
