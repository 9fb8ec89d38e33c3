"""Checks of the CUDA engine that run in the CUDA simulator, for a process of their own.

``NUMBA_ENABLE_CUDASIM=1 python -m suites.support.parity.simulator_check`` runs all checks, or those named as arguments,
and prints one JSON object: the problems of each check, and the device functions that ran.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np

from burstproof.engine.options import CudaOptions, EngineOptions, SynapseMemory
from burstproof.engine.profile import FEAGI_BETA
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.synthetic.build import SyntheticSpec, synthesize
from suites.support.parity import batch_checks, loop_checks, queue_checks
from suites.support.parity.batch_checks import cuda_engine, recordings_differ, runs_differ
from suites.support.parity.builder import network, run_case
from suites.support.parity.cases.dynamics import dynamics_cases
from suites.support.parity.cases.forced import forced_cases
from suites.support.parity.cases.learning import learning_cases
from suites.support.parity.cases.limits import limit_cases
from suites.support.parity.cases.sums import sum_cases
from suites.support.parity.cases.synapses import synapse_cases
from suites.support.parity.failing import FAILING
from suites.support.parity.feature_checks import feature_checks
from suites.support.parity.mixed import MIXES, Mix, compare_mix, compare_run, mixed_network, mixed_options, mixed_plan
from suites.support.parity.reduced import REDUCED_MIXES
from suites.support.simulated_process import print_problems

_SHORT_BURSTS, _BRIEF_BURSTS = 12, 4
_MANY_NEURONS = 1000
_LONG_DELAY = 20
_FEW_NEURONS = 64
_FEW_BURSTS = 8
_BATCH = 8


def _short(mix: Mix) -> Mix:
    """``mix`` cut to what the simulator does in seconds."""
    if mix.largest_delay > _LONG_DELAY:
        return replace(mix, largest_delay=_LONG_DELAY, bursts=_LONG_DELAY + 5)
    return replace(mix, bursts=_SHORT_BURSTS)


def _brief(mix: Mix) -> Mix:
    """``mix`` cut to a second or two."""
    return replace(mix, bursts=_BRIEF_BURSTS)


def check_cancelled_sums() -> list[str]:
    """Stimulus that cancels a contribution makes a candidate of sum 0 in a network without inhibition."""
    neurons = NeuronTable.build(3, thresholds=[1.0, 50.0, 50.0], leak_coefficients=0.5, membrane_potentials=[0, 8, 8])
    network = Network(neurons, SynapseTable.build([0, 0], [1, 2], weights=3.0))
    plan = {
        1: Stimulus(np.array([0], np.uint32), np.array([1], np.float32)),
        2: Stimulus(np.array([1], np.uint32), np.array([-3], np.float32)),
    }
    engine = cuda_engine(network, EngineOptions())
    candidates = engine.run(3, plan).candidate_counts.tolist()
    problems = [] if candidates == [1, 2, 0] else [f"candidates {candidates}, expected [1, 2, 0]"]
    return problems + runs_differ(network, EngineOptions(), 4, plan)


def check_restored_state() -> list[str]:
    """Weights, countdowns and cancelled sums that come with a state take effect in a network packed without them."""
    count = 12
    ids = np.arange(count)
    network = Network(NeuronTable.build(count, thresholds=2.0), SynapseTable.build(ids, np.roll(ids, 1), weights=2.0))
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    plan = {1: Stimulus(forced=ids[:6].astype(np.uint32))}
    reference.run(1, plan)
    pending_candidate = reference.state().pending_candidate.copy()
    pending_candidate[0, 11] = True
    countdowns = np.zeros(count, np.uint16)
    countdowns[3] = 2
    weights = np.full(count, 2, np.float32)
    weights[4] = 1
    state = replace(
        reference.state(), pending_candidate=pending_candidate, refractory_countdowns=countdowns, weights=weights
    )
    reference.restore(state)
    engine.restore(state)
    problems = list(reference.state().differences(engine.state()))
    problems += recordings_differ(reference.run(8), engine.run(8))
    return problems + list(reference.state().differences(engine.state()))


def check_states_beyond_columns() -> list[str]:
    """Countdowns and counts go to 255 in columns of 8 bits; a state beyond them is restored, and one below again."""
    count, rng = 24, np.random.default_rng(11)
    made = network(
        count,
        thresholds=rng.choice([0.0, 1.0], count),
        mp_charge_accumulation=rng.random(count) < 0.5,
        refractory_periods=[200, 0] * (count // 2),
        snooze_periods=[55, 2] * (count // 2),
        consecutive_fire_limits=[1, 255] * (count // 2),
        consecutive_fire_counts=[0, 254] * (count // 2),
    )
    reference, engine = ReferenceEngine.create(made), cuda_engine(made, EngineOptions())
    plan = {burst: Stimulus(forced=np.arange(burst % 3, count, 3, dtype=np.uint32)) for burst in range(1, 9)}
    plan |= {b: Stimulus(ids=np.arange(count, dtype=np.uint32), amounts=np.ones(count, np.float32)) for b in (2, 5)}
    problems = recordings_differ(reference.run(8, plan), engine.run(8, plan))
    problems += reference.state().differences(engine.state())
    first = reference.state()
    high = replace(
        first,
        consecutive_fire_counts=np.where(np.arange(count) % 3, np.uint16(3), np.uint16(700)),
        refractory_countdowns=np.where(np.arange(count) % 4, np.uint16(0), np.uint16(300)),
    )
    for state in (high, first):
        reference.restore(state)
        engine.restore(state)
        problems += recordings_differ(reference.run(8), engine.run(8))
        problems += reference.state().differences(engine.state())
    return problems


def check_plastic_start() -> list[str]:
    """Eligibility traces of the network are there until plasticity first replaces them."""
    traces = np.array([0.5, -0.25], np.float32)
    synapses = SynapseTable.build([0, 1], [1, 0], eligibility_traces=traces)
    network = Network(NeuronTable.build(2), synapses, plastic_mappings=(PlasticMapping(np.array([0]), 3),))
    engine = cuda_engine(network, EngineOptions())
    kept = engine.state().eligibility_traces.tolist() == traces.tolist()
    plan = {1: Stimulus(forced=np.array([0], np.uint32))}
    return ([] if kept else ["traces at the start"]) + runs_differ(network, EngineOptions(), 6, plan)


def check_windows_too_long_for_words() -> list[str]:
    """Learning burst by burst, which long windows need, from a state with traces too."""
    mix = replace(next(m for m in MIXES if m.windows == (3, 2)), neurons=40, synapses=300)
    with mock.patch("burstproof.engine.cuda.plan.variant.LONGEST_DEFERRED", 1):
        return compare_mix(_short(mix), cuda_engine) + compare_run(_short(mix), cuda_engine)


def check_learning_after_long_silence() -> list[str]:
    """Rows whose sources are silent for longer than words tell of, and than a byte counts; whole and other weights."""
    count, pairs = 6, np.array([(a, b) for a in range(6) for b in range(6)]).T
    neurons = NeuronTable.build(count, thresholds=1e9, cortical_areas=[5, 5, 5, 6, 6, 6])
    synapses = SynapseTable.build(*pairs, weights=np.arange(36) * 1.25 - 1, types=pairs[0] == 2)
    windows = {3: int(np.argmax((pairs[0] < 3) & (pairs[1] < 3))), 7: int(np.argmax((pairs[0] < 3) & (pairs[1] > 2)))}
    rules = tuple(PlasticMapping(np.array([row]), w, 5.0, 1.0, 0.9 + w / 10) for w, row in windows.items())
    network = Network(neurons, synapses, areas=(Area(5, "a"), Area(6, "b")), plastic_mappings=rules)
    at = {2: (0, 3), 4: (1,), 50: (2, 4), 58: (0,), 110: (3, 0), 260: (1,), 262: (5,), 305: (0, 1)}
    plan = {burst: Stimulus(forced=np.array(ids, np.uint32)) for burst, ids in at.items()}
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    problems = []
    for bursts in (57, 1, 200, 62):
        reference.run(bursts, plan)
        engine.run(bursts, plan)
        problems += reference.state().differences(engine.state())
    return problems


def check_forced_restart() -> list[str]:
    """In a large network under the beta profile only what fired restarts, forced firings too."""
    areas = (Area(7, "area", psp_uniform_distribution=True),)
    neurons = NeuronTable.build(4, thresholds=50.0, mp_charge_accumulation=False, membrane_potentials=7.0)
    network = Network(neurons, SynapseTable.build([0, 1], [1, 2]), areas=areas)
    plan = {1: Stimulus(forced=np.array([0], np.uint32)), 3: Stimulus(forced=np.array([2], np.uint32))}
    options = EngineOptions(profile=FEAGI_BETA)
    with (
        mock.patch("burstproof.engine.cuda.plan.variant.LARGE_NETWORK_NEURONS", 2),
        mock.patch("burstproof.engine.reference.LARGE_NETWORK_NEURONS", 2),
    ):
        return runs_differ(network, options, 6, plan)


SPECS = (
    SyntheticSpec(
        75,
        8,
        seed=8,
        weights=(1, 9),
        postsynaptic_potential=0.1,
        delays=(1, 4),
        inhibitory_fraction=0.3,
        threshold=(0.1, 0.6),
        threshold_limit=(2.0, 4.0),
        leak=(0.0, 0.5),
        refractory_period=(0, 3),
        excitability=(0.3, 1.1),
        consecutive_fire_limit=(1, 3),
        snooze_period=(0, 3),
        accumulates=0.7,
    ),
    SyntheticSpec(60, 9, seed=3, threshold=4.0, weights=2.0, postsynaptic_potential=1.5, initial_firing=0.3),
    SyntheticSpec(70, 8, seed=4, weights=(0, 5), delays=(1, 4), inhibitory_fraction=0.3, threshold=3.0, leak=0.25),
    SyntheticSpec(80, 7, seed=5, connectivity="distance", distance_scale=6.0, weights=(1, 3), threshold=2.0),
    SyntheticSpec(90, 6, seed=6, connectivity="block", blocks=4, inside_fraction=0.7, postsynaptic_potential=0.1),
    SyntheticSpec(20, 0, seed=7),
)


def check_generated_networks() -> list[str]:
    """Networks that the device makes itself run like those built on the host."""
    from burstproof.engine.cuda.engine import CudaEngine

    problems = []
    for spec in SPECS:
        network = synthesize(spec)
        forced = np.arange(0, spec.neurons, 3, dtype=np.uint32)
        plan = {1: Stimulus(forced=forced), 4: Stimulus(forced=forced[:5])}
        reference, engine = ReferenceEngine.create(network), CudaEngine.from_spec(spec)
        if engine.fixed_point != reference.fixed_point:
            problems.append(f"{spec}: scale {engine.fixed_point}, expected {reference.fixed_point}")
        found = recordings_differ(reference.run(8, plan), engine.run(8, plan))
        found += set(reference.state().differences(engine.state())) - {"weights", "eligibility_traces"}
        problems += [f"{spec}: {name}" for name in found]
    return problems


def check_tiles() -> list[str]:
    """Networks propagated in tiles of few targets, with delays, flags, stimulus, and made by the device itself."""
    from burstproof.engine.cuda.engine import CudaEngine

    problems = []
    tiles = "burstproof.engine.cuda.plan.sizing"
    with mock.patch(f"{tiles}._UNTILED_BYTES", 64), mock.patch(f"{tiles}._TILE_BYTES", 250):
        for name, neurons, synapses in (("fractions, delays to 7", 60, 500), ("integers, all excitatory", 80, 700)):
            mix = replace(next(m for m in MIXES if m.name == name), neurons=neurons, synapses=synapses)
            problems += [f"{name}: {p}" for p in compare_mix(_short(mix), cuda_engine)]
        for spec in SPECS[:2]:
            plan = {1: Stimulus(forced=np.arange(0, spec.neurons, 3, dtype=np.uint32))}
            reference, engine = ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec)
            problems += recordings_differ(reference.run(8, plan), engine.run(8, plan))
            problems += set(reference.state().differences(engine.state())) - {"weights", "eligibility_traces"}
    return problems


def _packed(network: Network, options: EngineOptions) -> Engine:
    return cuda_engine(network, replace(options, cuda=replace(options.cuda, sum_bits=8)))


def check_packed_sums() -> list[str]:
    """Sums of 8 or 16 bits with stimulus and delays, in tiles, and from a state that they cannot hold."""
    from burstproof.engine.cuda.plan.packed import pack_network

    problems = []
    excitatory = next(m for m in MIXES if m.name == "integers, all excitatory")
    tiles = "burstproof.engine.cuda.plan.sizing"
    for delay, untiled in ((1, 1 << 25), (3, 64)):
        mix = replace(_short(excitatory), neurons=41, synapses=220, bursts=6, largest_delay=delay)
        network = mixed_network(mix)
        options = replace(mixed_options(mix), cuda=CudaOptions(sum_bits=8))
        if not pack_network(network, options).variant.word.packed:
            problems.append(f"delays to {delay}: sums are not packed")
        with mock.patch(f"{tiles}._UNTILED_BYTES", untiled), mock.patch(f"{tiles}._TILE_BYTES", 50):
            problems += [f"delays to {delay}: {p}" for p in compare_mix(mix, _packed)]
        reference, engine = ReferenceEngine.create(network, options), _packed(network, options)
        state = reference.state()
        pending = np.where(np.arange(41) == 7, 1 << 20, state.pending)
        state = replace(state, pending=pending, pending_candidate=state.pending_candidate | (pending != 0))
        reference.restore(state)
        engine.restore(state)
        problems += recordings_differ(reference.run(4), engine.run(4))
        problems += reference.state().differences(engine.state())
    return problems


_FULL_MARKS = 13
"""Synapses onto a neuron whose mark of 4 bits is then full: with a restored sum and stimulus, 15 arrivals."""


def full_words(largest: int, excitatory: int) -> Network:
    """Neurons 14 and 15 get all of 0...12 in one burst, ``excitatory`` of them positive, ``largest`` in magnitude."""
    sources = np.tile(np.arange(_FULL_MARKS), 2)
    weights = np.full(_FULL_MARKS, largest // _FULL_MARKS)
    weights[0] += largest % _FULL_MARKS
    targets = np.repeat([14, 15], _FULL_MARKS)
    neurons = NeuronTable.build(17, thresholds=1e30, mp_charge_accumulation=np.arange(17) < 15, leak_coefficients=0.5)
    types = np.where(sources < excitatory, 0, 1)
    return Network(neurons, SynapseTable.build(sources, targets, weights=np.tile(weights, 2), types=types))


def check_full_marks_and_full_sums() -> list[str]:
    """Words whose mark and sum are as full as they get, in either sign, and with a restored sum; the next wider."""
    from burstproof.engine.cuda.plan.packed import pack_network
    from burstproof.engine.cuda.plan.word import Word

    problems = []
    most = (1 << 27) - 256
    plan = {
        1: Stimulus(forced=np.arange(_FULL_MARKS, dtype=np.uint32)),
        2: Stimulus(np.array([14, 15], np.uint32), np.array([255, -255], np.float32), np.array([15], np.uint32)),
    }
    for largest, word in ((most, Word(32, 4)), (most + 1, Word(64, 4)), (1000, Word(32, 4))):
        for excitatory in (0, 6, 12, _FULL_MARKS):
            network, where = full_words(largest, excitatory), f"{largest}, {excitatory} excitatory"
            chosen = pack_network(network, EngineOptions()).variant.word
            if excitatory < _FULL_MARKS and chosen != word:
                problems.append(f"{where}: {chosen}, expected {word}")
            problems += [f"{where}: {name}" for name in runs_differ(network, EngineOptions(), 4, plan)]
            reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
            for one in (reference, engine):
                one.run(1, plan)
                state = one.state()
                pending = state.pending.copy()
                pending[0, 16] = -7
                one.restore(replace(state, pending=pending, pending_candidate=state.pending_candidate | (pending != 0)))
            problems += [f"{where}: {name}" for name in recordings_differ(reference.run(3, plan), engine.run(3, plan))]
            problems += [f"{where}: {name}" for name in reference.state().differences(engine.state())]
    return problems


def _in_host(network: Network, options: EngineOptions) -> Engine:
    return cuda_engine(network, replace(options, cuda=replace(options.cuda, synapse_memory=SynapseMemory.HOST)))


def _packed_in_host(network: Network, options: EngineOptions) -> Engine:
    return _in_host(network, replace(options, cuda=replace(options.cuda, sum_bits=8)))


def check_lists_too_long_to_stage() -> list[str]:
    """Blocks that gather more firings than they have room for in shared memory write them where they belong at once."""
    with mock.patch("burstproof.engine.cuda.kernels.gather._STAGED", 2):
        return compare_mix(_short(next(mix for mix in MIXES if mix.name == "integers, all excitatory")), cuda_engine)


def check_synapses_in_host_memory() -> list[str]:
    """Rows read from host memory: single contributions in pairs, delays in fours, packed sums, computed contributions.

    Then rows of several pieces, sent by the fused burst and by separate kernels, and rows that the device writes there
    itself.
    """
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.packed import pack_network

    problems = []
    for name, delay, create in (
        ("fractions, delays to 7", 7, _in_host),
        ("integers, all excitatory", 3, _packed_in_host),
        ("plastic, window 1", 1, _in_host),
    ):
        mix = replace(_short(next(m for m in MIXES if m.name == name)), neurons=40, synapses=200, bursts=4)
        problems += [f"{name}: {p}" for p in compare_mix(replace(mix, largest_delay=delay), create)]
    sources = np.repeat(np.arange(5), [500, 0, 129, 5, 200])
    targets, weights = np.random.default_rng(5).integers((0, 1), (20, 4), (len(sources), 2)).T
    synapses = SynapseTable.build(sources, targets, weights=weights)
    network = Network(NeuronTable.build(20, thresholds=9000.0), synapses)
    driven = Network(
        NeuronTable.build(20, thresholds=9000.0, cortical_areas=np.where(np.arange(20) == 3, 7, 8)),
        synapses,
        areas=(Area(7, "driven", mp_driven_psp=True), Area(8, "plain", mp_driven_psp=False)),
    )
    plan = {1: Stimulus(forced=np.arange(5, dtype=np.uint32))}
    host = EngineOptions(cuda=CudaOptions(synapse_memory=SynapseMemory.HOST, batch_length=4))
    with _rows_in_pieces_of(128):
        if not pack_network(network, host).variant.long_rows:
            problems.append("no row is long")
        problems += runs_differ(network, host, 2, plan)
    with mock.patch("burstproof.engine.cuda.plan.streaming._PIECE", 128):
        if pack_network(driven, host).variant.fused is not None:
            problems.append("mp-driven synapses in the fused burst")
        problems += runs_differ(driven, host, 2, plan)
    spec = replace(SPECS[0], neurons=20, synapses_per_neuron=5, weights=(1, 40), delays=(1, 3))
    plan = {1: Stimulus(forced=np.arange(0, 20, 3, dtype=np.uint32))}
    reference, engine = ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec, host)
    problems += recordings_differ(reference.run(4, plan), engine.run(4, plan))
    return problems + sorted(set(reference.state().differences(engine.state())) - {"weights", "eligibility_traces"})


def check_recalled_delays() -> list[str]:
    """Delays kept on the sender's side: fired lists read again, states between bursts, and from one on."""
    with mock.patch("burstproof.engine.cuda.plan.sizing._CALENDAR_BYTES", 0):
        return _delays_apart_from_slots("recalled", lambda delay: delay)


