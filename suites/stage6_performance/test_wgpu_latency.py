"""The third column of CPU, WGPU and CUDA: a burst of 100 K neurons on whatever adapter is there, a GPU or software."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from burstproof.engine.ask_machine import ask_wgpu
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import Record
from burstproof.engine.wgpu.engine import WgpuEngine
from stages.measuring import Measure
from suites.support.bench.cpu_rows import checked
from suites.support.bench.rows import Row
from suites.support.bench.steady import Rule, time_steadily
from suites.support.parity.backends import NEEDS_ADAPTER
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ

pytestmark = [pytest.mark.requirement("ST-6", "BE-16"), NEEDS_ADAPTER]

ROW = Row(100_000, 0.01, checked_bursts=10)
RULE = Rule(warmup=1, min_samples=10, max_samples=200, max_seconds=1.0)
TRAIN = 10


@pytest.fixture(scope="module")
def engine() -> Iterator[WgpuEngine]:
    """An engine that has done the checked bursts and agreed with the reference: no parity, no number."""
    want = checked(ROW)
    made = WgpuEngine.create(want.network, EngineOptions())
    try:
        found = recordings_differ(want.recording, made.run(ROW.checked_bursts, ROW.start))
        found += want.state.differences(slim(made.state()))
        assert not found, f"the WGPU engine disagrees with the reference: {', '.join(found)}"
        yield made
    finally:
        made.close()


def _step(engine: WgpuEngine) -> Callable[[], int]:
    return lambda: len(engine.step().fired_ids)


def _train(engine: WgpuEngine) -> Callable[[], int]:
    return lambda: int(engine.run(TRAIN, record=Record.COUNTS).fired_counts.sum())


@pytest.mark.parametrize(
    ("work", "bursts", "scope"), [(_step, 1, "launch to download"), (_train, TRAIN, "train")], ids=["step", "train"]
)
def test_burst(
    engine: WgpuEngine, work: Callable[[WgpuEngine], Callable[[], int]], bursts: int, scope: str, measure: Measure
) -> None:
    """A burst by itself with its list brought back, and one of a train of which only counts are."""
    run, first, fired = work(engine), engine.burst_count, 0

    def sample() -> float:
        nonlocal fired
        start = time.perf_counter()
        fired += run()
        return 1e3 * (time.perf_counter() - start) / bursts

    timed = time_steadily(sample, RULE)
    rate = fired / (engine.burst_count - first) / ROW.neurons
    assert 0.5 * ROW.firing_rate < rate < 2.0 * ROW.firing_rate, f"the network fired at {rate:.3%}"
    kind = next(a.kind for a in ask_wgpu().adapters if a.name == engine.adapter)
    conditions = {"backend": "wgpu", "device": engine.adapter, "adapter": kind, **ROW.conditions, "scope": scope}
    note = f"wall clock; {ROW.checked_bursts} bursts before equal the reference's; fired at {rate:.3%}"
    if kind == "CPU":
        note += "; a software adapter on the CPU"
    timed.put(measure, "burst.latency", "ms", conditions, note)
