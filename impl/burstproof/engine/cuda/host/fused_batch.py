"""A batch of fused bursts: begun and answered through host memory that the device reaches, so nothing is copied."""

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
_SPAN = 8192
_CHUNKS_AT_ONCE = 4
"""Chunks whose rows a block puts off together, with a calendar in tiles."""


class BatchKind(NamedTuple):
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
        shard = whole(packed.variant)
        self._kernels = Kernels(runtime, shard, catalogue(shard), kernels_of(runtime, shard))
        self._numbers = numbers_of(packed)

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
        """The calls of batch set ``number`` over ``buffers``; ``head`` (1,) takes the bursts to do."""
        from burstproof.engine.cuda.kernels.gather import GATHER_THREADS

        kernels, variant, neurons = self._kernels, self._packed.variant, self._packed.sizes.neurons
        given = {**self._numbers, **window.given, "capacity": sizes.log, "chunks": self._chunks, "head": head}
        values = Values(kernels.runtime, buffers, number, given)
        threads, overlapped = self._shape.threads, variant.overlapped
        gathering = max(1, min(-(-neurons // _SPAN), 8 * kernels.full_grid(threads)))
        return FusedCalls(
            begin=kernels.call("begin", 1, 1, values),
            stimulate=self._stimulate(values, sizes.stimulus),
            stimulate_from_host=self._stimulate(values.but(**window.table), window.readers),
            burst=self._burst(values),
            gather=kernels.call("gather", gathering, GATHER_THREADS, values, overlapped),
            tiles=kernels.tiles(values, variant, neurons),
            following=tuple(self._following(values)),
            ending=(kernels.modulate(values, overlapped),) if variant.makes_factors else (),
        )

    def _following(self, values: Values) -> Iterator[Call]:
        """What every burst ends with."""
        kernels, variant = self._kernels, self._packed.variant
        if variant.queues:
            yield kernels.enqueue(values, variant.queues, variant.overlapped)
        elif variant.recalled:
            yield kernels.recall(values)
        if variant.extras.modulators and not variant.makes_factors:
            yield kernels.modulate(values, variant.overlapped)

    def _burst(self, values: Values) -> Call:
        """A block for each chunk or some, one for the books, and helpers; or as many owners as there is room for."""
        variant, threads = self._packed.variant, self._shape.threads
        queues, overlapped = variant.queues, variant.overlapped
        if queues is None:
            blocks = 1 + -(-self._chunks // (_CHUNKS_AT_ONCE if variant.calendar_tiles > 1 else 1))
            if variant.long_rows:
                per_multiprocessor = max(1, helping_threads(self._packed.sizes.neurons) // threads)
                blocks += self._kernels.runtime.multiprocessors * per_multiprocessor
            return self._kernels.call("burst", blocks, threads, values, overlapped)
        return self._kernels.own(values, queues, threads, overlapped)

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles or delays need; does nothing without either."""
        given = {**self._numbers, "sources": self._packed.sizes.neurons}
        self._kernels.sort_rows(Values(self._kernels.runtime, buffers, 0, given), stream)

    def send_ahead(self, buffers: Mapping[str, DeviceBuffer], ahead: int, stream: DeviceStream) -> None:
        """Have what arrives ``ahead`` bursts after the next one added to the slot."""
        values = Values(self._kernels.runtime, buffers, 0, self._numbers)
        self._kernels.recall(values, ahead).queue(stream)
        stream.synchronize()

    def _stimulate(self, values: Values, most: int) -> Call:
        blocks = min(-(-most // _STIMULUS_BLOCK), self._kernels.full_grid(self._shape.threads))
        return self._kernels.call("stimulate", max(1, blocks), _STIMULUS_BLOCK, values)


@dataclass(frozen=True, eq=False)
class FusedCalls:
    """The calls of a batch set; ``tiles`` follow each gathering, ``following`` every burst, ``ending`` the last."""

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
        """Launch every kernel once in a batch of no bursts, so that nothing is loaded during a capture."""
        self._head.array[0] = 0
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
        self._head.array[0] = table.bursts
        length = graph_length(table.bursts, self.sizes.length)
        self._run(BatchKind(length, not table.empty, keep or length == 1))
        self._finished.record(self._streams.burst)

    @property
    def stream(self) -> DeviceStream:
        """The stream of its bursts."""
        return self._streams.burst

    def lend(self) -> HostWindow:
        """Its host memory, for another kernel that leaves the ids of a burst's list there, and the list in the log."""
        self._shown = False
        return self._window

    def holds(self, stimulus: Stimulus | PackedStimulus) -> bool:
        """Whether ``step`` can take it: no more ids than its host memory has room for."""
        return self._window.holds(stimulus)

    def _prepare_capacity(self, table: StimulusTable) -> None:
        """Grow the stimulus buffers to hold ``table``; only a single burst can be larger than they are."""
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
        """Run one burst, while no other batch is under way: its list and its candidates.

        The device reads the stimulus from the host.
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
        """The first ``count`` entries of the log: ids and potentials, ascending within each burst."""
        if self._shown and count <= self._window.size:
            return self._window.fired(count)
        return self._staging.fired(count, self._own, self._runtime, self._streams.download)
