"""Case after case on a backend and on the reference; what differs is shrunk and written as a trace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from burstproof.engine.features.support import NOTHING, Section
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import CreateEngine, Engine, Progress
from burstproof.engine.registry import create_sharded
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.trace import write_trace
from burstproof.errors import EnvironmentInvalidError
from burstproof.fuzz.compare import Difference, compare
from burstproof.fuzz.draw import draw_case
from burstproof.fuzz.shrink import shrink
from burstproof.network.model import Network


@dataclass(frozen=True)
class Finding:
    """A case in which the backend differs from the reference; ``difference`` is that of the shrunk case."""

    seed: int
    case: str
    first: Difference
    shrunk: str
    difference: Difference
    trace: str
    replays: bool

    def in_words(self) -> str:
        """The finding in four lines."""
        seen = "verify shows it too" if self.replays else "verify does not show it; replay it with fuzz"
        return (
            f"seed {self.seed} DIFFERS: {self.first}\n"
            f"  in {self.case}\n  shrunk to {self.shrunk}: {self.difference}\n  written to {self.trace} ({seen})"
        )


@dataclass
class Tally:
    """Cases done, bursts in them, and cases that this machine or backend cannot run."""

    cases: int = 0
    bursts: int = 0
    refused: int = 0
    refusal: EnvironmentInvalidError | None = None


def search(
    seeds: range,
    families: int,
    create: CreateEngine,
    tally: Tally,
    folder: Path,
    deadline: float,
    progress: Progress,
    modelled: frozenset[Section] = NOTHING,
) -> Iterator[Finding]:
    """Try seed after seed until ``time.monotonic`` reaches ``deadline``, counting in ``tally``; yields what differs.

    The cases may have the features that are ``modelled``.
    """
    for seed in seeds:
        if time.monotonic() > deadline:
            return
        case = draw_case(seed, families, modelled)
        tally.cases += 1
        try:
            found = compare(case, create)
        except EnvironmentInvalidError as error:
            tally.refused, tally.refusal = tally.refused + 1, error
        else:
            tally.bursts += case.bursts
            if found is not None:
                shrunk = shrink(case, create, f"fuzz_{seed}")
                path = folder / f"fuzz_{seed}"
                write_trace(path, shrunk.trace)
                yield Finding(seed, str(case), found, str(shrunk.case), shrunk.difference, str(path), shrunk.replays)
        progress(1)


def scattered(backend: str, shards: int) -> CreateEngine:
    """Engines over ``shards`` shards, at most one a neuron, by turns, so that neighbours are always apart."""

    def create(network: Network, options: EngineOptions) -> Engine:
        partition = make_partition(network, max(1, min(shards, network.neuron_count)), "round_robin")
        return create_sharded(network, options, partition, backend, threads=max(1, options.cpu.threads))

    return create
