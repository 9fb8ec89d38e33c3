"""Synapses in host memory change no result: mixed networks, hand-made cases and a million neurons (BE-10)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.cuda.plan.budget import plan_memory
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from stages.measuring import Measure
from suites.support.parity import backends
from suites.support.parity.builder import Case, run_case
from suites.support.parity.cases.synapses import synapse_cases
from suites.support.parity.mixed import MIXES, Mix, compare_mix, mixed_network, mixed_options, mixed_plan
from suites.support.parity.simulator_check import recordings_differ

pytestmark = [pytest.mark.requirement("BE-10", "BE-4", "ST-5"), pytest.mark.gate("gpu")]

IN_HOST = CudaOptions(synapse_memory=SynapseMemory.HOST)
STREAMED = backends.Backend("cuda, synapses in host memory", cuda=IN_HOST)
NEURONS, BURSTS = 1_000_000, 100


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: mix.name)
def test_mix(mix: Mix) -> None:
    """Bursts and whole state equal the reference after every burst."""
    assert compare_mix(mix, STREAMED.create) == []


@pytest.mark.parametrize("delay", [1, 3])
def test_packed_sums(delay: int) -> None:
    """Several sums in a word, of which rows from host memory each change their own."""
    mix = replace(next(m for m in MIXES if m.name == "integers, all excitatory"), largest_delay=delay)
    packed = replace(IN_HOST, sum_bits=8)
    assert pack_network(mixed_network(mix), replace(mixed_options(mix), cuda=packed)).variant.word.packed
    assert compare_mix(mix, backends.Backend("", cuda=packed).create) == []


@pytest.mark.parametrize("case", [*synapse_cases()], ids=lambda case: case.name)
def test_case(case: Case) -> None:
    """A network written down synapse by synapse does what SEMANTICS.md says."""
    assert run_case(case, STREAMED.create) == []


@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "no graphs"])
@pytest.mark.parametrize("block", [128, 512])
def test_trains(graphs: bool, block: int) -> None:
    """Trains from a state taken half-way equal the reference, with and without graphs."""
    mix = Mix("streamed trains", 23, neurons=2000, synapses=60_000, bursts=60, largest_delay=3)
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    reference = ReferenceEngine.create(network, options)
    reference.run(20, plan)
    engine = backends.Backend("", cuda=replace(IN_HOST, graphs=graphs, block_size=block)).create(network, options)
    try:
        engine.restore(reference.state())
        assert recordings_differ(reference.run(40, plan), engine.run(40, plan)) == []
        assert reference.state().differences(engine.state()) == ()
    finally:
        engine.close()


@pytest.mark.parametrize("separate", [False, True], ids=["fused", "separate kernels"])
def test_rows_of_every_length_and_place(separate: bool) -> None:
    """Rows that begin and end anywhere in a chunk, empty ones and one of several pieces, weights of either sign.

    A neuron whose contributions are driven by its potential asks for separate kernels.
    """
    rng = np.random.default_rng(11)
    lengths = np.array([*range(140), 3000, 0, 1, 40_000, 127])
    sources = np.repeat(np.arange(len(lengths)), lengths)
    count = len(sources)
    synapses = SynapseTable.build(
        sources,
        rng.integers(0, len(lengths), count),
        weights=rng.integers(1, 40, count),
        types=rng.integers(0, 2, count),
        delay_bursts=rng.integers(1, 4, count),
    )
    areas = (Area(7, "plain", mp_driven_psp=False), Area(8, "driven", mp_driven_psp=separate))
    in_areas = np.where(np.arange(len(lengths)) == 20, 8, 7)
    network = Network(NeuronTable.build(len(lengths), thresholds=50.0, cortical_areas=in_areas), synapses, areas=areas)
    assert (pack_network(network, EngineOptions()).variant.fused is None) == separate
    everyone = np.arange(len(lengths), dtype=np.uint32)
    plan = {1: Stimulus(forced=everyone), 3: Stimulus(forced=everyone[::7])}
    reference, engine = ReferenceEngine.create(network), STREAMED.create(network, EngineOptions())
    try:
        assert recordings_differ(reference.run(8, plan), engine.run(8, plan)) == []
        assert reference.state().differences(engine.state()) == ()
    finally:
        engine.close()


@pytest.mark.measures("parity.disagreements")
@pytest.mark.xdist_group("a million")
@pytest.mark.parametrize("varied", [False, True], ids=["one value", "varied"])
def test_a_million_neurons(varied: bool, measure: Measure) -> None:
    """100 bursts of 1 M neurons under a limit that 100 M synapses exceed: all equal to the CPU engine's."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine

    spec = driven_spec(NEURONS, 100, 0.01, seed=12)
    if varied:
        spec = replace(spec, weights=(1, 40), delays=(1, 3))
    plan = {burst: Stimulus(forced=initial_stimulus(spec, burst)) for burst in range(1, spec.longest_delay + 1)}
    network = synthesize(spec)
    cpu = CpuEngine.create(network, EngineOptions())
    expected, state = cpu.run(BURSTS, plan), cpu.state()
    cpu.close()
    limit = plan_memory(network, EngineOptions()).total_bytes - 1
    found: list[str] = []
    for engine in (
        CudaEngine.create(network, EngineOptions(cuda=CudaOptions(memory_limit_bytes=limit))),
        CudaEngine.from_spec(spec, EngineOptions(cuda=IN_HOST)),
    ):
        try:
            assert engine.memory_plan.host_bytes >= 4 * len(network.synapses)
            found += recordings_differ(expected, engine.run(BURSTS, plan))
            own = engine.state()
            if not len(own.weights):
                own = replace(own, weights=state.weights, eligibility_traces=state.eligibility_traces)
            found += state.differences(own)
        finally:
            engine.close()
    conditions = {"backend": STREAMED.name, "neurons": NEURONS, "synapses": len(network.synapses), "bursts": BURSTS}
    measure("parity.disagreements", len(found), "1", conditions=conditions, note="; ".join(found[:3]))
    assert not found, found[0]
    assert expected.fired_counts.mean() > NEURONS * 0.005
