"""Every tensor operation as data: how to make its inputs, how to run it, and its value in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT32, FLOAT64, from_bfloat16, to_bfloat16
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops import elementwise, nn, nn_reference
from burstproof.tensor.ops.linalg import matmul

Host = npt.NDArray[Any]

CHAIN = "relu(a * b + c) * 2 - 0.5"
COMPLEX_CHAIN = "abs(a * b + c) * 2 - 0.5"


@dataclass(frozen=True)
class Operation:
    """An operation of several inputs with one or more results.

    Attributes
    ----------
    name : str
        As in ``suites.support.accuracy``; several results are named in ``results``.
    shapes : tuple of shape
        Of the inputs that have the element type under test.
    run : callable
        Inputs (and parameters) on a backend to results.
    exact : callable
        The same in float64 (complex128) on the host.
    parameters : tuple of shape
        Inputs of the computing type (scale, shift, bias), after the others.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    run: Callable[..., Sequence[Any]]
    exact: Callable[..., Sequence[Host]]
    parameters: tuple[tuple[int, ...], ...] = ()
    results: tuple[str, ...] = ()

    @property
    def result_names(self) -> tuple[str, ...]:
        """Name of each result in the table of accuracies."""
        return self.results or (self.name,)


def values(shape: tuple[int, ...], dtype: np.dtype[Any], seed: int) -> Host:
    """Normally distributed numbers of an element type."""
    generator = np.random.default_rng(seed)
    normal = generator.standard_normal(shape)
    if dtype == COMPLEX128:
        return normal + 1j * generator.standard_normal(shape)
    return to_bfloat16(normal) if dtype == BFLOAT16 else normal.astype(dtype)


def exactly(array: Host) -> Host:
    """Stored values as float64 or complex128."""
    if array.dtype == COMPLEX128:
        return array
    return (from_bfloat16(array) if array.dtype == BFLOAT16 else array).astype(FLOAT64)


def relative_error(result: Host, exact: Host) -> float:
    """Relative 2-norm of the difference."""
    return float(np.linalg.norm((exactly(result) - exact).ravel()) / np.linalg.norm(exact.ravel()))


def inputs_of(operation: Operation, dtype: np.dtype[Any]) -> list[Host]:
    """The operation's inputs on the host, always the same."""
    computed = FLOAT64 if dtype == FLOAT64 else FLOAT32
    made = [values(shape, dtype, seed) for seed, shape in enumerate(operation.shapes)]
    return made + [values(shape, computed, 100 + seed) for seed, shape in enumerate(operation.parameters)]


def run_on(operation: Operation, place: Backend, inputs: Sequence[Host]) -> list[Host]:
    """Results of the operation on a backend, on the host."""
    return [place.to_host(result) for result in operation.run(*(place.from_host(given) for given in inputs))]


def _one(function: Callable[..., Any]) -> Callable[..., Sequence[Any]]:
    return lambda *inputs: (function(*inputs),)


def _of_expression(text: str) -> Callable[..., Sequence[Any]]:
    return _one(lambda *inputs: elementwise.evaluate(text, dict(zip("abc", inputs, strict=False))))


def _layer_norm_backward(gradient: Any, x: Any, scale: Any, shift: Any) -> Sequence[Any]:
    found = nn.layer_norm_backward(gradient, x, scale, nn.layer_norm(x, scale, shift))
    return found.values, found.scale, found.shift


def _exact_layer_norm_backward(gradient: Host, x: Host, scale: Host, shift: Host) -> Sequence[Host]:
    _, mean, inverse = nn_reference.layer_norm(x, scale, shift, 1e-5)
    return nn_reference.layer_norm_backward(gradient, x, scale, mean, inverse)


def _bias_gelu_backward(gradient: Any, x: Any, bias: Any) -> Sequence[Any]:
    found = nn.bias_gelu_backward(gradient, x, bias, "tanh")
    return found.values, found.bias


