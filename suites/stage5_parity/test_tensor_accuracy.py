"""Every operation against float64, on NumPy and on CuPy, within the error that it promises (TO-11)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import BFLOAT16, FLOAT32, INT8
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops.linalg import matmul
from stages.measuring import Measure
from suites.support.accuracy import ACCURACIES, Accuracy, bound_of
from suites.support.tensor_operations import exactly, inputs_of, operation_named, relative_error, run_on, values

pytestmark = pytest.mark.requirement("TO-11")

ELSEWHERE = ("all_reduce", "e8.nearest", "golden.recurrence")
"""Rows whose cases are test_tensor_multi_gpu.py and test_tensor_lattices.py."""

TRAINING = ("attention", "attention_backward", "cross_entropy", "cross_entropy.gradient", "add_bias", "add_residual")
TRAINING += ("bias_gradient", "embed", "embed_backward", "adamw")
"""Rows whose cases are test_attention.py and test_training.py."""

PLAIN = [row for row in ACCURACIES if row.operation not in ELSEWHERE + TRAINING and row.dtype not in ("tf32", "int8")]


@pytest.fixture(params=["numpy", pytest.param("cupy", marks=pytest.mark.gate("gpu"))])
def place(request: pytest.FixtureRequest) -> Backend:
    return backend(request.param)


@lru_cache(maxsize=512)
def _errors(operation_name: str, dtype_name: str, place: Backend) -> dict[str, float]:
    """Largest error of each result of an operation; run once for all rows that speak of it."""
    dtype = BFLOAT16 if dtype_name == "bfloat16" else np.dtype(dtype_name)
    operation = operation_named(operation_name, dtype_name)
    inputs = inputs_of(operation, dtype)
    results = run_on(operation, place, inputs)
    wanted = operation.exact(*(exactly(given) for given in inputs))
    found: dict[str, float] = {}
    for name, result, exact in zip(operation.result_names, results, wanted, strict=True):
        assert result.shape == exact.shape
        found[name] = max(found.get(name, 0.0), relative_error(result, exact))
    return found


@pytest.mark.requirement("TO-2", "TO-3", "TO-4")
@pytest.mark.measures(
    "accuracy.relative_error",
    dtype=sorted({row.dtype for row in PLAIN}),
    tf32=False,
    backend=["numpy", "cupy"],
    operation=...,
)
@pytest.mark.parametrize("row", PLAIN, ids=lambda row: f"{row.operation}-{row.dtype}")
def test_promised_error(place: Backend, row: Accuracy, measure: Measure) -> None:
    operation = operation_named(row.operation, row.dtype)
    error = _errors(row.operation if row.operation == "chain" else operation.name, row.dtype, place)[row.operation]
    where = {"operation": row.operation, "dtype": row.dtype, "tf32": False, "backend": place.name}
    measure("accuracy.relative_error", error, "1", conditions=where, note=f"promised: at most {row.bound:.1e}")
    assert error <= row.bound


@pytest.mark.requirement("TO-4")
def test_int8_is_exact(place: Backend) -> None:
    generator = np.random.default_rng(3)
    a, b = (generator.integers(-128, 128, shape).astype(INT8) for shape in ((2, 64, 1024), (2, 1024, 96)))
    product = place.to_host(matmul(place.from_host(a), place.from_host(b)))
    assert product.dtype == np.int32
    assert bound_of("matmul", "int8") == 0
    assert np.array_equal(product, np.matmul(a.astype(np.int64), b.astype(np.int64)))


@pytest.mark.measures("accuracy.relative_error", dtype="float32", tf32=True, operation="matmul")
@pytest.mark.requirement("TO-4")
def test_tf32_is_stated_apart(place: Backend, measure: Measure) -> None:
    a, b = values((256, 1024), FLOAT32, 1), values((1024, 96), FLOAT32, 2)
    product = place.to_host(matmul(place.from_host(a), place.from_host(b), tf32=True))
    error = relative_error(product, exactly(a) @ exactly(b))
    where = {"operation": "matmul", "dtype": "float32", "tf32": True, "backend": place.name}
    measure("accuracy.relative_error", error, "1", conditions=where)
    assert error <= bound_of("matmul", "tf32")


@pytest.mark.not_proof
def test_float32_stays_below_the_limits_that_the_requirement_names() -> None:
    bounds = [row.bound for row in ACCURACIES if row.dtype == "float32"]
    assert max(bounds) <= 1e-6
    assert len({(row.operation, row.dtype) for row in ACCURACIES}) == len(ACCURACIES)


@pytest.mark.not_proof
def test_a_pair_without_a_promise_is_named() -> None:
    with pytest.raises(ArrayError, match="no accuracy is stated"):
        bound_of("relu", "complex128")


@pytest.mark.not_proof
def test_the_table_of_the_docs_is_the_data() -> None:
    """Every row of docs/tensor.md, and no operation of float32 left out of it."""
    page = (Path(__file__).parents[2] / "docs" / "tensor.md").read_text()
    shown = set()
    for line in page.partition("| operation | float32")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 4 or set(cells[0]) <= {"-", " ", ""}:
            continue
        for operation in cells[0].split(", "):
            shown.add(operation)
            for dtype, cell in zip(("float32", "float64", "complex128"), cells[1:], strict=True):
                if cell and not (cell == "exact" and operation in ELSEWHERE and dtype == "float32"):
                    assert bound_of(operation, dtype) == (0 if cell == "exact" else float(cell)), (operation, dtype)
    promised = {row.operation for row in ACCURACIES if "." not in row.operation or row.operation in ELSEWHERE}
    assert promised == shown


def test_the_example_of_the_docs_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "tensor.md").read_text()
    example = page.partition("```python\n")[2].partition("```")[0]
    exec(compile(example, "tensor.md", "exec"), {})
    assert float(capsys.readouterr().out) == pytest.approx(64, rel=1e-5)
