"""One shard on its device: buffers, kernels, two sets of batch buffers, and the results of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.host_memory import available_host_bytes
from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.exchange.devices import make_current
from burstproof.engine.cuda.exchange.mail import Mail
from burstproof.engine.cuda.exchange.words import FAILED, LINK_LENGTH, failure_of
from burstproof.engine.cuda.host.arrivals import Arrivals
from burstproof.engine.cuda.host.batch import Staging, Streams, report_of, table_columns
from burstproof.engine.cuda.host.devices import BatchReport, Behind, FiredList
from burstproof.engine.cuda.host.launches import BurstCalls, Call, Kernels, Values, numbers_of, phase_calls
from burstproof.engine.cuda.host.pending import Pending
from burstproof.engine.cuda.host.single_burst import SingleBurst
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.kernels.control import (
    BURST,
    INDEX,
    KEEP,
    LAST_SLOT,
    LIMIT,
    ORIGIN,
    REPORT_HEAD,
    SETTLED,
    TALLIES,
    report_length,
)
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.budget import MemoryPlan, available_bytes
from burstproof.engine.cuda.plan.buffers import SETS, stimulus_specs
from burstproof.engine.cuda.plan.shard_pack import PackedShard
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.sharded.shard import StatePart

_BLOCK = 256
_LAG_DIVISOR = 3
"""A block takes the packets of a chunk that is a third of the resident blocks behind its own: they have had time to
arrive."""
_LOW = 0xFFFFFFFF

Fill = Callable[[PackedShard, DeviceState], None]
"""Writes the initial contents of a new shard's buffers."""


@dataclass(frozen=True, eq=False)
class ShardResult:
    """Result of one shard for a batch that began after burst ``before``.

    ``missed`` is the shard that it waited for in vain, or -1; ``missed_in`` is the number of that exchange.
    """

    report: BatchReport
    before: int
    missed: int
    missed_in: int


class ShardLaunches:
    """Makes the kernel launches of one shard."""

    def __init__(
        self,
        runtime: DeviceRuntime,
        shard: PackedShard,
        compiled: Mapping[str, Any],
        mail: Mail | None,
        room: int,
        patience_ns: int,
    ) -> None:
        from burstproof.engine.cuda.kernels.catalogue import catalogue

        self._runtime = runtime
        self._shard = shard
        self._kernels = Kernels(runtime, shard.shard, catalogue(shard.shard), compiled)
        self._mail = mail
        self._given = {**numbers_of(shard.packed), "sources": shard.sources, "list_room": shard.sources}
        if mail is not None:
            self._given |= {
                "sinks": mail.sinks[shard.number],
                "inboxes": mail.inboxes[shard.number],
                "words": mail.words,
                "room": room,
                "own": shard.number,
                "patience": patience_ns,
                "chunks": 0,
                "lag": 0,
                "first_id": shard.spaced.first if shard.spaced else 0,
                "id_step": shard.spaced.step if shard.spaced else 0,
            }

    def values(self, buffers: Mapping[str, DeviceBuffer], number: int, log: int) -> Values:
        """Kernel arguments for batch set ``number``, whose log has room for ``log`` firings."""
        return Values(self._runtime, buffers, number, self._given | {"capacity": log})

    def calls(self, buffers: Mapping[str, DeviceBuffer], number: int, stimulus: int, log: int) -> BurstCalls:
        """The launches for batch set ``number``, with room for ``stimulus`` ids and ``log`` firings."""
        values, shard = self.values(buffers, number, log), self._shard.shard
        if shard.merged:
            calls = BurstCalls(self._kernels.spread("stimulate", stimulus, _BLOCK, values))
            queues, overlapped = shard.queues, shard.overlapped
            if queues is None or self._mail is None:
                return replace(calls, merged=self._merged(values))
            own = self._kernels.owners(values, queues, shard.threads, overlapped)
            return replace(calls, merged=own, following=(self._kernels.enqueue(values, queues, overlapped),))
        if self._mail is None:
            return phase_calls(self._kernels, shard, self._shard.packed, values, values, stimulus, shard.threads)
        listed = values.replacing(log_ids=buffers["all_ids"], log_potentials=buffers["all_potentials"])
        return phase_calls(self._kernels, shard, self._shard.packed, values, listed, stimulus, _BLOCK)

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Sort the entries of every row for tiles; does nothing without tiles."""
        self._kernels.sort_rows(Values(self._runtime, buffers, 0, self._given), stream)

    def send_ahead(self, buffers: Mapping[str, DeviceBuffer], ahead: int, stream: DeviceStream) -> None:
        """Add to the slot what arrives ``ahead`` bursts after the next one, and wait for it."""
        self._kernels.recall(Values(self._runtime, buffers, 0, self._given), ahead).queue(stream)
        stream.synchronize()

    def settle(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Compute all deferred learning, so that weights and traces are up to date, and wait for it."""
        values = Values(self._runtime, buffers, 0, self._given)
        self._kernels.spread("settle", WARP * self._shard.sources, _BLOCK, values).queue(stream)
        stream.synchronize()

    def _merged(self, values: Values) -> Call:
        """The burst in one kernel: a steering block, one for each chunk, and ``lag`` blocks that only take packets."""
        assert self._mail is not None
        shard, chunks = self._shard.shard, self._mail.packets
        resident = self._kernels.resident("burst", shard.threads)
        lag = 0 if chunks < resident or len(self._mail.inboxes) == 1 else resident // _LAG_DIVISOR
        values = values.replacing(chunks=chunks, lag=lag)
        return self._kernels.call("burst", 1 + chunks + lag, shard.threads, values, shard.overlapped)


