"""States that are not of the network at hand, or of no network: every engine refuses the same ones, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.engine.admission import check_state
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.protocol import CreateEngine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.sharded.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from burstproof.engine.state import EngineState, Stimulus
from burstproof.errors import CheckpointError, NetworkError
from burstproof.network.features import (
    AreaFeatures,
    AssociativeMapping,
    Features,
    Modulator,
    ModulatorKind,
    RuleFeatures,
)
from burstproof.network.model import Area, Network
from burstproof.network.plasticity import PlasticMapping
from suites.support.parity.recordings import recording
from suites.support.shards.cpu_shards import sharded

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")

Change = Callable[[EngineState], EngineState]

ENGINES: dict[str, CreateEngine] = {
    "reference": ReferenceEngine.create,
    "1 thread": lambda network, options: CpuEngine(network, replace(options, cpu=CpuOptions(threads=1))),
    "2 threads": lambda network, options: CpuEngine(network, replace(options, cpu=CpuOptions(threads=2))),
    "2 shards": sharded("contiguous", 2),
}


def ring(longest: int = 3, areas: Sequence[int] = (7, 7, 7), **columns: Any) -> Network:
    """Three neurons that excite each other in turn; the last synapse has the longest delay."""
    ends = {"source_neurons": [0, 1, 2], "target_neurons": [1, 2, 0]}
    synapses = {**ends, "delay_bursts": [1, 1, longest], **columns}
    return Network.from_arrays({"thresholds": 1.0, "cortical_areas": areas}, synapses)


def after_a_firing(network: Network) -> EngineState:
    engine = ReferenceEngine.create(network, EngineOptions())
    engine.step(Stimulus(forced=np.array([0], np.uint32)))
    return engine.state()


def column(name: str, change: Callable[[Any], Any]) -> Change:
    return lambda state: replace(state, **{name: change(getattr(state, name))})


def fired(*ids: int) -> Change:
    values = np.array(ids, np.uint32)
    return lambda state: replace(state, fired_ids=values, fired_potentials=np.ones(len(ids), np.float32))


def filled(value: float) -> Callable[[Any], Any]:
    return lambda values: np.full_like(values, value)


REFUSED: dict[str, tuple[Change, str]] = {
    "fewer rows": (lambda _: after_a_firing(ring(1)), r"pending: the state of another.*\(1, 3\).*allowed.*\(3, 3\)"),
    "more rows": (lambda _: after_a_firing(ring(5)), r"pending: the state of another network.*\(5, 3\).*Restore it"),
    "no row": (column("pending", lambda rows: rows[:0]), "pending: the state of another network"),
    "an axis more": (column("pending", lambda rows: rows[None]), "pending: the state of another network"),
    "sums of floats": (column("pending", lambda rows: rows.astype(float)), "pending.*float64.*allowed: int64"),
    "sums too large": (column("pending", lambda rows: rows << 33), r"pending\[0\]\[1\]: a sum that the accumul"),
    "least sums": (
        column("pending", lambda rows: rows * np.iinfo(np.int64).min),
        r"pending\[0\]\[1\]: a sum that the accumul",
    ),
    "sums that stimulus makes too large": (
        column("pending", lambda rows: np.sign(rows) * ((1 << 31) - 200)),
        r"pending\[0\]\[1\]: a sum that the accumul.*allowed: -2147483391...2147483391",
    ),
    "sums of nothing": (column("pending_candidate", np.zeros_like), r"pending\[0\]\[1\]: a sum without a contrib"),
    "NaN": (column("membrane_potentials", filled(np.nan)), r"membrane_potentials\[0\]: a value is NaN"),
    "NaN that fired": (column("fired_potentials", filled(np.nan)), "fired_potentials.*NaN"),
    "NaN in traces": (column("eligibility_traces", filled(np.nan)), "eligibility_traces.*NaN"),
    "infinite weights": (column("weights", filled(np.inf)), r"weights\[0\]: a weight is not finite"),
    "weights in a list": (column("weights", lambda values: values.tolist()), "weights: the state of another network"),
    "float64": (column("membrane_potentials", lambda v: v.astype(float)), "membrane_potentials.*float64"),
    "wide countdowns": (column("refractory_countdowns", lambda v: v.astype(int) + 70_000), "refractory_countdowns"),
    "candidates as numbers": (column("was_candidate", lambda v: v.astype(int)), "was_candidate.*int64"),
    "another neuron fired": (fired(99), r"fired_ids\[0\]: a neuron that the network does not have \(got 99"),
    "fired twice": (fired(1, 1), r"fired_ids\[1\]: the fired list does not ascend"),
    "fired in descending order": (fired(2, 0), r"fired_ids\[1\]: the fired list does not ascend"),
    "potentials short": (column("fired_potentials", lambda v: v[:0]), "fired_potentials: the state of another"),
    "before the first burst": (column("burst_count", lambda _: -7), "burst_count.*got -7"),
    "no burst after it": (column("burst_count", lambda _: 2**63 - 3), "burst_count.*got 9223372036854775805"),
    "half a burst": (column("burst_count", lambda _: 1.5), "burst_count.*got 1.5"),
    "history below 0": (column("history_bursts", lambda _: -5), "history_bursts.*got -5; allowed: 0...0"),
    "history beyond the window": (column("history_bursts", lambda _: 1), "history_bursts.*got 1; allowed: 0...0"),
    "clamped as a number": (column("clamped", lambda _: 2), "clamped.*allowed: true or false"),
    "a firing to come": (column("last_fired", filled(2**62)), "last_fired.*a firing in no burst so far"),
    "a long run": (column("fire_streak", filled(2)), "fire_streak.*longer than any plasticity window"),
    "no scale": (column("fixed_point", str), "fixed_point.*another scale"),
}
"""Changes of a state of ``ring()``, and what is said of them."""


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_state_of_no_run_of_this_network_is_refused(engine: str, name: str) -> None:
    network, (change, said) = ring(), REFUSED[name]
    state = after_a_firing(network)
    with closing(ENGINES[engine](network, EngineOptions())) as subject:
        with pytest.raises(NetworkError, match=rf"^state\.{said}"):
            subject.restore(change(state))
        subject.restore(state)
        assert subject.state().differences(state) == ()
        assert subject.run(3).fired_counts.tolist() == [1, 1, 0]


@pytest.mark.parametrize("engine", ENGINES)
def test_infinite_potentials_are_held(engine: str) -> None:
    network = ring()
    state = replace(after_a_firing(network), membrane_potentials=np.array([-np.inf, 0, np.inf], np.float32))
    with closing(ENGINES[engine](network, EngineOptions())) as subject:
        subject.restore(state)
        assert subject.state().differences(state) == ()


LEARNING = PlasticMapping(np.array([0]), 1, constant=1, ltp_multiplier=1, ltd_multiplier=1)

MODULATOR = Modulator("gain", ModulatorKind.TRANSMISSION_GAIN, driver=7, magnitude_percent=50.0)

LARGE: dict[str, Network] = {
    "constant": ring(),
    "one of them constant": replace(ring(areas=(7, 8, 8)), plastic_mappings=(LEARNING,)),
    "psp": ring(postsynaptic_potentials=[1.0, 1.0, 1e20]),
    "an invalid synapse": ring(valid_mask=[True, True, False]),
    "an invalid neuron": Network.from_arrays(
        {"valid_mask": [True, False, True]}, {"source_neurons": [0, 1, 2], "target_neurons": [1, 2, 0]}
    ),
    "potentials": ring().replace(areas=(Area(7, "driven", mp_driven_psp=True),)),
    "divided": ring().replace(areas=(Area(7, "divided", psp_uniform_distribution=False),)),
    "factors": ring(rules=[1, 0, 0]).replace(features=Features((MODULATOR,), rules=(RuleFeatures(gains=(0,)),))),
    "association": replace(
        ring(areas=(7, 8, 8)),
        plastic_mappings=(LEARNING,),
        features=Features(associative=(AssociativeMapping(7, 8, 0),)),
    ),
    "degeneration": ring().replace(features=Features(areas={7: AreaFeatures(degeneration=0.5)})),
}
"""Networks in which some weights count from the start, and others only when the source fires."""


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("row", range(3))
@pytest.mark.parametrize("weight", [2.0**31 - 512, 3e9, 1e25, -3e38])
def test_the_reference_refuses_the_weights_that_others_refuse(name: str, row: int, weight: float) -> None:
    network, found = LARGE[name], []
    for create in ENGINES.values():
        with closing(create(network, EngineOptions())) as subject:
            state = subject.state()
            weights = state.weights.copy()
            weights[row] = weight
            try:
                subject.restore(replace(state, weights=weights))
            except NetworkError as error:
                found.append(error.problem)
                assert subject.state().differences(state) == ()
            else:
                found.append("taken")
    assert found == found[:1] * len(ENGINES)


@pytest.mark.parametrize("name", ENGINES)
def test_weights_that_are_all_too_large_are_refused(name: str) -> None:
    with closing(ENGINES[name](ring(), EngineOptions())) as subject:
        state = subject.state()
        with pytest.raises(NetworkError):
            subject.restore(replace(state, weights=np.full_like(state.weights, 1e25)))


def test_only_valid_synapses_say_how_many_rows_there_are() -> None:
    network = ring(9, valid_mask=[True, True, False])
    state = after_a_firing(network)
    assert state.pending.shape == (1, 3)
    ReferenceEngine.create(network, EngineOptions()).restore(state)
    CpuEngine.create(network, EngineOptions()).restore(state)


def test_an_engine_whose_synapses_a_device_draws_says_how_many_rows_it_has() -> None:
    network = Network.from_arrays({"thresholds": 1.0}, {"source_neurons": [], "target_neurons": []}, count=3)
    state = after_a_firing(network)
    point = state.fixed_point
    assert point is not None
    drawn = replace(state, pending=np.zeros((4, 3), np.int64), pending_candidate=np.zeros((4, 3), np.bool_))
    check_state(drawn, network, point, 4)
    with pytest.raises(NetworkError, match=r"allowed: int64 \(1, 3\)"):
        check_state(drawn, network, point, 1)


def test_a_history_is_as_long_as_the_window_allows() -> None:
    network = replace(ring(), plastic_mappings=(replace(LEARNING, window=4),))
    engine = ReferenceEngine.create(network, EngineOptions())
    engine.run(9, {b: Stimulus(forced=np.array([0], np.uint32)) for b in range(1, 10)})
    state = engine.state()
    assert (state.history_bursts, int(state.fire_streak[0])) == (3, 4)
    engine.restore(state)
    for change in ({"history_bursts": 4}, {"fire_streak": state.fire_streak + np.uint16(1)}):
        with pytest.raises(NetworkError, match=next(iter(change))):
            engine.restore(replace(state, **change))


def test_a_memory_neuron_that_never_was_did_not_fire() -> None:
    found = recording("features/mem1_11")
    engine = ReferenceEngine.create(found.network, EngineOptions())
    engine.run(30, found.plan)
    state = engine.state()
    assert state.features is not None
    coming = np.array([state.features.memory.next_id], np.uint32)
    engine.restore(replace(state, fired_ids=coming - np.uint32(1), fired_potentials=np.ones(1, np.float32)))
    with pytest.raises(NetworkError, match="a neuron that the network does not have"):
        engine.restore(replace(state, fired_ids=coming, fired_potentials=np.ones(1, np.float32)))


def test_a_checkpoint_has_a_row_for_each_burst_of_some_delay(tmp_path: Path) -> None:
    state, path = after_a_firing(ring()), tmp_path / "one.bpstate"
    for rows, fits in ((0, False), (1, True), (255, True), (256, False)):
        pending = np.zeros((rows, 3), np.int64)
        save_checkpoint(path, Checkpoint(replace(state, pending=pending, pending_candidate=pending > 0), {}))
        if fits:
            assert load_checkpoint(path).state.pending.shape == (rows, 3)
        else:
            with pytest.raises(CheckpointError, match=r"pending has no row for each.*allowed: 1...255 rows"):
                load_checkpoint(path)
