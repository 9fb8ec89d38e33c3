"""Creates the sharded engine on the backend that is asked for."""

from __future__ import annotations

from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.errors import InputError
from burstproof.network.model import Network


def create_sharded(
    network: Network,
    options: EngineOptions,
    partition: Partition,
    backend: str = "cpu",
    exchange: Exchange | None = None,
    threads: int = 1,
    links: Links | None = None,
) -> Engine:
    """An engine over ``network`` on the shards of ``partition``.

    Parameters
    ----------
    backend : str
        What runs a shard: ``cpu``, or ``cuda``, which takes one device per shard, or over ranks one device per rank.
    exchange : Exchange, optional
        Joins several processes; by default all shards are in this one.
    threads : int
        Threads that step the CPU shards of this process.
    links : Links, optional
        What devices may use; by default all there is.

    Raises
    ------
    InputError
        Another backend, or a partition that does not fit.
    NetworkError
        A network that the profile refuses, or a contribution that is not finite.
    """
    if backend == "cpu":
        from burstproof.engine.sharded.cpu_shard import CpuShard

        return ShardedEngine(network, options, partition, CpuShard, exchange, threads)
    if backend == "cuda" and exchange is not None:
        from burstproof.engine.cluster.cuda_ranks import create_over_ranks

        over_ranks: Engine = create_over_ranks(network, options, partition, exchange, links or Links())
        return over_ranks
    if backend == "cuda":
        from burstproof.engine.cuda.engine import create_over_devices

        engine: Engine = create_over_devices(network, options, partition, links or Links())
        return engine
    raise InputError(
        "no sharded engine on this backend",
        where="backend",
        got=backend,
        allowed="cpu, cuda",
    )
