"""Links between GPUs as matrices: a row sends, a column receives (MG-6)."""

from __future__ import annotations

from dataclasses import dataclass

from reports.drawing import Figure
from reports.values import units
from reports.values.measurement import Measurement
from reports.values.record import RunRecord

_TITLES = {
    "link.bandwidth": "Bandwidth",
    "link.of_line_rate": "Share of the line rate of the links",
    "link.latency": "Latency",
    "topology.nvlinks": "NVLinks",
}

_SHARES = ("link.of_line_rate",)


@dataclass(frozen=True)
class LinkMatrix:
    """One figure for every ordered pair of GPUs.

    Attributes
    ----------
    title : str
        What is shown, and how the data crossed.
    gpus : tuple of str
        Indices of the GPUs, of rows and of columns.
    cells : tuple of tuple of str
        Figures by row; empty if nothing was measured.
    """

    title: str
    gpus: tuple[str, ...]
    cells: tuple[tuple[str, ...], ...]

    @property
    def heads(self) -> list[str]:
        """Heads of the columns; ``#`` marks figures."""
        return ["from GPU", *(f"#{gpu}" for gpu in self.gpus)]

    @property
    def rows(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Each sending GPU with its row."""
        return tuple(zip(self.gpus, self.cells, strict=True))


def link_matrices(record: RunRecord) -> tuple[LinkMatrix, ...]:
    """The matrices for which the run has figures, in the order of ``_TITLES`` and of the run.

    A pair that was measured in one direction only has the same figure in both.
    """
    found: dict[tuple[str, str], dict[tuple[str, str], str]] = {}
    for measurement in (m for m in record.measurements if m.name in _TITLES):
        pair = str(measurement.conditions.get("pair", "")).split("-")
        if len(pair) == 2:
            key = measurement.name, str(measurement.conditions.get("way", ""))
            found.setdefault(key, {})[pair[0], pair[1]] = _text(measurement)
    ordered = sorted(found, key=lambda key: list(_TITLES).index(key[0]))
    return tuple(_matrix(*key, found[key]) for key in ordered)


def _text(measurement: Measurement) -> str:
    value = measurement.figure
    if value is None:
        return "missing"
    share = measurement.name in _SHARES
    return units.shown(100.0 * value, "%") if share else units.readable(value, measurement.unit)


def _matrix(name: str, way: str, figures: dict[tuple[str, str], str]) -> LinkMatrix:
    gpus = tuple(sorted({gpu for pair in figures for gpu in pair}, key=lambda gpu: (len(gpu), gpu)))
    cells = tuple(tuple(figures.get((a, b)) or figures.get((b, a), "") for b in gpus) for a in gpus)
    return LinkMatrix(f"{_TITLES[name]}, {way}" if way else _TITLES[name], gpus, cells)


_TEMPLATE = """
{% import "parts.jinja" as parts %}
{% call parts.table("Links between GPUs, from row to column: " ~ chart.title, chart.heads, "matrix") %}
{% for gpu, cells in chart.rows %}
<tr><th scope="row">{{ gpu }}</th>
{%- for cell in cells %}<td class="num nowrap">{% if cell %}{{ cell }}{% else %}&ndash;{% endif %}</td>{% endfor %}</tr>
{% endfor %}
{% endcall %}
"""

FIGURE = Figure(50, link_matrices, _TEMPLATE, is_chart=True)
