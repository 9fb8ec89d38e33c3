"""What the CPU engine says of itself between calls: after runs that end early, and after its end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import partial

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.errors import InputError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.shards.cpu_shards import sharded

pytestmark = pytest.mark.requirement("BE-4", "BE-5")

NEURONS = 50


def options(threads: int) -> EngineOptions:
    """So much may come from outside that no scale holds it: amounts are clamped."""
    return EngineOptions(cpu=CpuOptions(threads=threads), max_stimulus=1e30)


def ring_of_neurons() -> Network:
    """Each neuron has one synapse, onto the next."""
    ids = np.arange(NEURONS, dtype=np.uint32)
    return Network(NeuronTable.build(NEURONS), SynapseTable.build(ids, np.roll(ids, -1)))


class StopError(Exception):
    """What a progress callback raises."""


def stop(_: int) -> None:
    """End a run after its first piece."""
    raise StopError


@pytest.mark.parametrize("threads", [1, 2])
def test_an_amount_is_clamped_when_its_burst_is_done(threads: int) -> None:
    """All neurons fire, so the run pauses for lack of room before the burst whose stimulus is clamped."""
    network, everybody = ring_of_neurons(), Stimulus(forced=np.arange(NEURONS, dtype=np.uint32))
    plan = dict.fromkeys(range(1, 20), everybody) | {20: Stimulus(np.zeros(1, np.uint32), np.float32([1e25]))}
    reference = ReferenceEngine.create(network, options(threads))
    with closing(CpuEngine.create(network, options(threads))) as engine:
        with pytest.raises(StopError):
            engine.run(20, plan, progress=stop)
        assert engine.burst_count < 20
        reference.run(engine.burst_count, plan)
        assert reference.state().differences(engine.state()) == ()
        left = 20 - engine.burst_count
        engine.run(left, plan)
        reference.run(left, plan)
        assert reference.state().differences(engine.state()) == ()
        assert engine.state().clamped


@pytest.mark.parametrize(("threads", "shards"), [(1, 1), (2, 1), (1, 2)])
def test_a_closed_engine_says_so(threads: int, shards: int) -> None:
    make = CpuEngine.create if shards == 1 else sharded("contiguous", shards)
    engine = make(ring_of_neurons(), options(threads))
    engine.run(3, {1: Stimulus(forced=np.arange(3, dtype=np.uint32))})
    known = engine.state()
    engine.close()
    engine.close()
    asked: list[Callable[[], object]] = [
        engine.step,
        engine.state,
        partial(engine.run, 2),
        partial(engine.restore, known),
        partial(engine.potentials, np.arange(3, dtype=np.uint32)),
    ]
    for ask in asked:
        with pytest.raises(InputError, match=r"the engine is closed.*Create another engine"):
            ask()
    assert engine.burst_count == 3
