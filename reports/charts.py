"""Geometry of the charts: scales, ticks and marks as numbers; the templates only draw them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from reports import units


@dataclass(frozen=True)
class LogScale:
    """Maps ``low`` ... ``high`` (positive) to ``start`` ... ``end`` pixels; what lies outside goes to the edge."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Pixel of ``value``, rounded to a tenth."""
        clamped = min(max(value, self.low), self.high)
        share = math.log(clamped / self.low) / math.log(self.high / self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> tuple[float, ...]:
        """Powers of ten within the scale, or 1-2-5 steps where those are fewer than three."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        tens = [10.0**power for power in powers]
        steps = tens if sum(self._holds(tick) for tick in tens) >= 3 else [t * m for t in tens for m in (1, 2, 5)]
        return tuple(tick for tick in steps if self._holds(tick))

    def _holds(self, tick: float) -> bool:
        return self.low * 0.999 <= tick <= self.high * 1.001


@dataclass(frozen=True)
class LimitMark:
    """One judged figure as a fraction of its limit, with its interval; beyond 1 misses it."""

    label: str
    detail: str
    verdict: str
    y: float
    x: float
    x_low: float
    x_high: float
    text: str


@dataclass(frozen=True)
class LimitChart:
    """Figures against their limits on one logarithmic axis; ``x_limit`` is where the limit lies."""

    marks: tuple[LimitMark, ...]
    ticks: tuple[tuple[float, str], ...]
    x_limit: float
    left: float
    right: float
    height: float


@dataclass(frozen=True)
class LimitRow:
    """Input of :func:`limit_chart`: value and interval divided by the limit (inverted for lower limits)."""

    label: str
    detail: str
    verdict: str
    fraction: float
    low: float
    high: float


def limit_chart(rows: Sequence[LimitRow]) -> LimitChart | None:
    """Lay out figures against their limits; ``None`` without rows."""
    if not rows:
        return None
    left, right, step = 330.0, 820.0, 26.0
    least = min(row.low for row in rows)
    most = max(row.high for row in rows)
    scale = LogScale(10.0 ** math.floor(math.log10(min(least, 0.1))), max(2.0, most * 1.15), left, right)
    marks = tuple(
        LimitMark(
            row.label,
            row.detail,
            row.verdict,
            round(30.0 + step * index, 1),
            scale(row.fraction),
            scale(row.low),
            scale(row.high),
            _share(row.fraction),
        )
        for index, row in enumerate(rows)
    )
    ticks = tuple((scale(tick), _share(tick)) for tick in scale.ticks())
    return LimitChart(marks, ticks, scale(1.0), left, right, 30.0 + step * len(rows))


def _share(fraction: float) -> str:
    return f"{100.0 * fraction:.3g} %" if fraction < 10.0 else f"{fraction:.3g}x"


@dataclass(frozen=True)
class Series:
    """A line of a chart: ``points`` are (x, y, label) in pixels, ``style`` its number among the lines."""

    name: str
    style: int
    points: tuple[tuple[float, float, str], ...]
    label_y: float

    @property
    def path(self) -> str:
        """The line as an SVG path."""
        return "M" + " L".join(f"{x} {y}" for x, y, _ in self.points)


@dataclass(frozen=True)
class LineChart:
    """Lines over two logarithmic axes; ``axis`` says what lies across."""

    title: str
    axis: str
    series: tuple[Series, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    left: float = 70.0
    right: float = 560.0
    top: float = 16.0
    bottom: float = 300.0


def line_chart(
    lines: dict[str, list[tuple[float, float]]], y_unit: str, title: str, axis: str = "neurons"
) -> LineChart | None:
    """Lay out lines of positive (x, y); ``None`` unless some line has two points."""
    if not any(len(points) > 1 for points in lines.values()):
        return None
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    chart = LineChart(title, axis, (), (), ())
    across = LogScale(min(xs), max(max(xs), min(xs) * 2.0), chart.left + 12, chart.right)
    down = LogScale(min(ys) / 1.6, max(ys) * 1.6, chart.bottom, chart.top)
    ends = _spread([down(sorted(points)[-1][1]) for points in lines.values()], 17.0)
    series = tuple(
        Series(
            name,
            style,
            tuple(
                (across(x), down(y), f"{units.shown(x)} {axis}: {units.readable(y, y_unit)}") for x, y in sorted(points)
            ),
            end,
        )
        for (style, (name, points)), end in zip(enumerate(lines.items()), ends, strict=True)
    )
    x_ticks = tuple((across(x), units.shown(x)) for x in sorted(set(xs)))
    y_ticks = tuple((down(tick), units.readable(tick, y_unit)) for tick in down.ticks())
    return LineChart(title, axis, series, _apart(x_ticks, 44.0), y_ticks)


def _apart(ticks: Sequence[tuple[float, str]], gap: float) -> tuple[tuple[float, str], ...]:
    """Drop ticks that would write over the one before."""
    kept: list[tuple[float, str]] = []
    for tick in ticks:
        if not kept or tick[0] - kept[-1][0] >= gap:
            kept.append(tick)
    return tuple(kept)


def _spread(heights: Sequence[float], gap: float) -> list[float]:
    """Move labels down until neighbours are ``gap`` apart."""
    placed = list(heights)
    order = sorted(range(len(placed)), key=placed.__getitem__)
    for above, below in pairwise(order):
        placed[below] = max(placed[below], placed[above] + gap)
    return placed


def sparkline(samples: Sequence[float], width: float = 120.0, height: float = 22.0) -> str:
    """Samples in the order taken as an SVG path; empty for fewer than two. Long series keep each bucket's extremes."""
    if len(samples) < 2:
        return ""
    kept = _thinned(samples, int(width))
    low, high = min(kept), max(kept)
    span = (high - low) or 1.0
    step = width / (len(kept) - 1)
    points = (
        f"{index * step:.1f} {height - 2 - (value - low) / span * (height - 4):.1f}" for index, value in enumerate(kept)
    )
    return "M" + " L".join(points)


def _thinned(samples: Sequence[float], most: int) -> list[float]:
    if len(samples) <= most:
        return list(samples)
    size = math.ceil(2 * len(samples) / most)
    buckets = [samples[start : start + size] for start in range(0, len(samples), size)]
    return [value for bucket in buckets for value in (min(bucket), max(bucket))]
