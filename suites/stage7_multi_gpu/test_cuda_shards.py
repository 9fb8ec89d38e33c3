"""Shards on several GPUs against one CPU: recorded traces, mixed networks, a million neurons over 1000 bursts."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path as FilePath

import numpy as np
import pytest

from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cuda.exchange.devices import device_count
from burstproof.engine.cuda.exchange.mail import Path
from burstproof.engine.cuda.kernels.control import HALTED
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.replay import replay
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.state import EngineState, Record, Recording, Stimulus, StimulusPlan
from burstproof.engine.trace import read_trace
from burstproof.errors import ShardLostError
from burstproof.network.model import Network
from burstproof.network.synthetic.build import initial_stimulus, synthesize
from burstproof.network.synthetic.spec import SyntheticSpec, driven_spec
from stages.measuring import Measure
from suites.support.parity.builder import Case, run_case
from suites.support.parity.cases import FEATURE_CASES
from suites.support.parity.large import slim
from suites.support.parity.mixed import MIXES, compare_mix
from suites.support.parity.recordings import FEATURE_NAMES, recording
from suites.support.parity.simulator_check import recordings_differ
from suites.support.plans import every, thinned
from suites.support.shards.one_kernel_checks import Course
from suites.support.shards.queue_checks import other_than, owners_of_a_warp, queues_pay

pytestmark = [pytest.mark.requirement("MG-1", "MG-2", "MG-4", "BE-4", "ST-7"), pytest.mark.gate("multi_gpu")]

TRACES = FilePath(__file__).parents[1] / "data" / "golden" / "traces"
BURSTS = 1000
NEURONS = 1_000_000


@dataclass(frozen=True)
class Way:
    """How a network is sharded: devices, strategy and path; ``generated`` if the devices make their synapses."""

    devices: int
    strategy: str
    path: Path
    generated: bool = False

    @property
    def conditions(self) -> dict[str, object]:
        """Conditions of its measurements."""
        return {"devices": self.devices, "strategy": self.strategy, "path": self.path.value}

    @property
    def choice(self) -> ShardingChoice:
        """The engine's choice, where the machine can take it."""
        if device_count() < self.devices:
            pytest.skip(f"needs {self.devices} GPUs, {device_count()} are here")
        if self.path is Path.NCCL:
            _needs_nccl(self.devices)
        return ShardingChoice(tuple(range(self.devices)), self.strategy, path=self.path)

    def create(self, network: Network, options: EngineOptions) -> CudaEngine:
        """An engine over ``network``."""
        return CudaEngine.create(network, options, None, self.choice)


def _needs_nccl(devices: int) -> None:
    from burstproof.device.open import open_device
    from burstproof.engine.cuda.exchange.devices import nccl_obstacle

    obstacle = nccl_obstacle([open_device(ordinal) for ordinal in range(devices)])
    if obstacle is not None:
        pytest.skip(obstacle)


SMALL_WAYS = (
    Way(2, "contiguous", Path.PEER),
    Way(4, "round_robin", Path.PEER),
    Way(4, "dynamic", Path.STAGED),
    Way(2, "by_cortical_area", Path.NCCL),
)
FEATURED_WAY = Way(2, "round_robin", Path.PEER)
"""Neighbours are always apart."""
OWNED_WAYS = (
    Way(2, "contiguous", Path.PEER),
    Way(2, "round_robin", Path.STAGED),
    Way(4, "round_robin", Path.PEER),
    Way(4, "dynamic", Path.PEER),
)
LARGE_WAYS = (
    Way(2, "contiguous", Path.PEER, generated=True),
    Way(2, "round_robin", Path.STAGED, generated=True),
    Way(2, "contiguous", Path.NCCL, generated=True),
    Way(4, "contiguous", Path.PEER, generated=True),
    Way(4, "round_robin", Path.PEER, generated=True),
    Way(4, "contiguous", Path.STAGED, generated=True),
    Way(4, "round_robin", Path.NCCL, generated=True),
    Way(4, "dynamic", Path.PEER),
    Way(4, "by_cortical_area", Path.PEER),
)


