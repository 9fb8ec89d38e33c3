"""The timeline of copies and bursts, laid out from the spans that a run measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from reports import units
from reports.measurement import Measurement
from reports.record import RunRecord
from reports.rows import number

SPAN = "timeline.span"
"""Name of the measurements that are spans: their length, with the conditions ``lane`` and ``start_us``."""

_LEAST_WIDTH = 1.0
_TICKS = 5


@dataclass(frozen=True)
class Bar:
    """A span in pixels; ``text`` says what it is."""

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
    """Rows over one axis of time."""

    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    left: float = 150.0
    right: float = 980.0
    step: float = 30.0

    @property
    def height(self) -> float:
        """Where the axis lies."""
        return 12.0 + self.step * len(self.lanes)


def timeline(record: RunRecord) -> Timeline | None:
    """The timeline of a run; ``None`` without spans."""
    spans = list(_spans(m for case in record.cases for m in case.measurements if m.name == SPAN))
    if not spans:
        return None
    empty = Timeline((), ())
    first, last = min(start for _, start, _ in spans), max(start + length for _, start, length in spans)
    scale = (empty.right - empty.left) / max(last - first, 1e-9)
    lanes = []
    for style, name in enumerate(dict.fromkeys(lane for lane, _, _ in spans)):
        bars = tuple(
            Bar(
                round(empty.left + (start - first) * scale, 1),
                round(max(length * scale, _LEAST_WIDTH), 1),
                f"{name}: {units.readable(length, 'us')} from {units.readable(start - first, 'us')} on",
            )
            for lane, start, length in spans
            if lane == name
        )
        lanes.append(Lane(name, 12.0 + empty.step * style, style, bars))
    ticks = ((last - first) * index / _TICKS for index in range(_TICKS + 1))
    return Timeline(
        tuple(lanes), tuple((round(empty.left + tick * scale, 1), units.readable(tick, "us")) for tick in ticks)
    )


def _spans(measurements: Iterable[Measurement]) -> Iterable[tuple[str, float, float]]:
    """Lane, start and length in microseconds of what can be drawn."""
    for measurement in measurements:
        start, length = number(measurement, "start_us"), measurement.value
        drawn = length is not None and math.isfinite(length) and length >= 0.0
        if start is not None and length is not None and drawn and units.dimension(measurement.unit) == "time":
            yield str(measurement.conditions.get("lane", "")), start, units.convert(length, measurement.unit, "us")
