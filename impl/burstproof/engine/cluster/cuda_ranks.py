"""The engine over MPI ranks with a device each: NCCL from device to device where all have it, else hosts and MPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from burstproof.device.open import open_device
from burstproof.engine.cluster.cuda_rank import ONLY, CudaRankShard, device_of_rank
from burstproof.engine.cluster.rank_lists import RankLists
from burstproof.engine.cluster.rank_nccl import Gathering, open_ranks
from burstproof.engine.cuda.engine import create_over_devices
from burstproof.engine.cuda.exchange.mail import Mail, Path, rank_mail
from burstproof.engine.cuda.exchange.words import LINK_LENGTH, side_words
from burstproof.engine.cuda.plan.shard_pack import PackedShard
from burstproof.engine.layout import SynapseFacts
from burstproof.engine.options import EngineOptions
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

NCCL_PATH = "NCCL between ranks, lists gathered in every burst"
HOST_PATH = "through host memory and MPI"


class GatheredShard(CudaRankShard):
    """The one shard of a rank whose device exchanges lists with those of the other ranks.

    Raises
    ------
    BackendUnavailableError, NetworkError, OutOfMemoryError
        As for ``CudaRankShard``.
    """

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        fixed_point: FixedPoint,
        facts: SynapseFacts,
        partition: Partition,
        shard: int,
        ranks: Gathering,
    ) -> None:
        self._ranks = ranks
        self._largest = max(1, int(partition.sizes.max()))
        self._carries = bool(network.area_flag("mp_driven_psp").any())
        super().__init__(network, options, fixed_point, facts, partition, shard)

    def _build(self, packed: PackedShard) -> None:
        super()._build(packed)
        self._lists = RankLists(
            self._runtime,
            self._group.streams.burst,
            self._ranks,
            self._mail,
            self._room,
            self._carries,
            self._shard.device.buffer,
        )

    def _with_mail(self, packed: PackedShard) -> tuple[PackedShard, int, Mail]:
        """As for all ranks: potentials cross if any shard may need them, and the longest list fits box and log."""
        train = packed.packed.train
        own = replace(
            packed,
            packed=replace(packed.packed, train=replace(train, log=max(train.log, self._largest))),
            shard=replace(packed.shard, carries_potentials=self._carries),
        )
        words = side_words(self._largest, self._carries)
        return own, self._largest, rank_mail(Path.NCCL, self._runtime, words, self._ranks.ranks)

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """Burst ``number`` in this shard; what fired in all."""
        self._begin(number, stimulus)
        self._sequence += 1
        if self._group.census(ONLY, stimulus is not None):
            self._lists.headers(self._sequence)
        self._group.dynamics(ONLY, stimulus is not None)
        everything = self.exchange()
        self._group.deliver(ONLY)
        return everything

    def exchange(self) -> Fired:
        """Bring the lists of the last burst to all devices, again if they are there; what fired in all shards."""
        return self._lists.exchange(self._sequence)

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``; all ranks count exchanges anew, whether their kernels were replaced or not."""
        super().restore(state)
        self._lists.restart()
        self._shard.device.write("link", np.zeros(LINK_LENGTH, np.int64))
        self._sequence = 0


class GatheredEngine(ShardedEngine):
    """The engine of a rank whose shard is a ``GatheredShard``; ``ranks`` joins the devices."""

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        partition: Partition,
        exchange: Exchange,
        ranks: Gathering,
    ) -> None:
        self._ranks = ranks
        super().__init__(network, options, partition, partial(GatheredShard, ranks=ranks), exchange, backend="cuda")
        self.exchange_path = NCCL_PATH

    def _fire_and_tell(self, number: int, parts: Sequence[PackedStimulus | None]) -> Fired:
        (shard,), (part,) = self.own_shards, parts
        assert isinstance(shard, GatheredShard)
        return shard.burst(number, part)

    def close(self) -> None:
        """Give back memory and the communicator; closing twice is allowed."""
        super().close()
        self._ranks.close()


def cuda_shards(
    network: Network,
    options: EngineOptions,
    partition: Partition,
    exchange: Exchange | None,
    _threads: int,
    links: Links,
) -> Engine:
    """The engine over devices: over all here in one process, or over that of this rank.

    Over ranks ``exchange_path`` says how lists cross, and why not by NCCL where that is so.

    Raises
    ------
    BackendUnavailableError
        A rank has no driver, no device, or lacks a package; raised in all.
    NetworkError, OutOfMemoryError
        As for the engine for one device.
    """
    if exchange is None:
        return create_over_devices(network, options, partition, links)
    here = partition.shards // exchange.ranks
    ranks = open_ranks(exchange, lambda: open_device(device_of_rank(exchange.rank * here)), here, links.use_nccl)
    if not isinstance(ranks, str):
        return GatheredEngine(network, options, partition, exchange, ranks)
    engine = ShardedEngine(network, options, partition, CudaRankShard, exchange, backend="cuda")
    engine.exchange_path = f"{HOST_PATH} ({ranks})"
    return engine