SHARDED_MIXES = (
    "fractions, delays to 7",
    "integers, all excitatory",
    "plastic, windows 3 and 2, delays to 4, mp-driven",
    "beta batch path",
    "clamped contributions",
    "neither draws nor limits",
)
"""One for each way in which shards send: in one kernel, with packed sums, after collecting, counted ahead, clamped; and
one of neurons whose records no count decides to read."""


def _name(way: Way) -> str:
    return f"{way.devices} {way.strategy} {way.path.value}"


@pytest.mark.requirement("MG-3")
@pytest.mark.measures("parity.bursts_agreeing", devices=..., strategy=..., path=..., trace=...)
@pytest.mark.parametrize("way", SMALL_WAYS, ids=_name)
def test_recordings_agree(way: Way, measure: Measure) -> None:
    """Every recorded trace of the real engine, burst by burst."""
    found = []
    for file in sorted(TRACES.glob("*.npz")):
        result = replay(read_trace(file.with_suffix("")), way.create)
        conditions = {**way.conditions, "trace": file.stem, "profile": result.profile}
        measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
        if not result.agrees:
            found.append(f"{file.stem}: {result.first}")
    assert found == []


@pytest.mark.measures("parity.bursts_agreeing", devices=..., strategy=..., path=..., trace=...)
@pytest.mark.parametrize("name", thinned(FEATURE_NAMES, "a recording of features of many", keep=every(4)))
def test_recording_of_features_agrees(name: str, measure: Measure) -> None:
    """Every recorded field of the released engine's features, over two devices."""
    way, trace = FEATURED_WAY, recording(name)
    result = replay(trace, way.create)
    conditions = {**way.conditions, "trace": name, "profile": result.profile}
    measure("parity.bursts_agreeing", result.state_agree / result.bursts, "1", conditions=conditions)
    assert result.agrees, f"{result.state_agree} of {result.bursts} bursts agree; first: {result.first}"


@pytest.mark.parametrize(
    "case", thinned(FEATURE_CASES, "a case worked out by hand of many", keep=every(6)), ids=lambda case: case.name
)
def test_feature_case(case: Case) -> None:
    """A network written down synapse by synapse does over two devices what FEATURES.md says."""
    way = replace(FEATURED_WAY, devices=min(FEATURED_WAY.devices, case.network.neuron_count))
    assert run_case(case, way.create) == []


@pytest.mark.parametrize("way", SMALL_WAYS[:1], ids=_name)
def test_mixed_networks_agree(way: Way) -> None:
    """Networks in which everything is mixed, state and recording after every part."""
    mixes = [mix for mix in MIXES if mix.name in SHARDED_MIXES]
    assert len(mixes) == len(SHARDED_MIXES)
    assert {mix.name: problems for mix in mixes if (problems := compare_mix(mix, way.create))} == {}


@pytest.mark.parametrize("way", OWNED_WAYS, ids=_name)
@pytest.mark.parametrize("small", [False, True], ids=["", "small"])
@pytest.mark.parametrize(
    ("name", "neurons"),
    [("integers, all excitatory", 9000), ("integers", 9000), ("fractions, delays to 7", 3000)],
)
def test_owners_agree(name: str, neurons: int, small: bool, way: Way) -> None:
    """Queues per owner, as networks of millions of neurons have them: trains of all kinds, and a state from before.

    ``small``: owners of a warp's neurons. Fractions among more than 3000 need sums that entries of a queue do not hold.
    """
    mix = next(mix for mix in MIXES if mix.name == name)
    course = Course(replace(mix, neurons=neurons, synapses=10 * neurons, bursts=40))
    with queues_pay(), owners_of_a_warp() if small else nullcontext():
        engine = way.create(course.network, course.options)
    problems = other_than(engine) or course.through(engine)
    engine.close()
    assert problems == []


@dataclass(frozen=True, eq=False)
class Million:
    """A driven million, and what the CPU makes of 1000 bursts."""

    spec: SyntheticSpec
    network: Network
    plan: StimulusPlan
    recording: Recording
    state: EngineState


