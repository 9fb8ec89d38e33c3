"""The CUDA engine on a real device: trains, graphs and block sizes change nothing, and a million neurons agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.state import EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.network.model import Network
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from suites.support.parity import backends
from suites.support.parity.mixed import Mix, mixed_network, mixed_options, mixed_plan
from suites.support.parity.queue_checks import differs_as_chosen
from suites.support.parity.simulator_check import checks, recordings_differ

pytestmark = [pytest.mark.requirement("BE-4", "BE-6", "BE-7", "ST-5"), pytest.mark.gate("gpu")]

LARGE_NEURONS = 1_000_000
LARGE_BURSTS = 1000
OWN_CHECKS = [(name, check) for name, check in checks() if not name.startswith(("mix:", "case:"))]


@pytest.mark.parametrize("check", [c for _, c in OWN_CHECKS], ids=[n for n, _ in OWN_CHECKS])
def test_device(check: Callable[[], list[str]]) -> None:
    """What the simulator is asked, asked of the device."""
    assert check() == []


@pytest.mark.parametrize(
    ("per_row", "integers", "equal"),
    [(7, True, False), (20, False, False), (300, True, False), (20, True, True), (300, True, True)],
)
@pytest.mark.parametrize("delay", [1, 16, 34, 64])
def test_queues_as_chosen(delay: int, per_row: int, integers: bool, equal: bool) -> None:
    """Queues and buckets of the shapes that networks of 5 M neurons have."""
    assert differs_as_chosen(delay, per_row, integers, equal=equal) == []


@pytest.mark.parametrize("integers", [True, False], ids=["narrow", "wide"])
@pytest.mark.parametrize("bin_room", [9, 23, 31, 57, 97, 363])
def test_bins_as_chosen(bin_room: int, integers: bool) -> None:
    """Bins that a quarter of a warp writes, or half of it, or all, in one turn or up to as many as need no loop."""
    assert differs_as_chosen(16, 20, integers, bin_room=bin_room) == []


@pytest.mark.parametrize("streams", [1, 2, 4])
@pytest.mark.parametrize("length", [1, 7, 64])
@pytest.mark.parametrize("graphs", [True, False], ids=["graphs", "no graphs"])
@pytest.mark.requirement("BE-8")
def test_trains(graphs: bool, length: int, streams: int) -> None:
    """Trains of any length on any number of streams equal the CPU engine, with stimulus in most bursts."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine

    mix = Mix("trains", 21, neurons=3000, synapses=60_000, bursts=150, largest_delay=3)
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    cpu = CpuEngine.create(network, options)
    cuda = CudaOptions(graphs=graphs, batch_length=length, stream_count=streams)
    engine = CudaEngine.create(network, replace(options, cuda=cuda))
    try:
        for bursts in (1, 100, 49):
            assert recordings_differ(cpu.run(bursts, plan), engine.run(bursts, plan)) == []
        assert cpu.state().differences(engine.state()) == ()
    finally:
        engine.close()
        cpu.close()


def _large_plan() -> tuple[Network, StimulusPlan]:
    spec = driven_spec(LARGE_NEURONS, 100, 0.01, seed=7)
    return synthesize(spec), {1: Stimulus(forced=initial_stimulus(spec))}


@pytest.fixture(scope="module")
def large() -> tuple[Network, StimulusPlan, Recording, EngineState]:
    """A million neurons that fire at 1 %, and what the CPU engine makes of them."""
    from burstproof.engine.cpu.engine import CpuEngine

    network, plan = _large_plan()
    cpu = CpuEngine.create(network, EngineOptions())
    recording = cpu.run(LARGE_BURSTS, plan)
    state = cpu.state()
    cpu.close()
    return network, plan, recording, state


@pytest.mark.xdist_group("a million")
@pytest.mark.parametrize("backend", backends.CUDA)
def test_a_million_neurons(
    backend: backends.Backend, large: tuple[Network, StimulusPlan, Recording, EngineState]
) -> None:
    """1 000 bursts of 1 M neurons with 100 M synapses: every firing, potential and state equals the CPU engine's."""
    network, plan, expected, state = large
    engine = backend.create(network, EngineOptions())
    try:
        got = engine.run(LARGE_BURSTS, plan)
        assert recordings_differ(expected, got) == []
        assert state.differences(engine.state()) == ()
        assert expected.fired_counts.mean() > LARGE_NEURONS * 0.005
    finally:
        engine.close()


@pytest.mark.requirement("BE-3")
@pytest.mark.parametrize("laws", [{}, {"weights": (1, 40), "delays": (1, 3)}], ids=["one value", "uniform"])
def test_a_million_neurons_generated_on_the_device(laws: dict[str, tuple[int, int]]) -> None:
    """A network that the device makes itself runs like the one built on the host."""
    from burstproof.engine.cuda.engine import CudaEngine

    spec = replace(driven_spec(LARGE_NEURONS, 100, 0.01, seed=9), **laws)
    plan = {burst: Stimulus(forced=initial_stimulus(spec, burst)) for burst in range(1, spec.longest_delay + 1)}
    built = CudaEngine.create(synthesize(spec))
    expected, state = built.run(100, plan), built.state()
    built.close()
    made = CudaEngine.from_spec(spec)
    try:
        assert made.fixed_point == built.fixed_point
        assert recordings_differ(expected, made.run(100, plan)) == []
        assert set(state.differences(made.state())) == {"weights", "eligibility_traces"}
        assert expected.fired_counts.sum() > 100_000
    finally:
        made.close()


def test_counts_without_fired_lists() -> None:
    """Counts alone equal those beside the fired lists, and the fired list of the last burst is there all the same."""
    from burstproof.engine.cuda.engine import CudaEngine

    mix = Mix("counts", 22, neurons=2000, synapses=30_000, bursts=60)
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    first, second = CudaEngine.create(network, options), CudaEngine.create(network, options)
    try:
        full, counts = first.run(60, plan), second.run(60, plan, record=Record.COUNTS)
        np.testing.assert_array_equal(full.fired_counts, counts.fired_counts)
        np.testing.assert_array_equal(full.candidate_counts, counts.candidate_counts)
        assert first.state().differences(second.state()) == ()
    finally:
        first.close()
        second.close()
