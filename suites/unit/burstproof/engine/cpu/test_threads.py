"""How the CPU engine shares a network among threads, and how the threads come and go (BE-5)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.costs import MOST_THREADS
from burstproof.engine.cpu import recall
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cpu.regions import balanced_bounds
from burstproof.engine.cpu.threads import planned, thread_count
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.synthetic.build import driven_spec, synthesize

pytestmark = [pytest.mark.requirement("BE-5"), pytest.mark.xdist_group("threads")]

LONGER_THAN_HELPERS_WAIT = 0.2
QUEUES = ("words", "palette", "ends", "sums")


def options(threads: int) -> EngineOptions:
    return EngineOptions(cpu=CpuOptions(threads=threads))


@pytest.fixture(scope="module")
def network() -> Network:
    """2000 neurons x 20 synapses; forcing some starts it."""
    return synthesize(driven_spec(2000, 20, 0.05, 11))


@pytest.mark.parametrize(
    ("neurons", "synapses", "cores", "wanted"),
    [
        (10_000, 1_000_000, 64, 1),
        (1_000_000, 0, 1, 1),
        (100_000, 10_000_000, 2, 2),
        (100_000, 10_000_000, 64, 8),
        (500_000, 50_000_000, 64, 41),
        (10_000_000, 1_000_000_000, 256, MOST_THREADS),
    ],
)
def test_threads_are_chosen_by_the_work_and_the_cores(neurons: int, synapses: int, cores: int, wanted: int) -> None:
    assert thread_count(options(0), neurons, synapses, cores) == wanted


def test_the_number_of_threads_that_is_asked_for_is_taken() -> None:
    assert thread_count(options(7), 1000, 0, 2) == 7
    assert thread_count(options(7), 3, 0, 2) == 3


def test_ranges_follow_where_the_synapses_end() -> None:
    """A hundred synapses onto each of the first 640 neurons, none onto the rest: as much work in each half."""
    targets = np.repeat(np.arange(640, dtype=np.uint32), 100)
    assert balanced_bounds(targets, 2560, 2).tolist() == [0, 640, 2560]
    assert balanced_bounds(np.empty(0, np.uint32), 2560, 2).tolist() == [0, 1280, 2560]
    assert balanced_bounds(np.empty(0, np.uint32), 10, 3).tolist() == [0, 0, 0, 10]


@pytest.mark.requirement("BE-9")
@pytest.mark.parametrize(("threads", "specialise"), [(2, False), (2, True), (1, True)])
def test_the_plan_names_what_the_threads_hold(threads: int, specialise: bool) -> None:
    """A single thread has queues, too, if its sums are too large to be added to wherever they lie."""
    network = synapses_with_delays()
    chosen = EngineOptions(cpu=CpuOptions(threads=threads, specialise=specialise))
    with mock.patch("burstproof.engine.cpu.memory.CACHED_BYTES", 0), mock.patch.object(recall, "_MOST_COLUMNS", 0):
        sizes = {buffer.name: buffer.bytes for buffer in planned(network, chosen).buffers}
        team = CpuEngine.create(network, chosen)
    assert team._team is not None
    rows, shared = team._team._rows, team._team._shared
    held = {
        **{f"rows.{name}": getattr(rows, name).nbytes for name in ("words", "bins")},
        **{f"queues.{name}": getattr(shared.queues, name).nbytes for name in QUEUES},
        **{f"shared.{name}": getattr(shared, name).nbytes for name in ("fired", "potentials")},
    }
    team.close()
    assert {name: sizes.get(name, 0) for name in held} == held
    assert min(held["rows.words"], held["rows.bins"], held["queues.words"], held["queues.sums"]) > 0
    assert (held["queues.palette"] > 0) is specialise
    assert sizes["static.targets"] == 4 * network.synapse_count


def synapses_with_delays() -> Network:
    """1000 neurons, 20 000 synapses with delays of 1 to 3, and contributions that take 32 bits."""
    ids = np.arange(20_000)
    synapses = SynapseTable.build(
        ids % 1000, ids * 7 % 1000, weights=ids % 5 * 20_000.0, delay_bursts=(ids % 3 + 1).astype(np.uint8)
    )
    return Network(NeuronTable.build(1000), synapses)


def test_helpers_that_have_left_come_back(network: Network) -> None:
    start = {1: Stimulus(forced=np.arange(0, 2000, 7, dtype=np.uint32))}
    team, reference = CpuEngine.create(network, options(3)), ReferenceEngine.create(network)
    for plan in (start, {}, {}):
        got, expected = team.run(10, plan), reference.run(10, plan)
        np.testing.assert_array_equal(got.fired_ids, expected.fired_ids)
        assert len(got.fired_ids) > 0
        time.sleep(LONGER_THAN_HELPERS_WAIT)
    assert team.state().differences(reference.state()) == ()
    team.close()


def test_a_plan_larger_than_any_before_is_taken(network: Network) -> None:
    """Stimuli of 1 to 2000 neurons, whose room on the threads' side has to grow in between."""
    ids = np.arange(2000, dtype=np.uint32)
    team, reference = CpuEngine.create(network, options(2)), ReferenceEngine.create(network)
    for count in (1, 100, 3, 2000):
        number = team.burst_count + 2
        plan = {number: Stimulus(ids[:count], np.ones(count, np.float32), ids[-count:])}
        np.testing.assert_array_equal(team.run(4, plan).fired_ids, reference.run(4, plan).fired_ids)
        assert team.state().differences(reference.state()) == ()
    team.close()


@pytest.mark.parametrize("threads", [2, 9])
def test_all_neurons_fire_in_one_burst(threads: int) -> None:
    """6000 sources are shared among the threads as these come to them; output of trains that outgrow the last."""
    network = synthesize(driven_spec(6000, 5, 0.05, 3))
    plan = {2: Stimulus(forced=np.arange(6000, dtype=np.uint32))}
    team, reference = CpuEngine.create(network, options(threads)), ReferenceEngine.create(network)
    most = 0
    for bursts in (1, 3, 20):
        got, expected = team.run(bursts, plan), reference.run(bursts, plan)
        np.testing.assert_array_equal(got.fired_ids, expected.fired_ids)
        np.testing.assert_array_equal(got.fired_potentials, expected.fired_potentials)
        np.testing.assert_array_equal(got.fired_counts, expected.fired_counts)
        most = max(most, int(got.fired_counts.max()))
        np.testing.assert_array_equal(got.candidate_counts, expected.candidate_counts)
        assert team.state().differences(reference.state()) == ()
    assert most == 6000
    team.close()


def test_engines_of_several_threads_run_side_by_side(network: Network) -> None:
    """More threads than cores, from several callers at once: nobody waits for ever, all agree."""
    plan = {1: Stimulus(forced=np.arange(0, 2000, 7, dtype=np.uint32))}
    engines = [CpuEngine.create(network, options(threads)) for threads in (2, 3, 4)]
    with ThreadPoolExecutor(len(engines)) as callers:
        done = list(callers.map(lambda engine: engine.run(30, plan), engines))
    expected = ReferenceEngine.create(network).run(30, plan)
    for recording in done:
        np.testing.assert_array_equal(recording.fired_ids, expected.fired_ids)
    for engine in engines:
        engine.close()
