"""How a network is split over several engines: from a wish to the factory of the engine, and anew by activity."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from burstproof.config import Configuration
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import CreateEngine, Engine
from burstproof.engine.registry import AUTO, create_sharded, with_shards
from burstproof.engine.select import Choice
from burstproof.engine.sharded.engine import Links
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition, make_partition
from burstproof.errors import EnvironmentInvalidError, InputError
from burstproof.network.model import Network

_CURE_OF_GPUS = "Leave out --multi-gpu, or set cuda.multi_gpu.enabled to false; --shards N gives shards of the CPU"


@dataclass(frozen=True)
class Split:
    """A split of a network.

    Attributes
    ----------
    backend : str
        What has to run the shards.
    shards : int
    strategy : str
    exchange : Exchange
    threads : int
        Threads of this process for its CPU shards.
    links : Links
    devices : tuple of int, optional
        CUDA devices of the shards; by default those that are here, in turn.
    """

    backend: str
    shards: int
    strategy: str
    exchange: Exchange
    threads: int = 1
    links: Links = field(default_factory=Links)
    devices: tuple[int, ...] | None = None

    def factory(self, backend: str) -> CreateEngine:
        """What creates the engine over the shards on ``backend``."""
        ranks = self.exchange if self.exchange.ranks > 1 else None

        def create(network: Network, options: EngineOptions) -> Engine:
            if self.devices is not None:
                from burstproof.engine.cuda.engine import CudaEngine
                from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice

                return CudaEngine.create(network, options, choice=ShardingChoice(self.devices, self.strategy))
            partition = make_partition(network, self.shards, self.strategy)
            return create_sharded(network, options, partition, backend, ranks, self.threads, self.links)

        return create

    def backend_first(self, config: Configuration) -> Configuration:
        """``config`` with the backend of the shards."""
        return replace(config, compute=replace(config.compute, backend=self.backend))

    def explained(self, choice: Choice, config: Configuration) -> Choice:
        """``choice`` with the true reason where the shards chose the backend that ``config`` leaves open."""
        if choice.fallback or config.compute.backend != AUTO:
            return choice
        many = self.backend == "cuda"
        reason = "several GPUs are asked for" if many else "shards run there unless --backend cuda is given"
        return replace(choice, reason=choice.reason.replace("asked for", reason, 1))


def split_of(
    config: Configuration, shards: int | None, threads: int, exchange: Exchange, devices_here: int
) -> Split | None:
    """The split that the command's options and the configuration ask for; ``None`` for one engine as a whole.

    Raises
    ------
    InputError
        Shards that the ranks cannot share evenly, on a backend that has none, or asked for twice.
    EnvironmentInvalidError
        More GPUs than there are.
    """
    multi = config.cuda.multi_gpu
    if shards is None and not multi.enabled and exchange.ranks == 1:
        return None
    if shards is not None and multi.enabled:
        raise InputError(
            "the number of shards is given twice",
            where="--shards",
            got=shards,
            cure="Leave out --shards (a shard per GPU), or --multi-gpu and cuda.multi_gpu.enabled",
        )
    asked = config.compute.backend
    backend = ("cuda" if multi.enabled else "cpu") if asked == AUTO else asked
    able = ("cuda",) if multi.enabled else with_shards()
    if backend not in able:
        raise InputError(
            "this backend has no shards of that kind",
            where=config.named("compute.backend"),
            got=backend,
            allowed=", ".join(able),
            cure=_CURE_OF_GPUS if multi.enabled else None,
        )
    alone = multi.enabled and exchange.ranks == 1
    count = _gpus(config, devices_here) if alone else shards or exchange.ranks
    if count % exchange.ranks:
        allowed = f"a multiple of {exchange.ranks}"
        raise InputError("shards that the ranks cannot share evenly", where="--shards", got=count, allowed=allowed)
    links = Links(multi.enable_p2p, multi.use_nccl)
    return Split(backend, count, multi.sharding_strategy, exchange, min(threads or 1, count // exchange.ranks), links)


def split_over(shards: int | None, devices: tuple[int, ...] | None, strategy: str, threads: int) -> Split:
    """The split over ``shards`` parts, or over ``devices``, in this process; the caller has the backend chosen."""
    return Split(AUTO, shards or len(devices or ()), strategy, Exchange(), threads or 1, devices=devices)


def _gpus(config: Configuration, here: int) -> int:
    """GPUs to take: as many as asked for, or by default all there are up to the default's number."""
    asked = config.cuda.multi_gpu.num_gpus
    origin = config.origins.get("cuda.multi_gpu.num_gpus", "default")
    if origin == "default":
        return max(1, min(asked, here))
    if asked > here > 0:
        where = f"cuda.multi_gpu.num_gpus ({origin})"
        raise EnvironmentInvalidError("more GPUs than the driver shows", where=where, got=asked, allowed=f"1...{here}")
    return asked


@runtime_checkable
class Resharding(Protocol):
    """An engine that can go on with another partition."""

    network: Network
    partition: Partition

    def reshard(self, partition: Partition) -> None:
        """Go on with ``partition`` from the state at hand."""


def reshard(engine: Engine, rates: npt.NDArray[np.float64]) -> None:
    """Split the network anew by ``rates``, the firings of each neuron per burst, (N,) float64."""
    if isinstance(engine, Resharding):
        old = engine.partition
        engine.reshard(make_partition(engine.network, old.shards, old.strategy, rates))
