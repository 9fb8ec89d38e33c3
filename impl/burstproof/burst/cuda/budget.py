"""The plan of device memory: every buffer with its bytes, before the first allocation (BE-9)."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.burst.cuda.buffers import (
    buffer_specs,
    default_train_length,
    network_sizes,
    train_sizes,
)
from burstproof.burst.cuda.variant import variant_of
from burstproof.burst.engine import EngineOptions
from burstproof.burst.fixed_point import plan_fixed_point
from burstproof.burst.layout import Layout, build_layout
from burstproof.burst.rules import features_of
from burstproof.errors import OutOfMemoryError
from burstproof.kernels.device import BufferSpec
from burstproof.network.model import Network

RESERVE_BYTES = 256 << 20
"""Left free for kernels, graphs and the driver."""

_PER_SYNAPSE = ("targets", "contributions", "delays", "weights", "psps", "signs", "plastic_", "eligibility")


@dataclass(frozen=True)
class MemoryPlan:
    """The buffers of one engine in the order of the arena.

    Attributes
    ----------
    buffers : tuple of BufferSpec
    neurons, synapses : int
        Size of the network; synapses are those packed.
    """

    buffers: tuple[BufferSpec, ...]
    neurons: int
    synapses: int

    @property
    def total_bytes(self) -> int:
        """Bytes of the arena, alignment included."""
        return sum(spec.aligned_bytes for spec in self.buffers)

    @property
    def synapse_bytes(self) -> int:
        """Bytes that grow with the number of synapses."""
        return sum(
            spec.aligned_bytes for spec in self.buffers if spec.name.removeprefix("computed_").startswith(_PER_SYNAPSE)
        )

    def fitting(self, free_bytes: int) -> tuple[int, int]:
        """Neurons and synapses of a network of the same density that needs at most ``free_bytes``."""
        share = max(0.0, min(1.0, free_bytes / self.total_bytes)) if self.total_bytes else 1.0
        return int(self.neurons * share), int(self.synapses * share)

    def check(self, free_bytes: int, where: str) -> None:
        """Refuse a plan that ``free_bytes`` cannot hold.

        Raises
        ------
        OutOfMemoryError
            Names the bytes needed, the bytes free and the network that would fit.
        """
        if self.total_bytes <= free_bytes:
            return
        neurons, synapses = self.fitting(free_bytes)
        raise OutOfMemoryError(
            f"the network needs {self.total_bytes} bytes on the device, {max(free_bytes, 0)} bytes are free",
            where=where,
            got=f"{self.neurons} neurons, {self.synapses} synapses",
            allowed=f"about {neurons} neurons with {synapses} synapses at this density",
            cure="Run a smaller network, a device with more memory, or the backend cpu",
        )

    def table(self) -> str:
        """One line per buffer: name, elements, dtype, bytes; then the total."""
        width = max(len("total"), *(len(spec.name) for spec in self.buffers))
        lines = [
            f"{spec.name:<{width}}  {spec.count:>14}  {spec.dtype.name:<8}  {spec.aligned_bytes:>16}"
            for spec in self.buffers
        ]
        return "\n".join([*lines, f"{'total':<{width}}  {'':>14}  {'':<8}  {self.total_bytes:>16}"])


def plan_memory(network: Network, options: EngineOptions, layout: Layout | None = None) -> MemoryPlan:
    """The device memory that an engine over ``network`` takes; allocates nothing on a device.

    Raises
    ------
    NetworkError
        What packing the network refuses.
    """
    fixed_point = plan_fixed_point(network, options)
    packed = layout or build_layout(network, options, fixed_point)
    features = features_of(network, options)
    variant = variant_of(packed, features, options, fixed_point)
    sizes = network_sizes(packed, features)
    length = options.cuda.train_length or default_train_length(sizes.neurons)
    specs = buffer_specs(sizes, variant, train_sizes(sizes.neurons, length))
    return MemoryPlan(specs, sizes.neurons, sizes.static_entries + sizes.computed_entries)


def available_bytes(free_bytes: int, options: EngineOptions) -> int:
    """What of the free device memory an engine may take: its limit, or all but a reserve."""
    limit = options.cuda.memory_limit_bytes
    return min(limit, free_bytes) if limit else free_bytes - RESERVE_BYTES
