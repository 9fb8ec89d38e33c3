"""Judged figures as shares of their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.drawing import Figure, LogScale
from reports.judge.targets import Comparison, Target, load_targets
from reports.rows import subject
from reports.values.judgement import JudgedMeasurement
from reports.values.measurement import Measurement
from reports.values.record import RunRecord

_RIGHT_OR_WRONG = ("parity.", "prerequisite.")
_LEFT, _RIGHT, _TOP, _STEP = 330.0, 820.0, 30.0, 26.0


@dataclass(frozen=True)
class LimitRow:
    """One judged figure and its interval as fractions of its limit; beyond 1 misses it."""

    label: str
    detail: str
    verdict: str
    fraction: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """The fraction for people."""
        return _share(self.fraction)


@dataclass(frozen=True)
class LimitChart:
    """Rows over one logarithmic axis; ``scale`` places fractions of the limit on it."""

    rows: tuple[LimitRow, ...]
    scale: LogScale
    top: float = _TOP
    step: float = _STEP

    @property
    def height(self) -> float:
        """Where the axis lies."""
        return self.top + self.step * len(self.rows)

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Pixels and texts along the axis."""
        return tuple((self.scale(tick), _share(tick)) for tick in self.scale.ticks())


def limit_rows(record: RunRecord) -> list[LimitRow]:
    """Judged figures with positive limits as fractions of the limit, worst first; each against its strictest target.

    Counts that are right or wrong, as those of parity and prerequisites, have no distance to show and are left out.
    """
    targets = {target.id: target for target in load_targets()}
    rows: dict[tuple[str, int], LimitRow] = {}
    measurements = record.by_place
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


_LEAST = 1e-6
"""Left end of the scale at the lowest: an interval may reach down to zero."""


def limit_charts(rows: Sequence[LimitRow]) -> tuple[LimitChart, ...]:
    """One chart of all rows; none without rows."""
    if not rows:
        return ()
    least, most = min(row.low for row in rows), max(row.high for row in rows)
    lowest = 10.0 ** math.floor(math.log10(max(_LEAST, min(least, 0.1))))
    return (LimitChart(tuple(rows), LogScale(lowest, max(2.0, most * 1.15), _LEFT, _RIGHT)),)


def _label(measurement: Measurement) -> str:
    """The network; what was measured as well, unless that is the latency of a burst."""
    known = subject(measurement)
    return known if measurement.name in ("burst.latency", known) else f"{measurement.name}, {known}"


def _fractions(judged: JudgedMeasurement, target: Target | None) -> tuple[float, float, float] | None:
    """The value and its interval over the limit, inverted for lower limits."""
    value, interval = judged.judgement.value, judged.judgement.interval
    if target is None or value is None or value <= 0.0 or target.comparison is Comparison.RANGE:
        return None
    low, high = (interval.low, interval.high) if interval else (value, value)
    if math.isfinite(target.high):
        return (value / target.high, low / target.high, high / target.high) if min(target.high, low) > 0.0 else None
    return (target.low / value, target.low / high, target.low / low) if min(target.low, low) > 0.0 else None


def _share(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %" if fraction < 10.0 else f"{fraction:.3g}x"


_TEMPLATE = """
{% import "charts.jinja" as charts %}
{% set shapes = {"PASS": 0, "MARGINAL": 3, "AMBIGUOUS": 2, "FAIL": 1, "ERROR": 4} %}
{% set at = chart.scale %}
<figure class="chart">
<figcaption>Each judged figure as a share of its strictest limit, worst first: left of the dashed line meets it.
Bars are 95 % intervals.</figcaption>
<svg viewBox="0 0 1040 {{ chart.height + 30 }}" width="1040" role="img" aria-labelledby="limit-title limit-desc">
<title id="limit-title">Figures against their limits</title>
<desc id="limit-desc">
{%- for row in chart.rows -%}
{{ row.label }}, {{ row.detail }}: {{ row.text }} of the limit, {{ row.verdict }}. {% endfor %}</desc>
{% for x, text in chart.ticks %}
<line class="grid" x1="{{ x }}" x2="{{ x }}" y1="14" y2="{{ chart.height }}"/>
<text class="axis" x="{{ x }}" y="{{ chart.height + 18 }}" text-anchor="middle">{{ text }}</text>
{% endfor %}
<line class="limit" x1="{{ at(1.0) }}" x2="{{ at(1.0) }}" y1="8" y2="{{ chart.height }}"/>
<text class="axis" x="{{ at(1.0) + 4 }}" y="12">limit</text>
{% for row in chart.rows %}
{% set y = chart.top + chart.step * loop.index0 %}
{% set class = "mark-" ~ row.verdict|lower %}
<text x="{{ at.start - 12 }}" y="{{ y + 4 }}" text-anchor="end">{{ row.label }}</text>
<line class="{{ class }}" stroke-width="3" x1="{{ at(row.low) }}" x2="{{ at(row.high) }}" y1="{{ y }}" y2="{{ y }}"/>
{{ charts.shape(shapes[row.verdict], at(row.fraction), y, class) }}
<text x="{{ at.end + 14 }}" y="{{ y + 4 }}">{{ row.text }} <tspan fill="var(--soft)">{{ row.detail }}</tspan></text>
{% endfor %}
</svg>
</figure>
"""

FIGURE = Figure(10, lambda record: limit_charts(limit_rows(record)), _TEMPLATE)