def check_delays_in_a_calendar() -> list[str]:
    """Later arrivals in a calendar that is read in pieces: states between bursts, and from one on; with a palette."""
    buckets: Callable[[int], int] = lambda delay: 1 << (delay - 1).bit_length()  # noqa: E731
    with mock.patch("burstproof.engine.cuda.host.pending._PIECE", 3):
        problems = _delays_apart_from_slots("calendar", buckets)
        with _as_large_networks():
            return problems + _delays_apart_from_slots("calendar", buckets)


def check_a_calendar_in_tiles() -> list[str]:
    """Buckets in tiles of a few neurons, also with room for a few words, so that the rest goes to spare slots."""
    plan, problems = "burstproof.engine.cuda.plan", list[str]()
    buckets: Callable[[int], int] = lambda delay: 1 << (delay - 1).bit_length()  # noqa: E731
    for least, share in ((1024, 8), (3, 1000)):
        with ExitStack() as patches:
            for name, value in (
                ("sizing._UNTILED_BYTES", 64),
                ("sizing._TILE_BYTES", 150),
                ("buffers._LEAST_ROOM", least),
            ):
                patches.enter_context(mock.patch(f"{plan}.{name}", value))
            patches.enter_context(mock.patch(f"{plan}.buffers._LEAST_SHARE", share))
            patches.enter_context(mock.patch(f"{plan}.buffers._ROOM_SHARE", share))
            problems += _delays_apart_from_slots("calendar", buckets)
            with _as_large_networks():
                problems += _delays_apart_from_slots("calendar", buckets)
    return problems


