"""Patterns: pairs of a source and a target pattern with one element per axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burstproof.network.grow.morphologies.wiring import AxisRelation, Dimensions, Pairs, Wiring, product, union

ANY = "*"
"""Source: any coordinate. Target: all coordinates."""

SAME = "?"
"""Source: any coordinate. Target: the source's coordinate."""

OTHER = "!"
"""Source: any coordinate. Target: all but the source's coordinate."""

Pattern = tuple[int | str, int | str, int | str]
"""One element per axis: a coordinate or one of the three symbols."""

PatternPair = tuple[Pattern, Pattern]
"""Source pattern and target pattern."""


def patterns(given: Sequence[PatternPair], source: Dimensions, target: Dimensions) -> Wiring:
    """The union over all pairs of the voxels that match; a connection that several pairs make counts once.

    Source: golden/growth/RULES.md, "patterns" (verified).
    """
    pairs = dict.fromkeys((_accepted(source_side), target_side) for source_side, target_side in given)
    wirings = [
        product(
            [_axis(source_side[axis], target_side[axis], source[axis], target[axis], axis) for axis in range(3)],
            source,
            target,
        )
        for source_side, target_side in pairs
    ]
    return union(wirings, distinct=len(wirings) < 2)


def _accepted(side: Pattern) -> Pattern:
    """A source pattern with its symbols made equal: each of them accepts anything."""
    x, y, z = (ANY if isinstance(element, str) else element for element in side)
    return x, y, z


def _axis(accepts: int | str, leads_to: int | str, size: int, target_size: int, axis: int) -> AxisRelation:
    """The relation of one axis."""
    low, high = (0, size) if isinstance(accepts, str) else (accepts, accepts + 1)
    low, high = max(0, low), max(0, min(size, high))
    sources = max(0, high - low)
    shared = max(0, min(high, target_size) - low)

    def every() -> Pairs:
        p = np.repeat(np.arange(low, high, dtype=np.int64), target_size)
        return p, np.tile(np.arange(target_size, dtype=np.int64), sources)

    def same() -> Pairs:
        p = np.arange(low, low + shared, dtype=np.int64)
        return p, p

    def other() -> Pairs:
        p, q = every()
        keep = p != q
        return p[keep], q[keep]

    def fixed() -> Pairs:
        p = np.arange(low, high, dtype=np.int64)
        return p, np.full(len(p), leads_to, np.int64)

    if leads_to == ANY:
        return AxisRelation(sources * target_size, every, axis)
    if leads_to == SAME:
        return AxisRelation(shared, same, axis)
    if leads_to == OTHER:
        return AxisRelation(sources * target_size - shared, other, axis)
    inside = isinstance(leads_to, int) and 0 <= leads_to < target_size
    return AxisRelation(sources if inside else 0, fixed, axis)
