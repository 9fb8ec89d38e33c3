"""Run under ``mpiexec -n 4``: the recorded traces and mixed networks on 1, 2, 3 and 4 of its ranks, a verdict for each.

``python -m suites.support.shards.rank_check OUTPUT.json GROUP``, a group of ``GROUPS``; rank 0 writes the file. The
run ends with an error if any rank fails, and with one that names the rank if one does not come.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burstproof.engine.cluster.mpi import MpiExchange, load_mpi
from burstproof.engine.replay import replay
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.shard import Fired
from burstproof.engine.trace import read_trace
from suites.support.parity.mixed import compare_run
from suites.support.parity.recordings import recording
from suites.support.shards.cpu_shards import (
    EVERYTHING_LEARNS,
    TRACES,
    mix_named,
    sharded,
)

MIXED = ("beta, mp-driven, plastic, windows 1 and 3", "batch path")
STRATEGIES = ("contiguous", "round_robin", "by_cortical_area", "dynamic")
CHOSEN = ("common", "delays_frac", "stdp_w3")
"""Short traces; all of them run on shards in one process, in ``test_cpu_shards``."""

REMEMBERING = ("mem2t_12", "assoc_12", "stim_11")
"""Recordings of features: memories with twins and drivers, associations, everything together."""

PLAIN = "recordings and a mix"
GROUPS = {
    PLAIN: (CHOSEN, (EVERYTHING_LEARNS,)),
    "mixes": ((), MIXED),
    "recordings of features": (tuple(f"features/{name}" for name in REMEMBERING), ()),
}
"""Names of recordings and of mixes."""

TIMEOUT_S = 60.0


def check(exchange: Exchange, traces: Sequence[str], mixes: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Verdicts of all cases on the ranks of ``exchange``, by name."""
    found: dict[str, dict[str, Any]] = {}
    for place, name in enumerate(traces):
        strategy = STRATEGIES[(place + exchange.ranks) % len(STRATEGIES)]
        trace = read_trace(TRACES / name) if name in CHOSEN else recording(name)
        result = replay(trace, sharded(strategy, exchange.ranks, exchange))
        found[f"trace {name.removeprefix('features/')}"] = {
            "strategy": strategy,
            "agreeing": result.state_agree / result.bursts,
            "problem": None if result.agrees else str(result.first),
        }
    for place, name in enumerate(mixes):
        strategy = STRATEGIES[(place + exchange.ranks) % len(STRATEGIES)]
        differs = compare_run(mix_named(name), sharded(strategy, 2 * exchange.ranks, exchange))
        problem = ", ".join(differs) or None
        found[f"mix {name}"] = {"strategy": strategy, "agreeing": float(not differs), "problem": problem}
    return found


def check_lists(exchange: Exchange) -> None:
    """Lists that grow and shrink from burst to burst, longer in one rank than in another, come whole; else raise."""
    for longest in (0, 3, 200, 5000, 260, 257, 0, 1, 90_000, 2, 2000):
        lists = [np.arange(longest // (1 + rank), dtype=np.uint32) * 4 + rank for rank in range(exchange.ranks)]
        own = lists[exchange.rank].astype(np.uint32)
        found = exchange.gather(Fired(own, own.astype(np.float32) / 3, longest))
        wanted = np.sort(np.concatenate(lists))
        if found.ids.tolist() != wanted.tolist() or found.candidates != longest * exchange.ranks:
            raise AssertionError(f"rank {exchange.rank} of {exchange.ranks}: lists of up to {longest}")
        if (found.potentials != found.ids.astype(np.float32) / 3).any():
            raise AssertionError(f"rank {exchange.rank} of {exchange.ranks}: potentials of up to {longest}")


def _wait_for_all(world: Any) -> None:
    """A barrier in which the ranks that have nothing to do leave the processors to the others."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.01)


def main(output: Path, group: str) -> None:
    """Check a group on every number of ranks up to all there are."""
    mpi = load_mpi()
    world = mpi.COMM_WORLD
    found = {}
    for ranks in range(1, world.Get_size() + 1):
        some = world.Split(0 if world.Get_rank() < ranks else mpi.UNDEFINED)
        if some != mpi.COMM_NULL:
            exchange = MpiExchange(TIMEOUT_S, world=some)
            check_lists(exchange)
            found[str(ranks)] = check(exchange, *GROUPS[group])
            exchange.close()
        _wait_for_all(world)
    if world.Get_rank() == 0:
        output.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
