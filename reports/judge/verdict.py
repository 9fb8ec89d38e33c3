"""Decides all verdicts: of a measurement against its target, and from these of cases, stages and runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum, auto

from burstproof.errors import ExitCode, InputError
from reports.judge.bases import without_base
from reports.judge.statistics import median_interval
from reports.judge.targets import Comparison, Target, match
from reports.values import units
from reports.values.judgement import Interval, JudgedMeasurement, Judgement, Limits, ReasonCode
from reports.values.measurement import CaseResult, Measurement, Outcome, Verdict
from reports.values.record import RunRecord, StageRun

FLOOR_CONDITION = "floor"
"""Condition under which a measurement states, in its own unit, what the hardware cannot beat."""

FITTED_COSTS = "burst.cost_"
"""Prefix of the names of fitted times, which may come out at 0 or below, as no measured time can."""

FLOOR_NOISE = 0.01
"""Relative error of a floor, which is measured, too: a figure that is better by no more has reached the floor."""

WORST_FIRST = (Verdict.FAIL, Verdict.ERROR, Verdict.AMBIGUOUS, Verdict.MARGINAL, Verdict.PASS, Verdict.SKIPPED)
"""FAIL outranks all others (RE-2); what could not be judged outranks what was judged to be good."""

OUTCOME_VERDICTS = {
    Outcome.PASSED: Verdict.PASS,
    Outcome.FAILED: Verdict.FAIL,
    Outcome.SKIPPED: Verdict.SKIPPED,
    Outcome.ERROR: Verdict.ERROR,
}
"""The verdict on a case by its outcome alone; its figures may make it worse."""


class _Side(Enum):
    """Where a figure lies relative to the bounds of a target."""

    UNDER = auto()
    GOOD = auto()
    OVER = auto()


def judge(measurement: Measurement, target: Target | None) -> Judgement:
    """Judge a measurement by a target.

    Parameters
    ----------
    measurement : Measurement
        Two or more samples give a confidence interval of the median.
    target : Target or None
        ``None`` judges only whether there is a figure and whether it is possible.

    Returns
    -------
    Judgement
        FAIL: the value or a sample is missing, NaN or infinite, or the figure is beyond the limit.
        ERROR: the unit cannot be compared; a floor or a time is not above 0; or the figure is better than its floor by
        more than ``FLOOR_NOISE``, if unit or target say which way is better. AMBIGUOUS: the interval straddles the
        limit. MARGINAL: the figure meets the limit inside the target's band, or misses it within the target's
        ``near_floor`` of its floor. PASS: otherwise.
    """
    judgement, floor = _judge(measurement, target)
    return replace(judgement, limits=_limits(target, floor) if target else None)


def _judge(measurement: Measurement, target: Target | None) -> tuple[Judgement, float | None]:
    """The judgement without its limits, and the floor that was taken into account."""
    figure = _figure(measurement)
    if isinstance(figure, Judgement):
        return figure, None
    unit = target.unit if target else measurement.unit
    try:
        value = units.convert(figure, measurement.unit, unit)
        scale = units.convert(1.0, measurement.unit, unit)
        floor = _floor(measurement, target)
    except InputError as error:
        return Judgement(Verdict.ERROR, ReasonCode.UNIT_MISMATCH, str(error), None, unit), None
    interval = _interval(measurement, scale)
    wrong = _wrong_floor(measurement, unit)
    if wrong:
        return Judgement(Verdict.ERROR, ReasonCode.FLOOR_IMPOSSIBLE, wrong, value, unit, interval), None
    verdict, reason, text = _impossible(measurement, target) or _decide(value, interval, target, floor, unit)
    return Judgement(verdict, reason, text, value, unit, interval), floor


def _limits(target: Target, floor: float | None) -> Limits:
    low, high = (bound if math.isfinite(bound) else None for bound in (target.low, target.high))
    return Limits(target.comparison.value, low, high, target.marginal, target.floor if floor is None else floor)


def judge_cases(cases: Iterable[CaseResult], targets: Sequence[Target] | None = None) -> tuple[JudgedMeasurement, ...]:
    """Judge every measurement of ``cases`` against every target that matches it.

    A measurement without a target is judged, too, but listed only if it does not pass. Ratios of a case with an
    impossible figure are an ERROR (:func:`~reports.judge.bases.without_base`).
    """
    judged: list[JudgedMeasurement] = []
    for case in cases:
        of_case = []
        for index, measurement in enumerate(case.measurements):
            matching: tuple[Target | None, ...] = match(measurement, targets)
            for target in matching or (None,):
                judgement = judge(measurement, target)
                if target is not None or judgement.verdict is not Verdict.PASS:
                    name = target.id if target else ""
                    of_case.append(JudgedMeasurement(case.case, index, measurement.name, name, judgement))
        judged += without_base(case, of_case)
    return tuple(judged)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of several verdicts; SKIPPED if there are none."""
    return min(verdicts, key=WORST_FIRST.index, default=Verdict.SKIPPED)


