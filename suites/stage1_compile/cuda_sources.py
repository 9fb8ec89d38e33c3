"""The kernels whose code is not numba's: every room that launches some lists them in a ``CATALOGUE`` of its module."""

from __future__ import annotations

from importlib import import_module

from burstproof.kernels.entry import Entry

CATALOGUES: tuple[str, ...] = ()
"""Modules with a ``CATALOGUE``, a tuple of ``Entry``; one line each."""


def catalogued() -> dict[str, Entry]:
    """Every entry by ``file:function``."""
    found = {}
    for module in CATALOGUES:
        for entry in import_module(module).CATALOGUE:
            found[f"{entry.code.name}:{entry.function}"] = entry
    return found
