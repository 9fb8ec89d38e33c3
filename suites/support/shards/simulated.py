"""Small networks and engines of shards for the CUDA simulator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from unittest import mock

from burstproof.engine.options import EngineOptions
from burstproof.engine.sharded.partition import Partition
from burstproof.network.model import Network
from suites.support.parity.mixed import MIXES, Mix

if TYPE_CHECKING:
    from burstproof.engine.cuda.engine import CudaEngine


def cut_mix(name: str, **changes: object) -> Mix:
    """A mixed network cut to what the simulator does in a second or two."""
    found = next(mix for mix in MIXES if mix.name == name)
    return replace(found, **{"neurons": 40, "synapses": 220, "bursts": 5, **changes})  # type: ignore[arg-type]


def sharded(
    network: Network,
    options: EngineOptions,
    shards: int,
    strategy: str,
    path: str = "peer",
    timeout_s: float = 20.0,
    partition: Partition | None = None,
) -> CudaEngine:
    """An engine whose shards, those of ``partition`` where it is given, are all on the simulated device."""
    from burstproof.engine.cuda.engine import CudaEngine
    from burstproof.engine.cuda.exchange.mail import Path
    from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

    choice = ShardingChoice((0,) * shards, strategy, path=Path(path), timeout_s=timeout_s)
    return CudaEngine.create(network, options, partition, choice)


def small_logs() -> mock._patch[object]:
    """Logs that hold one burst in which all fire, and a firing more: while engines are created."""
    from burstproof.engine.cuda.plan.buffers import BatchSizes

    return mock.patch(
        "burstproof.engine.cuda.plan.shard_pack.batch_sizes", lambda n, length: BatchSizes(length, n, n + 1)
    )
