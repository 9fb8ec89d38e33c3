"""One row of the latency table on a GPU: checked against a trusted engine, timed, and checked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceRuntime
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, CudaOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.state import EngineState, Record, Recording, Stimulus, StimulusPlan
from suites.support.bench.drawn_reference import DrawnReference
from suites.support.bench.energy import Energy, energy_of
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.rows import CUDA_ROWS, OTHER_ROWS, PLASTIC, UNIFORM, Row
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.bench.timers import clock
from suites.support.bench.witness import Work, time_witnessed
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

RESIDENT = "device-resident"
STEP = "step"
DOWNLOAD = "launch to download"
COLD_DOWNLOAD = "launch to download, cold L2"
STIMULUS_DOWNLOAD = "stimulus to download"

TRAIN_RULE = Rule(warmup=1, min_samples=10, max_samples=40, max_seconds=3.0)
KIND_RULE = Rule(warmup=1, min_samples=12, max_samples=20, max_seconds=1.0)
STEP_RULE = Rule(warmup=20, min_samples=50, max_samples=1500, max_seconds=1.5)
CPU_RULE = Rule(warmup=2, min_samples=10, max_samples=60, max_seconds=1.5)

EVERY_SCOPE = (RESIDENT, STEP, DOWNLOAD, COLD_DOWNLOAD, STIMULUS_DOWNLOAD)

LARGE_NEURONS = 10_000_000
"""Above it, a burst takes so long that launch and stimulus do not show."""

_SAMPLE_SECONDS = 0.05
_STIMULATED = 16
_OBSERVED_BURSTS = 200
_L2_FLUSHES = 3
_HUGE_NEURONS = 10_000_000
_WITNESSED_NEURONS = 500_000
"""Uniform rows up to this size are timed with a witness; the states that it takes of others would need minutes."""

GENERAL = EngineOptions(cpu=CpuOptions(specialise=False))
"""The judge of a kind does not compile for it: it is not timed."""


class Judge(Protocol):
    """What a row is checked against: the CPU engine, or the implicit reference."""

    burst_count: int

    def run(self, bursts: int, plan: StimulusPlan = ..., record: Record = ...) -> Recording: ...

    def state(self) -> EngineState: ...

    def restore(self, state: EngineState) -> None: ...


@dataclass(frozen=True, eq=False)
class RowResult:
    """What a row gave.

    Attributes
    ----------
    problems : tuple of str
        Where the CUDA engine and its judge disagree; nothing is timed if the first check finds any.
    firing_rate, events : float
        Share of the neurons that fired, and contributions per burst: means over the bursts around the timing.
    train : int
        Bursts per device-resident sample.
    timings : mapping of str to Timed
        By scope, in ms per burst.
    cpu : Timed or None
        One burst of the CPU engine with ``cpu_threads`` threads, in ms; ``None`` where it was not the judge.
    """

    row: Row
    problems: tuple[str, ...]
    firing_rate: float = 0.0
    train: int = 0
    timings: Mapping[str, Timed] = field(default_factory=dict)
    cpu: Timed | None = None
    cpu_threads: int = 0
    events: float = 0.0
    energy: Energy | None = None

    @property
    def checked(self) -> str:
        """What was checked, in one clause."""
        drawn = "the implicit reference's" if self.row.kind == UNIFORM else "those of the reference that draws its rows"
        judge = drawn if self.row.generated else "the CPU engine's"
        return f"{self.row.checked_bursts} bursts before and {self.row.checked_afterwards} after equal {judge}"


def scopes_of(row: Row) -> tuple[str, ...]:
    """What is timed of a row: everything for the table, the bare burst for points of the curves."""
    if row not in (*CUDA_ROWS, *OTHER_ROWS):
        return (RESIDENT,)
    return (RESIDENT, DOWNLOAD) if row.neurons > LARGE_NEURONS else EVERY_SCOPE


def measure_row(
    row: Row,
    runtime: DeviceRuntime,
    watch: Callable[[], Watch] | None,
    scopes: tuple[str, ...] = EVERY_SCOPE,
    choice: ShardingChoice | None = None,
) -> RowResult:
    """Check, time and check again; ``runtime`` is used to flush the L2 cache only.

    ``choice`` puts the row on several devices.

    Raises
    ------
    OutOfMemoryError
        The card cannot hold the network.
    ThrottledError
        The card was throttled in every attempt.
    """
    with _engines(row, choice) as (judge, cuda):
        learns = row.kind == PLASTIC
        problems = disagreements(judge, cuda, row.checked_bursts, row.start, weights=learns)
        if problems:
            return RowResult(row, problems)
        timed = isinstance(judge, CpuEngine) and row.kind == UNIFORM
        cpu, threads = (judge, judge.threads) if isinstance(judge, CpuEngine) and timed else (None, 0)
        cpu_timed = time_steadily(lambda: _wall_ms(cpu.step), CPU_RULE) if cpu else None
        before = _observed(row, cuda)
        train = _batch_length(cuda)
        works = _works(cuda, train, runtime, scopes)
        doubts: tuple[str, ...] = ()
        if isinstance(judge, CpuEngine) and row.kind == UNIFORM and row.neurons <= _WITNESSED_NEURONS:
            seen = {scope: time_witnessed(cuda, judge, work, _rule(row, scope), watch) for scope, work in works.items()}
            timings = {scope: one.timed for scope, one in seen.items()}
            doubts = tuple(f"{scope}: {problem}" for scope, one in seen.items() for problem in one.problems)
        else:
            timings = {scope: time_steadily(_sample(work), _rule(row, scope), watch) for scope, work in works.items()}
        energy = energy_of(timings[RESIDENT], train, _rule(row, RESIDENT)) if RESIDENT in timings else None
        rate, events = (before + _observed(row, cuda)) / 2
        judge.restore(cuda.state())
        problems = doubts + disagreements(judge, cuda, row.checked_afterwards, {}, weights=learns)
        return RowResult(row, problems, rate, train, timings, cpu_timed, threads, events, energy)


@contextmanager
def _engines(
    row: Row, choice: ShardingChoice | None
) -> Iterator[tuple[CpuEngine | ImplicitReference | DrawnReference, CudaEngine]]:
    from burstproof.engine.cuda.engine import CudaEngine

    told = EngineOptions(cuda=CudaOptions(firing_rate=row.firing_rate))
    if row.generated:
        cuda = CudaEngine.from_spec(row.spec, told, choice)
        try:
            judge = ImplicitReference if row.kind == UNIFORM else DrawnReference
            yield judge(row.spec, cuda.fixed_point), cuda
        finally:
            cuda.close()
        return
    network = row.network()
    options = EngineOptions() if row.kind == UNIFORM else GENERAL
    split = () if choice is None else (make_partition(network, len(choice.devices), choice.strategy), choice)
    with ThreadPoolExecutor(1) as pool:  # both read the same network for seconds
        judging = pool.submit(CpuEngine.create, network, options)
        cuda = CudaEngine.create(network, told, *split)
    with closing(cuda), closing(judging.result()) as cpu:
        yield cpu, cuda


def disagreements(
    judge: Judge, cuda: Engine, bursts: int, plan: StimulusPlan, *, weights: bool = False
) -> tuple[str, ...]:
    """Run both ``bursts`` bursts and name what differs, in the recordings and in the states afterwards.

    The states are compared without the columns of the synapses, but where ``weights`` learn.
    """
    kept = (lambda state: state) if weights else slim
    place = f"bursts {judge.burst_count + 1} to {judge.burst_count + bursts}"
    found = recordings_differ(judge.run(bursts, plan), cuda.run(bursts, plan))
    found += kept(judge.state()).differences(kept(cuda.state()))
    return tuple(f"{place}: {name}" for name in found)


def _observed(row: Row, engine: Engine) -> npt.NDArray[np.float64]:
    """Share of the neurons that fires in a burst, and what they contribute."""
    rows = engine.network.synapses.source_neurons
    if not len(rows):
        fired = float(engine.run(_OBSERVED_BURSTS, record=Record.COUNTS).fired_counts.mean())
        return np.array([fired / row.neurons, fired * row.synapses_per_neuron])
    recording = engine.run(_OBSERVED_BURSTS, record=Record.FIRED)
    degrees = np.diff(engine.network.row_order.offsets)
    events = float(degrees[recording.fired_ids].sum()) / _OBSERVED_BURSTS
    return np.array([len(recording.fired_ids) / _OBSERVED_BURSTS / row.neurons, events])


def _batch_length(engine: Engine) -> int:
    """Bursts that take long enough for the host's share to vanish."""
    bursts = 50 if engine.network.neuron_count > _HUGE_NEURONS else 200
    engine.run(bursts, record=Record.NONE)
    per_burst = _wall_ms(lambda: engine.run(bursts, record=Record.NONE)) / 1e3 / bursts
    return int(np.clip(_SAMPLE_SECONDS / per_burst, 50, 5000))


