"""Element-wise operations and fused expressions on NumPy and CuPy arrays.

``evaluate("relu(a * b + c) * 2", {"a": a, "b": b, "c": c})`` is one kernel on a device and one pass through the caches
on the CPU, however long the expression. The named operations are such expressions of one step.
Arrays are float32, float64 or complex128, or float16 and bfloat16, which are computed in float32 and rounded once.
Nothing is broadcast: the arrays of an expression have one shape, dtype and device; scalars are Python numbers.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check_contiguous, check_dtype, check_same_dtype, check_shape
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.ops import elementwise_kernels, nn_reference
from burstproof.tensor.ops.expression import Expression, parse
from burstproof.tensor.ops.nn_kernels import computing_dtype

DTYPES = (FLOAT32, FLOAT64, COMPLEX128, FLOAT16, BFLOAT16)
"""Element types that the operations take; relu, sigmoid and gelu take no complex128."""

Scalar = int | float | complex

Operand = Any
"""An array, or a ``Scalar``."""

_CHUNK = 1 << 16


def evaluate(expression: str, operands: Mapping[str, Operand], out: Array | None = None) -> Array:
    """Value of an arithmetic expression, element by element, in one pass over memory.

    Parameters
    ----------
    expression : str
        Names, numbers, ``+ - * /``, unary minus, and the functions of ``expression.FUNCTIONS``: abs, exp, relu,
        sigmoid, gelu (error function), gelu_tanh.
    operands : mapping of str to array or number
        Exactly the names of the expression; arrays of one shape, dtype and device, contiguous; at least one array.
    out : array, optional
        Takes the result; may be one of the operands.

    Returns
    -------
    array
        Of the operands' dtype; float64 where the value of a complex expression is real.

    Raises
    ------
    ArrayError
        No such expression, operands that do not fit it or each other, or an ``out`` that does not fit.
    OutOfMemoryError
        No memory for the result.
    """
    parsed = parse(expression)
    arrays, scalars = _sorted_operands(parsed, operands)
    first = next(iter(arrays.values()))
    place = backend_of(*arrays.values(), *([] if out is None else [out]))
    dtype = elementwise_kernels.result_dtype(expression, first.dtype)
    result = _result(place, out, tuple(first.shape), dtype)
    if place.name == "numpy":
        _apply_in_chunks(parsed, result, arrays, scalars)
    elif result.size:
        with place.use():
            elementwise_kernels.launch(expression, result, arrays, scalars)
    return result


def add(a: Array, b: Operand, out: Array | None = None) -> Array:
    """``a + b``; ``b`` is an array or a number. Arguments, errors: ``evaluate``."""
    return evaluate("a + b", {"a": a, "b": b}, out)


def subtract(a: Array, b: Operand, out: Array | None = None) -> Array:
    """``a - b``; ``b`` is an array or a number."""
    return evaluate("a - b", {"a": a, "b": b}, out)


def multiply(a: Array, b: Operand, out: Array | None = None) -> Array:
    """``a * b``; ``b`` is an array or a number."""
    return evaluate("a * b", {"a": a, "b": b}, out)


def divide(a: Array, b: Operand, out: Array | None = None) -> Array:
    """``a / b`` with IEEE results for zeros; complex numbers by Smith's algorithm; ``b`` is an array or a number."""
    return evaluate("a / b", {"a": a, "b": b}, out)


def negative(a: Array, out: Array | None = None) -> Array:
    """``-a``."""
    return evaluate("-a", {"a": a}, out)


def absolute(a: Array, out: Array | None = None) -> Array:
    """``|a|``; float64 for complex128."""
    return evaluate("abs(a)", {"a": a}, out)


def exp(a: Array, out: Array | None = None) -> Array:
    """e to the ``a``."""
    return evaluate("exp(a)", {"a": a}, out)


def relu(a: Array, out: Array | None = None) -> Array:
    """``a`` where it is not negative, else 0; a NaN stays. Real arrays only."""
    return evaluate("relu(a)", {"a": a}, out)


def sigmoid(a: Array, out: Array | None = None) -> Array:
    """1 / (1 + exp(-a)). Real arrays only."""
    return evaluate("sigmoid(a)", {"a": a}, out)


def gelu(a: Array, form: str = "erf", out: Array | None = None) -> Array:
    """GELU by the error function, or its approximation ``form="tanh"`` (see ``nn.bias_gelu``). Real arrays only."""
    if form not in ("erf", "tanh"):
        raise ArrayError("there is no such form of GELU", where="gelu", got=form, allowed="erf, tanh")
    return evaluate("gelu(a)" if form == "erf" else "gelu_tanh(a)", {"a": a}, out)


def _sorted_operands(parsed: Expression, operands: Mapping[str, Operand]) -> tuple[dict[str, Array], dict[str, Scalar]]:
    where = f"expression {parsed.text!r}"
    if set(operands) != set(parsed.names):
        raise ArrayError(
            "the operands are not those of the expression",
            where=where,
            got=sorted(operands),
            allowed=", ".join(parsed.names),
        )
    scalars = {name: _scalar(operands[name]) for name in parsed.names if isinstance(operands[name], numbers.Number)}
    arrays: dict[str, Array] = {name: operands[name] for name in parsed.names if name not in scalars}
    if not arrays:
        raise ArrayError("the expression has no array among its operands", where=where, got=dict(scalars))
    backend_of(*arrays.values())
    first = next(iter(arrays.values()))
    check_dtype(first, DTYPES, where)
    for name, array in arrays.items():
        if array.dtype != first.dtype or array.shape != first.shape or not array.flags.c_contiguous:
            check_same_dtype(array, first, f"{where}, {name}")
            check_shape(array, tuple(first.shape), f"{where}, {name}")
            check_contiguous(array, f"{where}, {name}")
    for name, scalar in scalars.items():
        if isinstance(scalar, complex) and first.dtype != COMPLEX128:
            raise ArrayError("a complex number among real arrays", where=f"{where}, {name}", got=scalar)
    return arrays, scalars


def _scalar(value: Any) -> Scalar:
    return complex(value) if isinstance(value, complex | np.complexfloating) else float(value)


def _result(place: Backend, out: Array | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    if out is None:
        return place.empty(shape, dtype)
    check_shape(out, shape, "out")
    check_dtype(out, (dtype,), "out")
    check_contiguous(out, "out")
    return out


def _apply_in_chunks(
    parsed: Expression, result: Array, arrays: Mapping[str, Array], scalars: Mapping[str, Any]
) -> None:
    """The expression on pieces that stay in the caches, so that intermediate values never reach memory."""
    first = next(iter(arrays.values()))
    kind = COMPLEX128.type if first.dtype == COMPLEX128 else computing_dtype(first.dtype).type
    numbers_of_kind = {name: kind(value) for name, value in scalars.items()}
    flat, target = {name: array.reshape(-1) for name, array in arrays.items()}, result.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, target.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            pieces = {name: nn_reference.widened(array[part]) for name, array in flat.items()}
            target[part] = nn_reference.narrowed(parsed.apply(pieces | numbers_of_kind), result.dtype)
