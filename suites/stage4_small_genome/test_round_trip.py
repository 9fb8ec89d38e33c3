"""Small networks go up, run 200 bursts and come back intact, on every backend (ST-4)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import EngineState, Recording, StimulusPlan
from burstproof.network.model import Network
from stages.measuring import Measure
from suites.support.networks.small_networks import NAMES, OPTIONS, SYNTHETIC, seeded_plan, small_network
from suites.support.parity import backends
from suites.support.plans import thinned

pytestmark = pytest.mark.requirement("ST-4", "BE-1")

BURSTS = 200
HALF = BURSTS // 2
STATE_OF_THE_NETWORK = {
    "membrane_potentials": "neurons",
    "refractory_countdowns": "neurons",
    "consecutive_fire_counts": "neurons",
    "weights": "synapses",
    "eligibility_traces": "synapses",
}
RECORDED = ("bursts", "fired_counts", "candidate_counts", "fired_ids", "fired_potentials")


@dataclass(frozen=True, eq=False)
class Expected:
    """A small network, its stimuli and what the reference makes of them."""

    network: Network
    plan: StimulusPlan
    at_rest: EngineState
    halves: tuple[Recording, Recording]
    half_way: EngineState
    at_the_end: EngineState


@lru_cache(maxsize=len(NAMES))
def expected(name: str) -> Expected:
    network = small_network(name)
    plan = seeded_plan(network, BURSTS)
    reference = ReferenceEngine.create(network, OPTIONS)
    at_rest = reference.state()
    first = reference.run(HALF, plan)
    half_way = reference.state()
    second = reference.run(BURSTS - HALF, plan)
    return Expected(network, plan, at_rest, (first, second), half_way, reference.state())


def disagreements(want: Expected, engine: Engine) -> list[str]:
    """Everything in which the run of ``engine`` is not that of the reference, in words."""
    found = [f"state at rest: {name}" for name in want.at_rest.differences(engine.state())]
    for number, (recording, state) in enumerate(zip(want.halves, (want.half_way, want.at_the_end), strict=True)):
        got = engine.run(len(recording.bursts), want.plan)
        same = {name: getattr(recording, name).tobytes() == getattr(got, name).tobytes() for name in RECORDED}
        found += [f"half {number}: {name}" for name, equal in same.items() if not equal]
        found += [f"state after half {number}: {name}" for name in state.differences(engine.state())]
    return found


QUICK = thinned(NAMES, "a large genome, which the reference takes seconds for", keep=lambda _, name: name != "vision")


@pytest.mark.measures("parity.disagreements", backend=..., network=...)
@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("backend", backends.ENGINES)
def test_up_run_and_back(backend: backends.Backend, name: str, measure: Measure) -> None:
    """What was uploaded comes down unchanged before the first burst; 200 bursts later all equals the reference."""
    want = expected(name)
    engine = backend.create(want.network, OPTIONS)
    try:
        uploaded = engine.state()
        for column, table in STATE_OF_THE_NETWORK.items():
            sent = getattr(getattr(want.network, table), column)
            np.testing.assert_array_equal(getattr(uploaded, column), sent, err_msg=column)
        found = disagreements(want, engine)
    finally:
        engine.close()
    conditions = {
        "backend": backend.name,
        "network": name,
        "neurons": want.network.neuron_count,
        "synapses": want.network.synapse_count,
        "bursts": BURSTS,
        "fired": int(sum(half.fired_counts.sum() for half in want.halves)),
    }
    measure("parity.disagreements", len(found), "1", conditions=conditions, note="; ".join(found[:3]))
    assert not found, found[0]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("backend", backends.ENGINES)
def test_down_and_up_again(backend: backends.Backend, name: str) -> None:
    """A state that came down goes up into a fresh engine, which runs on as if nothing had happened."""
    want = expected(name)
    first = backend.create(want.network, OPTIONS)
    try:
        first.run(HALF, want.plan)
        taken = first.state()
    finally:
        first.close()
    second = backend.create(want.network, OPTIONS)
    try:
        second.restore(taken)
        assert second.state().differences(want.half_way) == ()
        got = second.run(BURSTS - HALF, want.plan)
        assert got.fired_ids.tobytes() == want.halves[1].fired_ids.tobytes()
        assert second.state().differences(want.at_the_end) == ()
    finally:
        second.close()


@pytest.mark.thorough("runs the reference on every network, the large genome included")
def test_the_networks_are_what_stage_4_names() -> None:
    """1 K neurons and 10 K synapses, and the four genomes; all of them fire in nearly every burst."""
    network = expected(SYNTHETIC).network
    assert (network.neuron_count, network.synapse_count) == (1000, 10_000)
    assert set(NAMES) - {SYNTHETIC} == {"barebones", "essential", "test", "vision"}
    for name in NAMES:
        fired = np.concatenate([half.fired_counts for half in expected(name).halves])
        assert np.count_nonzero(fired) > 0.9 * BURSTS, name


@pytest.mark.parametrize("name", NAMES[1:])
def test_growing_twice_gives_the_same_network(name: str) -> None:
    """The network that went up is the one that its genome grows."""
    once, again = expected(name).network, small_network(name)
    for table in ("neurons", "synapses"):
        for column in vars(getattr(once, table)):
            first, second = (getattr(getattr(network, table), column) for network in (once, again))
            assert first.tobytes() == second.tobytes(), column
