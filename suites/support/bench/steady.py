"""Timing with a stopping rule, telemetry beside it, and throttled attempts thrown away."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol

from burstproof.errors import EnvironmentInvalidError
from hardware.nvml_codes import THROTTLING, ClockReason, clock_reason_words
from hardware.stopwatch import Samples, measure_until_steady
from hardware.telemetry import Telemetry
from reports.values.measurement import Scalar
from stages.measuring import Measure
from suites.support.bench.timers import clock

POWER_LIMIT = "sw power cap"
"""Where work draws all the power that the card may take, this is the state that it runs in, not a disturbance."""

AT_FULL_POWER = {POWER_LIMIT, *clock_reason_words(sum(ClockReason) & ~THROTTLING)}
"""What such work may report: the limit, and what never holds a busy GPU back, such as idling before it began."""

ATTEMPTS = 3
"""How often a throttled measurement is tried before it is an error."""


class ThrottledError(EnvironmentInvalidError):
    """Every attempt to measure was throttled: there is no figure."""


class ReplacedClockError(EnvironmentInvalidError):
    """Something put another clock in the place of the process's own: no figure can be believed."""


class Watch(Protocol):
    """What is sampled beside a measurement: a context that can be summed up."""

    def __enter__(self) -> object: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

    def summary(self) -> dict[str, Scalar]: ...


@dataclass(frozen=True)
class Rule:
    """When to stop; see :func:`hardware.stopwatch.measure_until_steady`."""

    warmup: int = 3
    min_samples: int = 20
    max_samples: int = 400
    max_seconds: float = 3.0
    relative_noise: float = 0.005


@dataclass(frozen=True)
class Timed:
    """What was measured in one attempt that was not throttled.

    Attributes
    ----------
    samples : Samples
        In the timer's unit.
    telemetry : mapping
        Of that attempt; empty where nothing watches.
    discarded : int
        Attempts before it that were throttled.
    """

    samples: Samples
    telemetry: Mapping[str, Scalar]
    discarded: int = 0

    @property
    def fastest(self) -> float:
        """The smallest sample."""
        return min(self.samples.values)

    @property
    def how(self) -> str:
        """How steady the figure is, in one clause."""
        samples = self.samples
        text = f"{len(samples.values)} samples, noise {samples.noise:.2%}, stopped: {samples.stopped_because.value}"
        return f"{text}, {self.discarded} throttled attempts discarded" if self.discarded else text

    def put(
        self,
        measure: Measure,
        name: str,
        unit: str,
        conditions: Mapping[str, object],
        note: str = "",
        convert: Callable[[float], float] = float,
    ) -> float:
        """Attach the figure with its samples and telemetry, and return it.

        ``convert`` turns the timer's unit into ``unit``, also a time into a rate. The note ends with :attr:`how`.
        """
        value = convert(self.samples.estimate)
        measure(
            name,
            value,
            unit,
            samples=[convert(sample) for sample in self.samples.values],
            conditions=conditions,
            telemetry=self.telemetry,
            note=f"{note}; {self.how}" if note else self.how,
        )
        return value


def to_us(ms: float) -> float:
    """A time in ms as us."""
    return 1e3 * ms


def telemetry_of(device: int | str) -> Callable[[], Watch]:
    """Watches the GPU with that PCI address (or NVML index)."""
    return lambda: Telemetry(device)


def time_steadily(
    sample: Callable[[], float], rule: Rule, watch: Callable[[], Watch] | None = None, *, full_power: bool = False
) -> Timed:
    """Measure until steady; a throttled attempt is thrown away and repeated.

    ``full_power`` says that the work draws all the power that the card may take: its power limit then counts as no
    throttling, and stands in the telemetry.

    Raises
    ------
    ThrottledError
        Every attempt was throttled.
    ReplacedClockError
        ``time.perf_counter`` is not what it was when this module was imported.
    """
    reasons = []
    for attempt in range(ATTEMPTS):
        if watch is None:
            return Timed(_measured(sample, rule), {})
        beside = watch()
        with beside:
            samples = _measured(sample, rule)
        telemetry = beside.summary()
        found = str(telemetry.get("clock_reasons", "unknown"))
        if not telemetry.get("throttled", False) or (full_power and set(found.split(", ")) <= AT_FULL_POWER):
            return Timed(samples, telemetry, attempt)
        reasons.append(found)
    raise ThrottledError(
        f"the GPU was throttled in each of {ATTEMPTS} attempts, so there is no figure",
        where="stage 6",
        got="; ".join(reasons),
        allowed="a GPU that holds its clock",
        cure="Look at power limit and cooling, end other work on the GPU, and run the stage again",
    )


def _measured(sample: Callable[[], float], rule: Rule) -> Samples:
    samples = measure_until_steady(
        sample,
        warmup=rule.warmup,
        min_samples=rule.min_samples,
        max_samples=rule.max_samples,
        max_seconds=rule.max_seconds,
        relative_noise=rule.relative_noise,
    )
    if time.perf_counter is not clock:
        raise ReplacedClockError(
            "the clock of the process was replaced",
            where="time.perf_counter",
            got=time.perf_counter,
            allowed="the function of Python's own module",
            cure="Find what assigns to time.perf_counter; what is timed must not",
        )
    return samples
