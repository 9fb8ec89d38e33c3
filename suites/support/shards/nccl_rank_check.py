"""Run under ``mpiexec``, a GPU for each rank: ranks joined by NCCL and by their hosts do what the CPU does.

``python -m suites.support.shards.nccl_rank_check EXPECTED.pickle OUTPUT.json``; rank 0 writes what it found and how
long bursts and exchanges take on either path. ``expected_run`` makes the first file.
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from burstproof.engine.cluster.mpi import MpiExchange
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.registry import create_sharded
from burstproof.engine.replay import replay
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import make_partition
from burstproof.engine.sharded.shard import Fired
from burstproof.engine.state import EngineState, Recording, Stimulus
from burstproof.network.model import Network
from burstproof.network.synthetic.build import initial_stimulus, synthesize
from burstproof.network.synthetic.spec import driven_spec
from suites.support.parity.large import slim
from suites.support.parity.mixed import compare_run
from suites.support.parity.recordings import recording
from suites.support.parity.simulator_check import recordings_differ
from suites.support.shards.cpu_shards import EVERYTHING_LEARNS, mix_named

SPEC = driven_spec(1_000_000, 10, 0.01)
CONDITIONS = {"neurons": SPEC.neurons, "synapses_per_neuron": SPEC.synapses_per_neuron, "firing_rate": 0.01}
PARTS = (50, 100)
"""Bursts that warm up, and bursts that are timed; all are compared."""

CHOSEN = ("traces/common", "traces/stdp_w3", "features/mem2t_12", "features/assoc_12", "features/stim_11")
"""Of features: memories with twins, associations, everything together."""

TIMEOUT_S = 60.0
_EXCHANGES = 100
_SETTLING = 10


@dataclass(frozen=True, eq=False)
class Expected:
    """What the CPU makes of ``SPEC``: a recording for each of ``PARTS``, and the state at the end."""

    recordings: tuple[Recording, ...]
    state: EngineState


def start() -> dict[int, Stimulus]:
    """The stimulus of burst 1."""
    return {1: Stimulus(forced=initial_stimulus(SPEC))}


def expected_run() -> Expected:
    """The run on the engine for the CPU."""
    engine = CpuEngine.create(synthesize(SPEC), EngineOptions())
    try:
        recordings = tuple(engine.run(bursts, start()) for bursts in PARTS)
        return Expected(recordings, slim(engine.state()))
    finally:
        engine.close()


class Way:
    """One way between the ranks: NCCL if ``nccl``, else what is left without it."""

    def __init__(self, exchange: Exchange, nccl: bool) -> None:
        self._exchange, self._links = exchange, Links(use_nccl=nccl)
        self.name = ""

    def create(self, network: Network, options: EngineOptions) -> ShardedEngine:
        """An engine on all ranks."""
        cut = make_partition(network, self._exchange.ranks, "round_robin")
        engine = create_sharded(network, options, cut, "cuda", self._exchange, links=self._links)
        assert isinstance(engine, ShardedEngine)
        self.name = engine.exchange_path
        return engine

    def recordings(self) -> dict[str, str | None]:
        """The first difference in each of the recorded traces and in a network in which everything is mixed."""
        found: dict[str, str | None] = {}
        for name in CHOSEN:
            result = replay(recording(name), self._engine)
            found[f"trace {name.split('/')[1]}"] = None if result.agrees else str(result.first)
        differs = compare_run(mix_named(EVERYTHING_LEARNS), self._engine)
        found["everything mixed"] = ", ".join(differs) or None
        return found

    def _engine(self, network: Network, options: EngineOptions) -> Engine:
        return self.create(network, options)

    def million(self, network: Network, expected: Expected) -> dict[str, Any]:
        """Differences from ``expected``, then ms per burst and us of single exchanges."""
        engine = self.create(network, EngineOptions())
        try:
            problems, began = [], 0.0
            for bursts, recording in zip(PARTS, expected.recordings, strict=True):
                self._exchange.total(0)
                began = time.perf_counter()
                got = engine.run(bursts, start())
                burst_ms = 1e3 * (time.perf_counter() - began) / bursts
                problems += recordings_differ(recording, got)
            problems += expected.state.differences(slim(engine.state()))
            last = expected.recordings[-1]
            fired = int(last.fired_counts[-1])
            times, again = self._exchanges(engine)
            if again.ids.tobytes() != last.fired_ids[-fired:].tobytes():
                problems.append("an exchange of the last burst's lists, done again")
            return {"problems": problems, "burst_ms": burst_ms, "exchange_us": times, "fired": fired}
        finally:
            engine.close()

    def _exchanges(self, engine: ShardedEngine) -> tuple[list[float], Fired]:
        """Times of the last burst's exchange done again and again: from lists on devices to lists on all and hosts."""
        from burstproof.engine.cluster.cuda_ranks import CudaRankShard, GatheredShard

        (shard,) = engine.shards
        assert isinstance(shard, CudaRankShard)

        def once() -> Fired:
            if isinstance(shard, GatheredShard):
                return shard.exchange()
            everything = self._exchange.gather(shard.published())
            shard.post(everything.ids, everything.potentials)
            return everything

        own = []
        for _ in range(_SETTLING + _EXCHANGES):
            self._exchange.total(0)
            began = time.perf_counter()
            everything = once()
            own.append(1e6 * (time.perf_counter() - began))
        slowest = np.max(self._exchange.share("the times of exchanges", own), axis=0)
        return [float(value) for value in slowest[_SETTLING:]], everything


def main(given: str, output: str) -> None:
    """Check both paths on all ranks."""
    expected = pickle.loads(FilePath(given).read_bytes())
    exchange = MpiExchange(TIMEOUT_S)
    network = synthesize(SPEC)
    found = []
    for nccl in (True, False):
        way = Way(exchange, nccl)
        row = {"cases": way.recordings(), **way.million(network, expected)}
        found.append({"path": way.name, **row})
    exchange.close()
    if exchange.rank == 0:
        FilePath(output).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
