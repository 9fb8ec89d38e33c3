"""Changes of single elements of device columns: records in mapped host memory that a kernel scatters."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.compiling import compiled_once

_BLOCK = 128
_FIRST_ROOM = 1 << 14
"""Initial capacity of the record, in changes; when it is full, it is written from its start again."""


class Changes:
    """Queues changes ahead of coming bursts; the host waits only when the record is full."""

    def __init__(self, runtime: DeviceRuntime, stream: DeviceStream) -> None:
        from burstproof.engine.cuda.kernels.scatter import RECORD, scatter_kernel

        self._runtime, self._stream, self._words = runtime, stream, RECORD
        self._kernel = compiled_once(runtime, scatter_kernel())
        self._columns: dict[str, tuple[DeviceBuffer, list[Any]]] = {}
        self._make(_FIRST_ROOM)

    def _make(self, room: int) -> None:
        self._record = self._runtime.mapped(BufferSpec("changes", self._words * room, np.dtype(np.uint32)))
        self._packed_record = self._runtime.pack((self._record,))
        self._used = 0

    def queue(self, column: DeviceBuffer, places: npt.NDArray[Any], values: npt.NDArray[np.float32]) -> None:
        """Queue ``values`` (K,) for the distinct ``places`` (K,) of a float32 ``column`` on the device."""
        count = len(places)
        if self._used + count > self._record.spec.count // self._words:
            self._stream.synchronize()
            self._used = 0
            if count > self._record.spec.count // self._words:
                self._make(2 * count)
        record = self._record.array[self._words * self._used : self._words * (self._used + count)]
        record[0::2] = places
        record[1::2] = np.ascontiguousarray(values, np.float32).view(np.uint32)
        first = self._words * self._used
        self._used += count
        arguments = [*self._packed_record, *self._packed(column), *self._runtime.pack(_numbers(first, count))]
        self._runtime.launch(self._kernel, -(-count // _BLOCK), _BLOCK, self._stream, arguments)

    def _packed(self, column: DeviceBuffer) -> list[Any]:
        """``column`` packed as launch arguments, once per buffer."""
        name = column.spec.name
        if name not in self._columns or self._columns[name][0] is not column:
            self._columns[name] = column, self._runtime.pack((column,))
        return self._columns[name][1]


def _numbers(*values: int) -> tuple[np.uint32, ...]:
    return tuple(np.uint32(value) for value in values)
