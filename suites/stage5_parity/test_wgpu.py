"""What the WGPU engine has beside the rules: batches that halt, its probe, its refusals, its limits (BE-16).

That it keeps the rules is shown by the suites of all backends, of which it is one.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from burstproof.engine.ask_machine import ask_wgpu
from burstproof.engine.machine import WgpuAdapter, WgpuFacts
from burstproof.engine.options import EngineOptions, WgpuOptions
from burstproof.engine.precision import Precision
from burstproof.engine.profile import FEAGI_BETA
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Recording, Stimulus
from burstproof.engine.wgpu.adapters import chosen_adapter
from burstproof.engine.wgpu.engine import WgpuEngine
from burstproof.engine.wgpu.packed import joined, lower_and_upper, sizes_of
from burstproof.engine.wgpu.probe import ANSWERS, check_adapter, make_probe
from burstproof.engine.wgpu.probe_cases import Words
from burstproof.engine.wgpu.shaders import LONGEST_BATCH, variant_of
from burstproof.errors import BackendUnavailableError, InputError, OutOfMemoryError
from burstproof.network.features import AreaFeatures, Features, Homeostat, Modulator, ModulatorKind
from burstproof.network.model import Network, NeuronTable, SynapseTable
from burstproof.network.schema import Parameters
from suites.support.parity.backends import NEEDS_ADAPTER, WGPU
from suites.support.parity.large import slim
from suites.support.parity.mixed import MIXES, mixed_network, mixed_options, mixed_plan
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("BE-16", "ST-5")

ADAPTER = WgpuAdapter(0, "made up", "DiscreteGPU", "Vulkan", 2**28, 2**27)
BURSTS = 150
"""More than two submissions, and far more than what the log holds where all neurons fire."""


def ring_network(neurons: int = 200) -> Network:
    """A ring in which every neuron fires in every burst once all were started."""
    sources = np.arange(neurons)
    return Network(NeuronTable.build(neurons), SynapseTable.build(sources, (sources + 1) % neurons))


@dataclass(frozen=True, eq=False)
class Pair:
    """The engine and the reference over the same network."""

    engine: WgpuEngine
    reference: ReferenceEngine


@pytest.fixture
def ring() -> Iterator[Pair]:
    network = ring_network()
    engine = WgpuEngine.create(network)
    yield Pair(engine, ReferenceEngine.create(network))
    engine.close()


START = {1: Stimulus(forced=np.arange(200, dtype=np.uint32))}


@NEEDS_ADAPTER
@pytest.mark.requirement("BE-4")
@pytest.mark.parametrize(
    ("length", "submissions"),
    thinned([pytest.param(0, 22), pytest.param(1, 150), pytest.param(7, 150)], "a second each", keep=first(1)),
)
def test_batches_of_any_length_agree_where_the_log_fills_up(length: int, submissions: int) -> None:
    """200 firings in each of 150 bursts: a submission halts when its log is full, and the next goes on.

    The log of 64 bursts has room for 200 + 63 x 20 firings, so 7 bursts; that of 7 bursts for 200 + 6 x 20, so 1.
    """
    network = ring_network()
    engine = WgpuEngine.create(network, EngineOptions(wgpu=WgpuOptions(batch_length=length)))
    reference = ReferenceEngine.create(network)
    done: list[int] = []
    got = engine.run(BURSTS, START, progress=done.append)
    want = reference.run(BURSTS, START)
    assert want.fired_counts.tolist() == [200] * BURSTS
    assert recordings_differ(want, got) == []
    assert reference.state().differences(engine.state()) == ()
    assert sum(done) == BURSTS
    assert len(done) == submissions
    engine.close()


@NEEDS_ADAPTER
@pytest.mark.requirement("BE-4")
@pytest.mark.parametrize("length", thinned([0, 7], "a second each", keep=first(1)))
def test_features_go_on_over_batches_that_halt(length: int) -> None:
    """Homeostats with updates in every third burst, trains, modulators and the 8-bit range; the log fills up."""
    base = ring_network()
    leaking = replace(
        base.neurons,
        cortical_areas=np.repeat([7, 8], 100).astype(np.uint32),
        leak_coefficients=np.full(200, 0.25, np.float32),
        consecutive_fire_limits=np.tile([0, 3], 100).astype(np.uint16),
        snooze_periods=np.full(200, 2, np.uint16),
    )
    homeostat = Homeostat(target=0.3, tau=4.0, gain=0.3, leak_min=0.1, leak_max=0.9, update_every=3)
    areas = {
        7: AreaFeatures(homeostat, (0, 1, 0), spike_train=True),
        8: AreaFeatures(replace(homeostat, update_every=1), (2, 3)),
    }
    kinds = (ModulatorKind.FIRING_THRESHOLD, ModulatorKind.FIRING_PROBABILITY, ModulatorKind.LEAK)
    modulators = (
        Modulator("graded", kinds[0], 8, 70.0, 3.3),
        Modulator("draws", kinds[1], 7, -30.0),
        Modulator("leaks", kinds[2], 8, 45.0, 7.0),
        Modulator("raises", kinds[0], 7, 33.3),
    )
    features = Features(modulators, areas, clamp_potentials=True)
    network = base.replace(neurons=leaking, features=features, burst_count=11)
    engine = WgpuEngine.create(network, EngineOptions(wgpu=WgpuOptions(batch_length=length)))
    reference = ReferenceEngine.create(network)
    ids = np.arange(200, dtype=np.uint32)
    plan = {b: Stimulus(ids[b % 2 :: 2], np.full(100, b % 4, np.float32), ids[: b % 3 * 60]) for b in range(12, 132)}
    done: list[int] = []
    want = reference.run(120, plan)
    assert recordings_differ(want, engine.run(120, plan, progress=done.append)) == []
    assert want.fired_counts.max() > 100
    assert 2 < len(done) < 120
    assert reference.state().differences(engine.state()) == ()
    engine.close()


@NEEDS_ADAPTER
def test_counts_and_nothing_leave_the_same_state(ring: Pair) -> None:
    counts = ring.engine.run(10, START, Record.COUNTS)
    assert counts.fired_counts.tolist() == [200] * 10
    assert counts.candidate_counts.tolist() == ring.reference.run(10, START).candidate_counts.tolist()
    assert len(counts.fired_ids) == 0
    ring.reference.run(5)
    assert len(ring.engine.run(5, record=Record.NONE).bursts) == 0
    assert ring.reference.state().differences(ring.engine.state()) == ()


@NEEDS_ADAPTER
def test_a_clamp_on_the_device_sets_the_sticky_flag_without_fired_lists() -> None:
    """A constant contribution beyond the scale is noticed though nobody asked for the lists."""
    neurons = NeuronTable.build(2, thresholds=1)
    network = Network(neurons, SynapseTable.build([0], [1], weights=[1e38], postsynaptic_potentials=[1.5]))
    engine, reference = WgpuEngine.create(network), ReferenceEngine.create(network)
    assert engine.fixed_point.bits == 64
    plan = {2: Stimulus(forced=np.array([0], np.uint32))}
    for bursts, clamped in ((1, False), (2, True)):
        engine.run(bursts, plan, Record.NONE)
        reference.run(bursts, plan)
        assert reference.state().clamped is clamped
        assert reference.state().differences(engine.state()) == ()
    engine.close()


@NEEDS_ADAPTER
@pytest.mark.requirement("BE-4")
def test_carries_between_the_two_words_of_a_sum_are_complete() -> None:
    """600 contributions that fill the lower word, a fifth of them negative, add up whatever their order."""
    sources = np.arange(1, 601)
    weights = np.where(sources % 3 == 0, 3e6, 4294.967).astype(np.float32)
    synapses = SynapseTable.build(
        sources, np.zeros(600, int), weights=weights, postsynaptic_potentials=np.full(600, 0.9), types=sources % 5 == 0
    )
    network = Network(NeuronTable.build(601, thresholds=1e30, mp_charge_accumulation=np.arange(601) > 0), synapses)
    plan = {1: Stimulus(forced=sources.astype(np.uint32))}
    engine, reference = WgpuEngine.create(network), ReferenceEngine.create(network)
    assert engine.fixed_point.bits == 64
    for _ in range(2):
        engine.run(1, plan)
        reference.run(1, plan)
        assert reference.state().differences(engine.state()) == ()
    assert reference.state().membrane_potentials[0] != 0
    engine.close()


@NEEDS_ADAPTER
@pytest.mark.requirement("BE-4")
def test_restored_weights_are_those_that_contribute() -> None:
    """A state with other weights than the network's: its constant contributions follow, flags or not."""
    mix = next(mix for mix in MIXES if mix.name == "fractions")
    network, options, plan = mixed_network(mix), mixed_options(mix), mixed_plan(mix, mixed_network(mix))
    engine, reference = WGPU.create(network, options), ReferenceEngine.create(network, options)
    state = replace(reference.state(), weights=network.synapses.weights * np.float32(0.5))
    for each in (engine, reference):
        each.restore(state)
    assert recordings_differ(reference.run(20, plan), engine.run(20, plan)) == []
    assert reference.state().differences(engine.state()) == ()
    engine.close()
    engine.close()


