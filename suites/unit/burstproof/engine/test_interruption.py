"""Engines that Ctrl-C interrupts within a burst do not go on from a state that never was."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import InputError
from burstproof.network.model import Network
from suites.support.parity.mixed import mixed_network, mixed_options
from suites.support.shards.cpu_shards import mix_named, sharded

pytestmark = pytest.mark.requirement("BE-5", "BE-20")

ENGINES = {
    "reference": ReferenceEngine.create,
    "1 thread": lambda network, options: CpuEngine(network, _threads(options, 1)),
    "2 threads": lambda network, options: CpuEngine(network, _threads(options, 2)),
    "2 shards": sharded("contiguous", 2),
}


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
        half_way = "reference.ReferenceEngine._tick" if name == "reference" else "cpu.memory.CpuMemory.note_power"
        within = mock.patch(f"burstproof.engine.{half_way}", side_effect=KeyboardInterrupt)
        with within, pytest.raises(KeyboardInterrupt):
            engine.run(3)
        asked: list[Callable[[], object]] = [engine.state, engine.step, partial(engine.run, 2)]
        for ask in asked:
            with pytest.raises(InputError, match=r"interrupted within a burst.*Restore a state"):
                ask()
        engine.restore(known)
        engine.run(4)
        reference.run(4)
        assert list(reference.state().differences(engine.state())) == []


def _reference(network: Network, options: EngineOptions) -> Engine:
    return ReferenceEngine.create(network, options)
