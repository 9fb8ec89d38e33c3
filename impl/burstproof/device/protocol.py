"""A small runtime seam: buffers, copies, streams, events and graphs on one device.

``DeviceRuntime`` has two implementations: CuPy on a real GPU (``cupy_runtime.py``) and numba's own arrays in the CUDA
simulator (``simulator.py``). Kernels of ``numba.cuda`` take ``DeviceBuffer.view`` on either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from cupy.cuda import Event, Stream

Kernel = Any
"""A compiled kernel; neither numba nor its simulator has a type for it."""

Signature = Any
"""What ``numba.types.void(...)`` returns."""

Memory = Any
"""An array of CuPy, of numba's simulator or of NumPy, which have no common type."""

ALIGNMENT = 256
"""Bytes to which every buffer starts aligned."""


class MachineCode(Protocol):
    """Machine code with the names that functions have in it."""

    @property
    def cubin(self) -> bytes:
        """An ELF file for one capability."""

    @property
    def symbols(self) -> Mapping[str, str]:
        """Name in the cubin of each function."""


class KernelCode(Protocol):
    """A kernel in Python, which the simulator runs as it is, and its machine code."""

    @property
    def name(self) -> str:
        """Name in errors and of its function."""

    @property
    def function(self) -> Callable[..., None]:
        """What the kernel does."""

    def image(self, capability: tuple[int, int]) -> MachineCode:
        """Machine code for a compute capability."""


@dataclass(frozen=True)
class BufferSpec:
    """A buffer to be: its name, number of elements and dtype."""

    name: str
    count: int
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """Size in bytes without alignment."""
        return self.count * self.dtype.itemsize

    @property
    def aligned_bytes(self) -> int:
        """Size in bytes that it takes in the arena, at least one alignment unit."""
        return max(1, -(-self.bytes // ALIGNMENT)) * ALIGNMENT

    def as_words(self) -> BufferSpec:
        """The same bytes, a multiple of four, as int32."""
        return BufferSpec(self.name, self.bytes // 4, np.dtype(np.int32))


@dataclass(frozen=True, eq=False)
class DeviceBuffer:
    """A one-dimensional buffer on the device; ``view`` is what a numba kernel takes, ``array`` the runtime's own."""

    spec: BufferSpec
    array: Memory
    view: Memory


class DeviceStream(Protocol):
    """An ordered queue of device work; ``cupy_stream`` is what CuPy and NCCL take, absent in the simulator."""

    cupy_stream: Stream

    def wait(self, event: DeviceEvent) -> None:
        """Let work queued from now on wait for ``event``."""

    def synchronize(self) -> None:
        """Block the host until the queue is empty."""

    def finished(self) -> bool:
        """Whether the queue is empty; a device that failed raises its driver's error."""


class DeviceEvent(Protocol):
    """A mark in a stream; ``cupy_event`` is absent in the simulator."""

    cupy_event: Event

    def record(self, stream: DeviceStream) -> None:
        """Mark the present end of ``stream``."""

    def synchronize(self) -> None:
        """Block the host until the mark is reached."""

    def elapsed_ms(self, since: DeviceEvent) -> float:
        """Milliseconds of device time from ``since`` to this mark; both created with timing."""


class DeviceGraph(Protocol):
    """Captured work that replays in one launch."""

    def launch(self, stream: DeviceStream) -> None:
        """Queue one replay."""


Launch = Callable[[DeviceStream], None]
"""Queues kernels on the stream it is given."""


class DeviceRuntime(Protocol):
    """What an engine needs of one device; not thread-safe."""

    simulated: bool
    graphs: bool
    overlaps: bool
    multiprocessors: int
    l2_bytes: int
    shared_bytes: int
    capability: tuple[int, int]
    name: str

    def memory_info(self) -> tuple[int, int]:
        """Bytes free and bytes in total."""

    def allocate(self, specs: Sequence[BufferSpec]) -> dict[str, DeviceBuffer]:
        """All buffers from one arena, zeroed, each aligned to 256 bytes.

        Raises
        ------
        OutOfMemoryError
            The arena cannot be allocated.
        """

    def upload(self, buffer: DeviceBuffer, host: npt.NDArray[Any], stream: DeviceStream, offset: int = 0) -> None:
        """Queue a copy of ``host`` (same dtype) to ``buffer[offset:]``; asynchronous if ``host`` is pinned."""

    def download(self, host: npt.NDArray[Any], buffer: DeviceBuffer, stream: DeviceStream, offset: int = 0) -> None:
        """Queue a copy of ``buffer[offset:]`` that fills ``host``; asynchronous if ``host`` is pinned."""

    def fill(self, buffer: DeviceBuffer, value: int, stream: DeviceStream) -> None:
        """Queue a fill of every byte of ``buffer`` with ``value`` (0...255)."""

    def pinned(self, count: int, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """A zeroed page-locked host array."""

    def allocate_host(self, specs: Sequence[BufferSpec]) -> dict[str, DeviceBuffer]:
        """Zeroed page-locked host memory that kernels reach over the link, for large buffers; copied as others are.

        Raises
        ------
        OutOfMemoryError
            The host cannot lock that much memory.
        """

    def words(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """The memory of ``buffer``, a multiple of four bytes, as int32."""

    def mapped(self, spec: BufferSpec) -> DeviceBuffer:
        """Zeroed page-locked host memory that kernels reach too; ``array`` is the host's numpy array."""

    def stream(self) -> DeviceStream:
        """A new stream that does not wait for the default stream."""

    def event(self, timing: bool = False) -> DeviceEvent:
        """A new event."""

    def kernel(self, code: KernelCode) -> Kernel:
        """The kernel of ``code`` for this device."""

    def registers(self, kernel: Kernel) -> int:
        """Registers of a thread of ``kernel``."""

    def pack(self, arguments: Sequence[Any]) -> list[Any]:
        """``arguments`` in the form that launches take fastest; those of several may be joined."""

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
        """Queue ``kernel`` with ``arguments``: buffers, their views, numpy scalars and tuples, or packed already.

        An ``overlapped`` one may come up before the last has ended (``dependent_launch``), if the device ``overlaps``.
        The blocks of a ``cooperative`` one are on the device all at once; there may be ``resident_blocks`` of them.
        """

    def resident_blocks(self, kernel: Kernel, block: int) -> int:
        """Blocks of ``block`` threads of ``kernel`` that one multiprocessor holds at once."""

    def capture(self, launch: Launch) -> DeviceGraph:
        """The kernels that ``launch`` queues, as a graph."""

    def close(self) -> None:
        """Wait for all work; an arena goes with the last of its buffers. Closing twice is allowed."""


def arena_offsets(specs: Sequence[BufferSpec]) -> tuple[tuple[int, ...], int]:
    """Byte offset of each buffer in one arena, and the arena's size."""
    offsets, end = [], 0
    for spec in specs:
        offsets.append(end)
        end += spec.aligned_bytes
    return tuple(offsets), end
