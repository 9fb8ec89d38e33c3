"""The figures of the report. To add one, add a module with a ``FIGURE``: every module of this folder is shown."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from reports.drawing import Figure


def all_figures() -> tuple[Figure, ...]:
    """The ``FIGURE`` of every module of this folder, in the order of their places."""
    modules = [import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__)]
    figures: list[Figure] = [module.FIGURE for module in modules]
    return tuple(sorted(figures, key=lambda figure: figure.place))
