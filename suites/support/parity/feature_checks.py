"""Checks of the CUDA engine's features (FEATURES.md) in the simulator: recordings and cases worked out by hand.

They are among those of ``simulator_check``, which runs them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from unittest import mock

import numpy as np

from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.features.support import MODELLED, sections_of
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.replay import trace_options
from burstproof.engine.state import NO_STIMULUS, Record, Stimulus, StimulusPlan
from burstproof.errors import DeviceFaultError, InputError
from burstproof.network.features import AreaFeatures, Features, MemoryArea
from burstproof.network.model import Network, NeuronTable, SynapseTable
from suites.support.bench.feature_networks import with_every_feature
from suites.support.bench.rows import Row
from suites.support.parity.batch_checks import cuda_engine, recordings_differ
from suites.support.parity.builder import CreateEngine, run_case
from suites.support.parity.cases import FEATURE_CASES
from suites.support.parity.recordings import FEATURE_NAMES, recording

_FEW_NEURONS = 64
_BATCHED, _BATCHED_RATE = 400, 0.2
_ASLEEP = ("features/rml_11", "features/neuro_11", "features/train_11", "features/stim_11")
_MANY_CLASSES = ("features/stim_11",)
_STEPS, _RUN = 8, 8
_AHEAD, _AHEAD_OF = (0, 1, 2, 4), ("features/mem2_11", "features/mem6_11")
_MANY = 39
"""Neurons that memories are made from; a line of replies holds 23."""


def modelled(network: Network) -> bool:
    """Whether the CUDA engine runs a network."""
    return set(sections_of(network)) <= MODELLED["cuda"]


def short_recordings() -> Iterator[str]:
    """The first recording of each kind that the engine runs and the simulator has the patience for."""
    kinds: dict[str, str] = {}
    for name in FEATURE_NAMES:
        kinds.setdefault(name.partition("_")[0], name)
    for name in kinds.values():
        network = recording(name).network
        if network.neuron_count <= _FEW_NEURONS and modelled(network):
            yield name


def compare_recorded(name: str, create: CreateEngine = cuda_engine) -> list[str]:
    """Steps from the start of a recording, then a run that goes on from the reference's state."""
    trace = recording(name)
    options = trace_options(trace)
    reference = ReferenceEngine.create(trace.network, options)
    engine = create(trace.network, replace(options, cuda=CudaOptions()))
    problems = list(reference.state().differences(engine.state()))
    for number in trace.bursts.tolist()[:_STEPS]:
        stimulus = trace.plan.get(number, NO_STIMULUS)
        expected, got = reference.step(stimulus), engine.step(stimulus)
        if not np.array_equal(expected.fired_ids, got.fired_ids) or expected.candidates != got.candidates:
            problems.append(f"burst {number}: fired {got.fired_ids}, expected {expected.fired_ids}")
        problems += [f"burst {number}: {field}" for field in reference.state().differences(engine.state())]
    again = create(trace.network, options)
    again.restore(reference.state())
    problems += recordings_differ(reference.run(_RUN, trace.plan), again.run(_RUN, trace.plan))
    return problems + list(reference.state().differences(again.state()))


def _asleep(check: Callable[[], list[str]]) -> list[str]:
    """The problems of ``check`` where candidates may sleep however few neurons there are."""
    with mock.patch("burstproof.engine.cuda.plan.sizing._FEW_NEURONS", 0):
        return check()


def _batches_differ() -> list[str]:
    """Batches that end early, late and between: blocks work out factors in all but the first burst of one."""
    row = Row(_BATCHED, _BATCHED_RATE, synapses_per_neuron=20, kind="parameters")
    network, options = with_every_feature(row.network(), 1.0), EngineOptions(cuda=CudaOptions(batch_length=5))
    variant = pack_network(network, options).variant
    problems = [] if variant.sleeps and variant.makes_factors else ["blocks make no factors, or no neuron sleeps"]
    if not {"counts", "countdowns"} <= variant.narrow or not variant.record.places:
        problems.append("columns are wide, or there are no records")
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, options)
    for bursts in (1, 5, 7, 3):
        problems += recordings_differ(reference.run(bursts, row.start), engine.run(bursts, row.start))
        problems += reference.state().differences(engine.state())
    if len(np.unique(reference.state().features.signals)) == 1:
        problems.append("no driver fired")
    return problems


