"""A batch of fused bursts: begun and answered through host memory that the device reaches, so nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.args import Stimulus as StimulusColumns
from burstproof.engine.cuda.host.batch import Staging, Streams, report_of, table_columns
from burstproof.engine.cuda.host.devices import BatchReport, Behind, FiredList
from burstproof.engine.cuda.host.launches import Call, Kernels, Values, numbers_of
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.kernels.control import ALL, COUNTS, FRESH, LISTS, REPORT_HEAD, report_length
from burstproof.engine.cuda.plan.buffers import BatchSizes, chunks_of, stimulus_specs
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.shard_variant import whole
from burstproof.engine.state import Stimulus
from burstproof.engine.stimulus import PackedStimulus

_LARGEST_WINDOW = 1 << 16
_STIMULUS_BLOCK = 256
_SPAN = 8192
TABLE = StimulusColumns._fields
"""Buffers of a batch's stimulus."""
_LONG_ROW_BLOCK = 256


@dataclass(frozen=True, eq=False)
class HostBuffers:
    """Host memory that the device reaches too, of one batch set.

    ``head`` (1,) takes the bursts to do, ``answer`` the report, ``ids`` and ``potentials`` a single burst's list.
    ``table`` holds the columns of a single burst's stimulus, by the names of the batch's own.
    """

    head: DeviceBuffer
    answer: DeviceBuffer
    ids: DeviceBuffer
    potentials: DeviceBuffer
    table: Mapping[str, DeviceBuffer]


@dataclass(frozen=True)
class BatchKind:
    """What a captured batch is made for: its length, whether it has stimulus, whether all fired lists are kept.

    ``fresh``: one burst while no other batch is under way: no kernel begins it, and its stimulus lies on the host.
    """

    length: int
    stimulated: bool
    keep: bool
    fresh: bool = False

    @property
    def mode(self) -> int:
        """How its bursts are steered."""
        if self.fresh:
            return FRESH
        return LISTS if self.keep else COUNTS


