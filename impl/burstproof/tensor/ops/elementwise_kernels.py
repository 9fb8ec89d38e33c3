"""The one kernel of an element-wise expression: generated text behind elementwise.cu, compiled once and launched."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource, SourceOptions
from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT64
from burstproof.tensor.array.protocol import Array
from burstproof.tensor.ops.expression import parse
from burstproof.tensor.ops.nn_kernels import computing_dtype
from burstproof.tensor.ops.row_plan import KINDS, VECTOR_BYTES


@dataclass(frozen=True)
class Launch:
    """Shape of a launch: threads per block, memory accesses per thread and array, whether caches are bypassed."""

    threads: int = 256
    items: int = 2
    hints: bool = False


DEFAULT = Launch()


@lru_cache(maxsize=1024)
def is_real(text: str, dtype: np.dtype[Any]) -> bool:
    """Whether an expression of arrays of ``dtype`` has real values.

    Raises
    ------
    ArrayError
        A function that complex numbers do not have.
    """
    expression = parse(text)
    return not expression.cpp({name: name for name in expression.names}, dtype == COMPLEX128)[1]


@lru_cache(maxsize=1024)
def result_dtype(text: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Element type of the result: that of the arrays, or float64 for a real function of complex arrays."""
    return FLOAT64 if dtype == COMPLEX128 and is_real(text, dtype) else dtype


@lru_cache(maxsize=512)
def entry(
    text: str, arrays: tuple[str, ...], scalars: tuple[str, ...], dtype: np.dtype[Any], vector: int, launch: Launch
) -> Entry:
    """The kernel of an expression, named ``evaluate``."""
    complex_elements = dtype == COMPLEX128
    names = {name: f"inputs[{i}]" for i, name in enumerate(arrays)}
    names |= {name: f"scalars[{i}]" for i, name in enumerate(scalars)}
    code, is_complex = parse(text).cpp(names, complex_elements)
    defines = (
        ("KIND", "FLOAT64" if complex_elements else KINDS[dtype]),
        ("COMPLEX", str(int(complex_elements))),
        ("REAL_RESULT", str(int(not is_complex))),
        ("VEC", str(vector)),
        ("ITEMS", str(launch.items)),
        ("THREADS", str(launch.threads)),
        ("ARRAYS", str(len(arrays))),
        ("HINTS", str(int(launch.hints))),
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


def launch(
    text: str, result: Array, arrays: dict[str, Array], scalars: dict[str, complex | float], shape: Launch = DEFAULT
) -> None:
    """Queue ``result = expression``; arrays of one dtype, size and device, contiguous, not empty."""
    first = next(iter(arrays.values()))
    vector = _width(first.dtype, result, *arrays.values())
    kernel = entry(text, tuple(arrays), tuple(scalars), first.dtype, vector, shape).on(first.device.id)
    per_block = vector * shape.items * shape.threads
    kernel(-(-result.size // per_block), shape.threads, result, *arrays.values(), *scalars.values(), result.size)


def _width(dtype: np.dtype[Any], *arrays: Array) -> int:
    width = max(1, VECTOR_BYTES // dtype.itemsize)
    while width > 1 and any(int(array.data.ptr) % (width * array.dtype.itemsize) for array in arrays):
        width //= 2
    return width
