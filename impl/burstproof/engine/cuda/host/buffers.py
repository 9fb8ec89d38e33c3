"""The device buffers of a network or shard by name, read and written by the host between bursts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceBuffer, DeviceRuntime, DeviceStream
from burstproof.engine.cuda.host.changes import Changes


class DeviceBuffers:
    """Reads and writes buffers; no other work may run on the stream meanwhile."""

    def __init__(self, runtime: DeviceRuntime, stream: DeviceStream, buffers: dict[str, DeviceBuffer]) -> None:
        self._runtime = runtime
        self._stream = stream
        self._buffers = buffers
        self._changes: Changes | None = None

    def holds(self, name: str, values: npt.NDArray[Any]) -> bool:
        """Whether there is a buffer ``name`` with room for ``values``; a variant has only buffers that it uses."""
        return name in self._buffers and len(values) <= self._buffers[name].spec.count

    def buffer(self, name: str) -> DeviceBuffer:
        """Buffer ``name``."""
        return self._buffers[name]

    def read(self, name: str) -> npt.NDArray[Any]:
        """The whole buffer ``name``."""
        return self.read_from(name, 0, self._buffers[name].spec.count)

    def read_from(self, name: str, first: int, count: int) -> npt.NDArray[Any]:
        """``count`` elements of buffer ``name`` from ``first`` on."""
        buffer = self._buffers[name]
        host = np.empty(count, buffer.spec.dtype)
        self._runtime.download(host, buffer, self._stream, first)
        self._stream.synchronize()
        return host

    def read_at(self, name: str, place: int) -> Any:
        """One element of buffer ``name``."""
        return self.read_from(name, place, 1)[0]

    def write(self, name: str, values: npt.NDArray[Any]) -> None:
        """Write ``values`` to the start of buffer ``name``."""
        buffer = self._buffers[name]
        host = np.ascontiguousarray(values, buffer.spec.dtype)
        self._runtime.upload(buffer, host, self._stream)
        self._stream.synchronize()

    def clear(self, name: str) -> None:
        """Set buffer ``name`` to zeros."""
        self._runtime.fill(self._buffers[name], 0, self._stream)
        self._stream.synchronize()

    def write_control(self, place: int, value: int) -> None:
        """Set one element of the control array."""
        self.write_at("control", place, value)

    def write_at(self, name: str, place: int, value: Any) -> None:
        """Set one element of buffer ``name``."""
        buffer = self._buffers[name]
        self._runtime.upload(buffer, np.array([value], buffer.spec.dtype), self._stream, place)
        self._stream.synchronize()

    def change(self, name: str, places: npt.NDArray[Any], values: npt.NDArray[np.float32]) -> None:
        """Queue ``values`` for single elements, ``places``, of the float32 buffer ``name``, ahead of coming bursts."""
        self._changes = self._changes or Changes(self._runtime, self._stream)
        self._changes.queue(self._buffers[name], places, values)

    def page_locked(self, name: str) -> npt.NDArray[Any]:
        """Page-locked host memory of the size of buffer ``name``, for ``bring``."""
        spec = self._buffers[name].spec
        return self._runtime.pinned(spec.count, spec.dtype)

    def bring(self, name: str, host: npt.NDArray[Any]) -> None:
        """Queue a copy of buffer ``name`` to page-locked ``host``, after the bursts queued so far."""
        self._runtime.download(host, self._buffers[name], self._stream)

    def wait(self) -> None:
        """Block the host until the stream is idle."""
        self._stream.synchronize()
