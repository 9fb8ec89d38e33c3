"""Large networks over a thousand bursts: every firing and the whole state, whatever the backend (BE-4).

GPU-free: 20 K neurons on the CPU against the reference. With a GPU: 1 M neurons x 100 synapses, the four genomes,
graphs on and off, three block sizes, against the CPU engine. (The plain driven million is in ``test_cuda_engine``.)
"""

from __future__ import annotations

import weakref
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions
from stages.measuring import Measure
from suites.support.networks.growth_golden import SHIPPED
from suites.support.networks.small_networks import OPTIONS as GENOME_OPTIONS
from suites.support.networks.small_networks import seeded_plan, small_network
from suites.support.parity import backends
from suites.support.parity.large import OPTIONS, SYNAPSES_PER_NEURON, Large, large_network, large_plan
from suites.support.parity.trusted import Part, TrustedRun, differences, trusted_run
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("BE-4", "ST-5")

SMALLER = (
    Large("plain, 20 K", 20_000, 100, rich=False),
    Large("rich, 20 K", 20_000, 100),
    Large("rich, mp-driven, delayed, 20 K", 20_000, 100, computed=True),
)
LARGE = (
    Large("rich, 1 M", 1_000_000, 1000),
    Large("rich, mp-driven, delayed, 200 K", 200_000, 1000, computed=True),
)
SPECIALISED = backends.Backend("cpu, specialised", cpu=backends.CpuOptions(threads=1, specialise=True))
"""The kernels that larger networks get."""

CHANGING = backends.Backend("cpu, general then specialised", cpu=backends.CpuOptions(threads=1))
CPU = backends.Backend("cpu", cpu=CpuOptions())

LONG = "a large network of several, run for long"
GENOME_BURSTS = 1000
PARTS = (Part(1), Part(99), Part(400), Part(500, synapses=True))
"""Bursts between checkpoints of the state, of a run of 1000; the last is of the whole state."""


def _prove(run: TrustedRun, backend: backends.Backend, measure: Measure) -> None:
    with closing(backend.create(run.network, run.options)) as engine:
        found = differences(run, engine)
    conditions = {
        "backend": backend.name,
        "network": run.name,
        "neurons": run.network.neuron_count,
        "synapses": run.network.synapse_count,
        "bursts": run.bursts,
        "fired": run.fired,
        "checkpoints": len(run.states),
    }
    measure("parity.disagreements", len(found), "1", conditions=conditions, note="; ".join(found[:3]))
    assert not found, found[0]


@pytest.fixture(scope="module", params=thinned(SMALLER, LONG, keep=first(1)), ids=lambda large: large.name)
def smaller(request: pytest.FixtureRequest) -> TrustedRun:
    """A network of 20 K neurons and what the reference makes of it."""
    large: Large = request.param
    network = large_network(large)
    parts = (Part(1), Part(49), Part(large.bursts - 50, synapses=True))
    return trusted_run(large.name, network, OPTIONS, large_plan(large, network), parts, backends.REFERENCE.create)


@pytest.fixture(scope="module", params=thinned(LARGE, LONG, keep=first(1)), ids=lambda large: large.name)
def large(request: pytest.FixtureRequest) -> TrustedRun:
    """A large network and what the CPU engine makes of it; one at a time is held."""
    described: Large = request.param
    network = large_network(described)
    plan = large_plan(described, network)
    return trusted_run(described.name, network, OPTIONS, plan, PARTS, CPU.create)


@pytest.fixture(scope="module", params=thinned(SHIPPED, LONG, keep=first(2)))
def genome(request: pytest.FixtureRequest) -> TrustedRun:
    """A shipped genome under seeded input, and what the CPU engine makes of it."""
    network = small_network(request.param)
    plan = seeded_plan(network, GENOME_BURSTS)
    return trusted_run(request.param, network, GENOME_OPTIONS, plan, PARTS, backends.CPU_BACKENDS[0].create)


@pytest.mark.measures("parity.disagreements", backend=..., network=...)
@pytest.mark.xdist_group("20 K")
@pytest.mark.parametrize("backend", [*backends.CPU_BACKENDS, SPECIALISED], ids=lambda b: b.name)
def test_cpu_against_the_reference(smaller: TrustedRun, backend: backends.Backend, measure: Measure) -> None:
    """20 K neurons x 100 synapses, 100 bursts: every firing, potential and state equals the reference's."""
    _prove(smaller, backend, measure)


