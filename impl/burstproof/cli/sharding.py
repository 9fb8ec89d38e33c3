"""From options and configuration to the shards of a run, and what the report says of them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from burstproof.config import Configuration
from burstproof.engine.machine import Machine
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.select import Choice, CreateEngine
from burstproof.engine.sharded.create import create_sharded
from burstproof.engine.sharded.engine import Links
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition, make_partition
from burstproof.engine.sharded.quality import PartitionQuality, partition_quality
from burstproof.errors import EnvironmentInvalidError, InputError
from burstproof.network.model import Network


@dataclass(frozen=True)
class Sharding:
    """How a network is split in a run.

    Attributes
    ----------
    backend : str
        What has to run the shards, ``cpu`` or ``cuda``.
    shards : int
    strategy : str
    exchange : Exchange
    threads : int
        Threads of this process for its CPU shards.
    links : Links
    """

    backend: str
    shards: int
    strategy: str
    exchange: Exchange
    threads: int
    links: Links

    def factory(self, backend: str) -> CreateEngine:
        """What creates the sharded engine on ``backend``."""
        ranks = self.exchange if self.exchange.ranks > 1 else None

        def create(network: Network, options: EngineOptions) -> Engine:
            partition = make_partition(network, self.shards, self.strategy)
            return create_sharded(network, options, partition, backend, ranks, self.threads, self.links)

        return create


def sharding_of(
    options: argparse.Namespace, config: Configuration, exchange: Exchange, machine: Machine
) -> Sharding | None:
    """The split that the options and the configuration ask for; ``None`` for one engine as a whole.

    Raises
    ------
    InputError
        Shards that the ranks cannot share evenly, on a backend that has none, or asked for twice.
    EnvironmentInvalidError
        More GPUs than there are.
    """
    multi = config.cuda.multi_gpu
    if options.shards is None and not multi.enabled and exchange.ranks == 1:
        return None
    if options.shards is not None and multi.enabled:
        raise InputError(
            "the number of shards is given twice",
            where="--shards",
            got=options.shards,
            cure="Leave out --shards (a shard per GPU), or --multi-gpu and cuda.multi_gpu.enabled",
        )
    asked = config.compute.backend
    backend = ("cuda" if multi.enabled else "cpu") if asked == "auto" else asked
    if backend not in ("cpu", "cuda") or (multi.enabled and backend == "cpu"):
        allowed = "cuda" if multi.enabled else "cpu, cuda"
        raise InputError("this backend has no shards of that kind", where="--backend", got=backend, allowed=allowed)
    alone = multi.enabled and exchange.ranks == 1
    shards = _gpus(config, machine) if alone else options.shards or exchange.ranks
    if shards % exchange.ranks:
        raise InputError(
            "shards that the ranks cannot share evenly",
            where="--shards",
            got=shards,
            allowed=f"a multiple of {exchange.ranks}",
        )
    links = Links(multi.enable_p2p, multi.use_nccl)
    threads = min(options.threads or 1, shards // exchange.ranks)
    return Sharding(backend, shards, multi.sharding_strategy, exchange, threads, links)


def _gpus(config: Configuration, machine: Machine) -> int:
    """GPUs to take: as many as asked for, or by default all there are up to the default's number."""
    asked, there = config.cuda.multi_gpu.num_gpus, len(machine.cuda.devices)
    origin = config.origins.get("cuda.multi_gpu.num_gpus", "default")
    if origin == "default":
        return max(1, min(asked, there))
    if asked > there > 0:
        raise EnvironmentInvalidError(
            "more GPUs than the driver shows",
            where=f"cuda.multi_gpu.num_gpus ({origin})",
            got=asked,
            allowed=f"1...{there}",
        )
    return asked


def why_shards_run_there(choice: Choice, config: Configuration, sharding: Sharding | None) -> Choice:
    """``choice`` with the true reason where the shards chose the backend that ``config`` leaves open."""
    if sharding is None or choice.fallback or config.compute.backend != "auto":
        return choice
    many = sharding.backend == "cuda"
    reason = "several GPUs are asked for" if many else "shards run there unless --backend cuda is given"
    return replace(choice, reason=choice.reason.replace("asked for", reason, 1))


