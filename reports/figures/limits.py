"""Judged figures as shares of their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.drawing import Figure, LogScale
from reports.judge.targets import Comparison, Target, load_targets
from reports.rows import conditions, subject
from reports.values import units
from reports.values.judgement import JudgedMeasurement, Limits
from reports.values.measurement import Measurement, Scalar
from reports.values.record import RunRecord

_RIGHT_OR_WRONG = ("parity.", "prerequisite.")
_MOST = 12
_GOOD = ("PASS", "MARGINAL")
_Fractions = tuple[float, float, float]
"""The value and the ends of its interval, as fractions of the limit."""


@dataclass(frozen=True)
class LimitRow:
    """One judged figure and its interval as fractions of its limit; above 1 it misses the limit."""

    label: str
    detail: str
    limit: str
    verdict: str
    fraction: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The fraction as text."""
        return _share(self.fraction)


@dataclass(frozen=True)
class LimitChart:
    """Rows over one logarithmic axis; ``scale`` maps fractions of the limit to percent of the axis.

    The ``nearest`` rows, with all that miss their limit, are shown at once; the others are folded.
    """

    rows: tuple[LimitRow, ...]
    scale: LogScale
    nearest: bool

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Positions and texts along the axis."""
        return tuple((self.scale(tick), _share(tick)) for tick in self.scale.ticks())


def limit_rows(record: RunRecord) -> list[LimitRow]:
    """Judged figures as fractions of their limit, each with its strictest target, the worst first.

    Limits have to be positive. Parity and prerequisites are left out: they are right or wrong, without a distance.
    """
    targets = {target.id: target for target in load_targets()}
    measurements = record.by_place
    strictest: dict[tuple[str, int], tuple[_Fractions, JudgedMeasurement, Limits]] = {}
    for judged in record.judgements:
        key, limits = (judged.case, judged.index), _limits(judged, targets.get(judged.target))
        fractions = None if limits is None else _fractions(judged, limits)
        if limits is None or fractions is None or key not in measurements:
            continue
        if judged.measurement.startswith(_RIGHT_OR_WRONG):
            continue
        if key not in strictest or strictest[key][0][0] < fractions[0]:
            strictest[key] = fractions, judged, limits
    judged_by = [targets.get(judged.target) for _, judged, _ in strictest.values()]
    labels = _labels([(measurements[key], target) for key, target in zip(strictest, judged_by, strict=True)])
    rows = [
        LimitRow(*label, _limit_text(judged, limits, target), judged.judgement.verdict.value, *fractions)
        for label, target, (fractions, judged, limits) in zip(labels, judged_by, strictest.values(), strict=True)
    ]
    return sorted(rows, key=lambda row: -row.fraction)


_LEAST = 1e-6
"""Least left end of the scale, since an interval may reach down to zero."""


def limit_charts(rows: Sequence[LimitRow]) -> tuple[LimitChart, ...]:
    """Two charts, each with its own axis: the rows nearest to their limits, and the rest; none without rows.

    Of rows that differ in their conditions only, the first chart has the worst.
    """
    worst = {(row.label, row.limit): row for row in reversed(rows)}.values()
    first = [row for row in rows if any(row is one for one in worst)]
    split = min(max(sum(row.verdict not in _GOOD for row in first), _MOST), 2 * _MOST)
    nearest = tuple(first[:split])
    rest = tuple(row for row in rows if not any(row is one for one in nearest))
    return tuple(LimitChart(part, _scale(part), part is nearest) for part in (nearest, rest) if part)


def _scale(rows: Sequence[LimitRow]) -> LogScale:
    least, most = min(row.low for row in rows), max(row.high for row in rows)
    return LogScale(max(_LEAST, min(0.5, 0.9 * least)), max(2.0, 1.15 * most), 0.0, 100.0)


def _labels(judged: Sequence[tuple[Measurement, Target | None]]) -> list[tuple[str, str]]:
    """A label for each figure, and the conditions that distinguish it from others with the same label."""
    labels = [subject(one) if target is None or one.name == "burst.latency" else target.words for one, target in judged]
    found: dict[str, dict[str, set[Scalar]]] = {}
    for label, (measurement, _) in zip(labels, judged, strict=True):
        for name, value in measurement.conditions.items():
            found.setdefault(label, {}).setdefault(name, set()).add(value)
    return [
        (label, conditions(one, [name for name, values in found.get(label, {}).items() if len(values) > 1]))
        for label, (one, _) in zip(labels, judged, strict=True)
    ]


def _limits(judged: JudgedMeasurement, target: Target | None) -> Limits | None:
    """The limits of a judgement; in records of version 1 those of the target."""
    if judged.judgement.limits or target is None:
        return judged.judgement.limits
    low, high = (end if math.isfinite(end) else None for end in (target.low, target.high))
    return Limits(target.comparison.value, low, high)


def _limit_text(judged: JudgedMeasurement, limits: Limits, target: Target | None) -> str:
    """The limit and its source; a target that the checkout lacks is the user's own."""
    bound = limits.low if limits.high is None else limits.high
    text = units.typeset(f"{limits.comparison} {units.fitting(bound or 0.0, judged.judgement.unit)}")
    return f"{text} ({target.source_text if target else 'own target'})"