def _wall_ms(work: Callable[[], object]) -> float:
    start = clock()
    work()
    return 1e3 * (clock() - start)


def _rule(row: Row, scope: str) -> Rule:
    if scope != RESIDENT:
        return STEP_RULE
    return TRAIN_RULE if row.kind == UNIFORM else KIND_RULE


def _sample(work: Work) -> Callable[[], float]:
    """Times a call of ``work``: ms per burst."""

    def sample() -> float:
        work.prepare()
        return _wall_ms(work.do) / work.bursts

    return sample


def _works(engine: CudaEngine, train: int, runtime: DeviceRuntime, scopes: tuple[str, ...]) -> dict[str, Work]:
    """What is timed in each scope."""
    ids = np.arange(_STIMULATED, dtype=np.uint32) * np.uint32(engine.network.neuron_count // _STIMULATED)
    stimulus = Stimulus(ids, np.ones(_STIMULATED, np.float32))

    def silent(bursts: int) -> Work:
        def run() -> None:
            engine.run(bursts, record=Record.NONE)

        return Work(run, bursts)

    step = Work(lambda: len(engine.step().fired_ids))
    works = {
        RESIDENT: silent(train),
        STEP: silent(1),
        DOWNLOAD: step,
        COLD_DOWNLOAD: replace(step, prepare=_l2_flush(runtime)),
        STIMULUS_DOWNLOAD: Work(lambda: len(engine.step(stimulus).fired_ids), stimulus=stimulus),
    }
    return {scope: works[scope] for scope in scopes}


def _l2_flush(runtime: DeviceRuntime) -> Callable[[], None]:
    """Writes three times the L2 cache and waits, so that nothing of the network is left in it."""
    spec = BufferSpec("l2_flush", max(1, _L2_FLUSHES * runtime.l2_bytes), np.dtype(np.uint8))
    buffer, stream = runtime.allocate([spec])[spec.name], runtime.stream()

    def flush() -> None:
        runtime.fill(buffer, 1, stream)
        stream.synchronize()

    return flush
