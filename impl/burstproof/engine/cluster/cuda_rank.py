"""One shard on the device of an MPI rank: the host carries what fired between the ranks (MG-5)."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.device.open import open_device
from burstproof.engine.cuda.exchange.devices import device_count, make_current
from burstproof.engine.cuda.exchange.mail import Mail, Path, rank_mail
from burstproof.engine.cuda.exchange.words import CENSUS_WORD, COUNT_WORD, HEADER_WORDS, side_words
from burstproof.engine.cuda.host.batch import Streams
from burstproof.engine.cuda.host.many_devices import alike, kernels_of
from burstproof.engine.cuda.host.shard import DeviceShard
from burstproof.engine.cuda.host.shard_group import DeviceGroup
from burstproof.engine.cuda.host.stimulus_table import batch_table
from burstproof.engine.cuda.host.upload import fill_shard
from burstproof.engine.cuda.kernels.control import HALTED
from burstproof.engine.cuda.plan.shard_pack import PackedShard, pack_shard, shard_for
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.layout import SynapseFacts, refuse_overflow
from burstproof.engine.options import EngineOptions
from burstproof.engine.profile import BATCH_PATH_CANDIDATES
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePiece
from burstproof.engine.sharded.shard_layout import rows_of_shard
from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus
from burstproof.errors import ShardLostError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

_LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID")
"""Where launchers say which of a host's ranks a process is."""

ONLY = 0
"""Number of the train set that is used, and of the one shard on the device."""


def device_of_rank(shard: int) -> int:
    """Ordinal of the device for this process: ranks of a host take devices in turn, else shards do."""
    told = next((os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()), None)
    return (shard if told is None else int(told)) % device_count()


