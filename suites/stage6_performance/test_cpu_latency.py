"""The rows of the CPU engine: checked against the reference, timed with a stopping rule and by pytest-benchmark."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from _pytest.mark.structures import ParameterSet
from pytest_benchmark.fixture import BenchmarkFixture

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.network.synthetic.build import synthesize
from hardware.host import take_host
from stages.measuring import Measure
from suites.support.bench.cpu_clock import cpu_ghz
from suites.support.bench.cpu_rows import ALL_CORES, ROWS, Checked, checked
from suites.support.bench.rows import BLOCKS, POWER_LAW, SYNAPSES_PER_NEURON, Row
from suites.support.bench.steady import Rule, time_steadily
from suites.support.bench.witness import Witnessed, Work, time_witnessed
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("ST-6", "BE-5")

OTHER_ROWS = tuple(Row(20_000, 0.01, checked_bursts=10, connectivity=kind) for kind in (POWER_LAW, BLOCKS))
THREADS = sorted({1, ALL_CORES})
RULE = Rule(warmup=10, min_samples=50, max_samples=2000, max_seconds=4.0, relative_noise=0.01)
BUILD_RULE = Rule(warmup=1, min_samples=6, max_samples=10, max_seconds=6.0, relative_noise=0.01)
ROUNDS = 100


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Iterator[tuple[Checked, CpuEngine]]:
    """A CPU engine that has done the checked bursts of its row and agreed with the reference: no parity, no number."""
    row, threads = request.param
    want = checked(row)
    made = CpuEngine.create(want.network, EngineOptions(cpu=CpuOptions(threads)))
    try:
        found = recordings_differ(want.recording, made.run(row.checked_bursts, row.start))
        found += want.state.differences(slim(made.state()))
        assert not found, f"the CPU engine disagrees with the reference: {', '.join(found)}"
        yield want, made
    finally:
        made.close()


def _conditions(row: Row, threads: int) -> dict[str, object]:
    conditions: dict[str, object] = {"backend": "cpu", "device": take_host().cpu, "threads": threads, **row.conditions}
    clock = cpu_ghz()
    return conditions if clock is None else conditions | {"cpu_ghz": clock}


def _put(measure: Measure, witnessed: Witnessed, row: Row, threads: int, rate: float) -> None:
    before = f"{row.checked_bursts} bursts before equal the reference's"
    note = f"wall clock of engine.step; {before}; {witnessed.how}; fired at {rate:.3%}"
    witnessed.timed.put(
        measure, "burst.latency", "ms", _conditions(row, threads) | {"scope": "launch to download"}, note
    )


def _declared(row: Row, threads: int) -> ParameterSet:
    where = {"backend": "cpu", "device": ..., "threads": threads, "scope": "launch to download", **row.conditions}
    marks = [pytest.mark.measures("burst.latency", **where, **clock) for clock in ({}, {"cpu_ghz": ...})]
    return pytest.param((row, threads), id=f"{row.name}, {threads} threads", marks=marks)


CASES = [
    *(_declared(row, 1) for row in ROWS),
    *thinned(
        (_declared(row, n) for row in ROWS for n in THREADS if n > 1),
        "kernels of several threads for its network",
        keep=first(1),
    ),
    *thinned((_declared(row, 1) for row in OTHER_ROWS), "seconds for a law of connection", keep=first(0)),
]


@pytest.mark.parametrize("engine", CASES, indirect=True)
def test_burst(engine: tuple[Checked, CpuEngine], benchmark: BenchmarkFixture, measure: Measure) -> None:
    """A whole burst, stimulus to fired list, by engine.step."""
    want, made = engine
    witnessed = time_witnessed(made, want.reference, Work(lambda: len(made.step().fired_ids)), RULE)
    assert witnessed.problems == (), "; ".join(witnessed.problems)
    rate = witnessed.firings / want.network.neuron_count
    assert 0.5 * want.row.firing_rate < rate < 2.0 * want.row.firing_rate, f"the network fired at {rate:.3%}"
    _put(measure, witnessed, want.row, made.threads, rate)
    benchmark.extra_info.update(_conditions(want.row, made.threads))
    benchmark.pedantic(made.step, rounds=ROUNDS, warmup_rounds=5)


@pytest.mark.requirement("BE-3")
@pytest.mark.measures("network.build_time", synapses=10_000_000, connectivity="uniform", device=...)
def test_network_build(measure: Measure) -> None:
    """A synthetic network of 10 million synapses, arrays and rows ready for an engine, after one for the compiler."""
    row = ROWS[-1]

    def sample() -> float:
        start = time.perf_counter()
        network = synthesize(row.spec)
        offsets = network.row_order.offsets
        elapsed = time.perf_counter() - start
        assert int(offsets[-1]) == 10_000_000
        return elapsed

    timed = time_steadily(sample, BUILD_RULE)
    conditions = {
        "synapses": row.neurons * SYNAPSES_PER_NEURON,
        "neurons": row.neurons,
        "connectivity": row.spec.connectivity,
        "device": take_host().cpu,
    }
    note = "wall clock of synthesize and the CSR, one core, compiled before"
    timed.put(measure, "network.build_time", "s", conditions, note)
