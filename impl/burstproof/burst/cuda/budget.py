"""The plan of device memory: every buffer with its bytes, before the first allocation (BE-9)."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.burst.cuda.packed import Packed, pack_network
from burstproof.burst.engine import EngineOptions
from burstproof.errors import OutOfMemoryError
from burstproof.kernels.device import BufferSpec
from burstproof.network.model import Network

RESERVE_BYTES = 256 << 20
"""Left free for kernels, graphs and the driver."""


@dataclass(frozen=True)
class MemoryPlan:
    """The buffers of one engine in the order of the arena; ``synapses`` are those packed."""

    buffers: tuple[BufferSpec, ...]
    neurons: int
    synapses: int

    @classmethod
    def of(cls, packed: Packed) -> MemoryPlan:
        """The plan for a packed network."""
        sizes = packed.sizes
        return cls(packed.buffers, sizes.neurons, sizes.static_entries + sizes.computed_entries)

    @property
    def total_bytes(self) -> int:
        """Bytes of the arena, alignment included."""
        return sum(spec.aligned_bytes for spec in self.buffers)

    def fitting(self, available: int) -> tuple[int, int]:
        """Neurons and synapses of a network of the same density that needs about ``available`` bytes."""
        share = max(0.0, min(1.0, available / self.total_bytes))
        return int(self.neurons * share), int(self.synapses * share)

    def check(self, available: int, where: str) -> None:
        """Refuse a plan that ``available`` bytes cannot hold.

        Raises
        ------
        OutOfMemoryError
            Names the bytes needed, the bytes free and the network that would fit.
        """
        if self.total_bytes <= available:
            return
        neurons, synapses = self.fitting(available)
        raise OutOfMemoryError(
            f"the network needs {self.total_bytes} bytes on the device, {max(available, 0)} bytes are free for it",
            where=where,
            got=f"{self.neurons} neurons, {self.synapses} synapses",
            allowed=f"about {neurons} neurons with {synapses} synapses at this density",
            cure="Run a smaller network, a device with more memory, or the backend cpu",
        )

    def table(self) -> str:
        """One line per buffer: name, elements, dtype, bytes in the arena; then the total."""
        width = max(len(spec.name) for spec in self.buffers)
        lines = [
            f"{spec.name:<{width}}  {spec.count:>14}  {spec.dtype.name:<8}  {spec.aligned_bytes:>16}"
            for spec in self.buffers
        ]
        return "\n".join([*lines, f"{'total':<{width}}  {'':>14}  {'':<8}  {self.total_bytes:>16}"])


def plan_memory(network: Network, options: EngineOptions) -> MemoryPlan:
    """The device memory that an engine over ``network`` takes; touches no device.

    Raises
    ------
    NetworkError
        What packing the network refuses.
    """
    return MemoryPlan.of(pack_network(network, options))


def available_bytes(free_bytes: int, options: EngineOptions) -> int:
    """What of the free device memory an engine may take: its declared limit, or all but a reserve."""
    limit = options.cuda.memory_limit_bytes
    return min(limit, free_bytes) if limit else free_bytes - RESERVE_BYTES
