"""Draws the report of a run as one self-contained HTML file (requirement RE-3)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from burstproof.errors import EnvironmentInvalidError, visible
from reports.drawing import sparkline
from reports.figures import all_figures
from reports.judge.targets import Target
from reports.values import units
from reports.values.provenance import invocation_rows, stages_of
from reports.values.record import RunRecord
from reports.view import build_view

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class Drawings:
    """The drawn figures of a record, in the order of their places; charts are laid out side by side."""

    tables: tuple[Markup, ...]
    charts: tuple[Markup, ...]


def render(record: RunRecord, targets: Sequence[Target] | None = None, note: str = "", standing: str = "") -> str:
    """Draw the report of a run.

    Parameters
    ----------
    record : RunRecord
    targets : sequence of Target, optional
        All targets; by default those of the checkout.
    note : str, optional
        A sentence about this page, shown among the remarks at the top.
    standing : str
        One sentence that compares the run with its baseline.

    Returns
    -------
    str
        A complete HTML document without scripts and without links to resources; every value is escaped.
    """
    view = build_view(record, targets)
    return render_template("report.html.jinja", view=view, note=note, standing=standing, drawings=_drawings(record))


def _drawings(record: RunRecord) -> Drawings:
    environment = _environment()
    from markupsafe import Markup  # jinja2 brings it

    drawn: dict[bool, list[Markup]] = {True: [], False: []}
    for figure in all_figures():
        template = environment.from_string(figure.template)
        drawn[figure.is_chart] += (Markup(template.render(chart=chart)) for chart in figure.charts(record))
    return Drawings(tuple(drawn[False]), tuple(drawn[True]))


def render_template(name: str, **values: object) -> str:
    """Fill in a template of ``reports/templates``; values are escaped, and control characters are made visible.

    Raises
    ------
    EnvironmentInvalidError
        If the package jinja2 is not installed.
    """
    return visible(_environment().get_template(name).render(**values))


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise EnvironmentInvalidError(
            f"jinja2 cannot be imported ({error})",
            where=sys.executable,
            cure="pip install -e '.[test]' there; goals, compare and history without --out do without it.",
        ) from error
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["readable"] = units.readable
    environment.filters["sparkline"] = sparkline
    environment.globals["invocation_rows"] = invocation_rows
    environment.globals["stages_of"] = stages_of
    return environment