def _elementwise() -> list[Operation]:
    flat = (10_007,)  # prime, so that the last vector is cut short
    binary = {
        "add": (elementwise.add, np.add),
        "subtract": (elementwise.subtract, np.subtract),
        "multiply": (elementwise.multiply, np.multiply),
        "divide": (elementwise.divide, np.divide),
    }
    unary = {
        "negative": (elementwise.negative, np.negative),
        "absolute": (elementwise.absolute, np.abs),
        "exp": (elementwise.exp, np.exp),
        "relu": (elementwise.relu, lambda x: np.maximum(x, 0)),
        "sigmoid": (elementwise.sigmoid, lambda x: np.exp(x) / (1 + np.exp(x))),
        "gelu": (elementwise.gelu, lambda x: nn_reference.gelu(x, False)),
        "gelu_tanh": (lambda x: elementwise.gelu(x, "tanh"), lambda x: nn_reference.gelu(x, True)),
    }
    found = [Operation(name, (flat, flat), _one(run), _one(exact)) for name, (run, exact) in binary.items()]
    return found + [Operation(name, (flat,), _one(run), _one(exact)) for name, (run, exact) in unary.items()]


def _rows() -> list[Operation]:
    rows, columns = (65, 1000), (1000,)
    return [
        Operation("softmax", (rows,), _one(nn.softmax), _one(nn_reference.softmax)),
        Operation("softmax_backward", (rows, rows), _one(nn.softmax_backward), _one(nn_reference.softmax_backward)),
        Operation(
            "layer_norm",
            (rows,),
            _one(lambda x, scale, shift: nn.layer_norm(x, scale, shift).values),
            _one(lambda x, scale, shift: nn_reference.layer_norm(x, scale, shift, 1e-5)[0]),
            (columns, columns),
        ),
        Operation(
            "layer_norm_backward",
            (rows, rows),
            _layer_norm_backward,
            _exact_layer_norm_backward,
            (columns, columns),
            ("layer_norm_backward", "layer_norm_backward.parameters", "layer_norm_backward.parameters"),
        ),
        Operation(
            "bias_gelu",
            (rows,),
            _one(nn.bias_gelu),
            _one(lambda x, bias: nn_reference.gelu(x + bias, False)),
            (columns,),
        ),
        Operation(
            "bias_gelu_backward",
            (rows, rows),
            _bias_gelu_backward,
            lambda gradient, x, bias: nn_reference.bias_gelu_backward(gradient, x, bias, True),
            (columns,),
            ("bias_gelu_backward", "bias_gelu_backward.bias"),
        ),
    ]


MATMUL = Operation("matmul", ((2, 64, 1024), (2, 1024, 96)), _one(matmul), _one(np.matmul))
MATMUL_TO_FLOAT32 = Operation(
    "matmul.to_float32", MATMUL.shapes, _one(lambda a, b: matmul(a, b, dtype=FLOAT32)), _one(np.matmul)
)
CHAINED = Operation(
    "chain", ((10_007,),) * 3, _of_expression(CHAIN), _one(lambda a, b, c: np.maximum(a * b + c, 0) * 2 - 0.5)
)
CHAINED_COMPLEX = Operation(
    "chain", ((10_007,),) * 3, _of_expression(COMPLEX_CHAIN), _one(lambda a, b, c: np.abs(a * b + c) * 2 - 0.5)
)

OPERATIONS: tuple[Operation, ...] = (*_elementwise(), *_rows(), MATMUL, MATMUL_TO_FLOAT32)
"""Operations by the names of the table of accuracies; the chains differ for complex numbers and stand apart."""


def operation_named(name: str, dtype: str) -> Operation:
    """The operation that a row of the table of accuracies is about."""
    if name == "chain":
        return CHAINED_COMPLEX if dtype == "complex128" else CHAINED
    return next(operation for operation in OPERATIONS if name in operation.result_names)
