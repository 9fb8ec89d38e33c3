"""Fired lists instead of queues: which networks have them, and what changes under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cpu import recall
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cpu.lines import OTHERS, POTENTIALS, SUMS
from burstproof.engine.cpu.threads import planned
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.bench.feature_networks import with_every_feature
from suites.support.bench.rows import Row
from suites.support.parity.feature_checks import compare_recorded
from suites.support.parity.mixed import MIXES, compare_mix, compare_run
from suites.support.parity.recordings import FEATURE_NAMES
from suites.support.parity.simulator_check import recordings_differ

pytestmark = pytest.mark.requirement("BE-2", "BE-4")

ALONE, THREE = (CpuOptions(threads=threads, specialise=True) for threads in (1, 3))
OPTIONS = EngineOptions(cpu=ALONE, max_stimulus=64.0)
OWN_KERNEL = "compiles a kernel of its own: seconds"
NEURONS, FAN, SLOTS = 300, 40, 6


@pytest.fixture(autouse=True)
def short_parts() -> Iterator[None]:
    """Lists also where a source has few synapses of one delay."""
    with mock.patch.multiple(recall, _FEWEST_PART=0, _FEWEST_OF_REGION=0):
        yield


def network_of(weights: int) -> Network:
    """A driven network with delays of 1 to 6 and so many different weights, of which one is negative."""
    rng = np.random.default_rng(weights)
    sources = np.repeat(np.arange(NEURONS, dtype=np.uint32), FAN)
    count = len(sources)
    synapses = SynapseTable.build(
        sources,
        rng.integers(0, NEURONS, count).astype(np.uint32),
        weights=rng.integers(0, weights, count).astype(np.float32) - 1,
        delay_bursts=rng.integers(1, SLOTS + 1, count).astype(np.uint8),
    )
    return Network(NeuronTable.build(NEURONS, thresholds=3.0, excitabilities=0.4), synapses)


def start() -> dict[int, Stimulus]:
    return {1: Stimulus(forced=np.arange(0, NEURONS, 3, dtype=np.uint32))}


@pytest.mark.thorough(OWN_KERNEL)
@pytest.mark.parametrize("cpu", [ALONE, THREE], ids=["alone", "three threads"])
@pytest.mark.parametrize(
    "name", ["integers, all excitatory", "fractions, delays to 7", "delays to 255", "beta", "batch path"]
)
def test_lists_agree_with_the_reference(name: str, cpu: CpuOptions) -> None:
    """Step by step, each followed by a state, and in one go from a state of the reference; in regions of 64 neurons."""
    (mix,) = (mix for mix in MIXES if mix.name == name)
    engines: list[CpuEngine] = []

    def create(network: Network, options: EngineOptions) -> CpuEngine:
        engines.append(CpuEngine.create(network, replace(options, cpu=cpu)))
        return engines[-1]

    with mock.patch.object(recall, "CACHED_BYTES", 256):
        assert compare_mix(mix, create) + compare_run(mix, create) == []
    for engine in engines:
        assert engine._memory.recall is not None
        assert len(engine._memory.recall.regions) == -(-engine.network.neuron_count // 64) + 1


@pytest.mark.thorough(OWN_KERNEL)
@pytest.mark.parametrize("cpu", [ALONE, THREE], ids=["alone", "three threads"])
@pytest.mark.parametrize("kind", ["mem2", "mem3", "rml"])
def test_rows_of_networks_with_features_are_recalled(kind: str, cpu: CpuOptions) -> None:
    """Recordings with memories, twins, and parameters that change: step by step, and a run from a state."""
    engines: list[CpuEngine] = []

    def create(network: Network, options: EngineOptions) -> CpuEngine:
        engines.append(CpuEngine.create(network, replace(options, cpu=cpu)))
        return engines[-1]

    assert compare_recorded(next(name for name in FEATURE_NAMES if f"/{kind}_" in name), create) == []
    assert all(engine._memory.recall is not None for engine in engines)
    with closing(CpuEngine.create(engines[0].network, engines[0].options)) as engine:
        held = engine._memory
    sizes = {buffer.name: buffer.bytes for buffer in planned(engines[0].network, engines[0].options).buffers}
    assert sizes["neurons.membrane_potentials"] == 4 * held.layout.neuron_count
    assert sizes["recall.words"] == held.arrays()["recall.words"].nbytes


@pytest.mark.thorough(OWN_KERNEL)
@pytest.mark.parametrize("cpu", [ALONE, THREE, CpuOptions(1)], ids=["alone", "three threads", "after some bursts"])
def test_features_of_neurons_go_with_lists(cpu: CpuOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Homeostats, modulators and spike trains; with three threads each has neurons, and areas cross their bounds.

    Or the general kernels begin the run.
    """
    monkeypatch.setattr("burstproof.engine.cpu.engine._GENERAL_UPDATES", 0)
    monkeypatch.setattr("burstproof.engine.cpu.engine._LONGEST_BATCH", 3)
    row = Row(400, 0.2, checked_bursts=20, kind="parameters")
    network, options = with_every_feature(row.network()), EngineOptions(cpu=cpu)
    engine, reference = CpuEngine.create(network, options), ReferenceEngine.create(network, options)
    assert engine._memory.general is (cpu.specialise is None)
    expected = reference.run(row.checked_bursts, row.start)
    assert np.isin(np.arange(397, 400), expected.fired_ids).all(), "the drivers are silent"
    assert recordings_differ(expected, engine.run(row.checked_bursts, row.start)) == []
    assert reference.state().differences(engine.state()) == ()
    held = engine._memory.recall
    assert held is not None
    assert len(held.bounds) == cpu.threads + 1
    assert (np.diff(held.bounds) > 0).all()
    engine.close()


