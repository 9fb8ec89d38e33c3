"""Kinds of networks on one core: each checked against the reference, timed in turns with the uniform one (BE-5)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from statistics import median

import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record
from hardware.host import take_host
from stages.measuring import Measure
from suites.support.bench.cpu_rows import ALL_CORES
from suites.support.bench.rows import UNIFORM, Row
from suites.support.parity.large import slim
from suites.support.parity.simulator_check import recordings_differ

pytestmark = [
    pytest.mark.requirement("ST-6", "BE-5"),
    pytest.mark.thorough("builds, checks and compiles seven networks of 10 M synapses"),
]

OTHERS = ("weights", "inhibition", "parameters", "fractions", "delays", "everything")
ROWS = tuple(Row(100_000, 0.01, checked_bursts=20, kind=kind) for kind in (UNIFORM, *OTHERS))
SETTLED, BURSTS, ROUNDS, CHECKED_AFTER = 100, 10, 20, 3
RATE_TOLERANCE = 0.25


@dataclass(frozen=True, eq=False)
class Subject:
    """An engine that agreed with the reference, which judges it again after the timing."""

    row: Row
    engine: CpuEngine
    reference: ReferenceEngine


@pytest.fixture
def subjects() -> Iterator[tuple[Subject, ...]]:
    """One engine for each kind, after its checked bursts and enough others for a steady rate."""
    with ExitStack() as stack:
        made = []
        for row in ROWS:
            network = row.network()
            options = EngineOptions(cpu=CpuOptions(threads=1))
            engine = stack.enter_context(closing(CpuEngine.create(network, options)))
            reference = ReferenceEngine.create(network, options)
            _agree(Subject(row, engine, reference), row.checked_bursts)
            engine.run(SETTLED, record=Record.NONE)
            made.append(Subject(row, engine, reference))
        yield tuple(made)


def _agree(subject: Subject, bursts: int) -> None:
    """Run both engines from the state that they share."""
    expected = subject.reference.run(bursts, subject.row.start)
    found = recordings_differ(expected, subject.engine.run(bursts, subject.row.start))
    found += slim(subject.reference.state()).differences(slim(subject.engine.state()))
    assert not found, f"{subject.row.name}: the CPU engine disagrees with the reference: {', '.join(found)}"


@pytest.mark.measures("burst.train_latency", backend="cpu", device=..., threads=1, cores=..., neurons=100_000)
@pytest.mark.measures("burst.against_uniform", backend="cpu", device=..., threads=1, cores=..., kind=list(OTHERS))
def test_kinds_on_one_core(subjects: tuple[Subject, ...], measure: Measure) -> None:
    """Trains of bursts in turns; a row against the uniform one of as many contributions."""
    times: dict[Row, list[float]] = {row: [] for row in ROWS}
    events: dict[Row, list[float]] = {row: [] for row in ROWS}
    for _ in range(ROUNDS):
        for subject in subjects:
            start = time.perf_counter()
            done = subject.engine.run(BURSTS, record=Record.COUNTS)
            times[subject.row].append(1e3 * (time.perf_counter() - start) / BURSTS)
            events[subject.row].append(float(done.fired_counts.mean()) * subject.row.synapses_per_neuron)
    for subject in subjects:
        off = abs(median(events[subject.row]) / subject.row.events - 1.0)
        assert off < RATE_TOLERANCE, f"{subject.row.name}: {off:.0%} off its rate"
        subject.reference.restore(subject.engine.state())
        _agree(subject, CHECKED_AFTER)
    per_event = {row: [t / n for t, n in zip(times[row], events[row], strict=True)] for row in ROWS}
    machine = {"backend": "cpu", "device": take_host().cpu, "cores": ALL_CORES, "threads": 1}
    note = f"trains of {BURSTS} bursts by engine.run, in turns with the other kinds; equal to the reference's around it"
    for row in ROWS:
        conditions = machine | row.conditions
        measure("burst.train_latency", median(times[row]), "ms", samples=times[row], conditions=conditions, note=note)
        if row.kind != UNIFORM:
            ratios = [own / other for own, other in zip(per_event[row], per_event[ROWS[0]], strict=True)]
            measure("burst.against_uniform", median(ratios), "x", samples=ratios, conditions=conditions, note=note)
