"""The kernels of one shard's burst in their order, with grids, blocks and arguments fixed once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.exchange.mail import Mail
from burstproof.engine.cuda.host.launches import BurstCalls, Call, Kernels, Values, numbers_of, phase_calls
from burstproof.engine.cuda.plan.shard_pack import PackedShard

_BLOCK = 256
_LAG = 3
"""Of the blocks that are on the device at once, the part that comes up between a chunk and its packets' arrival."""


class ShardLaunches:
    """Makes the calls of one shard."""

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
        self._given = {**numbers_of(shard.packed), "sources": shard.sources}
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

    def calls(self, buffers: Mapping[str, DeviceBuffer], number: int, stimulus: int, log: int) -> BurstCalls:
        """The calls of batch ``number``, with room for ``stimulus`` ids and ``log`` firings."""
        values, shard = Values(self._runtime, buffers, number, self._given | {"capacity": log}), self._shard.shard
        if shard.merged:
            stimulate = self._kernels.spread("stimulate", stimulus, _BLOCK, values)
            return BurstCalls(stimulate, merged=self._merged(values))
        if self._mail is None:
            return phase_calls(self._kernels, shard, self._shard.packed, values, values, stimulus, shard.threads)
        listed = values.but(log_ids=buffers["all_ids"], log_potentials=buffers["all_potentials"])
        return phase_calls(self._kernels, shard, self._shard.packed, values, listed, stimulus, _BLOCK)

    def sort_rows(self, buffers: Mapping[str, DeviceBuffer], stream: DeviceStream) -> None:
        """Put every row into the order that tiles need; does nothing without tiles."""
        self._kernels.sort_rows(Values(self._runtime, buffers, 0, self._given), stream)

    def _merged(self, values: Values) -> Call:
        """The burst in one kernel: a block for each chunk, the first, and those that only take the last packets."""
        assert self._mail is not None
        shard, chunks = self._shard.shard, self._mail.packets
        resident = self._kernels.resident("burst", shard.threads)
        lag = 0 if chunks < resident or len(self._mail.inboxes) == 1 else resident // _LAG
        values = values.but(chunks=chunks, lag=lag)
        return self._kernels.call("burst", 1 + chunks + lag, shard.threads, values, shard.overlapped)
