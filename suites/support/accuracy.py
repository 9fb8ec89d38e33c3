"""What every operation promises: the relative 2-norm of its error against float64, by operation and element type.

The error is ‖result - reference‖ / ‖reference‖ on inputs of order 1, the reference computed in float64 from the same
inputs (after they were rounded to their type). Where that is smaller than 1, as the gradients of attention to a single
key, which are 0, the divisor is 1. Half precision is bounded by the one rounding of the result: 2^-11 for float16, 2^-8
for bfloat16; attention rounds its probabilities as well. ``tf32`` is float32 with factors rounded to TF32.
"""

from __future__ import annotations

from dataclasses import dataclass

from burstproof.errors import ArrayError

FLOAT16_ROUNDING = 2.0**-11
BFLOAT16_ROUNDING = 2.0**-8


@dataclass(frozen=True)
class Accuracy:
    """One promise: ``bound`` on the relative error of ``operation`` on ``dtype``."""

    operation: str
    dtype: str
    bound: float


_ROUNDED_ONCE = {"float32": 1e-7, "float64": 2e-16, "complex128": 3e-16}
_SHORT = {"float32": 3e-7, "float64": 1e-15}
_ROWS = {"float32": 5e-7, "float64": 2e-15}
_SUMS = {"float32": 1e-6, "float64": 4e-15}
_TRAINING = {"float32": 1e-6, "float64": 1e-13}
_ATTENTION = {"float32": 1e-6, "float64": 1e-12, "float16": 1e-3, "bfloat16": 8e-3}
_HALVES = {"float16": FLOAT16_ROUNDING, "bfloat16": BFLOAT16_ROUNDING}

_TABLE: dict[str, dict[str, float]] = {
    "add": _ROUNDED_ONCE | _HALVES,
    "subtract": _ROUNDED_ONCE | _HALVES,
    "multiply": _ROUNDED_ONCE | _HALVES,
    "divide": _ROUNDED_ONCE | _HALVES,
    "negative": {"float32": 0.0, "float64": 0.0, "complex128": 0.0, "float16": 0.0, "bfloat16": 0.0},
    "absolute": {"float32": 0.0, "float64": 0.0, "complex128": 3e-16, "float16": 0.0, "bfloat16": 0.0},
    "exp": _SHORT | {"complex128": 1e-15} | _HALVES,
    "relu": {"float32": 0.0, "float64": 0.0, "float16": 0.0, "bfloat16": 0.0},
    "sigmoid": _SHORT | _HALVES,
    "gelu": _SHORT | _HALVES,
    "gelu_tanh": _SHORT | _HALVES,
    "chain": _SHORT | {"complex128": 1e-15} | _HALVES,
    "softmax": _ROWS | _HALVES,
    "softmax_backward": _ROWS | _HALVES,
    "layer_norm": _ROWS | _HALVES,
    "layer_norm_backward": _ROWS | _HALVES,
    "layer_norm_backward.parameters": _SUMS | {"float16": 1e-6, "bfloat16": 1e-6},
    "bias_gelu": _SHORT | _HALVES,
    "bias_gelu_backward": _ROWS | _HALVES,
    "bias_gelu_backward.bias": _SUMS | {"float16": 1e-6, "bfloat16": 1e-6},
    "matmul": _SUMS | {"complex128": 4e-15, "tf32": 6e-4, "int8": 0.0} | _HALVES,
    "matmul.to_float32": {"float16": 3e-6, "bfloat16": 3e-6},
    "attention": _ATTENTION,
    "attention_backward": _ATTENTION,
    "cross_entropy": _TRAINING | {"float16": 1e-6, "bfloat16": 1e-6},
    "cross_entropy.gradient": _TRAINING | {"float16": 1e-3, "bfloat16": 4e-3},
    "add_bias": _TRAINING | _HALVES,
    "add_residual": _TRAINING | _HALVES,
    "bias_gradient": _TRAINING | {"float16": 1e-6, "bfloat16": 1e-6},
    "embed": _TRAINING | _HALVES,
    "embed_backward": _TRAINING | {"float16": 1e-6, "bfloat16": 1e-6},
    "adamw": {"float32": 1e-6},
    "all_reduce": {"float32": 3e-7, "float64": 1e-15},
    "e8.nearest": {"float64": 0.0},
    "golden.recurrence": {"float64": 0.0, "int64": 0.0},
}
"""Bounds of ``matmul`` hold for up to 1024 terms per sum; they grow with the root of their number."""

ACCURACIES: tuple[Accuracy, ...] = tuple(
    Accuracy(operation, dtype, bound) for operation, bounds in _TABLE.items() for dtype, bound in bounds.items()
)
"""All promises; 0 means equal to the bit."""


def bound_of(operation: str, dtype: str) -> float:
    """The promised bound of an operation on an element type.

    Raises
    ------
    ArrayError
        Nothing is promised for the pair.
    """
    found = _TABLE.get(operation, {}).get(dtype)
    if found is None:
        raise ArrayError(
            "no accuracy is stated", where=operation, got=dtype, allowed=", ".join(_TABLE.get(operation, _TABLE))
        )
    return found