@pytest.fixture(scope="module")
def million() -> Million:
    """The million; four areas, so that there is something to shard by."""
    spec = replace(driven_spec(NEURONS, 100, 0.01), connectivity="block", blocks=8, inside_fraction=0.5)
    network, plan = synthesize(spec), {1: Stimulus(forced=initial_stimulus(spec))}
    engine = CpuEngine.create(network, EngineOptions())
    recording = engine.run(BURSTS, plan)
    state = engine.state()
    engine.close()
    return Million(spec, network, plan, recording, state)


@pytest.mark.requirement("MG-3", "BE-3")
@pytest.mark.measures("parity.disagreements", devices=..., strategy=..., path=...)
@pytest.mark.parametrize("way", LARGE_WAYS, ids=_name)
def test_million_agrees(way: Way, million: Million, measure: Measure) -> None:
    """1 M neurons x 100 over 1000 bursts: every firing with its potential, and the state at the end."""
    if way.generated:
        engine = CudaEngine.from_spec(million.spec, EngineOptions(), way.choice)
    else:
        engine = way.create(million.network, EngineOptions())
    try:
        problems = recordings_differ(million.recording, engine.run(BURSTS, million.plan))
        problems += slim(million.state).differences(slim(engine.state()))
    finally:
        engine.close()
    conditions = {**way.conditions, "neurons": NEURONS, "bursts": BURSTS}
    measure("parity.disagreements", len(problems), "1", conditions=conditions)
    assert problems == []


@pytest.mark.parametrize("merged", [True, False], ids=["one kernel", "two kernels"])
@pytest.mark.parametrize("alone", [0, 1], ids=["an empty shard", "a shard of one neuron"])
def test_shards_of_hardly_any_neurons_agree(alone: int, merged: bool) -> None:
    """All neurons on one device, or all but one; lists of all bursts, of the last, and what the state is after them."""
    spec = driven_spec(20_000, 50, 0.02)
    owner = np.zeros(spec.neurons, np.uint16)
    owner[4711 : 4711 + alone] = 1
    choice = ShardingChoice((0, 1), path=Path.PEER, merged=merged)
    _agrees(spec, CudaOptions(batch_length=20), choice, Partition(owner, 2, "by hand"))


@pytest.mark.parametrize("merged", [True, False], ids=["one kernel", "two kernels"])
def test_long_trains_without_graphs_agree(merged: bool) -> None:
    """More kernels in a train than a device takes ahead of time, while it waits for another device."""
    choice = ShardingChoice((0, 1), path=Path.PEER, merged=merged, timeout_s=5.0)
    _agrees(driven_spec(2000, 20, 0.05), CudaOptions(batch_length=4096, graphs=False), choice, None, 3000)


def _agrees(
    spec: SyntheticSpec, cuda: CudaOptions, choice: ShardingChoice, partition: Partition | None, bursts: int = 50
) -> None:
    """Hold an engine of ``choice`` against the CPU's: twice so many bursts, with and without lists."""
    network, plan = synthesize(spec), {1: Stimulus(forced=initial_stimulus(spec))}
    engine = CudaEngine.create(network, EngineOptions(cuda=cuda), partition, choice)
    judge = CpuEngine.create(network, EngineOptions())
    try:
        for record in (Record.FIRED, Record.NONE):
            expected = judge.run(bursts, plan, record)
            assert expected.fired_counts.all()
            assert recordings_differ(expected, engine.run(bursts, plan, record)) == []
            assert judge.state().differences(engine.state()) == ()
    finally:
        engine.close()
        judge.close()


def test_silent_device_is_named() -> None:
    """A device that publishes nothing ends the run with an error that names it; all devices can be used afterwards."""
    spec = driven_spec(50_000, 100, 0.02)
    plan = {1: Stimulus(forced=initial_stimulus(spec))}
    choice = ShardingChoice((0, 1), timeout_s=0.5)
    engine = CudaEngine.from_spec(spec, None, choice)
    expected = engine.run(10, plan)
    engine.devices.shards[1].device.write_control(HALTED, 1)
    with pytest.raises(ShardLostError, match="shard 1 published nothing"):
        engine.run(10)
    engine.close()
    again = CudaEngine.from_spec(spec, None, choice)
    assert recordings_differ(expected, again.run(10, plan)) == []
    again.close()