def _fractions(judged: JudgedMeasurement, limits: Limits) -> _Fractions | None:
    """The value and its interval divided by the limit; inverted for lower limits. ``None`` if that is impossible."""
    value, interval = judged.judgement.value, judged.judgement.interval
    if value is None or value <= 0.0 or limits.comparison == Comparison.RANGE.value:
        return None
    low, high = (interval.low, interval.high) if interval else (value, value)
    if limits.high is not None:
        return (value / limits.high, low / limits.high, high / limits.high) if min(limits.high, low) > 0.0 else None
    bound = limits.low or 0.0
    return (bound / value, bound / high, bound / low) if min(bound, low) > 0.0 else None


def _share(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %" if fraction < 10.0 else f"{fraction:.3g}×"


_TEMPLATE = """
{% import "parts.jinja" as parts %}
{% set at = chart.scale %}
{% macro axis() %}<span class="track">
{%- for x, text in chart.ticks %}
<i class="tick{{ " at-start" if x < 8 }}" style="left:{{ x }}%">{{ text }}</i>{% endfor %}</span>{% endmacro %}
{% macro table(caption, rows) %}
<div class="scroll" tabindex="0" role="group" aria-label="{{ caption }}"><table class="cards">
<caption>{{ caption }}</caption>
<thead><tr><th scope="col">Figure</th><th scope="col">Verdict</th><th scope="col" class="num">Of the limit</th>
<th scope="col">{{ axis() }}</th><th scope="col" class="num">Limit</th></tr></thead><tbody>
{% for row in rows %}
<tr><th scope="row">{{ row.label }} <span class="soft small">{{ row.detail }}</span></th>
<td>{{ parts.badge(row.verdict) }}</td>
<td class="num" data-head="Of the limit">{{ row.text }}</td>
<td><span class="track is-{{ row.verdict|lower }}" aria-hidden="true"><i class="at" style="left:{{ at(1.0) }}%"></i>
<i class="span" style="left:{{ at(row.low) }}%;width:{{ (at(row.high) - at(row.low))|round(1) }}%"></i>
<i class="dot is-{{ row.verdict|lower }}" style="left:{{ at(row.fraction) }}%"></i></span></td>
<td class="num small" data-head="Limit">{{ row.limit }}</td></tr>
{% endfor %}
</tbody></table></div>
{% endmacro %}
{% if chart.nearest %}
{{ table("Figures against their limits, nearest first: each as a share of its strictest limit, on a logarithmic axis; "
~ "left of the dashed line meets it. Bars are 95 % intervals.", chart.rows) }}
{% else %}
<details class="fold"><summary>{{ chart.rows|length }} more figures, further from their limits</summary>
{{ table("Figures further from their limits, on a logarithmic axis", chart.rows) }}</details>
{% endif %}
"""

FIGURE = Figure(10, lambda record: limit_charts(limit_rows(record)), _TEMPLATE)
