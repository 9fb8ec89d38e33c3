"""An opened card with a stream of its own, and what watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from burstproof.device.protocol import BufferSpec, DeviceBuffer, DeviceRuntime, DeviceStream
from suites.support.bench.steady import Rule, Timed, Watch, time_steadily

RULE = Rule(max_samples=200, max_seconds=1.5)


@dataclass(frozen=True, eq=False)
class Card:
    """An opened device with one stream, and what watches it."""

    runtime: DeviceRuntime
    stream: DeviceStream
    watch: Callable[[], Watch] | None

    def timed(self, sample: Callable[[], float], rule: Rule = RULE) -> Timed:
        """A steady measurement of ``sample``."""
        return time_steadily(sample, rule, self.watch)

    def buffer(self, name: str, count: int, dtype: type[np.generic]) -> DeviceBuffer:
        """A buffer of its own arena."""
        return self.runtime.allocate([BufferSpec(name, count, np.dtype(dtype))])[name]
