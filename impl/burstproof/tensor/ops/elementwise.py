"""Element-wise operations and fused expressions on NumPy and CuPy arrays.

``evaluate("relu(a * b + c) * 2", {"a": a, "b": b, "c": c})`` is one kernel on a device and one pass through the caches
on the CPU, however long the expression. The named operations are such expressions of one step.
Arrays are float32, float64 or complex128, or float16 and bfloat16, which are computed in float32 and rounded once.
Nothing is broadcast: the arrays of an expression have one shape, dtype and device; scalars are Python numbers.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend_of
from burstproof.tensor.array.checks import check, check_alike
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT16, FLOAT32, FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops import nn_reference
from burstproof.tensor.ops.expression import Expression, parse
from burstproof.tensor.ops.kernels import KINDS, computing_dtype, joined_address, vector_width

DTYPES = (FLOAT32, FLOAT64, COMPLEX128, FLOAT16, BFLOAT16)
"""Element types that the operations take; relu, sigmoid and gelu take no complex128."""

Scalar = int | float | complex

Operand = Any
"""An array, or a ``Scalar``."""

_CHUNK = 1 << 16
_THREADS = 256
_ITEMS = 2
"""Accesses per thread and array."""


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
    dtype = result_dtype(expression, first.dtype)
    if out is not None:
        check(out, "out", dtypes=(dtype,), shape=tuple(first.shape))
    result = place.empty(first.shape, dtype) if out is None else out
    if place.device is None:
        _apply_in_chunks(parsed, result, arrays, scalars)
    elif result.size:
        with place.use():
            vector = vector_width(first.dtype, 0, joined_address(result, *arrays.values()))
            kernel = entry(expression, tuple(arrays), tuple(scalars), first.dtype, vector).on(place.device)
            blocks = -(-result.size // (vector * _ITEMS * _THREADS))
            kernel(blocks, _THREADS, result, *arrays.values(), *scalars.values(), result.size)
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
    check(first, where, dtypes=DTYPES)
    for name, array in arrays.items():
        if array.dtype != first.dtype or array.shape != first.shape or not array.flags.c_contiguous:
            check_alike(array, first, f"{where}, {name}")
    for name, scalar in scalars.items():
        if isinstance(scalar, complex) and first.dtype != COMPLEX128:
            raise ArrayError("a complex number among real arrays", where=f"{where}, {name}", got=scalar)
    return arrays, scalars


def _scalar(value: Operand) -> Scalar:
    return complex(value) if isinstance(value, complex | np.complexfloating) else float(value)


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


@lru_cache(maxsize=1024)
def result_dtype(text: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Element type of the result: that of the arrays, or float64 for a real function of complex arrays.

    Raises
    ------
    ArrayError
        A function that complex numbers do not have.
    """
    expression = parse(text)
    _, is_complex = expression.cpp({name: name for name in expression.names}, dtype == COMPLEX128)
    return FLOAT64 if dtype == COMPLEX128 and not is_complex else dtype


@lru_cache(maxsize=512)
def entry(text: str, arrays: tuple[str, ...], scalars: tuple[str, ...], dtype: np.dtype[Any], vector: int) -> Entry:
    """The kernel of an expression, named ``evaluate``: generated text behind elementwise.cu."""
    complex_elements = dtype == COMPLEX128
    names = {name: f"inputs[{i}]" for i, name in enumerate(arrays)}
    names |= {name: f"scalars[{i}]" for i, name in enumerate(scalars)}
    code, is_complex = parse(text).cpp(names, complex_elements)
    defines = (
        ("KIND", "FLOAT64" if complex_elements else KINDS[dtype]),
        ("COMPLEX", str(int(complex_elements))),
        ("REAL_RESULT", str(int(not is_complex))),
        ("VEC", str(vector)),
        ("ITEMS", str(_ITEMS)),
        ("THREADS", str(_THREADS)),
        ("ARRAYS", str(len(arrays))),
        ("HINTS", "0"),
    )
    shared = CudaSource.beside(__file__, "element.cuh", "elementwise.cu")
    source = CudaSource(
        "elementwise.cu",
        f"{shared.text}\n{_generated(code, len(arrays), len(scalars))}",
        SourceOptions(defines=defines),
    )
    return Entry(source, "evaluate", _declared(dtype, result_dtype(text, dtype), len(arrays), len(scalars)), 256)


def _generated(code: str, arrays: int, scalars: int) -> str:
    parameters = [f"const stored* array{i}" for i in range(arrays)] + [f"number scalar{i}" for i in range(scalars)]
    pointers = ", ".join(f"array{i}" for i in range(arrays))
    numbers = ", ".join(f"scalar{i}" for i in range(scalars)) or "number{}"
    return f"""#line 1 "generated"
__device__ __forceinline__ result_number value_of(const number* inputs, const number* scalars) {{
    return {code};
}}
extern "C" __global__ void __launch_bounds__(THREADS)
evaluate(result_t* result, {", ".join(parameters)}, index_t count) {{
    const stored* const arrays[] = {{{pointers}}};
    const number scalars[] = {{{numbers}}};
    run(result, arrays, scalars, count);
}}
"""


def _declared(dtype: np.dtype[Any], result: np.dtype[Any], arrays: int, scalars: int) -> str:
    def spelled(kind: np.dtype[Any]) -> str:
        return "bfloat16" if kind == BFLOAT16 else str(kind)

    scalar = "complex128" if dtype == COMPLEX128 else str(computing_dtype(dtype))
    return " ".join((f"{spelled(result)}[]", *[f"{spelled(dtype)}[]"] * arrays, *[scalar] * scalars, "int64"))
