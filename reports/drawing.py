"""The type of a figure of the report, and what figures share: logarithmic axes, line charts, sparklines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports.values import units
from reports.values.record import RunRecord

Lines = Mapping[str, Sequence[tuple[float, float]]]
"""By the name of each line, its points (x, y)."""


@dataclass(frozen=True)
class Figure:
    """A figure of the report. To add one, add a module with a ``FIGURE`` to :mod:`reports.figures`.

    Attributes
    ----------
    place : int
        Figures are shown in the order of their places.
    charts : callable
        Takes a record and returns the charts to draw, laid out in pixels; none if there is nothing to draw.
    template : str
        Jinja template that draws one chart, the variable ``chart``. Values are escaped. It may import the macros of
        ``reports/templates``.
    is_chart : bool
        Whether it may be placed beside another figure; otherwise it takes the whole width.
    """

    place: int
    charts: Callable[[RunRecord], Sequence[object]]
    template: str
    is_chart: bool = False


@dataclass(frozen=True)
class LogScale:
    """Maps ``low`` ... ``high`` (positive) to ``start`` ... ``end`` pixels; values outside are clamped."""

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
        """Powers of ten within the scale; if they are fewer than three, steps of 1, 2 and 5."""
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        tens = [10.0**power for power in powers]
        steps = tens if sum(self._holds(tick) for tick in tens) >= 3 else [t * m for t in tens for m in (1, 2, 5)]
        return tuple(tick for tick in steps if self._holds(tick))

    def _holds(self, tick: float) -> bool:
        return self.low * 0.999 <= tick <= self.high * 1.001


@dataclass(frozen=True)
class Series:
    """A line of a chart: ``points`` are (x, y, label) in pixels; ``style`` is the number of the line in the chart."""

    name: str
    style: int
    points: tuple[tuple[float, float, str], ...]

    @property
    def path(self) -> str:
        """The line as an SVG path."""
        return "M" + " L".join(f"{x} {y}" for x, y, _ in self.points)


@dataclass(frozen=True)
class LineChart:
    """Lines over two logarithmic axes; ``key`` is unique on the page; ``axis`` names the x axis, in ``unit``."""

    key: str
    title: str
    axis: str
    unit: str = "1"
    series: tuple[Series, ...] = ()
    x_ticks: tuple[tuple[float, str], ...] = ()
    y_ticks: tuple[tuple[float, str], ...] = ()
    left: float = 76.0
    right: float = 560.0
    top: float = 10.0
    bottom: float = 270.0


LINE_CHART = '{% import "charts.jinja" as charts %}{{ charts.line_chart(chart) }}'
"""Template of a figure with line charts."""


def line_charts(lines: Lines, y_unit: str, empty: LineChart) -> tuple[LineChart, ...]:
    """Lay out lines of positive (x, y) in the chart ``empty``; no chart if every line has fewer than two points."""
    if not any(len(points) > 1 for points in lines.values()):
        return ()
    xs = [x for points in lines.values() for x, _ in points]
    ys = [y for points in lines.values() for _, y in points]
    across = LogScale(min(xs), max(max(xs), min(xs) * 2.0), empty.left + 12, empty.right)
    down = LogScale(min(ys) / 1.6, max(ys) * 1.6, empty.bottom, empty.top)

    def place(x: float) -> str:
        return units.shown(units.convert(x, "1", empty.unit), empty.unit)

    def label(x: float, y: float) -> str:
        return f"{place(x)} {empty.axis}: {units.readable(y, y_unit)}"

    series = tuple(
        Series(name, style, tuple((across(x), down(y), label(x, y)) for x, y in sorted(points)))
        for style, (name, points) in enumerate(lines.items())
    )
    x_ticks = _apart([(across(x), place(x)) for x in sorted(set(xs))], 64.0)
    y_ticks = tuple((down(tick), units.readable(tick, y_unit)) for tick in down.ticks())
    return (replace(empty, series=series, x_ticks=x_ticks, y_ticks=y_ticks),)


def _apart(ticks: Sequence[tuple[float, str]], gap: float) -> tuple[tuple[float, str], ...]:
    """Drop ticks whose text would overlap the one before."""
    kept: list[tuple[float, str]] = []
    for tick in ticks:
        if not kept or tick[0] - kept[-1][0] >= gap:
            kept.append(tick)
    return tuple(kept)


def sparkline(samples: Sequence[float], width: float = 120.0, height: float = 22.0) -> str:
    """Samples in the order taken as an SVG path; empty for fewer than two. Long series keep the extremes of buckets."""
    finite = [sample for sample in samples if math.isfinite(sample)]
    if len(finite) < 2:
        return ""
    kept = _thinned(finite, int(width))
    low, high = min(kept), max(kept)
    span = (high - low) or 1.0
    step = width / (len(kept) - 1)
    points = (
        f"{index * step:.1f} {height - 2 - (value - low) / span * (height - 4):.1f}" for index, value in enumerate(kept)
    )
    return "M" + " L".join(points)


def _thinned(samples: Sequence[float], most: int) -> Sequence[float]:
    if len(samples) <= most:
        return samples
    size = math.ceil(2 * len(samples) / most)
    buckets = [samples[start : start + size] for start in range(0, len(samples), size)]
    return [value for bucket in buckets for value in (min(bucket), max(bucket))]
