"""The lattice E8: its 240 roots, neighbours, the nearest lattice point, projections; batched, exact on CPU and device.

E8 is the union of D8 (integer points with an even sum) and D8 + (1/2, ..., 1/2): Conway and Sloane, "Sphere Packings,
Lattices and Groups", chapter 4. Points are float64 arrays (..., 8); lattice points are exact in them.
"""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_shape
from burstproof.tensor.array.dtypes import FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.linalg import matmul

DIMENSIONS = 8
COXETER_NUMBER = 30

_BLOCK = 256
NEAREST = Entry(
    CudaSource.beside(__file__, "lattices.cu", options=SourceOptions(contract=False)),
    "e8_nearest",
    "float64[] float64[] int64",
    _BLOCK,
)
"""The kernel of ``nearest``."""


@lru_cache(maxsize=1)
def roots() -> npt.NDArray[np.float64]:
    """The 240 vectors of E8 of squared length 2, (240, 8), read-only, in lexicographic order.

    112 have two entries of 1 or -1, 128 have eight of 1/2 or -1/2 with an even number of minus signs.
    """
    found = []
    for i, j in itertools.combinations(range(DIMENSIONS), 2):
        for signs in itertools.product((1.0, -1.0), repeat=2):
            root = [0.0] * DIMENSIONS
            root[i], root[j] = signs
            found.append(root)
    found += [list(s) for s in itertools.product((0.5, -0.5), repeat=DIMENSIONS) if s.count(-0.5) % 2 == 0]
    array = np.array(sorted(found))
    array.setflags(write=False)
    return array


def inner_products(a: Array, b: Array) -> Array:
    """All inner products of the points ``a`` (m, 8) with ``b`` (n, 8): an array (m, n).

    Raises
    ------
    ArrayError
        Arrays that are not such points, or on different devices.
    """
    _check_points(a, "inner_products", axes=2)
    _check_points(b, "inner_products", axes=2)
    return matmul(a, b, transpose_b=True)


def neighbours(points: Array) -> Array:
    """The 240 nearest neighbours of each lattice point: (..., 240, 8), in the order of ``roots``.

    Raises
    ------
    ArrayError
        No array (..., 8) of float64.
    """
    place = backend_of(points)
    _check_points(points, "neighbours")
    with place.use():
        return points[..., None, :] + place.xp.asarray(roots())


