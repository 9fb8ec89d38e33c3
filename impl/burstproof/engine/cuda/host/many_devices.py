"""A network in shards on several devices: buffers, kernels, mailboxes, and what all shards share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from burstproof.device.open import open_device
from burstproof.device.protocol import DeviceRuntime
from burstproof.engine.admission import check_network
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.exchange.mail import WORDS, Mail, Path, choose_path, mail_bytes, open_mail
from burstproof.engine.cuda.exchange.nccl import NcclExchange
from burstproof.engine.cuda.exchange.words import packets_side_words, side_words
from burstproof.engine.cuda.host.appearing import Appearing
from burstproof.engine.cuda.host.arrivals import Arrivals
from burstproof.engine.cuda.host.batch import Streams
from burstproof.engine.cuda.host.compiling import kernels_of
from burstproof.engine.cuda.host.devices import BatchReport, Behind, FiredList, LoopKernel
from burstproof.engine.cuda.host.shard import DeviceShard, Fill, ShardResult
from burstproof.engine.cuda.host.shard_forms import alike, with_owners
from burstproof.engine.cuda.host.shard_group import DeviceGroup
from burstproof.engine.cuda.host.stimulus_table import Places, StimulusTable, shard_tables
from burstproof.engine.cuda.host.upload import fill_shard
from burstproof.engine.cuda.kernels.control import HALTED
from burstproof.engine.cuda.plan.budget import MemoryPlan, available_bytes, place_synapses
from burstproof.engine.cuda.plan.buffers import SETS, graph_length
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.shard_pack import (
    PackedShard,
    pack_shard,
    plain,
    shard_for,
    whole_network,
)
from burstproof.engine.cuda.plan.sharding_choice import ShardingChoice
from burstproof.engine.fixed_point import plan_fixed_point
from burstproof.engine.layout import refuse_overflow, synapse_facts
from burstproof.engine.options import EngineOptions
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import StatePart
from burstproof.engine.sharded.shard_layout import NetworkShard
from burstproof.engine.state import EngineState, Stimulus
from burstproof.errors import InputError, ShardLostError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network

Repack = Callable[[npt.NDArray[np.float32] | None], tuple[PackedShard, ...]]
"""Packs the shards, with other weights (S,) or with the network's own."""

_PACKING_THREADS = 4


def pack_shards(
    network: Network,
    options: EngineOptions,
    partition: Partition,
    choice: ShardingChoice,
    point: FixedPoint | None = None,
    loaded: int | None = None,
) -> ManyDevices:
    """Put the shards of ``partition`` on the devices of ``choice``, dealt to them in turn.

    ``point`` and ``loaded`` are for a growing network: the fixed-point scale and the number of neurons of the loaded
    network, of which ``network`` is the form with room.

    Raises
    ------
    InputError
        A partition of another network.
    NetworkError, BackendUnavailableError, OutOfMemoryError
        As for ``CudaEngine.create``.
    """
    partition.check(network)
    check_network(network, options)
    scale = plan_fixed_point(network, options) if point is None else point
    facts, first = synapse_facts(network), network.neuron_count if loaded is None else loaded

    def repack(weights: npt.NDArray[np.float32] | None) -> tuple[PackedShard, ...]:
        def packed(number: int) -> PackedShard:
            return pack_shard(NetworkShard(network, options, scale, facts, partition, number, first), weights)

        with ThreadPoolExecutor(min(partition.shards, _PACKING_THREADS)) as pool:
            return tuple(pool.map(packed, range(partition.shards)))

    shards = repack(None)
    fill = partial(fill_shard, network=network)
    return ManyDevices(shards, options, choice.for_shards(partition.shards), fill, repack)


