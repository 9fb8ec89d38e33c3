"""What a run says of each target: its worst figure decides. All counts of missed goals come from here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from reports.judge.bases import settled
from reports.judge.targets import Target, later_goals, load_targets
from reports.judge.verdict import OUTCOME_VERDICTS, WORST_FIRST, case_verdict, missed_by
from reports.values import units
from reports.values.grouped import grouped
from reports.values.judgement import JudgedMeasurement, Judgement
from reports.values.measurement import CaseResult, Outcome, Verdict
from reports.values.record import RunRecord

_NUMBER = r"\d+(?:\.\d+)?"
_AT_LEAST = re.compile(rf"misses >.* by (?P<share>{_NUMBER}) %$")
"""A missed lower limit in a record of version 1, which states no limits."""

_BY = re.compile(rf" by (?P<much>{_NUMBER} %|a factor of {_NUMBER})$")
_WORDS = {Verdict.FAIL: "missed", Verdict.ERROR: "not judged", Verdict.AMBIGUOUS: "ambiguous"}
_KINDS = ((True, "goal", ""), (False, "target", " of the notes"))
_BY_FIGURES = {Verdict.FAIL: "failed by figures", Verdict.AMBIGUOUS: "ambiguous", Verdict.ERROR: "not judged"}
_ENDS = (*((OUTCOME_VERDICTS[one], one.value) for one in Outcome), *_BY_FIGURES.items())
Counts = tuple[tuple[Verdict, str], ...]
"""Texts such as ``3 passed``, each with the verdict whose colour it is shown in."""


@dataclass(frozen=True)
class Decided:
    """The verdict on a target, from the worst figure that was judged by it.

    ``is_goal`` is false for targets of the notes. ``what`` names what is limited. ``case`` measured the figure. ``by``
    says by how much it misses; empty if it does not miss, or if that cannot be given as a share or factor.
    """

    is_goal: bool
    what: str
    case: str
    verdict: Verdict
    by: str


def decided_targets(record: RunRecord) -> tuple[Decided, ...]:
    """One for each target; a replaced goal only if the goal in its place has no figure, as in the table of goals."""
    found = grouped((judged for judged in settled(record).judgements if judged.target), lambda judged: judged.target)
    targets = load_targets()
    later = later_goals(targets)
    known = {target.id: target for target in targets}
    return tuple(
        _decided(judged, known.get(name))
        for name, judged in found.items()
        if name not in later or later[name].id not in found
    )


def _decided(judged: Iterable[JudgedMeasurement], target: Target | None) -> Decided:
    worst = min(judged, key=lambda one: (WORST_FIRST.index(one.judgement.verdict), -_size(by_of(one.judgement))))
    is_goal, what = (target.is_goal, target.words) if target else (True, worst.target)
    return Decided(is_goal, what, worst.case, worst.judgement.verdict, by_of(worst.judgement))


def by_of(judgement: Judgement) -> str:
    """By how much a limit is missed: ``2.6 %`` or ``a factor of 3.1``; empty as in :class:`Decided`."""
    by = _BY.search(told(judgement))
    return by["much"] if by else ""


def worst_named(missed: Iterable[tuple[str, str]]) -> str:
    """The worst of missed limits, each by how much and its name: ``by 92.7 %: NAME``; empty if no size is known."""
    by, name = max(missed, key=lambda one: _size(one[0]), default=("", ""))
    return f"by {by}: {name}" if by else ""


def told(judgement: Judgement) -> str:
    """The text of a judgement, with the share by which a limit is missed computed anew.

    Older records state the share of the figure: 41.4 % for 1.344 against at least 1.9, today 29.3 %.
    """
    text, value, limits = judgement.text, judgement.value, judgement.limits
    if not _BY.search(text) or value is None:
        return text
    if limits:
        low, high = -math.inf if limits.low is None else limits.low, math.inf if limits.high is None else limits.high
        return _BY.sub(f" by {missed_by(value, low, high)}", text)
    found = _AT_LEAST.search(text)
    return _BY.sub(f" by {100.0 - 1e4 / (100.0 + float(found['share'])):.1f} %", text) if found else text


def _size(by: str) -> float:
    """Sort key of a miss: a factor is larger than every share."""
    number = re.search(_NUMBER, by)
    return (float(number[0]) if number else 0.0) * (1000.0 if "factor" in by else 1.0)


def target_counts(decided: Iterable[Decided]) -> Counts:
    """Counts of targets that are not met, the worst first: ``43 goals missed``, ``2 targets of the notes missed``."""
    kinds = [(one.verdict, one.is_goal) for one in decided]
    return tuple(
        (verdict, f"{units.counted(kinds.count((verdict, is_goal)), noun)}{whose} {word}")
        for verdict, word in _WORDS.items()
        for is_goal, noun, whose in _KINDS
        if (verdict, is_goal) in kinds
    )


def _end(case: CaseResult, verdict: Verdict) -> tuple[Verdict, str]:
    """How a case ended; one whose figures fail has not passed."""
    if case.outcome is Outcome.PASSED and verdict in _BY_FIGURES:
        return verdict, _BY_FIGURES[verdict]
    return OUTCOME_VERDICTS[case.outcome], case.outcome.value


def stage_counts(record: RunRecord, stage: str, decided: Iterable[Decided]) -> tuple[Counts, Counts]:
    """How the cases of a stage ended, and what is wrong with their figures.

    A goal counts in the stage that measured its worst figure.
    """
    cases = record.cases_of(stage)
    names = {case.case for case in cases}
    ends = [_end(case, case_verdict(case, record.judgements_of(case.case))) for case in cases]
    ended = tuple(
        (verdict, f"{ends.count((verdict, word))} {word}") for verdict, word in _ENDS if (verdict, word) in ends
    )
    impossible = sum(not one.target and one.case in names for one in record.judgements)
    more = ((Verdict.ERROR, f"{units.counted(impossible, 'figure')} missing or impossible"),) if impossible else ()
    return ended, (*target_counts(one for one in decided if one.case in names), *more)
