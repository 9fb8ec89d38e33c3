"""Checks of queues per owner; those of ``simulator_check`` begin with ``check_``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest import mock

import numpy as np

from burstproof.device.open import open_device
from burstproof.engine.cuda.plan import queues as plan_of_queues
from burstproof.engine.cuda.plan.block_size import FusedShape
from burstproof.engine.cuda.plan.budget import RESERVE_BYTES, MemoryPlan
from burstproof.engine.cuda.plan.packed import pack_network
from burstproof.engine.cuda.plan.shard_variant import whole
from burstproof.engine.cuda.plan.sizing import BUCKETS
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Stimulus
from burstproof.network.model import Network
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from suites.support.bench.feature_networks import with_every_feature
from suites.support.bench.rows import Row
from suites.support.parity.batch_checks import cuda_engine, recordings_differ, runs_differ, sleepers_differ
from suites.support.parity.mixed import MIXES, Mix, compare_mix, mixed_network, mixed_options, mixed_plan

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine

_PLAN = "burstproof.engine.cuda.plan"
_PAYS = plan_of_queues._pays
_BURSTS = 8


@contextmanager
def queues_of(room: int, bins: int = 1 << 16, per_thread: int = 1) -> Iterator[None]:
    """Every network that can has three owners, and no more than ``room`` entries in each queue and each bucket.

    ``bins``: bytes of a block's bins. ``per_thread``: neurons of a thread in an owner's chunk.
    """
    shape = FusedShape(32, per_thread)
    chosen = {
        "queues._pays": lambda variant, sizes, buckets: sizes.static_entries > 0,
        "queues._OWNERS": 3,
        "queues._BIN_BYTES": bins,
        "queues._SHAPE": shape,
        "queues._RECORDED_SHAPE": shape,
        "queues._FEATURED_SHAPE": shape,
        "buffers._LEAST_ROOM": room,
        "buffers._ROOM_SHARE": 1 << 20,
        "buffers._BUCKET_SHARE": 1 << 20,
    }
    with ExitStack() as patches:
        for name, value in chosen.items():
            patches.enter_context(mock.patch(f"{_PLAN}.{name}", value))
        yield


def differs_as_chosen(
    delay: int,
    per_row: int,
    integers: bool = True,
    *,
    neurons: int = 20_000,
    bin_room: int = 1023,
    batch_length: int = 0,
    equal: bool = False,
) -> list[str]:
    """What is wrong with queues of the shapes that large networks have, beside the CPU engine.

    In one burst everything fires. ``bin_room``: most entries of a bin, an odd number. ``equal``: all contributions are.
    """
    from burstproof.engine.cpu.engine import CpuEngine

    synapses, bursts = neurons * per_row, delay + 20
    mix = Mix("queues", 31, neurons, synapses, bursts, integers=integers, flags=not integers, largest_delay=delay)
    network = with_equal_contributions(mixed_network(mix)) if equal else mixed_network(mix)
    options = replace(mixed_options(mix), cuda=CudaOptions(batch_length=batch_length))
    everything = {8: Stimulus(forced=np.flatnonzero(network.neurons.valid_mask).astype(np.uint32))}
    plan = {**mixed_plan(mix, network), **everything}
    chosen = mock.patch(f"{_PLAN}.queues._pays", return_value=True)
    bins = mock.patch(f"{_PLAN}.queues._MOST_BIN_ROOM", bin_room)
    with chosen, bins, CpuEngine.create(network, options) as judge:
        queues = pack_network(network, options).variant.queues
        if queues is None or (queues.entry_bits == 16) is not equal:
            return ["there are no queues, or others"]
        with cuda_engine(network, options) as engine:
            problems = []
            for bursts in (10, delay + 10):
                problems += recordings_differ(judge.run(bursts, plan), engine.run(bursts, plan))
                problems += judge.state().differences(engine.state())
                engine.restore(judge.state())
            return problems


def with_equal_contributions(network: Network) -> Network:
    """``network`` with one contribution of all its synapses."""
    same = {"weights": 3.0, "postsynaptic_potentials": 1.0, "types": 0}
    columns = {name: np.full_like(getattr(network.synapses, name), value) for name, value in same.items()}
    return network.replace(synapses=replace(network.synapses, **columns))


def _small(name: str, delay: int) -> Mix:
    mix = next(mix for mix in MIXES if mix.name == name)
    return replace(mix, neurons=110, synapses=700, largest_delay=delay, bursts=_BURSTS)


def _differs(mix: Mix) -> list[str]:
    """What is wrong with the queues of ``mix``, from the start and from a state that has much under way."""
    network, options = mixed_network(mix), mixed_options(mix)
    if pack_network(network, options).variant.queues is None:
        return ["there are no queues"]
    problems, plan = compare_mix(mix, cuda_engine), mixed_plan(mix, network)
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    reference.run(5, plan)
    engine.restore(reference.state())
    for bursts in (1, 2, 5):
        problems += recordings_differ(reference.run(bursts, plan), engine.run(bursts, plan))
        problems += reference.state().differences(engine.state())
    if reference.step().fired_ids.tolist() != engine.step().fired_ids.tolist():
        problems.append("a step")
    return problems


def check_queues_per_owner() -> list[str]:
    """Sums of 32 and 64 bits with and without marks, delays, narrow and wide entries, palettes, equal contributions."""
    from burstproof.engine.cuda.engine import CudaEngine

    problems = []
    with queues_of(room=1 << 12):
        for name, delay in (("fractions, delays to 7", 40), ("integers", 2)):
            problems += [f"{name}, delays to {delay}: {problem}" for problem in _differs(_small(name, delay))]
        with mock.patch(f"{_PLAN}.queues._MOST_ENTRIES", 0):
            problems += [f"lists read again: {problem}" for problem in _differs(_small("fractions, delays to 7", 7))]
        for name in ("integers", "fractions, delays to 7"):
            long = replace(_small(name, 1), synapses=40 * 110)
            problems += [f"{name}, rows of about 40: {problem}" for problem in _differs(long)]
        with mock.patch(f"{_PLAN}.entries._FEW_NEURONS", 0):
            problems += [f"a palette: {problem}" for problem in _differs(_small("fractions, delays to 7", 3))]
        nine = SyntheticSpec(60, 9, seed=3, threshold=4.0, weights=2.0, postsynaptic_potential=1.5, initial_firing=0.3)
        plan = {1: Stimulus(forced=np.arange(0, nine.neurons, 3, dtype=np.uint32))}
        for entries, inhibitory in ((9, 0.0), (10, 0.3), (12, 0.0)):  # of a row, loaded one, two and four at a time
            spec = replace(nine, synapses_per_neuron=entries, inhibitory_fraction=inhibitory)
            reference, engine = ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec)
            differ = recordings_differ(reference.run(_BURSTS, plan), engine.run(_BURSTS, plan))
            problems += [f"rows of {entries}: {problem}" for problem in differ]
    return problems


def check_queues_of_equal_contributions() -> list[str]:
    """Entries that are targets alone, of queues with room and without; a state with other weights has other entries.

    Weights that are drawn, and turn out equal, do not have such entries.
    """
    from burstproof.engine.cuda.engine import CudaEngine

    problems = []
    spec = SyntheticSpec(90, 9, seed=3, threshold=4.0, weights=(3, 3), postsynaptic_potential=1.5, delays=(1, 3))
    with queues_of(1 << 12):
        plan = {1: Stimulus(forced=np.arange(0, spec.neurons, 3, dtype=np.uint32))}
        reference, engine = ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec)
        problems += recordings_differ(reference.run(_BURSTS, plan), engine.run(_BURSTS, plan))
    for room in (1 << 12, 3):
        for delay in (1, 3):
            with queues_of(room):
                problems += [f"room for {room}, delays to {delay}: {found}" for found in _equal_ones_differ(delay)]
    return problems


def _equal_ones_differ(delay: int) -> list[str]:
    mix = _small("integers", delay)
    network, options, plan = (
        with_equal_contributions(mixed_network(mix)),
        mixed_options(mix),
        mixed_plan(mix, mixed_network(mix)),
    )
    problems = runs_differ(network, options, 4, plan, quiet=4)
    reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
    reference.run(3, plan)
    state = reference.state()
    weights = state.weights.copy()
    weights[::2] = 2.0
    for kept, bits in ((state, 16), (replace(state, weights=weights), 32), (state, 16)):
        reference.restore(kept)
        engine.restore(kept)
        queues = engine.devices.packed.variant.queues
        problems += ["other entries"] * (queues is None or queues.entry_bits != bits)
        problems += recordings_differ(reference.run(3, plan), engine.run(3, plan))
        problems += reference.state().differences(engine.state())
    return problems


def check_a_layout_that_follows_what_fires() -> list[str]:
    """Queues once much fires, none once little does, with rows of the host or the device; results stay the same.

    With delays, what arrives later moves from a calendar to buckets, and back.
    """
    from burstproof.engine.cuda.engine import CudaEngine

    spec = SyntheticSpec(90, 9, seed=3, threshold=40.0, weights=2.0, postsynaptic_potential=1.5)
    chosen = {"plan.queues._pays": _PAYS, "plan.queues._FEWEST_NEURONS": 1, "plan.queues._LEAST_EVENTS": 300}
    problems = []
    with queues_of(room=1 << 12), ExitStack() as patches:
        for name, value in {**chosen, "host.one_device.perf_counter": lambda: 0.0}.items():
            patches.enter_context(mock.patch(f"burstproof.engine.cuda.{name}", value))
        problems += _layouts_differ(ReferenceEngine.create(synthesize(spec)), CudaEngine.from_spec(spec))
        patches.enter_context(mock.patch(f"{_PLAN}.sizing._RING_BYTES", 0))
        for delay in (1, 5):
            mix = _small("integers", delay)
            network, options = mixed_network(mix), mixed_options(mix)
            problems += _layouts_differ(ReferenceEngine.create(network, options), cuda_engine(network, options))
    return problems


def _layouts_differ(reference: ReferenceEngine, engine: CudaEngine) -> list[str]:
    """What is wrong with ``engine`` while little fires, then everything, then little again."""
    everything = Stimulus(forced=np.flatnonzero(reference.network.neurons.valid_mask).astype(np.uint32))
    problems = []
    for bursts, stimulated, queued in ((3, 0, False), (4, 4, True), (20, 0, False)):
        coming = reference.burst_count + 1
        plan = dict.fromkeys(range(coming, coming + stimulated), everything)
        problems += recordings_differ(reference.run(bursts, plan), engine.run(bursts, plan))
        found, wanted = engine.state(), reference.state()
        held = replace(wanted, weights=found.weights, eligibility_traces=found.eligibility_traces)
        problems += held.differences(found)
        is_queued = engine.devices.packed.variant.queues is not None
        problems += [f"queues: {is_queued}, after {bursts} bursts"] * (is_queued is not queued)
    return problems


def check_queues_of_places() -> list[str]:
    """Places of contributions in a palette, which no word has room for: uploaded, made by the device, without room."""
    from burstproof.engine.cuda.engine import CudaEngine

    problems, mix = [], _small("fractions, delays to 7", 7)
    made = SyntheticSpec(90, 9, seed=3, threshold=0.4, weights=(1, 9), postsynaptic_potential=0.013, delays=(1, 3))
    made = replace(made, inhibitory_fraction=0.3, initial_firing=0.3)
    with mock.patch(f"{_PLAN}.entries._FEW_NEURONS", 0), mock.patch(f"{_PLAN}.entries.WORD_BITS", 1):
        for room in (1 << 12, 3):
            with queues_of(room):
                packed = pack_network(mixed_network(mix), mixed_options(mix))
                problems += ["there are no places"] * (not packed.variant.placed)
                problems += [f"room for {room}: {problem}" for problem in _differs(mix)]
        with queues_of(1 << 12), CudaEngine.from_spec(made) as engine:
            plan = {1: Stimulus(forced=np.arange(0, made.neurons, 3, dtype=np.uint32))}
            reference = ReferenceEngine.create(synthesize(made))
            problems += ["the device makes no places"] * (not engine.devices.packed.variant.placed)
            problems += recordings_differ(reference.run(_BURSTS, plan), engine.run(_BURSTS, plan))
    return problems


def check_queues_of_features() -> list[str]:
    """Neurons with every feature, and delays, which have queues where no calendar is; from a restored state, too."""
    row = Row(400, 0.2, synapses_per_neuron=5, kind="parameters")
    featured = with_every_feature(row.network(), 1.0)
    delays = np.resize(np.array([1, 3], featured.synapses.delay_bursts.dtype), featured.synapse_count)
    network = featured.replace(synapses=replace(featured.synapses, delay_bursts=delays))
    options = EngineOptions(cuda=CudaOptions(batch_length=3))
    with queues_of(room=1 << 12):
        variant = pack_network(network, options).variant
        if variant.queues is None or not variant.extras:
            return ["there are no queues, or no features"]
        reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
        problems = recordings_differ(reference.run(4, row.start), engine.run(4, row.start))
        problems += reference.state().differences(engine.state())
        engine.restore(reference.state())
        problems += recordings_differ(reference.run(2), engine.run(2))
        return problems + list(reference.state().differences(engine.state()))


def check_owners_of_neurons_that_sleep() -> list[str]:
    """What a draw keeps from firing is known before owners read its columns; a thread has three neurons, or four."""
    problems = []
    for per_thread in (1, 2):
        with queues_of(room=1 << 12, per_thread=per_thread):
            problems += sleepers_differ(lambda variant: variant.sleeps and variant.queues is not None, neurons=230)
    return problems


def check_owners_of_sleepers_apart() -> list[str]:
    """Neurons four at a time: few of them may fire, or any; in bursts with stimulus and without."""
    problems, neurons = list[str](), 768
    with queues_of(room=1 << 12, per_thread=4):
        with mock.patch(f"{_PLAN}.sizing._FEW_AWAKE", np.inf):
            problems += sleepers_differ(_sleepers_are_apart, neurons)
        plain = SyntheticSpec(neurons, 9, seed=3, threshold=4.0, weights=(1, 9), excitability=0.04)
        drawn = replace(
            plain, leak=(0.05, 0.5), refractory_period=(0, 2), consecutive_fire_limit=(1, 3), accumulates=0.7
        )
        plan = dict.fromkeys(range(1, 5), Stimulus(forced=np.arange(0, neurons, 3, dtype=np.uint32)))
        for spec in (
            plain,
            replace(plain, leak=0.5, inhibitory_fraction=0.3),
            replace(drawn, postsynaptic_potential=0.3),
        ):
            network, options = synthesize(spec), EngineOptions()
            problems += ["too many may fire"] * (not _sleepers_are_apart(pack_network(network, options).variant))
            problems += runs_differ(network, options, 5, plan, quiet=8)
    return problems


def _sleepers_are_apart(variant: Variant) -> bool:
    return whole(variant).sleepers


def check_owners_of_several_chunks() -> list[str]:
    """Threads with three neurons in each of an owner's two chunks, in bursts with stimulus and without."""
    mix = replace(_small("integers", 2), neurons=300, synapses=2000)
    network, options = mixed_network(mix), mixed_options(mix)
    with queues_of(room=1 << 12, per_thread=3):
        if pack_network(network, options).variant.queues is None:
            return ["there are no queues"]
        return runs_differ(network, options, 4, mixed_plan(mix, network), quiet=6)


