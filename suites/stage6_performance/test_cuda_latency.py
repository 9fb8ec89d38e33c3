"""The latency table on a GPU: checked, timed with a stopping rule, held against what the card allows (ST-6)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stages.measuring import Measure
from suites.stage6_performance.conftest import Bench
from suites.support.bench.card_limits import Card, Limits, g_per_s, gb_per_s
from suites.support.bench.cuda_bench import DOWNLOAD, RowResult
from suites.support.bench.putting import put_latency
from suites.support.bench.rows import CUDA_ROWS, OTHER_ROWS, CardLimits, Row
from suites.support.bench.steady import Timed

pytestmark = [pytest.mark.requirement("ST-6", "BE-6", "BE-7"), pytest.mark.gate("gpu")]

RATE_TOLERANCE = 0.2


@pytest.fixture(params=(*CUDA_ROWS, *OTHER_ROWS), ids=lambda row: row.name)
def result(request: pytest.FixtureRequest, bench: Bench) -> RowResult:
    """The measured row; measuring happens here, so that a throttled card is an ERROR and not a FAIL."""
    row: Row = request.param
    return bench(row)


def test_what_the_card_allows(card: Card, limits: Limits, measure: Measure) -> None:
    """Copy, random reductions at every footprint, graph node, launch to download; each result was checked."""
    device = {"device": card.runtime.name}

    def put(name: str, timed: Timed, convert: Callable[[float], float], unit: str, **conditions: object) -> None:
        samples = [convert(value) for value in timed.samples.values]
        measure(
            name,
            convert(timed.samples.estimate),
            unit,
            samples=samples,
            conditions={**device, **conditions},
            telemetry=timed.telemetry,
            note=timed.how,
        )

    put("roofline.copy", limits.copy, gb_per_s, "GB/s")
    for entries, timed in limits.reductions.items():
        put("roofline.random_reductions", timed, g_per_s, "G/s", entries=entries, dtype="int32")
    put("roofline.graph_node", limits.graph_node, lambda ms: 1e3 * ms, "us")
    put("roofline.launch_to_download", limits.launch_to_download, lambda ms: 1e3 * ms, "us")
    put("roofline.host_launch", limits.single_launch, lambda ms: 1e3 * ms, "us", way="one by one")
    put("roofline.host_launch", limits.graph_launch, lambda ms: 1e3 * ms, "us", way="graph of 200")
    reduction = limits.single_launch.samples.estimate / limits.graph_launch.samples.estimate
    measure("graph.launch_reduction", reduction, "x", conditions=device, note="host time per kernel, graph of 200")


def test_latency(known_limits: CardLimits, result: RowResult, measure: Measure) -> None:
    """A row of the table: results equal a trusted engine's before and after the timing, then each scope's latency."""
    assert result.problems == (), result.problems[0]
    off = abs(result.firing_rate / result.row.firing_rate - 1.0)
    assert off < RATE_TOLERANCE, f"the network fired at {result.firing_rate:.3%} while it was timed"
    for scope, timed in result.timings.items():
        put_latency(result, scope, timed, known_limits, measure)
    if result.cpu is not None:
        _put_speedup(result, result.cpu, measure)


def _put_speedup(result: RowResult, cpu: Timed, measure: Measure) -> None:
    cpu_ms, cuda_ms = cpu.samples.estimate, result.timings[DOWNLOAD].samples.estimate
    measure(
        "burst.speedup",
        cpu_ms / cuda_ms,
        "x",
        conditions={"backend": "cuda", "against": "cpu", **result.row.conditions},
        note=f"engine.step of both: CPU {cpu_ms:.3f} ms with {result.cpu_threads} threads, CUDA {cuda_ms:.4f} ms",
    )
