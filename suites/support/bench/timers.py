"""Timers: one call is one sample, so that a stopping rule can drive it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from burstproof.device.protocol import DeviceRuntime, DeviceStream, Launch

clock = time.perf_counter
"""Seconds; taken when this module is imported, so that nothing that is timed can put another in its place."""


def waits(us: float, count: int) -> npt.NDArray[np.float64]:
    """How long each of ``count`` waits of ``us`` microseconds took, float64 (count,), in us.

    The host does nothing but read its clock. Where a wait took longer, its core did something else meanwhile.
    """
    taken = np.empty(count)
    for place in range(count):
        start = now = clock()
        while (now - start) * 1e6 < us:
            now = clock()
        taken[place] = (now - start) * 1e6
    return taken


@dataclass(frozen=True, eq=False)
class DeviceTimer:
    """Times what ``launch`` queues on ``stream`` between two events; host work is not in the time."""

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


def device_ms(launch: Callable[[], object], repeats: int = 1) -> Callable[[], float]:
    """Device time of one call between two events of CuPy's current stream."""
    import cupy

    def sample() -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        for _ in range(repeats):
            launch()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end)) / repeats

    return sample


def host_ms(call: Callable[[], object]) -> Callable[[], float]:
    """Wall time of one call."""

    def sample() -> float:
        start = clock()
        call()
        return 1e3 * (clock() - start)

    return sample
