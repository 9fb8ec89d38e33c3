"""One row of the latency table on a GPU: checked against the CPU engine, timed, and checked again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from burstproof.burst.cpu import CpuEngine
from burstproof.burst.engine import Engine, EngineOptions, Record, Stimulus, StimulusPlan
from burstproof.kernels.device import BufferSpec, DeviceRuntime
from burstproof.network.synthetic import synthesize
from suites.stage5_parity.large import slim
from suites.stage5_parity.simulator_check import recordings_differ
from suites.stage6_performance.rows import Row
from suites.stage6_performance.steady import Rule, Timed, Watch, time_steadily

if TYPE_CHECKING:
    from burstproof.burst.cuda.engine import CudaEngine

RESIDENT = "device-resident"
STEP = "step"
DOWNLOAD = "launch to download"
COLD_DOWNLOAD = "launch to download, cold L2"
STIMULUS_DOWNLOAD = "stimulus to download"

TRAIN_RULE = Rule(warmup=1, min_samples=10, max_samples=40, max_seconds=3.0)
STEP_RULE = Rule(warmup=20, min_samples=50, max_samples=1500, max_seconds=1.5)
CPU_RULE = Rule(warmup=2, min_samples=10, max_samples=60, max_seconds=1.5)

_SAMPLE_SECONDS = 0.05
_STIMULATED = 16
_CHECKED_AFTERWARDS = 5
_OBSERVED_BURSTS = 100
_L2_FLUSHES = 3


@dataclass(frozen=True, eq=False)
class RowResult:
    """What a row gave.

    Attributes
    ----------
    problems : tuple of str
        Where CUDA and CPU engine disagree; nothing is timed if the first check finds any.
    firing_rate : float
        Mean over the bursts around the timing.
    train : int
        Bursts per device-resident sample.
    timings : mapping of str to Timed
        By scope, in ms per burst.
    cpu : Timed or None
        One burst of the CPU engine with ``cpu_threads`` threads, in ms.
    """

    row: Row
    problems: tuple[str, ...]
    firing_rate: float = 0.0
    train: int = 0
    timings: Mapping[str, Timed] = field(default_factory=dict)
    cpu: Timed | None = None
    cpu_threads: int = 0


def measure_row(row: Row, runtime: DeviceRuntime, watch: Callable[[], Watch] | None) -> RowResult:
    """Check, time and check again; ``runtime`` is used to flush the L2 cache only."""
    with _engines(row) as (cpu, cuda):
        problems = _disagreements(cpu, cuda, row.checked_bursts, row.start)
        if problems:
            return RowResult(row, problems)
        cpu_timed = time_steadily(lambda: _wall_ms(cpu.step), CPU_RULE)
        before = _observed_rate(cuda)
        train = _train_length(cuda)
        timings = _timings(cuda, train, runtime, watch)
        rate = (before + _observed_rate(cuda)) / 2
        cpu.restore(cuda.state())
        problems = _disagreements(cpu, cuda, _CHECKED_AFTERWARDS, {})
        return RowResult(row, problems, rate, train, timings, cpu_timed, cpu.threads)


@contextmanager
def _engines(row: Row) -> Iterator[tuple[CpuEngine, CudaEngine]]:
    from burstproof.burst.cuda.engine import CudaEngine

    network = synthesize(row.spec)
    cpu = CpuEngine.create(network, EngineOptions())
    try:
        cuda = CudaEngine.create(network, EngineOptions())
        try:
            yield cpu, cuda
        finally:
            cuda.close()
    finally:
        cpu.close()


def _disagreements(cpu: CpuEngine, cuda: CudaEngine, bursts: int, plan: StimulusPlan) -> tuple[str, ...]:
    place = f"bursts {cpu.burst_count + 1} to {cpu.burst_count + bursts}"
    found = recordings_differ(cpu.run(bursts, plan), cuda.run(bursts, plan))
    found += slim(cpu.state()).differences(slim(cuda.state()))
    return tuple(f"{place}: {name}" for name in found)


def _observed_rate(engine: Engine) -> float:
    counts = engine.run(_OBSERVED_BURSTS, record=Record.COUNTS).fired_counts
    return float(counts.mean()) / engine.network.neuron_count


def _train_length(engine: Engine) -> int:
    """Bursts that take long enough for the host's share to vanish."""
    bursts = 200
    engine.run(bursts, record=Record.NONE)
    per_burst = _wall_ms(lambda: engine.run(bursts, record=Record.NONE)) / 1e3 / bursts
    return int(np.clip(_SAMPLE_SECONDS / per_burst, 50, 5000))


def _wall_ms(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - start)


def _timings(
    engine: CudaEngine, train: int, runtime: DeviceRuntime, watch: Callable[[], Watch] | None
) -> dict[str, Timed]:
    ids = np.arange(_STIMULATED, dtype=np.uint32) * np.uint32(engine.network.neuron_count // _STIMULATED)
    stimulus = Stimulus(ids, np.ones(_STIMULATED, np.float32))
    flush = _l2_flush(runtime)

    def cold() -> float:
        flush()
        return _wall_ms(engine.step)

    def resident() -> float:
        return _wall_ms(lambda: engine.run(train, record=Record.NONE)) / train

    return {
        RESIDENT: time_steadily(resident, TRAIN_RULE, watch),
        STEP: time_steadily(lambda: _wall_ms(lambda: engine.run(1, record=Record.NONE)), STEP_RULE, watch),
        DOWNLOAD: time_steadily(lambda: _wall_ms(engine.step), STEP_RULE, watch),
        COLD_DOWNLOAD: time_steadily(cold, STEP_RULE, watch),
        STIMULUS_DOWNLOAD: time_steadily(lambda: _wall_ms(lambda: engine.step(stimulus)), STEP_RULE, watch),
    }


def _l2_flush(runtime: DeviceRuntime) -> Callable[[], None]:
    """Writes three times the L2 cache and waits, so that nothing of the network is left in it."""
    spec = BufferSpec("l2_flush", max(1, _L2_FLUSHES * runtime.l2_bytes), np.dtype(np.uint8))
    buffer, stream = runtime.allocate([spec])[spec.name], runtime.stream()

    def flush() -> None:
        runtime.fill(buffer, 1, stream)
        stream.synchronize()

    return flush