@NEEDS_ADAPTER
@pytest.mark.requirement("BE-4")
def test_a_million_neurons_restart_only_what_fired() -> None:
    """feagi-beta from 10^6 neurons on: a forced neuron restarts, a candidate that was quiet does not."""
    count = 1_000_000
    network = Network(NeuronTable.build(count, thresholds=5, mp_charge_accumulation=False), SynapseTable.build([], []))
    options = EngineOptions(profile=FEAGI_BETA)
    ids = np.array([3, 4, 999_999], np.uint32)
    amounts = np.array([2, 3, 2], np.float32)
    plan = {b: Stimulus(ids, amounts, ids[:1] if b == 1 else ids[:0]) for b in (1, 2, 3)}
    engine, reference = WgpuEngine.create(network, options), ReferenceEngine.create(network, options)
    assert recordings_differ(reference.run(3, plan), engine.run(3, plan)) == []
    assert slim(reference.state()).differences(slim(engine.state())) == ()
    engine.close()


def test_the_probe_takes_numpys_own_answers() -> None:
    check_adapter("exact", lambda _cases: make_probe().expected)


@pytest.mark.parametrize("column", range(len(ANSWERS)), ids=ANSWERS)
def test_one_wrong_bit_in_the_probe_refuses(column: int) -> None:
    def wrong(_cases: Words) -> Words:
        answers = make_probe().expected.copy()
        answers[5, column] ^= 1
        return answers

    with pytest.raises(BackendUnavailableError) as caught:
        check_adapter("wrong", wrong)
    assert ANSWERS[column] in str(caught.value)
    assert "--backend cpu" in str(caught.value)


