"""Queues of contributions on the CPU: how they are laid out, and what happens when one is full (BE-5)."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from burstproof.engine.cpu import memory as cpu_memory
from burstproof.engine.cpu import palette as cpu_palette
from burstproof.engine.cpu import queues as cpu_queues
from burstproof.engine.cpu.arrays import Static
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cpu.lines import OTHERS, POTENTIALS, SUMS, copy_at, lines, zeros_at
from burstproof.engine.cpu.palette import PALETTE_ENTRIES, palette_of
from burstproof.engine.cpu.queues import (
    LEAST_CAPACITY,
    REGION_NEURONS,
    capacity_for,
    make_queues,
    pack_rows,
)
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Network, NeuronTable, SynapseTable

pytestmark = pytest.mark.requirement("BE-5")

OWN_KERNEL = "compiles a kernel of its own, which takes seconds"


NARROW = np.dtype(np.int32)


def static_of(sources: int, targets: np.ndarray[Any, Any], kind: type[np.generic], delays: bool) -> Static:
    """A row of equal length for each source; contributions count down from the largest of ``kind``."""
    count = len(targets)
    offsets = np.arange(sources + 1, dtype=np.int64) * (count // sources)
    contributions = (np.iinfo(kind).max - np.arange(count)).astype(kind)
    rng = np.random.default_rng(5)
    late = rng.integers(1, 6, count).astype(np.uint8) if delays else np.empty(0, np.uint8)
    made = Static(offsets, targets.astype(np.uint32), contributions, late, np.zeros(0, np.bool_))
    for column in (made.targets, made.contributions, made.delays):
        column.flags.writeable = False
    return made


def test_regions_cut_the_ranges_of_the_threads() -> None:
    """A range that is longer than a region has several; an empty range has none."""
    bounds = np.array([0, 64, 64, 64 + 2 * REGION_NEURONS + 7])
    queues = make_queues(bounds, 1000, np.dtype(np.int16), NARROW, 3)
    last = 64 + 2 * REGION_NEURONS
    assert queues.regions.tolist() == [0, 64, 64 + REGION_NEURONS, last, last + 7]
    assert queues.owned.tolist() == [0, 1, 1, 4]
    assert queues.per_thread == 3 * 4
    assert queues.ends.shape == (3, 16)
    assert queues.ends[2, 5] == (2 * 12 + 5) * queues.capacity
    assert queues.region_of[[0, 1, REGION_NEURONS // 64, REGION_NEURONS // 64 + 1]].tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 8), (17,)])
def test_no_two_parts_share_a_cache_line(shape: tuple[int, ...]) -> None:
    """The last length is made whole lines, and the first begins where a line does, wherever NumPy puts an array."""
    held = [lines(*shape) for _ in range(20)]
    for array in held:
        assert array.shape == (*shape[:-1], -(-shape[-1] // 8) * 8)
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert not array.any()


@pytest.mark.parametrize("place", [SUMS, OTHERS, POTENTIALS])
@pytest.mark.parametrize("dtype", [np.bool_, np.uint16, np.float32, np.int64])
def test_arrays_begin_where_they_are_to(place: int, dtype: type[np.generic]) -> None:
    """Wherever NumPy puts them; a copy of a column of one value is whole."""
    for count in (0, 1, 1000, 100_003):
        column = np.broadcast_to(np.ones((), dtype), count)
        for array in (zeros_at(place, count, dtype), copy_at(place, column)):
            assert (array.dtype, array.shape, array.flags.writeable) == (dtype, (count,), True)
            assert array.ctypes.data % 4096 == place or count == 0
        assert not zeros_at(place, count, dtype).any()
        np.testing.assert_array_equal(copy_at(place, column), column)


@pytest.mark.parametrize(("kind", "word_bytes"), [(np.int16, 4), (np.int32, 6), (np.int64, 10)])
@pytest.mark.parametrize("delays", [False, True])
def test_words_lead_back_to_the_synapses(kind: type[np.generic], word_bytes: int, delays: bool) -> None:
    """Targets at both ends of regions, contributions at the end of their type."""
    neurons, slots = 2 * REGION_NEURONS + 64, 5 if delays else 1
    edges = [0, REGION_NEURONS - 1, REGION_NEURONS, 2 * REGION_NEURONS - 1, 2 * REGION_NEURONS, neurons - 1]
    static = static_of(3, np.array(edges * 2), kind, delays)
    bounds = np.array([0, neurons])
    queues = make_queues(bounds, len(static.targets), np.dtype(kind), NARROW, slots)
    with ThreadPoolExecutor(1) as pool:
        rows = pack_rows(static, queues, pool)
    assert rows.words.itemsize == word_bytes
    assert rows.bins.dtype == np.uint8
    regions = len(queues.regions) - 1
    region = rows.bins.astype(np.int64) % regions
    np.testing.assert_array_equal(queues.regions[region] + rows.words["target"], static.targets)
    np.testing.assert_array_equal(rows.words["contribution"], static.contributions)
    late = static.delays if delays else np.ones(len(region), np.uint8)
    np.testing.assert_array_equal(rows.bins // regions, late - 1)


def test_queues_are_numbered_in_the_narrowest_type_that_holds_them() -> None:
    """255 slots of 5 regions are 1275 queues; the general kernels take 32 bits always."""
    neurons = 4 * REGION_NEURONS + 1
    static = static_of(1, np.array([0, neurons - 1]), np.int16, delays=True)
    queues = make_queues(np.array([0, neurons]), 2, np.dtype(np.int16), NARROW, 255)
    with ThreadPoolExecutor(1) as pool:
        assert pack_rows(static, queues, pool).bins.dtype == np.uint16
        assert pack_rows(static, queues, pool, narrow=False).bins.dtype == np.uint32


@pytest.mark.parametrize(("more", "numbered"), [(0, True), (1, False)])
def test_few_different_contributions_are_numbered(more: int, numbered: bool) -> None:
    """65 536 of both signs, the ends of 64 bits among them, twice each; one more and words hold the contributions."""
    different = np.arange(PALETTE_ENTRIES + more, dtype=np.int64) * 99_991 - 7_000_000
    different[:3] = -(1 << 62), 1 << 62, 0
    static = static_of(1, np.arange(2 * len(different)) % 100, np.int64, delays=False)
    static = static._replace(contributions=np.concatenate([different, different[::-1]]))
    static.contributions.flags.writeable = False
    palette = palette_of(static.contributions)
    assert len(palette.values) == (PALETTE_ENTRIES if numbered else 0)
    bounds = np.array([0, 100])
    queues = make_queues(bounds, len(static.targets), np.dtype(np.int64), NARROW, 1, palette)
    with ThreadPoolExecutor(1) as pool:
        words = pack_rows(static, queues, pool, palette).words
    assert words.itemsize == (4 if numbered else 10)
    held = queues.palette[words["contribution"]] if numbered else words["contribution"]
    np.testing.assert_array_equal(held, static.contributions)


def test_the_room_of_queues_follows_the_synapses() -> None:
    """Four times what 1 % firing puts there, as a power of two, within the memory that the synapses themselves take."""
    assert capacity_for(100_000_000, 16, 1, 4) == 1 << 17  # 250 000 are wanted
    assert capacity_for(100_000_000, 16 * 16, 16, 4) == 1 << 17
    assert capacity_for(100_000_000, 255 * 16, 255, 4) == 1 << 14  # 250 000 are wanted, 24 510 affordable
    assert capacity_for(10, 4, 1, 4) == LEAST_CAPACITY


def everything(seed: int) -> Network:
    """120 neurons at a high rate with signed, fractional contributions, delays to 6, and all parameters in use."""
    rng = np.random.default_rng(seed)
    neurons, synapses = 120, 1800
    table = NeuronTable.build(
        neurons,
        thresholds=rng.uniform(0.2, 2, neurons),
        leak_coefficients=rng.choice([0.0, 0.1, 0.5], neurons),
        refractory_periods=rng.choice([0, 1], neurons),
        excitabilities=rng.choice([1.0, 0.7], neurons),
        consecutive_fire_limits=rng.choice([0, 3], neurons),
        snooze_periods=rng.choice([0, 2], neurons),
        mp_charge_accumulation=rng.random(neurons) < 0.7,
    )
    wiring = SynapseTable.build(
        np.sort(rng.integers(0, neurons, synapses)),
        rng.integers(0, neurons, synapses),
        weights=rng.choice([0.0, 0.3, 1.0, 2.5], synapses),
        types=rng.random(synapses) < 0.3,
        delay_bursts=rng.integers(1, 7, synapses),
    )
    return Network(table, wiring)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("capacity", [1, 4, LEAST_CAPACITY])
def test_full_queues_are_emptied_into_the_ring(threads: int, capacity: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for 1, 4 or 64 contributions where hundreds come; with 1, every single contribution fills a queue."""
    monkeypatch.setattr(cpu_queues, "LEAST_CAPACITY", capacity)
    monkeypatch.setattr(cpu_memory, "CACHED_BYTES", 0)
    network = everything(3)
    options = EngineOptions(cpu=CpuOptions(threads=threads))
    cpu, reference = CpuEngine.create(network, options), ReferenceEngine.create(network, options)
    plan = {
        n: Stimulus(np.array([n], np.uint32), np.array([-2.0], np.float32), np.arange(n, 120, 9)) for n in (1, 2, 9)
    }
    got, expected = cpu.run(25, plan), reference.run(25, plan)
    np.testing.assert_array_equal(got.fired_ids, expected.fired_ids)
    np.testing.assert_array_equal(got.candidate_counts, expected.candidate_counts)
    assert expected.fired_counts.mean() > 20, "too few contributions to fill a queue"
    assert cpu.state().differences(reference.state()) == ()
    cpu.close()


