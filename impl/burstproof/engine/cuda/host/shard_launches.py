"""The kernels of one shard's burst in their order, with grids, blocks and arguments fixed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.exchange.mail import Mail
from burstproof.engine.cuda.host.launches import Call, SetView
from burstproof.engine.cuda.kernels.order import PARAMETERS
from burstproof.engine.cuda.plan.buffers import slot_stride
from burstproof.engine.cuda.plan.shard_pack import PackedShard

_THREADS_PER_MULTIPROCESSOR = 2048
_REGISTERS_PER_MULTIPROCESSOR = 65536
_BLOCK = 256
_WAVES = 4
_LAG = 3
"""Of the blocks that are on the device at once, the part that comes up between a chunk and its packets' arrival."""


@dataclass(frozen=True, eq=False)
class BurstCalls:
    """The calls of one shard for one burst of one train set.

    ``before`` end with what other shards wait for: all shards of a device do theirs before any does what follows.
    """

    stimulate: Call
    census: Call | None
    dynamics: tuple[Call, Call] | None
    """Without and with stimulus."""
    delivery: tuple[Call, ...]
    merged: Call | None
    """All of it in one kernel; whether there is stimulus, the mode and the place in the train are to follow."""


class ShardLaunches:
    """Makes the calls of one shard."""

    def __init__(
        self,
        runtime: DeviceRuntime,
        shard: PackedShard,
        kernels: Mapping[str, Any],
        mail: Mail,
        room: int,
        patience_ns: int,
    ) -> None:
        self._runtime = runtime
        self._shard = shard
        self._packed = shard.packed
        self._variant = shard.shard.variant
        self._kernels = kernels
        self._mail = mail
        self._sinks, self._inboxes = mail.sinks[shard.number], mail.inboxes[shard.number]
        self._room = np.uint64(room)
        self._words = np.uint64(mail.words)
        self._patience = np.uint64(patience_ns)

    def calls(self, buffers: Mapping[str, DeviceBuffer], number: int, stimulus: int, log: int) -> BurstCalls:
        """The calls of train set ``number``, with room for ``stimulus`` ids and ``log`` firings."""
        own = SetView(buffers, number)
        if self._shard.shard.merged:
            return BurstCalls(self._stimulate(own, stimulus), None, None, (), self._merged(own, log))
        return BurstCalls(
            self._stimulate(own, stimulus),
            self._census(own) if self._variant.count_ahead else None,
            (self._dynamics(own, log, False), self._dynamics(own, log, True)),
            self._delivery(own),
            None,
        )

    def _delivery(self, own: SetView) -> tuple[Call, ...]:
        if self._variant.tiles:
            return tuple(self._tiled(own))
        return (self._send(own),) if self._shard.shard.fused else self._general(own)

    def _tiled(self, own: SetView) -> Iterator[Call]:
        """What sends where a slot of the FCL exceeds the cache."""
        yield self._collect(own)
        grid, neurons = self._full_grid(_BLOCK), self._packed.sizes.neurons
        lists, control = (own["cursors"], own["amounts"]), own["control"]
        opened = (own["offsets"], own["contributions"], own["clamped_sources"], *lists)
        yield Call(self._kernels["open_rows"], grid, _BLOCK, (control, own["all_ids"], *opened))
        rows = (*(own[name] for name in ("targets", "contributions", "delays")), self._sums(own), own["flags"])
        for tile in range(self._variant.tiles):
            end = np.uint32((tile + 1) * neurons // self._variant.tiles)
            yield Call(self._kernels["send_tile"], grid, _BLOCK, (control, *lists, *rows, end, *self._ring))

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles need; does nothing without tiles."""
        if not self._variant.tiles:
            return
        from burstproof.engine.cuda.kernels.tiles import SORT_THREADS

        rows = tuple(buffers[name] for name in ("offsets", "targets", "contributions", "delays"))
        arguments = (*rows, np.uint32(self._shard.sources))
        self._runtime.launch(self._kernels["sort_rows"], self._full_grid(SORT_THREADS), SORT_THREADS, stream, arguments)
        stream.synchronize()

    def _full_grid(self, block: int) -> int:
        return self._runtime.multiprocessors * max(1, _THREADS_PER_MULTIPROCESSOR // block)

    def _call(self, name: str, threads: int, arguments: tuple[Any, ...], waves: int = 1) -> Call:
        grid = max(1, min(-(-threads // _BLOCK), waves * self._full_grid(_BLOCK)))
        return Call(self._kernels[name], grid, _BLOCK, arguments)

    def _stimulate(self, own: SetView, stimulus: int) -> Call:
        table = ("stimulus_offsets", "stimulus_ids", "stimulus_amounts", "forced_offsets", "forced_ids")
        arguments = (own["control"], own.set("report"), own["link"], *(own.set(name) for name in table))
        return self._call("stimulate", stimulus, (*arguments, own["outside"], own["forced"]))

    def _census(self, own: SetView) -> Call:
        arrays = (own["control"], own.set("report"), own["link"], own["done"], self._sinks)
        cells = (own["sums"], own["flags"], own["outside"], np.int64(self._packed.layout.power_neuron))
        arguments = (*arrays, *cells, self._neurons, *self._ring, self._words)
        return self._call("census", self._packed.sizes.neurons, arguments, _WAVES)

    def _dynamics(self, own: SetView, log: int, stimulated: bool) -> Call:
        packed, shard = self._packed, self._shard.shard
        spaced = self._shard.spaced
        bits = max(1, packed.sizes.neurons.bit_length())
        arguments = (
            *(own["control"], own.set("report"), own["link"], own["done"], self._sinks, self._inboxes),
            *self._neuron_arrays(own),
            packed.fixed_point.unit,
            np.int64(packed.layout.power_neuron),
            self._variant.accumulator(packed.layout.power_amount),
            self._neurons,
            *self._ring,
            np.int64(log),
            self._room,
            self._words,
            np.uint32(bits),
            np.uint32(spaced.first if spaced else 0),
            np.uint32(spaced.step if spaced else 0),
            np.uint32(stimulated),
            self._patience,
            *self._common(),
        )
        chunks = -(-packed.sizes.neurons // shard.chunk)
        countable = (1 << (64 - 2 * bits)) - 1
        grid = max(1, min(chunks, countable, self._resident("dynamics", shard.threads)))
        return Call(self._kernels["dynamics"], grid, shard.threads, arguments, shard.overlapped)

    def _neuron_arrays(self, own: SetView) -> Iterator[DeviceBuffer]:
        """From the ids of the shard's neurons to the log of what fired."""
        state = ("sums", "flags", "potentials", "countdowns", "counts", "marks", "accumulates", *PARAMETERS)
        yield from (own[name] for name in ("members", "outside", "forced", *state))
        yield from (own.set("log_ids"), own.set("log_potentials"))

    def _merged(self, own: SetView, log: int) -> Call:
        """The burst in one kernel: a block for each chunk, the first, and those that only take the last packets."""
        packed, shard = self._packed, self._shard.shard
        spaced, chunks = self._shard.spaced, self._mail.packets
        resident = self._resident("merged", shard.threads)
        lag = 0 if chunks < resident or len(self._mail.inboxes) == 1 else resident // _LAG
        rows = (own[name] for name in ("offsets", "targets", "contributions", "delays", "clamped_sources"))
        arguments = (
            *(own["control"], own.set("report"), own["link"], own["tallies"], self._sinks, self._inboxes),
            *(*self._neuron_arrays(own), *rows, self._sums(own)),
            *(packed.fixed_point.unit, np.int64(packed.layout.power_neuron)),
            *(self._variant.accumulator(packed.layout.power_amount), self._neurons, *self._ring),
            *(np.int64(log), self._words, np.uint32(self._shard.number), np.uint32(chunks), np.uint32(lag)),
            *(np.uint32(spaced.first if spaced else 0), np.uint32(spaced.step if spaced else 0)),
            *(self._patience, *self._common()),
        )
        return Call(self._kernels["merged"], 1 + chunks + lag, shard.threads, arguments, shard.overlapped)

    def _resident(self, name: str, threads: int) -> int:
        """Blocks of a kernel that are on the device at once: each then takes chunk after chunk, reading ahead."""
        if self._runtime.simulated:
            return 1
        (compiled,) = self._kernels[name].overloads.values()
        registers = -(-int(compiled.regs_per_thread) // 8) * 8
        by_registers = _REGISTERS_PER_MULTIPROCESSOR // (registers * threads)
        return self._runtime.multiprocessors * max(1, min(_THREADS_PER_MULTIPROCESSOR // threads, by_registers))

    def _common(self) -> tuple[Any, ...]:
        """The first value of every parameter, for those that are one for all neurons."""
        neurons = self._packed.layout.neurons
        columns = (getattr(neurons, name) for name in PARAMETERS)
        firsts = (column[0] if len(column) else column.dtype.type(0) for column in columns)
        return tuple(np.int32(value) if isinstance(value, np.uint16) else value for value in firsts)

    def _send(self, own: SetView) -> Call:
        rows = (own[name] for name in ("offsets", "targets", "contributions", "delays", "clamped_sources"))
        arguments = (own["control"], own["link"], self._inboxes, *rows, self._sums(own), own["flags"])
        ring = (*self._ring, self._words, self._patience)
        return Call(
            self._kernels["send"], self._full_grid(_BLOCK), _BLOCK, (*arguments, *ring), self._shard.shard.overlapped
        )

    def _sums(self, own: SetView) -> DeviceBuffer:
        """The FCL as what contributions are added to."""
        return self._runtime.words(own["sums"]) if self._variant.packed_sums else own["sums"]

    def _general(self, own: SetView) -> tuple[Call, ...]:
        """What sends where rows are gone through several times: by kernels of the engine for one device."""
        propagation = [self._propagate(own)]
        if self._variant.computed:
            propagation.append(self._propagate_computed(own))
        learning = [self._learn(own)] if self._variant.plastic else []
        after = [*learning, *propagation] if self._variant.plastic_all_window else [*propagation, *learning]
        if self._variant.plastic:
            history = np.int64(self._packed.longest_window - 1)
            after.append(Call(self._kernels["age"], 1, 1, (own["control"], history)))
        return (self._collect(own), *after)

    def _collect(self, own: SetView) -> Call:
        lists = tuple(own[name] for name in ("all_ids", "all_potentials", "last_fired", "streaks"))
        sizes = (np.int32(self._packed.longest_window), self._room, self._words, self._patience)
        arguments = (own["control"], own["link"], self._inboxes, *lists, *sizes)
        return self._call("collect", self._shard.sources, arguments)

    def _propagate(self, own: SetView) -> Call:
        rows = ("offsets", "targets", "contributions", "delays", "clamped_sources", "sums", "flags")
        arguments = (own["control"], own["all_ids"], *(own[name] for name in rows), *self._ring)
        return self._call("propagate", 32 * self._shard.sources, arguments)

    def _propagate_computed(self, own: SetView) -> Call:
        rows = ("computed_offsets", "computed_targets", "weights", "psps", "signs", "computed_delays")
        names = (*rows, "mp_driven", "divisors", "sums", "flags")
        point = self._packed.fixed_point
        scalars = (np.float64(point.scale), np.int64(point.clamp), np.float64(point.clamp_float))
        lists = (own["control"], own["all_ids"], own["all_potentials"])
        arguments = (*lists, *(own[name] for name in names), *scalars, *self._ring)
        return self._call("propagate_computed", 32 * self._shard.sources, arguments)

    def _learn(self, own: SetView) -> Call:
        rules = ("rule_starts", "rule_windows", "potentiations", "depressions")
        entries = ("plastic_positions", "plastic_sources", "plastic_targets")
        names = ("control", *rules, *entries, "last_fired", "streaks", "weights", "eligibility")
        arguments = (*(own[name] for name in names), np.int64(self._packed.sizes.rules))
        return self._call("learn", self._packed.sizes.plastic_entries, arguments)

    @property
    def _neurons(self) -> np.uint32:
        return np.uint32(self._packed.sizes.neurons)

    @property
    def _ring(self) -> tuple[np.uint32, np.uint32]:
        """Cells from one slot to the next, and slots."""
        return np.uint32(slot_stride(self._packed.sizes.neurons, self._variant)), np.uint32(self._packed.sizes.ring)
