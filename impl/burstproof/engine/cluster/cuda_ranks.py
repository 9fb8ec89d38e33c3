"""The engine over MPI ranks with one device each: lists travel by NCCL if all ranks have it, else by host and MPI."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.device.open import open_device
from burstproof.engine.cluster.rank_lists import RankLists
from burstproof.engine.cluster.rank_nccl import NcclRanks, open_ranks
from burstproof.engine.cuda.engine import create_over_devices
from burstproof.engine.cuda.exchange.devices import device_count, make_current
from burstproof.engine.cuda.exchange.mail import Mail, Path, rank_mail
from burstproof.engine.cuda.exchange.words import CENSUS_WORD, COUNT_WORD, HEADER_WORDS, LINK_LENGTH, side_words
from burstproof.engine.cuda.host.appearing import Appearing
from burstproof.engine.cuda.host.arrivals import Arrivals
from burstproof.engine.cuda.host.batch import Streams
from burstproof.engine.cuda.host.compiling import kernels_of
from burstproof.engine.cuda.host.many_devices import fitted
from burstproof.engine.cuda.host.shard import DeviceShard
from burstproof.engine.cuda.host.shard_forms import alike
from burstproof.engine.cuda.host.shard_group import DeviceGroup
from burstproof.engine.cuda.host.stimulus_table import batch_table
from burstproof.engine.cuda.host.upload import fill_shard
from burstproof.engine.cuda.kernels.control import HALTED
from burstproof.engine.cuda.plan.shard_pack import PackedShard, pack_shard
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.profile import BATCH_PATH_CANDIDATES
from burstproof.engine.protocol import Engine
from burstproof.engine.sharded.engine import Links, ShardedEngine
from burstproof.engine.sharded.exchange import Exchange
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePart, Twin
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.engine.state import EngineState
from burstproof.errors import ShardLostError
from burstproof.network.model import Network

NCCL_PATH = "NCCL between ranks, lists gathered in every burst"
HOST_PATH = "through host memory and MPI"

ONLY = 0
"""Number of the only batch set in use, and of the only shard on the device."""

_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
"""Environment variables of launchers with the rank within the host."""


def device_of_rank(shard: int) -> int:
    """Device ordinal of this process: its rank within the host, else the shard, modulo the number of devices."""
    local = next((os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()), None)
    return (shard if local is None else int(local)) % device_count()


class CudaRankShard:
    """The ``Shard`` of one rank on one device; the host exchanges the fired lists in every burst.

    Raises
    ------
    BackendUnavailableError
        No driver, no device, or a package that is missing.
    NetworkError, OutOfMemoryError
        As for the engine for one device.
    """

    def __init__(self, shard: NetworkShard) -> None:
        self._source = shard
        self._runtime = open_device(device_of_rank(shard.number))
        self._clamped = False
        self._build(*self._pack())

    def _build(self, packed: PackedShard) -> None:
        """Create the buffers and mailboxes of ``packed`` on the device."""
        runtime, network = self._runtime, self._source.network
        make_current(runtime)
        (own,) = alike([packed], [runtime])
        self._packed, self._room, self._mail = self._with_mail(own)
        self._group = DeviceGroup(runtime, Streams.open(runtime, 1), use_graphs=False)
        self._shard = DeviceShard(
            runtime, self._packed, self._group.streams, lambda shard, device: fill_shard(shard, device, network)
        )
        self._group.shards.append(self._shard)
        patience = ShardingChoice().patience_ns
        self._shard.connect(kernels_of(runtime, self._packed.shard), self._mail, self._room, patience)
        self._sequence = 0
        rows = network.synapse_count if network.features.associative else 0
        self._appearing = Appearing(runtime, self._packed, self._shard.device, rows)
        self._group.warm()

    def _with_mail(self, packed: PackedShard) -> tuple[PackedShard, int, Mail]:
        """``packed`` adapted to the mailboxes, the room of a mailbox in firings, and the mailboxes (in host memory)."""
        room = max(1, packed.sources)
        words = side_words(room, packed.shard.carries_potentials)
        return packed, room, rank_mail(Path.STAGED, self._runtime, words)

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """See ``Shard.waiting``; uploads the stimulus, which the following ``fire`` does not upload again."""
        self._begin(number, stimulus)
        if not self._group.census(ONLY, stimulus is not None):
            return 0
        word = np.zeros(1, np.uint64)
        place = (self._sequence + 1 & 1) * self._mail.words + CENSUS_WORD
        self._runtime.download(word, self._mail.outboxes[0], self._group.streams.burst, place)
        self._group.streams.burst.synchronize()
        return int(word[0] & np.uint64(0xFFFFFFFF))

    def fire(self, number: int, stimulus: PackedStimulus | None, batch: bool) -> Fired:
        """See ``Shard.fire``."""
        group = self._group
        if not self._packed.shard.variant.count_ahead:
            self._begin(number, stimulus)
            group.census(ONLY, stimulus is not None)
        else:
            self._put(self._sequence + 1, CENSUS_WORD, [BATCH_PATH_CANDIDATES if batch else 0])
        self._sequence += 1
        group.dynamics(ONLY, stimulus is not None)
        group.finish(ONLY)
        group.wait(ONLY)
        result = self._shard.result(ONLY)
        if len(result.report.candidates) != 1:
            where = f"shard {self._source.number}"
            raise ShardLostError("the device did no burst", where=where, got=result.missed)
        return self.published()

    def published(self) -> Fired:
        """Download what fired in this shard in the last burst."""
        report = self._shard.result(ONLY).report
        ids, potentials = self._shard.fired(ONLY, int(report.fired[0, 0]))
        order = np.argsort(ids)
        return Fired(ids[order], potentials[order], int(report.candidates[0]))

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """See ``Shard.receive``."""
        self.post(ids, potentials)
        self._group.deliver(ONLY)

    def post(self, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """Write the firings of all shards into the mailbox on the device."""
        self._put(self._sequence, HEADER_WORDS, ids)
        if self._packed.shard.carries_potentials:
            bits = np.ascontiguousarray(potentials, np.float32).view(np.uint32)
            self._put(self._sequence, HEADER_WORDS + self._room, bits)
        self._put(self._sequence, COUNT_WORD, [len(ids)])

    def _begin(self, number: int, stimulus: PackedStimulus | None) -> None:
        """Upload the head and the stimulus of burst ``number``."""
        self._appearing.give(stimulus, local=True)
        given = {} if stimulus is None else {number: stimulus}
        batch, point, layout = self._packed.packed.batch, self._source.fixed_point, self._packed.packed.layout
        table = batch_table(given, number, 1, batch.length, batch.stimulus, point.dtype)
        self._clamped |= bool(table.clamped) or (layout.power_clamped and layout.power_neuron >= 0)
        make_current(self._runtime)
        self._shard.upload(ONLY, table, True)
        self._group.ready(ONLY)

    def _put(self, sequence: int, place: int, values: npt.ArrayLike) -> None:
        """Write ``values``, tagged with exchange ``sequence``, into the inbox at ``place``."""
        words = np.asarray(values).astype(np.uint64) | np.uint64((sequence & 0xFFFFFFFF) << 32)
        make_current(self._runtime)
        start = (sequence & 1) * self._mail.words + place
        self._runtime.upload(self._mail.copies[0], words, self._group.streams.burst, start)
        self._group.streams.burst.synchronize()

    def state(self, burst_count: int) -> StatePart:
        """See ``Shard.state``."""
        return self._shard.state(self._clamped, Arrivals())

    def signals(self, burst: int) -> npt.NDArray[np.float32]:
        """See ``Shard.signals``."""
        return self._appearing.signals(burst)

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """See ``Shard.drive``."""
        self._appearing.drive(driver, neuron, potential)

    def set_weights(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> None:
        """See ``Shard.set_weights``."""
        self._appearing.set_weights(rows, weights)

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: npt.NDArray[np.float32]) -> None:
        """See ``Shard.set_divisors``."""
        self._appearing.set_divisors(sources, divisors)

    def add_twin(self, twin: Twin) -> None:
        """See ``Shard.add_twin``."""
        self._appearing.add_twin(twin)

    def _pack(self, weights: npt.NDArray[np.float32] | None = None) -> tuple[PackedShard]:
        """Pack the only shard of the device, with the network's weights or with others (S,)."""
        return (replace(pack_shard(self._source, weights), number=ONLY),)

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        (packed,), (local,) = fitted((self._packed,), state, self._pack)
        if packed is not self._packed:
            self.close()
            self._build(packed)
        make_current(self._runtime)
        self._shard.device.restore(local)
        self._shard.device.write_control(HALTED, 0)
        self._appearing.forget_signals()
        self._clamped = state.clamped

    def close(self) -> None:
        """Release the device's memory; closing twice is allowed."""
        self._group.release()


