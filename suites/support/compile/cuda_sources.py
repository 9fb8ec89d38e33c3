"""The kernels whose code is not numba's: every room that launches some lists them in a ``CATALOGUE`` of its module."""

from __future__ import annotations

from importlib import import_module

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource

CATALOGUES: tuple[str, ...] = (
    "burstproof.compile.proof",
    "burstproof.tensor.attention.flash",
    "burstproof.tensor.catalogue",
)
"""Modules with a ``CATALOGUE``, a tuple of ``Entry``; one line each."""


def catalogued(modules: tuple[str, ...] = CATALOGUES) -> dict[str, Entry]:
    """Every entry of ``modules`` by its title; two of one title are an error of the catalogue."""
    found: dict[str, Entry] = {}
    for module in modules:
        for entry in import_module(module).CATALOGUE:
            assert title(entry) not in found, f"{module} lists {title(entry)} a second time"
            found[title(entry)] = entry
    return found


def title(entry: Entry) -> str:
    """File, macros and function: what tells an entry from every other."""
    defines = entry.code.options.defines if isinstance(entry.code, CudaSource) else ()
    macros = "".join(f" {name}={value}" for name, value in defines)
    return f"{entry.code.name}{macros}|{entry.function}"
