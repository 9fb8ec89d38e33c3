"""Shards on the CPU against the reference and the recorded traces, bit for bit, in one process (MG-1, MG-4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from burstproof.analysis.statistics import ActivityCounter
from burstproof.cli.main import main
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.precision import Precision
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.registry import create_sharded
from burstproof.engine.replay import replay, trace_options
from burstproof.engine.sharded.engine import ShardedEngine
from burstproof.engine.sharded.partition import STRATEGIES, make_partition, metis_available, partition_of
from burstproof.engine.state import Record, Stimulus
from burstproof.engine.trace import read_trace
from burstproof.errors import ExitCode, InputError, NetworkError
from burstproof.network.model import Area, Network, NeuronTable, SynapseTable
from burstproof.split import reshard
from stages.measuring import Measure
from suites.support.parity.builder import CreateEngine
from suites.support.parity.mixed import MIXES, Mix, compare_mix, compare_run, mixed_network, mixed_options, mixed_plan
from suites.support.parity.recordings import FEATURE_NAMES, recording
from suites.support.plans import only, thinned
from suites.support.shards.cpu_shards import EVERYTHING_LEARNS, TRACE_NAMES, TRACES, mix_named, sharded

pytestmark = pytest.mark.requirement("MG-1", "MG-4", "BE-4", "ST-7")

SPLITS = [(strategy, shards) for strategy in STRATEGIES for shards in (2, 3, 4)]
INSTALLED = [split for split in SPLITS if split[0] != "metis" or metis_available()]


def split_name(split: tuple[str, int]) -> str:
    return f"{split[0]}, {split[1]} shards"


@pytest.mark.measures("parity.bursts_agreeing", backend=..., trace=...)
@pytest.mark.parametrize("name", TRACE_NAMES)
@pytest.mark.parametrize("split", [("contiguous", 1), ("round_robin", 2), ("dynamic", 3), ("by_cortical_area", 4)])
def test_recording_agrees(name: str, split: tuple[str, int], measure: Measure) -> None:
    """A recorded trace of the real engine, burst by burst."""
    result = replay(read_trace(TRACES / name), sharded(*split))
    conditions = {"backend": f"cpu, {split_name(split)}", "trace": name, "profile": result.profile}
    measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
    assert result.agrees, f"{result.state_agree} of {result.bursts} bursts agree; first: {result.first}"


@pytest.mark.measures("parity.bursts_agreeing", backend=..., trace=...)
@pytest.mark.parametrize("name", thinned(FEATURE_NAMES, "shards with features have kernels of their own", keep=only()))
@pytest.mark.parametrize("split", [("round_robin", 2), ("dynamic", 3), ("by_cortical_area", 4)])
def test_recording_of_features_agrees(name: str, split: tuple[str, int], measure: Measure) -> None:
    """Every recorded field of the released engine's features, memories and made synapses among them."""
    result = replay(recording(name), sharded(*split))
    conditions = {"backend": f"cpu, {split_name(split)}", "trace": name, "profile": result.profile}
    measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
    assert result.agrees, f"{result.state_agree} of {result.bursts} bursts agree; first: {result.first}"


@pytest.mark.thorough("compiles kernels of features for shards")
@pytest.mark.parametrize("name", ["features/mem2t_12", "features/mem4_12", "features/stim_11"])
def test_features_go_on_through_splits_and_backends(name: str) -> None:
    """Six bursts each on shards, threads and the reference in turn, twins added on the way: no state differs."""
    trace = recording(name)
    options, reference = trace_options(trace), ReferenceEngine.create(trace.network, trace_options(trace))
    makers = [sharded("round_robin", 2), CpuEngine.create, sharded("dynamic", 3), ReferenceEngine.create]
    for create in [*makers, sharded("by_cortical_area", 2)]:
        with create(trace.network, options) as engine:
            engine.restore(reference.state())
            assert engine.state().differences(reference.state()) == ()
            expected, got = reference.run(6, trace.plan), engine.run(6, trace.plan)
            assert expected.fired_ids.tobytes() == got.fired_ids.tobytes()
            assert reference.state().differences(engine.state()) == ()


