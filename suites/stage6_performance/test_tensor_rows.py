"""Softmax, layer norm, bias + GELU at 8192 x 4096, forward and backward, against copies and PyTorch (TO-3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT32, dtype_name
from burstproof.tensor.ops import nn, nn_reference
from burstproof.tensor.ops.nn_reference import widened
from stages.measuring import Measure
from suites.support.accuracy import bound_of
from suites.support.bench.card_limits import Card
from suites.support.bench.tensor_bench import (
    Work,
    alternate,
    as_torch,
    copy_rate,
    normal,
    put_contest,
    put_rate,
    relative_error,
    timed_on,
    torch_is_here,
)

pytestmark = [pytest.mark.requirement("TO-3", "TO-11", "ST-6"), pytest.mark.gate("gpu")]

ROWS, COLUMNS = 8192, 4096


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arrays of one dtype on the device, and what the backward passes take from the forward ones."""

    x: Any
    gradient: Any
    scale: Any
    shift: Any
    softmax: Any
    normed: nn.LayerNorm

    @classmethod
    def make(cls, dtype: np.dtype) -> Inputs:
        """Normally distributed rows and gradients."""
        x, gradient = (normal((ROWS, COLUMNS), dtype, seed) for seed in (1, 2))
        scale, shift = (normal(COLUMNS, FLOAT32, seed) for seed in (3, 4))
        return cls(x, gradient, scale, shift, nn.softmax(x), nn.layer_norm(x, scale, shift))


@dataclass(frozen=True)
class Case:
    """An operation: how it is run, its value in float64, PyTorch's way, and how many arrays of rows it moves."""

    name: str
    arrays: int
    run: Callable[[Inputs], Any]
    exact: Callable[[Inputs], Any]
    torch_way: Callable[[Inputs], Work]


def _wide(array: Any) -> Any:
    return widened(array).astype(np.float64)


def _torch_softmax(given: Inputs) -> Work:
    import torch

    x = as_torch(given.x)
    return lambda: torch.softmax(x, -1)


def _torch_softmax_backward(given: Inputs) -> Work:
    import torch

    gradient, output = as_torch(given.gradient), as_torch(given.softmax)
    return lambda: torch._softmax_backward_data(gradient, output, -1, gradient.dtype)


def _torch_layer_norm(given: Inputs) -> Work:
    import torch

    x = as_torch(given.x)
    scale, shift = (as_torch(array).to(x.dtype) for array in (given.scale, given.shift))
    return lambda: torch.native_layer_norm(x, (COLUMNS,), scale, shift, 1e-5)


def _torch_layer_norm_backward(given: Inputs) -> Work:
    import torch

    x, gradient = as_torch(given.x), as_torch(given.gradient)
    scale, shift = (as_torch(array).to(x.dtype) for array in (given.scale, given.shift))
    _, mean, inverse = torch.native_layer_norm(x, (COLUMNS,), scale, shift, 1e-5)
    backward = torch.ops.aten.native_layer_norm_backward
    return lambda: backward(gradient, x, (COLUMNS,), mean, inverse, scale, shift, [True, True, True])


def _torch_bias_gelu(given: Inputs) -> Work:
    import torch

    x = as_torch(given.x)
    bias = as_torch(given.shift).to(x.dtype)
    return lambda: torch.nn.functional.gelu(x + bias, approximate="tanh")


def _torch_bias_gelu_backward(given: Inputs) -> Work:
    import torch

    x, gradient = as_torch(given.x), as_torch(given.gradient)
    shifted = x + as_torch(given.shift).to(x.dtype)
    backward = torch.ops.aten.gelu_backward
    return lambda: backward(gradient, shifted, approximate="tanh").sum(0)


def _exact_layer_norm_backward(g: Inputs) -> Any:
    x, scale = _wide(g.x), g.scale.astype(np.float64)
    _, mean, inverse = nn_reference.layer_norm(x, scale, scale, 1e-5)
    return nn_reference.layer_norm_backward(_wide(g.gradient), x, scale, mean, inverse)[0]


CASES = (
    Case("softmax", 2, lambda g: nn.softmax(g.x), lambda g: nn_reference.softmax(_wide(g.x)), _torch_softmax),
    Case(
        "softmax_backward",
        3,
        lambda g: nn.softmax_backward(g.gradient, g.softmax),
        lambda g: nn_reference.softmax_backward(_wide(g.gradient), _wide(g.softmax)),
        _torch_softmax_backward,
    ),
    Case(
        "layer_norm",
        2,
        lambda g: nn.layer_norm(g.x, g.scale, g.shift).values,
        lambda g: nn_reference.layer_norm(_wide(g.x), *(p.astype(np.float64) for p in (g.scale, g.shift)), 1e-5)[0],
        _torch_layer_norm,
    ),
    Case(
        "layer_norm_backward",
        3,
        lambda g: nn.layer_norm_backward(g.gradient, g.x, g.scale, g.normed).values,
        _exact_layer_norm_backward,
        _torch_layer_norm_backward,
    ),
    Case(
        "bias_gelu",
        2,
        lambda g: nn.bias_gelu(g.x, g.shift, "tanh"),
        lambda g: nn_reference.gelu(_wide(g.x) + g.shift, True),
        _torch_bias_gelu,
    ),
    Case(
        "bias_gelu_backward",
        3,
        lambda g: nn.bias_gelu_backward(g.gradient, g.x, g.shift, "tanh").values,
        lambda g: _wide(g.gradient) * nn_reference.gelu_slope(_wide(g.x) + g.shift, True),
        _torch_bias_gelu_backward,
    ),
)


@pytest.fixture(scope="module", params=[FLOAT32, BFLOAT16], ids=dtype_name)
def inputs(request: pytest.FixtureRequest) -> Inputs:
    return Inputs.make(request.param)


@pytest.fixture(scope="module")
def copied(card: Card) -> dict[int, float]:
    """GB/s of a copy, by the bytes of an array of rows."""
    return {ROWS * COLUMNS * size: copy_rate(card, ROWS * COLUMNS * size) for size in (2, 4)}


@pytest.mark.measures(
    "rows.rate",
    "rows.copy_fraction",
    backend="cuda",
    dtype=["float32", "bfloat16"],
    rows=ROWS,
    columns=COLUMNS,
    device=...,
)
@pytest.mark.measures(
    "rows.against_pytorch",
    only_if="PyTorch is installed",
    backend="cuda",
    against="pytorch",
    rows=ROWS,
    columns=COLUMNS,
    device=...,
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rate(card: Card, copied: dict[int, float], inputs: Inputs, case: Case, measure: Measure) -> None:
    """Every element read and written once; checked against float64, timed in turns with PyTorch."""
    dtype = dtype_name(inputs.x.dtype)
    error = relative_error(widened(case.run(inputs)), case.exact(inputs))
    assert error <= bound_of(case.name, dtype), error

    timed = timed_on(card, lambda: case.run(inputs))
    where: dict[str, object] = {
        "backend": "cuda",
        "operation": case.name,
        "dtype": dtype,
        "rows": ROWS,
        "columns": COLUMNS,
        "device": card.runtime.name,
    }
    put_rate(measure, "rows", case.arrays * inputs.x.nbytes, timed, copied[inputs.x.nbytes], where)
    if torch_is_here():
        contest = alternate(lambda: case.run(inputs), case.torch_way(inputs))
        put_contest(measure, "rows.against_pytorch", contest, where)
