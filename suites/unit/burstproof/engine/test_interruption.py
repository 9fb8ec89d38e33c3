"""Engines of which an error or Ctrl-C ends a burst do not go on from a state that never was."""

from __future__ import annotations

import signal
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cuda.growing_engine import GrowingEngine
from burstproof.engine.features.machine import MemoryMachine
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import InputError, NetworkError
from burstproof.network.features import AssociativeMapping, Features
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from suites.support.parity.mixed import mixed_network, mixed_options
from suites.support.shards.cpu_shards import mix_named, sharded

pytestmark = pytest.mark.requirement("BE-5", "BE-20")

ENGINES = {
    "reference": ReferenceEngine.create,
    "1 thread": lambda network, options: CpuEngine(network, _threads(options, 1)),
    "2 threads": lambda network, options: CpuEngine(network, _threads(options, 2)),
    "2 shards": sharded("contiguous", 2),
}


@dataclass(frozen=True)
class Answer:
    """An error and what it says, as a pattern."""

    kind: type[Exception]
    match: str


ENDINGS: tuple[tuple[BaseException, Answer], ...] = (
    (KeyboardInterrupt(), Answer(InputError, r"interrupted within a burst.*Restore a state")),
    (NetworkError("too many synapses"), Answer(NetworkError, "too many synapses")),
    (MemoryError("no room"), Answer(MemoryError, "no room")),
)
"""What ends a burst, and how the engine answers from then on."""


def _threads(options: EngineOptions, threads: int) -> EngineOptions:
    return replace(options, cpu=CpuOptions(threads=threads))


@pytest.mark.parametrize("name", ENGINES)
def test_an_interrupted_engine_goes_on_from_a_restored_state_only(name: str) -> None:
    mix = mix_named("integers, all excitatory")
    network, options = mixed_network(mix), mixed_options(mix)
    start = {1: Stimulus(forced=np.arange(0, network.neuron_count, 3, dtype=np.uint32))}
    with closing(ENGINES[name](network, options)) as engine, closing(_reference(network, options)) as reference:
        engine.run(5, start)
        reference.run(5, start)
        known = engine.state()
        assert list(reference.state().differences(known)) == []
        half_way = _half_way(name)
        for raised, answer in ENDINGS:
            within = mock.patch(f"burstproof.engine.{half_way}", side_effect=raised)
            with within, pytest.raises(type(raised)):
                engine.run(3)
            refuses_all(engine, answer)
            engine.restore(known)
        engine.run(4)
        reference.run(4)
        assert list(reference.state().differences(engine.state())) == []


def _half_way(name: str) -> str:
    """What engine ``name`` calls in the middle of a burst."""
    return "reference.ReferenceEngine._tick" if name == "reference" else "cpu.memory.CpuMemory.note_power"


@pytest.mark.parametrize("name", ENGINES)
def test_ctrl_c_within_a_call_of_a_loop_waits_for_its_end(name: str) -> None:
    mix = mix_named("integers, all excitatory")
    network, options = mixed_network(mix), mixed_options(mix)
    everybody = np.arange(0, network.neuron_count, 3, dtype=np.uint32)
    with closing(ENGINES[name](network, options)) as engine, closing(_reference(network, options)) as reference:
        with engine.closed_loop() as loop:
            loop.step(forced=everybody)
            with _pressing_ctrl_c(_half_way(name)), pytest.raises(KeyboardInterrupt):
                loop.step()
            assert engine.burst_count == network.burst_count + 2
            loop.step()
        reference.run(3, {network.burst_count + 1: Stimulus(forced=everybody)})
        assert list(reference.state().differences(engine.state())) == []


@pytest.mark.parametrize("name", ["1 thread", "2 threads"])
def test_ctrl_c_within_a_run_waits_for_the_end_of_a_batch(name: str) -> None:
    mix = mix_named("integers, all excitatory")
    network, options = mixed_network(mix), mixed_options(mix)
    before = network.burst_count
    start = {before + 1: Stimulus(forced=np.arange(0, network.neuron_count, 3, dtype=np.uint32))}
    with closing(ENGINES[name](network, options)) as engine, closing(_reference(network, options)) as reference:
        with _pressing_ctrl_c(_half_way(name)), pytest.raises(KeyboardInterrupt):
            engine.run(10_000, start)
        done = engine.burst_count - before
        assert 1 <= done < 10_000
        reference.run(done, start)
        assert list(reference.state().differences(engine.state())) == []


@pytest.mark.parametrize("started", [False, True], ids=["before a helper starts", "after it"])
def test_an_interrupt_while_helpers_start_leaves_none_behind(started: bool) -> None:
    """A helper that is expected and does not exist would be waited for without end; two would share one part."""
    mix = mix_named("integers, all excitatory")
    network, options = mixed_network(mix), mixed_options(mix)
    start = {network.burst_count + 1: Stimulus(forced=np.arange(0, network.neuron_count, 3, dtype=np.uint32))}

    def interrupted(*work: Any) -> None:
        if started:
            start_new_thread(*work)
        raise KeyboardInterrupt

    with closing(ENGINES["2 threads"](network, options)) as engine, closing(_reference(network, options)) as reference:
        first = engine.state()
        within = mock.patch("burstproof.engine.cpu.threads.start_new_thread", interrupted)
        with within, pytest.raises(KeyboardInterrupt):
            engine.run(1)
        engine.restore(first)
        for _ in range(20):
            engine.run(3, start)
            reference.run(3, start)
        assert list(reference.state().differences(engine.state())) == []


