"""States of features that no run has, and values at the edge of their range: refused by name, or alike everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine.feature_state import FeatureState
from burstproof.engine.options import EngineOptions
from burstproof.engine.state import NO_STIMULUS, EngineState, Stimulus
from burstproof.errors import NetworkError, StimulusError
from burstproof.network.features import LONGEST_LIFESPAN
from burstproof.network.model import Network
from suites.support.parity import backends
from suites.support.parity.recordings import recording

pytestmark = pytest.mark.requirement("BE-4", "ST-5")

NAME = "features/mem1_11"
"""A memory area, twins and an associative mapping."""

MOST = (1 << 63) - 1


def run_to(burst: int, backend: backends.Backend, network: Network, name: str = NAME) -> EngineState:
    """The state after ``burst`` of the recording's stimulus."""
    plan = recording(name).plan
    with backend.create(network, EngineOptions()) as engine:
        for number in range(1, burst + 1):
            engine.step(plan.get(number, NO_STIMULUS))
        return engine.state()


def with_memory(found: FeatureState, **values: object) -> FeatureState:
    return replace(found, memory=replace(found.memory, **values))


def first(column: np.ndarray, value: float | bool) -> np.ndarray:
    """A copy whose first entry is ``value``."""
    changed = column.copy()
    changed[0] = value
    return changed


STRANGE: list[tuple[Callable[[FeatureState], FeatureState], str]] = [
    (lambda f: with_memory(f, history_bursts=MOST), r"memory\.history_bursts: a history longer .*allowed: 0\.\.\.0"),
    (lambda f: with_memory(f, history_bursts=-1), r"memory\.history_bursts: a history longer"),
    (
        lambda f: with_memory(f, next_id=MOST),
        r"memory\.next_id: not the id of a memory neuron .*50000000\.\.\.4294967295",
    ),
    (lambda f: with_memory(f, next_id=0), r"memory\.next_id"),
    (lambda f: replace(f, bursts_since_load=7), r"bursts_since_load: .*got 7; allowed: 0 or 1"),
    (
        lambda f: replace(f, trains=first(f.trains, True)),
        r"trains\[0\]: the state names what the network does not have",
    ),
    (
        lambda f: replace(f, postsynaptic_potentials=first(f.postsynaptic_potentials, np.nan)),
        r"postsynaptic_potentials\[0\]: the state names",
    ),
]


@pytest.mark.parametrize(("change", "message"), STRANGE, ids=[text.split(":")[0] for _, text in STRANGE])
@pytest.mark.parametrize("backend", backends.FEATURED)
def test_a_state_that_no_run_has_is_refused(
    backend: backends.Backend, change: Callable[[FeatureState], FeatureState], message: str
) -> None:
    """A history of 2^63 bursts, say, would never be taken in; the engine goes on from where it stood."""
    network = recording(NAME).network
    if backend.refuses(network):
        return
    state = run_to(20, backends.REFERENCE, network)
    assert state.features is not None
    with backend.create(network, EngineOptions()) as engine:
        engine.restore(state)
        with pytest.raises(NetworkError, match=message):
            engine.restore(replace(state, features=change(state.features)))
        assert engine.state().differences(state) == ()


@pytest.mark.parametrize("backend", backends.FEATURED)
def test_what_was_clamped_before_a_restore_is_forgotten(backend: backends.Backend) -> None:
    name = "features/assoc_11"
    network = recording(name).network
    if backend.refuses(network):
        return
    state = run_to(20, backends.REFERENCE, network, name)
    assert state.features is not None
    made = state.features.made
    huge = replace(made, weights=np.full_like(made.weights, 1e30))
    with backend.create(network, EngineOptions()) as engine:
        engine.restore(replace(state, features=replace(state.features, made=huge)))
        plan = recording(name).plan
        for number in range(21, 36):
            engine.step(plan.get(number, NO_STIMULUS))
        assert engine.state().clamped
        engine.restore(state)
        assert not engine.state().clamped


@pytest.mark.parametrize("backend", backends.FEATURED)
def test_a_lifespan_stops_at_32_bits(backend: backends.Backend) -> None:
    network = recording(NAME).network
    area, own = next((index, one) for index, one in network.features.areas.items() if one.memory is not None)
    assert own.memory is not None
    greedy = replace(own, memory=replace(own.memory, lifespan_growth=LONGEST_LIFESPAN, longterm_threshold=1 << 31))
    changed = network.replace(features=replace(network.features, areas={**network.features.areas, area: greedy}))
    if backend.refuses(changed):
        return
    end = run_to(41, backend, changed)
    assert end.features is not None
    assert end.features.memory.lifespans.max() == LONGEST_LIFESPAN
    assert end.differences(run_to(41, backends.REFERENCE, changed)) == ()


@pytest.mark.parametrize("early", [None, "x", [7], np.array([[7]]), np.array([12.5]), np.array([-1])], ids=repr)
@pytest.mark.parametrize("backend", backends.FEATURED)
def test_early_memories_that_are_no_list_of_areas_are_refused(backend: backends.Backend, early: object) -> None:
    network = recording(NAME).network
    if backend.refuses(network):
        return
    with backend.create(network, EngineOptions()) as engine:
        before = engine.state()
        with pytest.raises(StimulusError, match=r"stimulus\.memories_early: (memory areas must|not a memory area)"):
            engine.step(Stimulus(NO_STIMULUS.ids, NO_STIMULUS.amounts, NO_STIMULUS.forced, early))
        assert engine.state().differences(before) == ()
