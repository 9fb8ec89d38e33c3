"""The kernels of a batch of fused bursts, with grids, blocks and arguments fixed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.args import Stimulus
from burstproof.engine.cuda.host.launches import Call, Kernels, Values, numbers_of
from burstproof.engine.cuda.kernels.control import COUNTS, FRESH, LISTS
from burstproof.engine.cuda.plan.buffers import BatchSizes, chunks_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.shard_variant import whole

_STIMULUS_BLOCK = 256
_SPAN = 8192
TABLE = Stimulus._fields
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
                yield calls.gather.at(single, last, place)
            yield from calls.tiles
            if calls.send_long is not None:
                yield calls.send_long.at(False, mode, place)

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
        of_long_rows, block = kernels.full_grid(_LONG_ROW_BLOCK), _LONG_ROW_BLOCK
        return FusedCalls(
            begin=kernels.call("begin", 1, 1, values),
            stimulate=self._stimulate(values, sizes.stimulus),
            stimulate_from_host=self._stimulate(values.but(**host.table), min(sizes.stimulus, window)),
            # A block for each chunk, and the one that keeps the books.
            burst=kernels.call("burst", 1 + self._chunks, threads, values, overlapped),
            gather=kernels.call("gather", gathering, GATHER_THREADS, values, overlapped),
            tiles=kernels.tiles(values, variant, neurons),
            send_long=kernels.call("send_long", of_long_rows, block, values) if variant.long_rows else None,
        )

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles need; does nothing without tiles."""
        values = Values(self._kernels.runtime, buffers, 0, {"sources": self._packed.sizes.neurons})
        self._kernels.sort_rows(values, stream)

    def _stimulate(self, values: Values, most: int) -> Call:
        blocks = min(-(-most // _STIMULUS_BLOCK), self._kernels.full_grid(self._shape.threads))
        return self._kernels.call("stimulate", max(1, blocks), _STIMULUS_BLOCK, values)


@dataclass(frozen=True, eq=False)
class FusedCalls:
    """The calls of one batch set; ``tiles`` follow the gathering of each burst, ``send_long`` every burst."""

    begin: Call
    stimulate: Call
    stimulate_from_host: Call
    burst: Call
    gather: Call
    tiles: tuple[Call, ...]
    send_long: Call | None
