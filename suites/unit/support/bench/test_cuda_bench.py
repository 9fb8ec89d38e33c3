"""The bench of a row, with the CPU engine in the place of the CUDA engine: checked first, or no figure at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from burstproof.device.protocol import BufferSpec, DeviceBuffer
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.network.synthetic.build import synthesize
from stages.measuring import Measure
from suites.support.bench import cuda_bench
from suites.support.bench.cuda_bench import COLD_DOWNLOAD, EVERY_SCOPE, RESIDENT, measure_row
from suites.support.bench.drawn_reference import DrawnReference
from suites.support.bench.floors import CardLimits
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.putting import put_latency, put_scaled
from suites.support.bench.rows import Row
from suites.support.bench.steady import Rule
from suites.support.parity.cheats import CHEATS, Honest, SlowsTheClock
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("ST-6")

ROW = Row(20_000, 0.01, checked_bursts=5, generated=True)
QUICK = Rule(warmup=1, min_samples=6, max_samples=6, max_seconds=1.0)
OPTIONS = EngineOptions(cpu=CpuOptions(threads=1, specialise=False))
LIMITS = CardLimits("a card", 60 << 20, 4000.0, {20_000: 90.0}, 0.8, 16.0)


class FakeRuntime:
    """Counts the fills that flush the L2 cache."""

    l2_bytes = 1000

    def __init__(self) -> None:
        self.filled: list[int] = []
        self.waits = 0

    def allocate(self, specs: list[BufferSpec]) -> dict[str, DeviceBuffer]:
        return {spec.name: DeviceBuffer(spec, None, None) for spec in specs}

    def stream(self) -> Any:
        return SimpleNamespace(synchronize=self._wait)

    def _wait(self) -> None:
        self.waits += 1

    def fill(self, buffer: DeviceBuffer, value: int, stream: object) -> None:
        self.filled.append(buffer.spec.bytes)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[Row], None]:
    """Puts the CPU engine over a row's network in the place of the CUDA engine; the judge knows ``ROW``."""
    for name in ("TRAIN_RULE", "STEP_RULE", "CPU_RULE"):
        monkeypatch.setattr(cuda_bench, name, QUICK)
    monkeypatch.setattr(cuda_bench, "_SAMPLE_SECONDS", 1e-3)

    def use(row: Row) -> None:
        @contextmanager
        def engines(asked: Row, choice: None) -> Iterator[tuple[ImplicitReference, CpuEngine]]:
            engine = CpuEngine.create(synthesize(row.spec), OPTIONS)
            yield ImplicitReference(asked.spec, engine.fixed_point, 1), engine
            engine.close()

        monkeypatch.setattr(cuda_bench, "_engines", engines)

    return use


@pytest.mark.thorough("a second of a stand-in for a GPU")
def test_a_row_is_checked_timed_and_checked_again(stand_in: Callable[[Row], None]) -> None:
    """Every scope has its samples, the network kept its rate, and only the cold scope flushed the L2 cache."""
    stand_in(ROW)
    runtime = FakeRuntime()
    result = measure_row(ROW, runtime, None)  # type: ignore[arg-type]
    assert result.problems == ()
    assert tuple(result.timings) == EVERY_SCOPE
    assert all(len(timed.samples.values) == QUICK.max_samples for timed in result.timings.values())
    assert result.firing_rate == pytest.approx(ROW.firing_rate, rel=0.2)
    assert runtime.filled == [3 * runtime.l2_bytes] * (QUICK.warmup + QUICK.max_samples)
    assert runtime.waits == len(runtime.filled)
    assert result.cpu is None
    assert "implicit reference" in result.checked


def test_scopes_can_be_chosen(stand_in: Callable[[Row], None]) -> None:
    stand_in(ROW)
    runtime = FakeRuntime()
    assert tuple(measure_row(ROW, runtime, None, (RESIDENT,)).timings) == (RESIDENT,)  # type: ignore[arg-type]
    assert runtime.filled == []


