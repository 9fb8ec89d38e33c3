"""Runs of a trusted engine in parts, which other engines are held against."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import EngineState, Recording, StimulusPlan
from burstproof.network.model import Network
from suites.support.parity.batch_checks import recordings_differ
from suites.support.parity.builder import CreateEngine
from suites.support.parity.large import slim


class Part(NamedTuple):
    """Bursts of a run, and whether the state after them holds the columns of the synapses, too."""

    bursts: int
    synapses: bool = False

    def state_of(self, engine: Engine) -> EngineState:
        """What is compared of the state after this part."""
        return engine.state() if self.synapses else slim(engine.state())


@dataclass(frozen=True, eq=False)
class TrustedRun:
    """A network, its input, and what the trusted engine makes of it: a recording and a state for each part."""

    name: str
    network: Network
    options: EngineOptions
    plan: StimulusPlan
    parts: tuple[Part, ...]
    recordings: tuple[Recording, ...]
    states: tuple[EngineState, ...]

    @property
    def bursts(self) -> int:
        """Bursts of all parts."""
        return sum(part.bursts for part in self.parts)

    @property
    def fired(self) -> int:
        """Firings of all parts."""
        return int(sum(recording.fired_counts.sum() for recording in self.recordings))


def trusted_run(
    name: str, network: Network, options: EngineOptions, plan: StimulusPlan, parts: Sequence[Part], create: CreateEngine
) -> TrustedRun:
    """What the engine that ``create`` makes does with ``network`` under ``plan``."""
    recordings, states = [], []
    with closing(create(network, options)) as engine:
        for part in parts:
            recordings.append(engine.run(part.bursts, plan))
            states.append(part.state_of(engine))
    return TrustedRun(name, network, options, plan, tuple(parts), tuple(recordings), tuple(states))


def differences(trusted: TrustedRun, engine: Engine) -> list[str]:
    """Where ``engine``, at its first burst, parts from the trusted run: every list, count, potential and state."""
    found = []
    for part, recording, state in zip(trusted.parts, trusted.recordings, trusted.states, strict=True):
        got = engine.run(part.bursts, trusted.plan)
        place = f"bursts {recording.bursts[0]} to {recording.bursts[-1]}"
        found += [f"{place}: {name}" for name in recordings_differ(recording, got)]
        found += [f"state after {place}: {name}" for name in state.differences(part.state_of(engine))]
    return found
