"""Latency of the grown genomes under input, on the CPU and on a GPU: checked first, as every row (ST-6)."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace

import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions
from burstproof.engine.reference import ReferenceEngine
from hardware.host import take_host
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.genome_bench import GENOMES, OPTIONS, TRAINS, GenomeRow, UniformTwin, time_genome
from suites.support.bench.steady import Timed, to_us

pytestmark = pytest.mark.requirement("ST-6", "BE-2")

GENERAL = replace(OPTIONS, cpu=CpuOptions(threads=1, specialise=False))
"""Kernels that other cases have compiled already; those of its own would take longer to compile than all bursts."""

CHECKED_CPU, CHECKED_CUDA, CHECKED_AFTERWARDS = 20, 200, 10


@pytest.fixture(scope="module", params=GENOMES)
def row(request: pytest.FixtureRequest) -> GenomeRow:
    return GenomeRow(request.param)


def _put(measure: Measure, row: GenomeRow, timings: Mapping[str, Timed], checked: str, **where: str | int) -> None:
    note = f"wall clock, up to 400 amounts and 40 forced firings a burst; {checked}"
    for scope, timed in timings.items():
        conditions = {**where, "scope": scope, "connectivity": "grown", **row.conditions}
        timed.put(measure, "burst.latency", "us", conditions, note, to_us)


@pytest.mark.requirement("BE-5")
@pytest.mark.measures("burst.latency", backend="cpu", device=..., connectivity="grown", scope=...)
def test_genome_on_the_cpu(row: GenomeRow, measure: Measure) -> None:
    """A grown genome under input on one core, after the reference agreed."""
    with closing(CpuEngine.create(row.network, GENERAL)) as engine:
        row.check(ReferenceEngine.create(row.network, OPTIONS), engine, CHECKED_CPU)
        timings = time_genome(row, engine)
        checked = f"{CHECKED_CPU} bursts before equal the reference's"
        _put(measure, row, timings, checked, backend="cpu", device=take_host().cpu, threads=engine.threads)


@pytest.fixture
def on_the_card(row: GenomeRow, card: Card) -> Mapping[str, Timed]:
    """The timings of a genome on the GPU; a throttled card is an ERROR."""
    return _timed_on(card, row)


def _timed_on(card: Card, row: GenomeRow) -> Mapping[str, Timed]:
    from burstproof.engine.cuda.engine import CudaEngine

    with (
        closing(CpuEngine.create(row.network, GENERAL)) as judge,
        closing(CudaEngine.create(row.network, OPTIONS)) as engine,
    ):
        row.check(judge, engine, CHECKED_CUDA)
        timings = time_genome(row, engine, card.watch)
        judge.restore(engine.state())
        row.check(judge, engine, CHECKED_AFTERWARDS)
        return timings


@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-6")
@pytest.mark.measures("burst.latency", backend="cuda", gpus=1, device=..., connectivity="grown", scope=...)
def test_genome_on_a_gpu(row: GenomeRow, card: Card, on_the_card: Mapping[str, Timed], measure: Measure) -> None:
    """A grown genome under input on a GPU, after the CPU engine agreed."""
    checked = f"{CHECKED_CUDA} bursts before and {CHECKED_AFTERWARDS} after equal the CPU engine's"
    _put(measure, row, on_the_card, checked, backend="cuda", gpus=1, device=card.runtime.name)


@pytest.fixture
def twins(card: Card) -> tuple[Timed, Timed]:
    """Trains of the vision genome and of its uniform twin on the GPU."""
    found = (_timed_on(card, one) for one in (GenomeRow("vision"), UniformTwin("vision")))
    first, second = (timings[TRAINS] for timings in found)
    return first, second


@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-21")
@pytest.mark.measures(
    "burst.against_uniform", backend="cuda", gpus=1, device=..., network="vision genome", scope=TRAINS
)
def test_vision_costs_what_a_uniform_network_costs(card: Card, twins: tuple[Timed, Timed], measure: Measure) -> None:
    """The grown vision genome under input against a uniform network of as many neurons under the same input."""
    grown, uniform = (to_us(timed.samples.estimate) for timed in twins)
    note = f"{grown:.2f} us a burst of the grown genome, {uniform:.2f} us of the uniform network; both checked first"
    where = {"backend": "cuda", "gpus": 1, "device": card.runtime.name, "scope": TRAINS}
    conditions = {**where, **GenomeRow("vision").conditions}
    measure("burst.against_uniform", grown / uniform, "x", conditions=conditions, note=note)
