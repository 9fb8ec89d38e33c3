"""What was decided about a measurement: values only; the deciding is in :mod:`reports.judge.verdict`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from reports.values.measurement import Verdict


class ReasonCode(Enum):
    """Why a judgement came out as it did: what programs branch on, where ``text`` is for people."""

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
    """What a figure was held against, in the unit of the judgement.

    ``comparison`` is ``<``, ``<=``, ``>``, ``>=`` or ``range``; ``low`` and ``high`` are ``None`` on the side without
    a bound; ``marginal`` is a fraction of the limit; ``floor`` is the one that applied, of target or measurement.
    """

    comparison: str
    low: float | None
    high: float | None
    marginal: float = 0.0
    floor: float | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict, why (for programs and for people), and how sure.

    ``value`` is the judged figure in ``unit``, the target's unit; ``None`` where there was none. ``interval`` is
    ``None`` where fewer than two samples were taken, ``limits`` where there was no target, and in records of version 1.
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
    """A judgement and what it is about.

    ``case`` names the :class:`~reports.values.measurement.CaseResult`, ``index`` the measurement within it. ``target``
    is the id of the target, or empty where a missing value was judged without one.
    """

    case: str
    index: int
    measurement: str
    target: str
    judgement: Judgement
