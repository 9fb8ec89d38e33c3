"""Measurements and case results: what a suite hands to the record of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from reports.values import units

Scalar = str | int | float | bool

SPAN = "timeline.span"
"""Name of the measurements that are spans of a timeline: their length, with the conditions ``lane`` and ``start_us``;
no figures to list or to compare."""


class Verdict(Enum):
    """What was decided about a measurement, a case, a stage or a run (requirement RE-2).

    MARGINAL lies inside the band that the target declares and counts as a pass; AMBIGUOUS means that the confidence
    interval straddles the limit; SKIPPED always carries a reason.
    """

    PASS = "PASS"
    MARGINAL = "MARGINAL"
    FAIL = "FAIL"
    SKIPPED = "SKIPPED"
    ERROR = "ERROR"
    AMBIGUOUS = "AMBIGUOUS"


class Outcome(Enum):
    """How a test case ended."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    ERROR = "error"


@dataclass(frozen=True)
class Aggregate:
    """What a figure of an older baseline stands for: ``count`` figures of its test function, itself among them.

    ``least`` and ``greatest`` are in the figure's unit. All were of cases that passed, and every judgement was PASS.
    Records of today keep every figure.
    """

    count: int
    least: float
    greatest: float


@dataclass(frozen=True)
class Measurement:
    """One measured figure.

    Attributes
    ----------
    name : str
        Dotted name that targets refer to (``burst.latency``).
    value : float or None
        The estimate in ``unit``; ``None`` and NaN are a FAIL, never an empty row.
    unit : str
        ``ms``, ``us``, ``bursts``, ``1`` for a count or ratio.
    samples : tuple of float
        Raw samples in ``unit``, in the order taken.
    conditions : mapping
        What the figure holds for (``backend``, ``neurons``, ``synapses_per_neuron``, ``firing_rate``, ``device``,
        ``cold_l2``); a target matches on these.
    requirements : tuple of str
        Requirement ids, e.g. ``("BE-4",)``.
    telemetry : mapping
        Clocks, power, temperature and throttle reasons sampled beside it; empty on a CPU.
    note : str
        One sentence for the reader: how it was checked or obtained.
    aggregate : Aggregate or None
        What else it stands for, in an older baseline.
    """

    name: str
    value: float | None
    unit: str
    samples: tuple[float, ...] = ()
    conditions: Mapping[str, Scalar] = field(default_factory=dict)
    requirements: tuple[str, ...] = ()
    telemetry: Mapping[str, Scalar] = field(default_factory=dict)
    note: str = ""
    aggregate: Aggregate | None = None

    @property
    def figure(self) -> float | None:
        """The value, or ``None`` where it is missing, NaN or infinite."""
        return self.value if self.value is not None and math.isfinite(self.value) else None

    def is_among_samples(self, slack: float) -> bool:
        """Whether the value lies in the range of the finite samples, or beyond by ``slack`` of the largest at most.

        ``True`` without value or samples: nothing disagrees.
        """
        samples = [sample for sample in self.samples if math.isfinite(sample)]
        if self.figure is None or not samples:
            return True
        most = slack * max(map(abs, samples))
        return min(samples) - most <= self.figure <= max(samples) + most

    def in_unit(self, unit: str) -> float | None:
        """The figure in ``unit``; ``None`` without one, or where the measurement has another dimension."""
        return units.converted(self.value, self.unit, unit)

    def number(self, condition: str) -> float | None:
        """A numeric condition; ``None`` where it is absent, no number, or not finite."""
        value = self.conditions.get(condition)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value)


@dataclass(frozen=True)
class CaseResult:
    """One test case of a stage: its outcome, reason and measurements.

    ``case`` is the pytest node id relative to the checkout; ``reason`` is the skip reason or the failure in one
    paragraph; ``stage`` is a name of the test plan. ``requirements`` are the ids that it proves, ``bears_on`` those
    that it concerns without proving them.
    """

    case: str
    stage: str
    requirements: tuple[str, ...]
    outcome: Outcome
    reason: str = ""
    duration_s: float = 0.0
    title: str = ""
    measurements: tuple[Measurement, ...] = ()
    bears_on: tuple[str, ...] = ()