@pytest.mark.thorough("compiles four kernels of its own")
@pytest.mark.parametrize("cpu", [ALONE, THREE], ids=["alone", "three threads"])
def test_other_weights_may_need_other_ways(cpu: CpuOptions) -> None:
    """Two contributions have places in a word, five have not: queues take over, and lists again afterwards."""
    network, options = network_of(2), replace(OPTIONS, cpu=cpu)
    engine, reference = CpuEngine.create(network, options), ReferenceEngine.create(network, options)
    assert engine._memory.recall is not None
    bits = engine._memory.recall.target_bits
    with mock.patch.object(recall, "_WORD_BITS", bits + 1), mock.patch("burstproof.engine.cpu.memory.CACHED_BYTES", 0):
        for weights, recalled in ((5, False), (2, True), (5, False)):
            state = replace(reference.state(), weights=network_of(weights).synapses.weights)
            engine.restore(state)
            reference.restore(state)
            assert (engine._memory.recall is not None) is recalled
            assert (engine._team is None) is (recalled and cpu is ALONE)
            assert recordings_differ(reference.run(20, start()), engine.run(20, start())) == []
            assert reference.state().differences(engine.state()) == ()
    engine.close()


@pytest.mark.parametrize("cpu", [ALONE, THREE], ids=["alone", "three threads"])
def test_the_plan_names_what_takes_the_place_of_the_rows(cpu: CpuOptions) -> None:
    """Offsets are counted once, for each region; what is empty is not named."""
    network = network_of(5)
    sizes = {buffer.name: buffer.bytes for buffer in planned(network, replace(OPTIONS, cpu=cpu)).buffers}
    assert sizes["recall.words"] == 4 * network.synapse_count
    assert sizes["recall.offsets"] == 4 * (NEURONS * cpu.threads * SLOTS + 1)
    assert ("shared.fired" in sizes) is (cpu is THREE)
    assert sum(name.endswith(".offsets") for name in sizes) == 1
    assert not {"static.targets", "queues.words", "rows.words"} & set(sizes)


