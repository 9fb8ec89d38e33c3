"""Copies and bursts over time, laid out from the spans that a run measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from reports.drawing import Figure
from reports.values import units
from reports.values.measurement import SPAN
from reports.values.record import RunRecord

_LEAST_WIDTH = 1.0
_TICKS = 5
_LEFT, _RIGHT, _STEP = 150.0, 560.0, 30.0


@dataclass(frozen=True)
class Bar:
    """A span in pixels; ``text`` describes it."""

    x: float
    width: float
    text: str


@dataclass(frozen=True)
class Lane:
    """One row of the timeline."""

    name: str
    y: float
    style: int
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Timeline:
    """Lanes over one axis of time, which is drawn at ``height`` and begins at ``left``."""

    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    height: float
    left: float = _LEFT


def timelines(record: RunRecord) -> tuple[Timeline, ...]:
    """The timeline of a run; none without spans."""
    spans = list(_spans(record))
    if not spans:
        return ()
    first, last = min(start for _, start, _ in spans), max(start + length for _, start, length in spans)
    scale = (_RIGHT - _LEFT) / max(last - first, 1e-9)
    lanes: dict[str, list[Bar]] = {}
    for lane, start, length in spans:
        x, width = round(_LEFT + (start - first) * scale, 1), round(max(length * scale, _LEAST_WIDTH), 1)
        text = f"{lane}: {units.readable(length, 'us')} from {units.readable(start - first, 'us')} on"
        lanes.setdefault(lane, []).append(Bar(x, width, text))
    return (
        Timeline(
            tuple(Lane(name, 12.0 + _STEP * i, i, tuple(bars)) for i, (name, bars) in enumerate(lanes.items())),
            tuple((round(_LEFT + tick * scale, 1), units.readable(tick, "us")) for tick in _ticks(last - first)),
            12.0 + _STEP * len(lanes),
        ),
    )


def _ticks(length: float) -> Iterable[float]:
    """Multiples of 1, 2 or 5 times a power of ten from 0 to ``length``, at most ``_TICKS`` and one."""
    if length <= 0.0:
        return (0.0,)
    power = 10.0 ** math.floor(math.log10(length / _TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= length / _TICKS * (1 - 1e-9))
    return (step * index for index in range(int(length / step * (1 + 1e-9)) + 1))


def _spans(record: RunRecord) -> Iterable[tuple[str, float, float]]:
    """Lane, start and length, in microseconds, of each span that can be drawn."""
    for measurement in record.measured(SPAN):
        start, length = measurement.number("start_us"), measurement.in_unit("us")
        if start is not None and length is not None and length >= 0.0:
            yield str(measurement.conditions.get("lane", "")), start, length


_TEMPLATE = """
<figure class="chart">
<figcaption><strong>Copies and bursts on the device</strong>: stimulus goes up and fired lists come down while
bursts run.</figcaption>
<svg viewBox="0 0 600 {{ chart.height + 30 }}" width="600" role="img" aria-labelledby="timeline-title timeline-desc">
<title id="timeline-title">Timeline of copies and bursts</title>
<desc id="timeline-desc">
{%- for lane in chart.lanes %}{{ lane.name }}: {{ lane.bars|length }} spans. {% endfor %}</desc>
{% for x, text in chart.ticks %}
<line class="grid" x1="{{ x }}" x2="{{ x }}" y1="8" y2="{{ chart.height }}"/>
<text class="axis" x="{{ x }}" y="{{ chart.height + 18 }}" text-anchor="middle">{{ text }}</text>
{% endfor %}
{% for lane in chart.lanes %}
<text x="{{ chart.left - 12 }}" y="{{ lane.y + 16 }}" text-anchor="end">{{ lane.name }}</text>
{% for bar in lane.bars %}
<rect x="{{ bar.x }}" y="{{ lane.y }}" width="{{ bar.width }}" height="20" class="dot-{{ lane.style % 5 }}">
{#- #}<title>{{ bar.text }}</title></rect>
{%- endfor %}

{% endfor %}
</svg>
</figure>
"""

FIGURE = Figure(40, timelines, _TEMPLATE, is_chart=True)
