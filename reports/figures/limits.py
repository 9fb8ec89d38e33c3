"""Judged figures as shares of their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from reports.drawing import Figure, LogScale
from reports.judge.targets import Comparison, Target, load_targets
from reports.rows import conditions, subject
from reports.values.judgement import JudgedMeasurement
from reports.values.measurement import Measurement
from reports.values.record import RunRecord

_RIGHT_OR_WRONG = ("parity.", "prerequisite.")
_MOST = 12
_GOOD = ("PASS", "MARGINAL")


@dataclass(frozen=True)
class LimitRow:
    """One judged figure and its interval as fractions of its limit; beyond 1 misses it."""

    label: str
    detail: str
    limit: str
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
    """Rows over one logarithmic axis; ``scale`` places fractions of the limit in percent of its width.

    ``shown`` are rows to be seen at once, all that miss their limit among them; ``folded`` the rest.
    """

    shown: tuple[LimitRow, ...]
    folded: tuple[LimitRow, ...]
    scale: LogScale

    @property
    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Places and texts along the axis."""
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
        source = "goal" if target.source == "goal" else f"notes {target.source}"
        limit = f"{target.limit_text} ({source})"
        rows[key] = LimitRow(
            label, conditions(what) if what else "", limit, judged.judgement.verdict.value, *fractions
        )
    return sorted(rows.values(), key=lambda row: -row.fraction)


def limit_charts(rows: Sequence[LimitRow]) -> tuple[LimitChart, ...]:
    """One chart of all rows; none without rows."""
    if not rows:
        return ()
    least, most = min(row.low for row in rows), max(row.high for row in rows)
    lowest = 10.0 ** math.floor(math.log10(min(least, 0.1)))
    bad = sum(row.verdict not in _GOOD for row in rows)
    split = min(max(bad, _MOST), 2 * _MOST)
    return (LimitChart(tuple(rows[:split]), tuple(rows[split:]), LogScale(lowest, max(2.0, most * 1.15), 0.0, 100.0)),)


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
    return f"{100.0 * fraction:.3g} %" if fraction < 10.0 else f"{fraction:.3g}×"


_TEMPLATE = """
{% import "parts.jinja" as parts %}
{% set at = chart.scale %}
{% macro axis() %}<span class="track">
{%- for x, text in chart.ticks %}<i class="tick" style="left:{{ x }}%">{{ text }}</i>{% endfor %}</span>{% endmacro %}
{% macro table(caption, rows) %}
<div class="scroll" tabindex="0" role="region" aria-label="{{ caption }}"><table class="cards"><caption>{{ caption }}</caption>
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
{{ table("Figures against their limits, nearest first: each as a share of its strictest limit, on a logarithmic axis; "
~ "left of the dashed line meets it. Bars are 95 % intervals.", chart.shown) }}
{% if chart.folded %}<details class="fold"><summary>{{ chart.folded|length }} more figures, further from their limits
</summary>{{ table("Figures further from their limits", chart.folded) }}</details>{% endif %}
"""

FIGURE = Figure(10, lambda record: limit_charts(limit_rows(record)), _TEMPLATE)
