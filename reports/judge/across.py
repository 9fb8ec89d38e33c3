"""Figures side by side for the values of one condition: CPU, WGPU and CUDA doing the same work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reports.judge.direction import lower_is_better
from reports.judge.pairing import MACHINE_CONDITIONS, Figure, figures, words
from reports.values import units
from reports.values.record import RunRecord

_FIRST = {"cpu": 0, "wgpu": 1, "cuda": 2}
"""Rank of the columns that come first."""


@dataclass(frozen=True)
class Cell:
    """The best figure of one column, its gain over the first column, and the conditions that only this column has."""

    value: str
    gain: float
    conditions: str


@dataclass(frozen=True)
class AcrossRow:
    """One piece of work; ``cells`` has ``None`` for columns without a figure."""

    name: str
    conditions: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class AcrossTable:
    """Rows over the same columns."""

    columns: tuple[str, ...]
    rows: tuple[AcrossRow, ...]


def across(records: Sequence[RunRecord], condition: str) -> tuple[AcrossTable, ...]:
    """Put figures of the same work side by side, a column for each value of ``condition``.

    Figures are of the same work if they have the same name and agree in every condition that all columns state, but for
    those of the machine. If a column has several such figures, which differ in conditions that only it states (threads
    of a CPU, graphs of a GPU), the table has the best one, with these conditions.

    Parameters
    ----------
    records : sequence of RunRecord
        Their figures are taken together.
    condition : str
        ``backend``, for example.
    """
    found: dict[str, dict[str, list[Figure]]] = {}
    for record in records:
        for figure in figures(record).values():
            stated = figure.measurement.conditions
            if condition in stated and figure.centre > 0.0:
                column = units.scalar_text(stated[condition])
                found.setdefault(figure.measurement.name, {}).setdefault(column, []).append(figure)
    tables: dict[tuple[str, ...], list[AcrossRow]] = {}
    for name in sorted(found):
        columns = tuple(sorted(found[name], key=lambda column: (_FIRST.get(column, len(_FIRST)), column)))
        rows = list(_rows(name, found[name], columns, condition))
        if rows:
            tables.setdefault(columns, []).extend(rows)
    ordered = sorted(tables.items(), key=lambda table: (table[0][0] not in _FIRST, table[0]))
    return tuple(AcrossTable(columns, tuple(rows)) for columns, rows in ordered)


def _rows(
    name: str, columns: Mapping[str, Sequence[Figure]], order: Sequence[str], condition: str
) -> Iterable[AcrossRow]:
    common = _common(columns.values(), condition)
    work: dict[tuple[tuple[str, str], ...], dict[str, list[Figure]]] = {}
    for column, taken in columns.items():
        for figure in taken:
            stated = figure.measurement.conditions
            key = tuple(sorted((key, units.scalar_text(stated[key])) for key in common if key in stated))
            work.setdefault(key, {}).setdefault(column, []).append(figure)
    for key, by_column in work.items():
        if len(by_column) > 1:
            best = {column: _best(taken) for column, taken in by_column.items()}
            first = next(best[column] for column in order if column in best)
            cells = tuple(_cell(best[c], first, {*common, condition}) if c in best else None for c in order)
            yield AcrossRow(name, words(key), cells)


def _common(columns: Iterable[Sequence[Figure]], condition: str) -> set[str]:
    """Conditions that describe the work: every column has a figure that states them."""
    stated = [{key for figure in taken for key in figure.measurement.conditions} for taken in columns]
    return set.intersection(*stated) - MACHINE_CONDITIONS - {condition}


def _best(taken: Sequence[Figure]) -> Figure:
    lower = lower_is_better(taken[0].measurement) is True
    return sorted(taken, key=_in_base_unit)[0 if lower else -1]


def _in_base_unit(figure: Figure) -> float:
    return units.convert(figure.centre, figure.measurement.unit, _first_unit(figure.measurement.unit))


def _first_unit(unit: str) -> str:
    return "s" if units.dimension(unit) == "time" else unit


def _cell(figure: Figure, first: Figure, common: set[str]) -> Cell:
    measurement = figure.measurement
    ratio = _in_base_unit(first) / _in_base_unit(figure)
    gain = ratio if lower_is_better(measurement) is True else 1.0 / ratio
    own = sorted((key, units.scalar_text(value)) for key, value in measurement.conditions.items())
    kept = [(key, value) for key, value in own if key not in common and key not in MACHINE_CONDITIONS]
    return Cell(units.readable(figure.centre, measurement.unit), gain if math.isfinite(gain) else 0.0, words(kept))