@pytest.mark.measures("parity.disagreements", backend=..., network=...)
@pytest.mark.xdist_group("20 K")
def test_a_long_run_changes_its_kernels(smaller: TrustedRun, measure: Measure, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some 30 bursts on the kernels that serve every network, the others on those of this one: no result changes."""
    monkeypatch.setattr("burstproof.engine.cpu.engine._GENERAL_UPDATES", 30 * smaller.network.neuron_count)
    monkeypatch.setattr("burstproof.engine.cpu.engine._LONGEST_BATCH", 7)
    _prove(smaller, CHANGING, measure)


@pytest.mark.xdist_group("20 K")
def test_who_changes_kernels(smaller: TrustedRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has been long enough; no step, which nobody wants to wait for, and not against what was asked."""
    monkeypatch.setattr("burstproof.engine.cpu.engine._GENERAL_UPDATES", 0)
    for asked, changes in ((None, True), (False, False)):
        options = replace(OPTIONS, cpu=CpuOptions(threads=1, specialise=asked))
        with closing(CpuEngine.create(smaller.network, options)) as engine:
            general = engine.kernels
            engine.run(1)
            engine.step()
            assert engine.kernels is general
            left = weakref.ref(engine._memory)
            engine.run(1)
            assert (engine.kernels is not general) is changes
            assert (left() is None) is changes, "the arrays that it had are kept"


@pytest.mark.not_proof
@pytest.mark.xdist_group("20 K")
def test_firing_goes_on(smaller: TrustedRun) -> None:
    """The networks compared fire by themselves to the end, neither dying out nor all at once."""
    counts = np.concatenate([recording.fired_counts for recording in smaller.recordings])[-50:]
    forced = max(len(smaller.plan[b].forced) for b in smaller.plan if b > 1) if len(smaller.plan) > 1 else 0
    assert counts.min() > 50 + forced
    assert counts.max() < 0.2 * smaller.network.neuron_count


@pytest.mark.not_proof
def test_the_rich_network_uses_the_rules() -> None:
    """Blocked, limited, snoozing, inhibited, invalid and non-accumulating neurons are all there."""
    network = large_network(SMALLER[1])
    neurons, synapses = network.neurons, network.synapses
    assert len(synapses) == network.neuron_count * SYNAPSES_PER_NEURON
    for column in ("refractory_periods", "snooze_periods", "consecutive_fire_limits", "excitabilities", "thresholds"):
        assert len(np.unique(getattr(neurons, column))) >= 3, column
    for share in (neurons.valid_mask.mean(), neurons.mp_charge_accumulation.mean(), (synapses.types == 0).mean()):
        assert 0.5 < share < 1.0
    assert {area.psp_uniform_distribution for area in network.areas} == {True, False}
    assert len(np.unique(large_network(SMALLER[2]).synapses.delay_bursts)) == 3


@pytest.mark.measures("parity.disagreements", backend=..., network=...)
@pytest.mark.xdist_group("large")
@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-6", "BE-7")
@pytest.mark.parametrize("backend", backends.CUDA)
def test_cuda_against_the_cpu_engine(large: TrustedRun, backend: backends.Backend, measure: Measure) -> None:
    """1 000 bursts of a large network: every firing, potential and state equals the CPU engine's."""
    _prove(large, backend, measure)


@pytest.mark.measures("parity.disagreements", backend=..., network=...)
@pytest.mark.xdist_group("genomes")
@pytest.mark.gate("gpu")
@pytest.mark.requirement("BE-6", "BE-7")
@pytest.mark.parametrize("backend", backends.CUDA)
def test_cuda_runs_the_genomes(genome: TrustedRun, backend: backends.Backend, measure: Measure) -> None:
    """1 000 bursts of each shipped genome under seeded input: all equal to the CPU engine's."""
    _prove(genome, backend, measure)


@pytest.mark.not_proof
@pytest.mark.xdist_group("20 K")
def test_a_wrong_engine_is_noticed(smaller: TrustedRun) -> None:
    """An engine in which one active neuron's weights are off by one disagrees: the comparison can fail."""
    synapses = smaller.network.synapses
    active = smaller.recordings[0].fired_ids[0]
    weights = synapses.weights.copy()
    weights[np.flatnonzero(synapses.source_neurons == active)] += 1
    wrong = smaller.network.replace(synapses=replace(synapses, weights=weights))
    with closing(backends.CPU_BACKENDS[0].create(wrong, smaller.options)) as engine:
        assert differences(smaller, engine)
