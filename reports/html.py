"""The report of a run: one HTML file that needs nothing else (requirement RE-3)."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from burstproof.errors import EnvironmentInvalidError
from reports import units
from reports.record import RunRecord
from reports.rows import scalar_text
from reports.view import build_view

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).with_name("templates")


def render(record: RunRecord) -> str:
    """Draw the report of a run.

    Parameters
    ----------
    record : RunRecord

    Returns
    -------
    str
        A complete HTML document: no script, no link to any resource; every value escaped.
    """
    return render_template("report.html.jinja", view=build_view(record))


def render_template(name: str, **values: object) -> str:
    """Fill in a template of ``reports/templates``; everything is escaped on the way in.

    Raises
    ------
    EnvironmentInvalidError
        If the package jinja2 is not installed.
    """
    return _environment().get_template(name).render(**values)


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
    environment.filters["text"] = scalar_text
    environment.filters["readable"] = units.readable
    return environment
