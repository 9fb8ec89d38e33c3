"""Times of a device between two events of one stream; what the host does before and after is not in them."""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.device.protocol import DeviceRuntime, DeviceStream, Launch


@dataclass(frozen=True, eq=False)
class DeviceTimer:
    """Times what ``launch`` queues on ``stream``; a call is one sample, so that a stopping rule can drive it."""

    runtime: DeviceRuntime
    stream: DeviceStream
    launch: Launch

    def __call__(self) -> float:
        """Milliseconds of device time of one launch."""
        start, end = self.runtime.event(timing=True), self.runtime.event(timing=True)
        start.record(self.stream)
        self.launch(self.stream)
        end.record(self.stream)
        end.synchronize()
        return end.elapsed_ms(start)
