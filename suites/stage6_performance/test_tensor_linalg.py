"""Matrix products 128...4096 through cuBLAS, beside PyTorch, the CPU's BLAS and three nested loops (TO-4)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from burstproof.tensor.array.dtypes import BFLOAT16, COMPLEX128, FLOAT32, INT8, INT32
from burstproof.tensor.ops.linalg import RESULTS, matmul
from burstproof.tensor.ops.nn_reference import widened
from stages.measuring import Measure
from suites.support.accuracy import bound_of
from suites.support.bench.card_limits import Card
from suites.support.bench.ceilings import TENSOR_PEAKS, ceiling
from suites.support.bench.steady import Rule, Timed, time_steadily
from suites.support.bench.tensor_bench import alternate, as_torch, normal, put_contest, torch_is_here
from suites.support.bench.timers import device_ms, host_ms

pytestmark = [pytest.mark.requirement("TO-4", "ST-6")]

SIZES = (128, 256, 512, 1024, 2048, 4096)
LARGEST = 4096
LARGEST_NAIVE = 1024
RULE = Rule(warmup=2, min_samples=10, max_samples=50, max_seconds=0.15, relative_noise=0.02)
BLAS_RULE = Rule(warmup=1, min_samples=3, max_samples=30, max_seconds=0.2, relative_noise=0.05)
ONCE = Rule(warmup=0, min_samples=1, max_samples=3, max_seconds=0.1, relative_noise=0.05)
CHECKED_ROWS = 64

TYPES = ("float32", "tf32", "bfloat16", "float16", "float64", "complex128", "int8")


def _dtype(name: str) -> np.dtype:
    return {"tf32": FLOAT32, "bfloat16": BFLOAT16}.get(name) or np.dtype(name)


def _operations(size: int, dtype: np.dtype) -> float:
    """Real multiplications and additions; a complex pair takes four of each."""
    return 2.0 * size**3 * (4 if dtype == COMPLEX128 else 1)


@lru_cache(maxsize=4)
def _factors(size: int, dtype: np.dtype) -> tuple[Any, Any]:
    import cupy

    if dtype == INT8:
        generator = np.random.default_rng(1)
        first, second = (generator.integers(-128, 128, (size, size)).astype(INT8) for _ in range(2))
        return cupy.asarray(first), cupy.asarray(second)
    return normal((size, size), dtype, 1), normal((size, size), dtype, 2)


def _error(product: Any, a: Any, b: Any) -> float:
    """Relative error of the first rows, against float64 (complex128) on the device."""
    wide = np.complex128 if a.dtype == COMPLEX128 else np.float64
    rows = (a if a.dtype == INT8 else widened(a))[:CHECKED_ROWS].astype(wide)
    exact = rows @ (b if b.dtype == INT8 else widened(b)).astype(wide)
    found = (product if product.dtype == INT32 else widened(product))[:CHECKED_ROWS].astype(wide)
    difference = found - exact
    return float(np.sqrt((abs(difference) ** 2).sum() / (abs(exact) ** 2).sum()))


def _put(measure: Measure, timed: Timed, size: int, name: str, conditions: dict[str, object], note: str = "") -> None:
    operations = _operations(size, _dtype(name))
    where = {"size": size, "dtype": "float32" if name == "tf32" else name, "tf32": name == "tf32", **conditions}
    best = ceiling(str(where["device"]), TENSOR_PEAKS.get(name), 1000.0) if "device" in where else {}
    timed.put(measure, "matmul.throughput", "GFLOP/s", where | best, note, lambda ms: operations / ms / 1e6)
    measure("matmul.latency", timed.samples.estimate, "ms", conditions=where)


@pytest.mark.gate("gpu")
@pytest.mark.measures("matmul.throughput", "matmul.latency", backend="cublas", size=SIZES, dtype=TYPES, device=...)
@pytest.mark.measures(
    "matmul.against_pytorch",
    only_if="PyTorch is installed",
    backend="cublas",
    against="pytorch",
    size=SIZES,
    dtype=TYPES,
    device=...,
)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("size", SIZES)
def test_cublas(card: Card, size: int, name: str, measure: Measure) -> None:
    """Checked on 64 rows against float64. Tensor cores run at the power limit, which is no throttling of theirs."""
    import cupy

    dtype, tf32 = _dtype(name), name == "tf32"
    a, b = _factors(size, dtype)
    out = cupy.empty((size, size), RESULTS[dtype][0])
    matmul(a, b, tf32=tf32, out=out)
    error = _error(out, a, b)
    grown = max(1.0, size / 1024) ** 0.5
    assert error <= grown * bound_of("matmul", name), error

    repeats = 3 if size == LARGEST else 20
    timed = time_steadily(device_ms(lambda: matmul(a, b, tf32=tf32, out=out), repeats), RULE)
    where: dict[str, object] = {"backend": "cublas", "device": card.runtime.name}
    _put(measure, timed, size, name, where, f"error {error:.1e}")
    if torch_is_here():
        theirs = _torch_product(a, b, tf32)
        contest = alternate(lambda: matmul(a, b, tf32=tf32, out=out), theirs, repeats)
        conditions = {**where, "size": size, "dtype": name}
        put_contest(measure, "matmul.against_pytorch", contest, conditions)


def _torch_product(a: Any, b: Any, tf32: bool) -> Callable[[], object]:
    import torch

    x, y = as_torch(a), as_torch(b)
    if a.dtype == INT8:
        turned = y.t().contiguous().t()
        return lambda: torch._int_mm(x, turned)
    torch.backends.cuda.matmul.allow_tf32 = tf32
    out = torch.empty_like(x)
    return lambda: torch.matmul(x, y, out=out)


@pytest.mark.gate("gpu")
@pytest.mark.measures(
    "matmul.speedup",
    backend="cublas",
    against=["blas", "naive"],
    size=LARGEST_NAIVE,
    dtype="float32",
    device=...,
)
@pytest.mark.measures(
    "matmul.throughput", "matmul.latency", backend=["blas", "naive"], size=LARGEST_NAIVE, dtype="float32"
)
@pytest.mark.parametrize("against", ["blas", "naive"])
def test_speedup_over_the_cpu(card: Card, against: str, measure: Measure) -> None:
    """float32 at 1024: cuBLAS against NumPy's BLAS, and against three nested loops compiled by numba."""
    import cupy

    a, b = _factors(LARGEST_NAIVE, FLOAT32)
    out = cupy.empty_like(a)
    hosts = a.get(), b.get()
    cpu, product = _on_cpu(against, *hosts)
    matmul(a, b, out=out)
    assert np.linalg.norm(out.get() - product()) <= 4 * bound_of("matmul", "float32") * np.linalg.norm(product())
    _put(measure, cpu, LARGEST_NAIVE, "float32", {"backend": against})
    ours = time_steadily(device_ms(lambda: matmul(a, b, out=out), 10), RULE)
    measure(
        "matmul.speedup",
        cpu.samples.estimate / ours.samples.estimate,
        "x",
        conditions={
            "backend": "cublas",
            "size": LARGEST_NAIVE,
            "dtype": "float32",
            "against": against,
            "device": card.runtime.name,
        },
        note=f"CPU {cpu.samples.estimate:.2f} ms, device {ours.samples.estimate:.4f} ms",
    )


