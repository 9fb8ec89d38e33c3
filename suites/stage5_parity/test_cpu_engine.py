"""The CPU engine against the reference on networks that mix every rule, and against cases worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cpu.kernels import Kernels
from burstproof.engine.cpu.memory import SPECIALISED_NEURONS
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.profile import FEAGI_2_6, FEAGI_BETA, Profile
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import Record, Stimulus
from burstproof.errors import NetworkError, StimulusError
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.network.plasticity import PlasticMapping
from burstproof.network.schema import NO_LIMIT
from suites.support.parity.mixed import MIXES, compare_mix, compare_run
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("BE-4", "BE-5", "BE-17")

OWN_KERNEL = "compiles a kernel of its own, which takes seconds"

TWO_THREADS = CpuOptions(threads=2)
SPECIALISED = CpuOptions(threads=1, specialise=True)


def mixed_network(seed: int, neurons: int = 150, fan_out: int = 12, byte_synapses: bool = False) -> Network:
    """A network in which every rule of SEMANTICS is at work on some neuron."""
    rng = np.random.default_rng(seed)
    synapses = neurons * fan_out
    areas = rng.integers(7, 11, neurons)
    areas[0] = 1
    table = NeuronTable.build(
        neurons,
        membrane_potentials=rng.normal(0, 2, neurons).astype(np.float32),
        thresholds=rng.uniform(0.5, 6, neurons),
        threshold_limits=np.where(rng.random(neurons) < 0.2, 9.0, NO_LIMIT),
        leak_coefficients=rng.choice([0.0, 0.1, 0.37, 10.0], neurons, p=[0.4, 0.3, 0.25, 0.05]),
        refractory_periods=rng.choice([0, 1, 3], neurons),
        refractory_countdowns=rng.choice([0, 2], neurons),
        excitabilities=rng.choice([1.0, 0.999, 0.6, 0.0], neurons, p=[0.6, 0.1, 0.25, 0.05]),
        cortical_areas=areas,
        valid_mask=rng.random(neurons) > 0.03,
        consecutive_fire_limits=rng.choice([0, 65535, 1, 2], neurons),
        consecutive_fire_counts=rng.choice([0, 1, 2], neurons),
        snooze_periods=rng.choice([0, 2, 5], neurons),
        mp_charge_accumulation=rng.random(neurons) < 0.6,
    )
    weights = rng.integers(0, 5, synapses) if byte_synapses else rng.choice([0, 0.3, 1, 2.7, 300], synapses)
    wiring = SynapseTable.build(
        rng.integers(0, neurons, synapses),
        rng.integers(0, neurons, synapses),
        weights=weights,
        postsynaptic_potentials=rng.integers(0, 4, synapses),
        types=rng.random(synapses) < 0.3,
        delay_bursts=1 if byte_synapses else rng.integers(1, 5, synapses),
        valid_mask=rng.random(synapses) > 0.05,
    )
    return Network(table, wiring, burst_count=int(rng.integers(0, 50)), power_amount=4.0)


def with_areas(network: Network) -> Network:
    """Areas with the four combinations of the psp flags."""
    flags = ((True, False), (False, False), (True, True), (False, True))
    areas = tuple(Area(7 + i, f"a{i}", psp_uniform_distribution=u, mp_driven_psp=m) for i, (u, m) in enumerate(flags))
    return network.replace(areas=areas)


def with_plasticity(network: Network, constant: float = 1.25) -> Network:
    """Two plastic mappings, of window 1 from areas of even index and of window 3 from the others."""
    even = network.neurons.cortical_areas[network.synapses.source_neurons] % 2 == 0
    return network.replace(
        plastic_mappings=(
            PlasticMapping(np.flatnonzero(even)[::5], 1, constant, 2.0, 1.0),
            PlasticMapping(np.flatnonzero(~even)[::5], 3, constant, 1.0, 4.0),
        )
    )


def plan_for(network: Network, bursts: int, seed: int = 3) -> dict[int, Stimulus]:
    """Stimulus and forced firings for about half of the coming bursts, some of it negative, some doubled."""
    rng = np.random.default_rng(seed)
    valid = np.flatnonzero(network.neurons.valid_mask)
    plan = {}
    for number in range(network.burst_count + 1, network.burst_count + 1 + bursts):
        if rng.random() < 0.5:
            ids = rng.choice(valid, 12)
            amounts = rng.integers(-3, 9, 12).astype(np.float32)
            plan[number] = Stimulus(ids, amounts, rng.choice(valid, 4))
    return plan


def assert_parity(network: Network, options: EngineOptions, bursts: int = 25) -> int:
    """Step reference and CPU engine side by side; every burst and every state must be equal. Returns the firings."""
    reference, cpu = ReferenceEngine.create(network, options), CpuEngine.create(network, options)
    plan = plan_for(network, bursts)
    firings = 0
    for _ in range(bursts):
        stimulus = plan.get(reference.burst_count + 1, Stimulus())
        expected, got = reference.step(stimulus), cpu.step(stimulus)
        assert got.number == expected.number
        np.testing.assert_array_equal(got.fired_ids, expected.fired_ids)
        np.testing.assert_array_equal(got.fired_potentials, expected.fired_potentials)
        assert got.candidates == expected.candidates
        assert cpu.state().differences(reference.state()) == ()
        firings += len(got.fired_ids)
    cpu.close()
    return firings


VARIANTS = {
    "plain": lambda n: n,
    "areas": with_areas,
    "plastic": with_plasticity,
    "everything": lambda n: with_plasticity(with_areas(n)),
}


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_mixed_networks_agree_with_the_reference(variant: str, threads: int) -> None:
    options = EngineOptions(cpu=CpuOptions(threads=threads))
    for seed in (1, 2):
        assert assert_parity(VARIANTS[variant](mixed_network(seed)), options) > 100


def beta_network(seed: int) -> Network:
    """A mixed network that ``feagi-beta`` admits."""
    return with_plasticity(with_areas(mixed_network(seed, byte_synapses=True)), constant=1.0)


@pytest.mark.parametrize("threads", thinned([1, 2, 4], OWN_KERNEL, keep=first(1)))
def test_mixed_networks_agree_under_the_beta_profile(threads: int) -> None:
    options = EngineOptions(profile=FEAGI_BETA, cpu=CpuOptions(threads=threads))
    assert assert_parity(beta_network(4), options) > 100


@pytest.mark.thorough(OWN_KERNEL)
@pytest.mark.parametrize(
    ("name", "threads"),
    [
        ("integers, all excitatory", 1),
        ("fractions, delays to 7", 2),
        ("beta, mp-driven, plastic, windows 1 and 3", 2),
        ("batch path", 1),
    ],
)
def test_specialised_kernels_agree(name: str, threads: int) -> None:
    """Networks whose size would give them the general kernels get kernels of their own."""
    (mix,) = (mix for mix in MIXES if mix.name == name)
    cpu = CpuOptions(threads=threads, specialise=True)
    problems = compare_mix(mix, lambda network, options: CpuEngine.create(network, replace(options, cpu=cpu)))
    assert not problems, problems[0]


@pytest.mark.thorough(OWN_KERNEL)
@pytest.mark.parametrize(
    "name", ["beta, mp-driven, plastic, windows 1 and 3", "clamped contributions", "delays to 255", "batch path"]
)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_run_goes_on_with_kernels_of_its_own(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a batch on the general kernels the rest of the run, and its state, are the reference's."""
    monkeypatch.setattr("burstproof.engine.cpu.engine._GENERAL_UPDATES", 0)
    monkeypatch.setattr("burstproof.engine.cpu.engine._LONGEST_BATCH", 3)
    (mix,) = (mix for mix in MIXES if mix.name == name)
    made: list[tuple[CpuEngine, Kernels]] = []

    def create(network: Network, options: EngineOptions) -> CpuEngine:
        engine = CpuEngine.create(network, replace(options, cpu=CpuOptions(threads=threads)))
        made.append((engine, engine.kernels))
        return engine

    assert compare_run(mix, create) == []
    assert all(engine.kernels is not general for engine, general in made)


