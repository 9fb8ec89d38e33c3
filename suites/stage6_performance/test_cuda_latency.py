"""The latency table on a GPU: checked, timed with a stopping rule, held against what the card allows (ST-6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from stages.measuring import Measure
from suites.stage6_performance.card_limits import Card, Limits, g_per_s, gb_per_s, measure_limits
from suites.stage6_performance.cuda_bench import DOWNLOAD, RESIDENT, STEP, RowResult, measure_row
from suites.stage6_performance.rows import CUDA_ROWS, CardLimits, Row, burst_floor_us, download_floor_us
from suites.stage6_performance.scaling import fit_costs
from suites.stage6_performance.steady import Timed, telemetry_of

pytestmark = [pytest.mark.requirement("ST-6", "BE-6", "BE-7"), pytest.mark.gate("gpu")]

RATE_TOLERANCE = 0.2
HOW = {
    RESIDENT: "wall clock of run({train} bursts) without results, per burst: trains replayed from graphs",
    STEP: "wall clock of one burst, its report awaited, fired list left on the device",
}


@pytest.fixture(scope="module")
def card() -> Iterator[Card]:
    """Device 0 with a stream of its own; telemetry finds it by its PCI address."""
    import cupy

    from burstproof.kernels.device import open_device

    runtime = open_device(0)
    yield Card(runtime, runtime.stream(), telemetry_of(cupy.cuda.Device(0).pci_bus_id))
    runtime.close()


@pytest.fixture(scope="module")
def limits(card: Card) -> Limits:
    """What the card allows, measured in this run."""
    return measure_limits(card, sorted({row.neurons for row in CUDA_ROWS}))


@pytest.fixture(scope="module")
def bench(card: Card) -> Callable[[Row], RowResult]:
    """Measures a row once."""
    done: dict[Row, RowResult] = {}

    def result(row: Row) -> RowResult:
        if row not in done:
            done[row] = measure_row(row, card.runtime, card.watch)
        return done[row]

    return result


@pytest.fixture(params=CUDA_ROWS, ids=lambda row: row.name)
def result(request: pytest.FixtureRequest, bench: Callable[[Row], RowResult]) -> RowResult:
    """The measured row; measuring happens here, so that a throttled card is an ERROR and not a FAIL."""
    return bench(request.param)


@pytest.fixture
def table(bench: Callable[[Row], RowResult]) -> list[RowResult]:
    """Every row."""
    return [bench(row) for row in CUDA_ROWS]


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


def test_latency(card: Card, limits: Limits, result: RowResult, measure: Measure) -> None:
    """A row of the table: results equal the CPU engine's before and after the timing, then each scope's latency."""
    assert result.problems == (), result.problems[0]
    row, known = result.row, limits.card(card.runtime)
    off = abs(result.firing_rate / row.firing_rate - 1.0)
    assert off < RATE_TOLERANCE, f"the network fired at {result.firing_rate:.3%} while it was timed"
    for scope, timed in result.timings.items():
        _put_latency(result, scope, timed, known, measure)
    _put_speedup(result, measure)


def _put_latency(result: RowResult, scope: str, timed: Timed, limits: CardLimits, measure: Measure) -> None:
    row = result.row
    downloads = scope not in (RESIDENT, STEP)
    floor_us = download_floor_us(row, limits) if downloads else burst_floor_us(row, limits)
    conditions = {
        "backend": "cuda",
        "gpus": 1,
        "device": limits.device,
        "scope": scope,
        "graphs": True,
        "cold_l2": "cold" in scope,
        **row.conditions,
    }
    how = HOW.get(scope, "wall clock of engine.step, fired list on the host").format(train=result.train)
    checked = f"{row.checked_bursts} bursts before and 5 after equal the CPU engine's"
    measure(
        "burst.latency",
        1e3 * timed.samples.estimate,
        "us",
        samples=[1e3 * value for value in timed.samples.values],
        conditions={**conditions, "floor": floor_us},
        telemetry=timed.telemetry,
        note=f"{how}; {timed.how}; {checked}; fired at {result.firing_rate:.3%}",
    )
    measure(
        "burst.fraction_of_floor",
        floor_us / (1e3 * timed.samples.estimate),
        "1",
        conditions=conditions,
        note=f"the floor of {floor_us:.2f} us follows from the card's limits measured in this run; 1 is the floor",
    )


def _put_speedup(result: RowResult, measure: Measure) -> None:
    assert result.cpu is not None
    cpu_ms, cuda_ms = result.cpu.samples.estimate, result.timings[DOWNLOAD].samples.estimate
    measure(
        "burst.speedup",
        cpu_ms / cuda_ms,
        "x",
        conditions={"backend": "cuda", "against": "cpu", **result.row.conditions},
        note=f"engine.step of both: CPU {cpu_ms:.3f} ms with {result.cpu_threads} threads, CUDA {cuda_ms:.4f} ms",
    )


def test_costs_over_the_table(card: Card, table: list[RowResult], measure: Measure) -> None:
    """Device-resident latency as a fixed cost, a cost per contribution and a cost per neuron, fitted over all rows."""
    for result in table:
        assert result.problems == (), f"{result.row.name}: {result.problems[0]}"
    latencies = [1e3 * result.timings[RESIDENT].samples.estimate for result in table]
    model = fit_costs([result.row for result in table], latencies)
    conditions = {"backend": "cuda", "device": card.runtime.name, "scope": RESIDENT}
    note = f"least squares over {len(table)} rows; the worst lies {model.worst_deviation:.0%} off"
    measure("burst.cost_fixed", model.fixed_us, "us", conditions=conditions, note=note)
    measure("burst.cost_per_event", model.event_ns, "ns", conditions=conditions, note=note)
    measure("burst.cost_per_neuron", model.neuron_ns, "ns", conditions=conditions, note=note)
