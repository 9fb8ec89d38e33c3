"""Latency of one whole burst on one core: 100 K neurons x 100 synapses at 1 % firing (BE-5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from burstproof.burst.cpu import CpuEngine
from burstproof.burst.engine import CpuOptions, EngineOptions, Stimulus
from burstproof.burst.reference import ReferenceEngine
from burstproof.network.synthetic import initial_stimulus, synthesize
from burstproof.network.synthetic_spec import driven_spec

pytestmark = pytest.mark.requirement("BE-5")

NEURONS, SYNAPSES_PER_NEURON, FIRING_RATE = 100_000, 100, 0.01
CHECKED_BURSTS = 5
WARM_UP_BURSTS = 20
SAMPLES = 300


@pytest.fixture(scope="module")
def engine() -> Iterator[CpuEngine]:
    """A running engine whose first bursts agreed with the reference bit for bit."""
    spec = driven_spec(NEURONS, SYNAPSES_PER_NEURON, FIRING_RATE)
    network = synthesize(spec)
    options = EngineOptions(cpu=CpuOptions(threads=1))
    cpu, reference = CpuEngine.create(network, options), ReferenceEngine.create(network, options)
    plan = {network.burst_count + 1: Stimulus(forced=initial_stimulus(spec))}
    np.testing.assert_array_equal(
        cpu.run(CHECKED_BURSTS, plan).fired_ids, reference.run(CHECKED_BURSTS, plan).fired_ids
    )
    assert cpu.state().differences(reference.state()) == ()
    cpu.run(WARM_UP_BURSTS)
    yield cpu
    cpu.close()


def test_burst_latency_on_one_core(
    engine: CpuEngine, benchmark: BenchmarkFixture, measure: Callable[..., None]
) -> None:
    """``step`` from call to fired list; the firing rate is checked to be what the figure claims."""
    fired: list[int] = []
    benchmark.pedantic(lambda: fired.append(len(engine.step().fired_ids)), rounds=SAMPLES, iterations=1)
    rate = float(np.mean(fired)) / NEURONS
    assert rate == pytest.approx(FIRING_RATE, rel=0.1)
    samples_ms = tuple(1e3 * sample for sample in benchmark.stats.stats.data)
    measure(
        "burst.latency",
        float(np.median(samples_ms)),
        "ms",
        samples=samples_ms,
        conditions={
            "backend": "cpu",
            "neurons": NEURONS,
            "synapses_per_neuron": SYNAPSES_PER_NEURON,
            "firing_rate": FIRING_RATE,
            "threads": 1,
        },
        note=(
            f"Median of {len(samples_ms)} steps, call to fired list; the first {CHECKED_BURSTS} bursts agreed with the "
            "reference bit for bit"
        ),
    )
