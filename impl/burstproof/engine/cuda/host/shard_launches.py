"""The kernels of one shard's burst in their order, with grids, blocks and arguments fixed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.exchange.mail import Mail
from burstproof.engine.cuda.host.launches import WARP, Call, Kernels, Values, numbers_of
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
        compiled: Mapping[str, Any],
        mail: Mail,
        room: int,
        patience_ns: int,
    ) -> None:
        from burstproof.engine.cuda.kernels.shard_catalogue import shard_catalogue

        self._runtime = runtime
        self._shard = shard
        self._packed = shard.packed
        self._variant = shard.shard.variant
        self._compiled = compiled
        self._kernels = Kernels(runtime, shard.shard, shard_catalogue(shard.shard), compiled)
        self._mail = mail
        self._bits = max(1, shard.neurons.bit_length())
        self._given = {
            **numbers_of(shard.packed),
            "sinks": mail.sinks[shard.number],
            "inboxes": mail.inboxes[shard.number],
            "words": mail.words,
            "room": room,
            "own": shard.number,
            "patience": patience_ns,
            "first_id": shard.spaced.first if shard.spaced else 0,
            "id_step": shard.spaced.step if shard.spaced else 0,
            "bits": self._bits,
            "sources": shard.sources,
        }

    def calls(self, buffers: Mapping[str, DeviceBuffer], number: int, stimulus: int, log: int) -> BurstCalls:
        """The calls of train set ``number``, with room for ``stimulus`` ids and ``log`` firings."""
        values = Values(self._runtime, buffers, number, self._given | {"capacity": log})
        stimulate = self._kernels.spread("stimulate", stimulus, _BLOCK, values)
        if self._shard.shard.merged:
            return BurstCalls(stimulate, None, None, (), self._merged(values))
        neurons = self._packed.sizes.neurons
        census = self._kernels.spread("census", neurons, _BLOCK, values, _WAVES) if self._variant.count_ahead else None
        dynamics = self._dynamics(values)
        return BurstCalls(
            stimulate, census, (dynamics.at(0, 0, 0), dynamics.at(1, 0, 0)), self._delivery(values, buffers), None
        )

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles need; does nothing without tiles."""
        self._kernels.sort_rows(Values(self._runtime, buffers, 0, self._given), stream)

    def _delivery(self, values: Values, buffers: Mapping[str, DeviceBuffer]) -> tuple[Call, ...]:
        """What sends: at once, or from a list of everything that fired."""
        shard, kernels, sources = self._shard.shard, self._kernels, self._shard.sources
        if not shard.collects:
            return (kernels.call("send", kernels.full_grid(_BLOCK), _BLOCK, values, shard.overlapped),)
        values = values.but(log_ids=buffers["all_ids"], log_potentials=buffers["all_potentials"])
        collect = kernels.spread("collect", sources, _BLOCK, values)
        if shard.fused:
            return (collect, *kernels.tiles(values, self._variant, self._packed.sizes.neurons))
        propagation = [kernels.spread("propagate", WARP * sources, _BLOCK, values)]
        if self._variant.computed:
            propagation.append(kernels.spread("propagate_computed", WARP * sources, _BLOCK, values))
        if not self._variant.plastic:
            return (collect, *propagation)
        learn = kernels.spread("learn", self._packed.sizes.plastic_entries, _BLOCK, values)
        after = [learn, *propagation] if self._variant.plastic_all_window else [*propagation, learn]
        return (collect, *after, kernels.call("age", 1, 1, values))

    def _dynamics(self, values: Values) -> Call:
        shard = self._shard.shard
        chunks = -(-self._packed.sizes.neurons // shard.chunk)
        countable = (1 << (64 - 2 * self._bits)) - 1
        grid = max(1, min(chunks, countable, self._resident("dynamics", shard.threads)))
        return self._kernels.call("dynamics", grid, shard.threads, values, shard.overlapped)

    def _merged(self, values: Values) -> Call:
        """The burst in one kernel: a block for each chunk, the first, and those that only take the last packets."""
        shard, chunks = self._shard.shard, self._mail.packets
        resident = self._resident("merged", shard.threads)
        lag = 0 if chunks < resident or len(self._mail.inboxes) == 1 else resident // _LAG
        values = values.but(chunks=chunks, lag=lag)
        return self._kernels.call("merged", 1 + chunks + lag, shard.threads, values, shard.overlapped)

    def _resident(self, name: str, threads: int) -> int:
        """Blocks of a kernel that are on the device at once: each then takes chunk after chunk, reading ahead."""
        if self._runtime.simulated:
            return 1
        (compiled,) = self._compiled[name].overloads.values()
        registers = -(-int(compiled.regs_per_thread) // 8) * 8
        by_registers = _REGISTERS_PER_MULTIPROCESSOR // (registers * threads)
        return self._runtime.multiprocessors * max(1, min(_THREADS_PER_MULTIPROCESSOR // threads, by_registers))
