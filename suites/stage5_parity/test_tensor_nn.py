"""Softmax, layer norm, bias + GELU: gradients by finite differences, shapes, special values, refusals (TO-3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops import nn, nn_reference
from suites.support.tensor_operations import exactly, values

pytestmark = pytest.mark.requirement("TO-3")

SHAPES = [(1, 1), (5, 7), (2, 3, 64), (3, 1023), (17, 768), (2, 12288), (2, 50257)]
STEP = 1e-6


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


def slope_along(function: Callable[..., Any], inputs: list[Any], which: int, direction: Any) -> float:
    """Central difference of sum(function * weights) along a direction of one input, weights from a fixed seed."""

    def weighted(sign: float) -> float:
        moved = [given + sign * STEP * direction if i == which else given for i, given in enumerate(inputs)]
        value = function(*moved)
        return float((value * values(value.shape, FLOAT64, 99)).sum())

    return (weighted(1.0) - weighted(-1.0)) / (2 * STEP)


def check_gradients(function: Callable[..., Any], inputs: list[Any], gradients: tuple[Any, ...]) -> None:
    for which, gradient in enumerate(gradients):
        direction = values(inputs[which].shape, FLOAT64, 7 + which)
        expected = slope_along(function, inputs, which, direction)
        assert float((gradient * direction).sum()) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.fixture
def rows() -> Any:
    return values((6, 40), FLOAT64, 1)


def test_softmax_gradient(place: Backend, rows) -> None:
    weights = values(rows.shape, FLOAT64, 99)
    output = nn.softmax(place.from_host(rows))
    gradient = place.to_host(nn.softmax_backward(place.from_host(weights), output))
    check_gradients(nn.softmax, [rows], (gradient,))


def test_layer_norm_gradients(place: Backend, rows) -> None:
    scale, shift = values((40,), FLOAT64, 2), values((40,), FLOAT64, 3)
    x, on_place = place.from_host(rows), place.from_host(scale)
    forward = nn.layer_norm(x, on_place, place.from_host(shift))
    found = nn.layer_norm_backward(place.from_host(values(rows.shape, FLOAT64, 99)), x, on_place, forward)
    gradients = tuple(place.to_host(g) for g in (found.values, found.scale, found.shift))
    check_gradients(lambda *inputs: nn.layer_norm(*inputs).values, [rows, scale, shift], gradients)


@pytest.mark.parametrize("form", ["erf", "tanh"])
def test_bias_gelu_gradients(place: Backend, rows, form) -> None:
    bias = values((40,), FLOAT64, 2)
    weights = place.from_host(values(rows.shape, FLOAT64, 99))
    found = nn.bias_gelu_backward(weights, place.from_host(rows), place.from_host(bias), form)
    gradients = place.to_host(found.values), place.to_host(found.bias)
    check_gradients(lambda x, b: nn.bias_gelu(x, b, form), [rows, bias], gradients)


def test_gelu_by_known_values(place: Backend) -> None:
    """x Phi(x) from a table of the normal distribution: Phi(1) = 0.841344746, Phi(-2) = 0.022750132."""
    x = place.from_host([[1.0, -2.0, 0.0]], np.float64)
    exact = place.to_host(nn.bias_gelu(x, place.zeros(3, np.float64)))
    assert exact == pytest.approx(np.array([[0.841344746, -0.045500264, 0.0]]), abs=1e-9)
    assert place.to_host(nn.bias_gelu(x, place.zeros(3, np.float64), "tanh")) == pytest.approx(exact, abs=5e-4)


@pytest.mark.gate("gpu")
@pytest.mark.requirement("TO-11")
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, FLOAT16, BFLOAT16], ids=["float32", "float64", "float16", "bf16"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_shape_equals_the_host(shape, dtype) -> None:
    """Vectors, odd widths, one warp, whole blocks, rows beyond the registers; the same formulas on both backends."""
    computed = FLOAT64 if dtype == FLOAT64 else FLOAT32
    x, gradient = values(shape, dtype, 1), values(shape, dtype, 2)
    scale, shift = values(shape[-1:], computed, 3), values(shape[-1:], computed, 4)
    host, device = (_everything(place, x, gradient, scale, shift) for place in (backend("numpy"), backend("cupy")))
    tolerance = {FLOAT32: 3e-6, FLOAT64: 1e-14, FLOAT16: 2e-3, BFLOAT16: 1.6e-2}[dtype]
    for name, expected in host.items():
        size = max(float(np.linalg.norm(expected)), 1.0)
        assert np.linalg.norm(device[name] - expected) / size < tolerance, name


def _everything(place: Backend, *inputs: Any) -> dict[str, Any]:
    x, gradient, scale, shift = (place.from_host(given) for given in inputs)
    softmax = nn.softmax(x)
    normed = nn.layer_norm(x, scale, shift)
    back = nn.layer_norm_backward(gradient, x, scale, normed)
    gelu_back = nn.bias_gelu_backward(gradient, x, scale, "erf")
    results = {
        "softmax": softmax,
        "softmax_backward": nn.softmax_backward(gradient, softmax),
        "layer_norm": normed.values,
        "mean": normed.mean,
        "scale": back.scale,
        "shift": back.shift,
        "bias_gelu": nn.bias_gelu(x, shift, "tanh"),
        "bias_gelu_backward": gelu_back.values,
        "bias": gelu_back.bias,
    }
    if x.shape[-1] > 1:  # one column has no variance: its gradient is the rounding error of 1 / sqrt(epsilon)
        results["layer_norm_backward"] = back.values
    return {name: exactly(place.to_host(result)) for name, result in results.items()}


def test_special_values(place: Backend) -> None:
    infinity = np.inf
    given = np.array([[-infinity] * 4, [0, np.nan, 1, 2], [0, infinity, 1, 2], [0, -infinity, 1e4, 0]], np.float32)
    found = place.to_host(nn.softmax(place.from_host(given)))
    assert np.isnan(found[:3]).all()
    assert np.array_equal(found[3], [0, 0, 1, 0])


def test_huge_logits_do_not_overflow(place: Backend) -> None:
    found = place.to_host(nn.softmax(place.from_host([[1e30, 1e30, -1e30]], np.float32)))
    assert np.array_equal(found, [[0.5, 0.5, 0]])


@pytest.mark.parametrize("shape", [(0, 5), (3, 0, 8)], ids=str)
def test_no_rows(place: Backend, shape) -> None:
    x, parameter = place.zeros(shape), place.ones(shape[-1])
    assert place.to_host(nn.softmax(x)).shape == shape
    assert place.to_host(nn.bias_gelu(x, parameter)).shape == shape
    normed = nn.layer_norm(x, parameter, parameter)
    assert place.to_host(normed.values).shape == shape
    found = nn.layer_norm_backward(x, x, parameter, normed)
    assert not place.to_host(found.scale).any()
    assert not place.to_host(nn.bias_gelu_backward(x, x, parameter).bias).any()


def test_softmax_of_empty_rows(place: Backend) -> None:
    assert nn.softmax(place.zeros((4, 0))).shape == (4, 0)


def test_sums_are_the_same_in_every_run(place: Backend) -> None:
    x, gradient = (place.from_host(values((999, 96), FLOAT32, seed)) for seed in (1, 2))
    scale = place.ones(96)
    runs = [nn.layer_norm_backward(gradient, x, scale, nn.layer_norm(x, scale, scale)) for _ in range(3)]
    for other in runs[1:]:
        assert np.array_equal(place.to_host(other.scale), place.to_host(runs[0].scale))


def test_refusals(place: Backend) -> None:
    x, parameter = place.ones((4, 8)), place.ones(8)
    wrong = [
        (lambda: nn.softmax(place.ones((4, 8), np.int32)), "does not take this element type"),
        (lambda: nn.softmax(place.ones(())), "too few dimensions"),
        (lambda: nn.softmax(x.T), "not contiguous"),
        (lambda: nn.softmax_backward(x, place.ones((4, 8), np.float64)), "different element types"),
        (lambda: nn.softmax_backward(x, place.ones((8, 4))), "wrong shape"),
        (lambda: nn.layer_norm(x, place.ones(7), parameter), "wrong shape"),
        (lambda: nn.layer_norm(x, place.ones(8, np.float64), parameter), "does not take this element type"),
        (lambda: nn.layer_norm(x, parameter, parameter, 0.0), "epsilon must be positive"),
        (lambda: nn.layer_norm(x, parameter, parameter, float("nan")), "epsilon must be positive"),
        (lambda: nn.layer_norm(place.ones((4, 0)), place.ones(0), place.ones(0)), "rows without columns"),
        (lambda: nn.bias_gelu(x, parameter, "fast"), "no such form"),
        (lambda: nn.bias_gelu_backward(place.ones((4, 7)), x, parameter), "wrong shape"),
    ]
    for call, message in wrong:
        with pytest.raises(ArrayError, match=message):
            call()


@pytest.mark.gate("gpu")
def test_devices_do_not_mix() -> None:
    with pytest.raises(ArrayError, match="different devices"):
        nn.layer_norm(backend("cupy").ones((4, 8)), np.ones(8, np.float32), np.ones(8, np.float32))


@pytest.mark.gate("gpu")
def test_torch_agrees() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rows = values((64, 768), FLOAT32, 1)
    scale, shift = values((768,), FLOAT32, 2), values((768,), FLOAT32, 3)
    place = backend("cupy")
    x, theirs = place.from_host(rows), torch.from_numpy(rows)
    ours = nn.layer_norm(x, place.from_host(scale), place.from_host(shift)).values
    known = torch.nn.functional.layer_norm(theirs, (768,), torch.from_numpy(scale), torch.from_numpy(shift))
    assert np.allclose(place.to_host(ours), known.numpy(), atol=1e-5)
    assert np.allclose(place.to_host(nn.softmax(x)), torch.softmax(theirs, -1).numpy(), atol=1e-7)
    gelu = torch.nn.functional.gelu(theirs + torch.from_numpy(shift), approximate="tanh")
    assert np.allclose(place.to_host(nn.bias_gelu(x, place.from_host(shift), "tanh")), gelu.numpy(), atol=1e-6)


@pytest.mark.not_proof
def test_the_formulas_are_independent_of_the_module() -> None:
    assert nn_reference.module_of(np.zeros(1)) is np