class ManyDevices:
    """Shards on one or more devices; see ``Devices``.

    Attributes
    ----------
    packed : tuple of PackedShard
    shards : list of DeviceShard
    mail : Mail or None
        ``None`` if the whole network is the only shard.
    """

    def __init__(
        self,
        packed: Sequence[PackedShard],
        options: EngineOptions,
        choice: ShardingChoice,
        fill: Fill,
        repack: Repack | None,
        opened: Mapping[int, DeviceRuntime] | None = None,
    ) -> None:
        self.choice, self._options, self._fill, self._repack = choice, options, fill, repack
        self._lost: ShardLostError | None = None
        self._arrivals = Arrivals()
        runtimes = dict(opened or {})
        for ordinal in choice.devices:
            if ordinal not in runtimes:
                runtimes[ordinal] = open_device(ordinal)
        self._runtimes = tuple(runtimes[ordinal] for ordinal in choice.devices)
        self._build(packed)

    def _build(self, packed: Sequence[PackedShard]) -> None:
        """Put ``packed`` onto the devices."""
        path, self.packed = self._formed(packed)
        self.room = max(1, *(shard.neurons for shard in self.packed))
        self._merged = self.packed[0].shard.merged
        cuda = self._options.cuda
        groups: dict[DeviceRuntime, DeviceGroup] = {}
        self.shards: list[DeviceShard] = []
        for runtime, shard in zip(self._runtimes, self.packed, strict=True):
            if runtime not in groups:
                make_current(runtime)
                streams = Streams.open(runtime, cuda.stream_count)
                groups[runtime] = DeviceGroup(runtime, streams, cuda.graphs and path is not Path.NCCL)
            on_device = DeviceShard(runtime, shard, groups[runtime].streams, self._fill)
            groups[runtime].shards.append(on_device)
            self.shards.append(on_device)
        self.mail = None if path is None else self._open_mail(path)
        self._connect()
        self.groups = tuple(groups.values())
        self._nccl: NcclExchange | None = None
        if self.mail is not None and path is Path.NCCL:
            room = self.room if self.packed[0].shard.carries_potentials else 0
            self._nccl = NcclExchange(self._runtimes, self.mail, room)
        self._length = 1 if self._nccl is not None else self.packed[0].packed.batch.length
        self._places = tuple(Places.of(shard) for shard in self.packed)
        self._exchanges = 0
        for group in self.groups:
            group.warm()

    def _formed(self, packed: Sequence[PackedShard]) -> tuple[Path | None, tuple[PackedShard, ...]]:
        """The exchange path, if there is an exchange, and the shards in a form that suits it and the devices."""
        choice = self.choice
        if not packed[0].shard.exchanges:
            return None, (placed(packed[0], self._runtimes[0]),)
        path = choice.path or choose_path(self._runtimes, peers=choice.peers, nccl=choice.nccl)
        queued = with_owners(packed, self._runtimes) if choice.merged and path is not Path.NCCL else None
        if queued is not None:
            return path, queued
        merged = choice.merged and path is Path.PEER and have_devices_of_their_own(choice.devices)
        return path, alike([plain(shard) for shard in packed], self._runtimes, merged)

    def _open_mail(self, path: Path) -> Mail:
        """Mailboxes for the longest fired lists, or, if a burst is one kernel, for a packet of every chunk."""
        shard = self.packed[0].shard
        if not shard.merged or shard.queues is not None:
            return open_mail(path, self._runtimes, side_words(self.room, shard.carries_potentials))
        packets = -(-self.room // shard.chunk)
        return replace(open_mail(path, self._runtimes, packets_side_words(packets, shard.chunk)), packets=packets)

    def _connect(self) -> None:
        """Compile the kernels and fix the launches of all shards."""
        for shard in self.shards:
            make_current(shard.runtime)
            kernels = kernels_of(shard.runtime, shard.shard.shard)
            shard.connect(kernels, self.mail, self.room, self.choice.patience_ns)

    @property
    def memory_bytes(self) -> int:
        """Bytes on all devices."""
        buffers = sum(shard.plan.total_bytes for shard in self.shards)
        if self.mail is None:
            return buffers
        return buffers + len(self.shards) * mail_bytes(self.mail.path, len(self.shards), self.mail.words)

    @property
    def plan(self) -> MemoryPlan:
        """See ``Devices.plan``."""
        if self.mail is not None:
            raise InputError("each shard has a plan of its own", where="memory_plan", cure="Read memory_bytes")
        return self.shards[0].plan

    @property
    def host_bytes(self) -> int:
        """Bytes of synapses that a device reads from host memory."""
        return sum(shard.plan.host_bytes for shard in self.shards)

    @property
    def path(self) -> str:
        """See ``Devices.path``."""
        return "on one device" if self.mail is None else WORDS[self.mail.path]

    @property
    def choices(self) -> str:
        """See ``Devices.choices``; of the first shard."""
        return choices_of(self.packed[0].packed)

    @property
    def max_delay(self) -> int:
        """Longest delay in bursts."""
        return self.packed[0].packed.layout.max_delay

    @property
    def power_clamped(self) -> bool:
        """Whether the amount of the power neuron is clamped in every burst."""
        layouts = [shard.packed.layout for shard in self.packed]
        return any(layout.power_clamped and layout.power_neuron >= 0 for layout in layouts)

    def tables(
        self, stimuli: Mapping[int, PackedStimulus], first: int, bursts: int, number: int
    ) -> tuple[StimulusTable, ...]:
        """See ``Devices.tables``."""
        dtype = self.packed[0].packed.fixed_point.dtype
        self._arrivals.forget(first - SETS * self._length)
        stimuli = self._arrivals.beside(stimuli)
        return shard_tables(stimuli, first, min(bursts, self._length), self._length, self._places, dtype)

    def takes(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """See ``Devices.takes``. With an exchange every step is a batch of one burst."""
        return self.mail is None and self.shards[0].single(0).holds(stimulus)

    def step(self, number: int, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """See ``Devices.step``."""
        return self.shards[0].step(number, stimulus, behind)

    def submit(self, number: int, tables: tuple[StimulusTable, ...], keep: bool, burst: int) -> None:
        """See ``Devices.submit``.

        Raises
        ------
        ShardLostError
            A shard was lost before, so nothing can go on.
        """
        if self._lost is not None:
            raise self._lost
        bursts = tables[0].bursts
        length = graph_length(bursts, self._length)
        stimulated = not all(table.empty for table in tables)
        keep = keep or bursts == 1
        for group in self.groups:
            given = [(shard, tables[shard.shard.number]) for shard in group.shards]
            changed = [shard.upload(number, table, keep, burst, self._exchanges) for shard, table in given]
            if any(changed):
                group.forget(number)
            group.ready(number)
        if self._nccl is not None:
            self._submit_by_host(number, stimulated)
            return
        self._exchanges += bursts
        self._queue(number, length, bursts, stimulated, keep and self._merged)

    def _queue(self, number: int, length: int, bursts: int, stimulated: bool, keep: bool) -> None:
        """Queue a batch on all devices: graphs of ``length`` bursts, or without graphs burst by burst.

        A device's queue holds a limited number of kernels, then the host blocks. If a whole batch were queued device by
        device without graphs, the host could block on a device that waits for one whose queue is still empty.
        """
        if all(group.graphs for group in self.groups):
            for group in self.groups:
                group.prepare(number, length, stimulated, keep)
            for group in self.groups:
                group.run(number, length, stimulated, keep)
            return
        for place in range(bursts):
            for group in self.groups:
                group.burst(number, place, stimulated, keep)
        for group in self.groups:
            make_current(group.runtime)
            group.finish(number)

    def _submit_by_host(self, number: int, stimulated: bool) -> None:
        """Queue one burst; the host calls NCCL between dynamics and delivery."""
        assert self._nccl is not None
        streams = [group.streams.burst for group in self.groups]
        self._exchanges += 1
        counts_ahead = [group.census(number, stimulated) for group in self.groups]
        if any(counts_ahead):
            self._nccl.headers(self._exchanges, streams)
        for group in self.groups:
            group.dynamics(number, stimulated)
        self._nccl.exchange(self._exchanges, streams)
        for group in self.groups:
            group.deliver(number)
            group.finish(number)

    def collect(self, number: int) -> BatchReport:
        """See ``Devices.collect``.

        Raises
        ------
        ShardLostError
            A shard published nothing in time; the error names it.
        """
        for group in self.groups:
            group.wait(number)
        results = [shard.result(number) for shard in self.shards]
        self._check_lost(results)
        fired = np.concatenate([result.report.fired for result in results])
        return BatchReport(fired, np.sum([result.report.candidates for result in results], axis=0))

    def _check_lost(self, results: Sequence[ShardResult]) -> None:
        """Raise if a shard was lost: others waited for it in vain.

        The shard that gave up first names the lost one. A shard that was merely delayed gives up later, on those that
        have given up before it.
        """
        waiting = [shard for shard, result in enumerate(results) if result.missed >= 0]
        if not waiting:
            return
        first = min((results[shard] for shard in waiting), key=lambda result: result.missed_in)
        self._lost = ShardLostError(
            f"shard {first.missed} published nothing in burst {first.before + 1} or soon after it",
            where=f"shard {first.missed} on device {self.choice.devices[first.missed]}",
            got=f"shards {waiting} waited {self.choice.timeout_s:g} s",
            cure="Restore the last checkpoint into a new engine; see whether that device is held up by other work",
        )
        raise self._lost

    def due(self) -> bool:
        """See ``Devices.due``. Shards keep their layout."""
        return False

    def fired(self, number: int, counts: npt.NDArray[np.int64]) -> FiredList:
        """See ``Devices.fired``."""
        lists = [shard.fired(number, int(own.sum())) for shard, own in zip(self.shards, counts, strict=True)]
        return ascending(lists, counts)

    def loop_kernel(self) -> LoopKernel | None:
        """See ``Devices.loop_kernel``. There is none: these bursts are several kernels, or wait for other devices."""
        return None

    def resume(self) -> None:
        """See ``Devices.resume``."""
        for shard in self.shards:
            shard.device.write_control(HALTED, 0)

    def appearing(self, synapses: int) -> list[Appearing]:
        """An ``Appearing`` for each shard, which changes it while it runs."""
        return [Appearing(shard.runtime, shard.shard, shard.device, synapses) for shard in self.shards]

    def state(self, clamped: bool) -> list[StatePart]:
        """See ``Devices.state``."""
        return [shard.state(clamped, self._arrivals.among(shard.shard.ids())) for shard in self.shards]

    def restore(self, state: EngineState) -> None:
        """See ``Devices.restore``."""
        self._arrivals, had_queues = Arrivals(), self._have_queues
        state = self._without_arrivals(state) if had_queues else state
        needed, local = fitted(self.packed, state, self._repack)
        if any(new is not present for new, present in zip(needed, self.packed, strict=True)):
            self._clear()
            self._build(needed)
        if self._have_queues and not had_queues:
            state = self._without_arrivals(state)
            local = [shard.local(state) for shard in self.packed]
        for on_device, part in zip(self.shards, local, strict=True):
            make_current(on_device.runtime)
            on_device.device.restore(part)

    @property
    def _have_queues(self) -> bool:
        """Whether shards have queues per owner, and so no slots for the pending contributions of a state."""
        return self.packed[0].shard.exchanges and self.packed[0].shard.queues is not None

    def _without_arrivals(self, state: EngineState) -> EngineState:
        """``state`` without its pending contributions, which will be delivered as stimulus."""
        valid = np.zeros(self.packed[0].sources, np.bool_)
        for shard in self.packed:
            valid[shard.ids()] = shard.packed.network.neurons.valid_mask
        return self._arrivals.take(state, valid, self.packed[0].packed.fixed_point.dtype, slots=0)

    def _clear(self) -> None:
        if self._nccl is not None:
            self._nccl.close()
            self._nccl = None
        for group in self.groups:
            group.release()
        self.shards = []

    def release(self) -> None:
        """Free the devices' memory."""
        self._clear()
        self.groups = ()
        del self.mail


def fitted(
    packed: tuple[PackedShard, ...], state: EngineState, repack: Repack | None
) -> tuple[tuple[PackedShard, ...], list[EngineState]]:
    """The shards packed for the kernels and contributions that ``state`` needs, and the part of ``state`` for each.

    Raises
    ------
    NetworkError
        Weights that the network's fixed-point scale does not admit.
    """
    different = state.weights != packed[0].packed.weights
    for shard in packed:
        if shard.packed.layout.computed is not None:
            different[shard.packed.layout.computed.rows] = False
    if different.any() and repack is not None:
        packed = repack(np.where(different, state.weights, packed[0].packed.weights))
        for shard in packed:
            part = shard.packed
            refuse_overflow(part.layout, part.network, part.options, part.fixed_point, shard.ids())
    local = [shard.local(state) for shard in packed]
    return tuple(shard_for(shard, part) for shard, part in zip(packed, local, strict=True)), local


def have_devices_of_their_own(devices: Sequence[int]) -> bool:
    """Whether no two shards share a device."""
    return len(set(devices)) == len(devices)


def placed(shard: PackedShard, runtime: DeviceRuntime) -> PackedShard:
    """A whole network with its synapses in device or host memory, by its options and the free memory of ``runtime``."""
    packed = shard.packed
    return whole_network(place_synapses(packed, available_bytes(runtime.memory_info()[0], packed.options)))


def ascending(lists: Sequence[FiredList], counts: npt.NDArray[np.int64]) -> FiredList:
    """Merge the shards' lists, burst by burst with ascending ids; ``counts`` (shards, bursts) are their lengths."""
    ids, potentials = (np.concatenate([part[column] for part in lists]) for column in (0, 1))
    bursts = np.concatenate([np.repeat(np.arange(counts.shape[1], dtype=np.uint64), row) for row in counts])
    order = np.argsort((bursts << np.uint64(32)) | ids)
    return ids[order], potentials[order]