@pytest.mark.measures(
    "matmul.throughput", "matmul.latency", backend=["blas", "naive"], size=[128, 256, 512], dtype="float32"
)
@pytest.mark.parametrize(
    ("against", "size"), [("blas", 128), ("blas", 256), ("blas", 512), ("naive", 128), ("naive", 256)]
)
def test_cpu(against: str, size: int, measure: Measure) -> None:
    """The small sizes of the table on the CPU."""
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal((size, size)).astype(np.float32) for _ in range(2))
    timed, product = _on_cpu(against, a, b)
    exact = a.astype(np.float64) @ b
    assert np.linalg.norm(product() - exact) <= 4 * bound_of("matmul", "float32") * np.linalg.norm(exact)
    _put(measure, timed, size, "float32", {"backend": against})


def _on_cpu(
    against: str, a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]
) -> tuple[Timed, Callable[[], np.ndarray[Any, Any]]]:
    out = np.empty((len(a), b.shape[1]), a.dtype)
    if against == "blas":
        return time_steadily(host_ms(lambda: matmul(a, b, out=out)), BLAS_RULE), lambda: out
    naive = _naive()
    naive(a[:4, :4].copy(), b[:4, :4].copy(), np.empty((4, 4), a.dtype))
    return time_steadily(host_ms(lambda: naive(a, b, out)), ONCE), lambda: out


@lru_cache(maxsize=1)
def _naive() -> Any:
    import numba

    return numba.njit(_three_loops)


def _three_loops(a: Any, b: Any, out: Any) -> None:
    for i in range(a.shape[0]):
        for j in range(b.shape[1]):
            total = np.float32(0)
            for k in range(a.shape[1]):
                total += a[i, k] * b[k, j]
            out[i, j] = total
