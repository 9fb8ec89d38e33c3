"""Figures that say right or wrong, put together by test function: the worst stays and says what it stands for."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from reports import units
from reports.judgement import JudgedMeasurement
from reports.measurement import Aggregate, CaseResult, Measurement, Outcome, Verdict
from reports.packing import function_of
from reports.targets import load_targets

AGGREGATED = ("parity.", "accuracy.", "kernel.")
"""Beginnings of the names that are put together: results against a reference, and what the compiler made."""

LEAST_FIGURES = 4
"""Fewer figures than this stay single."""

_Place = tuple[int, int]
"""Of a figure: the position of its case, and its own in the case."""


@dataclass(frozen=True)
class _Kind:
    """What figures have in common that may be put together."""

    function: str
    stage: str
    requirements: tuple[str, ...]
    name: str
    unit: str
    own_requirements: tuple[str, ...]
    targets: tuple[str, ...]


def aggregate(
    cases: Sequence[CaseResult], judgements: Sequence[JudgedMeasurement]
) -> tuple[tuple[CaseResult, ...], tuple[JudgedMeasurement, ...]]:
    """Leave of each kind of figure the worst one, with its judgements.

    Put together are figures of the names ``AGGREGATED`` without samples, that are neither a time nor a rate, of cases
    that passed, of one test function, name, unit and requirements, all held against the same targets and all PASS.
    The worst is the least where a target sets a lower limit, else the greatest. Nothing else is touched.
    """
    judged = _by_place(cases, judgements)
    kinds: dict[_Kind, list[_Place]] = defaultdict(list)
    for at, case in enumerate(cases):
        for index, measurement in enumerate(case.measurements):
            own = judged.get((at, index))
            if own is not None and _may(case, measurement, own):
                kinds[_kind(case, measurement, own)].append((at, index))
    kept: dict[_Place, Measurement | None] = {}
    for kind, places in kinds.items():
        if len(places) >= LEAST_FIGURES:
            kept.update(_together(kind, {place: cases[place[0]].measurements[place[1]] for place in places}))
    return _without(cases, judgements, kept)


def _by_place(
    cases: Sequence[CaseResult], judgements: Iterable[JudgedMeasurement]
) -> Mapping[_Place, list[JudgedMeasurement]]:
    """The judgements of every figure, for cases whose id is the only one of its kind."""
    ids = Counter(case.case for case in cases)
    places = {case.case: at for at, case in enumerate(cases) if ids[case.case] == 1}
    found: dict[_Place, list[JudgedMeasurement]] = {
        (at, index): [] for at in places.values() for index in range(len(cases[at].measurements))
    }
    for one in judgements:
        if one.case in places:
            found.setdefault((places[one.case], one.index), []).append(one)
    return found


def _may(case: CaseResult, measurement: Measurement, judged: Sequence[JudgedMeasurement]) -> bool:
    return (
        case.outcome is Outcome.PASSED
        and measurement.name.startswith(AGGREGATED)
        and not measurement.samples
        and measurement.value is not None
        and math.isfinite(measurement.value)
        and units.lower_is_better(measurement.unit) is None
        and all(one.judgement.verdict is Verdict.PASS for one in judged)
    )


def _kind(case: CaseResult, measurement: Measurement, judged: Sequence[JudgedMeasurement]) -> _Kind:
    return _Kind(
        function_of(case.case),
        case.stage,
        case.requirements,
        measurement.name,
        measurement.unit,
        measurement.requirements,
        tuple(one.target for one in judged),
    )


def _together(kind: _Kind, figures: Mapping[_Place, Measurement]) -> dict[_Place, Measurement | None]:
    """The worst of ``figures`` with what it stands for, and ``None`` for the others."""
    ends = [_ends(figure) for figure in figures.values()]
    whole = Aggregate(sum(end.count for end in ends), min(end.least for end in ends), max(end.greatest for end in ends))
    lower_limit = any(target.id in kind.targets and math.isfinite(target.low) for target in load_targets())
    worst = (min if lower_limit else max)(figures, key=lambda place: figures[place].value or 0.0)
    return {place: replace(figure, aggregate=whole) if place == worst else None for place, figure in figures.items()}


def _ends(figure: Measurement) -> Aggregate:
    """What a figure stands for already, else itself."""
    value = figure.value or 0.0
    return figure.aggregate or Aggregate(1, value, value)


def _without(
    cases: Sequence[CaseResult], judgements: Iterable[JudgedMeasurement], kept: Mapping[_Place, Measurement | None]
) -> tuple[tuple[CaseResult, ...], tuple[JudgedMeasurement, ...]]:
    """Leave out the figures that ``kept`` has ``None`` for, and their judgements; the indices of the others move up."""
    remaining, moved = [], {}
    for at, case in enumerate(cases):
        left: list[Measurement] = []
        for index, measurement in enumerate(case.measurements):
            figure = kept.get((at, index), measurement)
            moved[case.case, index] = None if figure is None else len(left)
            left += [] if figure is None else [figure]
        remaining.append(replace(case, measurements=tuple(left)))
    places = ((one, moved.get((one.case, one.index), one.index)) for one in judgements)
    return tuple(remaining), tuple(replace(one, index=place) for one, place in places if place is not None)