@pytest.mark.thorough(OWN_KERNEL)
def test_rows_that_are_recalled_are_held_once() -> None:
    """At the start, and when a state has brought other weights."""
    network = network_of(5)
    engine = CpuEngine.create(network, OPTIONS)
    state = replace(engine.state(), weights=network.synapses.weights + np.float32(1))
    for _ in range(2):
        memory = engine._memory
        assert memory.recall is not None
        assert len(memory.recall.words) == network.synapse_count
        for rows in (memory.static, memory.layout.static):
            assert [_kept_alive(column) for column in (rows.targets, rows.contributions)] == [0, 0]
        assert _kept_alive(memory.static.delays) == 0
        engine.restore(state)
    engine.close()


def _kept_alive(column: np.ndarray[Any, Any]) -> int:
    """Bytes of the array that ``column`` is a view of."""
    owner = column
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    return owner.nbytes


@pytest.mark.thorough(OWN_KERNEL)
def test_what_is_cancelled_while_under_way_makes_candidates() -> None:
    """Stimulus takes away what arrives."""
    network = network_of(2)
    network = network.replace(synapses=replace(network.synapses, weights=np.ones(len(network.synapses.weights), "f4")))
    engine, reference = CpuEngine.create(network, OPTIONS), ReferenceEngine.create(network, OPTIONS)
    assert recordings_differ(reference.run(7, start()), engine.run(7, start())) == []
    arriving = reference.state().pending[0]
    assert arriving.all()
    plan = {8: Stimulus(np.arange(NEURONS, dtype=np.uint32), -arriving.astype(np.float32))}
    expected = reference.run(7, plan)
    assert expected.candidate_counts[0] == NEURONS
    assert recordings_differ(expected, engine.run(7, plan)) == []
    assert reference.state().differences(engine.state()) == ()
    engine.close()


@pytest.mark.thorough(OWN_KERNEL)
def test_synapses_may_be_too_many_for_offsets_of_32_bits() -> None:
    """Offsets of 64 bits lead to the same synapses."""
    network = network_of(5)
    with mock.patch.object(recall, "_MOST_NARROW", network.synapse_count - 1):
        engine, reference = CpuEngine.create(network, OPTIONS), ReferenceEngine.create(network, OPTIONS)
    assert engine._memory.recall is not None
    assert engine._memory.recall.offsets.dtype == np.int64
    assert recordings_differ(reference.run(20, start()), engine.run(20, start())) == []
    engine.close()


def test_sums_and_potentials_begin_half_a_page_apart() -> None:
    """Those of an engine, and all other columns of neurons elsewhere."""
    engine = CpuEngine.create(network_of(5), OPTIONS)
    memory = engine._memory
    assert memory.recall is not None
    begins = {
        column: getattr(memory.neurons, column).ctypes.data % 4096
        for column in ("membrane_potentials", "was_candidate")
    }
    assert begins == {"membrane_potentials": POTENTIALS, "was_candidate": OTHERS}
    assert memory.recall.sums.ctypes.data % 4096 == SUMS
    assert {column.ctypes.data % 4096 for column in memory.parameters} == {OTHERS}
    assert all(own is held for own, held in zip(memory.parameters, memory.layout.neurons, strict=True))
    engine.close()


@pytest.mark.parametrize(
    ("delays", "fan", "cpu", "recalled"),
    [(1, 1, ALONE, True), (6, 18, ALONE, True), (6, 17, ALONE, False), (1, 18, THREE, True), (1, 17, THREE, False)],
)
def test_lists_need_rows_that_are_long_enough(delays: int, fan: int, cpu: CpuOptions, recalled: bool) -> None:
    """Three synapses of a source and a delay, in the mean, or six with three regions; otherwise any row will do."""
    ids = np.arange(NEURONS * fan)
    targets = ids * 7 % NEURONS
    synapses = SynapseTable.build(ids % NEURONS, targets, delay_bursts=(ids // NEURONS % delays + 1).astype(np.uint8))
    with mock.patch.multiple(recall, _FEWEST_PART=3, _FEWEST_OF_REGION=6):
        engine = CpuEngine.create(Network(NeuronTable.build(NEURONS), synapses), replace(OPTIONS, cpu=cpu))
    held = engine._memory.recall
    assert (held is not None) is recalled
    assert held is None or len(held.regions) == cpu.threads + 1
    engine.close()
