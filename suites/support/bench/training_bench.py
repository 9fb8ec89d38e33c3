"""What the cases of attention and of GPT-2 share: timers and PyTorch beside them, where it is installed."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

from suites.support.bench.card_limits import Card
from suites.support.bench.steady import Rule, Timed, time_steadily

RULE = Rule(warmup=3, min_samples=15, max_samples=150, max_seconds=1.0)
HAS_TORCH = importlib.util.find_spec("torch") is not None
NO_TORCH = "PyTorch is not installed, so nothing is measured beside it"


def device_time(card: Card, work: Callable[[], object]) -> Timed:
    """ms between two events of CuPy's current stream around ``work``."""
    import cupy

    def sample() -> float:
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        work()
        end.record()
        end.synchronize()
        return float(cupy.cuda.get_elapsed_time(start, end))

    return time_steadily(sample, RULE, card.watch, full_power=True)


def step_time(card: Card, work: Callable[[], object], steps: int = 5) -> Timed:
    """ms of wall time a call, over ``steps`` calls that end with a wait for the device: what a user's loop takes."""
    import cupy

    def sample() -> float:
        start = time.perf_counter()
        for _ in range(steps):
            work()
        cupy.cuda.Device().synchronize()
        return 1e3 * (time.perf_counter() - start) / steps

    return time_steadily(sample, RULE, card.watch, full_power=True)


def as_torch(array: Any) -> Any:
    """A bfloat16 tensor on the memory of a CuPy array of bit patterns."""
    import torch

    return torch.from_dlpack(array).view(torch.bfloat16)


def free_memory() -> int:
    """Bytes that the driver has left once CuPy's and PyTorch's pools gave back what they hold unused."""
    import gc

    import cupy

    gc.collect()
    cupy.get_default_memory_pool().free_all_blocks()
    if HAS_TORCH:
        import torch

        torch.cuda.empty_cache()
    return memory_left()


def memory_left() -> int:
    """Bytes that the driver has left now, while the pools hold the most that work needed at once."""
    import cupy

    cupy.cuda.Device().synchronize()
    return int(cupy.cuda.runtime.memGetInfo()[0])
