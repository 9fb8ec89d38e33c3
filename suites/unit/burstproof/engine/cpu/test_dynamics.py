"""What the CPU engine counts in a burst, over several blocks of neurons."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from burstproof.engine import reference
from burstproof.engine.cpu import memory
from burstproof.engine.cpu.regions import ALIGNED
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.precision import Precision
from burstproof.engine.profile import BATCH_PATH_CANDIDATES, FEAGI_2_6, FEAGI_BETA, Profile
from burstproof.engine.state import Stimulus
from burstproof.network.features import Features
from suites.support.parity.builder import network
from suites.support.plans import first, thinned

pytestmark = pytest.mark.requirement("BE-4")

NEURONS = 2500
SPECIALISED = CpuOptions(threads=1, specialise=True)
FRACTIONAL = EngineOptions(fractional_stimulus=True, cpu=SPECIALISED)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "profile", thinned([FEAGI_2_6, FEAGI_BETA], "compiles kernels", keep=first(1)), ids=lambda one: one.name
)
def test_blocks_rest_where_a_burst_changes_nothing(profile: Profile, threads: int) -> None:
    """Few neurons get something, then none; countdowns, restarts and forced firings keep a block from its rest.

    A state that is restored wakes all blocks: in it countdowns go on in those that rested.
    """
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.reference import ReferenceEngine

    count, generator = 2 * NEURONS, np.random.default_rng(11)
    net = network(
        count,
        thresholds=2,
        leak_coefficients=0.25,
        refractory_periods=generator.integers(0, 4, count),
        consecutive_fire_limits=generator.choice([0, 2], count),
        snooze_periods=generator.integers(0, 3, count),
        mp_charge_accumulation=generator.random(count) < 0.5,
        membrane_potentials=generator.normal(0, 1, count),
    )
    options = EngineOptions(profile, cpu=CpuOptions(threads=threads))
    specified, parts = ReferenceEngine.create(net, options), count // ALIGNED
    fired, resting = [], []
    with closing(CpuEngine.create(net, options)) as engine:
        for number in range(60):
            ids = np.unique(generator.integers(0, count, 3 if number % 10 < 4 else 0)).astype(np.uint32)
            forced = fired[-2] if number % 10 == 5 else np.empty(0, np.uint32)  # countdowns of 1 among them
            stimulus = Stimulus(ids, np.full(len(ids), 2, np.float32), forced)
            mine, known = engine.step(stimulus), specified.step(stimulus)
            assert (mine.fired_ids.tolist(), mine.candidates) == (known.fired_ids.tolist(), known.candidates)
            assert specified.state().differences(engine.state()) == ()
            fired.append(known.fired_ids)
            resting.append(engine._memory.neurons.settled[:parts].mean())
        everybody = Stimulus(np.arange(count, dtype=np.uint32), np.full(count, 2, np.float32))
        for one in (specified, engine):
            one.step(everybody)
        state = specified.state()
        specified.run(20)
        engine.run(20)
        assert engine._memory.neurons.settled[:parts].all()
        for one in (specified, engine):
            one.restore(state)
            one.run(2)
        assert specified.state().differences(engine.state()) == ()
    assert min(resting) < 0.6
    assert max(resting) == 1


@pytest.mark.parametrize("awake", [range(1024, 2048), range(1024, 2048 + ALIGNED)], ids=["one", "two"])
def test_a_block_rests_whatever_its_neighbours_do(awake: range) -> None:
    """Of three blocks, the last has ``ALIGNED`` neurons. All are to restart; those of resting blocks do not."""
    from burstproof.engine.cpu.engine import CpuEngine

    options = EngineOptions(cpu=CpuOptions(threads=1))
    with closing(CpuEngine.create(network(2048 + ALIGNED, mp_charge_accumulation=False), options)) as engine:
        engine.run(2)
        neurons = engine._memory.neurons
        neurons.membrane_potentials[:], neurons.was_candidate[:] = 0.5, True
        neurons.settled[awake.start // ALIGNED : awake.stop // ALIGNED] = False
        engine.step()
        assert np.flatnonzero(neurons.membrane_potentials == 0).tolist() == list(awake)


@pytest.mark.thorough("compiles kernels of its own")
def test_waiting_countdowns_let_a_block_rest() -> None:
    """Under ``feagi-beta`` only candidates count down."""
    from burstproof.engine.cpu.engine import CpuEngine

    net = network(ALIGNED + 1, thresholds=1, refractory_periods=3)
    with closing(CpuEngine.create(net, EngineOptions(FEAGI_BETA, cpu=CpuOptions(threads=1)))) as engine:
        last = np.array([ALIGNED], np.uint32)
        assert engine.step(Stimulus(last, np.full(1, 2, np.float32))).fired_ids.tolist() == [ALIGNED]
        engine.run(2)
        assert engine.state().refractory_countdowns[ALIGNED] > 0
        assert engine._memory.neurons.settled.all()


@pytest.mark.thorough("compiles kernels")
@pytest.mark.parametrize("amount", [0.0, 2.0])
def test_candidates_are_counted_over_all_blocks(amount: float) -> None:
    """A stimulus of 0 makes a candidate, too."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.reference import ReferenceEngine

    net = network(NEURONS)
    options = EngineOptions(cpu=CpuOptions(threads=1))
    generator = np.random.default_rng(3)
    engines = [CpuEngine.create(net, options), ReferenceEngine.create(net, options)]
    try:
        for _ in range(3):
            ids = np.flatnonzero(generator.random(NEURONS) < 0.6).astype(np.uint32)
            amounts = generator.choice([amount, 1.0, 2.0], len(ids)).astype(np.float32)
            mine, specified = (engine.step(Stimulus(ids, amounts, np.empty(0, np.uint32))) for engine in engines)
            assert mine.candidates == specified.candidates == len(ids)
            assert mine.fired_ids.tolist() == specified.fired_ids.tolist()
    finally:
        for engine in engines:
            engine.close()