class GatheredShard(CudaRankShard):
    """The shard of a rank whose device exchanges fired lists directly with the devices of other ranks.

    Raises
    ------
    BackendUnavailableError, NetworkError, OutOfMemoryError
        As for ``CudaRankShard``.
    """

    def __init__(self, shard: NetworkShard, ranks: NcclRanks) -> None:
        self._ranks = ranks
        self._largest = max(1, int(shard.partition.sizes.max()))
        self._carries = bool(shard.network.area_flag("mp_driven_psp").any() or shard.network.features.modulators)
        super().__init__(shard)

    def _build(self, packed: PackedShard) -> None:
        super()._build(packed)
        stream, buffer = self._group.streams.burst, self._shard.device.buffer
        self._lists = RankLists(self._runtime, stream, self._ranks, self._mail, self._room, self._carries, buffer)

    def _with_mail(self, packed: PackedShard) -> tuple[PackedShard, int, Mail]:
        """Alike on all ranks: potentials are exchanged if any shard needs them; the longest list fits box and log."""
        batch = packed.packed.batch
        own = replace(
            packed,
            packed=replace(packed.packed, batch=replace(batch, log=max(batch.log, self._largest))),
            shard=replace(packed.shard, carries_potentials=self._carries),
        )
        words = side_words(self._largest, self._carries)
        return own, self._largest, rank_mail(Path.NCCL, self._runtime, words, self._ranks.ranks)

    def burst(self, number: int, stimulus: PackedStimulus | None) -> Fired:
        """Run burst ``number`` in this shard; returns what fired in all shards."""
        self._begin(number, stimulus)
        self._sequence += 1
        if self._group.census(ONLY, stimulus is not None):
            self._lists.headers(self._sequence)
        self._group.dynamics(ONLY, stimulus is not None)
        everything = self.exchange()
        self._group.deliver(ONLY)
        return everything

    def exchange(self) -> Fired:
        """Gather the lists of the last burst on all devices (may be repeated); returns what fired in all shards."""
        return self._lists.exchange(self._sequence)

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``; all ranks restart the exchange count, whether or not their kernels were replaced."""
        super().restore(state)
        self._lists.restart()
        self._shard.device.write("link", np.zeros(LINK_LENGTH, np.int64))
        self._sequence = 0


class GatheredEngine(ShardedEngine):
    """The engine of a rank with a ``GatheredShard``; ``ranks`` is the NCCL communicator."""

    def __init__(
        self, network: Network, options: EngineOptions, partition: Partition, exchange: Exchange, ranks: NcclRanks
    ) -> None:
        self._ranks = ranks
        super().__init__(
            network, options, partition, lambda shard: GatheredShard(shard, ranks), exchange, backend="cuda"
        )
        self.exchange_path = NCCL_PATH

    def _fire_and_exchange(self, number: int, parts: Sequence[PackedStimulus | None]) -> Fired:
        (shard,), (part,) = self.shards, parts
        assert isinstance(shard, GatheredShard)
        return shard.burst(number, part)

    def close(self) -> None:
        """Release memory and the communicator; closing twice is allowed."""
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
    """The engine over devices: several devices of this process, or with an ``exchange`` the device of this rank.

    With ranks ``exchange_path`` says how lists travel and, if not by NCCL, why.

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
