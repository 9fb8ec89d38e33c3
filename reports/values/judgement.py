"""Judgements of measurements, as values; :mod:`reports.judge.verdict` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reports.values.measurement import Verdict


class ReasonCode(Enum):
    """The reason of a judgement, for programs; the ``text`` of the judgement is for people."""

    WITHIN_LIMIT = "within-limit"
    WITHIN_MARGIN = "within-margin"
    BEYOND_LIMIT = "beyond-limit"
    INTERVAL_STRADDLES_LIMIT = "interval-straddles-limit"
    VALUE_MISSING = "value-missing"
    VALUE_NAN = "value-nan"
    VALUE_INFINITE = "value-infinite"
    SAMPLE_INVALID = "sample-invalid"
    UNIT_MISMATCH = "unit-mismatch"
    FASTER_THAN_FLOOR = "faster-than-floor"
    NEAR_FLOOR = "near-floor"
    BASE_IMPOSSIBLE = "base-impossible"
    FLOOR_IMPOSSIBLE = "floor-impossible"


@dataclass(frozen=True)
class Interval:
    """A confidence interval of the median, in the unit of the target (or of the measurement, without one)."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Limits:
    """What a figure was compared with, in the unit of the judgement.

    ``comparison`` is ``<``, ``<=``, ``>``, ``>=`` or ``range``; ``low`` or ``high`` is ``None`` if there is no such
    bound; ``marginal`` is a fraction of the limit; ``floor`` is that of target or measurement, whichever applied.
    """

    comparison: str
    low: float | None
    high: float | None
    marginal: float = 0.0
    floor: float | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason, for programs and for people, and the figures that it rests on.

    ``value`` is the judged figure in ``unit``, the target's unit, or ``None`` if there was none. ``interval`` is
    ``None`` for fewer than two samples, ``limits`` without a target and in records of version 1.
    """

    verdict: Verdict
    reason_code: ReasonCode
    text: str
    value: float | None = None
    unit: str = "1"
    interval: Interval | None = None
    limits: Limits | None = None


@dataclass(frozen=True)
class JudgedMeasurement:
    """A judgement, the measurement, and the target.

    ``case`` names the :class:`~reports.values.measurement.CaseResult`, ``index`` the measurement within it. ``target``
    is the id of the target; empty if a missing or impossible figure was judged without one.
    """

    case: str
    index: int
    measurement: str
    target: str
    judgement: Judgement
