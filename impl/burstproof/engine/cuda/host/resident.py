"""What an engine holds on the device: buffers, kernels and train sets for one packed network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from burstproof.device.host_memory import available_host_bytes
from burstproof.device.protocol import DeviceBuffer, DeviceRuntime
from burstproof.engine.cuda.host.batch import Streams, TrainSet
from burstproof.engine.cuda.host.fused_batch import FusedTrainSet
from burstproof.engine.cuda.host.fused_launches import FusedLaunches
from burstproof.engine.cuda.host.launches import BurstLaunches
from burstproof.engine.cuda.host.state import DeviceState
from burstproof.engine.cuda.host.streaming_launches import StreamingLaunches
from burstproof.engine.cuda.plan.block_size import checked_block_size
from burstproof.engine.cuda.plan.budget import MemoryPlan, available_bytes, place_synapses
from burstproof.engine.cuda.plan.buffers import SETS
from burstproof.engine.cuda.plan.packed import Packed

Contents = Callable[[Packed, DeviceState], None]
"""Fills the buffers of a new engine with a network's first contents."""


class Resident:
    """One packed network on one device.

    Attributes
    ----------
    packed : Packed
        As it runs: with the synapses in host memory where they are to lie there.
    plan : MemoryPlan
    device : DeviceState
    sets : tuple of TrainSet or of FusedTrainSet
    """

    def __init__(self, runtime: DeviceRuntime, packed: Packed, contents: Contents) -> None:
        block = checked_block_size(packed.options.cuda.block_size, packed.sizes.neurons)
        available = available_bytes(runtime.memory_info()[0], packed.options)
        packed = place_synapses(packed, available)
        overlapped = runtime.overlaps and packed.variant.fused is not None
        packed = replace(packed, variant=replace(packed.variant, overlapped=overlapped))
        self.packed = packed
        self.plan = MemoryPlan.of(packed)
        self.plan.check(available, f"device {runtime.name}")
        self.plan.check_host(available_host_bytes())
        self._buffers = runtime.allocate(self.plan.buffers) | runtime.allocate_host(self.plan.host_buffers)
        streams = Streams.open(runtime, packed.options.cuda.stream_count)
        self.device = DeviceState(runtime, streams.burst, self._buffers, packed)
        contents(packed, self.device)
        self.sets = _train_sets(runtime, packed, block, self._buffers, streams)
        self.sets[0].warm()

    def release(self) -> None:
        """Let go of the device's memory."""
        self.sets = ()
        self._buffers.clear()


def _train_sets(
    runtime: DeviceRuntime, packed: Packed, block: int, buffers: dict[str, DeviceBuffer], streams: Streams
) -> tuple[TrainSet | FusedTrainSet, ...]:
    if packed.variant.fused is not None:
        fused = FusedLaunches(runtime, packed)
        fused.sort_rows(buffers, streams.burst)
        return tuple(FusedTrainSet(runtime, fused, packed, buffers, number, streams) for number in range(SETS))
    launches = (StreamingLaunches if packed.streamed else BurstLaunches)(runtime, packed, block)
    return tuple(TrainSet(runtime, launches, packed, buffers, number, streams) for number in range(SETS))
