"""What reduced precision brings on a GPU: latency and bytes of each format, after its results were checked (BE-11)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from burstproof.engine.options import EngineOptions
from burstproof.engine.precision import Precision, Storage, storage_for
from burstproof.engine.state import NO_STIMULUS, Burst, EngineState, Record, Stimulus
from burstproof.network.fixed_point import FixedPoint
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.cuda_bench import TRAIN_RULE, disagreements
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.rows import Row
from suites.support.bench.steady import Timed, time_steadily

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

pytestmark = [pytest.mark.requirement("BE-11", "ST-6"), pytest.mark.gate("gpu")]

ROWS = (
    Row(1_000_000, 0.01, checked_bursts=20, generated=True),
    Row(5_000_000, 0.01, checked_bursts=10, generated=True),
)
TRAIN = 500


class RoundingReference(ImplicitReference):
    """The implicit reference with its potentials rounded after each burst."""

    def __init__(self, row: Row, point: FixedPoint, storage: Storage) -> None:
        super().__init__(row.spec, point)
        self.storage = storage

    def step(self, stimulus: Stimulus = NO_STIMULUS) -> Burst:
        """One burst, then the rounding."""
        burst = super().step(stimulus)
        self._potentials[:] = self.storage.rounded(self._potentials)
        return burst

    def restore(self, state: EngineState) -> None:
        """Continue from ``state``, rounded."""
        super().restore(state)
        self._potentials[:] = self.storage.rounded(self._potentials)


@contextmanager
def checked_engine(row: Row, precision: Precision) -> Iterator[tuple[CudaEngine, tuple[str, ...]]]:
    """An engine over ``row`` that has done its checked bursts, and where it disagreed."""
    from burstproof.engine.cuda.engine import CudaEngine

    with closing(CudaEngine.from_spec(row.spec, EngineOptions(precision=precision))) as engine:
        storage = storage_for(precision, engine.network.neurons.thresholds)
        judge = RoundingReference(row, engine.fixed_point, storage)
        yield engine, disagreements(judge, engine, row.checked_bursts, row.start)


def time_trains(engine: CudaEngine, card: Card) -> Timed:
    """Device-resident trains, in us per burst."""

    def sample() -> float:
        start = time.perf_counter()
        engine.run(TRAIN, record=Record.NONE)
        return 1e6 * (time.perf_counter() - start) / TRAIN

    return time_steadily(sample, TRAIN_RULE, card.watch)


@pytest.mark.measures(
    "precision.latency",
    "precision.potential_bytes",
    "precision.speedup",
    precision=[precision.value for precision in Precision],
    neurons=[row.neurons for row in ROWS],
    scope="device-resident",
)
@pytest.mark.thorough("measures for seconds")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_latency_of_each_format(card: Card, row: Row, measure: Measure) -> None:
    """Every format equals the reference in that format, then runs in trains; fp32 is timed first and last."""
    latencies: dict[Precision, float] = {}
    for precision in (*Precision, Precision.FP32):
        with checked_engine(row, precision) as (engine, problems):
            assert problems == (), problems[0]
            timed = time_trains(engine, card)
            stored = next(spec.bytes for spec in engine.memory_plan.buffers if spec.name == "potentials")
        again = precision in latencies
        conditions = {**row.conditions, "precision": precision.value, "scope": "device-resident", "again": again}
        note = f"{row.checked_bursts} bursts equal the reference in {precision.value}"
        latency = timed.put(measure, "precision.latency", "us", conditions, note)
        if not again:
            latencies[precision] = latency
            measure("precision.potential_bytes", stored, "B", conditions=conditions)
            measure("precision.speedup", latencies[Precision.FP32] / latency, "x", conditions=conditions)
