"""``DeviceRuntime`` in numba's CUDA simulator: arrays in host memory, everything synchronous, no graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
)
from burstproof.errors import BackendUnavailableError

_SIMULATED_BYTES = 8 << 30
_LARGEST_BLOCK = 32


class _Stream:
    cupy_stream = None

    def wait(self, event: DeviceEvent) -> None:
        """Nothing to wait for: all work is done as it is queued."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def finished(self) -> bool:
        """Always true."""
        return True


class _Event:
    cupy_event = None

    def record(self, stream: DeviceStream) -> None:
        """All work before this call is done."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_ms(self, since: DeviceEvent) -> float:
        """The simulator has no device time."""
        raise BackendUnavailableError("the CUDA simulator measures no device time", where="timing")


class SimulatorRuntime:
    """Runs every kernel with one block of at most 32 threads, whatever grid is asked for; see ``DeviceRuntime``.

    So kernels must be grid-stride loops.
    """

    simulated = True
    graphs = False
    overlaps = False
    multiprocessors = 1
    l2_bytes = 0
    shared_bytes = 227 << 10
    capability = 0, 0
    name = "CUDA simulator"

    def memory_info(self) -> tuple[int, int]:
        """A fixed size, free and in total."""
        return _SIMULATED_BYTES, _SIMULATED_BYTES

    def allocate(self, specs: Sequence[BufferSpec]) -> dict[str, DeviceBuffer]:
        """Zeroed arrays of the simulator, one per buffer."""
        buffers = {}
        for spec in specs:
            array = cuda.to_device(np.zeros(spec.count, spec.dtype))
            buffers[spec.name] = DeviceBuffer(spec, array, array)
        return buffers

    def allocate_host(self, specs: Sequence[BufferSpec]) -> dict[str, DeviceBuffer]:
        """As ``allocate``: all memory is the host's."""
        return self.allocate(specs)

    def words(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """The memory of ``buffer`` as int32."""
        spec = buffer.spec.as_words()
        array = buffer.array.view(spec.dtype)
        return DeviceBuffer(spec, array, array)

    def upload(self, buffer: DeviceBuffer, host: npt.NDArray[Any], stream: DeviceStream, offset: int = 0) -> None:
        """Copy at once."""
        buffer.array[offset : offset + len(host)] = host

    def download(self, host: npt.NDArray[Any], buffer: DeviceBuffer, stream: DeviceStream, offset: int = 0) -> None:
        """Copy at once."""
        host[:] = buffer.array.copy_to_host()[offset : offset + len(host)]

    def pinned(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An ordinary zeroed array."""
        return np.zeros(count, dtype)

    def mapped(self, spec: BufferSpec) -> DeviceBuffer:
        """A NumPy array, which the simulator's kernels take directly."""
        array = np.zeros(spec.count, spec.dtype)
        return DeviceBuffer(spec, array, array)

    def stream(self) -> DeviceStream:
        """A stream that is always empty."""
        return _Stream()

    def event(self, timing: bool = False) -> DeviceEvent:
        """An event that is always reached."""
        return _Event()

    def kernel(self, code: KernelCode) -> Kernel:
        """The function of ``code`` as a simulated kernel."""
        return cuda.jit(code.function)

    def registers(self, kernel: Kernel) -> int:
        """Always 0: a simulated kernel has no machine code."""
        return 0

    def pack(self, arguments: Sequence[Any]) -> list[Any]:
        """``arguments`` with views in place of buffers."""
        return [a.view if isinstance(a, DeviceBuffer) else a for a in arguments]

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
        """Run the kernel to its end with one block."""
        kernel[1, min(block, _LARGEST_BLOCK), 0, shared_bytes](*self.pack(arguments))

    def resident_blocks(self, kernel: Kernel, block: int) -> int:
        """The one block that runs."""
        return 1

    def capture(self, launch: Launch) -> DeviceGraph:
        """Not supported.

        Raises
        ------
        BackendUnavailableError
            Always.
        """
        raise BackendUnavailableError("the CUDA simulator has no graphs", where="enable_cuda_graphs")

    def fill(self, buffer: DeviceBuffer, value: int, stream: DeviceStream) -> None:
        """Fill at once."""
        filled = np.full(buffer.spec.bytes, value, np.uint8)
        buffer.array[:] = filled.view(buffer.spec.dtype)

    def close(self) -> None:
        """Nothing to free."""