def _many_classes(name: str) -> list[str]:
    """The problems of a recording where classes are too many for the tables of a block, and for words of 16 bits."""
    with mock.patch("burstproof.engine.cuda.plan.packed.MOST_CLASSES", 0):
        return compare_recorded(name)


def _counts_widen() -> list[str]:
    """A state in whose trains counts stand at 255, restored where columns have 8 bits."""
    row = Row(_BATCHED, _BATCHED_RATE, synapses_per_neuron=20, kind="parameters")
    network = with_every_feature(row.network(), 1.0)
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    reference.run(5, row.start)
    state = reference.state()
    assert state.features is not None
    counts = np.where(state.features.trains, np.uint16(255), state.consecutive_fire_counts)
    problems = [] if state.features.trains.any() else ["no neuron is in a train"]
    state = replace(state, consecutive_fire_counts=counts)
    reference.restore(state)
    engine.restore(state)
    problems += reference.state().differences(engine.state())
    problems += recordings_differ(reference.run(3, row.start), engine.run(3, row.start))
    return problems + list(reference.state().differences(engine.state()))


def _loaded_ahead_differ() -> list[str]:
    """Blocks load the state of their neurons, and what their features are, before they know what arrived."""
    with mock.patch("burstproof.engine.cuda.plan.block_size._SMALL", 0):
        return _asleep(_batches_differ)


@contextmanager
def _ahead_from(bursts: int) -> Iterator[None]:
    """Runs of so many bursts leave a kernel on the device, without having waited until it pays."""
    module = "burstproof.engine.cuda.host.ahead"
    with mock.patch(f"{module}.FEWEST", bursts), mock.patch(f"{module}.PAYS", 0):
        yield


def compare_ahead(name: str, create: CreateEngine = cuda_engine) -> list[str]:
    """Runs of a recording's bursts in which a kernel stays on the device where it can."""
    trace = recording(name)
    options = trace_options(trace)
    return ahead_differs(trace.network, options, trace.plan, create)


def ahead_differs(
    network: Network, options: EngineOptions, plan: StimulusPlan, create: CreateEngine = cuda_engine
) -> list[str]:
    """What is wrong with runs that record nothing, counts and lists, beside the reference.

    Some are too short to leave a kernel there; between them a step, and a state that is taken back.
    """
    reference, engine = ReferenceEngine.create(network, options), create(network, replace(options, cuda=CudaOptions()))
    problems = []
    with _ahead_from(2):
        for record, bursts in itertools.product(Record, _AHEAD):
            want, got = (one.run(bursts, plan, record=record) for one in (reference, engine))
            where = f"{record.value} to burst {reference.burst_count}"
            problems += [f"{where}: {one}" for one in recordings_differ(want, got)]
            problems += [f"{where}: {one}" for one in reference.state().differences(engine.state())]
            stimulus = plan.get(reference.burst_count + 1, NO_STIMULUS)
            if not np.array_equal(reference.step(stimulus).fired_ids, engine.step(stimulus).fired_ids):
                problems.append(f"{where}: fired in the next one")
        engine.restore(reference.state())
        problems += recordings_differ(reference.run(3, plan), engine.run(3, plan))
        problems += [f"restored: {one}" for one in reference.state().differences(engine.state())]
    return problems


def _many_ahead() -> list[str]:
    """Lists longer than their replies, and calls with more than fits into the mail, of a network with memories."""
    kernel, upstream, memory = "burstproof.engine.cuda.host.loop_kernel", 11, 12
    area = MemoryArea((upstream,), init_lifespan=3, longterm_threshold=100)
    neurons = NeuronTable.build(_MANY + 1, thresholds=2.0, cortical_areas=[upstream] * _MANY + [memory])
    synapses = SynapseTable.build(np.arange(_MANY - 1), np.arange(1, _MANY))
    network = Network(neurons, synapses, features=Features(areas={memory: AreaFeatures(memory=area)}))
    counts = (_MANY, 5, 23, 24, 0, 30, 29)
    plan = {at + 1: Stimulus(forced=np.arange(counts[at % 7], dtype=np.uint32)) for at in range(40)}
    with mock.patch(f"{kernel}.reply_lines", return_value=1), mock.patch(f"{kernel}.MOST_ENTRIES", 29):
        return ahead_differs(network, EngineOptions(), plan)


