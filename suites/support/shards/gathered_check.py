"""Ranks whose devices gather lists, on simulated devices and with MPI in the place of NCCL.

Under ``mpiexec``, with ``NUMBA_ENABLE_CUDASIM=1``: ``python -m suites.support.shards.gathered_check OUTPUT.json``;
rank 0 writes what it found. The kernels, mailboxes and gathered columns are those of the path over NCCL; only the
copies between ranks are not.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from burstproof.engine.cluster.rank_nccl import NcclRanks
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import make_partition
from burstproof.network.model import Network
from suites.support.parity.builder import CreateEngine
from suites.support.parity.feature_checks import compare_recorded
from suites.support.parity.mixed import Mix, compare_mix, compare_run, mixed_network, mixed_options, mixed_plan
from suites.support.parity.simulator_check import recordings_differ
from suites.support.shards.cpu_shards import EVERYTHING_LEARNS, mix_named

TIMEOUT_S = 60.0


class OverMpi(NcclRanks):
    """``NcclRanks`` between simulated devices; counts its ``gatherings``."""

    def __init__(self, exchange: Exchange) -> None:
        self.ranks = exchange.ranks
        self.gatherings = 0
        self._exchange = exchange

    def all_gather(self, columns: Sequence[Any], stream: Any) -> None:
        """Copy at once."""
        self.gatherings += 1
        for column in columns:
            array = column.source.array
            own = np.array(array if isinstance(array, np.ndarray) else array.copy_to_host())
            pieces = self._exchange.share("a column", own[column.start : column.start + column.count])
            column.target.array[: self.ranks * column.count] = np.concatenate(pieces)

    def watched(self) -> AbstractContextManager[None]:
        """MPI has a watch of its own."""
        return nullcontext()

    def wait(self, stream: Any) -> None:
        """Nothing is under way."""

    def close(self) -> None:
        """Nothing to give back."""


def _mix(name: str, **changes: Any) -> Mix:
    """A mixed network cut to what the simulator does in a second or two."""
    return replace(mix_named(name), **{"neurons": 30, "synapses": 160, "bursts": 4, **changes})


def check(exchange: Exchange) -> dict[str, list[str]]:
    """Problems by check."""
    from burstproof.engine.cluster.cuda_ranks import GatheredEngine

    gatherings: list[OverMpi] = []

    def create(network: Network, options: EngineOptions) -> Engine:
        gatherings.append(OverMpi(exchange))
        cut = make_partition(network, exchange.ranks, "round_robin")
        return GatheredEngine(network, options, cut, exchange, gatherings[-1])

    found = {"from another state": compare_run(_mix(EVERYTHING_LEARNS), create)}
    with mock.patch("burstproof.engine.cluster.rank_lists.LEAST_EAGER", 1):
        mix = _mix("fractions")
        found["longer lists than their reach"] = compare_mix(mix, create)
        if gatherings[-1].gatherings <= mix.bursts:
            found["longer lists than their reach"].append("one gathering a burst was enough")
    found["one rank builds anew"] = _check_rebuilding(create, exchange.rank)
    with ExitStack() as patches:
        for module in ("engine.cuda.plan.variant", "engine.reference", "engine.cuda.kernels.dynamics"):
            patches.enter_context(mock.patch(f"burstproof.{module}.BATCH_PATH_CANDIDATES", 12))
        found["batch path"] = compare_mix(_mix("integers", emulate_batch_path=True), create)
    for name in ("mem2t_12", "stim_11"):
        found[f"features of {name}"] = compare_recorded(f"features/{name}", create)
    found["choice"] = _check_choice(exchange)
    return found


def _check_rebuilding(create: CreateEngine, rank: int) -> list[str]:
    """A state for which rank 0 alone needs other kernels, after bursts: exchanges stay in step."""
    mix = _mix("fractions")
    network, plan = mixed_network(mix), mixed_plan(mix, mixed_network(mix))
    reference, engine = ReferenceEngine.create(network, mixed_options(mix)), create(network, mixed_options(mix))
    expected = reference.run(mix.bursts, plan)
    start = engine.state()
    engine.run(1, plan)
    with ExitStack() as patches:
        if rank == 0:
            patches.enter_context(
                mock.patch("burstproof.engine.cuda.host.many_devices.shard_for", lambda packed, local: replace(packed))
            )
        engine.restore(start)
    problems = recordings_differ(expected, engine.run(mix.bursts, plan))
    engine.close()
    return problems


def _check_choice(exchange: Exchange) -> list[str]:
    """What the simulator has instead of NCCL, and that the path over the hosts gives the same."""
    from burstproof.engine.registry import create_sharded
    from burstproof.engine.sharded.engine import Links, ShardedEngine

    mix = _mix("fractions")
    paths = []
    for links in (Links(), Links(use_nccl=False)):
        network, options = mixed_network(mix), mixed_options(mix)
        cut = make_partition(network, exchange.ranks, "contiguous")
        engine = create_sharded(network, options, cut, "cuda", exchange, links=links)
        assert isinstance(engine, ShardedEngine)
        paths.append(engine.exchange_path)
        engine.close()
    wanted = [
        "through host memory and MPI (the CUDA simulator has no NCCL)",
        "through host memory and MPI (cuda.multi_gpu.use_nccl is off)",
    ]
    return [] if paths == wanted else paths


def main(output: Path) -> None:
    """Check on all ranks."""
    warnings.simplefilter("ignore", RuntimeWarning)
    from burstproof.engine.cluster.mpi import MpiExchange
    from suites.support.simulated_blocks import quick_simulator

    exchange = MpiExchange(TIMEOUT_S)
    with quick_simulator():
        found = check(exchange)
    exchange.close()
    if exchange.rank == 0:
        output.write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
