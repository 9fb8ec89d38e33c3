"""The comparison of runs tried on a GPU: two engines of the same build, and one that does 5 % more work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING

import pytest

from burstproof.engine.state import Record
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.comparing import SLOWDOWN, compare_often
from suites.support.bench.cuda_bench import disagreements
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.rows import Row
from suites.support.bench.steady import Rule, time_steadily

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

pytestmark = [pytest.mark.requirement("ST-6", "RE-4"), pytest.mark.gate("gpu")]

ROW = Row(1_000_000, 0.01, checked_bursts=10, generated=True)
TRAIN = 600
"""10 ms of bursts: a fifth of what the rows of the table take for a sample, since series are taken 300 times."""
RULE = Rule(warmup=1, min_samples=20, max_samples=40, max_seconds=1.0)


@pytest.fixture
def engines() -> Iterator[tuple[CudaEngine, CudaEngine]]:
    """Two engines over the same network, each at its rate and equal to the implicit reference."""
    from burstproof.engine.cuda.engine import CudaEngine

    with ExitStack() as stack:
        made = [stack.enter_context(closing(CudaEngine.from_spec(ROW.spec))) for _ in range(2)]
        for engine in made:
            judge = ImplicitReference(ROW.spec, engine.fixed_point)
            problems = disagreements(judge, engine, ROW.checked_bursts, ROW.start)
            assert problems == (), problems[0]
        yield made[0], made[1]


def _trains(engine: CudaEngine, bursts: int) -> Callable[[], tuple[float, ...]]:
    """Series of samples of a train; ``bursts`` beyond ``TRAIN`` are work that the figure does not count."""

    def sample() -> float:
        start = time.perf_counter()
        engine.run(bursts, record=Record.NONE)
        return 1e6 * (time.perf_counter() - start) / TRAIN

    return lambda: time_steadily(sample, RULE).samples.values


@pytest.mark.measures("performance.aa_same", "performance.slowdown_found", samples="device", device=...)
@pytest.mark.thorough("compares engines in turns for a minute")
def test_same_build_and_slowdown(card: Card, engines: tuple[CudaEngine, CudaEngine], measure: Measure) -> None:
    """100 tries each: another engine of the same build is SAME, one that runs every twentieth burst twice is SLOWER."""
    first, second = engines
    rates = compare_often(_trains(first, TRAIN), _trains(second, TRAIN), _trains(second, round(SLOWDOWN * TRAIN)))
    note = f"device-resident trains of {TRAIN} bursts of {ROW.name}, at least {RULE.min_samples} samples a side"
    rates.put(measure, note, samples="device", device=card.runtime.name)