def test_small_networks_share_the_kernels_of_their_profile() -> None:
    """Whatever a small network uses, nothing is compiled for it at first; a large one has kernels of its own."""
    engines = [CpuEngine.create(change(mixed_network(1))) for change in VARIANTS.values()]
    lean = Network(NeuronTable.build(3), SynapseTable.build([0], [1]))
    engines.append(CpuEngine.create(lean))
    for engine in engines:
        engine.run(3, plan_for(engine.network, 3))
    assert len({id(engine.kernels.run_batch) for engine in engines}) == 1
    assert len(engines[0].kernels.run_batch.signatures) == 1
    large = Network(NeuronTable.build(SPECIALISED_NEURONS), SynapseTable.build([0], [1]))
    for network, options in ((large, EngineOptions()), (lean, EngineOptions(cpu=SPECIALISED))):
        assert CpuEngine.create(network, options).kernels is not engines[0].kernels
    with mock.patch("burstproof.engine.cpu.memory._SPECIALISED_SYNAPSES", 1):
        assert CpuEngine.create(lean).kernels is not engines[0].kernels


@pytest.mark.parametrize("cpu", thinned([CpuOptions(1), TWO_THREADS, SPECIALISED], OWN_KERNEL, keep=first(2)), ids=str)
def test_a_clamped_static_contribution_sets_the_sticky_flag(cpu: CpuOptions) -> None:
    """Neuron 1 gets more than 64 bits admit at any scale in burst 2; the flag stays for good."""
    network = Network(NeuronTable.build(2), SynapseTable.build([0], [1], weights=1e19))
    options = EngineOptions(cpu=cpu, fractional_stimulus=True)
    engine, reference = CpuEngine.create(network, options), ReferenceEngine.create(network, options)
    kick = Stimulus(np.array([0], np.uint32), np.ones(1, np.float32))
    flags = []
    for stimulus in (Stimulus(), kick, Stimulus(), Stimulus()):
        expected, got = reference.step(stimulus), engine.step(stimulus)
        np.testing.assert_array_equal(got.fired_potentials, expected.fired_potentials)
        assert engine.state().differences(reference.state()) == ()
        flags.append(engine.state().clamped)
    engine.close()
    assert flags == [False, True, True, True]