@pytest.mark.parametrize("column", [0, 1, 2])
def test_the_probe_sees_flushed_subnormals(column: int) -> None:
    """An adapter that flushes what is smaller than 2^-126 to zero is found out in each operation alone."""
    answers = make_probe().expected.copy()
    small = (answers[:, column] & 0x7F800000) == 0
    answers[small, column] &= np.uint32(0x80000000)
    with pytest.raises(BackendUnavailableError, match="not exact"):
        check_adapter("flushing", lambda _cases: answers)


@pytest.mark.parametrize("column", [0, 1, 5, 7])
def test_the_probe_sees_conversions_that_truncate(column: int) -> None:
    """An adapter whose integers become floats by truncation is found out wherever the rules convert."""
    probe = make_probe()
    v, unit = (np.ascontiguousarray(probe.cases[:, c]).view(np.float32) for c in (0, 2))
    exact = np.ascontiguousarray(probe.cases[:, 1]).view(np.int32).astype(np.float64)
    nearest = exact.astype(np.float32)
    cut = np.where(np.abs(nearest) > np.abs(exact), np.nextafter(nearest, np.float32(0)), nearest)
    answers = probe.expected.copy()
    with np.errstate(all="ignore"):
        if column < 2:
            x = cut * unit
            answers[:, column] = (v + (x if column == 0 else np.maximum(x, np.float32(0)))).view(np.uint32)
        else:
            positive = (answers[:, column] & 0x7FFFFFFF) != 0
            answers[positive, column] -= np.uint32(1)
    with pytest.raises(BackendUnavailableError, match=ANSWERS[column]):
        check_adapter("truncating", lambda _cases: answers)