@pytest.mark.thorough("compiles kernels")
def test_a_clamped_potential_of_minus_zero_stays() -> None:
    """A leak above 1 makes -0 of 0; the state of both is compared bit for bit."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.reference import ReferenceEngine

    net = network(1, leak_coefficients=1.5).replace(features=Features(clamp_potentials=True))
    options = EngineOptions(cpu=CpuOptions(threads=1))
    engines = [CpuEngine.create(net, options), ReferenceEngine.create(net, options)]
    try:
        for engine in engines:
            engine.step(Stimulus(np.zeros(1, np.uint32), np.zeros(1, np.float32), np.empty(0, np.uint32)))
            assert np.signbit(engine.state().membrane_potentials[0])
        assert engines[0].state().differences(engines[1].state()) == ()
    finally:
        for engine in engines:
            engine.close()


@pytest.mark.thorough("compiles kernels")
@pytest.mark.parametrize(
    ("profile", "forgets"),
    [(FEAGI_2_6, 0.0), (FEAGI_2_6, 0.5), (FEAGI_BETA, 0.5)],
    ids=["accumulating", "restarting", "large"],
)
def test_specialised_kernels_without_countdowns_agree(
    profile: Profile, forgets: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No neuron has a refractory period; sums fall below 0. Under ``feagi-beta`` the network counts as a large one."""
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.reference import ReferenceEngine

    for module in (memory, reference):
        monkeypatch.setattr(module, "LARGE_NETWORK_NEURONS", 100)
    generator = np.random.default_rng(7)
    net = network(NEURONS, thresholds=4, mp_charge_accumulation=generator.random(NEURONS) >= forgets)
    options = EngineOptions(profile, cpu=SPECIALISED)
    engines = [CpuEngine.create(net, options), ReferenceEngine.create(net, options)]
    try:
        for _ in range(6):
            ids = np.flatnonzero(generator.random(NEURONS) < 0.6).astype(np.uint32)
            amounts = generator.choice([-1.0, 2.0, 3.0], len(ids)).astype(np.float32)
            mine, specified = (engine.step(Stimulus(ids, amounts, np.empty(0, np.uint32))) for engine in engines)
            assert mine.fired_ids.tolist() == specified.fired_ids.tolist()
            assert engines[0].state().differences(engines[1].state()) == ()
    finally:
        for engine in engines:
            engine.close()


@pytest.mark.thorough("compiles kernels")
@pytest.mark.parametrize(
    ("excitability", "options"),
    [
        (1.0, replace(FRACTIONAL, emulate_batch_path=True, precision=Precision.FP16)),
        (0.6, FRACTIONAL),
    ],
    ids=["counts do not decide", "counts decide"],
)
def test_full_counts_block(excitability: float, options: EngineOptions) -> None:
    """At 65535 fires a neuron is blocked; nobody has a limit, so only a draw makes counts decide.

    Of the bursts some have candidates enough for the batch path, others do not.
    """
    from burstproof.engine.cpu.engine import CpuEngine
    from burstproof.engine.reference import ReferenceEngine

    count, generator = 12_000, np.random.default_rng(5)
    net = network(
        count,
        thresholds=1,
        leak_coefficients=0.25,
        refractory_periods=generator.integers(0, 2, count),
        excitabilities=excitability,
        mp_charge_accumulation=generator.random(count) < 0.5,
        consecutive_fire_counts=generator.choice([7, 65534, 65535], count),
    )
    engines = [CpuEngine.create(net, options), ReferenceEngine.create(net, options)]
    candidates = set()
    try:
        for share in (0.3, 0.99, 0.99, 0.3):
            ids = np.flatnonzero(generator.random(count) < share).astype(np.uint32)
            amounts = generator.choice([0.6, 2.1, 3.3], len(ids)).astype(np.float32)
            mine, specified = (engine.step(Stimulus(ids, amounts, np.empty(0, np.uint32))) for engine in engines)
            assert mine.fired_ids.tolist() == specified.fired_ids.tolist()
            assert engines[0].state().differences(engines[1].state()) == ()
            candidates.add(mine.candidates >= BATCH_PATH_CANDIDATES)
    finally:
        for engine in engines:
            engine.close()
    assert candidates == {False, True}
