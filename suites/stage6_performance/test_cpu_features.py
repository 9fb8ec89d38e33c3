"""What features cost on one core: beside the same network without them, in turns; every row checked first."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from statistics import median

import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.network.model import Network
from hardware.host import take_host
from stages.measuring import Measure
from suites.support.bench.cpu_rows import ALL_CORES
from suites.support.bench.feature_bench import compare
from suites.support.bench.feature_networks import with_every_feature, with_memories
from suites.support.bench.rows import Row

pytestmark = [
    pytest.mark.requirement("ST-6", "BE-5"),
    pytest.mark.thorough("builds, checks and compiles networks of 10 M synapses"),
]

NEURONS = Row(100_000, 0.01, checked_bursts=8, kind="parameters")
MEMORIES = Row(100_000, 0.01, checked_bursts=8)
LIVE, SETTLED = 1000, 100
ON_CORE = {"backend": "cpu", "device": ..., "threads": 1, "cores": ...}
OPTIONS = EngineOptions(cpu=CpuOptions(threads=1))

CASES = [
    pytest.param(
        NEURONS,
        with_every_feature,
        (SETTLED, SETTLED),
        {"features": "neurons"},
        id="neurons",
        marks=pytest.mark.measures("burst.features_over", features="neurons", **ON_CORE, **NEURONS.conditions),
    ),
    *(
        pytest.param(
            MEMORIES,
            lambda network, associative=associative: with_memories(network, LIVE, associative),
            (SETTLED, LIVE + SETTLED),
            {"live": LIVE, "associative": associative},
            id="memories with associations" if associative else "memories",
            marks=pytest.mark.measures(
                "burst.memories", live=LIVE, associative=associative, **ON_CORE, **MEMORIES.conditions
            ),
        )
        for associative in (False, True)
    ),
]


@pytest.mark.parametrize(("row", "make", "settled", "own"), CASES)
def test_features_on_one_core(
    row: Row, make: Callable[[Network], Network], settled: tuple[int, int], own: dict[str, object], measure: Measure
) -> None:
    """Against the network without them: in proportion to the firings, or what memories add to a burst."""
    network = row.network()
    featured = make(network)
    with ExitStack() as stack:
        engines = [stack.enter_context(CpuEngine.create(one, OPTIONS)) for one in (network, featured)]
        judges = tuple(stack.enter_context(ReferenceEngine.create(one, OPTIONS)) for one in (network, featured))
        result = compare(*engines, judges, row.start, row.checked_bursts, settled)
        state = engines[1].state().features
    assert result.problems == (), result.problems[0]
    assert "live" not in own or (state is not None and len(state.memory.ids) == own["live"])
    conditions = {
        "backend": "cpu",
        "device": take_host().cpu,
        "cores": ALL_CORES,
        "threads": 1,
        **row.conditions,
        **own,
    }
    remembers = "live" in own
    samples = result.added_us if remembers else result.ratios
    name, unit = ("burst.memories", "us") if remembers else ("burst.features_over", "x")
    measure(name, median(samples), unit, samples=samples, conditions=conditions, note=result.note)
