"""Expressions and named element-wise operations: language, chains, special values, refusals (TO-2)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT32, FLOAT64, from_bfloat16
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops import elementwise
from burstproof.tensor.ops.elementwise import evaluate, result_dtype
from burstproof.tensor.ops.expression import parse
from suites.support.tensor_operations import values

pytestmark = pytest.mark.requirement("TO-2")


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 2047, 2048, 2049, 70_001])
def test_every_length(place: Backend, count: int) -> None:
    """Full vectors, cut ones, none; pieces of the CPU's pass."""
    a, b = values((count,), FLOAT64, 1), values((count,), FLOAT64, 2)
    found = evaluate("a * s - b / 4", {"a": place.from_host(a), "b": place.from_host(b), "s": 3})
    assert np.allclose(place.to_host(found), a * 3 - b / 4, rtol=1e-15)


@pytest.mark.parametrize("offset", [1, 2, 3])
def test_views_that_start_anywhere(place: Backend, offset: int) -> None:
    host = values((1000,), FLOAT32, 1)
    whole = place.from_host(host)
    result = place.zeros(1000)
    elementwise.multiply(whole[offset:], 2.0, out=result[: 1000 - offset])
    assert np.array_equal(place.to_host(result)[: 1000 - offset], host[offset:] * 2)


def test_shapes_are_kept_and_results_may_replace_operands(place: Backend) -> None:
    host = values((3, 4, 5), FLOAT64, 1)
    array = place.from_host(host)
    assert elementwise.negative(array).shape == (3, 4, 5)
    returned = elementwise.add(array, 1.5, out=array)
    assert returned is array
    assert np.array_equal(place.to_host(array), host + 1.5)
    assert elementwise.exp(place.from_host(np.zeros((), np.float64))).shape == ()


def test_scalars(place: Backend) -> None:
    host = values((100,), COMPLEX128, 1)
    array = place.from_host(host)
    assert np.allclose(place.to_host(elementwise.add(array, 2 - 1j)), host + 2 - 1j, rtol=1e-15)
    assert np.allclose(place.to_host(elementwise.multiply(array, 1j)), host * 1j, rtol=1e-15)
    assert np.array_equal(place.to_host(elementwise.multiply(array, 2)), host * 2)
    single = place.to_host(elementwise.multiply(place.ones(3), 0.1))
    assert (single.dtype, single[0]) == (FLOAT32, np.float32(0.1))


def test_complex_division_does_not_overflow(place: Backend) -> None:
    huge = place.from_host(np.array([1e300 + 1e300j, 3 + 4j]))
    assert np.allclose(place.to_host(elementwise.divide(huge, huge)), 1, rtol=1e-15)


def test_real_values_of_complex_arrays(place: Backend) -> None:
    host = np.array([3 + 4j, -5 + 12j, 1e200 + 1e200j])
    found = place.to_host(evaluate("abs(z) * 2 + 1", {"z": place.from_host(host)}))
    assert found.dtype == FLOAT64
    assert np.allclose(found, np.abs(host) * 2 + 1, rtol=1e-15)
    assert result_dtype("abs(z) * z", COMPLEX128) == COMPLEX128


def test_special_values(place: Backend) -> None:
    infinity = np.inf
    given = place.from_host(np.array([np.nan, infinity, -infinity, -0.0, 0.0], np.float32))
    relu = place.to_host(elementwise.relu(given))
    assert np.array_equal(relu, np.array([np.nan, infinity, 0, 0, 0], np.float32), equal_nan=True)
    assert np.array_equal(place.to_host(elementwise.sigmoid(given))[1:], [1, 0, 0.5, 0.5])
    quotient = place.to_host(elementwise.divide(place.ones(5), given))
    assert np.array_equal(quotient[1:], [0, 0, -infinity, infinity])


def test_halves_are_rounded_once(place: Backend) -> None:
    """2^-8 + 2^-8 is lost if each sum is rounded to bfloat16, and not if the chain is computed in float32."""
    a = place.ones(64, BFLOAT16)
    found = from_bfloat16(place.to_host(evaluate("a + 0.00390625 + 0.00390625", {"a": a})))
    assert np.all(found == 1.0078125)


def test_gelu_forms(place: Backend) -> None:
    array = place.from_host(values((50,), FLOAT64, 1))
    exact, near = (place.to_host(elementwise.gelu(array, form)) for form in ("erf", "tanh"))
    assert 0 < np.abs(exact - near).max() < 1e-3
    with pytest.raises(ArrayError, match="no such form"):
        elementwise.gelu(array, "sine")


@pytest.mark.parametrize(
    "text",
    ["a +", "a @ b", "a ** 2", "a[0]", "__import__('os')", "sin(a)", "exp(a, a)", "exp(x=a)", "True", "'a'", "a < 1"],
)
def test_what_the_language_does_not_have(text: str) -> None:
    with pytest.raises(ArrayError, match=r"not an expression|no such construct"):
        parse(text)


def test_refusals(place: Backend) -> None:
    a = place.ones((2, 3))
    wrong = [
        (lambda: evaluate("1 + 2", {}), "names no array"),
        (lambda: evaluate("a + b", {"a": a}), "not those of the expression"),
        (lambda: evaluate("a", {"a": a, "b": a}), "not those of the expression"),
        (lambda: evaluate("a + 1", {"a": 2.0}), "no array among its operands"),
        (lambda: elementwise.add(a, place.ones((3, 2))), "wrong shape"),
        (lambda: elementwise.add(a, place.ones((2, 3), np.float64)), "different element types"),
        (lambda: elementwise.add(a, 1j), "complex number among real"),
        (lambda: elementwise.add(place.ones((2, 3), np.int32), 1), "does not take this element type"),
        (lambda: elementwise.negative(place.ones((4, 3)).T), "not contiguous"),
        (lambda: elementwise.negative(a, out=place.ones(6)), "wrong shape"),
        (lambda: elementwise.negative(a, out=place.ones((2, 3), np.float64)), "does not take this element type"),
        (lambda: elementwise.relu(place.ones(3, COMPLEX128)), "no meaning for complex"),
        (lambda: elementwise.absolute([1, 2]), "NumPy and CuPy arrays only"),
    ]
    for call, message in wrong:
        with pytest.raises(ArrayError, match=message):
            call()
