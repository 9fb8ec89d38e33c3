"""The kernels of a train of fused bursts, with grids, blocks and arguments fixed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.launches import Call, SetView
from burstproof.engine.cuda.kernels.control import COUNTS, FRESH, LISTS
from burstproof.engine.cuda.kernels.order import PARAMETERS
from burstproof.engine.cuda.plan.buffers import TrainSizes, chunks_of, slot_stride
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.streaming import packed_contributions
from burstproof.engine.cuda.plan.variant import Variant

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.catalogue import KernelSpec

_THREADS_PER_MULTIPROCESSOR = 2048
_STIMULUS_BLOCK = 256
_SPAN = 8192
TABLE = ("stimulus_offsets", "stimulus_ids", "stimulus_amounts", "forced_offsets", "forced_ids")
"""Buffers of a train's stimulus, in the order of the kernel's arguments."""
_CHUNKS = ("chunk_counts", "span_counts", "chunk_ids", "chunk_potentials")
_TILE_BLOCK = 256
_LONG_ROW_BLOCK = 256


@dataclass(frozen=True, eq=False)
class HostBuffers:
    """Host memory that the device reaches too, of one train set.

    ``head`` (1,) takes the bursts to do, ``answer`` the report, ``ids`` and ``potentials`` a single burst's list.
    ``table`` holds the columns of a single burst's stimulus, by the names of the train's own.
    """

    head: DeviceBuffer
    answer: DeviceBuffer
    ids: DeviceBuffer
    potentials: DeviceBuffer
    table: Mapping[str, DeviceBuffer]


@dataclass(frozen=True)
class TrainKind:
    """What a captured train is made for: its length, whether it has stimulus, whether all fired lists are kept.

    ``fresh``: one burst while no other train is under way: no kernel begins it, and its stimulus lies on the host.
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


def _catalogue(variant: Variant) -> tuple[KernelSpec, ...]:
    from burstproof.engine.cuda.kernels.catalogue import catalogue

    return catalogue(variant)