def _delays_apart_from_slots(kept: str, expected: Callable[[int], int]) -> list[str]:
    """Networks whose variant says by ``kept`` how the ring of slots was replaced."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.packed import pack_network

    problems = []
    with mock.patch("burstproof.engine.cuda.plan.sizing._RING_BYTES", 0):
        for name, delay in (("fractions, delays to 7", 7), ("integers, all excitatory", 3), ("integers", 2)):
            mix = replace(next(m for m in MIXES if m.name == name), neurons=60, synapses=600, largest_delay=delay)
            mix, where = _short(mix), f"{name}, delays to {delay}"
            network, options = mixed_network(mix), mixed_options(mix)
            if getattr(pack_network(network, options).variant, kept) != expected(delay):
                problems.append(f"{where}: delays are not kept in {kept}")
            problems += [f"{where}: {p}" for p in compare_mix(mix, cuda_engine)]
            plan = mixed_plan(mix, network)
            reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
            reference.run(5, plan)
            engine.restore(reference.state())
            for bursts in (1, 1, 2, 4, 12):
                found = recordings_differ(reference.run(bursts, plan), engine.run(bursts, plan))
                problems += [f"{where}: {p}" for p in found]
                problems += [f"{where}: {p}" for p in reference.state().differences(engine.state())]
            for _ in range(6):
                one, other = reference.step(), engine.step()
                problems += [where] * (one.fired_ids.tolist() != other.fired_ids.tolist())
            problems += [f"{where}: {p}" for p in reference.state().differences(engine.state())]
        for spec in (SPECS[1], replace(SPECS[0], delays=(2, 5))):
            plan = {1: Stimulus(forced=np.arange(0, spec.neurons, 3, dtype=np.uint32))}
            reference, engine = ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec)
            problems += recordings_differ(reference.run(8, plan), engine.run(8, plan))
            problems += set(reference.state().differences(engine.state())) - {"weights", "eligibility_traces"}
    return problems


@contextmanager
def _as_large_networks() -> Iterator[None]:
    """State is loaded ahead, contributions may have a palette, and what sleeps is told early, whatever the size."""
    with ExitStack() as patches:
        for name, few in (("block_size", "_SMALL"), ("entries", "_FEW_NEURONS"), ("sizing", "_FEW_NEURONS")):
            patches.enter_context(mock.patch(f"burstproof.engine.cuda.plan.{name}.{few}", 0))
        yield


def check_as_large_networks() -> list[str]:
    """Kernels of large networks, with entries in words and with a palette, uploaded and made by the device."""
    from burstproof.engine.cuda.plan.packed import pack_network

    problems = []
    with _as_large_networks():
        for name, palette in (("fractions, delays to 7", True), ("integers", False), ("beta", True)):
            mix = replace(next(m for m in MIXES if m.name == name), neurons=60, synapses=600)
            variant = pack_network(mixed_network(mix), mixed_options(mix)).variant
            if not variant.target_bits or variant.palette is not palette:
                problems.append(f"{name}: {variant.target_bits} bits of targets, palette {variant.palette}")
            problems += [f"{name}: {p}" for p in compare_mix(_short(mix), cuda_engine)]
        return problems + check_generated_networks()


def check_neurons_that_sleep() -> list[str]:
    """No neuron fires without a draw: what a draw keeps from firing is known before the columns are read."""
    problems = batch_checks.sleepers_differ(lambda variant: variant.sleeps and bool(variant.record.places))
    return problems + batch_checks.records_differ()


def check_long_rows() -> list[str]:
    """Sources with more targets than a warp sends at a time, beside short ones; also in a burst done once more."""
    rng = np.random.default_rng(5)
    sources = np.repeat(np.arange(6), [1500, 0, 1025, 1024, 5, 1100])
    weights = rng.integers(1, 4, len(sources))
    neurons = NeuronTable.build(50, thresholds=9000.0)
    network = Network(neurons, SynapseTable.build(sources, rng.integers(0, 50, len(sources)), weights=weights))
    plan = {1: Stimulus(forced=np.arange(6, dtype=np.uint32))}
    problems = runs_differ(network, EngineOptions(), 5, plan)
    reference, engine = ReferenceEngine.create(network), cuda_engine(network, EngineOptions())
    start = reference.state()
    for again in (plan, {1: Stimulus(forced=np.array([4], np.uint32))}, {}):
        reference.restore(start)
        engine.restore(start)
        problems += recordings_differ(reference.run(3, again), engine.run(3, again))
        problems += reference.state().differences(engine.state())
    return problems


@contextmanager
def _rows_in_pieces_of(entries: int) -> Iterator[None]:
    """Rows of more than so many entries are long, and kernels built meanwhile send them in such pieces."""
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    with ExitStack() as patches:
        patches.callback(catalogue.cache_clear)
        patches.enter_context(mock.patch("burstproof.engine.cuda.plan.sizing.LONG_ROW", entries))
        for name in ("plan.buffers", "kernels.long_rows"):
            patches.enter_context(mock.patch(f"burstproof.engine.cuda.{name}.PIECE", entries))
        for name in ("buffers", "sizing"):
            patches.enter_context(mock.patch(f"burstproof.engine.cuda.plan.{name}.warp_row", return_value=entries - 2))
        catalogue.cache_clear()
        yield


def check_rows_in_pieces() -> list[str]:
    """Long rows, of more than 5 entries here, beside short ones, with delays, and from a restored state."""
    from burstproof.engine.cuda.plan.packed import pack_network

    problems = []
    with _rows_in_pieces_of(5):
        for name in ("fractions, delays to 7", "integers, all excitatory"):
            mix = replace(_short(next(m for m in MIXES if m.name == name)), neurons=24, synapses=150, bursts=4)
            network, options, plan = mixed_network(mix), mixed_options(mix), mixed_plan(mix, mixed_network(mix))
            if not pack_network(network, options).variant.long_rows:
                problems.append(f"{name}: no row is long")
            reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
            problems += recordings_differ(reference.run(3, plan), engine.run(3, plan))
            engine.restore(reference.state())
            problems += recordings_differ(reference.run(3, plan), engine.run(3, plan))
            problems += reference.state().differences(engine.state())
    return problems


def check_empty_networks() -> list[str]:
    """Networks without neurons or without synapses run."""
    problems = []
    for count in (0, 3):
        network = Network(NeuronTable.build(count), SynapseTable.build([], []))
        problems += runs_differ(network, EngineOptions(), 3, {})
    return problems


def checks() -> Iterator[tuple[str, Callable[[], list[str]]]]:
    """Every check by name."""
    for mix in MIXES:
        if mix.neurons > _MANY_NEURONS:  # the batch path needs 10 000 candidates, minutes in the simulator
            continue
        yield f"mix: {mix.name}", lambda mix=mix: compare_mix(_short(mix), cuda_engine)
    for mix in REDUCED_MIXES[::4]:  # each format once, each kind of kernels once
        yield f"precision: {mix.name}", lambda mix=mix: compare_mix(_brief(mix), cuda_engine)
    cases = (dynamics_cases, limit_cases, synapse_cases, sum_cases, forced_cases, learning_cases)
    for case in (case for some in cases for case in some()):
        if case.network.neuron_count <= _FEW_NEURONS and len(case.fired) <= _FEW_BURSTS:
            yield f"case: {case.name}", lambda case=case: run_case(case, cuda_engine)
    yield from feature_checks()
    beside = vars(batch_checks) | vars(loop_checks) | vars(queue_checks)
    for name, function in sorted((beside | globals()).items()):
        if name.startswith("check_"):
            yield name.removeprefix("check_").replace("_", " "), function


def simulated_checks() -> dict[str, Callable[[], list[str]]]:
    """Those, and the ones that need a device that fails when told to."""
    return {**dict(checks()), **FAILING}


def main(names: list[str]) -> int:
    """Run the checks called ``names``, or all, and print their problems."""
    # without graphs every kernel of a batch is launched, those after its last burst too: a few of them tell as much
    with mock.patch("burstproof.engine.cuda.plan.packed.default_batch_length", return_value=_BATCH):
        return print_problems(simulated_checks(), names)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
