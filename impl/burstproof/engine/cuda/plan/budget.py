"""The memory plan: every buffer with its bytes, on the device or the host, before any allocation (BE-9, BE-10)."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.device.protocol import BufferSpec
from burstproof.engine.buffers import Planned, PlannedBuffer
from burstproof.engine.cuda.plan.choices import choices_of
from burstproof.engine.cuda.plan.packed import Packed, pack_network, streaming
from burstproof.engine.cuda.plan.sizing import BUCKETS, CALENDAR, QUEUES, ROOMY_CALENDAR
from burstproof.engine.options import EngineOptions, SynapseMemory
from burstproof.errors import OutOfMemoryError
from burstproof.network.model import Network

RESERVE_BYTES = 256 << 20
"""Left free for kernels, graphs and the driver."""

HOST_SHARE = 0.9
"""Most of the available host memory that may be page-locked, since the system cannot move it any more."""


@dataclass(frozen=True)
class MemoryPlan:
    """The buffers of one engine in the order of the arena, those in host memory, and counts of what they hold."""

    buffers: tuple[BufferSpec, ...]
    neurons: int
    synapses: int
    host_buffers: tuple[BufferSpec, ...] = ()

    @classmethod
    def of(cls, packed: Packed) -> MemoryPlan:
        """The plan for a packed network."""
        sizes = packed.sizes
        synapses = sizes.static_entries + sizes.computed_entries
        return cls(packed.buffers, sizes.neurons, synapses, packed.host_buffers)

    @property
    def total_bytes(self) -> int:
        """Bytes of the arena, alignment included."""
        return sum(spec.aligned_bytes for spec in self.buffers)

    @property
    def host_bytes(self) -> int:
        """Bytes of page-locked host memory."""
        return sum(spec.bytes for spec in self.host_buffers)

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
        beside = f" beside its synapses, {self.host_bytes} bytes in host memory" if self.host_buffers else ""
        aside = "" if self.host_buffers else "; or let the synapses lie in host memory (synapse_memory auto)"
        raise OutOfMemoryError(
            f"the network needs {self.total_bytes} bytes on the device{beside}, "
            f"{max(available, 0)} bytes are free for it",
            where=where,
            got=f"{self.neurons} neurons, {self.synapses} synapses",
            allowed=f"about {neurons} neurons with {synapses} synapses at this density",
            cure=f"Run a smaller network, a device with more memory, or the backend cpu{aside}",
        )

    def check_host(self, available: int | None) -> None:
        """Refuse synapses that exceed ``available`` bytes of host memory; ``None`` means unknown, and refuses nothing.

        Raises
        ------
        OutOfMemoryError
            Names the bytes needed and those that may be taken.
        """
        if not self.host_buffers or available is None or self.host_bytes <= HOST_SHARE * available:
            return
        raise OutOfMemoryError(
            f"the synapses need {self.host_bytes} bytes of page-locked host memory",
            where="synapse_memory",
            got=f"{self.synapses} synapses",
            allowed=f"{int(HOST_SHARE * available)} bytes, {HOST_SHARE:.0%} of what the host has available",
            cure="Run a smaller network, or close other programs",
        )

    def table(self) -> str:
        """One line per buffer: name, elements, dtype, bytes in the arena; then the total.

        Buffers in host memory follow, marked ``host``, with a total of their own.
        """
        width = max(len(spec.name) for spec in (*self.buffers, *self.host_buffers))

        def line(name: str, count: object, dtype: str, size: int, place: str = "") -> str:
            return f"{name:<{width}}  {count:>14}  {dtype:<8}  {size:>16}{place}"

        lines = [line(s.name, s.count, s.dtype.name, s.aligned_bytes) for s in self.buffers]
        lines.append(line("total", "", "", self.total_bytes))
        if self.host_buffers:
            lines += [line(s.name, s.count, s.dtype.name, s.bytes, "  host") for s in self.host_buffers]
            lines.append(line("total", "", "", self.host_bytes, "  host"))
        return "\n".join(lines)


def plan_memory(network: Network, options: EngineOptions) -> MemoryPlan:
    """The memory that an engine over ``network`` takes; touches no device.

    Free device memory is taken to be the declared limit, or unlimited without one.

    Raises
    ------
    NetworkError
        What packing the network refuses.
    """
    return MemoryPlan.of(_placed(network, options))


def _placed(network: Network, options: EngineOptions) -> Packed:
    packed = pack_network(network, options)
    limit = options.cuda.memory_limit_bytes
    return place_synapses(packed, limit or 2 * MemoryPlan.of(packed).total_bytes)


def place_synapses(packed: Packed, available: int) -> Packed:
    """``packed`` made to fit a device, with its synapses in the memory that its options ask for.

    As long as the plan exceeds ``available``, the following are given up in turn: buckets beside queues, a calendar in
    tiles, and queues per owner if it takes less memory without. A calendar with room for every synapse is given up if
    the plan exceeds half of ``available``. With ``auto``, synapses go to host memory if even that is not enough.

    Parameters
    ----------
    packed : Packed
        What is to be run.
    available : int
        Bytes that the engine may take on the device.
    """
    queues = packed.variant.queues
    if queues is not None and queues.rows_put_off and _device_bytes(packed) > available:
        packed = packed.lacking(BUCKETS)
    roomy_calendar = packed.variant.calendar and not packed.variant.calendar_tiles
    if roomy_calendar and 2 * _device_bytes(packed) > available:
        packed = packed.lacking(ROOMY_CALENDAR)
    if packed.variant.calendar_tiles and _device_bytes(packed) > available:
        packed = packed.lacking(CALENDAR)
    if packed.variant.queues is not None and _device_bytes(packed) > available:
        packed = min(packed, packed.lacking(QUEUES), key=_device_bytes)
    wanted = packed.options.cuda.synapse_memory
    if packed.streamed or wanted is SynapseMemory.DEVICE:
        return packed
    if wanted is SynapseMemory.AUTO and _device_bytes(packed) <= available:
        return packed
    return streaming(packed)


def _device_bytes(packed: Packed) -> int:
    return MemoryPlan.of(packed).total_bytes


def available_bytes(free_bytes: int, options: EngineOptions) -> int:
    """Bytes of the free device memory that an engine may take: its declared limit, or all but a reserve."""
    limit = options.cuda.memory_limit_bytes
    return min(limit, free_bytes) if limit else free_bytes - RESERVE_BYTES


def planned(network: Network, options: EngineOptions) -> Planned:
    """The buffers of ``plan_memory``, with the choices that a run of the network would record."""
    packed = _placed(network, options)
    plan = MemoryPlan.of(packed)
    device = (PlannedBuffer(s.name, s.count, s.dtype.name, s.aligned_bytes) for s in plan.buffers)
    host = (PlannedBuffer(s.name, s.count, s.dtype.name, s.bytes, "host") for s in plan.host_buffers)
    return Planned((*device, *host), choices_of(packed))