def test_shards_that_remember_are_split_anew() -> None:
    """From two shards to three and to one in the middle of a run that adds twins."""
    trace = recording("features/mem2t_12")
    options, reference = trace_options(trace), ReferenceEngine.create(trace.network, trace_options(trace))
    engine = sharded("contiguous", 2)(trace.network, options)
    assert isinstance(engine, ShardedEngine)
    for shards in (3, 1, 2):
        assert engine.run(10, trace.plan).fired_ids.tobytes() == reference.run(10, trace.plan).fired_ids.tobytes()
        engine.reshard(make_partition(trace.network, shards, "round_robin"))
        assert reference.state().differences(engine.state()) == ()
    engine.close()


def test_verify_replays_on_shards(capsys: pytest.CaptureFixture[str]) -> None:
    """``burstproof verify --shards``; a backend without shards is refused."""
    trace = str(TRACES.parent / "features" / "mem1_11")
    assert main(["verify", trace, "--shards", "2"]) == ExitCode.PASS
    assert "agrees on cpu, 2 shards" in capsys.readouterr().out
    assert main(["verify", trace, "--backend", "reference", "--shards", "2"]) == ExitCode.USAGE
    assert "--shards" in capsys.readouterr().err


@pytest.mark.parametrize("split", INSTALLED, ids=split_name)
def test_every_split_learns_as_one(split: tuple[str, int]) -> None:
    """Delays, plasticity over shards, potentials as psp, stimulus, forced firings: all state after every burst."""
    problems = compare_mix(mix_named(EVERYTHING_LEARNS), sharded(*split))
    assert not problems, problems[0]


@pytest.mark.parametrize(
    "mix", thinned(MIXES, "a mix of many", keep=lambda place, _: place in (0, 5)), ids=lambda mix: mix.name
)
def test_every_mix_runs_from_any_state(mix: Mix) -> None:
    differs = compare_run(mix, sharded("round_robin", 3))
    assert not differs, differs


@pytest.mark.thorough("compiles a kernel of its own")
def test_specialised_kernels_of_reduced_precision_on_two_threads() -> None:
    """Kernels compiled for a network and for potentials in 8 bits, in shards that run side by side."""
    mix = replace(mix_named("integers"), precision=Precision.INT8)
    network = mixed_network(mix)
    options = replace(mixed_options(mix), cpu=CpuOptions(specialise=True))
    one = ReferenceEngine.create(network, options)
    many = sharded("round_robin", 2, threads=2)(network, options)
    try:
        plan = mixed_plan(mix, network)
        expected, got = one.run(mix.bursts, plan), many.run(mix.bursts, plan)
        assert expected.fired_ids.tobytes() == got.fired_ids.tobytes()
        assert one.state().differences(many.state()) == ()
    finally:
        many.close()


def test_a_state_moves_through_every_split_and_backend() -> None:
    """Five bursts each on one engine after another; the last ends where the reference ends that did them all."""
    mix = mix_named(EVERYTHING_LEARNS)
    network, options, plan = mixed_network(mix), mixed_options(mix), mixed_plan(mix, mixed_network(mix))
    makers = [sharded(*split) for split in INSTALLED[::3]] + [CpuEngine.create, ReferenceEngine.create]
    reference = ReferenceEngine.create(network, options)
    state = reference.state()
    for create in [*makers, sharded("round_robin", 4)]:
        engine = create(network, options)
        engine.restore(state)
        assert state.differences(engine.state()) == ()
        engine.run(5, plan)
        state = engine.state()
        engine.close()
        reference.run(5, plan)
        assert reference.state().differences(state) == ()


def test_shards_follow_the_activity_between_trains() -> None:
    """Split anew after every ten bursts by what fired; the result stays that of the reference."""
    mix = mix_named(EVERYTHING_LEARNS)
    network, options, plan = mixed_network(mix), mixed_options(mix), mixed_plan(mix, mixed_network(mix))
    reference = ReferenceEngine.create(network, options)
    engine = create_sharded(network, options, make_partition(network, 3, "dynamic"))
    assert isinstance(engine, ShardedEngine)
    owners, counter = [], ActivityCounter(network)
    for _ in range(3):
        recording = engine.run(10, plan)
        assert recording.fired_ids.tobytes() == reference.run(10, plan).fired_ids.tobytes()
        counter.add(recording)
        reshard(engine, counter.rates)
        owners.append(engine.partition.owner.tobytes())
        assert reference.state().differences(engine.state()) == ()
    assert len({*owners, make_partition(network, 3, "dynamic").owner.tobytes()}) > 1
    engine.close()


