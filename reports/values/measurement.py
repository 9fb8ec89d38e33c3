"""Measurements and results of cases: what a suite contributes to the record of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from reports.values import units

Scalar = str | int | float | bool

SPAN = "timeline.span"
"""Name of the spans of a timeline (conditions ``lane``, ``start_us``), which are drawn, not listed or compared."""


class Verdict(Enum):
    """The verdict on a measurement, a case, a stage or a run (requirement RE-2).

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
    """In an older baseline one figure may stand for ``count`` figures of its test function, itself included.

    ``least`` and ``greatest`` are in the figure's unit. All cases passed and every judgement was PASS. Records of today
    keep every figure.
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
        The estimate in ``unit``; ``None`` and NaN are a FAIL.
    unit : str
        ``ms``, ``us``, ``bursts``, ``1`` for a count or ratio.
    samples : tuple of float
        Raw samples in ``unit``, in the order taken.
    conditions : mapping
        What was measured (``backend``, ``neurons``, ``synapses_per_neuron``, ``firing_rate``, ``device``, ``cold_l2``);
        targets match on these.
    requirements : tuple of str
        Requirement ids, e.g. ``("BE-4",)``.
    telemetry : mapping
        Clocks, power, temperature and throttle reasons, sampled during the measurement; empty on a CPU.
    note : str
        One sentence for the reader: how it was checked or obtained.
    aggregate : Aggregate or None
        In an older baseline, the figures that it stands for.
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
        """The value, or ``None`` if it is missing, NaN or infinite."""
        return self.value if self.value is not None and math.isfinite(self.value) else None

    def is_among_samples(self, slack: float) -> bool:
        """Whether the value lies within the range of the finite samples, widened by ``slack`` times the largest.

        ``True`` without value or samples.
        """
        samples = [sample for sample in self.samples if math.isfinite(sample)]
        if self.figure is None or not samples:
            return True
        most = slack * max(map(abs, samples))
        return min(samples) - most <= self.figure <= max(samples) + most

    def in_unit(self, unit: str) -> float | None:
        """The value in ``unit``; ``None`` if it is missing or not finite, or if the units have different dimensions."""
        return units.converted(self.value, self.unit, unit)

    def number(self, condition: str) -> float | None:
        """A numeric condition; ``None`` if it is absent, no number, or not finite."""
        value = self.conditions.get(condition)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value)


@dataclass(frozen=True)
class CaseResult:
    """One test case of a stage: its outcome, reason and measurements.

    ``case`` is the pytest node id relative to the checkout; ``reason`` is the skip reason or the failure in one
    paragraph; ``stage`` is a name of the test plan. ``requirements`` are the ids that the case proves, ``bears_on``
    those that its failure would disprove, but its pass does not prove.
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
