"""Rows of the scaling study: a driven network on some devices, checked against the implicit reference, then timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np

from burstproof.device.protocol import DeviceStream
from burstproof.engine.cuda.engine import CudaEngine
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.exchange.mail import Path
from burstproof.engine.cuda.exchange.words import WAITED
from burstproof.engine.cuda.host.launches import Call
from burstproof.engine.cuda.host.many_devices import ManyDevices
from burstproof.engine.cuda.host.shard import DeviceShard
from burstproof.engine.cuda.host.shard_group import DeviceGroup
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.options import CudaOptions, EngineOptions
from burstproof.engine.state import Record, Recording, Stimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.synthetic.build import initial_stimulus
from burstproof.network.synthetic.spec import SyntheticSpec, driven_spec
from suites.support.bench.implicit_reference import ImplicitReference
from suites.support.bench.rows import Row
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily
from suites.support.parity.simulator_check import recordings_differ

SYNAPSES = 100
RULE = Rule(warmup=1, min_samples=8, max_samples=20, max_seconds=1.0)
_SAMPLE_SECONDS = 0.06
"""A sample is one run; it begins and ends with the host, which takes some hundred microseconds."""
_ESTIMATES = 3
_SENDS = 10
_MUCH = 3_000_000
"""Firings in a burst from which on fewer bursts are checked."""


@dataclass(frozen=True)
class Network:
    """A driven network by size: ``neurons`` x 100 synapses, of which the fraction ``rate`` fires in every burst."""

    neurons: int
    rate: float = 0.01
    synapses: int = SYNAPSES

    def share(self, devices: int) -> Network:
        """What one of ``devices`` devices does: its part of the neurons, and as many rows with its part of each."""
        return Network(self.neurons // devices, self.rate * devices, self.synapses // devices)

    @property
    def row(self) -> Row:
        """The same as a row of stage 6, for its floor."""
        return Row(self.neurons, self.rate, self.checked, self.synapses)

    @property
    def spec(self) -> SyntheticSpec:
        """Its specification."""
        return driven_spec(self.neurons, self.synapses, self.rate)

    @property
    def options(self) -> EngineOptions:
        """Those of an engine that is told how much will fire, as a user tells it."""
        return EngineOptions(cuda=CudaOptions(firing_rate=self.rate))

    @property
    def checked(self) -> int:
        """Bursts that are compared before anything is timed."""
        return 2 if self.neurons * self.rate > _MUCH else 4

    @property
    def conditions(self) -> dict[str, object]:
        """Conditions of its measurements."""
        return {"neurons": self.neurons, "synapses_per_neuron": self.synapses, "firing_rate": self.rate}


@dataclass(frozen=True, eq=False)
class Timing:
    """What a network took on some devices.

    Attributes
    ----------
    problems : tuple of str
        What differs from the reference; nothing is timed then.
    burst : Timed or None
        ms per burst, resident on the devices.
    split_us : mapping of str to float
        Mean microseconds of a burst by part, of the slowest device in each; empty where a burst is one kernel.
    build_s : float
        From the specification to an engine that can run.
    memory_bytes : int
    """

    network: Network
    devices: int
    problems: tuple[str, ...]
    burst: Timed | None = None
    split_us: dict[str, float] = field(default_factory=dict)
    build_s: float = 0.0
    memory_bytes: int = 0

    @property
    def ms(self) -> float:
        """Milliseconds per burst."""
        assert self.burst is not None, self.problems
        return self.burst.samples.estimate


@lru_cache(maxsize=1)
def expected(network: Network, point: FixedPoint) -> tuple[Stimulus, Recording]:
    """The start of ``network``, and what the implicit reference makes of it; the last network's is kept."""
    spec = network.spec
    start = Stimulus(forced=initial_stimulus(spec))
    judge = ImplicitReference(spec, point)
    return start, judge.run(network.checked, {1: start})


