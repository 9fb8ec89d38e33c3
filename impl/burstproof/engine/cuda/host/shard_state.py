"""Between a shard's buffers and its part of the canonical state."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.upload import first_of_rows, upload_neurons, upload_synapses
from burstproof.engine.cuda.plan.padded_rows import pad_rows
from burstproof.engine.cuda.plan.shard_pack import PackedShard
from burstproof.engine.state import EngineState
from burstproof.network.model import Network


class ShardState(DeviceState):
    """Reads and writes the state of one shard; the history that plasticity needs is that of all N neurons."""

    def __init__(
        self, runtime: DeviceRuntime, stream: DeviceStream, buffers: dict[str, DeviceBuffer], shard: PackedShard
    ) -> None:
        packed = replace(shard.packed, variant=replace(shard.packed.variant, fused=None))
        super().__init__(runtime, stream, buffers, packed)
        self._shard = shard

    def restore(self, state: EngineState) -> None:
        """Write ``state`` over everything; the kernels must be those for it (``packed_for``)."""
        super().restore(state)
        self.clear("tallies")

    def _history(self, burst: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
        plastic = self._layout.plastic
        if plastic is None:
            count = self._shard.sources
            return np.broadcast_to(np.int64(0), count), np.broadcast_to(np.uint16(0), count)
        last_fired, streaks = self.read("last_fired"), self.read("streaks")
        lost = last_fired <= max(0, burst - (plastic.longest_window - 1))
        last_fired[lost] = 0
        streaks[lost] = 0
        return last_fired, streaks


def fill_shard(shard: PackedShard, device: ShardState, network: Network) -> None:
    """Write everything that does not start as zeros; ``network`` is the whole one."""
    upload_members(shard, device)
    upload_neurons(shard.packed, device)
    if shard.shard.row_words:
        upload_padded(shard, device)
    else:
        upload_synapses(shard.packed, device)
    computed = shard.packed.layout.computed
    if shard.packed.layout.plastic is not None and computed is not None:
        device.write("eligibility", network.synapses.eligibility_traces[computed.rows])


def upload_padded(shard: PackedShard, device: ShardState) -> None:
    """Write the rows of a network of static synapses, padded."""
    rows = shard.packed.layout.static
    device.write("targets", pad_rows(rows, first_of_rows(rows), shard.shard.row_words))
    if rows.clamped_sources is not None:
        device.write("clamped_sources", rows.clamped_sources)


def upload_members(shard: PackedShard, device: ShardState) -> None:
    """Write the table of ids, where there is one."""
    if shard.spaced is None:
        device.write("members", shard.ids())