def check_bins_that_are_full() -> list[str]:
    """What a bin has no room for waits until it has: here a bin holds fewer entries than a window has for it."""
    problems = []
    with queues_of(room=1 << 12, bins=3 * 8 * 4):
        for name, delay in (("fractions, delays to 7", 7), ("integers", 1)):
            mix = replace(_small(name, delay), synapses=40 * 110)
            problems += [f"{name}, delays to {delay}: {problem}" for problem in _differs(mix)]
    return problems


def check_queues_that_are_full() -> list[str]:
    """What a queue or a bucket has no room for arrives all the same, once, out of bins of many entries and of few."""
    problems = []
    for bins in (1 << 16, 3 * 80 * 8):
        with queues_of(room=3, bins=bins):
            for name, delay in (("integers", 1), ("integers, all excitatory", 3), ("fractions, delays to 7", 7)):
                problems += [f"{name}, delays to {delay}: {problem}" for problem in _differs(_small(name, delay))]
    return problems


def check_restored_state_without_room_for_queues() -> list[str]:
    """Memory is short when a state has the network packed again, or when the engine is made: no queues from then on."""
    mix = _small("integers, all excitatory", 2)
    network, options = mixed_network(mix), mixed_options(mix)
    none = np.zeros(mix.neurons, np.uint16)
    periods = dict.fromkeys(("refractory_periods", "snooze_periods", "refractory_countdowns"), none)
    network = network.replace(neurons=replace(network.neurons, **periods))
    plan, problems = mixed_plan(mix, network), []
    with queues_of(room=1 << 12):
        reference, engine = ReferenceEngine.create(network, options), cuda_engine(network, options)
        problems += ["there are no queues"] * (engine.devices.packed.variant.queues is None)
        free = RESERVE_BYTES + MemoryPlan.of(engine.devices.packed.lacking(BUCKETS)).total_bytes - 1
        less = mock.patch.object(type(open_device(0)), "memory_info", return_value=(free, free))
        with less:
            late = cuda_engine(network, options)
        reference.run(5, plan)
        countdowns = np.where(np.arange(mix.neurons) % 3 == 0, np.uint16(2), np.uint16(0))
        state = replace(reference.state(), refractory_countdowns=countdowns)
        for each, memory in ((engine, less), (late, nullcontext())):
            reference.restore(state)
            with memory:
                each.restore(state)
            problems += ["there are queues"] * (each.devices.packed.variant.queues is not None)
            problems += reference.state().differences(each.state())
            problems += recordings_differ(reference.run(_BURSTS, plan), each.run(_BURSTS, plan))
    return problems
