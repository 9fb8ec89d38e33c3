"""``DeviceRuntime`` on a GPU: memory, streams, events and graphs of CuPy; kernels compiled by numba-cuda."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from burstproof.device.cupy_door import cupy_or_error
from burstproof.device.dependent_launch import OVERLAP_CAPABILITY, core_stream, flattened, launch_compiled
from burstproof.device.memory import pinned
from burstproof.device.numba_cuda import cuda
from burstproof.device.protocol import (
    BufferSpec,
    DeviceBuffer,
    DeviceEvent,
    DeviceGraph,
    DeviceStream,
    Kernel,
    KernelCode,
    Launch,
    Memory,
    arena_offsets,
)
from burstproof.errors import BackendUnavailableError, OutOfMemoryError

if TYPE_CHECKING:
    from cupy.cuda import Graph

_PORTABLE, _MAPPED = 1, 2
"""Flags of cudaHostAlloc."""
_SUCCESS, _NOT_READY = 0, 600
"""cudaSuccess, cudaErrorNotReady: results of a stream query if nothing failed."""
_MEMCPY_DEFAULT = 4
"""cudaMemcpyDefault: the direction follows from the addresses."""


class _Stream:
    def __init__(self, cupy: ModuleType) -> None:
        self._runtime = cupy.cuda.runtime
        self.cupy_stream = cupy.cuda.Stream(non_blocking=True)
        self.core_stream = core_stream(self.cupy_stream.ptr)

    def wait(self, event: DeviceEvent) -> None:
        self.cupy_stream.wait_event(event.cupy_event)

    def synchronize(self) -> None:
        self.cupy_stream.synchronize()

    def finished(self) -> bool:
        answer = self._runtime.streamQuery(self.cupy_stream.ptr)
        if answer not in (_SUCCESS, _NOT_READY):
            self.synchronize()
        return bool(answer == _SUCCESS)


class _Event:
    def __init__(self, cupy: ModuleType, timing: bool) -> None:
        self._cupy = cupy
        self.cupy_event = cupy.cuda.Event(disable_timing=not timing)

    def record(self, stream: DeviceStream) -> None:
        self.cupy_event.record(stream.cupy_stream)

    def synchronize(self) -> None:
        self.cupy_event.synchronize()

    def elapsed_ms(self, since: DeviceEvent) -> float:
        return float(self._cupy.cuda.get_elapsed_time(since.cupy_event, self.cupy_event))


class _Graph:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def launch(self, stream: DeviceStream) -> None:
        self._graph.launch(stream.cupy_stream)


class CupyRuntime:
    """One CUDA device; see ``DeviceRuntime``."""

    simulated = False
    graphs = True

    def __init__(self, cupy: ModuleType, device_id: int) -> None:
        self._cupy = cupy
        self._device = cupy.cuda.Device(device_id)
        self.device_id = device_id
        properties = cupy.cuda.runtime.getDeviceProperties(device_id)
        self.multiprocessors = int(properties["multiProcessorCount"])
        self.l2_bytes = int(properties["l2CacheSize"])
        self.shared_bytes = int(properties["sharedMemPerBlockOptin"])
        self.name = properties["name"].decode()
        self.capability = int(properties["major"]), int(properties["minor"])
        self.overlaps = self.capability >= OVERLAP_CAPABILITY
        self._use()

    @classmethod
    def open(cls, device_id: int) -> CupyRuntime:
        """The runtime of device ``device_id``.

        Raises
        ------
        BackendUnavailableError
            CuPy is missing, the driver does not answer, or there is no such device.
        """
        cupy = cupy_or_error()
        try:
            count = int(cupy.cuda.runtime.getDeviceCount())
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise BackendUnavailableError(
                "the CUDA driver does not start",
                where="backend cuda",
                got=str(error),
                cure="Install an NVIDIA driver, or choose the backend cpu",
            ) from error
        if not 0 <= device_id < count:
            raise BackendUnavailableError(
                "there is no such CUDA device",
                where="cuda.device_id",
                got=device_id,
                allowed=f"0...{count - 1}" if count else "none",
                cure="Choose another device, or the backend cpu",
            )
        return cls(cupy, device_id)

    def _use(self) -> None:
        """Make this device current for CuPy and numba, which share its primary context."""
        self._device.use()
        cuda.select_device(self.device_id)

    def memory_info(self) -> tuple[int, int]:
        """Bytes free and in total, as the driver says."""
        free, total = self._device.mem_info
        return int(free), int(total)

    def allocate(self, specs: Sequence[BufferSpec]) -> dict[str, DeviceBuffer]:
        """All buffers from one allocation, zeroed, each aligned to 256 bytes.

        Raises
        ------
        OutOfMemoryError
            The driver cannot give the arena.
        """
        self._use()
        offsets, size = arena_offsets(specs)
        memory = self._cupy.cuda.memory
        try:
            arena = memory.Memory(max(size, 1))
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            free, _ = self.memory_info()
            raise OutOfMemoryError(
                f"the device cannot give an arena of {size} bytes ({free} bytes free)",
                where=f"device {self.device_id}",
                got=str(error),
                cure="Close other programs on the device, or run a smaller network",
            ) from error
        memory.MemoryPointer(arena, 0).memset(0, size)
        buffers = {}
        for spec, offset in zip(specs, offsets, strict=True):
            pointer = memory.MemoryPointer(arena, offset)
            array = self._cupy.ndarray((spec.count,), spec.dtype, memptr=pointer)
            buffers[spec.name] = DeviceBuffer(spec, array, self._view(array, spec))
        self._device.synchronize()
        return buffers

    def _view(self, array: Memory, spec: BufferSpec) -> Memory:
        """The array as numba's type; numba refuses null pointers, so an empty array is passed as one element."""
        if spec.count:
            return cuda.as_cuda_array(array, sync=False)
        return cuda.as_cuda_array(self._cupy.ndarray((1,), spec.dtype, memptr=array.data), sync=False)

    def upload(self, buffer: DeviceBuffer, host: npt.NDArray[Any], stream: DeviceStream, offset: int = 0) -> None:
        """Queue a copy to the device; asynchronous if ``host`` is pinned and needs no conversion."""
        if not len(host):
            return
        source = np.ascontiguousarray(host, buffer.spec.dtype)
        self._copy(self._address(buffer, offset), source.ctypes.data, source.nbytes, stream)
        if source is not host:
            stream.synchronize()

    def download(self, host: npt.NDArray[Any], buffer: DeviceBuffer, stream: DeviceStream, offset: int = 0) -> None:
        """Queue a copy to the host, which must be contiguous and of the buffer's dtype."""
        if len(host):
            self._copy(host.ctypes.data, self._address(buffer, offset), host.nbytes, stream)

    @staticmethod
    def _address(buffer: DeviceBuffer, offset: int) -> int:
        return int(buffer.array.data.ptr) + offset * buffer.spec.dtype.itemsize

    def _copy(self, target: int, source: int, size: int, stream: DeviceStream) -> None:
        self._cupy.cuda.runtime.memcpyAsync(target, source, size, _MEMCPY_DEFAULT, stream.cupy_stream.ptr)

    def pinned(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A zeroed page-locked host array."""
        array = pinned((count,), dtype)
        array[:] = np.zeros((), array.dtype)
        return array

    def allocate_host(self, specs: Sequence[BufferSpec]) -> dict[str, DeviceBuffer]:
        """Page-locked buffers of exactly these sizes, one allocation each, freed with their last reference.

        Raises
        ------
        OutOfMemoryError
            The host cannot lock that much memory.
        """
        self._use()
        buffers = {}
        for spec in specs:
            array = self._as_cupy(self._page_locked(spec), spec)
            buffers[spec.name] = DeviceBuffer(spec, array, self._view(array, spec))
        return buffers

    def _page_locked(self, spec: BufferSpec) -> npt.NDArray[Any]:
        """Zeroed memory directly from the driver: CuPy's pool would round up to a power of two and keep it."""
        cupy = self._cupy
        try:
            memory = cupy.cuda.PinnedMemory(max(1, spec.bytes), _PORTABLE | _MAPPED)
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise OutOfMemoryError(
                f"the host cannot lock {spec.bytes} bytes for the synapses",
                where=f"buffer {spec.name} in host memory",
                got=str(error),
                cure="Close other programs, raise the limit of locked memory, or run a smaller network",
            ) from error
        host: npt.NDArray[Any] = np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), spec.dtype, spec.count)
        host[:] = 0
        return host

    def _as_cupy(self, host: npt.NDArray[Any], spec: BufferSpec) -> Memory:
        """Page-locked ``host`` as a CuPy array; with unified addressing its address is the same on the device."""
        memory = self._cupy.cuda.memory
        unowned = memory.UnownedMemory(host.ctypes.data, max(1, host.nbytes), host, self.device_id)
        return self._cupy.ndarray((spec.count,), spec.dtype, memptr=memory.MemoryPointer(unowned, 0))

    def words(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """The memory of ``buffer`` as int32."""
        spec = buffer.spec.as_words()
        array = buffer.array.view(spec.dtype)
        return DeviceBuffer(spec, array, self._view(array, spec))

    def mapped(self, spec: BufferSpec) -> DeviceBuffer:
        """Page-locked memory; with unified addressing kernels use the host's address."""
        host = self.pinned(spec.count, spec.dtype)
        return DeviceBuffer(spec, host, self._view(self._as_cupy(host, spec), spec))

    def stream(self) -> DeviceStream:
        """A new non-blocking stream."""
        self._use()
        return _Stream(self._cupy)

    def event(self, timing: bool = False) -> DeviceEvent:
        """A new event."""
        return _Event(self._cupy, timing)

    def kernel(self, code: KernelCode) -> Kernel:
        """The kernel of ``code`` as a cuda.core kernel, compiled now, so that nothing is compiled during a run."""
        from cuda.core import ObjectCode

        self._use()
        image = code.image(self.capability)
        return ObjectCode.from_cubin(image.cubin, name=code.name).get_kernel(image.symbols[code.name])

    def registers(self, kernel: Kernel) -> int:
        """Registers per thread of ``kernel``."""
        return int(kernel.attributes[self.device_id].num_regs)

    def pack(self, arguments: Sequence[Any]) -> list[Any]:
        """``arguments`` flattened to the values that the driver takes."""
        return flattened([a.view if isinstance(a, DeviceBuffer) else a for a in arguments])

    def launch(
        self,
        kernel: Kernel,
        grid: int,
        block: int,
        stream: DeviceStream,
        arguments: Sequence[Any],
        overlapped: bool = False,
        cooperative: bool = False,
        shared_bytes: int = 0,
    ) -> None:
        """Queue ``kernel`` on ``stream``."""
        values = arguments if isinstance(arguments, list) else self.pack(arguments)
        on = cast(_Stream, stream).core_stream
        launch_compiled(kernel, grid, block, on, values, overlapped, cooperative, shared_bytes)

    def resident_blocks(self, kernel: Kernel, block: int) -> int:
        """Occupancy: blocks of ``block`` threads per multiprocessor, by registers and static shared memory."""
        return int(kernel.occupancy.max_active_blocks_per_multiprocessor(block, 0))

    def capture(self, launch: Launch) -> DeviceGraph:
        """Capture the kernels that ``launch`` queues in a graph, which replays with one launch."""
        self._use()
        stream = _Stream(self._cupy)
        with stream.cupy_stream:
            stream.cupy_stream.begin_capture()
            launch(stream)
            graph = stream.cupy_stream.end_capture()
        return _Graph(graph)

    def fill(self, buffer: DeviceBuffer, value: int, stream: DeviceStream) -> None:
        """Queue a fill of every byte of ``buffer``."""
        self._cupy.cuda.runtime.memsetAsync(buffer.array.data.ptr, value, buffer.spec.bytes, stream.cupy_stream.ptr)

    def close(self) -> None:
        """Wait for the device; an arena is freed with its last buffer. Closing twice is allowed."""
        self._device.synchronize()
