"""The reference with one of its parts replaced."""

from __future__ import annotations

from collections.abc import Iterator

from burstproof.engine.reference import ReferenceEngine


def engines_with(name: str, *parts: type) -> Iterator[type[ReferenceEngine]]:
    """Engines in which each of ``parts`` takes the place of the part that the reference calls ``name``."""
    for part in parts:
        yield type(part.__name__, (ReferenceEngine,), {name: part, "__doc__": part.__doc__})
