"""Timers: functions that time one call, on a device or on the host."""

from __future__ import annotations

import time
from collections.abc import Callable


def device_ms(launch: Callable[[], object], repeats: int = 1) -> Callable[[], float]:
    """A timer: device time of one call between two events of CuPy's current stream."""
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
    """A timer: wall time of one call."""

    def sample() -> float:
        start = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - start)

    return sample
