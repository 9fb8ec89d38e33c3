"""A seeded network with its fired lists recorded, timed over the ranks that there are, or in one process.

Under ``mpiexec -n 4``: ``python -m suites.support.shards.rank_timing OUTPUT.json NEURONS``; rank 0 writes the file.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from burstproof.engine.cluster.mpi import MpiExchange
from burstproof.engine.cpu.engine import CpuEngine
from burstproof.engine.options import CpuOptions, EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.state import Recording, Stimulus
from burstproof.network.synthetic.build import driven_spec, initial_stimulus, synthesize
from burstproof.network.synthetic.spec import SyntheticSpec
from hardware.host import take_host
from suites.support.bench.timers import clock
from suites.support.shards.cpu_shards import sharded

STRATEGY = "round_robin"
_TIMEOUT_S = 120.0
_SYNAPSES, _RATE = 100, 0.01
_CHECKED, _SAMPLES, _BURSTS = 20, 9, 25


@dataclass(frozen=True)
class RecordedRun:
    """``digest`` of the first lists, and ms per burst of each sample, lists recorded."""

    digest: str
    samples: list[float]

    @property
    def ms(self) -> float:
        """The median."""
        return float(np.median(self.samples))


def in_one_process(neurons: int, threads: int) -> RecordedRun:
    """The network on the CPU engine."""
    spec = _spec(neurons)
    cores = min(threads, take_host().usable_cores)
    engine = CpuEngine.create(synthesize(spec), EngineOptions(cpu=CpuOptions(threads=cores)))
    return _timed(engine, spec)


def _spec(neurons: int) -> SyntheticSpec:
    return driven_spec(neurons, _SYNAPSES, _RATE)


def _timed(engine: Engine, spec: SyntheticSpec) -> RecordedRun:
    checked = engine.run(_CHECKED, {1: Stimulus(forced=initial_stimulus(spec))})
    samples = []
    for _ in range(_SAMPLES):
        began = clock()
        engine.run(_BURSTS)
        samples.append(1e3 * (clock() - began) / _BURSTS)
    return RecordedRun(_digest(checked), samples)


def _digest(recording: Recording) -> str:
    columns = recording.fired_counts, recording.fired_ids, recording.fired_potentials
    return sha256(b"".join(np.ascontiguousarray(column).tobytes() for column in columns)).hexdigest()


def main(output: Path, neurons: int) -> None:
    """The network on a shard per rank."""
    exchange = MpiExchange(_TIMEOUT_S)
    spec = _spec(neurons)
    run = _timed(sharded(STRATEGY, exchange.ranks, exchange)(synthesize(spec), EngineOptions()), spec)
    if exchange.rank == 0:
        output.write_text(json.dumps({"digest": run.digest, "samples": run.samples}), "utf-8")
    exchange.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
