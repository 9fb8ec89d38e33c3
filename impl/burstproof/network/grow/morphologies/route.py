"""Routes that are no product of axes: corner to corner, the next voxel of a sweep, a rotation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.network.grow.morphologies.wiring import Dimensions, IntArray, Pairs, Wiring, strides

FloatArray = npt.NDArray[np.float64]

_TIE_DIGITS = 9
"""Decimals kept before rounding, so that ties do not depend on the last bit of a cosine."""


def first_to_last(source: Dimensions, target: Dimensions) -> Wiring:
    """The first voxel of the source to the last of the target.

    Source: golden/growth/RULES.md, "first_to_last" (verified).
    """
    return _single(0, target[0] * target[1] * target[2] - 1)


def last_to_first(source: Dimensions, target: Dimensions) -> Wiring:
    """The last voxel of the source to the first of the target.

    Source: golden/growth/RULES.md, "last_to_first" (verified).
    """
    return _single(source[0] * source[1] * source[2] - 1, 0)


def _single(p: int, q: int) -> Wiring:
    """One connection, to the first neuron of the target voxel."""

    def build() -> Pairs:
        return np.array([p], np.int64), np.array([q], np.int64)

    return Wiring(1, build, from_last_neuron=False)


def _voxels(dimensions: Dimensions) -> tuple[IntArray, IntArray, IntArray]:
    """Coordinates x, y, z of all voxels in order of their local number."""
    x, y, z = np.indices(dimensions, dtype=np.int64)
    return x.ravel(), y.ravel(), z.ravel()


def sweeper(source: Dimensions, target: Dimensions) -> Wiring:
    """Each voxel, clamped into the target, to the next one there: x fastest, then y, then z; the last has no next.

    Source: golden/growth/RULES.md, "sweeper" (verified).
    """
    width, height, depth = target
    count = source[0] * source[1] * source[2]

    def build() -> Pairs:
        x, y, z = (np.minimum(c, size - 1) for c, size in zip(_voxels(source), target, strict=True))
        successor = x + width * (y + height * z) + 1
        p = np.flatnonzero(successor < width * height * depth)
        successor = successor[p]
        step_x, step_y, step_z = strides(target)
        q_x, q_y, q_z = successor % width, successor // width % height, successor // (width * height)
        return p, q_x * step_x + q_y * step_y + q_z * step_z

    return Wiring(count, build)


def rotator_z(source: Dimensions, target: Dimensions) -> Wiring:
    """The source's x-y plane scaled to the target and turned by an angle that falls with depth from 90 to -90 degrees.

    Half-way coordinates go up; the engine's choice there is not known.
    Source: golden/growth/RULES.md, "rotator_z" (verified except for such ties).
    """
    width, height, depth = target
    count = source[0] * source[1] * source[2] * depth

    def build() -> Pairs:
        degrees = 90.0 - 180.0 * np.arange(depth) / (depth - 1) if depth > 1 else np.zeros(1)
        cosine, sine = np.cos(np.radians(degrees))[:, None], np.sin(np.radians(degrees))[:, None]
        x, y, _ = _voxels(source)
        d_x, d_y = _centred(x, source[0], width), _centred(y, source[1], height)
        q_x = _rounded(d_x * cosine - d_y * sine + (width - 1) / 2)
        q_y = _rounded(d_x * sine + d_y * cosine + (height - 1) / 2)
        z, p = np.nonzero((q_x >= 0) & (q_x < width) & (q_y >= 0) & (q_y < height))
        step_x, step_y, step_z = strides(target)
        return p, q_x[z, p] * step_x + q_y[z, p] * step_y + z * step_z

    return Wiring(count, build)


def _centred(coordinate: IntArray, size: int, target_size: int) -> FloatArray:
    """Distance from the middle of the source axis, in voxels of the target axis."""
    scale = (target_size - 1) / (size - 1) if size > 1 and target_size > 1 else 1.0
    return (coordinate.astype(np.float64) - (size - 1) / 2) * scale


def _rounded(value: FloatArray) -> IntArray:
    """To the nearest voxel, half-way up."""
    return np.floor(np.round(value, _TIE_DIGITS) + 0.5).astype(np.int64)