@pytest.mark.parametrize("threads", [1, 3])
def test_a_state_is_whole_although_contributions_lie_in_queues(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state read in mid-run changes nothing, and one restored over contributions under way replaces them."""
    monkeypatch.setattr(cpu_memory, "CACHED_BYTES", 0)
    network = everything(4)
    options = EngineOptions(cpu=CpuOptions(threads=threads))
    cpu, reference = CpuEngine.create(network, options), ReferenceEngine.create(network, options)
    start = {1: Stimulus(forced=np.arange(0, 120, 2, dtype=np.uint32))}
    cpu.run(5, start)
    reference.run(5, start)
    early = cpu.state()
    assert early.pending_candidate.any()
    assert early.differences(reference.state()) == ()
    np.testing.assert_array_equal(cpu.run(7).fired_ids, reference.run(7).fired_ids)
    cpu.restore(early)
    reference.restore(early)
    np.testing.assert_array_equal(cpu.run(9).fired_ids, reference.run(9).fired_ids)
    assert cpu.state().differences(reference.state()) == ()
    cpu.restore(replace(early, pending=0 * early.pending, pending_candidate=~early.pending_candidate))
    reference.restore(cpu.state())
    assert cpu.run(1).candidate_counts == reference.run(1).candidate_counts
    cpu.close()


@pytest.mark.thorough(OWN_KERNEL)
@pytest.mark.parametrize(("weight", "numbers"), [(32_767, 2), (32_768, 2), (32_768, 1)])
def test_places_and_contributions_at_the_end_of_a_word(
    weight: int, numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last neurons of regions, and +-32 767 or one more than 16 bits hold, with delays; sums of +w and -w are 0.

    The two contributions of the larger weight are numbered if there is room for two, else words hold them.
    """
    monkeypatch.setattr(cpu_palette, "PALETTE_ENTRIES", numbers)
    neurons = REGION_NEURONS + 100
    edges = np.array([0, REGION_NEURONS - 1, REGION_NEURONS, neurons - 1])
    synapses = SynapseTable.build(
        np.repeat([5, 6], 4),
        np.tile(edges, 2),
        weights=float(weight),
        types=np.repeat([0, 1], 4),
        delay_bursts=[1, 2, 3, 3, 1, 2, 3, 2],
    )
    network = Network(NeuronTable.build(neurons, thresholds=1e9, leak_coefficients=0.5), synapses)
    network = network.replace(neurons=replace(network.neurons, membrane_potentials=np.ones(neurons, np.float32)))
    cpu, reference = CpuEngine.create(network, EngineOptions(cpu=CpuOptions(1))), ReferenceEngine.create(network)
    plan = {1: Stimulus(forced=np.array([5, 6], np.uint32)), 3: Stimulus(forced=np.array([6], np.uint32))}
    got, expected = cpu.run(8, plan), reference.run(8, plan)
    assert cpu.launch == "1 thread"
    np.testing.assert_array_equal(got.candidate_counts, expected.candidate_counts)
    assert expected.candidate_counts.tolist() == [0, 1, 2, 3, 2, 1, 0, 0]
    assert cpu.state().differences(reference.state()) == ()
    cpu.close()