class FusedLaunches:
    """Makes the calls of trains of fused bursts."""

    def __init__(self, runtime: DeviceRuntime, packed: Packed) -> None:
        assert packed.variant.fused is not None
        self._runtime = runtime
        self._shape = packed.variant.fused
        self._packed = packed
        self._chunks = chunks_of(packed.sizes.neurons, packed.variant)
        self._kernels = {s.name: runtime.kernel(s.function, s.signature) for s in _catalogue(packed.variant)}

    def queue(self, calls: FusedCalls, kind: TrainKind, stream: DeviceStream) -> None:
        """Queue a train; allocates and synchronises nothing, so it can be captured."""
        for call in self._train(calls, kind):
            self._runtime.launch(call.kernel, call.grid, call.block, stream, call.arguments, call.overlapped)

    def _train(self, calls: FusedCalls, kind: TrainKind) -> Iterator[Call]:
        single = kind.length == 1
        if not kind.fresh:
            yield calls.begin(1 if single else 0, kind.keep)
        for place in range(kind.length):
            if kind.stimulated:
                yield (calls.stimulating_from_host if kind.fresh else calls.stimulating).at(kind.mode, place)
            yield calls.fused(kind.stimulated, kind.mode, place)
            last = place == kind.length - 1
            if kind.keep or last or calls.sending:
                yield calls.gather(single, last, place)
            yield from calls.sending
            yield from calls.long_rows(place)

    def calls(
        self, buffers: Mapping[str, DeviceBuffer], number: int, host: HostBuffers, sizes: TrainSizes
    ) -> FusedCalls:
        """The calls of train set ``number`` over ``buffers`` and ``host``."""
        own = SetView(buffers, number)
        return FusedCalls(
            self._kernels,
            begin_arguments=(own["control"], own.set("report"), host.head),
            stimulating=self._stimulate(own, sizes, {name: own.set(name) for name in TABLE}),
            stimulating_from_host=self._stimulate(own, sizes, host.table),
            fused_arguments=self._fused_arguments(own),
            fused_grid=self._fused_grid(),
            threads=self._shape.threads,
            gather_arguments=self._gather_arguments(own, host),
            gather_grid=max(1, min(-(-self._packed.sizes.neurons // _SPAN), 8 * self._full_grid())),
            sending_long=self._send_long(own) if self._packed.variant.long_rows else None,
            overlapped=self._packed.variant.overlapped,
            capacity=sizes.log,
            common=self._common(),
            sending=tuple(self._sending(own)),
        )

    def _common(self) -> tuple[Any, ...]:
        """The first value of every parameter, for those that are one for all neurons."""
        neurons = self._packed.layout.neurons
        columns = (getattr(neurons, name) for name in PARAMETERS)
        firsts = (column[0] if len(column) else column.dtype.type(0) for column in columns)
        return tuple(np.int32(value) if isinstance(value, np.uint16) else value for value in firsts)

    def _sending(self, own: SetView) -> Iterator[Call]:
        """What sends the rows of the gathered list where the fused burst sends none."""
        variant, neurons = self._packed.variant, self._packed.sizes.neurons
        if not variant.tiles:
            return
        lists = (own["cursors"], own["amounts"])
        rows = (*(own[name] for name in ("targets", "contributions", "delays")), self._words(own), own["flags"])
        opened = (own["offsets"], own["contributions"], own["clamped_sources"], *lists)
        grid = self._runtime.multiprocessors * (_THREADS_PER_MULTIPROCESSOR // _TILE_BLOCK)
        yield Call(self._kernels["open_rows"], grid, _TILE_BLOCK, (own["control"], own.set("log_ids"), *opened))
        for tile in range(variant.tiles):
            end = np.uint32((tile + 1) * neurons // variant.tiles)
            arguments = (own["control"], *lists, *rows, end, *self._ring)
            yield Call(self._kernels["send_tile"], grid, _TILE_BLOCK, arguments)

    def _send_long(self, own: SetView) -> Call:
        names = ("piece_counts", "pieces", "offsets", "targets")
        rows = (*(own[name] for name in names), *self._entries(own))
        arguments = (own.set("report"), *rows, self._words(own), own["flags"], *self._ring)
        grid = self._runtime.multiprocessors * (_THREADS_PER_MULTIPROCESSOR // _LONG_ROW_BLOCK)
        return Call(self._kernels["send_long"], grid, _LONG_ROW_BLOCK, arguments)

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles need; does nothing without tiles."""
        if not self._packed.variant.tiles:
            return
        from burstproof.engine.cuda.kernels.tiles import SORT_THREADS

        rows = tuple(buffers[name] for name in ("offsets", "targets", "contributions", "delays"))
        grid = self._runtime.multiprocessors * (_THREADS_PER_MULTIPROCESSOR // SORT_THREADS)
        neurons = np.uint32(self._packed.sizes.neurons)
        self._runtime.launch(self._kernels["sort_rows"], grid, SORT_THREADS, stream, (*rows, neurons))
        stream.synchronize()

    def _full_grid(self) -> int:
        return self._runtime.multiprocessors * max(1, _THREADS_PER_MULTIPROCESSOR // self._shape.threads)

    def _fused_grid(self) -> int:
        """A block for each chunk, and the one that keeps the books."""
        return 1 + self._chunks

    def _stimulate(self, own: SetView, sizes: TrainSizes, table: Mapping[str, DeviceBuffer]) -> Call:
        shared = tuple(own[name] for name in ("forced", "sums", "outside", "flags"))
        limits = (np.uint32(self._packed.sizes.neurons), np.int64(sizes.log))
        heads = (own["control"], own.set("report"), own["tallies"])
        arguments = (*heads, *(table[name] for name in TABLE), *shared, *self._ring, *limits)
        most = min(sizes.stimulus, table["stimulus_ids"].spec.count)
        grid = max(1, min(-(-most // _STIMULUS_BLOCK), self._full_grid()))
        return Call(self._kernels["stimulate"], grid, _STIMULUS_BLOCK, arguments)

    def _fused_arguments(self, own: SetView) -> tuple[Any, ...]:
        packed = self._packed
        lists = ("tallies", "forced", *_CHUNKS, "sums")
        state = ("outside", "flags", "potentials", "countdowns", "counts", "marks", "accumulates")
        long_rows = ("clamped_sources", "piece_counts", "pieces")
        return (
            own["control"],
            own.set("report"),
            *(own[name] for name in lists),
            self._words(own),
            *(own[name] for name in (*state, *PARAMETERS, "offsets", "targets")),
            *self._entries(own),
            *(own[name] for name in long_rows),
            packed.fixed_point.unit,
            np.int64(packed.layout.power_neuron),
            packed.variant.accumulator(packed.layout.power_amount),
            np.uint32(packed.sizes.neurons),
            *self._ring,
        )

    def _gather_arguments(self, own: SetView, host: HostBuffers) -> tuple[Any, ...]:
        chunks = tuple(own[name] for name in _CHUNKS)
        lists = (own.set("log_ids"), own.set("log_potentials"), host.ids, host.potentials, host.answer)
        limits = (np.uint32(self._chunks), np.int64(host.ids.spec.count))
        return (own["control"], own.set("report"), own["tallies"], *chunks, *lists, *limits)

    @property
    def _ring(self) -> tuple[np.uint32, np.uint32]:
        """Cells from one slot to the next, and slots."""
        stride = slot_stride(self._packed.sizes.neurons, self._packed.variant)
        return np.uint32(stride), np.uint32(self._packed.sizes.ring)

    def _entries(self, own: SetView) -> tuple[DeviceBuffer, DeviceBuffer]:
        """Contributions and delays as the fused burst reads them: from host memory in words of several."""
        variant, words = self._packed.variant, self._runtime.words
        contributions, delays = own["contributions"], own["delays"]
        if variant.streamed and packed_contributions(variant):
            contributions = words(contributions)
        return contributions, words(delays) if variant.streamed and variant.delays else delays

    def _words(self, own: SetView) -> DeviceBuffer:
        """The FCL as what contributions are added to."""
        return self._runtime.words(own["sums"]) if self._packed.variant.packed_sums else own["sums"]


@dataclass(frozen=True, eq=False)
class FusedCalls:
    """The calls of one train set; ``sending`` follow the gathering of each burst, ``sending_long`` every burst."""

    kernels: Mapping[str, Any]
    begin_arguments: tuple[Any, ...]
    stimulating: Call
    stimulating_from_host: Call
    fused_arguments: tuple[Any, ...]
    fused_grid: int
    threads: int
    gather_arguments: tuple[Any, ...]
    gather_grid: int
    sending_long: Call | None
    overlapped: bool
    capacity: int
    common: tuple[Any, ...]
    sending: tuple[Call, ...]

    def begin(self, limit: int, keep: bool) -> Call:
        """Start of a train of ``limit`` bursts, 0 for what the host says."""
        return Call(self.kernels["begin"], 1, 1, (*self.begin_arguments, np.int64(limit), np.int64(keep)))

    def fused(self, stimulated: bool, mode: int, place: int) -> Call:
        """The burst at ``place`` of a train."""
        switches = (np.uint32(stimulated), np.uint32(mode), np.uint32(place))
        arguments = (*self.fused_arguments, np.int64(self.capacity), *switches, *self.common)
        return Call(self.kernels["fused"], self.fused_grid, self.threads, arguments, self.overlapped)

    def gather(self, direct: bool, final: bool, place: int) -> Call:
        """The fired list of the last burst, after the one at ``place``."""
        from burstproof.engine.cuda.kernels.gather import GATHER_THREADS

        arguments = (*self.gather_arguments, np.uint32(direct), np.uint32(final), np.uint32(place))
        return Call(self.kernels["gather"], self.gather_grid, GATHER_THREADS, arguments, self.overlapped)

    def long_rows(self, place: int) -> Iterator[Call]:
        """What sends the long rows of the burst at ``place``, if there are any."""
        if self.sending_long is not None:
            yield self.sending_long.at(place)
