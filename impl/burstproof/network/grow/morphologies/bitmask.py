"""Bit masks: a coordinate read as a binary number, one voxel per bit, the highest index the least significant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burstproof.network.grow.morphologies.wiring import (
    AxisRelation,
    Dimensions,
    Pairs,
    Wiring,
    clamped,
    empty_pairs,
    product,
)


def bitmask_decoder(mask_axis: int) -> Callable[[Dimensions, Dimensions], Wiring]:
    """From a number to its bits on ``mask_axis``; the other axes are clamped into the target.

    Source: golden/growth/RULES.md, "bitmask_decoder" (verified).
    """

    def rule(source: Dimensions, target: Dimensions) -> Wiring:
        return _masked(mask_axis, source, target, _decoded(source[mask_axis], target[mask_axis], mask_axis))

    return rule


def bitmask_encoder(mask_axis: int) -> Callable[[Dimensions, Dimensions], Wiring]:
    """From one bit to all numbers that have it on ``mask_axis``; the other axes are clamped into the target.

    Source: golden/growth/RULES.md, "bitmask_encoder" (verified).
    """

    def rule(source: Dimensions, target: Dimensions) -> Wiring:
        decoded = _decoded(target[mask_axis], source[mask_axis], mask_axis)

        def build() -> Pairs:
            number, voxel = decoded.build()
            return voxel, number

        return _masked(mask_axis, source, target, AxisRelation(decoded.count, build, mask_axis))

    return rule


def _masked(mask_axis: int, source: Dimensions, target: Dimensions, mask: AxisRelation) -> Wiring:
    """The product of the relation on ``mask_axis`` and clamping on the others."""
    relations = [mask if axis == mask_axis else clamped(source[axis], target[axis], axis) for axis in range(3)]
    return product(relations, source, target)


def _decoded(numbers: int, voxels: int, axis: int) -> AxisRelation:
    """Pairs of a number below ``numbers`` and the voxel of each of its bits that has a voxel."""
    bits = range(min(voxels, (numbers - 1).bit_length()))

    def build() -> Pairs:
        number = np.arange(numbers, dtype=np.int64)
        parts = [number[(number >> bit) & 1 == 1] for bit in bits]
        if not parts:
            return empty_pairs()
        places = [np.full(len(part), voxels - 1 - bit, np.int64) for bit, part in zip(bits, parts, strict=True)]
        return np.concatenate(parts), np.concatenate(places)

    return AxisRelation(sum(_with_bit(numbers, bit) for bit in bits), build, axis)


def _with_bit(numbers: int, bit: int) -> int:
    """How many of 0 ... numbers - 1 have the given bit."""
    period = 2 << bit
    return numbers // period * (period // 2) + max(0, numbers % period - period // 2)
