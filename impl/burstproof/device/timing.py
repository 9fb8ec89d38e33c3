"""Device timing by events, with the L2 cache warm or cold.

Times are those of the device between two events of one stream; what the host does before and after is not in them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime, DeviceStream, Launch
from burstproof.errors import InputError

_FLUSH_TIMES_L2 = 3


@dataclass(frozen=True, eq=False)
class DeviceTimer:
    """Times launches on one stream; calling it is one sample, so that a stopping rule can drive it.

    Attributes
    ----------
    runtime : DeviceRuntime
    stream : DeviceStream
        Stream that the launches are queued on.
    launch : callable
        Queues the work to time on the stream it is given; must not synchronise.
    repeats : int
        How often the work is queued between the two events; a sample is the time of one. With ``cold`` only 1.
    flush : DeviceBuffer or None
        Written before each sample, outside the timed span, so that nothing of the work's data is left in L2.
    """

    runtime: DeviceRuntime
    stream: DeviceStream
    launch: Launch
    repeats: int = 1
    flush: DeviceBuffer | None = None

    @classmethod
    def open(
        cls, runtime: DeviceRuntime, stream: DeviceStream, launch: Launch, *, repeats: int = 1, cold: bool = False
    ) -> DeviceTimer:
        """A timer; ``cold`` takes a buffer of three times the L2 cache to flush it with.

        Raises
        ------
        InputError
            Repeats below 1, or several repeats with a cold cache: only the first would be cold.
        """
        if repeats < 1 or (cold and repeats != 1):
            raise InputError(
                "not a number of repeats", where="DeviceTimer", got=repeats, allowed="1" if cold else "1 or more"
            )
        flush = None
        if cold:
            spec = BufferSpec("l2_flush", max(1, _FLUSH_TIMES_L2 * runtime.l2_bytes), np.dtype(np.uint8))
            flush = runtime.allocate([spec])[spec.name]
        return cls(runtime, stream, launch, repeats, flush)

    def __call__(self) -> float:
        """Milliseconds of device time of one launch.

        Raises
        ------
        BackendUnavailableError
            The runtime is the simulator, which measures no device time.
        """
        start, end = self.runtime.event(timing=True), self.runtime.event(timing=True)
        if self.flush is not None:
            self.runtime.fill(self.flush, 1, self.stream)
        start.record(self.stream)
        for _ in range(self.repeats):
            self.launch(self.stream)
        end.record(self.stream)
        end.synchronize()
        return end.elapsed_ms(start) / self.repeats