def test_an_empty_shard_takes_no_part() -> None:
    network = mixed_network(mix_named("fractions"))
    lopsided = partition_of(np.where(np.arange(network.neuron_count) % 2, 2, 0), 3, "by hand")
    options = mixed_options(mix_named("fractions"))
    problems = compare_mix(mix_named("fractions"), lambda net, opt: create_sharded(net, opt, lopsided))
    assert not problems, problems[0]
    assert options.fractional_stimulus


def test_a_run_records_what_is_asked_for() -> None:
    mix = mix_named("integers")
    network, options, plan = mixed_network(mix), mixed_options(mix), mixed_plan(mix, mixed_network(mix))
    reference, engine = ReferenceEngine.create(network, options), sharded("contiguous", 2)(network, options)
    steps: list[int] = []
    expected, got = reference.run(10, plan, Record.COUNTS), engine.run(10, plan, Record.COUNTS, steps.append)
    assert expected.fired_counts.tolist() == got.fired_counts.tolist()
    assert len(got.fired_ids) == 0
    assert sum(steps) == 10
    assert len(engine.run(5, plan, Record.NONE).bursts) == 0
    engine.close()


def restored(engine: Engine, weights: np.ndarray) -> None:
    engine.restore(replace(engine.state(), weights=weights))


def test_restored_weights_change_the_contributions_or_are_refused() -> None:
    """Static weights that another state brings are packed anew in every shard; too large ones are refused."""
    network = Network(NeuronTable.build(4, thresholds=0.5), SynapseTable.build([0, 1, 2], [1, 2, 3]))
    options = EngineOptions()
    reference, engine = ReferenceEngine.create(network, options), sharded("round_robin", 2)(network, options)
    force = Stimulus(forced=np.array([0], np.uint32))
    for one in (reference, engine):
        restored(one, np.array([0.25, 3, 1], np.float32) * np.float32(4))
        one.step(force)
        one.step()
    assert reference.state().differences(engine.state()) == ()
    with pytest.raises(NetworkError, match="too large for the fixed-point scale"):
        restored(engine, np.array([1, 1, 3e9], np.float32))
    engine.close()


@pytest.mark.parametrize("create", [CpuEngine.create, sharded("round_robin", 2)], ids=["one engine", "shards"])
def test_a_power_that_no_scale_holds_sets_the_sticky_flag(create: CreateEngine) -> None:
    """With mp-driven synapses k is 20 in 64 bit: 1e14 in units of 2^-20 lies above the clamp of 2^62 / 3."""
    areas = (Area(1, "power", mp_driven_psp=True), Area(7, "rest", mp_driven_psp=True))
    neurons = NeuronTable.build(3, cortical_areas=[1, 7, 7], thresholds=1e30)
    network = Network(neurons, SynapseTable.build([0], [1]), areas=areas, power_amount=1e14)
    reference, engine = ReferenceEngine.create(network, EngineOptions()), create(network, EngineOptions())
    for bursts in (0, 1):
        reference.run(bursts)
        engine.run(bursts)
        assert reference.state().differences(engine.state()) == ()
        assert engine.state().clamped == bool(bursts)
    engine.close()


def test_what_does_not_fit_is_refused() -> None:
    network = Network(NeuronTable.build(4), SynapseTable.build([0], [1]))
    with pytest.raises(InputError, match="a partition of another network"):
        create_sharded(network, EngineOptions(), partition_of(np.zeros(3), 1, "by hand"))
    with pytest.raises(InputError, match="no sharded engine on this backend"):
        create_sharded(network, EngineOptions(), make_partition(network, 2, "contiguous"), "wgpu")
