"""Connected voxels of two areas: counted before they are built, assembled from relations of single axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

Dimensions = tuple[int, int, int]
"""Width, height, depth of an area in voxels."""

IntArray = npt.NDArray[np.int64]

Pairs = tuple[IntArray, IntArray]
"""Source and target numbers of equal length: coordinates on one axis, or local voxel numbers."""


@dataclass(frozen=True)
class AxisRelation:
    """Which coordinates of a source axis go to which coordinates of a target axis.

    ``count`` is the exact number of pairs, known without building them; ``source_axis`` is 0, 1 or 2.
    """

    count: int
    build: Callable[[], Pairs]
    source_axis: int


@dataclass(frozen=True)
class Wiring:
    """The connected voxels of a source and a target area.

    Attributes
    ----------
    count : int
        Number of pairs, or a bound on it if ``distinct`` is false.
    build : callable
        Makes the pairs of local voxel numbers (x slowest, z fastest), in any order.
    distinct : bool
        Whether no pair can come twice.
    from_last_neuron : bool
        Whether the last neuron of a target voxel is connected (the rule) or the first (two morphologies).
    """

    count: int
    build: Callable[[], Pairs]
    distinct: bool = True
    from_last_neuron: bool = True


def empty_pairs() -> Pairs:
    """No pairs."""
    return np.zeros(0, np.int64), np.zeros(0, np.int64)


def nothing() -> Wiring:
    """A wiring without any pair."""
    return Wiring(0, empty_pairs)


def strides(dimensions: Dimensions) -> Dimensions:
    """Steps of the local voxel number along x, y, z: z is fastest."""
    return dimensions[1] * dimensions[2], dimensions[2], 1


def product(relations: Sequence[AxisRelation], source: Dimensions, target: Dimensions) -> Wiring:
    """Voxels connected if every axis is: ``relations[i]`` leads to axis i of the target.

    Each axis of the source must appear in exactly one relation.
    """
    count = prod(relation.count for relation in relations)

    def build() -> Pairs:
        if not count:
            return empty_pairs()
        source_steps, target_steps = strides(source), strides(target)
        p = q = np.zeros(1, np.int64)
        for relation, target_step in zip(relations, target_steps, strict=True):
            p_axis, q_axis = relation.build()
            p = np.add.outer(p, p_axis * source_steps[relation.source_axis]).ravel()
            q = np.add.outer(q, q_axis * target_step).ravel()
        return p, q

    return Wiring(count, build)


def union(wirings: Sequence[Wiring], *, distinct: bool) -> Wiring:
    """All pairs of several wirings; ``distinct`` says whether they are known to be disjoint."""

    def build() -> Pairs:
        parts = [wiring.build() for wiring in wirings if wiring.count]
        if not parts:
            return empty_pairs()
        return np.concatenate([p for p, _ in parts]), np.concatenate([q for _, q in parts])

    return Wiring(sum(wiring.count for wiring in wirings), build, distinct=distinct)


def shifted(step: int, size: int, target_size: int, axis: int) -> AxisRelation:
    """``q = p + step`` where that is inside the target."""
    low, high = max(0, -step), min(size, target_size - step)

    def build() -> Pairs:
        p = np.arange(low, high, dtype=np.int64)
        return p, p + step

    return AxisRelation(max(0, high - low), build, axis)


def clamped(size: int, target_size: int, axis: int) -> AxisRelation:
    """``q`` is ``p``, or the last coordinate of the target if ``p`` lies beyond it."""

    def build() -> Pairs:
        p = np.arange(size, dtype=np.int64)
        return p, np.minimum(p, target_size - 1)

    return AxisRelation(size, build, axis)
