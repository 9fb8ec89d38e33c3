"""Cross entropy, AdamW, embeddings and linear layers against formulas in float64, on both backends (TO-9, TO-11)."""

from __future__ import annotations

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, dtype_name
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops.adamw import AdamW
from burstproof.tensor.ops.cross_entropy import cross_entropy_in_place
from burstproof.tensor.ops.embedding import embed, embed_backward
from burstproof.tensor.ops.linear import add_bias, add_residual, bias_gradient
from burstproof.tensor.ops.nn_reference import narrowed, widened
from suites.support.accuracy import bound_of

pytestmark = pytest.mark.requirement("TO-9", "TO-11")

DTYPES = (FLOAT64, FLOAT32, FLOAT16, BFLOAT16)
PLACES = ["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))]


@pytest.fixture(params=PLACES)
def place(request) -> Backend:
    return backend(request.param)


@pytest.fixture(params=DTYPES, ids=dtype_name)
def dtype(request) -> np.dtype:
    return request.param


def number(dtype):
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def stored(values, dtype):
    return narrowed(values.astype(number(dtype)), dtype)


def error(found, expected) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.measures("accuracy.relative_error", dtype=..., tf32=False, operation="cross entropy gradient")
def test_cross_entropy(place, dtype, random, measure) -> None:
    """Padding does not count, rows without a target are 0, the gradient takes the place of the logits."""
    rows, columns, classes, factor = 37, 1000, 901, 0.25
    given = stored(4.0 * random.standard_normal((rows, columns)), dtype)
    targets = random.integers(0, classes, rows).astype(np.int32)
    targets[[3, 30]] = -1
    logits = place.from_host(given)
    losses = place.to_host(cross_entropy_in_place(logits, place.from_host(targets), classes, factor))
    wide = widened(given).astype(FLOAT64)[:, :classes]
    chances = np.exp(wide - wide.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    expected = -np.log(chances[np.arange(rows), targets])
    chances[np.arange(rows), targets] -= 1.0
    expected[targets < 0] = chances[targets < 0] = 0.0
    gradient = widened(place.to_host(logits))
    off = error(gradient[:, :classes], factor * chances)
    where = {"operation": "cross entropy gradient", "dtype": dtype_name(dtype), "tf32": False, "backend": place.name}
    measure("accuracy.relative_error", off, "1", conditions=where)
    assert error(losses, expected) < bound_of("cross_entropy", dtype_name(dtype))
    assert off < bound_of("cross_entropy.gradient", dtype_name(dtype))
    assert not gradient[:, classes:].any()


def test_linear_layers(place, dtype, random) -> None:
    x, residual = (stored(random.standard_normal((5, 31, 72)), dtype) for _ in range(2))
    bias = random.standard_normal(72).astype(number(dtype))
    on = [place.from_host(array) for array in (x, residual, bias)]
    wide_x, wide_residual = (widened(array).astype(FLOAT64) for array in (x, residual))
    total = add_residual(on[1], on[0], on[2])
    assert error(widened(place.to_host(total)), wide_residual + wide_x + bias) < bound_of(
        "add_residual", dtype_name(dtype)
    )
    plain = add_residual(on[1], on[0])
    assert error(widened(place.to_host(plain)), wide_residual + wide_x) < bound_of("add_residual", dtype_name(dtype))
    sums = place.empty(72, number(dtype))
    bias_gradient(on[0], sums)
    assert error(place.to_host(sums), wide_x.sum(axis=(0, 1))) < bound_of("bias_gradient", dtype_name(dtype))
    biased = add_bias(on[0], on[2])
    assert biased is on[0]
    assert error(widened(place.to_host(biased)), wide_x + bias) < bound_of("add_bias", dtype_name(dtype))


def test_linear_layers_without_rows(place, dtype) -> None:
    """What comes back is where the input is."""
    x, sums = place.zeros((0, 72), dtype), place.ones(72, number(dtype))
    assert place.to_host(add_residual(x, x)).shape == x.shape
    bias_gradient(x, sums)
    assert not place.to_host(sums).any()


def test_embeddings(place, dtype, random) -> None:
    """Gradients are sums over equal tokens, added to the table's and written to the positions'."""
    table, places = (stored(random.standard_normal((rows, 24)), dtype) for rows in (50, 40))
    gradient = stored(random.standard_normal((4, 33, 24)), dtype)
    tokens = random.integers(0, 50, (4, 33)).astype(np.int32)
    on = [place.from_host(array) for array in (tokens, table, places, gradient)]
    wide = [widened(array).astype(FLOAT64) for array in (table, places, gradient)]
    rows = widened(place.to_host(embed(*on[:3])))
    assert error(rows, wide[0][tokens] + wide[1][:33]) < bound_of("embed", dtype_name(dtype))
    table_gradient, place_gradient = (place.ones((rows, 24), number(dtype)) for rows in (50, 40))
    embed_backward(on[3], on[0], table_gradient, place_gradient)
    expected = np.ones((50, 24))
    np.add.at(expected, tokens, wide[2])
    assert error(place.to_host(table_gradient), expected) < bound_of("embed_backward", dtype_name(dtype))
    found = place.to_host(place_gradient)
    assert error(found[:33], wide[2].sum(axis=0)) < bound_of("embed_backward", dtype_name(dtype))
    assert not found[33:].any()


@pytest.mark.parametrize("copied", [None, FLOAT16, BFLOAT16], ids=["no copy", "float16", "bfloat16"])
def test_adamw(place, copied, random) -> None:
    """Five steps beside the algorithm as published, in float64; only the first weights decay, the copy is rounded."""
    constants = AdamW(rate=0.02, decay=0.3)
    weights = random.standard_normal(4096)
    held = [place.from_host(array.astype(FLOAT32)) for array in (weights, 0 * weights, 0 * weights)]
    copy = None if copied is None else place.zeros(2048, copied)
    first, second = 0 * weights, 0 * weights
    for number in range(1, 6):
        gradient = random.standard_normal(4096).astype(FLOAT32)
        constants.step(number, held[0], place.from_host(gradient), (held[1], held[2]), decayed=1024, copy=copy)
        first = constants.beta1 * first + (1 - constants.beta1) * gradient
        second = constants.beta2 * second + (1 - constants.beta2) * gradient.astype(FLOAT64) ** 2
        weights[:1024] *= 1 - constants.rate * constants.decay
        mean, deviation = first / (1 - constants.beta1**number), np.sqrt(second / (1 - constants.beta2**number))
        weights -= constants.rate * mean / (deviation + constants.epsilon)
    found = place.to_host(held[0])
    assert error(found, weights) < bound_of("adamw", "float32")
    if copy is not None:
        assert np.array_equal(place.to_host(copy), narrowed(found[:2048], copied))


def _refusals(place):
    logits, targets = place.zeros((4, 8)), place.zeros(4, np.int32)
    yield "classes", lambda: cross_entropy_in_place(logits, targets, 9)
    yield "no rows", lambda: cross_entropy_in_place(place.zeros((0, 8)), place.zeros(0, np.int32))
    yield "targets", lambda: cross_entropy_in_place(logits, place.zeros(5, np.int32))
    yield "dtype of targets", lambda: cross_entropy_in_place(logits, place.zeros(4, np.int64))
    yield "stride", lambda: cross_entropy_in_place(logits[:, ::2], targets)
    yield "bias", lambda: add_bias(logits, place.zeros(7))
    yield "residual", lambda: add_residual(place.zeros((4, 9)), logits)
    yield "gradient", lambda: bias_gradient(logits, place.zeros(8, FLOAT64))
    tokens = place.zeros((2, 3), np.int32)
    yield "positions", lambda: embed(tokens, place.zeros((5, 8)), place.zeros((2, 8)))
    yield "tokens", lambda: embed(place.zeros((2, 0), np.int32), place.zeros((5, 8)), place.zeros((4, 8)))
    yield "moments", lambda: AdamW().step(1, place.zeros(8), place.zeros(8), (place.zeros(8), place.zeros(4)))
    yield "step", lambda: AdamW().step(0, place.zeros(8), place.zeros(8), (place.zeros(8), place.zeros(8)))


def test_refusals(place) -> None:
    for what, call in _refusals(place):
        with pytest.raises(ArrayError) as caught:
            call()
        assert caught.value.where, what


def test_tokens_outside_the_table_are_refused_where_looking_is_free() -> None:
    table = np.zeros((5, 8), FLOAT32)
    for token in (-1, 5):
        with pytest.raises(ArrayError, match="not in the table"):
            embed(np.full((1, 2), token, np.int32), table, table)
    with pytest.raises(ArrayError, match="no class"):
        cross_entropy_in_place(np.zeros((1, 8), FLOAT32), np.full(1, 8, np.int32))


@pytest.mark.gate("gpu")
def test_targets_that_are_no_classes_become_nan_on_a_device() -> None:
    place = backend("cupy")
    logits = place.zeros((2, 8))
    losses = cross_entropy_in_place(logits, place.from_host(np.array([3, 8], np.int32)))
    assert np.array_equal(np.isnan(place.to_host(losses)), [False, True])
    assert np.array_equal(np.isnan(place.to_host(logits)).all(axis=1), [False, True])
