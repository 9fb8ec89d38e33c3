"""Batches of fused bursts. Batch length and report pass through mapped host memory, so neither needs a copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceGraph, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.batch import Staging, Streams, report_of, table_columns
from burstproof.engine.cuda.host.compiling import kernels_of
from burstproof.engine.cuda.host.devices import BatchReport, Behind, FiredList
from burstproof.engine.cuda.host.launches import Call, Kernels, Values, numbers_of
from burstproof.engine.cuda.host.stimulus_table import StimulusTable
from burstproof.engine.cuda.host.window import HostWindow
from burstproof.engine.cuda.kernels.control import COUNTS, FRESH, LISTS, REPORT_HEAD, report_length
from burstproof.engine.cuda.plan.block_size import helping_threads
from burstproof.engine.cuda.plan.buffers import BatchSizes, chunks_of, graph_length, stimulus_specs
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.shard_variant import whole
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import Stimulus

_STIMULUS_BLOCK = 256
_GATHER_SPAN = 8192
"""Neurons whose firings a block gathers at a time (``kernels.gather``)."""
_CHUNKS_PER_BLOCK = 4
"""With a calendar in tiles: chunks per block, whose contributions it puts into the calendar together."""


class BatchKind(NamedTuple):
    """The kind of a batch, one CUDA graph each: its length, whether it has stimulus, whether it keeps all fired lists.

    ``fresh``: one burst while no batch is in flight; it needs no ``begin`` kernel and reads its stimulus from the host.
    """

    length: int
    stimulated: bool
    keep: bool
    fresh: bool = False

    @property
    def mode(self) -> int:
        """How the kernels steer the bursts (``kernels.control``)."""
        if self.fresh:
            return FRESH
        return LISTS if self.keep else COUNTS


class FusedLaunches:
    """Makes and queues the kernel launches of batches of fused bursts."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed) -> None:
        from burstproof.engine.cuda.kernels.catalogue import catalogue

        assert packed.variant.fused is not None
        self._shape = packed.variant.fused
        self._packed = packed
        self._chunks = chunks_of(packed.sizes.neurons, packed.variant)
        shard = whole(packed.variant)
        self._kernels = Kernels(runtime, shard, catalogue(shard), kernels_of(runtime, shard))
        self._numbers = numbers_of(packed)

    def queue(self, calls: FusedCalls, kind: BatchKind, stream: DeviceStream) -> None:
        """Queue a batch; capturable, since it neither allocates nor synchronises."""
        for call in self._batch(calls, kind):
            call.queue(stream)

    def _batch(self, calls: FusedCalls, kind: BatchKind) -> Iterator[Call]:
        """The launches of a batch, in order."""
        single, mode = kind.length == 1, kind.mode
        if not kind.fresh:
            yield calls.begin.at(1 if single else 0, kind.keep)
        for place in range(kind.length):
            if kind.stimulated:
                yield (calls.stimulate_from_host if kind.fresh else calls.stimulate).at(True, mode, place)
            yield calls.burst.at(kind.stimulated, mode, place)
            last = place == kind.length - 1
            if kind.keep or last or calls.tiles:
                yield calls.gather.at(single, last, place)
            yield from calls.tiles
            for call in calls.following + (calls.ending if last else ()):
                yield call.at(False, mode, place)

    def calls(
        self,
        buffers: Mapping[str, DeviceBuffer],
        number: int,
        head: DeviceBuffer,
        window: HostWindow,
        sizes: BatchSizes,
    ) -> FusedCalls:
        """The calls of batch set ``number`` over ``buffers``; ``head`` (1,) holds the number of bursts to do."""
        from burstproof.engine.cuda.kernels.gather import GATHER_THREADS

        kernels, variant, neurons = self._kernels, self._packed.variant, self._packed.sizes.neurons
        given = {**self._numbers, **window.given, "capacity": sizes.log, "chunks": self._chunks, "head": head}
        values = Values(kernels.runtime, buffers, number, given)
        threads, overlapped = self._shape.threads, variant.overlapped
        gather_blocks = max(1, min(-(-neurons // _GATHER_SPAN), 8 * kernels.full_grid(threads)))
        return FusedCalls(
            begin=kernels.call("begin", 1, 1, values),
            stimulate=self._stimulate(values, sizes.stimulus),
            stimulate_from_host=self._stimulate(values.replacing(**window.table), window.readers),
            burst=self._burst(values),
            gather=kernels.call("gather", gather_blocks, GATHER_THREADS, values, overlapped),
            tiles=kernels.tiles(values, variant, neurons),
            following=tuple(self._following(values)),
            ending=(kernels.modulate(values, overlapped),) if variant.makes_factors else (),
        )

    def _following(self, values: Values) -> Iterator[Call]:
        """The kernels that follow every burst."""
        kernels, variant = self._kernels, self._packed.variant
        if variant.queues:
            yield kernels.enqueue(values, variant.queues, variant.overlapped)
        elif variant.recalled:
            yield kernels.recall(values)
        if variant.extras.modulators and not variant.makes_factors:
            yield kernels.modulate(values, variant.overlapped)

    def _burst(self, values: Values) -> Call:
        """The burst kernel: with queues blocks of owners, else one that steers, those of chunks and of long rows."""
        variant, threads = self._packed.variant, self._shape.threads
        if variant.queues is not None:
            return self._kernels.owners(values, variant.queues, threads, variant.overlapped)
        chunks_per_block = _CHUNKS_PER_BLOCK if variant.calendar_tiles > 1 else 1
        blocks = 1 + -(-self._chunks // chunks_per_block)
        if variant.long_rows:
            per_multiprocessor = max(1, helping_threads(self._packed.sizes.neurons) // threads)
            blocks += self._kernels.runtime.multiprocessors * per_multiprocessor
        return self._kernels.call("burst", blocks, threads, values, variant.overlapped)

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Sort the entries of every row for tiles or delays; does nothing without either."""
        given = {**self._numbers, "sources": self._packed.sizes.neurons}
        self._kernels.sort_rows(Values(self._kernels.runtime, buffers, 0, given), stream)

    def send_ahead(self, buffers: Mapping[str, DeviceBuffer], ahead: int, stream: DeviceStream) -> None:
        """Add to the slot what arrives ``ahead`` bursts after the next one, and wait for it."""
        values = Values(self._kernels.runtime, buffers, 0, self._numbers)
        self._kernels.recall(values, ahead).queue(stream)
        stream.synchronize()

    def _stimulate(self, values: Values, ids: int) -> Call:
        """The stimulus kernel with a thread for each of ``ids`` ids, as far as the device holds them at once."""
        blocks = min(-(-ids // _STIMULUS_BLOCK), self._kernels.full_grid(self._shape.threads))
        return self._kernels.call("stimulate", max(1, blocks), _STIMULUS_BLOCK, values)


@dataclass(frozen=True, eq=False)
class FusedCalls:
    """The calls of a batch set: ``tiles`` after each gather, ``following`` after each burst, ``ending`` at the end."""

    begin: Call
    stimulate: Call
    stimulate_from_host: Call
    burst: Call
    gather: Call
    tiles: tuple[Call, ...]
    following: tuple[Call, ...]
    ending: tuple[Call, ...]


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
        self._head = runtime.mapped(BufferSpec("head", 1, np.dtype(np.int64)))
        self._window = HostWindow(runtime, packed, report_length(self.sizes.length))
        self._calls = self._make_calls()
        self._uploaded = runtime.event()
        self._finished = runtime.event()
        self._shown = False

    def _make_calls(self) -> FusedCalls:
        return self._launches.calls(self._buffers, self._number, self._head, self._window, self.sizes)

    def _own(self, name: str) -> DeviceBuffer:
        return self._buffers[f"{name}.{self._number}"]

    def warm(self) -> None:
        """Launch every kernel once, in a batch of 0 bursts: kernels must not be loaded during a capture."""
        self._head.array[0] = 0
        self._launches.queue(self._calls, BatchKind(2, True, True), self._streams.burst)
        self._streams.burst.synchronize()

    def submit(self, table: StimulusTable, keep: bool) -> None:
        """Queue a batch with the stimulus of ``table``; ``keep`` all fired lists, or only the last. Returns at once."""
        self._prepare_capacity(table)
        if not table.empty:
            for name, values in table_columns(table).items():
                self._runtime.upload(self._own(name), self._staging.filled(name, values), self._streams.upload)
            self._uploaded.record(self._streams.upload)
            self._streams.burst.wait(self._uploaded)
        self._head.array[0] = table.bursts
        length = graph_length(table.bursts, self.sizes.length)
        self._run(BatchKind(length, not table.empty, keep or length == 1))
        self._finished.record(self._streams.burst)

    @property
    def stream(self) -> DeviceStream:
        """The stream of the bursts."""
        return self._streams.burst

    def lend(self) -> HostWindow:
        """The host window, lent to another kernel, which writes a burst's ids there and its fired list to the log."""
        self._shown = False
        return self._window

    def holds(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can take ``stimulus``: its ids fit into the host window."""
        return self._window.holds(stimulus)

    def _prepare_capacity(self, table: StimulusTable) -> None:
        """Grow the stimulus buffers to hold ``table``. Only a table of one burst can exceed them."""
        needed = max(len(table.ids), len(table.forced))
        if needed <= self.sizes.stimulus:
            return
        self.sizes = BatchSizes(self.sizes.length, needed, self.sizes.log)
        self._streams.burst.synchronize()
        self._buffers.update(self._runtime.allocate(stimulus_specs(self._number, self._variant, self.sizes)))
        self._calls = self._make_calls()
        self._graphs.clear()

    def _run(self, kind: BatchKind) -> None:
        self._shown = kind.length == 1
        if not self._use_graphs:
            self._launches.queue(self._calls, kind, self._streams.burst)
            return
        graph = self._graphs.get(kind)
        if graph is None:
            graph = self._runtime.capture(lambda stream: self._launches.queue(self._calls, kind, stream))
            self._graphs[kind] = graph
        graph.launch(self._streams.burst)

    def step(self, stimulus: PackedStimulus | None, behind: Behind | None = None) -> tuple[FiredList, int]:
        """Run one burst while no batch is in flight; return its fired list and candidate count.

        The device reads the stimulus from the host window.
        """
        if stimulus is not None:
            self._window.put(stimulus)
        self._run(BatchKind(1, stimulus is not None, True, fresh=True))
        if behind is not None:
            behind()
        self._streams.burst.synchronize()
        count, candidates = self._window.answer[REPORT_HEAD : REPORT_HEAD + 2].tolist()
        return self.fired(count), candidates

    def collect(self) -> BatchReport:
        """Wait for the batch and read its report."""
        self._finished.synchronize()
        return report_of(self._window.answer)

    def fired(self, count: int) -> FiredList:
        """Ids and potentials of the first ``count`` entries of the log; ids ascend within each burst."""
        if self._shown and count <= self._window.size:
            return self._window.fired(count)
        return self._staging.fired(count, self._own, self._streams.download)
