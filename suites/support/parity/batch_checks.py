"""Checks of the CUDA engine's batches, in the simulator or on a device, and what such checks share.

They are among those of ``simulator_check``, which runs them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np

from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Recording, Stimulus
from burstproof.errors import InputError
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.parity.builder import CreateEngine
from suites.support.parity.interrupted import BATCH, interruption_differs
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options, mixed_plan


def cuda_engine(network: Network, options: EngineOptions) -> Engine:
    """An engine on the CUDA device, or on the simulated one."""
    from burstproof.engine.cuda.engine import CudaEngine

    return CudaEngine.create(network, options)


def recordings_differ(expected: Recording, got: Recording) -> list[str]:
    """Names of the fields of two recordings that are not equal byte for byte."""
    names = ("bursts", "fired_counts", "candidate_counts", "fired_ids", "fired_potentials")
    return [name for name in names if getattr(expected, name).tobytes() != getattr(got, name).tobytes()]


def runs_differ(
    network: Network, options: EngineOptions, bursts: int, plan: dict[int, Stimulus], quiet: int = 0
) -> list[str]:
    """What differs after a run on the reference and on the device, and after ``quiet`` more bursts without stimulus."""
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    problems = recordings_differ(reference.run(bursts, plan), engine.run(bursts, plan))
    if quiet:
        problems += recordings_differ(reference.run(quiet), engine.run(quiet))
    return problems + list(reference.state().differences(engine.state()))


def sleepers_differ(is_expected: Callable[[Variant], bool], neurons: int = 60) -> list[str]:
    """What is wrong where no neuron fires without a draw; so is a variant that is not the expected one."""
    from burstproof.engine.cuda.plan.packed import pack_network

    problems, rng, bursts = [], np.random.default_rng(9), 12
    with mock.patch("burstproof.engine.cuda.plan.sizing._FEW_NEURONS", 0):
        for name in ("integers", "fractions, delays to 7", "negative weights, counts near 65535", "beta"):
            mix = next(m for m in MIXES if m.name == name)
            mix = replace(mix, neurons=neurons, synapses=8 * neurons, bursts=bursts)
            mixed, options = mixed_network(mix), mixed_options(mix)
            excitabilities = rng.choice([0.6, 0.3, 0, -1], neurons).astype(np.float32)
            network = mixed.replace(neurons=replace(mixed.neurons, excitabilities=excitabilities))
            plan = mixed_plan(mix, mixed)
            problems += [f"{name}: the engine takes another variant"] * (
                not is_expected(pack_network(network, options).variant)
            )
            problems += [f"{name}: {problem}" for problem in runs_differ(network, options, bursts, plan, 6)]
    return problems


def records_differ() -> list[str]:
    """What is wrong with records of one, two and eight words, of neurons that fire by a draw; so are other records."""
    from burstproof.engine.cuda.plan.packed import pack_network

    problems, rng = [], np.random.default_rng(11)
    mix = replace(next(m for m in MIXES if m.name == "integers"), neurons=60, synapses=500, bursts=12)
    mixed, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, mixed)
    periods = rng.choice([0, 2, 300], (3, 60)).astype(np.uint16)
    few = NeuronTable.build(60, thresholds=rng.choice([3.0, 9.0], 60))
    wide = replace(
        mixed.neurons,
        refractory_periods=periods[0],
        snooze_periods=periods[1],
        consecutive_fire_limits=periods[2],
        threshold_limits=rng.choice([40.0, 400.0], 60).astype(np.float32),
    )
    narrow = NeuronTable.build(
        60, thresholds=3.0, refractory_periods=periods[0] // 100, consecutive_fire_limits=periods[1] // 100
    )
    excitabilities = rng.choice([0.6, 0.3, 0, -1], 60).astype(np.float32)
    with mock.patch("burstproof.engine.cuda.plan.sizing._FEW_NEURONS", 0):
        for words, neurons in ((1, narrow), (2, few), (8, wide)):
            own = excitabilities if words > 1 else np.full(60, 0.5, np.float32)
            network = mixed.replace(neurons=replace(neurons, excitabilities=own))
            found = pack_network(network, options).variant.record.words
            problems += [f"a record has {found} words, not {words}"] * (found != words)
            problems += [f"{words} words: {problem}" for problem in runs_differ(network, options, 12, plan)]
    return problems


def second_state_differs(create: CreateEngine) -> list[str]:
    """What is wrong after two restored states: the first silences one synapse, the second it and the other one."""
    options, forced = EngineOptions(), {1: Stimulus(forced=np.array([0], np.uint32))}
    network = Network(NeuronTable.build(3, thresholds=0.5), SynapseTable.build([0, 0], [1, 2]))
    reference, problems = ReferenceEngine.create(network, options), []
    start = reference.state()
    with create(network, options) as engine:
        for silent in ([0], [0, 1], [1], []):
            weights = start.weights.copy()
            weights[silent] = 0
            for each in (reference, engine):
                each.restore(replace(start, weights=weights))
            problems += recordings_differ(reference.run(2, forced), engine.run(2, forced))
            problems += reference.state().differences(engine.state())
    return problems


def check_second_restored_state() -> list[str]:
    """A weight that two states in a row change alike stays as they say."""
    return second_state_differs(cuda_engine)


def check_batches() -> list[str]:
    """Batches of 7 bursts from a state taken half-way equal the reference."""
    mix = replace(next(m for m in MIXES if m.name.startswith("plastic, windows 3 and 2")), bursts=30)
    network = mixed_network(mix)
    options = replace(mixed_options(mix), cuda=CudaOptions(batch_length=7))
    plan = mixed_plan(mix, network)
    reference = ReferenceEngine.create(network, options)
    reference.run(10, plan)
    engine = cuda_engine(network, options)
    engine.restore(reference.state())
    problems = recordings_differ(reference.run(20, plan), engine.run(20, plan))
    return problems + list(reference.state().differences(engine.state()))


def all_fire(count: int) -> tuple[Network, dict[int, Stimulus]]:
    """A ring in which every neuron fires in every burst once started."""
    ids = np.arange(count)
    network = Network(NeuronTable.build(count), SynapseTable.build(ids, np.roll(ids, 1)))
    return network, {1: Stimulus(forced=ids.astype(np.uint32))}


def check_full_log() -> list[str]:
    """A batch that fires more than its log holds stops, is fetched, and goes on without loss."""
    network, plan = all_fire(20)
    options = EngineOptions(cuda=CudaOptions(batch_length=40))
    problems = runs_differ(network, options, 90, plan)
    engine = cuda_engine(network, options)
    done: list[int] = []
    engine.run(90, plan, progress=done.append)
    if sum(done) != 90 or max(done) >= 40:
        problems.append(f"batches of {done} bursts: the log was never full")
    return problems


def check_stimulus_beyond_capacity() -> list[str]:
    """Stimuli larger than the buffers made for them cut the batch short, or have the buffers grow."""
    network, _ = all_fire(30)
    amounts = np.ones(30, np.float32)
    ids = np.arange(30, dtype=np.uint32)
    plan = {b: Stimulus(ids[: 3 * b], amounts[: 3 * b], ids[: 2 * b]) for b in range(1, 9)}
    with mock.patch("burstproof.engine.cuda.plan.buffers._LARGEST_STIMULUS", 7):
        return runs_differ(network, EngineOptions(), 12, plan)


def check_records() -> list[str]:
    """What is not recorded changes nothing: counts and nothing, then the state with its fired list."""
    network, plan = all_fire(10)
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    expected = reference.run(6, plan)
    counts = engine.run(4, plan, record=Record.COUNTS)
    nothing = engine.run(2, plan, record=Record.NONE)
    problems = list(reference.state().differences(engine.state()))
    if counts.fired_counts.tolist() != expected.fired_counts[:4].tolist() or len(counts.fired_ids):
        problems.append("counts")
    if len(nothing.bursts):
        problems.append("a recording that was not asked for")
    return problems


def check_runs_of_one_burst() -> list[str]:
    """They are steps: whatever is recorded, with stimulus and without, between batches, with a word of progress."""
    mix = replace(next(m for m in MIXES if m.name == "fractions, delays to 7"), neurons=30, synapses=200)
    network, options = mixed_network(mix), mixed_options(mix)
    plan = mixed_plan(mix, network)
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    problems, told, lengths = [], list[int](), (1, 1, 3, 1)
    for record in Record:
        for bursts in lengths:
            expected = reference.run(bursts, plan, record=record)
            problems += recordings_differ(expected, engine.run(bursts, plan, record=record, progress=told.append))
        problems += reference.state().differences(engine.state())
    if sum(told) != len(Record) * sum(lengths):
        problems.append(f"progress {told}")
    return problems


def check_interrupted_bursts() -> list[str]:
    """An interrupt behind a burst that the host has not heard of, in a step or a batch: the engine says so then."""
    problems = []
    for place, bursts in (("window.HostWindow.fired", 1), ("fused_batch.report_of", 3)):
        engine = cuda_engine(all_fire(10)[0], EngineOptions())
        with mock.patch(f"burstproof.engine.cuda.host.{place}", side_effect=KeyboardInterrupt):
            try:
                engine.run(bursts)
                problems.append(f"{place}: nothing was interrupted")
            except KeyboardInterrupt:
                pass
        for asked in (engine.state, engine.step, lambda engine=engine: engine.run(2)):
            try:
                asked()
                problems.append(f"{place}: it went on")
            except InputError as error:
                problems += [] if "interrupted within a burst" in str(error) else [str(error)]
    return problems


def check_late_bursts() -> list[str]:
    """Burst numbers that pass 2^32, of which the ring's six slots are no divisor: in batches, and one at a time."""
    mix = next(m for m in MIXES if m.name == "fractions, delays to 7")
    mix = replace(mix, neurons=30, synapses=200, largest_delay=5, bursts=10)
    network = mixed_network(mix).replace(burst_count=2**32 - 5)
    plan, options = mixed_plan(mix, network), replace(mixed_options(mix), cuda=CudaOptions(batch_length=4))
    problems = []
    for batches in ((4, 4), (1,) * 6):
        reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
        for bursts in batches:
            problems += recordings_differ(reference.run(bursts, plan), engine.run(bursts, plan))
        for _ in range(2):
            stimulus = plan.get(reference.burst_count + 1, Stimulus())
            expected, got = reference.step(stimulus), engine.step(stimulus)
            if expected.fired_potentials.tobytes() != got.fired_potentials.tobytes():
                problems.append(f"the firings of burst {expected.number}")
        problems += reference.state().differences(engine.state())
    return problems


def check_interrupted_run() -> list[str]:
    """A callback that raises while a batch is under way leaves the engine after it, where the next run goes on."""
    mix = replace(next(m for m in MIXES if m.name == "fractions, delays to 7"), neurons=16, synapses=100)
    mix = replace(mix, bursts=3 * BATCH + 2)

    def create(network: Network, options: EngineOptions) -> Engine:
        return cuda_engine(network, replace(options, cuda=CudaOptions(batch_length=BATCH)))

    return interruption_differs(mix, create, [Record.FIRED])
