"""The scale of the sums: what it follows from (SEMANTICS section 7), and that files and states keep it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import replay
from burstproof.engine.sharded.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from burstproof.engine.state import Record
from burstproof.engine.trace import read_trace, trace_of_run, write_trace
from burstproof.errors import NetworkError
from burstproof.network.files.bpnet import load_network, save_network
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.plasticity import PlasticMapping
from suites.support.parity.builder import flags, network, synapse
from suites.support.parity.scaled import AT_WORK, KEPT, PLAN, START

pytestmark = pytest.mark.requirement("BE-4", "BE-17", "ST-5")

CLAMP_32, CLAMP_64, CLAMP_OF_ONE = 2**31 - 1, 2**62 - 1, 2**62 // 3
"""Clamps where 32 or 64 bit bound the sum, and where one synapse a neuron leaves it unbounded."""


def one(weight: float = 1.0, **values: Any) -> Network:
    """Two neurons and a synapse; M is |weight| + 1 + 255."""
    return network(2, [synapse(0, 1, weight=weight, **values)])


def stimulus(most: float, fractional: bool = False) -> EngineOptions:
    """Options with a declared stimulus."""
    return EngineOptions(max_stimulus=most, fractional_stimulus=fractional)


DRIVEN = network(2, [synapse(0, 1)], areas=[flags(uniform=True, mp_driven=True)])


def many_driven(in_degree: int) -> Network:
    """Mp-driven synapses of next to no weight, ``in_degree`` of them onto neuron 0."""
    synapses = [synapse(0, 0, weight=2.0**-20)] * in_degree
    return network(1, synapses, areas=[flags(uniform=True, mp_driven=True)]).replace(power_amount=0.0)


def plastic(start: Network, *parameters: float) -> Network:
    """``start`` with a plastic rule for its first synapse."""
    return start.replace(plastic_mappings=(PlasticMapping(np.array([0]), 1, *parameters),))


SPREAD = [synapse(0, 1), synapse(0, 1)]
NO_OUTSIDE = stimulus(0.0)

PLANS: tuple[tuple[str, Network, EngineOptions, tuple[int, int, int, bool]], ...] = (
    # without mp-driven or plastic synapses
    ("integers", one(), EngineOptions(), (0, 32, CLAMP_32, True)),
    ("no synapses", network(2), EngineOptions(), (0, 32, CLAMP_32, True)),
    ("negative contributions count in full", one(-(2.0**31)), EngineOptions(), (0, 64, CLAMP_64, True)),
    ("inhibitory contributions count in full", one(2.0**31, type=1), EngineOptions(), (0, 64, CLAMP_64, True)),
    ("invalid synapses do not count", one(2.0**31 + 0.1, valid=False), EngineOptions(), (0, 32, CLAMP_32, True)),
    ("M = 2^31 - 128", one(2.0**31 - 384), EngineOptions(), (0, 32, CLAMP_32, True)),
    ("M = 2^31", one(2.0**31 - 256), EngineOptions(), (0, 64, CLAMP_64, True)),
    ("M 2^15 = 2^31 - 1", one(2.0**-15), stimulus(65535 - 2.0**-14), (15, 32, CLAMP_32, True)),
    ("M 2^15 = 2^31", one(2.0**-15), stimulus(65535 - 2.0**-15), (15, 64, CLAMP_64, True)),
    ("M just below 2^62", one(2.0**62 - 2.0**38), EngineOptions(), (0, 64, CLAMP_64, True)),
    ("M = 2^62", one(2.0**62), EngineOptions(), (0, 64, CLAMP_OF_ONE, True)),
    ("M above 2^62, with a fraction", network(2, [synapse(0, 1, weight=2.0**62), synapse(0, 1, weight=0.5)]),
     EngineOptions(), (0, 64, 2**62 // 4, False)),
    ("a fraction of 2^-35", one(2.0**-35), EngineOptions(), (35, 64, CLAMP_64, True)),
    ("a fraction of 2^-53 just fits: M = 256 + 2^-53", one(2.0**-53), EngineOptions(), (53, 64, CLAMP_64, True)),
    ("a fraction of 2^-54 does not", one(2.0**-54), EngineOptions(), (53, 64, CLAMP_64, False)),
    ("the largest k with room", one(2.0**20 + 2.0**-3, psp=2.0**-60), EngineOptions(), (53, 64, CLAMP_64, False)),
    ("thirds", network(4, [synapse(0, t) for t in (1, 2, 3)], areas=[flags(uniform=False)]), EngineOptions(),
     (25, 64, CLAMP_64, True)),
    ("fractional power", one().replace(power_amount=0.1), EngineOptions(), (27, 64, CLAMP_64, True)),
    ("negative power of a half", one().replace(power_amount=-0.5), EngineOptions(), (1, 32, CLAMP_32, True)),
    ("a large power", one().replace(power_amount=2.0**31), EngineOptions(), (0, 64, CLAMP_64, True)),
    ("a large declared stimulus", one(), stimulus(2.0**31), (0, 64, CLAMP_64, True)),
    ("fractional stimulus: at least 30", one(), stimulus(255, True), (30, 64, CLAMP_64, False)),
    ("fractional stimulus, finer contributions", one(2.0**-35), stimulus(255, True), (35, 64, CLAMP_64, False)),
    ("fractional stimulus, 32 bit", one(2.0**-30).replace(power_amount=0.5), stimulus(1, True),
     (30, 32, CLAMP_32, False)),
    ("an mp-driven area without synapses", network(2, [synapse(0, 1)], areas=[flags(9, uniform=True, mp_driven=True)]),
     EngineOptions(), (0, 32, CLAMP_32, True)),
    ("an mp-driven synapse that is invalid",
     network(2, [synapse(0, 1, valid=False)], areas=[flags(uniform=True, mp_driven=True)]),
     EngineOptions(), (0, 32, CLAMP_32, True)),
    # plastic integers
    ("plastic integers", plastic(one()), EngineOptions(), (0, 64, CLAMP_OF_ONE, True)),
    ("plastic integers by a fractional rule", plastic(one(), 2.5, 1.5, 0.5), EngineOptions(),
     (0, 64, CLAMP_OF_ONE, True)),
    ("plastic integers, one target a source", plastic(network(2, [synapse(0, 1)], areas=[flags(uniform=False)])),
     EngineOptions(), (0, 64, CLAMP_OF_ONE, True)),
    ("plastic integers, two synapses onto a neuron", plastic(network(2, SPREAD)), EngineOptions(),
     (0, 64, 2**62 // 4, True)),
    # mp-driven or plastic otherwise
    ("plastic, divided", plastic(network(2, SPREAD, areas=[flags(uniform=False)])), EngineOptions(),
     (36, 64, 2**62 // 4, False)),
    ("plastic, a fractional weight", plastic(one(0.5)), EngineOptions(), (36, 64, CLAMP_OF_ONE, False)),
    ("plastic, a fractional psp", plastic(one(2, psp=0.5)), EngineOptions(), (36, 64, CLAMP_OF_ONE, False)),
    ("plastic, fractional power", plastic(one().replace(power_amount=0.5)), EngineOptions(),
     (36, 64, CLAMP_OF_ONE, False)),
    ("plastic, fractional stimulus", plastic(one()), stimulus(255, True), (36, 64, CLAMP_OF_ONE, False)),
    ("a plastic rule whose only synapse is invalid", plastic(one(valid=False)), EngineOptions(),
     (0, 32, CLAMP_32, True)),
    ("mp-driven", DRIVEN, EngineOptions(), (36, 64, CLAMP_OF_ONE, False)),
    ("mp-driven and plastic", plastic(DRIVEN), EngineOptions(), (36, 64, CLAMP_OF_ONE, False)),
    ("mp-driven, M = 2730 <= 2^13 / 3", DRIVEN, stimulus(2728), (36, 64, CLAMP_OF_ONE, False)),
    ("mp-driven, M = 2731", DRIVEN, stimulus(2729), (35, 64, CLAMP_OF_ONE, False)),
    ("mp-driven, M = 89478485 <= 2^28 / 3", DRIVEN, stimulus(89478483), (21, 64, CLAMP_OF_ONE, False)),
    ("mp-driven, M = 89478486", DRIVEN, stimulus(89478484), (20, 64, CLAMP_OF_ONE, False)),
    ("mp-driven, no scale from 20 on has room", DRIVEN, stimulus(1e15), (20, 64, CLAMP_OF_ONE, False)),
    ("mp-driven, 126 synapses onto a neuron: M counts as 64", many_driven(126), NO_OUTSIDE, (36, 64, 2**55, False)),
    ("mp-driven, 127 synapses onto a neuron", many_driven(127), NO_OUTSIDE, (35, 64, 2**62 // 129, False)),
)  # fmt: skip


@pytest.mark.parametrize(("given", "options", "expected"), [p[1:] for p in PLANS], ids=[p[0] for p in PLANS])
def test_plan(given: Network, options: EngineOptions, expected: tuple[int, int, int, bool]) -> None:
    """k, width, clamp and whether sums are exact; the reference, which plans by itself, has the same scale."""
    found = plan_fixed_point(given, options)
    assert (found.k, found.bits, found.clamp, found.exact) == expected
    assert ReferenceEngine.create(given, options).fixed_point == found
    assert str(found).startswith("sums exact" if expected[3] else f"sums rounded to 2^-{expected[0]}")


def test_scale_width_and_clamp_are_kept() -> None:
    assert (AT_WORK.k, AT_WORK.bits, AT_WORK.clamp) == (KEPT.k, KEPT.bits, KEPT.clamp)
    assert AT_WORK.exact
    assert AT_WORK.largest_sum == 1 << 40


@pytest.mark.parametrize(
    "change", [{"k": 60}, {"k": 30, "bits": 32, "clamp": 99}, {"clamp": 99, "k": 61}], ids=["64 bit", "32 bit", "clamp"]
)
def test_a_scale_that_does_not_hold_the_sums_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(NetworkError, match="does not hold its sums"):
        plan_fixed_point(START.replace(fixed_point=replace(KEPT, **change), power_amount=2.0**20), EngineOptions())


def test_another_network_does_not_take_the_scale_over() -> None:
    assert START.replace(power_amount=2.0).fixed_point is None
    assert START.replace(burst_count=7).fixed_point == KEPT


def test_a_scale_for_another_stimulus_is_not_kept() -> None:
    assert plan_fixed_point(START, stimulus(1.0)) == plan_fixed_point(START.replace(fixed_point=None), stimulus(1.0))
    assert plan_fixed_point(START, stimulus(255, True)).k == 30


def test_network_files_hold_the_scale(tmp_path: Path) -> None:
    for scale in (KEPT, None):
        save_network(tmp_path / "n.bpnet", START.replace(fixed_point=scale))
        assert load_network(tmp_path / "n.bpnet").fixed_point == scale


def test_checkpoints_hold_the_scale(tmp_path: Path) -> None:
    engine = ReferenceEngine.create(START)
    engine.run(2, PLAN)
    save_checkpoint(tmp_path / "s.bpstate", Checkpoint(engine.state(), {}))
    state = load_checkpoint(tmp_path / "s.bpstate").state
    assert state.fixed_point == AT_WORK
    assert state.differences(engine.state()) == ()


def test_records_hold_the_scale(tmp_path: Path) -> None:
    """A record of a run says at which scale it was made, and is replayed at that scale."""
    engine = ReferenceEngine.create(START)
    recording = engine.run(6, PLAN, Record.FIRED)
    for given in (START, START.replace(fixed_point=None)):
        trace = trace_of_run(given, engine.options, recording, PLAN, engine.state())
        write_trace(tmp_path / "run", trace)
        again = read_trace(tmp_path / "run")
        assert again.network.fixed_point == AT_WORK
        result = replay(again, ReferenceEngine.create)
        assert result.agrees
        assert result.sums == str(AT_WORK)


@pytest.mark.parametrize(
    "change",
    [{"k": 150}, {"k": -1}, {"k": 2.0}, {"bits": 16}, {"clamp": 0}, {"clamp": 1 << 63}, {"exact": 1}, {"m": 1}],
)
def test_a_scale_that_no_file_may_state_is_refused(change: dict[str, Any]) -> None:
    assert FixedPoint.from_values(vars(KEPT)) == KEPT
    with pytest.raises(ValueError, match="scale"):
        FixedPoint.from_values({**vars(KEPT), **change})


def test_states_of_two_scales_differ() -> None:
    state = ReferenceEngine.create(START).state()
    assert state.differences(replace(state, fixed_point=replace(KEPT, k=39))) == ("fixed_point",)
