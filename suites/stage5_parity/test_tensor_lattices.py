"""E8 and the golden ratio against the mathematics, and the device against its exact twin (TO-10)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.lattices import golden, lattices
from suites.support.accuracy import bound_of

pytestmark = pytest.mark.requirement("TO-10")


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    """Normal points, points halfway between lattice points, and lattice points."""
    generator = np.random.default_rng(8)
    normal = generator.standard_normal((3000, 8)) * 2
    ties = np.rint(generator.standard_normal((1000, 8)) * 8) / 4
    steps = generator.integers(-5, 6, (1000, 8)).astype(float)
    return np.concatenate([normal, ties, steps @ lattices.simple_roots()])


def test_the_root_system(place: Backend) -> None:
    """240 different vectors of squared length 2; each meets the others at 1, 56, 126, 56, 1 angles; closed."""
    roots = lattices.roots()
    assert roots.shape == (240, 8)
    assert len(np.unique(roots, axis=0)) == 240
    products = place.to_host(lattices.inner_products(place.from_host(roots), place.from_host(roots)))
    for row in products:
        values, counts = np.unique(row, return_counts=True)
        assert list(values) == [-2, -1, 0, 1, 2]
        assert list(counts) == [1, 56, 126, 56, 1]
    assert np.all(np.diag(products) == 2)
    assert lattices.is_lattice_point(roots).all()
    mirrored = roots - products[:, 5][:, None] * roots[5]
    assert np.array_equal(np.unique(mirrored, axis=0), np.unique(roots, axis=0))


def test_simple_roots_span_the_lattice() -> None:
    """Determinant 1 (E8 is unimodular); every root has integer coordinates of one sign."""
    simple = lattices.simple_roots()
    assert abs(np.linalg.det(simple)) == pytest.approx(1)
    assert np.array_equal(np.diag(simple @ simple.T), [2.0] * 8)
    coordinates = np.linalg.solve(simple.T, lattices.roots().T).T
    assert np.allclose(coordinates, np.rint(coordinates))
    assert np.all((coordinates > -0.5).all(axis=1) | (coordinates < 0.5).all(axis=1))


def test_nearest_against_all_neighbours(place: Backend, points) -> None:
    """No neighbour is nearer: the cells of E8 are bounded by its roots and the vectors of squared length 4."""
    found = place.to_host(lattices.nearest(place.from_host(points)))
    assert lattices.is_lattice_point(found).all()
    distance = ((points - found) ** 2).sum(axis=1)
    assert distance.max() <= 1 + 1e-12  # the covering radius of E8 is 1
    around = place.to_host(lattices.neighbours(place.from_host(found)))
    assert around.shape == (len(points), 240, 8)
    assert lattices.is_lattice_point(around).all()
    nearest_other = ((points[:, None] - around) ** 2).sum(axis=2).min(axis=1)
    assert np.all(distance <= nearest_other + 1e-12)


def test_nearest_is_idempotent_and_moves_with_the_lattice(place: Backend, points) -> None:
    found = lattices.nearest(place.from_host(points))
    assert np.array_equal(place.to_host(lattices.nearest(found)), place.to_host(found))
    inside = points[:3000]
    moved = place.to_host(lattices.nearest(place.from_host(inside + lattices.roots()[17])))
    assert np.array_equal(moved, place.to_host(found)[:3000] + lattices.roots()[17])


def test_lattice_points_are_told_from_others(place: Backend) -> None:
    cases = {
        (0.0,) * 8: True,
        (0.5,) * 8: True,
        (1.0, *(0.0,) * 7): False,
        (0.5, *(-0.5,) * 7): False,
        (1.5, *(0.5,) * 7): False,
        (0.5, 0.5, *(0.0,) * 6): False,
        (0.25,) * 8: False,
    }
    found = place.to_host(lattices.is_lattice_point(place.from_host(list(cases), np.float64)))
    assert list(found) == list(cases.values())


@pytest.mark.gate("gpu")
@pytest.mark.requirement("TO-11")
def test_the_device_finds_the_same_points(points) -> None:
    place = backend("cupy")
    assert bound_of("e8.nearest", "float64") == 0
    assert np.array_equal(place.to_host(lattices.nearest(place.from_host(points))), lattices.nearest(points))


def test_what_is_not_finite(place: Backend) -> None:
    given = np.zeros((3, 8))
    given[0, 3], given[1, 5] = np.nan, -np.inf
    found = place.to_host(lattices.nearest(place.from_host(given)))
    assert np.isnan(found[:2]).all()
    assert not found[2].any()


def test_projections(place: Backend) -> None:
    """The Coxeter plane shows 8 rings of 30; folding to H4 gives two 600-cells whose sizes have the golden ratio."""
    roots = place.from_host(lattices.roots())
    for basis in (lattices.coxeter_plane(), lattices.golden_projection()):
        assert np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    flat = place.to_host(lattices.project(roots, place.from_host(lattices.coxeter_plane())))
    radii, counts = np.unique(np.linalg.norm(flat, axis=1).round(9), return_counts=True)
    assert list(counts) == [30] * 8
    folded = np.linalg.norm(
        place.to_host(lattices.project(roots, place.from_host(lattices.golden_projection()))), axis=1
    )
    sizes, members = np.unique(folded.round(9), return_counts=True)
    assert list(members) == [120, 120]
    assert sizes[1] / sizes[0] == pytest.approx(golden.GOLDEN_RATIO, rel=1e-8)
    assert len(radii) == 8


def test_fibonacci(place: Backend) -> None:
    zero, one = place.zeros(1000, np.int64), place.ones(1000, np.int64)
    found = place.to_host(golden.recurrence(zero, one, 90))
    assert np.all(found == 2880067194370816120)
    assert np.array_equal(place.to_host(golden.recurrence(zero, one, 0)), np.zeros(1000))


def test_binet(place: Backend) -> None:
    """x(n) = A phi^n + B psi^n with the two constants from x(0) and x(1)."""
    generator = np.random.default_rng(1)
    first, second = generator.standard_normal((2, 500))
    phi, psi = golden.GOLDEN_RATIO, 1 - golden.GOLDEN_RATIO
    a = (second - first * psi) / (phi - psi)
    found = place.to_host(golden.recurrence(place.from_host(first), place.from_host(second), 40))
    assert np.allclose(found, a * phi**40 + (first - a) * psi**40, rtol=1e-11)


def test_the_continued_fraction_converges_as_it_should(place: Backend) -> None:
    """From 1 the convergents are ratios of Fibonacci numbers; each step shrinks the error by phi^2."""
    start = place.ones(3, np.float64)
    exact = Fraction(1)
    for _ in range(12):
        exact = 1 + 1 / exact
    assert np.all(place.to_host(golden.continued_fraction(start, 12)) == float(exact))
    errors = [abs(float(place.to_host(golden.continued_fraction(start, n))[0]) - golden.GOLDEN_RATIO) for n in (10, 11)]
    assert errors[0] / errors[1] == pytest.approx(golden.GOLDEN_RATIO**2, rel=1e-3)


def test_the_rotation_has_three_gaps(place: Backend) -> None:
    """Steinhaus: n multiples cut the circle into arcs of at most three lengths; and it is exact in integers."""
    index = np.arange(1, 1001)
    found = place.to_host(golden.rotation(place.from_host(index)))
    exact = [Fraction(golden.GOLDEN_BITS * int(n) % 2**64, 2**64) for n in index]
    assert max(abs(Fraction(float(value)) - true) for value, true in zip(found, exact, strict=True)) < Fraction(
        1, 2**53
    )
    arcs = np.diff(np.concatenate([[0.0], np.sort(found), [1.0]]))
    assert len(np.unique(arcs.round(12))) <= 3
    assert abs(golden.GOLDEN_BITS / 2**64 - (golden.GOLDEN_RATIO - 1)) <= 2e-16


@pytest.mark.gate("gpu")
@pytest.mark.requirement("TO-11")
def test_the_device_equals_its_twin_to_the_bit() -> None:
    place = backend("cupy")
    generator = np.random.default_rng(2)
    first, second = generator.standard_normal((2, 10_000))
    whole = generator.integers(-(2**62), 2**62, 10_000)
    small = whole % 1000
    pairs = [
        (golden.recurrence(first, second, 70), golden.recurrence(place.from_host(first), place.from_host(second), 70)),
        (golden.recurrence(small, small, 60), golden.recurrence(place.from_host(small), place.from_host(small), 60)),
        (golden.continued_fraction(first, 33), golden.continued_fraction(place.from_host(first), 33)),
        (golden.rotation(whole), golden.rotation(place.from_host(whole))),
    ]
    for on_host, on_device in pairs:
        assert np.array_equal(place.to_host(on_device), on_host)


def test_empty(place: Backend) -> None:
    assert lattices.nearest(place.zeros((0, 8), np.float64)).shape == (0, 8)
    assert golden.continued_fraction(place.zeros(0, np.float64), 3).shape == (0,)


def test_refusals(place: Backend) -> None:
    wrong = [
        (lambda: lattices.nearest(place.zeros((2, 8))), "element type"),
        (lambda: lattices.nearest(place.zeros((2, 7), np.float64)), "wrong shape"),
        (lambda: lattices.nearest(place.zeros((), np.float64)), "wrong shape"),
        (lambda: lattices.inner_products(place.zeros(8, np.float64), place.zeros((1, 8), np.float64)), "wrong shape"),
        (lambda: golden.recurrence(place.zeros(2, np.int64), place.zeros(3, np.int64), 1), "wrong shape"),
        (lambda: golden.recurrence(place.zeros(2, np.int64), place.ones(2, np.int64), 95), "leave the range"),
        (lambda: golden.continued_fraction(place.ones(2, np.float64), -1), "number of steps"),
        (lambda: golden.rotation(place.ones(2, np.float64)), "element type"),
    ]
    for call, message in wrong:
        with pytest.raises(ArrayError, match=message):
            call()
