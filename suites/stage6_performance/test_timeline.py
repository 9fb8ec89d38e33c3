"""Stimulus and fired lists cross the link while bursts run: the timeline, on a GPU and by hand (BE-8)."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest

from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.state import Stimulus
from burstproof.network.synthetic.build import initial_stimulus
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.cuda_bench import disagreements
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.rows import Row
from suites.support.bench.timeline import BURSTS, DOWNLOAD, UPLOAD, Span, TimelineRuntime, joined, overlap

pytestmark = pytest.mark.requirement("BE-8", "ST-6")

ROW = Row(500_000, 0.01)
TRAIN, CHECKED, DRAWN = 40, 80, 320
FORCED = 500


def _plan(first: int, bursts: int) -> dict[int, Stimulus]:
    """The start at the firing rate, then 500 forced firings in every burst."""
    rng = np.random.default_rng(first)
    plan = {b: Stimulus(forced=rng.choice(ROW.neurons, FORCED).astype(np.uint32)) for b in range(first, first + bursts)}
    return {1: Stimulus(forced=initial_stimulus(ROW.spec)), **plan} if first == 2 else plan


@pytest.fixture
def spans() -> tuple[Span, ...]:
    """The timeline of eight trains with stimulus in every burst, of an engine that agreed over two trains before."""
    from burstproof.device.open import open_device
    from burstproof.engine.cuda.engine import CudaEngine

    runtime = TimelineRuntime(open_device(0))
    options = EngineOptions(cuda=CudaOptions(batch_length=TRAIN))
    with closing(CudaEngine.from_spec(ROW.spec, options, runtime=runtime)) as engine:  # type: ignore[arg-type]
        judge = ImplicitReference(ROW.spec, engine.fixed_point)
        problems = disagreements(judge, engine, CHECKED, _plan(2, CHECKED))
        assert problems == (), problems[0]
        engine.run(DRAWN, _plan(engine.burst_count + 1, DRAWN))
        plan = _plan(engine.burst_count + 1, DRAWN)
        runtime.begin()
        engine.run(DRAWN, plan)
        return runtime.spans()


@pytest.mark.gate("gpu")
@pytest.mark.measures("streams.overlap", backend="cuda", gpus=1, device=..., copy=[UPLOAD, DOWNLOAD])
@pytest.mark.measures("timeline.span", lane=[UPLOAD, BURSTS, DOWNLOAD])
def test_copies_overlap_bursts(card: Card, spans: tuple[Span, ...], measure: Measure) -> None:
    """Share of the copies' device time during which bursts ran, and every span for the timeline of the report."""
    conditions = {"backend": "cuda", "gpus": 1, "device": card.runtime.name, **ROW.conditions}
    note = f"{DRAWN} bursts in trains of {TRAIN}, {FORCED} forced firings in each; timing events around every copy"
    for lane in (UPLOAD, DOWNLOAD):
        assert any(span.lane == lane for span in spans), f"nothing was copied: {lane}"
        measure(
            "streams.overlap", 100.0 * overlap(spans, lane), "%", conditions={**conditions, "copy": lane}, note=note
        )
    for span in spans:
        where = {"lane": span.lane, "start_us": round(span.start_us, 1)}
        measure("timeline.span", span.length_us, "us", conditions=where)


@pytest.mark.not_proof
def test_overlap_by_hand() -> None:
    """A copy half within a burst, one between bursts, one over two bursts."""
    bursts = [Span(BURSTS, 0.0, 10.0), Span(BURSTS, 12.0, 20.0)]
    copies = [Span(DOWNLOAD, 5.0, 15.0), Span(DOWNLOAD, 20.0, 30.0), Span(UPLOAD, 1.0, 3.0)]
    assert overlap([*bursts, *copies], DOWNLOAD) == pytest.approx((5 + 3) / 20)
    assert overlap([*bursts, *copies], UPLOAD) == 1.0
    assert overlap(copies, UPLOAD) == 0.0
    assert overlap(bursts, UPLOAD) == 0.0


@pytest.mark.not_proof
def test_neighbours_are_joined() -> None:
    spans = [Span(UPLOAD, 50.0, 60.0), Span(UPLOAD, 0.0, 2.0), Span(BURSTS, 1.0, 5.0), Span(BURSTS, 5.0, 9.0)]
    assert joined([*spans, Span(UPLOAD, 4.0, 6.0)], 3.0) == (
        Span(UPLOAD, 0.0, 6.0),
        Span(BURSTS, 1.0, 5.0),
        Span(BURSTS, 5.0, 9.0),
        Span(UPLOAD, 50.0, 60.0),
    )


class FakeEvent:
    def __init__(self, device: FakeDevice) -> None:
        self._device = device
        self.at = -1.0

    def record(self, stream: object) -> None:
        self.at = self._device.now_ms

    def synchronize(self) -> None:
        assert self.at >= 0.0

    def elapsed_ms(self, since: FakeEvent) -> float:
        return self.at - since.at


class FakeDevice:
    """A runtime on which everything takes one millisecond, one after the other."""

    name = "fake"

    def __init__(self) -> None:
        self.now_ms = 0.0
        self.done: list[str] = []

    def event(self, timing: bool = False) -> FakeEvent:
        assert timing
        return FakeEvent(self)

    def stream(self) -> object:
        return object()

    def work(self, what: str) -> None:
        self.now_ms += 1.0
        self.done.append(what)

    def upload(self, *details: Any) -> None:
        self.work("upload")

    def download(self, *details: Any) -> None:
        self.work("download")

    def capture(self, launch: Any) -> FakeDevice:
        return self

    def launch(self, stream: object) -> None:
        self.work("graph")


@pytest.mark.not_proof
def test_the_runtime_marks_what_passes_through() -> None:
    """Copies and graphs between begin and spans are marked, all is passed on, and nothing is marked outside."""
    device = FakeDevice()
    timeline, stream, array = TimelineRuntime(device), object(), np.zeros(1)  # type: ignore[arg-type]
    graph = timeline.capture(lambda queue: None)
    timeline.upload(None, array, stream)  # type: ignore[arg-type]
    assert timeline.spans() == ()
    timeline.begin()
    timeline.upload(None, array, stream)  # type: ignore[arg-type]
    graph.launch(stream)  # type: ignore[arg-type]
    timeline.download(array, None, stream)  # type: ignore[arg-type]
    assert timeline.spans() == (Span(UPLOAD, 0, 1000), Span(BURSTS, 1000, 2000), Span(DOWNLOAD, 2000, 3000))
    graph.launch(stream)  # type: ignore[arg-type]
    assert timeline.spans() == ()
    assert device.done == ["upload", "upload", "graph", "download", "graph"]
    assert timeline.name == "fake"
