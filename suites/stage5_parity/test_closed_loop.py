"""Closed loops: stimulus in, a burst, what fired out, call by call, bit for bit on every backend (BE-20)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from burstproof.engine.cuda.kernels.mailbox import IDLE_NS
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import Stimulus
from burstproof.errors import StimulusError
from burstproof.network.model import Network
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from suites.support.parity import backends
from suites.support.parity.loop_checks import loop_differs
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options

pytestmark = pytest.mark.requirement("BE-4", "BE-20", "ST-5")

CHOSEN = ("reference", "cpu, 1 thread", "cpu, 2 threads", "cpu, 2 shards", "cuda, graphs, block 256", "wgpu")
MIXED = ("integers, all excitatory", "fractions, delays to 7", "plastic, windows 3 and 2, delays to 4, mp-driven")
CALLS = 3000
NEURONS = 20_000

Call = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32], npt.NDArray[np.uint32]]


@pytest.mark.parametrize("backend", [case for case in backends.ALL if case.id in CHOSEN])
@pytest.mark.parametrize("name", MIXED)
def test_a_loop_equals_the_reference(backend: backends.Backend, name: str) -> None:
    """Every list and the state, also where the engine is asked for something else in between."""
    mix = replace(next(mix for mix in MIXES if mix.name == name), bursts=30)
    assert loop_differs(mix, backend.create) == []


def random_calls(network: Network, count: int, seed: int = 1) -> Iterator[Call]:
    """Calls with 0 to 1000 amounts of either sign, which may cancel what arrives, and now and then forced firings."""
    rng = np.random.default_rng(seed)
    for place in range(count):
        amounts, forced = int(rng.integers(0, 1001)), 20 if place % 7 == 0 else 0
        ids = np.sort(rng.choice(network.neuron_count, amounts + forced, replace=False)).astype(np.uint32)
        chosen = rng.permutation(len(ids)) < amounts
        yield ids[chosen], rng.integers(-3, 9, amounts).astype(np.float32), ids[~chosen]


@pytest.fixture
def pair() -> Iterator[tuple[Engine, Engine]]:
    """The CPU engine and the CUDA engine over a network that fires at 1 % by itself, with delays and inhibition."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine

    spec = replace(driven_spec(NEURONS, 100, 0.01, seed=4), weights=(1, 3), delays=(1, 4), inhibitory_fraction=0.2)
    network = synthesize(spec)
    with CpuEngine.create(network, EngineOptions()) as cpu, CudaEngine.create(network, EngineOptions()) as cuda:
        for engine in (cpu, cuda):
            engine.step(Stimulus(forced=initial_stimulus(spec)))
        yield cpu, cuda


@pytest.mark.gate("gpu")
def test_thousands_of_calls(pair: tuple[Engine, Engine]) -> None:
    """Random stimulus in every call: every list, and at the end the state, equal the CPU engine's."""
    cpu, cuda = pair
    fired = 0
    with cuda.closed_loop() as loop:
        for place, (ids, amounts, forced) in enumerate(random_calls(cuda.network, CALLS)):
            want, got = cpu.step(Stimulus(ids, amounts, forced)).fired_ids, loop.step(ids, amounts, forced)
            np.testing.assert_array_equal(want, got, f"call {place}")
            fired += len(got)
    assert fired > CALLS * 50
    assert cpu.state().differences(cuda.state()) == ()


@pytest.mark.gate("gpu")
def test_a_kernel_that_ended_for_lack_of_calls_goes_on(pair: tuple[Engine, Engine]) -> None:
    """Pauses before, at and after the end of the kernel lose nothing; without a call it is gone from the device."""
    from burstproof.engine.cuda.engine import CudaEngine

    cpu, cuda = pair
    assert isinstance(cuda, CudaEngine)
    rng = np.random.default_rng(2)
    with cuda.closed_loop() as loop:
        for ids, amounts, forced in random_calls(cuda.network, 200, seed=2):
            want, got = cpu.step(Stimulus(ids, amounts, forced)).fired_ids, loop.step(ids, amounts, forced)
            np.testing.assert_array_equal(want, got)
            time.sleep(rng.uniform(0.8, 1.2) * IDLE_NS / 1e9)
        time.sleep(3 * IDLE_NS / 1e9)
        import cupy

        since = time.monotonic()
        cupy.cuda.Device().synchronize()
        assert time.monotonic() - since < 1.0
    assert cpu.state().differences(cuda.state()) == ()


@pytest.mark.gate("gpu")
def test_an_exception_in_the_middle(pair: tuple[Engine, Engine]) -> None:
    """What the host raises leaves the block with the engine after its last burst; the next loop goes on from there."""
    cpu, cuda = pair
    calls = list(random_calls(cuda.network, 60, seed=3))
    outside = np.array([NEURONS], np.uint32), np.ones(1, np.float32)

    def part(number: int) -> None:
        with cuda.closed_loop() as loop:
            for ids, amounts, forced in calls[20 * number : 20 * number + 20]:
                want, got = cpu.step(Stimulus(ids, amounts, forced)).fired_ids, loop.step(ids, amounts, forced)
                np.testing.assert_array_equal(want, got)
            if number == 1:
                loop.step(*outside)
            raise KeyboardInterrupt

    for number, expected in enumerate((KeyboardInterrupt, StimulusError, KeyboardInterrupt)):
        with pytest.raises(expected):
            part(number)
        assert cuda.burst_count == cpu.burst_count
        assert cpu.state().differences(cuda.state()) == ()


@pytest.mark.gate("gpu")
def test_other_work_runs_beside_a_loop(pair: tuple[Engine, Engine]) -> None:
    """Another engine runs, allocates and closes on the same device between the calls."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.cuda.engine import CudaEngine

    cpu, cuda = pair
    mix = next(mix for mix in MIXES if mix.name == MIXED[0])
    network, options = mixed_network(mix), mixed_options(mix)
    with cuda.closed_loop() as loop, CpuEngine.create(network, options) as beside:
        expected = beside.run(40)
        for ids, amounts, forced in random_calls(cuda.network, 12, seed=5):
            want, got = cpu.step(Stimulus(ids, amounts, forced)).fired_ids, loop.step(ids, amounts, forced)
            np.testing.assert_array_equal(want, got)
            with CudaEngine.create(network, options) as other, other.closed_loop() as second:
                second.step()
                loop.step()
                cpu.step()
                assert len(other.run(39).bursts) == 39
            assert other.burst_count == int(expected.bursts[-1])
    assert cpu.state().differences(cuda.state()) == ()