@contextmanager
def _pressing_ctrl_c(where: str) -> Iterator[None]:
    """Within it, the engine's method ``where`` is interrupted when it has ended."""
    module, owner, name = where.split(".")[:-2], *where.split(".")[-2:]
    method = getattr(getattr(import_module(".".join(["burstproof.engine", *module])), owner), name)

    def interrupted(*arguments: Any) -> Any:
        found = method(*arguments)
        signal.raise_signal(signal.SIGINT)
        return found

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with mock.patch(f"burstproof.engine.{where}", interrupted):
            yield
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", [name for name in ENGINES if name != "reference"])
def test_an_error_in_what_appears_is_raised_again(name: str) -> None:
    """Half of the burst is done by then: the synapses that it makes, but not all that follows."""
    network, options = associating_network(), EngineOptions()
    everybody = {number: Stimulus(forced=np.arange(4, dtype=np.uint32)) for number in range(1, 9)}
    end = MemoryMachine.end

    with closing(ENGINES[name](network, options)) as engine, closing(_reference(network, options)) as reference:
        engine.run(2, everybody)
        reference.run(2, everybody)
        known = engine.state()
        for raised, answer in ENDINGS:

            def end_and_raise(*arguments: Any, raised: BaseException = raised) -> None:
                end(*arguments)
                raise raised

            with mock.patch.object(MemoryMachine, "end", end_and_raise), pytest.raises(type(raised)):
                engine.step(everybody[3])
            refuses_all(engine, answer)
            engine.restore(known)
        engine.run(4, everybody)
        reference.run(4, everybody)
        assert list(reference.state().differences(engine.state())) == []


@pytest.mark.thorough("compiles kernels of its own")
def test_a_change_of_kernels_that_does_not_end_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where memory is short the general kernels go on; an interruption within the change is one within a burst."""
    monkeypatch.setattr("burstproof.engine.cpu.engine._GENERAL_UPDATES", 0)
    mix = mix_named("integers, all excitatory")
    network, options = mixed_network(mix), mixed_options(mix)
    start = {1: Stimulus(forced=np.arange(0, network.neuron_count, 3, dtype=np.uint32))}
    with closing(ENGINES["2 threads"](network, options)) as engine, closing(_reference(network, options)) as reference:
        assert isinstance(engine, CpuEngine)
        general = engine.kernels
        engine.run(2, start)
        reference.run(2, start)
        with mock.patch("burstproof.engine.cpu.engine.CpuMemory", side_effect=MemoryError):
            engine.run(2)
        assert engine.kernels is general
        reference.run(2)
        known = engine.state()
        assert list(reference.state().differences(known)) == []
        within = mock.patch("burstproof.engine.cpu.engine.Team", side_effect=KeyboardInterrupt)
        with within, pytest.raises(KeyboardInterrupt):
            engine.run(2)
        refuses_all(engine, ENDINGS[0][1])
        engine.restore(known)
        engine.run(3)
        reference.run(3)
        assert engine.kernels is not general
        assert list(reference.state().differences(engine.state())) == []


@pytest.mark.parametrize("ahead", [False, True])
def test_the_cuda_engine_keeps_the_error_of_a_growing_burst(ahead: bool) -> None:
    """Its devices are not asked for anything here."""
    network = associating_network()
    for raised, answer in ENDINGS:
        engine = _cuda_engine(network, mock.Mock(side_effect=raised), ahead)
        with pytest.raises(type(raised)):
            engine.run(3)
        refuses_all(engine, replace(answer, match=answer.match.replace("Restore", "Create another engine and restore")))


def test_the_cuda_engine_goes_on_after_a_callback_that_raised() -> None:
    """The burst before it has ended."""
    advance = mock.Mock()
    engine = _cuda_engine(associating_network(), advance, ahead=True)
    for count in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            engine.run(3, progress=mock.Mock(side_effect=KeyboardInterrupt))
        assert (engine.burst_count, engine.failure) == (count, None)
    engine.run(3)
    assert (engine.burst_count, advance.call_count) == (5, 5)


def _cuda_engine(network: Network, burst: mock.Mock, ahead: bool) -> CudaEngine:
    """One over ``network`` whose bursts are calls of ``burst``."""
    growing = mock.MagicMock(step=burst, advance=burst)
    growing.ahead.return_value.__exit__.return_value = False
    growing.begin_run.return_value = ahead
    return GrowingEngine(network, EngineOptions(), plan_fixed_point(network, EngineOptions()), growing)


def refuses_all(engine: Engine, answer: Answer) -> None:
    """Whatever is asked, the engine gives one ``answer``."""
    asked: list[Callable[[], object]] = [
        engine.state,
        engine.step,
        partial(engine.run, 2),
        partial(engine.potentials, np.arange(2, dtype=np.uint32)),
    ]
    for ask in asked:
        with pytest.raises(answer.kind, match=answer.match):
            ask()


def associating_network() -> Network:
    """Two areas of two neurons; synapses appear from one to the other."""
    neurons = NeuronTable.build(4, cortical_areas=[7, 7, 8, 8])
    features = Features(associative=(AssociativeMapping(7, 8, 0),))
    pairs = (PlasticMapping(np.empty(0, np.int64)),)
    return Network(neurons, SynapseTable.build([0, 1, 2], [2, 3, 0]), plastic_mappings=pairs, features=features)


def _reference(network: Network, options: EngineOptions) -> Engine:
    return ReferenceEngine.create(network, options)
