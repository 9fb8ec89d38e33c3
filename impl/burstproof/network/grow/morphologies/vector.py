"""Vectors: every voxel connects to the voxels at given offsets."""

from __future__ import annotations

from collections.abc import Sequence

from burstproof.network.grow.morphologies.wiring import Dimensions, Wiring, product, shifted, union

Vector = tuple[int, int, int]
"""An offset in voxels along x, y, z."""


def vectors(given: Sequence[Vector], source: Dimensions, target: Dimensions) -> Wiring:
    """``q = p + v`` for every vector ``v``, where that is inside the target; equal vectors count once.

    Source: golden/growth/RULES.md, "vectors" (verified).
    """
    steps = dict.fromkeys(given)
    return union(
        [
            product([shifted(step[axis], source[axis], target[axis], axis) for axis in range(3)], source, target)
            for step in steps
        ],
        distinct=True,
    )