@pytest.mark.parametrize(
    "cheat",
    thinned([Honest, *(cheat for cheat in CHEATS if cheat is not SlowsTheClock)], "a cheat of many", keep=first(2)),
    ids=lambda cheat: cheat.__name__,
)
def test_a_row_is_timed_with_a_witness(
    cheat: type[Honest], stand_in: Callable[[Row], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that cheats while it is timed, after it was checked, has no figure; the engine itself has all."""
    stand_in(ROW)

    @contextmanager
    def engines(asked: Row, choice: None) -> Iterator[tuple[CpuEngine, Honest]]:
        network = synthesize(asked.spec)
        with CpuEngine.create(network, OPTIONS) as judge, cheat(CpuEngine.create(network, OPTIONS)) as engine:
            yield judge, engine

    monkeypatch.setattr(cuda_bench, "_engines", engines)
    monkeypatch.setattr(cuda_bench, "_batch_length", lambda engine: 20)
    result = measure_row(replace(ROW, neurons=7000, generated=False), FakeRuntime(), None)  # type: ignore[arg-type]
    assert (result.problems == ()) == (cheat is Honest), result.problems
    assert cheat is not Honest or tuple(result.timings) == EVERY_SCOPE


@pytest.mark.thorough("a second of a stand-in for a GPU")
def test_without_parity_there_is_no_figure(stand_in: Callable[[Row], None]) -> None:
    """An engine over another network disagrees in the first bursts, and nothing is timed."""
    stand_in(replace(ROW, firing_rate=0.02))
    result = measure_row(ROW, FakeRuntime(), None)  # type: ignore[arg-type]
    assert result.problems[0].startswith("bursts 1 to 5: ")
    assert result.timings == {}


@pytest.mark.thorough("compiles a kernel for each kind")
@pytest.mark.parametrize("kind", ["everything", "plastic"])
def test_a_row_of_a_kind_is_scaled_to_its_contributions(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged by the reference that draws its rows, or by the CPU engine with the weights; half as many count double."""
    for name in ("KIND_RULE", "CPU_RULE"):
        monkeypatch.setattr(cuda_bench, name, QUICK)
    monkeypatch.setattr(cuda_bench, "_batch_length", lambda engine: 20)
    row = Row(20_000, 0.01, checked_bursts=5, generated=kind == "everything", kind=kind)

    @contextmanager
    def engines(asked: Row, choice: None) -> Iterator[tuple[CpuEngine | DrawnReference, CpuEngine]]:
        network = asked.network()
        with CpuEngine.create(network, OPTIONS) as engine, CpuEngine.create(network, OPTIONS) as other:
            yield (DrawnReference(asked.spec, engine.fixed_point, 1) if asked.generated else other), engine

    monkeypatch.setattr(cuda_bench, "_engines", engines)
    result = measure_row(row, FakeRuntime(), None, (RESIDENT,))  # type: ignore[arg-type]
    assert result.problems == ()
    assert result.events == pytest.approx(100 * 20_000 * result.firing_rate)
    assert result.cpu is None
    measure = Measure(())
    put_scaled(replace(result, events=row.events / 2), result.timings[RESIDENT], LIMITS, measure)
    (scaled,) = measure.taken
    assert scaled.value == pytest.approx(2e3 * result.timings[RESIDENT].samples.estimate)
    assert (scaled.conditions["kind"], scaled.conditions["floor_way"]) == (kind, "reductions")


def test_measurements_of_a_row(stand_in: Callable[[Row], None]) -> None:
    """Cold and warm L2 are told apart, and each latency carries its floor and how near it comes."""
    stand_in(ROW)
    result = measure_row(ROW, FakeRuntime(), None, (RESIDENT, COLD_DOWNLOAD))  # type: ignore[arg-type]
    measure = Measure(())
    for scope, timed in result.timings.items():
        put_latency(result, scope, timed, LIMITS, measure)
    put = measure.taken
    assert [one.name for one in put] == ["burst.latency", "burst.fraction_of_floor"] * 2
    assert [one.conditions["cold_l2"] for one in put] == [False, False, True, True]
    for latency, fraction in zip(put[::2], put[1::2], strict=True):
        assert fraction.value == pytest.approx(latency.number("floor") / latency.value)
        assert len(latency.samples) == QUICK.max_samples