def case_verdict(case: CaseResult, judgements: Iterable[JudgedMeasurement]) -> Verdict:
    """Verdict of a case: the worst of its outcome, its judgements, and FAIL for each figure without a value."""
    own = [judged.judgement.verdict for judged in judgements if judged.case == case.case]
    missing = [Verdict.FAIL for measurement in case.measurements if isinstance(_figure(measurement), Judgement)]
    return worst([OUTCOME_VERDICTS[case.outcome], *own, *missing])


def stage_verdict(record: RunRecord, stage: StageRun) -> Verdict:
    """Verdict of a planned stage: ERROR if it did not finish, was narrowed, or has an open gate and ran nothing."""
    cases = record.cases_of(stage.stage)
    verdicts = [case_verdict(case, record.judgements_of(case.case)) for case in cases]
    if stage.problem or stage.deselected or (stage.gate_open and not cases):
        verdicts.append(Verdict.ERROR)
    return worst(verdicts)


def run_verdict(record: RunRecord) -> Verdict:
    """Verdict of a run; an unfinished one is an ERROR at least."""
    planned = {stage.stage for stage in record.stages}
    verdicts = [stage_verdict(record, stage) for stage in record.stages]
    others = (case for case in record.cases if case.stage not in planned)
    verdicts += [case_verdict(case, record.judgements_of(case.case)) for case in others]
    if not record.finished_utc:
        verdicts.append(Verdict.ERROR)
    return worst(verdicts)


def exit_code(record: RunRecord, asked_by_name: Sequence[str] | None = None) -> ExitCode:
    """Exit code of a run (requirement RE-2).

    Parameters
    ----------
    record : RunRecord
    asked_by_name : sequence of str, optional
        Stages named on the command line; by default those that the record names.

    Returns
    -------
    ExitCode
        The first that applies: FAIL, UNDECIDED (ERROR or AMBIGUOUS), USAGE (a named stage is not in the plan),
        INVALID_ENVIRONMENT (the gate of a named stage is closed, or nothing ran), PASS.
    """
    verdict = run_verdict(record)
    if verdict is Verdict.FAIL:
        return ExitCode.FAIL
    if verdict in (Verdict.ERROR, Verdict.AMBIGUOUS):
        return ExitCode.UNDECIDED
    asked = record.asked if asked_by_name is None else asked_by_name
    gates = {stage.stage: stage.gate_open for stage in record.stages}
    if any(name not in gates for name in asked):
        return ExitCode.USAGE
    if verdict is Verdict.SKIPPED or not all(gates[name] for name in asked):
        return ExitCode.INVALID_ENVIRONMENT
    return ExitCode.PASS


def summary_of(record: RunRecord) -> dict[str, str | int]:
    """Verdict and exit code of a run, which a record states first, for programs."""
    return {"verdict": run_verdict(record).value, "exit_code": int(exit_code(record))}


def _figure(measurement: Measurement) -> float | Judgement:
    """The finite value of a measurement, or a FAIL if it or one of the samples is not finite."""
    value, unit = measurement.value, measurement.unit
    if value is None:
        return _fail(ReasonCode.VALUE_MISSING, f"{measurement.name} has no value", unit)
    if math.isnan(value):
        return _fail(ReasonCode.VALUE_NAN, f"{measurement.name} is not a number", unit)
    if math.isinf(value):
        return _fail(ReasonCode.VALUE_INFINITE, f"{measurement.name} is infinite", unit)
    bad = sum(not math.isfinite(sample) for sample in measurement.samples)
    if bad:
        text = f"{bad} of {len(measurement.samples)} samples of {measurement.name} are not finite"
        return _fail(ReasonCode.SAMPLE_INVALID, text, unit)
    return value


def _fail(reason: ReasonCode, text: str, unit: str) -> Judgement:
    return Judgement(Verdict.FAIL, reason, text, None, unit)


def _wrong_floor(measurement: Measurement, unit: str) -> str:
    """What is wrong with the floor that a measurement states; empty if it is right, or if there is none."""
    if FLOOR_CONDITION not in measurement.conditions:
        return ""
    floor = measurement.number(FLOOR_CONDITION)
    if floor is not None and units.convert(floor, measurement.unit, unit) > 0.0:
        return ""
    stated = units.scalar_text(measurement.conditions[FLOOR_CONDITION])
    return f"a floor must be a number above 0, not {stated} {measurement.unit}: measured wrongly"


def _impossible(measurement: Measurement, target: Target | None) -> tuple[Verdict, ReasonCode, str] | None:
    """The ERROR of a time or an energy that is not above 0; ``None`` for all other figures.

    An energy of 0 is possible, since the counter may not have moved yet. So is any fitted cost that has no target.
    """
    value, unit = measurement.figure, measurement.unit
    if value is None or value > 0.0 or not units.lower_is_better(unit):
        return None
    if value == 0.0 and units.dimension(unit) != "time":
        return None
    if target is None and measurement.name.startswith(FITTED_COSTS):
        return None
    return Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR, f"{units.shown(value, unit)} is not above 0: measured wrongly"


