"""Weights as int8 with a scale for each column, in the package's int8 product: how much smaller, how exact (TO-4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import INT8
from burstproof.tensor.ops.linalg import matmul
from stages.measuring import Measure

pytestmark = pytest.mark.requirement("TO-4", "ST-6")

ROWS = 64
LARGEST = 127
ALLOWED = 0.02
"""Relative error of a product of normal numbers: two factors, each rounded to a 127th of its row's largest entry."""


def quantised(values: Any, axis: int) -> tuple[Any, Any]:
    """``values`` as int8 and the float32 scales along ``axis`` that give them back."""
    xp = backend_of(values)
    scales = xp.abs(values).max(axis=axis, keepdims=True) / np.float32(LARGEST)
    return xp.rint(values / scales).astype(INT8), scales


def backend_of(values: Any) -> Any:
    """NumPy or CuPy."""
    return np if isinstance(values, np.ndarray) else backend("cupy").xp


@pytest.mark.measures(
    "tensor.weight_compression", "tensor.weight_error", dtype="int8", backend=["cpu", "cuda"], size=...
)
@pytest.mark.parametrize(
    ("where", "size"), [("cpu", 512), pytest.param("cuda", 4096, marks=pytest.mark.gate("gpu"))], ids=["cpu", "cuda"]
)
def test_weights_of_a_layer(where: str, size: int, measure: Measure) -> None:
    """A layer's weights in a quarter of the bytes: the int8 product is exact, the layer's output within 2 %."""
    place = backend("numpy" if where == "cpu" else "cupy")
    generator = np.random.default_rng(1)
    inputs, weights = (place.from_host(generator.standard_normal((n, size), np.float32)) for n in (ROWS, size))
    (x, x_scales), (w, w_scales) = quantised(inputs, 1), quantised(weights, 0)
    product = matmul(x, w)
    exact = place.to_host(x).astype(np.float64) @ place.to_host(w)
    assert np.array_equal(place.to_host(product), exact)
    wanted = place.to_host(inputs).astype(np.float64) @ place.to_host(weights)
    error = np.linalg.norm(exact * place.to_host(x_scales) * place.to_host(w_scales) - wanted) / np.linalg.norm(wanted)
    assert error <= ALLOWED, error
    conditions = {"dtype": "int8", "backend": where, "size": size}
    note = "bytes of float32 weights over those of int8 weights with their scales"
    measure(
        "tensor.weight_compression",
        weights.nbytes / (w.nbytes + w_scales.nbytes),
        "x",
        conditions=conditions,
        note=note,
    )
    measure("tensor.weight_error", error, "1", conditions=conditions, note="relative error of the layer's output")
