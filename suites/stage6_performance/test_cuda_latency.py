"""The latency table on a GPU: checked, timed with a stopping rule, held against what the card allows (ST-6)."""

from __future__ import annotations

from functools import partial

import pytest
from _pytest.mark.structures import ParameterSet

from stages.measuring import Measure
from suites.stage6_performance.conftest import Bench
from suites.support.bench.card_limits import Card, Limits, g_per_s, gb_per_s
from suites.support.bench.cuda_bench import DOWNLOAD, RESIDENT, RowResult, scopes_of
from suites.support.bench.delivery_limits import ADDED, GATHERED, NEURONS
from suites.support.bench.floors import CardLimits
from suites.support.bench.putting import put_latency, put_scaled
from suites.support.bench.rows import CUDA_ROWS, OTHER_ROWS, Row
from suites.support.bench.steady import Timed, to_us

pytestmark = [pytest.mark.requirement("ST-6", "BE-6", "BE-7"), pytest.mark.gate("gpu")]

RATE_TOLERANCE = 0.2


def _declared(row: Row) -> ParameterSet:
    """The row with what it delivers: a latency for each scope, and the speedup over the CPU where it was the judge."""
    on_gpu = {"backend": "cuda", "gpus": 1, "device": ..., "scope": scopes_of(row), **row.conditions}
    energy = {**on_gpu, "scope": RESIDENT}
    marks = [
        pytest.mark.measures("burst.latency", "burst.fraction_of_floor", **on_gpu),
        pytest.mark.measures("burst.energy", "event.energy", only_if="the card counts its energy", **energy),
    ]
    if row.is_plain:
        marks.append(pytest.mark.measures("burst.scaled", **energy))
    if not row.generated:
        marks.append(pytest.mark.measures("burst.speedup", backend="cuda", against="cpu", **row.conditions))
    return pytest.param(row, id=row.name, marks=marks)


@pytest.fixture(params=[_declared(row) for row in (*CUDA_ROWS, *OTHER_ROWS)])
def result(request: pytest.FixtureRequest, bench: Bench) -> RowResult:
    """The measured row; measuring happens here, so that a throttled card is an ERROR and not a FAIL."""
    row: Row = request.param
    return bench(row)


@pytest.mark.measures(
    "roofline.copy",
    "roofline.random_reductions",
    "roofline.shared_additions",
    "roofline.gather",
    "roofline.graph_node",
    "roofline.launch_to_download",
    "roofline.host_launch",
    "graph.launch_reduction",
    device=...,
)
def test_what_the_card_allows(card: Card, limits: Limits, measure: Measure) -> None:
    """Copy, random reductions at every footprint, graph node, launch to download; each result was checked."""
    device = {"device": card.runtime.name}

    limits.copy.put(measure, "roofline.copy", "GB/s", device, convert=gb_per_s)
    for entries, timed in limits.reductions.items():
        where = {**device, "entries": entries, "dtype": "int32"}
        timed.put(measure, "roofline.random_reductions", "G/s", where, convert=g_per_s)
    forms = {"64-bit": "uint64", "four a thread": "uint32"}
    for form, timed in limits.adding.items():
        where = {**device, "entries": NEURONS, "dtype": forms[form], "form": form}
        timed.put(measure, "roofline.random_reductions", "G/s", where, convert=partial(g_per_s, count=ADDED))
    limits.shared.put(measure, "roofline.shared_additions", "G/s", device, convert=partial(g_per_s, count=ADDED))
    gathered = {**device, "synapses": GATHERED, "neurons": NEURONS}
    limits.gather.put(measure, "roofline.gather", "G/s", gathered, convert=partial(g_per_s, count=GATHERED))
    limits.graph_node.put(measure, "roofline.graph_node", "us", device, convert=to_us)
    limits.launch_to_download.put(measure, "roofline.launch_to_download", "us", device, convert=to_us)
    for way, timed in (("one by one", limits.single_launch), ("graph of 200", limits.graph_launch)):
        timed.put(measure, "roofline.host_launch", "us", {**device, "way": way}, convert=to_us)
    reduction = limits.single_launch.samples.estimate / limits.graph_launch.samples.estimate
    measure("graph.launch_reduction", reduction, "x", conditions=device, note="host time per kernel, graph of 200")


def test_latency(known_limits: CardLimits, result: RowResult, measure: Measure) -> None:
    """A row of the table: results equal a trusted engine's before and after the timing, then each scope's latency."""
    assert result.problems == (), result.problems[0]
    off = abs(result.firing_rate / result.row.firing_rate - 1.0)
    assert off < RATE_TOLERANCE, f"the network fired at {result.firing_rate:.3%} while it was timed"
    for scope, timed in result.timings.items():
        put_latency(result, scope, timed, known_limits, measure)
        if scope == RESIDENT and result.row.is_plain:
            put_scaled(result, timed, known_limits, measure)
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