def nearest(points: Array) -> Array:
    """The point of E8 nearest to each point; of several, always the same one, on every backend.

    The nearer of the nearest points of the two cosets of D8, the integer one in a tie (Conway and Sloane, 1982).

    Parameters
    ----------
    points : array, (..., 8), float64, contiguous
        Coordinates below 2^50; a point with a NaN or an infinity becomes NaN.

    Returns
    -------
    array
        Lattice points, shape of ``points``.

    Raises
    ------
    ArrayError
        Another shape or dtype.
    """
    place = backend_of(points)
    _check_points(points, "nearest")
    if place.device is None:
        return _nearest_on_host(points)
    result = place.empty(points.shape, FLOAT64)
    count = points.size // DIMENSIONS
    if count:
        NEAREST.on(points.device.id)(-(-count // _BLOCK), _BLOCK, result, points, count)
    return result


def is_lattice_point(points: Array) -> Array:
    """Whether each point lies in E8: all entries integers or all halves of odd numbers, with an even sum; (...,) bool.

    Raises
    ------
    ArrayError
        No array (..., 8) of float64.
    """
    place = backend_of(points)
    _check_points(points, "is_lattice_point")
    xp = place.xp
    with place.use():
        whole = (points == xp.rint(points)).all(axis=-1)
        shifted = points - 0.5
        half = (shifted == xp.rint(shifted)).all(axis=-1)
        sums = points.sum(axis=-1) * 0.5
        return (whole | half) & (sums == xp.rint(sums))


def project(points: Array, basis: Array) -> Array:
    """Coordinates of points (n, 8) in the space spanned by the columns of ``basis`` (8, k): an array (n, k).

    Raises
    ------
    ArrayError
        Shapes, dtypes or devices that do not fit.
    """
    _check_points(points, "project", axes=2)
    return matmul(points, basis)


@lru_cache(maxsize=1)
def simple_roots() -> npt.NDArray[np.float64]:
    """Eight roots of which every root is an integer combination with signs all equal (Bourbaki's order), (8, 8)."""
    rows = np.zeros((DIMENSIONS, DIMENSIONS))
    rows[0] = [0.5, -0.5, -0.5, -0.5, -0.5, -0.5, -0.5, 0.5]
    rows[1, :2] = 1.0
    for i in range(2, DIMENSIONS):
        rows[i, i - 2], rows[i, i - 1] = -1.0, 1.0
    return rows


@lru_cache(maxsize=1)
def coxeter_plane() -> npt.NDArray[np.float64]:
    """Orthonormal basis (8, 2) of the Coxeter plane, on which a Coxeter element turns by 1/30 of a circle.

    The eigenspace of the product of the eight simple reflections for the angle 2 pi / 30 (Humphreys, "Reflection
    Groups and Coxeter Groups", section 3.17). The 240 roots project to 8 rings of 30.
    """
    return _coxeter_space(1)


@lru_cache(maxsize=1)
def golden_projection() -> npt.NDArray[np.float64]:
    """Orthonormal basis (8, 4) of the space on which E8 folds to H4: the roots become two 600-cells.

    120 roots come out longer than the other 120 by the golden ratio (Moody and Patera, "Quasicrystals and icosians",
    1993). The space is spanned by the planes of a Coxeter element for the exponents 1, 11, 19 and 29.
    """
    return _coxeter_space(1, 11)


def _coxeter_space(*exponents: int) -> npt.NDArray[np.float64]:
    """Orthonormal basis of the planes on which a Coxeter element turns by an exponent's share of the circle."""
    element = np.eye(DIMENSIONS)
    for root in simple_roots():
        element = element @ (np.eye(DIMENSIONS) - np.outer(root, root))
    values, vectors = np.linalg.eig(element)
    columns = []
    for exponent in exponents:
        chosen = int(np.argmin(abs(values - np.exp(2j * np.pi * exponent / COXETER_NUMBER))))
        columns += [vectors[:, chosen].real, vectors[:, chosen].imag]
    basis, _ = np.linalg.qr(np.stack(columns, axis=1))
    return np.ascontiguousarray(basis)


def _nearest_on_host(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    x = points.reshape(-1, DIMENSIONS)
    with np.errstate(invalid="ignore"):
        whole, to_whole = _nearest_in_coset(x, 0.0)
        half, to_half = _nearest_in_coset(x, 0.5)
        chosen = np.where((to_whole <= to_half)[:, None], whole, half)
        chosen[~(to_whole < np.inf)] = np.nan
    return chosen.reshape(points.shape)


def _nearest_in_coset(
    x: npt.NDArray[np.float64], shift: float
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Nearest points of D8 + shift and squared distances, operation by operation as lattices.cu has them."""
    found = np.rint(x - shift)
    off = (x - shift) - found
    worst = np.argmax(np.abs(off), axis=1)
    total = _sum_in_order(found) * 0.5
    odd = np.flatnonzero(np.rint(total) != total)
    found[odd, worst[odd]] += np.where(off[odd, worst[odd]] >= 0, 1.0, -1.0)
    found += shift
    off = x - found
    return found, _sum_in_order(off * off)


def _sum_in_order(terms: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    total = np.zeros(len(terms))
    for column in terms.T:
        total += column
    return total


def _check_points(points: Array, where: str, axes: int | None = None) -> None:
    check(points, where, dtypes=(FLOAT64,))
    if points.ndim == 0 or points.shape[-1] != DIMENSIONS or (axes is not None and points.ndim != axes):
        check_shape(points, (-1,) * ((axes or 2) - 1) + (DIMENSIONS,), where)
