"""Networks of every kind over many bursts: what a trusted engine makes of them, for engines on 1, 2 and 4 devices."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from burstproof.config import MultiGpu
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.state import EngineState, Recording
from burstproof.network.model import Network
from suites.support.bench.rows import PLASTIC, Row
from suites.support.parity.builder import CreateEngine
from suites.support.parity.large import slim
from suites.support.parity.train_checks import recordings_differ

OPTIONS = EngineOptions(cpu=CpuOptions(specialise=False))
"""The CPU engine does not compile for a network that it runs once."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A row, its network, and what the trusted engine makes of it: a recording and a state for each part of the run."""

    row: Row
    network: Network
    recordings: tuple[Recording, ...]
    states: tuple[EngineState, ...]

    @property
    def bursts(self) -> int:
        """Bursts of all parts."""
        return sum(len(recording.bursts) for recording in self.recordings)

    @property
    def fired(self) -> int:
        """Firings of all parts."""
        return int(sum(recording.fired_counts.sum() for recording in self.recordings))


def judged(row: Row, parts: Sequence[int], create: CreateEngine) -> Judged:
    """The network of ``row``, and what the engine that ``create`` makes does in ``parts`` bursts each."""
    network, recordings, states = row.network(), [], []
    with closing(create(network, OPTIONS)) as engine:
        for bursts in parts:
            recordings.append(engine.run(bursts, row.start))
            states.append(_compared(row, engine.state()))
    return Judged(row, network, tuple(recordings), tuple(states))


def differences(trusted: Judged, engine: Engine) -> list[str]:
    """Where ``engine``, at its first burst, parts from the trusted run: every list, count, potential and state."""
    found = []
    for recording, state in zip(trusted.recordings, trusted.states, strict=True):
        bursts = recording.bursts
        got = engine.run(len(bursts), trusted.row.start)
        place = f"bursts {bursts[0]} to {bursts[-1]}"
        found += [f"{place}: {name}" for name in recordings_differ(recording, got)]
        found += [f"state after {place}: {name}" for name in state.differences(_compared(trusted.row, engine.state()))]
    return found


def on_devices(trusted: Judged, devices: int) -> Engine:
    """The CUDA engine on the first ``devices`` devices, split as a configuration does that says nothing about it.

    The devices make the synapses themselves, where a formula gives them (``row.generated``).
    """
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

    row, strategy = trusted.row, MultiGpu().sharding_strategy
    choice = ShardingChoice(tuple(range(devices)), strategy) if devices > 1 else None
    if row.generated:
        return CudaEngine.from_spec(row.spec, EngineOptions(), choice)
    partition = None if choice is None else make_partition(trusted.network, devices, strategy)
    return CudaEngine.create(trusted.network, EngineOptions(), partition, choice)


def _compared(row: Row, state: EngineState) -> EngineState:
    """The state without the columns of the synapses, but where they learn."""
    return state if row.kind == PLASTIC else slim(state)
