"""The state of features: what an engine refuses of it, and how it becomes columns and comes back."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from burstproof.engine.feature_state import FORMS, FeatureState, columns_of, from_columns
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import FEAGI_BETA
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.reference_associative import ROOM
from burstproof.engine.state import EngineState
from burstproof.errors import NetworkError, StimulusError
from burstproof.network.features import AreaFeatures, Features, Homeostat, MemoryArea, MemoryChange
from suites.support.parity.builder import network, stimulate
from suites.support.parity.cases import FEATURE_CASES
from suites.support.parity.cases.feature_learning import associating
from suites.support.parity.cases.feature_memory import early, remembering, replaying
from suites.support.parity.recordings import FEATURE_NAMES, recording

pytestmark = pytest.mark.requirement("BE-4")

Change = Callable[[FeatureState], FeatureState]


def grown(name: str = "features/mem6_12") -> tuple[ReferenceEngine, EngineState]:
    """An engine with memories, twins, injections and created synapses, and its state."""
    trace = recording(name)
    engine = ReferenceEngine.create(trace.network, EngineOptions())
    engine.run(30, trace.plan)
    return engine, engine.state()


def features_of(state: EngineState) -> FeatureState:
    assert state.features is not None
    return state.features


def memory(**columns: Any) -> Change:
    """Another memory state; a column is an array, or a function of the one that is there."""

    def change(state: FeatureState) -> FeatureState:
        values = {n: v(getattr(state.memory, n)) if callable(v) else v for n, v in columns.items()}
        return dataclasses.replace(state, memory=dataclasses.replace(state.memory, **values))

    return change


def made(**columns: Any) -> Change:
    def change(state: FeatureState) -> FeatureState:
        values = {name: first(value)(getattr(state.made, name)) for name, value in columns.items()}
        return dataclasses.replace(state, made=dataclasses.replace(state.made, **values))

    return change


def first(value: float) -> Callable[[Any], Any]:
    """A column whose first value is ``value``."""

    def change(column: Any) -> Any:
        changed = column.copy()
        changed[0] = value
        return changed

    return change


def shorter(column: Any) -> Any:
    return column[:-1]


REFUSED: dict[str, Change] = {
    "thresholds": lambda state: dataclasses.replace(state, thresholds=state.thresholds[:-1]),
    "signals": lambda state: dataclasses.replace(state, signals=np.zeros(3, np.float32)),
    "postsynaptic_potentials": lambda state: dataclasses.replace(
        state, postsynaptic_potentials=state.postsynaptic_potentials[:-1]
    ),
    "memory.lifespans": memory(lifespans=shorter),
    "memory.areas": memory(areas=first(1)),
    "memory.ids": memory(ids=lambda ids: ids[::-1].copy()),
    "memory.injection_memories": memory(injection_memories=first(50_000_000)),
    "memory.twin_areas": memory(twin_areas=first(2)),
    "memory.twins": memory(twins=first(99)),
    "made.sources": made(sources=99),
    "made.targets": made(targets=50_000_000),
    "made.mappings": made(mappings=1),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_state_that_does_not_fit_is_refused(name: str) -> None:
    engine, state = grown()
    assert len(features_of(state).memory.twin_areas) > 0
    with pytest.raises(NetworkError, match=name.replace(".", r"\.")):
        engine.restore(dataclasses.replace(state, features=REFUSED[name](features_of(state))))
    engine.restore(state)
    assert engine.state().differences(state) == ()


@pytest.mark.parametrize("name", ["frame_memories", "replay_neurons", "learnt_potentials"])
def test_what_replays_has_to_fit(name: str) -> None:
    trace = recording("features/mem5_15" if name == "learnt_potentials" else "features/mem4_11")
    engine = ReferenceEngine.create(trace.network, EngineOptions())
    state = engine.state()
    while not len(getattr(features_of(state).memory, name)):
        number = engine.burst_count + 1
        engine.step(trace.plan[number]) if number in trace.plan else engine.step()
        state = engine.state()
    change = memory(**{name: shorter if name == "learnt_potentials" else first(77)})
    with pytest.raises(NetworkError, match=name):
        engine.restore(dataclasses.replace(state, features=change(features_of(state))))


def test_features_in_the_state_are_those_of_the_network() -> None:
    plain, featured = network(1), network(1).replace(features=Features(clamp_potentials=True))
    engines = [ReferenceEngine.create(one, EngineOptions()) for one in (plain, featured)]
    assert engines[0].state().features is None
    for engine, other in zip(engines, engines[::-1], strict=True):
        with pytest.raises(NetworkError, match="features"):
            engine.restore(other.state())


def test_columns_come_back() -> None:
    _, state = grown()
    columns = columns_of(features_of(state))
    assert list(columns) == list(FORMS)
    assert all(column.dtype == FORMS[name][0] for name, column in columns.items())
    back = dataclasses.replace(state, features=from_columns(columns))
    assert state.differences(back) == ()


@pytest.mark.parametrize("name", FORMS)
def test_every_column_is_compared(name: str) -> None:
    _, state = grown()
    columns = columns_of(features_of(state))
    other = np.append(columns[name], columns[name].dtype.type(1)) if FORMS[name][1] != "1" else columns[name] + 1
    changed = dataclasses.replace(state, features=from_columns({**columns, name: other}))
    assert state.differences(changed) == (name,)


def test_an_engine_goes_back_to_fewer_twins() -> None:
    trace = recording("features/mem6_12")
    engine = ReferenceEngine.create(trace.network, EngineOptions())
    start = engine.state()
    before = engine.run(30, trace.plan)
    engine.restore(start)
    again = engine.run(30, trace.plan)
    assert np.array_equal(before.fired_ids, again.fired_ids)


@pytest.mark.parametrize(
    ("area", "named"),
    [
        (AreaFeatures(memory=MemoryArea(temporal_depth=0)), "temporal depth"),
        (AreaFeatures(memory=MemoryArea(change=MemoryChange.RATIO, ratio_quantization=0.0)), "quantization"),
        (AreaFeatures(memory=MemoryArea(change=MemoryChange.DIFFERENTIAL, delta_quantization=-1.0)), "quantization"),
        (AreaFeatures(homeostat=Homeostat(tau=0.0)), "homeostat"),
        (AreaFeatures(homeostat=Homeostat(update_every=0)), "homeostat"),
    ],
)
def test_features_that_no_engine_can_run_are_refused(area: AreaFeatures, named: str) -> None:
    with pytest.raises(NetworkError, match=named):
        ReferenceEngine.create(network(1).replace(features=Features(areas={7: area})), EngineOptions())


def test_a_memory_area_needs_a_neuron() -> None:
    areas = {9: AreaFeatures(memory=MemoryArea(upstream=(7,)))}
    with pytest.raises(NetworkError, match="without a neuron"):
        ReferenceEngine.create(network(1).replace(features=Features(areas=areas)), EngineOptions())


def test_the_other_profile_knows_no_features() -> None:
    with pytest.raises(NetworkError, match="feagi-beta"):
        ReferenceEngine.create(remembering(), EngineOptions(profile=FEAGI_BETA))


def test_only_memory_areas_inject_early() -> None:
    engine = ReferenceEngine.create(remembering(), EngineOptions())
    with pytest.raises(StimulusError, match="memories_early"):
        engine.step(early(0, area=7))


def test_too_many_synapses_onto_a_neuron_are_an_error() -> None:
    """Room for 2^16 beyond the largest in-degree: one more names the neuron."""
    engine = ReferenceEngine.create(associating(), EngineOptions())
    ids = np.arange(50_000_000, 50_000_000 + ROOM)
    engine.made.make(0, ids, np.full(ROOM, 2), np.float32(1), np.float32(1))
    engine.step()
    with pytest.raises(NetworkError, match="neuron 2"):
        engine.step(stimulate({}, 0, 2))


@pytest.mark.parametrize("name", FEATURE_NAMES)
def test_the_scale_is_that_of_the_engines(name: str) -> None:
    options = EngineOptions()
    trace = recording(name)
    assert ReferenceEngine.create(trace.network, options).fixed_point == plan_fixed_point(trace.network, options)


def test_the_scale_of_each_case_is_that_of_the_engines() -> None:
    for case in FEATURE_CASES:
        specification = ReferenceEngine.create(case.network, case.options)
        assert specification.fixed_point == plan_fixed_point(case.network, case.options), case.name


def test_room_for_synapses_that_appear_makes_the_scale_coarser() -> None:
    """65536 more synapses onto each neuron: 2^49 / 65538 holds 2^24 x 256 and not 2^25 x 256."""
    plain = ReferenceEngine.create(network(2), EngineOptions()).fixed_point
    growing = ReferenceEngine.create(replaying(), EngineOptions()).fixed_point
    assert (plain.k, plain.bits) == (0, 32)
    assert (growing.k, growing.bits, growing.clamp) == (24, 64, 2**62 // (ROOM + 2))


def test_contributions_of_the_last_burst_can_be_put_under_way_again() -> None:
    """``inject`` takes made synapses and psps of the state."""
    trace = recording("features/assoc_11")
    engine = ReferenceEngine.create(trace.network, EngineOptions())
    engine.run(20, trace.plan)
    state = engine.state()
    assert len(state.fired_ids) > 0
    again = engine.inject(dataclasses.replace(state, pending=np.zeros_like(state.pending)))
    assert again.pending.any()
    assert again.differences(state) in ((), ("pending",))
