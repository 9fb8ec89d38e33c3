"""Projections: the source area scaled, turned, centred or tiled onto the target."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from burstproof.network.grow.morphologies.wiring import AxisRelation, Dimensions, Pairs, Wiring, product, shifted


def projector(source: Dimensions, target: Dimensions) -> Wiring:
    """Scale each axis of the source onto the target.

    Source: golden/growth/RULES.md, "projector" (verified).
    """
    return product([_scaled(source[axis], target[axis], axis) for axis in range(3)], source, target)


def transpose(first: int, second: int) -> Callable[[Dimensions, Dimensions], Wiring]:
    """The projector after two axes of the source have been swapped.

    Source: golden/growth/RULES.md, "transpose" (verified).
    """
    origin = [0, 1, 2]
    origin[first], origin[second] = second, first

    def rule(source: Dimensions, target: Dimensions) -> Wiring:
        relations = [_scaled(source[origin[axis]], target[axis], origin[axis]) for axis in range(3)]
        return product(relations, source, target)

    return rule


def centered_projector(source: Dimensions, target: Dimensions) -> Wiring:
    """Lay the source over the target, centre on centre, without scaling.

    Source: golden/growth/RULES.md, "centered_projector" (verified).
    """
    relations = [
        shifted((target[axis] - 1) // 2 - (source[axis] - 1) // 2, source[axis], target[axis], axis)
        for axis in range(3)
    ]
    return product(relations, source, target)


def tile(source: Dimensions, target: Dimensions) -> Wiring:
    """Repeat the smaller area over the larger one; which is larger is told by the number of voxels.

    Source: golden/growth/RULES.md, "tile" (verified).
    """
    repeat_source = prod(target) >= prod(source)
    return product([_repeated(source[axis], target[axis], axis, repeat_source) for axis in range(3)], source, target)


def _scaled(size: int, target_size: int, axis: int) -> AxisRelation:
    """Coordinates that meet when one axis is scaled to the other; the quotients are float32 as in the engine."""

    def build() -> Pairs:
        p = np.arange(size, dtype=np.int64)
        if size == target_size:
            return p, p
        if size > target_size:
            ratio = np.float32(size) / np.float32(target_size)
            return p, np.minimum(np.floor(p.astype(np.float32) / ratio).astype(np.int64), target_size - 1)
        q = np.arange(target_size, dtype=np.int64)
        ratio = np.float32(target_size) / np.float32(size)
        return np.minimum(np.floor(q.astype(np.float32) / ratio).astype(np.int64), size - 1), q

    return AxisRelation(max(size, target_size), build, axis)


def _repeated(size: int, target_size: int, axis: int, repeat_source: bool) -> AxisRelation:
    """``p = q mod size`` for every q, or ``q = p mod target_size`` for every p."""

    def build() -> Pairs:
        if repeat_source:
            q = np.arange(target_size, dtype=np.int64)
            return q % size, q
        p = np.arange(size, dtype=np.int64)
        return p, p % target_size

    return AxisRelation(target_size if repeat_source else size, build, axis)