@dataclass(frozen=True)
class ShardingReport:
    """What a run says of its shards.

    Attributes
    ----------
    backend, exchange : str
        What ran a shard, and how the shards told each other what fired.
    ranks : int
    quality : PartitionQuality
    bytes_per_burst : float
        Sent by all shards together, mean over the run.
    """

    backend: str
    exchange: str
    ranks: int
    quality: PartitionQuality
    bytes_per_burst: float

    def values(self) -> dict[str, Any]:
        """The report as values that JSON can hold."""
        quality = self.quality
        return {
            "backend": self.backend,
            "exchange": self.exchange,
            "ranks": self.ranks,
            "shards": quality.shards,
            "strategy": quality.strategy,
            "neurons": list(quality.neurons),
            "synapses": list(quality.synapses),
            "cut_synapses": quality.cut_synapses,
            "cut_share": quality.cut_share,
            "neuron_imbalance": quality.neuron_imbalance,
            "synapse_imbalance": quality.synapse_imbalance,
            "cost_imbalance": quality.cost_imbalance,
            "bytes_per_burst": self.bytes_per_burst,
        }

    def text(self) -> str:
        """The report in one line."""
        quality = self.quality
        ranks = f" in {self.ranks} ranks" if self.ranks > 1 else ""
        return (
            f"{quality.shards} on {self.backend}{ranks}, {quality.strategy}: {100 * quality.cut_share:.1f} % of the "
            f"synapses cut, imbalance {quality.neuron_imbalance:.3f} of neurons, {quality.synapse_imbalance:.3f} of "
            f"synapses, {quality.cost_imbalance:.3f} of cost; "
            f"{self.bytes_per_burst:.0f} bytes per burst {self.exchange}"
        )


def sharding_report(engine: Engine, exchange: Exchange, firings_per_burst: float) -> ShardingReport | None:
    """What to say of the shards of ``engine``; ``None`` if it has none."""
    partition = getattr(engine, "partition", None)
    if partition is None:
        return None
    quality = partition_quality(engine.network, partition, getattr(engine, "rates", None))
    path: str = getattr(engine, "exchange_path", "in one process")
    sent = quality.bytes_per_burst(firings_per_burst)
    return ShardingReport(engine.backend, path, exchange.ranks, quality, sent)


@runtime_checkable
class Resharding(Protocol):
    """An engine that can go on with another partition, and that knows what fired so far."""

    network: Network
    partition: Partition

    @property
    def rates(self) -> npt.NDArray[np.float64] | None:
        """Firings of each neuron per burst, (N,) float64."""
        ...

    def reshard(self, partition: Partition) -> None:
        """Go on with ``partition`` from the state at hand."""
        ...


def reshard(engine: Engine) -> None:
    """Split the network anew by the activity that the engine has seen."""
    if isinstance(engine, Resharding):
        old = engine.partition
        engine.reshard(make_partition(engine.network, old.shards, old.strategy, engine.rates))


def check_splitting(options: argparse.Namespace, config: Configuration, sharding: Sharding | None) -> None:
    """Refuse options of a split where nothing is split, and to split anew what no activity changes.

    Raises
    ------
    InputError
        ``--num-gpus`` without ``--multi-gpu``; ``--strategy`` or ``--reshard-every`` without shards;
        ``--reshard-every`` with a strategy that balances nothing.
    """
    if options.num_gpus is not None and not config.cuda.multi_gpu.enabled:
        raise InputError(
            "several GPUs are not asked for", where="--num-gpus", got=options.num_gpus, cure="Add --multi-gpu"
        )
    if options.strategy is not None and sharding is None:
        raise InputError(
            "nothing to split: no shards",
            where="--strategy",
            got=options.strategy,
            cure="Add --shards N, or --multi-gpu",
        )
    if options.reshard_every is None:
        return
    if sharding is None:
        raise InputError(
            "nothing to split anew: no shards", where="--reshard-every", cure="Add --shards N, or --multi-gpu"
        )
    if sharding.strategy in ("contiguous", "round_robin"):
        raise InputError(
            "this strategy does not follow the activity",
            where="--reshard-every",
            got=sharding.strategy,
            allowed="dynamic, by_cortical_area, metis",
        )


def as_asked(config: Configuration, sharding: Sharding | None) -> Configuration:
    """``config`` with the backend that the shards need, where it leaves the choice open."""
    if sharding is None or config.compute.backend == sharding.backend:
        return config
    return replace(config, compute=replace(config.compute, backend=sharding.backend))
