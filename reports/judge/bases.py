"""Ratios computed from an impossible figure: an ERROR, so that they neither meet nor miss a goal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from reports.values.grouped import grouped
from reports.values.judgement import JudgedMeasurement, Judgement, ReasonCode
from reports.values.measurement import CaseResult, Measurement, Verdict
from reports.values.record import RunRecord

_RATIOS = ("x", "%")
_NAMED_RATIOS = ("efficiency", "fraction", "of_line_rate")
"""Words in the names of ratios whose unit is 1, which counts have, too."""

_IMPOSSIBLE = {ReasonCode.FASTER_THAN_FLOOR, ReasonCode.FLOOR_IMPOSSIBLE}
_BEYOND = ": measured wrongly"


def without_base(case: CaseResult, judged: Sequence[JudgedMeasurement]) -> tuple[JudgedMeasurement, ...]:
    """The judgements of ``case``, with every ratio an ERROR if a figure of the case is impossible.

    A case computes ratios from its own figures. Nothing says which figure is in which ratio, so one impossible figure
    spoils all ratios of the case.
    """
    impossible = [one for one in judged if one.judgement.reason_code in _IMPOSSIBLE]
    if not impossible:
        return tuple(judged)
    base = impossible[0]
    why = f"rests on what was measured wrongly: {base.measurement}, {base.judgement.text.removesuffix(_BEYOND)}"
    return tuple(
        one
        if one.judgement.reason_code in _IMPOSSIBLE or not _is_ratio(case.measurements[one.index])
        else replace(one, judgement=_broken(one.judgement, why))
        for one in judged
    )


def settled(record: RunRecord) -> RunRecord:
    """``record`` with :func:`without_base` applied to its judgements: older records were written without it."""
    if not any(one.judgement.reason_code in _IMPOSSIBLE for one in record.judgements):
        return record
    cases = {case.case: case for case in record.cases}
    by_case = grouped(record.judgements, lambda one: one.case)
    given = (without_base(cases[name], judged) if name in cases else judged for name, judged in by_case.items())
    return replace(record, judgements=tuple(one for judged in given for one in judged))


def _is_ratio(measurement: Measurement) -> bool:
    return measurement.unit in _RATIOS or any(word in measurement.name for word in _NAMED_RATIOS)


def _broken(judgement: Judgement, why: str) -> Judgement:
    if judgement.value is None:
        return judgement
    return replace(judgement, verdict=Verdict.ERROR, reason_code=ReasonCode.BASE_IMPOSSIBLE, text=why)
