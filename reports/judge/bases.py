"""Ratios that rest on a figure which no hardware reaches: neither met nor missed, in new records and in old ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.values.judgement import JudgedMeasurement, Judgement, ReasonCode
from reports.values.measurement import CaseResult, Measurement, Verdict
from reports.values.record import RunRecord

_RATIOS = ("x", "%")
_NAMED_RATIOS = ("efficiency", "fraction", "of_line_rate")
"""What the names of ratios hold that are of unit 1, as counts are."""

_IMPOSSIBLE = {ReasonCode.FASTER_THAN_FLOOR, ReasonCode.FLOOR_IMPOSSIBLE}
_BEYOND = ": measured wrongly"


def without_base(case: CaseResult, judged: Sequence[JudgedMeasurement]) -> tuple[JudgedMeasurement, ...]:
    """The judgements of ``case``, each ratio an ERROR if another figure of the case is impossible.

    A case divides figures that it measures itself; nothing says which ratio has which, so the case as a whole decides.
    """
    beyond = [one for one in judged if one.judgement.reason_code in _IMPOSSIBLE]
    if not beyond:
        return tuple(judged)
    base = beyond[0]
    why = f"rests on what was measured wrongly: {base.measurement}, {base.judgement.text.removesuffix(_BEYOND)}"
    return tuple(
        one
        if one.judgement.reason_code in _IMPOSSIBLE or not _is_ratio(case.measurements[one.index])
        else replace(one, judgement=_broken(one.judgement, why))
        for one in judged
    )


def settled(record: RunRecord) -> RunRecord:
    """``record`` with the judgements of :func:`without_base`, which older records were written without."""
    if not any(one.judgement.reason_code in _IMPOSSIBLE for one in record.judgements):
        return record
    cases = {case.case: case for case in record.cases}
    of_cases: dict[str, list[JudgedMeasurement]] = {}
    for one in record.judgements:
        of_cases.setdefault(one.case, []).append(one)
    given = (without_base(cases[name], judged) if name in cases else tuple(judged) for name, judged in of_cases.items())
    return replace(record, judgements=tuple(one for judged in given for one in judged))


def _is_ratio(measurement: Measurement) -> bool:
    return measurement.unit in _RATIOS or any(word in measurement.name for word in _NAMED_RATIOS)


def _broken(judgement: Judgement, why: str) -> Judgement:
    if judgement.value is None:
        return judgement
    return replace(judgement, verdict=Verdict.ERROR, reason_code=ReasonCode.BASE_IMPOSSIBLE, text=why)