def one_device(network: Network, watch: Callable[[], Watch] | None = None) -> Timing:
    """``network`` on the engine for one device, tiles and all."""
    began = time.perf_counter()
    engine = CudaEngine.from_spec(network.spec, network.options)
    built = time.perf_counter() - began
    try:
        return _timed(network, 1, engine, built, engine.memory_plan.total_bytes, watch)
    finally:
        engine.close()


def sharded(
    network: Network,
    devices: int,
    path: Path | None = None,
    watch: Callable[[], Watch] | None = None,
    *,
    merged: bool = True,
) -> Timing:
    """``network`` with a shard on each of the first ``devices`` devices; ``merged``: one kernel a burst, if it can."""
    began = time.perf_counter()
    choice = ShardingChoice(tuple(range(devices)), path=path, merged=merged)
    engine = CudaEngine.from_spec(network.spec, network.options, choice)
    built = time.perf_counter() - began
    try:
        return _timed(network, devices, engine, built, engine.memory_bytes, watch)
    finally:
        engine.close()


def _timed(
    network: Network,
    devices: int,
    engine: CudaEngine,
    built: float,
    memory: int,
    watch: Callable[[], Watch] | None,
) -> Timing:
    start, recording = expected(network, engine.fixed_point)
    problems = tuple(recordings_differ(recording, engine.run(network.checked, {1: start})))
    if problems:
        return Timing(network, devices, problems)
    engine.run(32, record=Record.NONE)
    bursts = 32
    for _ in range(_ESTIMATES):  # of few bursts, most is the host's beginning and end
        bursts = int(np.clip(_SAMPLE_SECONDS / _per_burst_s(engine, bursts), 32, 8192))
    timed = time_steadily(lambda: 1e3 * _per_burst_s(engine, bursts), RULE, watch)
    split = _split(engine, bursts, 1e3 * timed.samples.estimate) if isinstance(engine.devices, ManyDevices) else {}
    return Timing(network, devices, (), timed, split, built, memory)


def _per_burst_s(engine: CudaEngine, bursts: int) -> float:
    began = time.perf_counter()
    engine.run(bursts, record=Record.NONE)
    return (time.perf_counter() - began) / bursts


def _split(engine: CudaEngine, bursts: int, burst_us: float) -> dict[str, float]:
    """Where a burst's time goes.

    ``wait``: from when a shard could begin to send until the last list is there, measured inside the kernel: exchange
    and imbalance together. ``propagate``: the sending alone, repeated over lists that are there. ``dynamics``, which
    publishes: the rest. The sums mean nothing afterwards.
    """
    shards = [shard for group in engine.devices.groups for shard in group.shards]
    if shards[0].shard.shard.merged:
        return {}
    before = [_waited_ns(shard) for shard in shards]
    engine.run(bursts, record=Record.NONE)
    waits = [(_waited_ns(shard) - ns) / bursts / 1e3 for shard, ns in zip(shards, before, strict=True)]
    engine.run(1, record=Record.NONE)  # a longer batch may end with bursts that it does not do
    sends = []
    for group in engine.devices.groups:
        make_current(group.runtime)
        graph, stream = group.runtime.capture(partial(_repeat, _deliveries(group))), group.streams.burst
        marks = group.runtime.event(timing=True), group.runtime.event(timing=True)
        for _ in range(2):
            marks[0].record(stream)
            graph.launch(stream)
            marks[1].record(stream)
            marks[1].synchronize()
        sends.append(1e3 * marks[1].elapsed_ms(marks[0]) / _SENDS)
    propagate, wait = max(sends), float(np.mean(waits))
    return {"propagate": propagate, "wait": wait, "dynamics": burst_us - propagate - wait}


def _waited_ns(shard: DeviceShard) -> int:
    """Nanoseconds that a shard has waited for what others publish, since it was created."""
    make_current(shard.runtime)
    return int(shard.device.read("link")[WAITED])


def _deliveries(group: DeviceGroup) -> list[Call]:
    """What sends the lists of the last burst."""
    return [call for shard in group.shards for call in shard.calls[0].delivery]


def _repeat(calls: list[Call], stream: DeviceStream) -> None:
    for call in calls * _SENDS:
        call.queue(stream)