def _interrupted(name: str) -> list[str]:
    """Runs whose callback raises: the engine stands after the burst that it was told of, and goes on from there."""
    trace = recording(name)
    options = replace(trace_options(trace), cuda=CudaOptions())
    reference, engine = ReferenceEngine.create(trace.network, options), cuda_engine(trace.network, options)
    problems, seen = [], []

    def stop(_: int) -> None:
        seen.append(engine.state())
        if len(seen) % 3 == 0:
            raise KeyboardInterrupt

    with _ahead_from(2), engine:
        for record in Record:
            with suppress(KeyboardInterrupt):
                engine.run(5, trace.plan, record=record, progress=stop)
                problems.append(f"{record.value}: no interruption")
            for number in range(3):
                reference.run(1, trace.plan)
                differ = reference.state().differences(seen[number - 3])
                problems += [f"{record.value}, told of burst {reference.burst_count}: {one}" for one in differ]
            problems += [f"{record.value}: {one}" for one in reference.state().differences(engine.state())]
            problems += recordings_differ(reference.run(2, trace.plan), engine.run(2, trace.plan))
    return problems


def _cut(name: str) -> list[str]:
    """Runs that end within a burst, by an interruption or by a device: the engine says why it cannot go on."""
    from burstproof.engine.cuda.host.loop_kernel import PersistentKernel
    from burstproof.engine.features.memories import Memories

    trace = recording(name)
    options, problems = replace(trace_options(trace), cuda=CudaOptions()), list[str]()
    lost = DeviceFaultError("the device is lost", where="device", cure="Create another engine")
    for owner, method, error, kind, words in (
        (PersistentKernel, "finish", KeyboardInterrupt, InputError, "interrupted"),
        (Memories, "after", KeyboardInterrupt, InputError, "interrupted"),
        (PersistentKernel, "finish", lost, DeviceFaultError, "is lost"),
    ):
        where = f"{method}, {words}"
        with _ahead_from(2), cuda_engine(trace.network, options) as engine:
            with mock.patch.object(owner, method, side_effect=error), suppress(KeyboardInterrupt, DeviceFaultError):
                engine.run(5, trace.plan, record=Record.FIRED)
                problems.append(f"{where}: the run went on")
            for what in (engine.state, engine.step, lambda engine=engine: engine.run(1)):
                try:
                    what()
                    problems.append(f"{where}: the engine went on")
                except kind as found:
                    problems += [] if words in str(found) else [str(found)]
    return problems


def feature_checks() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Every check of this module by name."""
    for name in short_recordings():
        yield f"recording: {name.partition('/')[2]}", lambda name=name: compare_recorded(name)
    for name in _ASLEEP:
        yield f"asleep: {name.partition('/')[2]}", lambda name=name: _asleep(lambda: compare_recorded(name))
    for name in _MANY_CLASSES:
        yield f"many classes: {name.partition('/')[2]}", lambda name=name: _many_classes(name)
    for name in _AHEAD_OF:
        yield f"ahead: {name.partition('/')[2]}", lambda name=name: compare_ahead(name)
        yield f"interrupted: {name.partition('/')[2]}", lambda name=name: _interrupted(name)
        yield f"cut: {name.partition('/')[2]}", lambda name=name: _cut(name)
    yield "ahead, many", _many_ahead
    yield "every feature in batches", lambda: _asleep(_batches_differ)
    yield "every feature, loaded ahead", _loaded_ahead_differ
    yield "every feature, counts that widen", _counts_widen
    for case in FEATURE_CASES:
        if case.network.neuron_count <= _FEW_NEURONS and modelled(case.network):
            yield f"case: {case.name}", lambda case=case: run_case(case, cuda_engine)