@pytest.mark.thorough(OWN_KERNEL)
def test_large_networks_restart_only_what_fired_under_the_beta_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bound of a million neurons is lowered for both engines; without it their states must differ."""
    network, options = beta_network(7), EngineOptions(profile=FEAGI_BETA)
    small = CpuEngine.create(network, options)
    for module in ("cpu.memory", "reference"):
        monkeypatch.setattr(f"burstproof.engine.{module}.LARGE_NETWORK_NEURONS", 100)
    large = CpuEngine.create(network, options)
    plan = plan_for(network, 25)
    small.run(25, plan)
    large.run(25, plan)
    assert small.state().differences(large.state()) != ()
    assert assert_parity(network, options) > 100


@pytest.mark.parametrize("profile", [FEAGI_2_6, FEAGI_BETA], ids=lambda p: p.name)
def test_batch_path_is_emulated_from_ten_thousand_candidates(profile: Profile) -> None:
    network = mixed_network(6, neurons=12_000, fan_out=8, byte_synapses=True)
    network = network.replace(
        neurons=replace(network.neurons, refractory_periods=np.zeros(12_000, np.uint16)), power_amount=1.0
    )
    kick = Stimulus(
        np.flatnonzero(network.neurons.valid_mask), np.full(12_000, 5, np.float32)[: network.neurons.valid_mask.sum()]
    )
    counts = set()
    for emulate in (True, False):
        options = EngineOptions(profile=profile, emulate_batch_path=emulate)
        reference, cpu = ReferenceEngine.create(network, options), CpuEngine.create(network, options)
        for _ in range(4):
            expected, got = reference.step(kick), cpu.step(kick)
            assert got.candidates == expected.candidates >= 10_000
            assert cpu.state().differences(reference.state()) == ()
        counts.add(int(cpu.state().consecutive_fire_counts.sum()) + int(cpu.state().refractory_countdowns.sum()))
    assert len(counts) == 2, "the batch path made no difference: the case proves nothing"


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_run_equals_its_steps(threads: int) -> None:
    network = with_plasticity(with_areas(mixed_network(8)))
    plan = plan_for(network, 40)
    cpu = CpuEngine.create(network, EngineOptions(cpu=CpuOptions(threads=threads)))
    reference = ReferenceEngine.create(network)
    done: list[int] = []
    got, expected = cpu.run(40, plan, progress=done.append), reference.run(40, plan)
    assert sum(done) == 40
    for name in ("bursts", "fired_counts", "candidate_counts", "fired_ids", "fired_potentials"):
        np.testing.assert_array_equal(getattr(got, name), getattr(expected, name))
    assert cpu.state().differences(reference.state()) == ()
    counted = cpu.run(3, record=Record.COUNTS)
    assert len(counted.fired_ids) == 0
    np.testing.assert_array_equal(counted.fired_counts, reference.run(3).fired_counts)
    assert len(cpu.run(2, record=Record.NONE).bursts) == 0
    assert cpu.burst_count == network.burst_count + 45
    cpu.close()


def test_a_train_that_fires_more_than_its_buffer_goes_on() -> None:
    count = 40
    network = Network(NeuronTable.build(count), SynapseTable.build(np.arange(count), np.roll(np.arange(count), 1)))
    cpu, reference = CpuEngine.create(network), ReferenceEngine.create(network)
    plan = {1: Stimulus(forced=np.arange(count, dtype=np.uint32))}
    got, expected = cpu.run(60, plan), reference.run(60, plan)
    assert got.fired_counts.tolist() == [count] * 60
    np.testing.assert_array_equal(got.fired_ids, expected.fired_ids)
    assert cpu.state().differences(reference.state()) == ()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_state_moves_between_engines(threads: int) -> None:
    network = with_plasticity(with_areas(mixed_network(9)))
    options = EngineOptions(cpu=CpuOptions(threads=threads))
    reference, cpu = ReferenceEngine.create(network, options), CpuEngine.create(network, options)
    plan = plan_for(network, 60)
    reference.run(20, plan)
    state = reference.state()
    cpu.restore(state)
    assert cpu.state().differences(state) == ()
    cpu.run(20, plan)
    reference.restore(cpu.state())
    cpu.run(20, plan)
    reference.run(20, plan)
    assert cpu.state().differences(reference.state()) == ()
    cpu.close()


@pytest.mark.parametrize(("variant", "threads"), [("plain", 1), ("everything", 1), ("everything", 2)])
def test_restored_weights_change_the_contributions(variant: str, threads: int) -> None:
    network = VARIANTS[variant](mixed_network(10))
    options = EngineOptions(cpu=CpuOptions(threads=threads))
    reference, cpu = ReferenceEngine.create(network, options), CpuEngine.create(network, options)
    reference.run(5)
    weights = reference.state().weights * np.float32(0.5)
    weights[::3] = 0
    state = replace(reference.state(), weights=weights)
    cpu.restore(state)
    reference.restore(state)
    plan = plan_for(network, 40)
    np.testing.assert_array_equal(cpu.run(20, plan).fired_ids, reference.run(20, plan).fired_ids)
    assert cpu.state().differences(reference.state()) == ()
    cpu.close()


@pytest.mark.thorough(OWN_KERNEL)
def test_restored_countdowns_run_in_a_network_without_refractoriness() -> None:
    network = Network(NeuronTable.build(3, thresholds=1.0, leak_coefficients=0.5), SynapseTable.build([0], [1]))
    cpu = CpuEngine.create(network, EngineOptions(cpu=SPECIALISED))
    reference = ReferenceEngine.create(network)
    cpu.step()
    state = replace(cpu.state(), refractory_countdowns=np.array([2, 0, 1], np.uint16))
    reference.restore(state)
    cpu.restore(state)
    stimulus = Stimulus(np.array([0], np.uint32), np.array([5], np.float32))
    assert [len(cpu.step(stimulus).fired_ids) for _ in range(3)] == [0, 0, 1]
    reference.run(3, {2: stimulus, 3: stimulus, 4: stimulus})
    assert cpu.state().differences(reference.state()) == ()


def test_weights_that_would_overflow_the_accumulator_are_refused() -> None:
    network = Network(NeuronTable.build(2), SynapseTable.build([0, 0], [1, 1], weights=0.5))
    cpu = CpuEngine.create(network)
    assert cpu.fixed_point.bits == 32
    with pytest.raises(NetworkError, match="too large for the fixed-point scale"):
        cpu.restore(replace(cpu.state(), weights=np.full(2, 1e9, np.float32)))


def test_a_chain_fires_one_neuron_per_burst() -> None:
    """Worked out by hand: threshold 2, weight 2, so neuron i fires in burst i + 1 with potential 2."""
    network = Network(NeuronTable.build(5, thresholds=2.0), SynapseTable.build([0, 1, 2, 3], [1, 2, 3, 4], weights=2.0))
    cpu = CpuEngine.create(network)
    recording = cpu.run(6, {1: Stimulus(np.array([0], np.uint32), np.array([2], np.float32))})
    assert recording.fired_counts.tolist() == [1, 1, 1, 1, 1, 0]
    assert recording.fired_ids.tolist() == [0, 1, 2, 3, 4]
    assert recording.fired_potentials.tolist() == [2.0] * 5
    assert recording.candidate_counts.tolist() == [1, 1, 1, 1, 1, 0]


@pytest.mark.thorough(OWN_KERNEL)
def test_a_stimulus_that_cancels_makes_a_candidate() -> None:
    """Amounts of +3 and -3: the sum is 0, yet the neuron leaks half of its potential of 8."""
    network = Network(
        NeuronTable.build(1, thresholds=100.0, leak_coefficients=0.5, membrane_potentials=8.0),
        SynapseTable.build([], []),
    )
    cpu = CpuEngine.create(network, EngineOptions(cpu=SPECIALISED))
    assert cpu.step().candidates == 0
    burst = cpu.step(Stimulus(np.zeros(2, np.uint32), np.array([3, -3], np.float32)))
    assert burst.candidates == 1
    assert cpu.state().membrane_potentials.tolist() == [4.0]
    assert cpu.step().candidates == 0


def test_networks_without_neurons_or_synapses_run() -> None:
    for count in (0, 3):
        cpu = CpuEngine.create(Network(NeuronTable.build(count), SynapseTable.build([], [])))
        assert cpu.run(3).fired_counts.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("stimulus", "message"),
    [
        (Stimulus(np.array([9], np.uint32), np.ones(1, np.float32)), "outside the network"),
        (Stimulus(np.array([1], np.uint32), np.ones(1, np.float32)), "not valid"),
        (Stimulus(forced=np.array([1], np.uint32)), "not valid"),
        (Stimulus(np.array([0], np.uint32), np.array([np.nan], np.float32)), "not finite"),
        (Stimulus(np.array([0], np.uint32), np.array([0.5], np.float32)), "fractional_stimulus"),
        (Stimulus(np.array([0, 0], np.uint32), np.array([200, -100], np.float32)), "max_stimulus"),
        (Stimulus(np.array([0], np.uint32), np.ones(2, np.float32)), "differ in length"),
    ],
)
def test_a_faulty_stimulus_is_refused_before_anything_happens(stimulus: Stimulus, message: str) -> None:
    network = Network(NeuronTable.build(2, valid_mask=[True, False]), SynapseTable.build([], []))
    cpu = CpuEngine.create(network)
    before = cpu.state()
    with pytest.raises(StimulusError, match=message):
        cpu.step(stimulus)
    with pytest.raises(StimulusError, match=message):
        cpu.run(5, {3: stimulus})
    assert cpu.state().differences(before) == ()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"weights": 0.5}, "unsigned 8-bit"),
        ({"postsynaptic_potentials": 256.0}, "unsigned 8-bit"),
        ({"delay_bursts": 2}, "delay above 1"),
    ],
)
def test_the_beta_profile_refuses_what_bytes_cannot_hold(columns: dict[str, float], message: str) -> None:
    network = Network(NeuronTable.build(2), SynapseTable.build([0], [1], **columns))
    with pytest.raises(NetworkError, match=message):
        CpuEngine.create(network, EngineOptions(profile=FEAGI_BETA))


def test_closing_twice_is_allowed() -> None:
    cpu = CpuEngine.create(mixed_network(1), EngineOptions(cpu=TWO_THREADS))
    cpu.close()
    cpu.close()
