"""Kernel launches of a burst in order; grid, block and arguments are fixed once.

A launch names a kernel. Its arguments follow from the kernel's annotations (``engine.cuda.args``): each field takes the
value of its name from ``Values``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.fields import Field, bind, fields_of, made
from burstproof.engine.cuda.host.compiling import compiled_once
from burstproof.engine.cuda.plan.block_size import ENQUEUE_BLOCKS, ENQUEUE_THREADS, WARP
from burstproof.engine.cuda.plan.buffers import (
    bucket_room,
    calendar_room,
    calendar_shift,
    largest_excitability,
    queue_room,
    ring_slots,
    slot_stride,
)
from burstproof.engine.cuda.plan.histories import period_of
from burstproof.engine.cuda.plan.packed import Packed
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.streaming import pieces_of
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant

if TYPE_CHECKING:
    from burstproof.engine.cuda.kernels.spec import KernelSpec

_THREADS_PER_MULTIPROCESSOR = 2048
_REGISTERS_PER_MULTIPROCESSOR = 65536
_TILE_BLOCK = 256
_RECALL_BLOCK = 256
_MODULATE_BLOCK = 128
_COUNT_WAVES = 4
"""Waves of the kernel that counts candidates ahead of the dynamics."""


@dataclass(frozen=True, eq=False)
class Call:
    """A kernel with all that a launch needs; ``last`` is the type of the last argument if ``at`` has to supply it."""

    runtime: DeviceRuntime
    kernel: Any
    grid: int
    block: int
    arguments: list[Any]
    overlapped: bool = False
    last: type | None = None
    cooperative: bool = False
    shared_bytes: int = 0

    def at(self, *numbers: int) -> Call:
        """The same call with its last argument made of these numbers."""
        assert self.last is not None
        return replace(self, arguments=[*self.arguments, *self.runtime.pack((made(self.last, *numbers),))])

    def queue(self, stream: DeviceStream) -> None:
        """Launch the kernel."""
        attributes = self.overlapped, self.cooperative, self.shared_bytes
        self.runtime.launch(self.kernel, self.grid, self.block, stream, self.arguments, *attributes)


def numbers_of(packed: Packed) -> dict[str, Any]:
    """The scalar arguments of a packed network, by field name."""
    layout, point, sizes, variant = packed.layout, packed.fixed_point, packed.sizes, packed.variant
    columns = {name: getattr(layout.neurons, name) for name in variant.uniform}
    return {
        **{name: column[0] if len(column) else 0 for name, column in columns.items()},
        "capacity": packed.batch.log,
        "neurons": sizes.neurons,
        "list_room": sizes.neurons,
        "bits": max(1, sizes.neurons.bit_length()),
        "stride": slot_stride(sizes.neurons, variant),
        "ring": ring_slots(sizes, variant),
        "queue_room": queue_room(sizes, variant),
        "bucket_room": bucket_room(sizes, variant),
        "common_contribution": sizes.common_contribution,
        "calendar_room": calendar_room(sizes, variant),
        "calendar_shift": calendar_shift(sizes, variant),
        "unit": point.unit,
        "largest_excitability": largest_excitability(layout.neurons.excitabilities),
        "scale": point.scale,
        "clamp": point.clamp,
        "clamp_float": point.clamp_float,
        "power_neuron": layout.power_neuron,
        "power_amount": layout.power_amount,
        "longest": packed.longest_window,
        "period": period_of(packed.longest_window),
        "rules": sizes.rules,
        "loaded": packed.feature_plan.loaded if packed.feature_plan is not None else sizes.neurons,
        "class_count": sizes.features.classes,
        "modulator_count": sizes.features.modulators,
        "rule_count": sizes.features.rules,
        "pair_count": sizes.features.pairs,
    }


class Values:
    """Kernel arguments by field name: a value in ``given``, else a buffer of the batch set, else of the engine."""

    def __init__(
        self, runtime: DeviceRuntime, buffers: Mapping[str, DeviceBuffer], number: int, given: Mapping[str, Any]
    ) -> None:
        self._runtime = runtime
        self._buffers = buffers
        self._number = number
        self._given = dict(given)

    def replacing(self, **given: Any) -> Values:
        """A copy with these values replaced."""
        return Values(self._runtime, self._buffers, self._number, {**self._given, **given})

    def number(self, name: str) -> int:
        """Number ``name`` in ``given``."""
        return int(self._given[name])

    def __call__(self, name: str, field: Field) -> Any:
        """The argument for ``field`` ``name``; a buffer of another dtype is passed as int32 words."""
        value = self._given[name] if name in self._given else self._buffer(name)
        if not field.array:
            return field.dtype.type(value)
        if not isinstance(value, DeviceBuffer):
            return value
        return (value if value.spec.dtype == field.dtype else self._runtime.words(value)).view

    def _buffer(self, name: str) -> DeviceBuffer:
        of_set = self._buffers.get(f"{name}.{self._number}")
        return of_set if of_set is not None else self._buffers["sums" if name == "cells" else name]


class Kernels:
    """Compiled kernels by name; makes their launches."""

    def __init__(
        self,
        runtime: DeviceRuntime,
        variant: Variant | ShardVariant | None,
        specs: Sequence[KernelSpec],
        compiled: Mapping[str, Any] | None = None,
    ) -> None:
        self.runtime = runtime
        self._variant = variant
        self._functions = {spec.name: spec.function for spec in specs}
        self._compiled = compiled or {spec.name: compiled_once(runtime, spec) for spec in specs}

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def call(self, name: str, grid: int, block: int, values: Values, overlapped: bool = False) -> Call:
        """A launch of kernel ``name``."""
        function = self._functions[name]
        *_, last = fields_of(function, self._variant).values()
        arguments = self.runtime.pack(bind(function, self._variant, values))
        tuple_at_call = None if isinstance(last, Field) else last
        return Call(self.runtime, self._compiled[name], grid, block, arguments, overlapped, tuple_at_call)

    def cooperative_blocks(self, name: str, block: int, threads: int) -> int:
        """Largest cooperative grid of kernel ``name`` with at most ``threads`` threads on a multiprocessor."""
        resident = self.runtime.resident_blocks(self._compiled[name], block)
        return self.runtime.multiprocessors * max(1, min(resident, threads // block))

    def full_grid(self, block: int) -> int:
        """Blocks of ``block`` threads that fill the device, if registers allow 2048 threads on a multiprocessor."""
        return self.runtime.multiprocessors * max(1, _THREADS_PER_MULTIPROCESSOR // block)

    def spread(self, name: str, threads: int, block: int, values: Values, waves: int = 1) -> Call:
        """A launch of about ``threads`` threads, at most ``waves`` times ``full_grid``."""
        grid = max(1, min(-(-threads // block), waves * self.full_grid(block)))
        return self.call(name, grid, block, values)

    def tiles(self, values: Values, variant: Variant, neurons: int) -> tuple[Call, ...]:
        """The kernels that deliver the rows of a fired list tile by tile; none without tiles."""
        if not variant.tiles:
            return ()
        block = _TILE_BLOCK
        grid = self.full_grid(block)
        ends = ((tile + 1) * neurons // variant.tiles for tile in range(variant.tiles))
        sent = (self.call("send_tile", grid, block, values.replacing(tile_end=end)) for end in ends)
        return (self.call("open_rows", grid, block, values), *sent)

    def recall(self, values: Values, ahead: int | None = None) -> Call:
        """The kernel that delivers from kept fired lists what arrives in the next burst, or ``ahead`` bursts later."""
        grid = self.full_grid(_RECALL_BLOCK)
        if ahead is None:
            return self.call("send_recalled", grid, _RECALL_BLOCK, values)
        return self.call("send_ahead", grid, _RECALL_BLOCK, values.replacing(ahead=ahead))

    def enqueue(self, values: Values, queues: OwnerQueues, overlapped: bool) -> Call:
        """The kernel that sorts contributions into the queues of their owners."""
        blocks = self.runtime.multiprocessors * ENQUEUE_BLOCKS
        call = self.call("enqueue", blocks, ENQUEUE_THREADS, values, overlapped)
        return replace(call, shared_bytes=queues.bin_bytes)

    def owners(self, values: Values, queues: OwnerQueues, threads: int, overlapped: bool) -> Call:
        """The burst kernel with queues: a block for each owner, at most as many as are resident at once."""
        blocks = min(queues.owners, self.resident("burst", threads))
        call = self.call("burst", blocks, threads, values, overlapped)
        return replace(call, shared_bytes=queues.shared_bytes)

    def modulate(self, values: Values, overlapped: bool = False) -> Call:
        """The kernel that turns the modulators' signals of a burst into the factors of the next one."""
        return self.call("modulate", 1, _MODULATE_BLOCK, values, overlapped)

    def resident(self, name: str, threads: int) -> int:
        """Blocks of kernel ``name`` that registers let reside; each block loops over chunks and reads ahead."""
        if self.runtime.simulated:
            return 1
        registers = -(-self.runtime.registers(self._compiled[name]) // 8) * 8  # allocated in units of 8 a thread
        by_registers = _REGISTERS_PER_MULTIPROCESSOR // (registers * threads)
        return self.runtime.multiprocessors * max(1, min(_THREADS_PER_MULTIPROCESSOR // threads, by_registers))

    def dynamics(self, shard: ShardVariant, packed: Packed, values: Values) -> Call:
        """The pass over all neurons; the block counter, above two neuron counts in one 64-bit word, limits its grid."""
        chunks = -(-packed.sizes.neurons // shard.chunk)
        countable = (1 << (64 - 2 * values.number("bits"))) - 1
        grid = max(1, min(chunks, countable, self.resident("dynamics", shard.threads)))
        return self.call("dynamics", grid, shard.threads, values, shard.overlapped)

    def sort_rows(self, values: Values, stream: DeviceStream) -> None:
        """Sort the entries of every row for tiles or delays; does nothing without either."""
        if "sort_rows" not in self:
            return
        from burstproof.engine.cuda.kernels.tiles import SORT_THREADS

        self.call("sort_rows", self.full_grid(SORT_THREADS), SORT_THREADS, values).queue(stream)
        stream.synchronize()


@dataclass(frozen=True, eq=False)
class BurstCalls:
    """The launches of one shard for one burst of a batch.

    Other shards wait for what ``count_ahead`` and ``dynamics`` publish at their end, so each phase is queued for all
    shards of a device before the next phase is queued for any.
    """

    stimulate: Call
    count_ahead: Call | None = None
    dynamics: tuple[Call, Call] | None = None
    """Without stimulus, and with."""
    delivery: tuple[Call, ...] = ()
    merged: Call | None = None
    """The burst in one kernel, except for the stimulus. Both still need ``at(stimulated, mode, place)``."""
    following: tuple[Call, ...] = ()
    """Kernels after ``merged``, which wait for other shards; they need ``at(False, mode, place)``."""

    def phases(self, stimulated: bool, mode: int = 0, place: int = 0) -> tuple[tuple[Call, ...], ...]:
        """The four phases: stimulus, counting ahead, dynamics (or the merged burst), delivery."""
        if self.merged is not None:
            stimulus = (self.stimulate.at(True, mode, place),) if stimulated else ()
            following = tuple(call.at(False, mode, place) for call in self.following)
            return stimulus, (), (self.merged.at(stimulated, mode, place),), following
        assert self.dynamics is not None
        without_stimulus, with_stimulus = self.dynamics
        ahead = () if self.count_ahead is None else (self.count_ahead,)
        if not stimulated:
            return (), ahead, (without_stimulus,), self.delivery
        return (self.stimulate,), ahead, (with_stimulus,), self.delivery


def phase_calls(
    kernels: Kernels, shard: ShardVariant, packed: Packed, values: Values, listed: Values, stimulus: int, block: int
) -> BurstCalls:
    """The calls of a burst in several kernels, for up to ``stimulus`` ids; delivery reads the list in ``listed``."""
    neurons = packed.sizes.neurons
    ahead = kernels.spread("count_ahead", neurons, block, values, _COUNT_WAVES) if shard.variant.count_ahead else None
    dynamics = kernels.dynamics(shard, packed, values)
    return BurstCalls(
        kernels.spread("stimulate", stimulus, block, values).at(1, 0, 0),
        ahead,
        (dynamics.at(0, 0, 0), dynamics.at(1, 0, 0)),
        tuple(_delivery(kernels, shard, packed, listed, block)),
    )


def _delivery(kernels: Kernels, shard: ShardVariant, packed: Packed, values: Values, block: int) -> Iterator[Call]:
    """The kernels of delivery: directly from the shards' lists, or from one joined list of all that fired."""
    variant, sources = shard.variant, values.number("sources")
    if shard.exchanges and not shard.collects:
        yield kernels.call("send_lists", kernels.full_grid(block), block, values, shard.overlapped)
        return
    if shard.exchanges:
        yield kernels.spread("collect", sources, block, values)
    if shard.fused:
        yield from kernels.tiles(values, variant, packed.sizes.neurons)
        return
    learns = variant.plastic and not variant.defers_learning
    learning = [kernels.spread("learn", packed.sizes.plastic_entries, block, values)] if learns else []
    if variant.plastic_all_window:
        yield from learning
    if packed.sizes.static_entries:
        yield _propagate(kernels, variant, packed, values, sources, block)
    if variant.computed:
        yield kernels.spread("propagate_computed", WARP * sources, block, values)
    if not variant.plastic_all_window:
        yield from learning
    if learns:
        yield kernels.call("age", 1, 1, values)
    if variant.extras.modulators:
        yield kernels.modulate(values).at(0, 0, 0)


def _propagate(kernels: Kernels, variant: Variant, packed: Packed, values: Values, sources: int, block: int) -> Call:
    """A warp for each row; for rows in host memory a warp for each piece of a row."""
    if not variant.streamed:
        return kernels.spread("propagate", WARP * sources, block, values)
    pieces = pieces_of(packed.sizes.longest_row)
    shares = values.replacing(piece=pieces.length, most_pieces=pieces.most)
    return kernels.spread("propagate_streamed", WARP * sources * pieces.most, block, shares)
