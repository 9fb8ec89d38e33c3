"""When copies and bursts of an engine run on the device, seen through its runtime, and how far they overlap."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceEvent, DeviceGraph, DeviceRuntime, DeviceStream, Launch

UPLOAD, BURSTS, DOWNLOAD = "stimulus up", "bursts", "fired lists down"
_JOINED_US = 20.0


@dataclass(frozen=True)
class Span:
    """Device time between two events of one stream, in microseconds from the start of the timeline."""

    lane: str
    start_us: float
    end_us: float

    @property
    def length_us(self) -> float:
        """How long it took."""
        return self.end_us - self.start_us


class TimelineRuntime:
    """A runtime that puts a timing event before and after every copy and every graph between ``begin`` and ``spans``.

    Everything else goes to ``runtime`` as it is. An event costs the stream about a microsecond.
    """

    def __init__(self, runtime: DeviceRuntime) -> None:
        self._runtime = runtime
        self._zero: DeviceEvent | None = None
        self._marks: list[tuple[str, DeviceEvent, DeviceEvent]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)

    def begin(self) -> None:
        """Start the timeline; the device should be idle."""
        self._zero = self._runtime.event(timing=True)
        self._zero.record(self._runtime.stream())
        self._marks.clear()

    def spans(self) -> tuple[Span, ...]:
        """End the timeline: all spans in the order of their starts, neighbours of one lane joined."""
        zero, self._zero = self._zero, None
        if zero is None:
            return ()
        found = []
        for lane, start, end in self._marks:
            end.synchronize()
            found.append(Span(lane, 1e3 * start.elapsed_ms(zero), 1e3 * end.elapsed_ms(zero)))
        return joined(found)

    def _marked(self, lane: str, stream: DeviceStream) -> DeviceEvent | None:
        """An event recorded now, whose partner ``_end`` records; ``None`` outside a timeline."""
        if self._zero is None:
            return None
        start, end = self._runtime.event(timing=True), self._runtime.event(timing=True)
        start.record(stream)
        self._marks.append((lane, start, end))
        return end

    def upload(self, buffer: DeviceBuffer, host: npt.NDArray[Any], stream: DeviceStream, offset: int = 0) -> None:
        """Queue a copy to the device."""
        end = self._marked(UPLOAD, stream)
        self._runtime.upload(buffer, host, stream, offset)
        if end is not None:
            end.record(stream)

    def download(self, host: npt.NDArray[Any], buffer: DeviceBuffer, stream: DeviceStream, offset: int = 0) -> None:
        """Queue a copy to the host."""
        end = self._marked(DOWNLOAD, stream)
        self._runtime.download(host, buffer, stream, offset)
        if end is not None:
            end.record(stream)

    def capture(self, launch: Launch) -> DeviceGraph:
        """A graph whose replays are marked."""
        return _MarkedGraph(self, self._runtime.capture(launch))


class _MarkedGraph:
    def __init__(self, timeline: TimelineRuntime, graph: DeviceGraph) -> None:
        self._timeline = timeline
        self._graph = graph

    def launch(self, stream: DeviceStream) -> None:
        end = self._timeline._marked(BURSTS, stream)
        self._graph.launch(stream)
        if end is not None:
            end.record(stream)


def joined(spans: Iterable[Span], gap_us: float = _JOINED_US) -> tuple[Span, ...]:
    """Spans by start; those of one lane that lie at most ``gap_us`` apart become one, bursts excepted."""
    last: dict[str, Span] = {}
    done: list[Span] = []
    for span in sorted(spans, key=lambda one: one.start_us):
        before = last.get(span.lane)
        if before is not None and span.lane != BURSTS and span.start_us - before.end_us <= gap_us:
            last[span.lane] = Span(span.lane, before.start_us, max(before.end_us, span.end_us))
            continue
        if before is not None:
            done.append(before)
        last[span.lane] = span
    return tuple(sorted((*done, *last.values()), key=lambda one: one.start_us))


def overlap(spans: Sequence[Span], lane: str) -> float:
    """Share of the time of ``lane`` during which bursts ran too, 0...1; 0 where the lane is empty.

    Spans of the bursts do not overlap each other: they share one stream.
    """
    copies = [span for span in spans if span.lane == lane]
    bursts = [span for span in spans if span.lane == BURSTS]
    total = sum(span.length_us for span in copies)
    both = sum(
        max(0.0, min(copy.end_us, burst.end_us) - max(copy.start_us, burst.start_us))
        for copy in copies
        for burst in bursts
    )
    return both / total if total > 0.0 else 0.0
