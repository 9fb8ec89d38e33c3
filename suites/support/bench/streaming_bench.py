"""A network whose synapses lie in host memory: checked, then timed, with its link beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from burstproof.device.open import open_device
from burstproof.device.protocol import BufferSpec, DeviceRuntime
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.state import Record, Stimulus, StimulusPlan
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.link_floor import reading_ms
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.bench.timers import DeviceTimer
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

COPIED_BYTES = 1 << 28
STREAMED = EngineOptions(cuda=CudaOptions(synapse_memory=SynapseMemory.HOST))
_GIVEN = 512 << 20
"""Bytes of device memory that a network larger than them is given."""

_COPY_RULE = Rule(max_samples=100, max_seconds=1.0)
_RUN_RULE = Rule(warmup=1, min_samples=10, max_samples=40, max_seconds=3.0)
_SEED = 3
_SAMPLE_SECONDS = 0.05
_READ_BURSTS = 6
_VARIED: Mapping[str, Any] = {"weights": (1, 40), "delays": (1, 3)}


@dataclass(frozen=True)
class StreamedRow:
    """A driven network of ``neurons`` x 100 synapses; ``varied`` weights and delays make a synapse larger.

    ``given_bytes`` of device memory are all that the engine may take, and it has to find out that the synapses do not
    fit; 0 for what the device has free, with the synapses in host memory because the options say so.
    """

    neurons: int
    firing_rate: float
    varied: bool = False
    checked_bursts: int = 10
    synapses_per_neuron: int = 100
    given_bytes: int = 0

    @property
    def name(self) -> str:
        """Size, rate and kind for people."""
        given = f", {self.given_bytes >> 20} MiB given" if self.given_bytes else ""
        return f"{self.neurons:,} at {self.firing_rate:.0%}, {'varied' if self.varied else 'one value'}{given}"

    @property
    def options(self) -> EngineOptions:
        """What the engine is told about memory."""
        return EngineOptions(cuda=CudaOptions(memory_limit_bytes=self.given_bytes)) if self.given_bytes else STREAMED

    @property
    def judge(self) -> str:
        """What it is checked against: what knows constant contributions only, or the CPU engine."""
        return "cpu" if self.varied else "implicit"

    @property
    def spec(self) -> SyntheticSpec:
        """What the network is made from."""
        spec = driven_spec(self.neurons, self.synapses_per_neuron, self.firing_rate, _SEED)
        return replace(spec, **_VARIED) if self.varied else spec

    @property
    def start(self) -> StimulusPlan:
        """The forced firings that start the network at its rate."""
        spec = self.spec
        bursts = range(1, spec.longest_delay + 1)
        return {burst: Stimulus(forced=initial_stimulus(spec, burst)) for burst in bursts}


STREAMED_ROWS = (
    StreamedRow(4_000_000, 0.01),
    StreamedRow(4_000_000, 0.1),
    StreamedRow(4_000_000, 0.1, varied=True),
    StreamedRow(4_000_000, 0.01, given_bytes=_GIVEN),
)


@dataclass(frozen=True, eq=False)
class StreamedResult:
    """What a row gave.

    Attributes
    ----------
    problems : tuple of str
        Where the engine and its judge disagree; nothing is timed if there are any.
    host_bytes, device_bytes : int
        Page-locked memory that holds the synapses, and what the engine takes of the device.
    synapse_bytes : int
        Bytes of a synapse that cross the link when its source fires.
    firing_rate : float
        Mean over the bursts around the timing.
    burst : Timed or None
        Wall clock per burst in ms, in runs without results.
    reading : Timed or None
        Time in ms of reading the rows of a burst by a kernel that does nothing else.
    """

    row: StreamedRow
    problems: tuple[str, ...]
    host_bytes: int = 0
    device_bytes: int = 0
    synapse_bytes: int = 0
    firing_rate: float = 0.0
    burst: Timed | None = field(default=None)
    reading: Timed | None = field(default=None)

    @property
    def burst_bytes(self) -> float:
        """Bytes of the rows of what fires in a burst; what lines hold beside them is not counted."""
        row = self.row
        return self.firing_rate * row.neurons * row.synapses_per_neuron * self.synapse_bytes

    def gb_per_s(self, burst_ms: float) -> float:
        """Rate at which the rows crossed the link, over the whole burst."""
        return self.burst_bytes / burst_ms / 1e6


def link_gb_per_s(runtime: DeviceRuntime, watch: Callable[[], Watch] | None = None) -> Timed:
    """Rates in GB/s of a copy from page-locked host memory to the device, checked."""
    spec = BufferSpec("copied", COPIED_BYTES, np.dtype(np.uint8))
    target, stream = runtime.allocate([spec])[spec.name], runtime.stream()
    source = runtime.pinned(COPIED_BYTES, np.uint8)
    source[-1] = 7
    timer = DeviceTimer(runtime, stream, lambda queue: runtime.upload(target, source, queue))
    timed = time_steadily(lambda: COPIED_BYTES / timer() / 1e6, _COPY_RULE, watch)
    last = np.zeros(1, np.uint8)
    runtime.download(last, target, stream, COPIED_BYTES - 1)
    stream.synchronize()
    if last[0] != 7:
        raise AssertionError("the copy did not arrive, so its time means nothing")
    return timed


def measure_streamed(row: StreamedRow, watch: Callable[[], Watch] | None = None) -> StreamedResult:
    """Check ``row`` against the implicit reference or the CPU engine, then time it."""
    from burstproof.engine.cuda.engine import CudaEngine

    engine = CudaEngine.from_spec(row.spec, row.options)
    try:
        problems = _disagreements(row, engine)
        if problems:
            return StreamedResult(row, problems)
        result = timed_streamed(row, engine, watch)
        lists, arrays = _last_lists(engine), engine.memory_plan.host_buffers
    finally:
        engine.close()
    runtime = open_device(0)
    try:
        return replace(result, reading=reading_ms(runtime, arrays, row.neurons, lists, watch))
    finally:
        runtime.close()


def timed_streamed(row: StreamedRow, engine: CudaEngine, watch: Callable[[], Watch] | None = None) -> StreamedResult:
    """Time ``engine``, which runs at the rate of ``row`` already."""
    before = _observed_rate(engine)
    bursts = _bursts_per_sample(engine)
    timed = time_steadily(lambda: _wall_ms(engine, bursts), _RUN_RULE, watch)
    rate = (before + _observed_rate(engine)) / 2
    plan = engine.memory_plan
    synapse = round(plan.host_bytes / plan.synapses)
    return StreamedResult(row, (), plan.host_bytes, plan.total_bytes, synapse, rate, timed)


def _disagreements(row: StreamedRow, engine: CudaEngine) -> tuple[str, ...]:
    judge: CpuEngine | ImplicitReference
    if row.varied:
        judge = CpuEngine.create(synthesize(row.spec), EngineOptions())
    else:
        judge = ImplicitReference(row.spec, engine.fixed_point)
    found = recordings_differ(judge.run(row.checked_bursts, row.start), engine.run(row.checked_bursts, row.start))
    differences = slim(judge.state()).differences(slim(engine.state()))
    if isinstance(judge, CpuEngine):
        judge.close()
    return (*found, *differences)


def _last_lists(engine: CudaEngine) -> list[npt.NDArray[np.uint32]]:
    """What fired in each of some more bursts."""
    recording = engine.run(_READ_BURSTS)
    return np.split(recording.fired_ids, np.cumsum(recording.fired_counts)[:-1])


def _observed_rate(engine: CudaEngine) -> float:
    counts = engine.run(30, record=Record.COUNTS).fired_counts
    return float(counts.mean()) / engine.network.neuron_count


def _wall_ms(engine: CudaEngine, bursts: int) -> float:
    start = time.perf_counter()
    engine.run(bursts, record=Record.NONE)
    return 1e3 * (time.perf_counter() - start) / bursts


def _bursts_per_sample(engine: CudaEngine) -> int:
    """Bursts that take long enough for the host's share to vanish, in whole trains of eight."""
    _wall_ms(engine, 16)
    return 8 * int(np.clip(_SAMPLE_SECONDS / 8e-3 / _wall_ms(engine, 16), 2, 100))
