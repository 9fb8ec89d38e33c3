"""Matrix products: transposed, batched, accumulated, empty; refusals (TO-4)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, dtype_name
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops.linalg import RESULTS, matmul
from suites.support.tensor_operations import exactly, values

pytestmark = pytest.mark.requirement("TO-4")

TOLERANCE = {FLOAT32: 1e-6, FLOAT64: 1e-14, COMPLEX128: 1e-14, FLOAT16: 2e-3, BFLOAT16: 1e-2, INT32: 0.0}


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


def _factor(shape: tuple[int, ...], dtype: np.dtype, seed: int):
    if dtype == INT8:
        return np.random.default_rng(seed).integers(-128, 128, shape).astype(INT8)
    return values(shape, dtype, seed)


def _check(place: Backend, result, expected, dtype: np.dtype) -> None:
    found = exactly(place.to_host(result))
    assert found.shape == expected.shape
    assert np.linalg.norm(found - expected) <= TOLERANCE[dtype] * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", RESULTS, ids=dtype_name)
@pytest.mark.parametrize("batch", [((), ()), ((3,), (3,)), ((2, 2), ()), ((), (3,))], ids=str)
def test_layouts(place: Backend, dtype, batch) -> None:
    """Both factors as they are and transposed, one matrix for a whole batch, every element type of the result."""
    for transpose_a, transpose_b in itertools.product((False, True), repeat=2):
        a = _factor((*batch[0], *((16, 24) if transpose_a else (24, 16))), dtype, 1)
        b = _factor((*batch[1], *((20, 16) if transpose_b else (16, 20))), dtype, 2)
        first = exactly(a).swapaxes(-1, -2) if transpose_a else exactly(a)
        second = exactly(b).swapaxes(-1, -2) if transpose_b else exactly(b)
        for result in RESULTS[dtype]:
            found = matmul(
                place.from_host(a), place.from_host(b), transpose_a=transpose_a, transpose_b=transpose_b, dtype=result
            )
            assert found.dtype == result
            _check(place, found, first @ second, result)


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 7, 1), (5, 1, 3), (33, 65, 129)], ids=str)
def test_odd_extents(place: Backend, shape) -> None:
    rows, inner, columns = shape
    a, b = values((rows, inner), FLOAT32, 1), values((inner, columns), FLOAT32, 2)
    _check(place, matmul(place.from_host(a), place.from_host(b)), exactly(a) @ exactly(b), FLOAT32)


def test_accumulate_and_out(place: Backend) -> None:
    a, b, start = values((8, 6), FLOAT64, 1), values((6, 4), FLOAT64, 2), values((8, 4), FLOAT64, 3)
    out = place.from_host(start)
    assert matmul(place.from_host(a), place.from_host(b), out=out, accumulate=True) is out
    _check(place, out, start + a @ b, FLOAT64)
    matmul(place.from_host(a), place.from_host(b), out=out)
    _check(place, out, a @ b, FLOAT64)


def test_empty(place: Backend) -> None:
    assert matmul(place.ones((0, 3)), place.ones((3, 4))).shape == (0, 4)
    assert matmul(place.ones((0, 2, 3)), place.ones((0, 3, 4))).shape == (0, 2, 4)
    assert not place.to_host(matmul(place.ones((2, 0)), place.ones((0, 4)))).any()
    kept = matmul(place.ones((2, 0)), place.ones((0, 4)), out=place.ones((2, 4)), accumulate=True)
    assert place.to_host(kept).all()


def test_refusals(place: Backend) -> None:
    a, b = place.ones((2, 3)), place.ones((3, 4))
    wrong = [
        (lambda: matmul(a, a), "inner extents differ"),
        (lambda: matmul(place.ones((2, 2, 3)), place.ones((3, 3, 4))), "leading axes differ"),
        (lambda: matmul(a, place.ones((3, 4), np.float64)), "different element types"),
        (lambda: matmul(place.ones(3), b), "too few dimensions"),
        (lambda: matmul(a, place.ones((4, 3)).T), "not contiguous"),
        (lambda: matmul(place.ones((2, 3), np.int32), b), "does not take this element type"),
        (lambda: matmul(a, b, dtype="float64"), "no such result"),
        (lambda: matmul(a, b, out=place.ones((4, 2))), "wrong shape"),
        (lambda: matmul(a, b, accumulate=True), "nothing to add"),
        (lambda: matmul(place.ones((2, 3), np.float64), place.ones((3, 4), np.float64), tf32=True), "TF32"),
    ]
    for call, message in wrong:
        with pytest.raises(ArrayError, match=message):
            call()


@pytest.mark.gate("gpu")
def test_int8_on_a_device_wants_multiples_of_four() -> None:
    place = backend("cupy")
    with pytest.raises(ArrayError, match="multiples of 4"):
        matmul(place.ones((3, 4), INT8), place.ones((4, 4), INT8))
