"""The interface to one device: buffers, copies, streams, events, kernels and graphs.

``DeviceRuntime`` has two implementations: CuPy on a GPU (``cupy_runtime.py``) and numba's arrays in the CUDA simulator
(``simulator.py``). With either, numba's kernels take ``DeviceBuffer.view``.
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
"""An array of CuPy, of numba's simulator or of NumPy; they have no common type."""

ALIGNMENT = 256
"""Alignment of every buffer in bytes."""


class MachineCode(Protocol):
    """Machine code and the symbols of its functions."""

    @property
    def cubin(self) -> bytes:
        """An ELF file for one capability."""

    @property
    def symbols(self) -> Mapping[str, str]:
        """Symbol in the cubin, by function name."""


class KernelCode(Protocol):
    """A kernel as a Python function, which the simulator runs, and as machine code."""

    @property
    def name(self) -> str:
        """Name of the kernel, in error messages and in ``MachineCode.symbols``."""

    @property
    def function(self) -> Callable[..., None]:
        """The kernel as a Python function."""

    def image(self, capability: tuple[int, int]) -> MachineCode:
        """Machine code for a compute capability."""


@dataclass(frozen=True)
class BufferSpec:
    """Name, number of elements and dtype of a buffer to allocate."""

    name: str
    count: int
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """Size in bytes without alignment."""
        return self.count * self.dtype.itemsize

    @property
    def aligned_bytes(self) -> int:
        """Size in bytes within an arena, at least one alignment unit."""
        return max(1, -(-self.bytes // ALIGNMENT)) * ALIGNMENT

    def as_words(self) -> BufferSpec:
        """The specification of the same bytes, a multiple of four, as int32."""
        return BufferSpec(self.name, self.bytes // 4, np.dtype(np.int32))


@dataclass(frozen=True, eq=False)
class DeviceBuffer:
    """A one-dimensional buffer on the device; ``view`` is for numba's kernels, ``array`` is the runtime's own array."""

    spec: BufferSpec
    array: Memory
    view: Memory


class DeviceStream(Protocol):
    """An ordered queue of device work; ``cupy_stream`` is for CuPy and NCCL, and ``None`` in the simulator."""

    cupy_stream: Stream

    def wait(self, event: DeviceEvent) -> None:
        """Make work queued from now on wait for ``event``."""

    def synchronize(self) -> None:
        """Block the host until the queue is empty."""

    def finished(self) -> bool:
        """Whether the queue is empty; raises the driver's error if the device failed."""


class DeviceEvent(Protocol):
    """A marker in a stream; ``cupy_event`` is ``None`` in the simulator."""

    cupy_event: Event

    def record(self, stream: DeviceStream) -> None:
        """Record the event at the present end of ``stream``."""

    def synchronize(self) -> None:
        """Block the host until the event is reached."""

    def elapsed_ms(self, since: DeviceEvent) -> float:
        """Milliseconds of device time from ``since`` to this event; both created with timing."""


class DeviceGraph(Protocol):
    """Captured work that replays in one launch."""

    def launch(self, stream: DeviceStream) -> None:
        """Queue one replay on ``stream``."""


Launch = Callable[[DeviceStream], None]
"""A function that queues kernels on the stream it is given."""


class DeviceRuntime(Protocol):
    """One device as an engine needs it; not thread-safe.

    ``graphs``: ``capture`` works. ``overlaps``: the device has programmatic dependent launch (``dependent_launch``).
    ``shared_bytes``: most shared memory of a block. ``capability``: compute capability. ``name``: the model.
    """

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
        """Allocate all buffers in one arena, zeroed, each aligned to 256 bytes.

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
        """Allocate large buffers in page-locked host memory, zeroed; kernels reach them over the link.

        Raises
        ------
        OutOfMemoryError
            The host cannot lock that much memory.
        """

    def words(self, buffer: DeviceBuffer) -> DeviceBuffer:
        """The memory of ``buffer``, a multiple of four bytes, as int32."""

    def mapped(self, spec: BufferSpec) -> DeviceBuffer:
        """Zeroed page-locked host memory that kernels reach, too; ``array`` is a NumPy array."""

    def stream(self) -> DeviceStream:
        """A new stream, not synchronised with the default stream."""

    def event(self, timing: bool = False) -> DeviceEvent:
        """A new event."""

    def kernel(self, code: KernelCode) -> Kernel:
        """The kernel of ``code`` for this device."""

    def registers(self, kernel: Kernel) -> int:
        """Registers per thread of ``kernel``."""

    def pack(self, arguments: Sequence[Any]) -> list[Any]:
        """``arguments`` in the form that launches take fastest; such lists may be concatenated."""

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
        """Queue ``kernel`` with ``arguments``: buffers, their views, numpy scalars and tuples, or a list from ``pack``.

        ``overlapped``: it may start before the previous kernel has ended, if the device ``overlaps``. ``cooperative``:
        all blocks are resident at once, at most ``resident_blocks`` per multiprocessor. ``shared_bytes``: dynamic.
        """

    def resident_blocks(self, kernel: Kernel, block: int) -> int:
        """Blocks of ``block`` threads of ``kernel`` that are resident on one multiprocessor at once."""

    def capture(self, launch: Launch) -> DeviceGraph:
        """Capture the kernels that ``launch`` queues in a graph."""

    def close(self) -> None:
        """Wait for all work; an arena is freed with its last buffer. Closing twice is allowed."""


def arena_offsets(specs: Sequence[BufferSpec]) -> tuple[tuple[int, ...], int]:
    """Byte offset of each buffer in one arena, and the arena's size."""
    offsets, end = [], 0
    for spec in specs:
        offsets.append(end)
        end += spec.aligned_bytes
    return tuple(offsets), end
