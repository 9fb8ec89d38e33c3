"""How the CPU engine scales with threads: the same network and bursts on 1, 2, 4 ... threads, up to the cores."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from statistics import median

import numba
import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.state import Record
from hardware.host import take_host
from stages.measuring import Measure
from suites.support.bench.cpu_rows import ALL_CORES, ROWS, checked
from suites.support.bench.rows import Row
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("ST-6", "BE-5")

SMALL, LARGE = ROWS[-1], Row(1_000_000, 0.01, checked_bursts=3)
"""A network whose burst is over before many threads have met, and one that has work for them."""
LARGE_THREADS = (1, 8, 16, 32)
"""What the large one is measured on, as far as there are cores; each takes 0.7 GB."""
LEAST_CORES = 8
BURSTS = 20
ROUNDS = 12
SETTLING_S = 0.01
STEPS = 1 << 22
"""Steps of arithmetic on each thread: some 10 ms."""


def thread_counts(cores: int) -> list[int]:
    """1, 2, 4, 8, 16 ... up to ``cores``, which is the last."""
    powers = [1 << exponent for exponent in range(cores.bit_length()) if 1 << exponent < cores]
    return [*powers, cores]


@pytest.mark.not_proof
def test_thread_counts_end_with_the_cores() -> None:
    assert thread_counts(1) == [1]
    assert thread_counts(2) == [1, 2]
    assert thread_counts(12) == [1, 2, 4, 8, 12]


@numba.njit(nogil=True)
def arithmetic(steps):
    """A chain of multiplications, which needs no memory."""
    number = np.uint64(steps)
    for _ in range(steps):
        number = number * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
    return number


@pytest.mark.measures("host.thread_speedup", device=..., threads=..., cores=...)
def test_what_the_threads_of_this_machine_allow(measure: Measure) -> None:
    """As much arithmetic on each of several threads as on one, until the slowest is done: cores may be shared."""
    counts = thread_counts(ALL_CORES)
    times: dict[int, list[float]] = {threads: [] for threads in counts}
    arithmetic(1)
    with ThreadPoolExecutor(ALL_CORES) as pool:
        for _ in range(ROUNDS):
            for threads in counts:
                start = time.perf_counter()
                results = list(pool.map(arithmetic, [STEPS] * threads))
                times[threads].append(time.perf_counter() - start)
                assert set(results) == {results[0]}
    for threads in counts:
        measure(
            "host.thread_speedup",
            threads * median(times[1]) / median(times[threads]),
            "x",
            conditions={"device": take_host().cpu, "cores": ALL_CORES, "threads": threads},
            note="the engine waits for its slowest thread in every burst, too",
        )


@pytest.fixture
def row(request: pytest.FixtureRequest) -> Row:
    """The network; the large one only where there are cores for it."""
    chosen: Row = request.param
    if chosen is LARGE and ALL_CORES < LEAST_CORES:
        pytest.skip(f"needs {LEAST_CORES} cores, {ALL_CORES} are here: on fewer the smaller network shows the same")
    return chosen


@pytest.fixture
def engines(row: Row) -> Iterator[dict[int, CpuEngine]]:
    """One engine per number of threads, each after the row's checked bursts, in which it agreed with the reference."""
    want = checked(row)
    with ExitStack() as stack:
        made = {}
        counts = [n for n in LARGE_THREADS if n <= ALL_CORES] if row is LARGE else thread_counts(ALL_CORES)
        for threads in counts:
            options = EngineOptions(cpu=CpuOptions(threads))
            engine = stack.enter_context(closing(CpuEngine.create(want.network, options)))
            found = recordings_differ(want.recording, engine.run(row.checked_bursts, row.start))
            assert not found, f"{threads} threads disagree with the reference: {', '.join(found)}"
            made[threads] = engine
        yield made


def _declared(row: Row, name: str) -> ParameterSet:
    where = {"backend": "cpu", "device": ..., "threads": ..., "cores": ..., **row.conditions}
    return pytest.param(
        row, id=name, marks=pytest.mark.measures("burst.train_latency", "burst.thread_speedup", **where)
    )


CASES = thinned(
    (_declared(SMALL, "100K"), _declared(LARGE, "1M")), "kernels of several threads for its network", keep=first(0)
)


@pytest.mark.parametrize("row", CASES, indirect=True)
def test_scaling_with_threads(row: Row, engines: dict[int, CpuEngine], measure: Measure) -> None:
    """Trains of bursts in turns, so that whatever else the machine does meets all thread counts alike.

    Before a train is timed, others are run until the helpers of the engine before, which wait for work, have left.
    """
    times: dict[int, list[float]] = {threads: [] for threads in engines}
    for _ in range(ROUNDS):
        for threads, engine in engines.items():
            began = time.perf_counter()
            while time.perf_counter() - began < SETTLING_S:
                engine.run(BURSTS, record=Record.NONE)
            start = time.perf_counter()
            engine.run(BURSTS, record=Record.NONE)
            times[threads].append(1e3 * (time.perf_counter() - start) / BURSTS)
    _run_to_the_same_burst(engines)
    alone = slim(engines[1].state())
    conditions = {"backend": "cpu", "device": take_host().cpu, "cores": ALL_CORES, **row.conditions}
    for threads, engine in engines.items():
        assert slim(engine.state()).differences(alone) == ()
        measure(
            "burst.train_latency",
            median(times[threads]),
            "ms",
            samples=times[threads],
            conditions=conditions | {"threads": threads},
            note=f"trains of {BURSTS} bursts by engine.run, in turns with the other thread counts",
        )
        measure(
            "burst.thread_speedup",
            median(times[1]) / median(times[threads]),
            "x",
            conditions=conditions | {"threads": threads},
            note="one thread's median over this one's",
        )


def _run_to_the_same_burst(engines: dict[int, CpuEngine]) -> None:
    """Faster engines did more bursts while they settled."""
    last = max(engine.burst_count for engine in engines.values())
    for engine in engines.values():
        engine.run(last - engine.burst_count, record=Record.NONE)