class CudaRankShard:
    """The ``Shard`` of one rank, on one device: burst by burst, with the host in between.

    Raises
    ------
    BackendUnavailableError
        No driver, no device, or a package that is missing.
    NetworkError, OutOfMemoryError
        As for the engine for one device.
    """

    def __init__(
        self,
        network: Network,
        options: EngineOptions,
        fixed_point: FixedPoint,
        facts: SynapseFacts,
        partition: Partition,
        shard: int,
    ) -> None:
        self._whole = network, options, fixed_point, facts, partition, shard
        self._number = shard
        self._runtime = open_device(device_of_rank(shard))
        self._weights = network.synapses.weights
        self._eligibility = network.synapses.eligibility_traces
        self._restored, self._clamped = False, False
        self._counted: PackedStimulus | None = None
        self._build(pack_shard(*self._whole))

    def _build(self, packed: PackedShard) -> None:
        """Put ``packed`` onto the device, with its mailboxes."""
        runtime, network = self._runtime, self._whole[0]
        make_current(runtime)
        (own,) = alike([replace(packed, number=ONLY)], [runtime])
        self._packed, self._room, self._mail = self._with_mail(own)
        self._group = DeviceGroup(runtime, Streams.open(runtime, 1), use_graphs=False)
        self._shard = DeviceShard(
            runtime, self._packed, self._group.streams, lambda shard, device: fill_shard(shard, device, network)
        )
        self._group.shards.append(self._shard)
        patience = ShardingChoice().patience_ns
        self._shard.connect(kernels_of(runtime, self._packed.shard), self._mail, self._room, patience)
        self._sequence = 0
        self._group.warm()

    def _with_mail(self, packed: PackedShard) -> tuple[PackedShard, int, Mail]:
        """``packed`` as its kernels have to be, the firings that a mailbox holds, and the mailboxes: the host's."""
        room = max(1, packed.sources)
        words = side_words(room, packed.shard.carries_potentials)
        return packed, room, rank_mail(Path.STAGED, self._runtime, words)

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """See ``Shard.waiting``; ``fire`` follows with the same stimulus, which is not taken twice."""
        self._begin(number, stimulus)
        self._counted = stimulus
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
            raise ShardLostError("the device did no burst", where=f"shard {self._number}", got=result.missed)
        return self.published()

    def published(self) -> Fired:
        """What fired in this shard in the last burst, from the device."""
        report = self._shard.result(ONLY).report
        ids, potentials = self._shard.fired(ONLY, int(report.fired[0, 0]))
        order = np.argsort(ids)
        return Fired(ids[order], potentials[order], int(report.candidates[0]))

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """See ``Shard.receive``."""
        self.post(ids, potentials)
        self._group.deliver(ONLY)

    def post(self, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """Put what fired everywhere into the mailbox on the device."""
        self._put(self._sequence, HEADER_WORDS, ids)
        if self._packed.shard.carries_potentials:
            bits = np.ascontiguousarray(potentials, np.float32).view(np.uint32)
            self._put(self._sequence, HEADER_WORDS + self._room, bits)
        self._put(self._sequence, COUNT_WORD, [len(ids)])

    def _begin(self, number: int, stimulus: PackedStimulus | None) -> None:
        """Send the head and the stimulus of burst ``number``."""
        given = {} if stimulus is None else {number: stimulus}
        train, point = self._packed.packed.train, self._packed.packed.fixed_point
        table = batch_table(given, number, 1, train.length, train.stimulus, point.dtype)
        self._clamped |= bool(table.clamped)
        make_current(self._runtime)
        self._shard.upload(ONLY, table, True)
        self._group.ready(ONLY)

    def _put(self, sequence: int, place: int, values: npt.ArrayLike) -> None:
        """Write words of exchange ``sequence`` into the inbox."""
        words = np.asarray(values).astype(np.uint64) | np.uint64((sequence & 0xFFFFFFFF) << 32)
        make_current(self._runtime)
        start = (sequence & 1) * self._mail.words + place
        self._runtime.upload(self._mail.copies[0], words, self._group.streams.burst, start)
        self._group.streams.burst.synchronize()

    def piece(self, burst_count: int) -> StatePiece:
        """See ``Shard.piece``."""
        make_current(self._runtime)
        nothing = np.empty(0, np.uint32), np.empty(0, np.float32)
        state = self._shard.device.capture(self._weights, self._eligibility, nothing, self._clamped)
        network, _, _, _, partition, _ = self._whole
        computed, ids = self._packed.packed.layout.computed, self._packed.ids()
        rows = np.empty(0, np.int64) if computed is None else computed.rows
        if self._restored:
            rows = rows_of_shard(network, partition, self._number)
        layout = self._packed.packed.layout
        power = layout.power_clamped and layout.power_neuron >= 0 and burst_count > network.burst_count
        return StatePiece(
            shard=self._number,
            membrane_potentials=state.membrane_potentials,
            refractory_countdowns=state.refractory_countdowns,
            consecutive_fire_counts=state.consecutive_fire_counts,
            was_candidate=state.was_candidate,
            last_fired=np.ascontiguousarray(state.last_fired[ids]),
            fire_streak=np.ascontiguousarray(state.fire_streak[ids]),
            pending=state.pending,
            pending_candidate=state.pending_candidate,
            weight_rows=rows,
            weights=state.weights[rows],
            eligibility_rows=rows,
            eligibility_traces=state.eligibility_traces[rows],
            history_bursts=state.history_bursts,
            clamped=state.clamped or power,
        )

    def restore(self, state: EngineState) -> None:
        """See ``Shard.restore``.

        Raises
        ------
        NetworkError
            Weights that the network's fixed-point scale does not admit.
        """
        packed = self._packed
        different = state.weights != packed.packed.weights
        if packed.packed.layout.computed is not None:
            different[packed.packed.layout.computed.rows] = False
        if different.any():
            weights = np.where(different, state.weights, packed.packed.weights)
            packed = replace(pack_shard(*self._whole, weights), number=ONLY)
            own = packed.packed
            refuse_overflow(own.layout, own.network, own.options, own.fixed_point, packed.ids())
        local = packed.local(state)
        packed = shard_for(packed, local)
        if packed is not self._packed:
            self.close()
            self._build(packed)
        make_current(self._runtime)
        self._shard.device.restore(local)
        self._shard.device.write_control(HALTED, 0)
        self._weights, self._eligibility = state.weights.copy(), state.eligibility_traces.copy()
        self._restored, self._clamped = True, state.clamped

    def close(self) -> None:
        """Give back the device's memory; closing twice is allowed."""
        self._group.release()