class DeviceShard:
    """A shard with its buffers and launches on its device."""

    def __init__(self, runtime: DeviceRuntime, shard: PackedShard, streams: Streams, fill: Fill) -> None:
        self.runtime, self.shard = runtime, shard
        self._streams = streams
        make_current(runtime)
        self.plan = plan_of(shard)
        self.plan.check(available_bytes(runtime.memory_info()[0], shard.packed.options), _place(runtime, shard))
        self.plan.check_host(available_host_bytes())
        self._buffers = runtime.allocate(self.plan.buffers) | runtime.allocate_host(self.plan.host_buffers)
        self.device = DeviceState(runtime, streams.burst, self._buffers, shard.packed, shard.sources)
        fill(shard, self.device)
        self._staging = [Staging(runtime) for _ in range(SETS)]
        length = shard.packed.batch.length
        self._reports = [runtime.pinned(report_length(length), np.int64) for _ in range(SETS)]
        self._links = [runtime.pinned(LINK_LENGTH, np.int64) for _ in range(SETS)]
        self._tallies = [runtime.pinned(TALLIES, np.uint64) for _ in range(SETS)]
        self._before = [0] * SETS
        self._capacity = [shard.packed.batch.stimulus] * SETS
        self._stimulated = [False] * SETS
        self._launches: ShardLaunches | None = None
        self._singles: dict[int, SingleBurst] = {}
        self.calls: list[BurstCalls] = []

    def connect(self, kernels: dict[str, Any], mail: Mail | None, room: int, patience_ns: int) -> None:
        """Fix the launches; called once all mailboxes exist. ``mail`` is ``None`` without an exchange."""
        make_current(self.runtime)
        self._launches = ShardLaunches(self.runtime, self.shard, kernels, mail, room, patience_ns)
        self._launches.sort_rows(self._buffers, self._streams.burst)
        for number in range(SETS):
            self.device.write_at(f"report.{number}", INDEX, -1)  # no burst done: no list to deliver
        self.calls = [self._calls(number) for number in range(SETS)]

    def _calls(self, number: int) -> BurstCalls:
        assert self._launches is not None
        return self._launches.calls(self._buffers, number, self._capacity[number], self.shard.packed.batch.log)

    def upload(self, number: int, table: StimulusTable, keep: bool, burst: int = 0, exchange: int = 0) -> bool:
        """Queue the upload of a batch's head and stimulus; ``True`` if the set's graphs have become invalid.

        ``burst`` and ``exchange`` are the numbers of the last ones before the batch.
        """
        make_current(self.runtime)
        grown = self._grow(number, max(len(table.ids), len(table.forced)))
        stream, staging = self._streams.upload, self._staging[number]
        head = staging.room("head", REPORT_HEAD, np.dtype(np.int64))
        head[:] = 0
        head[LIMIT], head[KEEP], head[INDEX] = table.bursts, int(keep), -1
        head[LAST_SLOT] = burst % self.shard.packed.sizes.ring
        head.view(np.uint32)[2 * ORIGIN : 2 * ORIGIN + 2] = burst & _LOW, exchange & _LOW
        self._before[number] = burst
        self.runtime.upload(self._buffers[f"report.{number}"], head, stream)
        if table.empty and not self._stimulated[number] and not grown:
            return False
        # An empty table is uploaded once after a stimulated batch, to clear the old offsets.
        self._stimulated[number] = not table.empty
        for name, values in table_columns(table).items():
            self.runtime.upload(self._buffers[f"{name}.{number}"], staging.filled(name, values), stream)
        return grown

    def _grow(self, number: int, needed: int) -> bool:
        """Grow the stimulus buffers to ``needed`` ids, if they are smaller; ``True`` if they grew."""
        if needed <= self._capacity[number]:
            return False
        batch = self.shard.packed.batch
        self._capacity[number] = needed
        self._streams.burst.synchronize()
        sizes = type(batch)(batch.length, needed, batch.log)
        self._buffers.update(self.runtime.allocate(stimulus_specs(number, self.shard.shard.variant, sizes)))
        self.calls[number] = self._calls(number)
        return True

    def single(self, number: int) -> SingleBurst:
        """The runner of single bursts on set ``number``, for a network that is the only shard."""
        if number not in self._singles:
            launches, log = self._launches, self.shard.packed.batch.log
            assert launches is not None

            def calls(table: dict[str, DeviceBuffer], room: int) -> BurstCalls:
                return launches.calls({**self._buffers, **table}, number, room, log)

            values = launches.values(self._buffers, number, log)
            self._singles[number] = SingleBurst(self.runtime, self.shard.packed, number, values, calls)
        return self._singles[number]

    def step(self, number: int, stimulus: PackedStimulus | None, behind: Behind | None) -> tuple[FiredList, int]:
        """Run one burst of a network that is the only shard; return its fired list, ids ascending, and candidates."""
        make_current(self.runtime)
        fired, count, candidates = self.single(number).step(stimulus, self._streams.burst, behind)
        if fired is None:
            ids, potentials = self.fired(number, count)
            order = np.argsort(ids)
            fired = ids[order], potentials[order]
        return fired, candidates

    def download(self, number: int) -> None:
        """Queue the download of a batch's report, after its bursts."""
        self.runtime.download(self._reports[number], self._buffers[f"report.{number}"], self._streams.burst)
        if self.shard.shard.exchanges:
            self.runtime.download(self._links[number], self._buffers["link"], self._streams.burst)
            self.runtime.download(self._tallies[number], self._buffers["tallies"], self._streams.burst)

    def result(self, number: int) -> ShardResult:
        """The result of the batch of set ``number``, once it is over."""
        report = report_of(self._reports[number])
        if self.shard.shard.merged and report.bursts:
            last = int(self._tallies[number][(self._before[number] + report.bursts) % TALLIES])
            report.fired[0, -1], report.candidates[-1] = last >> 32, last & _LOW
        return ShardResult(report, self._before[number], *failure_of(int(self._links[number][FAILED])))

    def fired(self, number: int, count: int) -> FiredList:
        """Network ids and potentials of the first ``count`` entries of a batch's log, in the log's order."""
        make_current(self.runtime)
        staging, stream = self._staging[number], self._streams.download
        return staging.fired(count, lambda name: self._buffers[f"{name}.{number}"], stream)

    def state(self, clamped: bool, arrivals: Arrivals) -> StatePart:
        """The shard's part of the state; pending contributions that the host still holds are in ``arrivals``."""
        make_current(self.runtime)
        burst = int(self.device.read("control")[BURST])
        pending = self._pending(burst)
        arrivals.add_to(burst, *pending)
        if self.shard.shard.variant.defers_learning and self._launches is not None:
            self._launches.settle(self._buffers, self._streams.burst)
            self.device.write_control(SETTLED, burst)
        return self.device.capture(_columns(self.shard), clamped, pending)

    def _pending(self, burst: int) -> Pending:
        launches, stream = self._launches, self._streams.burst
        if launches is None or not (self.shard.shard.exchanges and self.shard.shard.recalled):
            return self.device.pending.read_slots(burst)
        return self.device.pending.read_coming(lambda ahead: launches.send_ahead(self._buffers, ahead, stream))

    def release(self) -> None:
        """Free the device's memory."""
        self.calls = []
        self._singles = {}
        self._launches = None
        self._buffers.clear()


def plan_of(shard: PackedShard) -> MemoryPlan:
    """The buffers of a shard with their bytes, without mailboxes."""
    sizes = shard.packed.sizes
    entries = sizes.static_entries + sizes.computed_entries
    return MemoryPlan(shard.buffers, sizes.neurons, entries, shard.packed.host_buffers)


def _place(runtime: DeviceRuntime, shard: PackedShard) -> str:
    device = f"device {runtime.name}"
    return f"shard {shard.number} on {device}" if shard.shard.exchanges else device


def _columns(shard: PackedShard) -> npt.NDArray[np.uint32] | slice:
    """The shard's neurons as an index into a column of the network."""
    if shard.spaced is None:
        return shard.ids()
    first, step = shard.spaced.first, shard.spaced.step
    return slice(first, first + step * shard.neurons, step) if shard.neurons else slice(0, 0)