def test_two_words_hold_any_64_bit_integer() -> None:
    values = np.array([0, 1, -1, 2**31, -(2**31), 2**32, 2**62, -(2**62), -(2**63), 2**63 - 1], np.int64)
    assert joined(*lower_and_upper(values)).tolist() == values.tolist()


@pytest.mark.parametrize("precision", [p for p in Precision if p is not Precision.FP32], ids=lambda p: p.value)
def test_reduced_precision_is_refused_with_the_cure(precision: Precision) -> None:
    with pytest.raises(BackendUnavailableError, match="float32 only") as caught:
        WgpuEngine.create(ring_network(), EngineOptions(precision=precision))
    assert "--precision fp32" in str(caught.value)


@pytest.mark.parametrize("length", [-1, LONGEST_BATCH + 1])
def test_a_batch_length_that_is_none_is_refused(length: int) -> None:
    with pytest.raises(InputError, match="no such length"):
        WgpuEngine.create(ring_network(), EngineOptions(wgpu=WgpuOptions(batch_length=length)))


def test_an_adapter_that_is_not_there_is_refused() -> None:
    facts = WgpuFacts(None, (ADAPTER,))
    assert chosen_adapter(facts, 0) is chosen_adapter(facts, None) is ADAPTER
    for number in (-1, 1):
        with pytest.raises(BackendUnavailableError, match="no such adapter"):
            chosen_adapter(facts, number)
    with pytest.raises(BackendUnavailableError, match="not installed: wgpu"):
        chosen_adapter(WgpuFacts(), None)


def test_a_discrete_gpu_comes_before_an_integrated_one_and_software_last() -> None:
    kinds = ("CPU", "Unknown", "IntegratedGPU", "DiscreteGPU")
    adapters = tuple(replace(ADAPTER, number=number, kind=kind) for number, kind in enumerate(kinds))
    for known in range(1, 5):
        assert WgpuFacts(None, adapters[:known]).preferred().number == known - 1


@pytest.mark.parametrize(
    ("limit", "buffer"),
    [(100, "parameters"), (4 * len(Parameters._fields) * 200, "synapses"), (2**27, None)],
    ids=["1", "2", "fits"],
)
def test_a_network_beyond_the_adapters_buffers_is_refused(limit: int, buffer: str | None) -> None:
    from burstproof.engine.fixed_point import plan_fixed_point
    from burstproof.engine.layout import build_layout

    neurons, options = 200, EngineOptions()
    targets = np.arange(4000) % neurons
    network = Network(NeuronTable.build(neurons), SynapseTable.build(targets, targets))
    layout = build_layout(network, options, plan_fixed_point(network, options))
    variant = variant_of(network, options, flagged=False, delayed=False, wide=False)
    adapter = replace(ADAPTER, largest_binding_bytes=limit)
    if buffer is None:
        assert sizes_of(layout, variant, LONGEST_BATCH, adapter).synapses == 8 * 4000
        return
    with pytest.raises(OutOfMemoryError, match=f"the buffer of the {buffer} is larger") as caught:
        sizes_of(layout, variant, LONGEST_BATCH, adapter)
    assert f"allowed: {limit} bytes" in str(caught.value).replace("'", "")
    assert "--backend cpu" in str(caught.value)


@pytest.mark.measures("wgpu.largest_binding", device=..., kind=..., api=...)
@NEEDS_ADAPTER
def test_every_adapter_reports_its_limits(measure) -> None:
    for adapter in ask_wgpu().adapters:
        assert adapter.api in ("Vulkan", "Metal", "D3D12")
        assert adapter.largest_buffer_bytes >= adapter.largest_binding_bytes >= 2**27
        conditions = {"device": adapter.name, "kind": adapter.kind, "api": adapter.api}
        measure("wgpu.largest_binding", adapter.largest_binding_bytes / 2**20, "MiB", conditions=conditions)


def test_neither_command_nor_choice_imports_wgpu_before_it_is_asked() -> None:
    code = "import sys, burstproof.cli, burstproof.engine.wgpu.engine; print('wgpu' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.not_proof
def test_recordings_are_compared_in_full() -> None:
    """The comparison above can fail."""
    reference = ReferenceEngine.create(ring_network())
    want = reference.run(3, START)
    assert isinstance(want, Recording)
    assert recordings_differ(want, replace(want, fired_potentials=want.fired_potentials + 1)) != []