def _floor(measurement: Measurement, target: Target | None) -> float | None:
    """The tightest floor of target and measurement, in the target's unit; ``None`` without floor or direction."""
    unit = target.unit if target else measurement.unit
    if target is None and units.lower_is_better(unit) is None:
        return None
    floors = [target.floor] if target and target.floor is not None else []
    own = measurement.number(FLOOR_CONDITION)
    if own is not None:
        floors.append(units.convert(own, measurement.unit, unit))
    if not floors:
        return None
    return min(floors) if higher_is_better(unit, target) else max(floors)


def higher_is_better(unit: str, target: Target | None) -> bool:
    """Whether more is better, so that the floor is the greatest possible figure.

    True for rates, and for shares and ratios whose target has a lower limit only.
    """
    lower = units.lower_is_better(unit)
    if lower is None and target is not None:
        return math.isfinite(target.low) and not math.isfinite(target.high)
    return lower is False


def _interval(measurement: Measurement, scale: float) -> Interval | None:
    interval = median_interval(measurement.samples)
    if interval is None:
        return None
    return replace(interval, low=interval.low * scale, high=interval.high * scale)


def _decide(
    value: float, interval: Interval | None, target: Target | None, floor: float | None, unit: str
) -> tuple[Verdict, ReasonCode, str]:
    if floor is not None and _is_beyond(value, floor, higher=higher_is_better(unit, target)):
        text = f"{units.shown(value, unit)} is better than the floor of {units.shown(floor, unit)}: measured wrongly"
        return Verdict.ERROR, ReasonCode.FASTER_THAN_FLOOR, text
    if target is None:
        return Verdict.PASS, ReasonCode.WITHIN_LIMIT, "recorded; no target applies"
    if floor is not None and _side(value, target) is not _Side.GOOD and _is_near(value, floor, target):
        text = f"{units.shown(value, unit)} misses {target.limit_text}, but the floor is {units.shown(floor, unit)}"
        return Verdict.MARGINAL, ReasonCode.NEAR_FLOOR, text
    low = value if interval is None else min(value, interval.low)
    high = value if interval is None else max(value, interval.high)
    limit = target.limit_text
    if _side(low, target) is not _side(high, target):
        text = f"the interval {units.shown(low)} to {units.shown(high, unit)} straddles the limit {limit}"
        return Verdict.AMBIGUOUS, ReasonCode.INTERVAL_STRADDLES_LIMIT, text
    if _side(value, target) is not _Side.GOOD:
        return Verdict.FAIL, ReasonCode.BEYOND_LIMIT, f"{units.shown(value, unit)} misses {limit}{_by(value, target)}"
    if _in_band(value, target):
        text = f"{units.shown(value, unit)} meets {limit} by less than {100 * target.marginal:g} %"
        return Verdict.MARGINAL, ReasonCode.WITHIN_MARGIN, text
    return Verdict.PASS, ReasonCode.WITHIN_LIMIT, f"{units.shown(value, unit)} meets {limit}"


def _is_beyond(value: float, floor: float, *, higher: bool) -> bool:
    """Whether a figure is better than any hardware can be; ``higher`` says whether more is better."""
    return value > floor * (1.0 + FLOOR_NOISE) if higher else value < floor * (1.0 - FLOOR_NOISE)


def _is_near(value: float, floor: float, target: Target) -> bool:
    """Whether the figure is within the target's ``near_floor`` of its floor, so that little is left to gain."""
    factor = value / floor
    if higher_is_better(target.unit, target):
        factor = floor / value if value > 0 else math.inf
    return factor <= target.near_floor


def _side(value: float, target: Target) -> _Side:
    if value < target.low or (target.comparison is Comparison.ABOVE and value == target.low):
        return _Side.UNDER
    if value > target.high or (target.comparison is Comparison.BELOW and value == target.high):
        return _Side.OVER
    return _Side.GOOD


def _in_band(value: float, target: Target) -> bool:
    """Whether a good value lies within ``marginal`` of a finite bound."""
    near_high = math.isfinite(target.high) and value > target.high - target.marginal * abs(target.high)
    near_low = math.isfinite(target.low) and value < target.low + target.marginal * abs(target.low)
    return near_high or near_low


def _by(value: float, target: Target) -> str:
    much = missed_by(value, target.low, target.high)
    return f" by {much}" if much else ""


def missed_by(value: float, low: float, high: float) -> str:
    """By how much ``value`` misses its bound: a percentage of the bound, or the factor from two on.

    ``29.3 %`` for 1.344 against at least 1.9; empty if value or bound is not positive.
    """
    bound = high if value >= high else low
    if bound <= 0.0 or value <= 0.0:
        return ""
    factor = max(value / bound, bound / value)
    return f"{100.0 * abs(value / bound - 1.0):.1f} %" if factor < 2.0 else f"a factor of {factor:.1f}"
