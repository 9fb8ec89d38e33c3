"""Tensor operations on data split over devices, and the reduction that joins them (TO-8); on the CPU without a GPU."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from burstproof.device.nccl_library import nccl_library
from burstproof.errors import ArrayError
from burstproof.tensor.array.backend import backend, backend_of
from burstproof.tensor.array.protocol import Backend
from burstproof.tensor.ops import multi_gpu, nn
from burstproof.tensor.ops.linalg import matmul
from hardware.stopwatch import measure_until_steady
from stages.measuring import Measure
from suites.support.accuracy import bound_of

pytestmark = pytest.mark.requirement("TO-8")

REDUCED_ELEMENTS = 1 << 26


@pytest.fixture(params=["cpu", pytest.param("gpus", marks=pytest.mark.gate("multi_gpu"))])
def places(request: pytest.FixtureRequest) -> Sequence[Backend]:
    return (backend("numpy"),) * 3 if request.param == "cpu" else multi_gpu.all_devices()


def _normal(shape: tuple[int, ...], seed: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_split_and_gather(places: Sequence[Backend], rows: int) -> None:
    """Parts differ by at most one row; with fewer rows than devices some are empty."""
    values = _normal((rows, 5), 1)
    whole = multi_gpu.split(values, places)
    assert whole.shape == values.shape
    lengths = [part.shape[0] for part in whole.parts]
    assert max(lengths) - min(lengths) <= 1
    assert all(backend_of(part) is place for place, part in zip(places, whole.parts, strict=True))
    assert np.array_equal(multi_gpu.gather(whole), values)


def test_operations_on_parts(places: Sequence[Backend]) -> None:
    """Rows of softmax do not meet: the split result is the whole one, to the bit."""
    values = _normal((101, 512), 2)
    parts = multi_gpu.apply(nn.softmax, multi_gpu.split(values, places))
    one = places[0].to_host(nn.softmax(places[0].from_host(values)))
    assert np.array_equal(multi_gpu.gather(multi_gpu.Split(parts)), one)


@pytest.mark.parametrize("method", ["peer", "nccl"])
def test_data_parallel_gradient(places: Sequence[Backend], method: multi_gpu.Method) -> None:
    """x^T dy over all rows is the sum of the devices' products, and every device ends with it."""
    if places[0].device is not None and method == "nccl" and nccl_library() is None:
        pytest.skip("NCCL is not installed")
    x, gradient = _normal((300, 40), 3, np.float64), _normal((300, 24), 4, np.float64)
    parts = multi_gpu.apply(
        lambda a, b: matmul(a, b, transpose_a=True), multi_gpu.split(x, places), multi_gpu.split(gradient, places)
    )
    multi_gpu.all_reduce(parts, method)
    for place, part in zip(places, parts, strict=True):
        found = place.to_host(part)
        assert np.linalg.norm(found - x.T @ gradient) <= 1e-14 * np.linalg.norm(found)


@pytest.mark.requirement("TO-11")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 2, 5, 1000, 100_003])
def test_all_reduce(places: Sequence[Backend], dtype: type, count: int) -> None:
    """Any number of elements, fewer than devices too; all devices hold the same bits, in every run."""
    given = [_normal((count,), seed, dtype) for seed, _ in enumerate(places)]
    exact = sum(values.astype(np.float64) for values in given)
    runs = []
    for _ in range(2):
        parts = [place.from_host(values) for place, values in zip(places, given, strict=True)]
        multi_gpu.all_reduce(parts, "peer")
        runs.append([place.to_host(part) for place, part in zip(places, parts, strict=True)])
    for found in (*runs[0], *runs[1]):
        assert np.array_equal(found, runs[0][0])
    error = np.linalg.norm(runs[0][0] - exact)
    assert error <= bound_of("all_reduce", np.dtype(dtype).name) * np.linalg.norm(exact)


def test_replicas(places: Sequence[Backend]) -> None:
    values = _normal((4, 3), 1)
    for place, copy in zip(places, multi_gpu.replicate(values, places), strict=True):
        assert backend_of(copy) is place
        assert np.array_equal(place.to_host(copy), values)


def test_refusals(places: Sequence[Backend]) -> None:
    first, second = places[0], places[1]
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: multi_gpu.split(np.ones(3), ()), "no device to split over"),
        (lambda: multi_gpu.split(np.ones(()), places), "too few dimensions"),
        (lambda: multi_gpu.all_reduce([]), "nothing to reduce"),
        (lambda: multi_gpu.all_reduce([first.ones(3), second.ones(4)]), "wrong shape"),
        (lambda: multi_gpu.all_reduce([first.ones(3), second.ones(3, np.float64)]), "different element types"),
        (lambda: multi_gpu.all_reduce([first.ones(3, np.int32), second.ones(3, np.int32)]), "element type"),
        (lambda: multi_gpu.apply(matmul, [first.ones(3)], [first.ones(3), second.ones(3)]), "numbers of parts"),
    ]
    for call, message in wrong:
        with pytest.raises(ArrayError, match=message):
            call()


@pytest.mark.gate("multi_gpu")
def test_two_parts_on_one_device() -> None:
    place = backend("cupy")
    with pytest.raises(ArrayError, match="different devices"):
        multi_gpu.all_reduce([place.ones(3), place.ones(3)])


@pytest.mark.gate("multi_gpu")
@pytest.mark.measures("all_reduce.latency", "all_reduce.bus_rate", gpus=..., method=["peer", "nccl"])
@pytest.mark.parametrize("method", ["peer", "nccl"])
def test_rate_of_the_reduction(method: multi_gpu.Method, measure: Measure) -> None:
    """The sum of 256 MiB from every device, checked; the bus rate counts what crosses the links of one device."""
    if method == "nccl" and nccl_library() is None:
        pytest.skip("NCCL is not installed")
    places = multi_gpu.all_devices()
    parts = [place.ones(REDUCED_ELEMENTS) for place in places]

    def sample() -> float:
        for place in places:
            place.synchronize()
        start = time.perf_counter()
        multi_gpu.all_reduce(parts, method)
        for place in places:
            place.synchronize()
        return time.perf_counter() - start

    sample()
    for place, part in zip(places, parts, strict=True):
        assert (place.to_host(part) == len(places)).all()
        with place.use():
            part.fill(0)
    found = measure_until_steady(sample, max_seconds=2.0)
    moved = 2 * (len(places) - 1) / len(places) * parts[0].nbytes
    conditions = {"gpus": len(places), "method": method, "bytes": parts[0].nbytes, "dtype": "float32"}
    measure(
        "all_reduce.latency", 1e3 * found.estimate, "ms", samples=[1e3 * v for v in found.values], conditions=conditions
    )
    measure("all_reduce.bus_rate", moved / found.estimate / 1e9, "GB/s", conditions=conditions)