class FusedLaunches:
    """Makes the calls of batches of fused bursts."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed) -> None:
        from burstproof.engine.cuda.kernels.catalogue import catalogue

        assert packed.variant.fused is not None
        self._shape = packed.variant.fused
        self._packed = packed
        self._chunks = chunks_of(packed.sizes.neurons, packed.variant)
        self._kernels = Kernels(runtime, whole(packed.variant), catalogue(packed.variant))

    def queue(self, calls: FusedCalls, kind: BatchKind, stream: DeviceStream) -> None:
        """Queue a batch; allocates and synchronises nothing, so it can be captured."""
        for call in self._batch(calls, kind):
            call.queue(stream)

    def _batch(self, calls: FusedCalls, kind: BatchKind) -> Iterator[Call]:
        single, mode = kind.length == 1, kind.mode
        if not kind.fresh:
            yield calls.begin.at(1 if single else 0, kind.keep)
        for place in range(kind.length):
            if kind.stimulated:
                yield (calls.stimulate_from_host if kind.fresh else calls.stimulate).at(True, mode, place)
            yield calls.burst.at(kind.stimulated, mode, place)
            last = place == kind.length - 1
            if kind.keep or last or calls.tiles:
                yield calls.gather.at(ALL if single else 0, last, place)
            yield from calls.tiles
            if calls.send_recalled is not None:
                yield calls.send_recalled.at(False, mode, place)
            if calls.enqueue is not None:
                yield calls.enqueue.at(False, mode, place)
            if calls.send_long is not None:
                yield calls.send_long.at(False, mode, place)
            if calls.modulate is not None and (last or not self._packed.variant.makes_factors):
                yield calls.modulate.at(False, mode, place)

    def calls(
        self, buffers: Mapping[str, DeviceBuffer], number: int, host: HostBuffers, sizes: BatchSizes
    ) -> FusedCalls:
        """The calls of batch set ``number`` over ``buffers`` and ``host``."""
        from burstproof.engine.cuda.kernels.gather import GATHER_THREADS

        kernels, variant, neurons = self._kernels, self._packed.variant, self._packed.sizes.neurons
        window = host.ids.spec.count
        given = {
            "capacity": sizes.log,
            "chunks": self._chunks,
            "head": host.head,
            "answer": host.answer,
            "window_ids": host.ids,
            "window_potentials": host.potentials,
            "window": window,
        }
        values = Values(kernels.runtime, buffers, number, numbers_of(self._packed) | given)
        threads, overlapped = self._shape.threads, variant.overlapped
        gathering = max(1, min(-(-neurons // _SPAN), 8 * kernels.full_grid(threads)))
        return FusedCalls(
            begin=kernels.call("begin", 1, 1, values),
            stimulate=self._stimulate(values, sizes.stimulus),
            stimulate_from_host=self._stimulate(values.but(**host.table), min(sizes.stimulus, window)),
            burst=self._burst(values),
            gather=kernels.call("gather", gathering, GATHER_THREADS, values, overlapped),
            tiles=kernels.tiles(values, variant, neurons),
            send_recalled=kernels.recall(values) if variant.recalled and not variant.queues else None,
            enqueue=kernels.enqueue(values, overlapped) if variant.queues else None,
            send_long=self._send_long(values) if variant.long_rows else None,
            modulate=kernels.modulate(values, overlapped) if variant.extras.modulators else None,
        )

    def _burst(self, values: Values) -> Call:
        """A block for each chunk, and the one that keeps the books; or one for each owner of neurons."""
        queues, threads, overlapped = self._packed.variant.queues, self._shape.threads, self._packed.variant.overlapped
        if queues is None:
            return self._kernels.call("burst", 1 + self._chunks, threads, values, overlapped)
        call = self._kernels.call("burst", queues.owners, threads, values, overlapped)
        return replace(call, shared_bytes=queues.shared_bytes)

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles or delays need; does nothing without either."""
        given = numbers_of(self._packed) | {"sources": self._packed.sizes.neurons}
        values = Values(self._kernels.runtime, buffers, 0, given)
        self._kernels.sort_rows(values, stream)

    def send_ahead(self, buffers: Mapping[str, DeviceBuffer], ahead: int, stream: DeviceStream) -> None:
        """Have what arrives ``ahead`` bursts after the next one added to the slot."""
        values = Values(self._kernels.runtime, buffers, 0, numbers_of(self._packed))
        self._kernels.recall(values, ahead).queue(stream)
        stream.synchronize()

    def _send_long(self, values: Values) -> Call:
        blocks = self._kernels.full_grid(_LONG_ROW_BLOCK) // 4
        return self._kernels.call("send_long", blocks, _LONG_ROW_BLOCK, values, self._packed.variant.overlapped)

    def _stimulate(self, values: Values, most: int) -> Call:
        blocks = min(-(-most // _STIMULUS_BLOCK), self._kernels.full_grid(self._shape.threads))
        return self._kernels.call("stimulate", max(1, blocks), _STIMULUS_BLOCK, values)


@dataclass(frozen=True, eq=False)
class FusedCalls:
    """The calls of one batch set; ``tiles`` follow the gathering of each burst, what comes after them every burst."""

    begin: Call
    stimulate: Call
    stimulate_from_host: Call
    burst: Call
    gather: Call
    tiles: tuple[Call, ...]
    send_recalled: Call | None
    enqueue: Call | None
    send_long: Call | None
    modulate: Call | None


class FusedBatch:
    """One of the two sets of batch buffers, with its graphs; used for one batch at a time."""

    def __init__(
        self,
        runtime: DeviceRuntime,
        launches: FusedLaunches,
        packed: Packed,
        buffers: dict[str, DeviceBuffer],
        number: int,
        streams: Streams,
    ) -> None:
        self._runtime = runtime
        self._launches = launches
        self._variant = packed.variant
        self._buffers = buffers
        self._number = number
        self.sizes = packed.batch
        self._streams = streams
        self._use_graphs = packed.options.cuda.graphs and runtime.graphs
        self._staging = Staging(runtime)
        self._graphs: dict[BatchKind, DeviceGraph] = {}
        self._host = self._host_buffers(packed.sizes.neurons)
        self._calls = launches.calls(buffers, number, self._host, self.sizes)
        self._uploaded = runtime.event()
        self._finished = runtime.event()
        self._shown = False

    def _host_buffers(self, neurons: int) -> HostBuffers:
        window = max(1, min(neurons, _LARGEST_WINDOW))
        mapped, number = self._runtime.mapped, np.dtype(np.int64)
        ids = np.dtype(np.uint32)
        counts = (2, window, window, 2, window)
        dtypes: tuple[np.dtype[Any], ...] = (number, ids, np.dtype(self._variant.accumulator), number, ids)
        table = [BufferSpec(*column) for column in zip(TABLE, counts, dtypes, strict=True)]
        return HostBuffers(
            head=mapped(BufferSpec("head", 1, number)),
            answer=mapped(BufferSpec("answer", report_length(self.sizes.length), number)),
            ids=mapped(BufferSpec("window_ids", window, ids)),
            potentials=mapped(BufferSpec("window_potentials", window, np.dtype(np.float32))),
            table={spec.name: mapped(spec) for spec in table},
        )

    def _own(self, name: str) -> DeviceBuffer:
        return self._buffers[f"{name}.{self._number}"]

    def warm(self) -> None:
        """Launch every kernel once in a batch of no bursts, so that nothing is loaded during a capture."""
        self._host.head.array[0] = 0
        self._launches.queue(self._calls, BatchKind(2, True, True), self._streams.burst)
        self._streams.burst.synchronize()

    def submit(self, table: StimulusTable, keep: bool) -> None:
        """Queue a batch over ``table``; ``keep`` all its fired lists or only the last. Returns at once."""
        self._prepare_capacity(table)
        if not table.empty:
            for name, values in table_columns(table).items():
                self._runtime.upload(self._own(name), self._staging.filled(name, values), self._streams.upload)
            self._uploaded.record(self._streams.upload)
            self._streams.burst.wait(self._uploaded)
        self._host.head.array[0] = table.bursts
        self._run(BatchKind(1 if table.bursts == 1 else self.sizes.length, not table.empty, keep or table.bursts == 1))
        self._finished.record(self._streams.burst)

    @property
    def stream(self) -> DeviceStream:
        """The stream of its bursts."""
        return self._streams.burst

    def lend(self) -> HostBuffers:
        """Its host memory, for another kernel that leaves the ids of a burst's list there, and the list in the log."""
        self._shown = False
        return self._host

    def holds(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can take it: no more ids than its host memory has room for."""
        return max(len(stimulus.ids), len(stimulus.forced)) <= self._host.ids.spec.count

    def _prepare_capacity(self, table: StimulusTable) -> None:
        """Grow the stimulus buffers to hold ``table``; only a single burst can be larger than they are."""
        needed = max(len(table.ids), len(table.forced))
        if needed <= self.sizes.stimulus:
            return
        self.sizes = BatchSizes(self.sizes.length, needed, self.sizes.log)
        self._streams.burst.synchronize()
        self._buffers.update(self._runtime.allocate(stimulus_specs(self._number, self._variant, self.sizes)))
        self._calls = self._launches.calls(self._buffers, self._number, self._host, self.sizes)
        self._graphs.clear()

    def _run(self, kind: BatchKind) -> None:
        self._shown = kind.length == 1
        if not self._use_graphs:
            self._launches.queue(self._calls, kind, self._streams.burst)
            return
        if kind not in self._graphs:
            calls = self._calls
            self._graphs[kind] = self._runtime.capture(lambda stream: self._launches.queue(calls, kind, stream))
        self._graphs[kind].launch(self._streams.burst)

    def step(self, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst, while no other batch is under way: its list and its candidates.

        The device reads the stimulus from the host.
        """
        if stimulus is not None:
            offsets, ids, amounts, forced_offsets, forced = (self._host.table[name].array for name in TABLE)
            offsets[1], forced_offsets[1] = len(stimulus.ids), len(stimulus.forced)
            ids[: len(stimulus.ids)] = stimulus.ids
            amounts[: len(stimulus.ids)] = stimulus.amounts
            forced[: len(stimulus.forced)] = stimulus.forced
        self._run(BatchKind(1, stimulus is not None, True, fresh=True))
        if behind is not None:
            behind()
        self._streams.burst.synchronize()
        count, candidates = self._host.answer.array[REPORT_HEAD : REPORT_HEAD + 2].tolist()
        return self.fired(count), candidates

    def collect(self) -> BatchReport:
        """Wait for the batch and read its report."""
        self._finished.synchronize()
        return report_of(self._host.answer.array)

    def fired(self, count: int) -> FiredList:
        """The first ``count`` entries of the log: ids and potentials, ascending within each burst."""
        if self._shown and count <= self._host.ids.spec.count:
            return self._host.ids.array[:count].copy(), self._host.potentials.array[:count].copy()
        return self._staging.fired(count, self._own, self._runtime, self._streams.download)
