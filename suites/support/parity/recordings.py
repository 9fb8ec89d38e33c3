"""The recorded traces of the real engine."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from burstproof.engine.trace import Trace, read_trace

GOLDEN = Path(__file__).parents[2] / "data" / "golden"
NAMES = tuple(f"traces/{path.stem}" for path in sorted((GOLDEN / "traces").glob("*.npz")))
RANDOM_NAMES = tuple(f"random/{path.stem}" for path in sorted((GOLDEN / "random").glob("*.npz")))
"""Recordings of random networks, and of one extreme each."""

FEATURE_NAMES = tuple(f"features/{path.stem}" for path in sorted((GOLDEN / "features").glob("*.npz")))
"""Recordings of networks with features."""


@cache
def recording(name: str) -> Trace:
    """The trace called ``name``, read once."""
    return read_trace(GOLDEN / name)
