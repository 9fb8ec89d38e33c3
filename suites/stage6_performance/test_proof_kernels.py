"""The proof kernels' figures on a GPU: bandwidth, matrix product against CPU, classifier, and what a launch costs."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from stages.measuring import Measure
from suites.support import proof_cpu
from suites.support.bench.card_limits import Card
from suites.support.bench.ceilings import ceiling
from suites.support.bench.steady import Rule, Timed, time_steadily, to_us
from suites.support.bench.timers import device_ms, host_ms
from suites.support.proof_kernels import assert_within_rounding, classifier, exact_probabilities, matrices

pytestmark = [pytest.mark.requirement("KL-6", "ST-6"), pytest.mark.gate("gpu")]

ELEMENTS = 64 << 20
RULE = Rule(warmup=3, min_samples=20, max_samples=200, max_seconds=1.0)
CPU_RULE = Rule(warmup=1, min_samples=5, max_samples=20, max_seconds=1.0)
LAUNCHES = 200
EMPTY = 'extern "C" __global__ void nothing(float* a, float* b, float* c, unsigned n) {}'


def timed_on(card: Card, launch: Callable[[], object], repeats: int = 1) -> Timed:
    return time_steadily(device_ms(launch, repeats), RULE, card.watch)


@pytest.mark.measures("kernel.bandwidth", "kernel.fraction_of_copy", backend="custom", device=...)
def test_vector_add(card: Card, measure: Measure) -> None:
    """64 M float32: two arrays read, one written, against a copy of as many bytes in the same run."""
    import cupy

    from burstproof.compile.proof import VECTOR_ADD, vector_add

    a, b = cupy.arange(ELEMENTS, dtype=cupy.float32), cupy.full(ELEMENTS, 0.5, cupy.float32)
    total = vector_add(a, b)
    assert bool((total == a + b).all())
    source = cupy.zeros(3 * ELEMENTS // 2, cupy.float32)
    target = cupy.empty_like(source)
    copied = timed_on(card, lambda: cupy.copyto(target, source))
    kernel, blocks = VECTOR_ADD.on(0), ELEMENTS // 1024
    added = timed_on(card, lambda: kernel(blocks, 256, a, b, total, ELEMENTS))
    where = {"backend": "custom", "kernel": "vector_add", "elements": ELEMENTS, "device": card.runtime.name}
    bounded = where | ceiling(card.runtime.name, "memory_bandwidth_gb_per_s")
    added.put(
        measure, "kernel.bandwidth", "GB/s", bounded, "the sums equal CuPy's", lambda ms: 12 * ELEMENTS / ms / 1e6
    )
    measure(
        "kernel.fraction_of_copy",
        copied.samples.estimate / added.samples.estimate,
        "1",
        conditions=where,
        note=f"a copy that moves as many bytes takes {copied.samples.estimate:.4f} ms",
    )


@pytest.mark.measures("kernel.matmul_throughput", backend=["custom", "cublas", "cpu blas"], device=...)
@pytest.mark.measures("matmul.speedup", backend="custom", against="cpu", dtype="float32", device=...)
@pytest.mark.parametrize("size", [1024, 4096])
def test_matrix_product(size: int, card: Card, measure: Measure) -> None:
    """Checked against float64 first; NumPy's BLAS on all cores of this host is the CPU."""
    import cupy

    from burstproof.compile.proof import DENSE, matrix_product

    a, b = matrices(size, size, size)
    left, right = cupy.asarray(a), cupy.asarray(b)
    product = matrix_product(left, right)
    rows = slice(0, size, max(1, size // 64))
    assert_within_rounding(product[rows].get(), a[rows], b)
    edge = 128 if size >= 2048 else 64
    kernel, tiles = DENSE[edge].on(0), size // edge

    def launch() -> None:
        kernel((tiles, tiles), 256, left, right, None, product, size, size, size, False)

    ours = timed_on(card, launch)
    theirs = timed_on(card, lambda: cupy.matmul(left, right, out=product))
    cpu = time_steadily(host_ms(lambda: proof_cpu.matrix_product(a, b)), CPU_RULE)
    flops = 2.0 * size**3
    for backend, timed in (("custom", ours), ("cublas", theirs), ("cpu blas", cpu)):
        where = {"backend": backend, "n": size, "dtype": "float32", "device": card.runtime.name}
        timed.put(measure, "kernel.matmul_throughput", "GFLOP/s", where, convert=lambda ms: flops / ms / 1e6)
    measure(
        "matmul.speedup",
        cpu.samples.estimate / ours.samples.estimate,
        "x",
        conditions={"backend": "custom", "against": "cpu", "n": size, "dtype": "float32", "device": card.runtime.name},
        note=f"CPU {cpu.samples.estimate:.3f} ms with NumPy's BLAS, custom kernel {ours.samples.estimate:.4f} ms",
    )


@pytest.mark.measures("kernel.latency", "kernel.speedup", backend="custom", device=...)
def test_neural_forward(card: Card, measure: Measure) -> None:
    """65 536 samples x 784 -> 1024 -> 10, data on the device."""
    from burstproof.compile.proof import neural_forward
    from burstproof.device.memory import upload

    network = classifier(65_536, 784, 1024, 10)
    arrays = [upload(part) for part in network]
    found = neural_forward(*arrays).get()
    some = slice(0, None, 512)
    np.testing.assert_allclose(found[some], exact_probabilities(network[0][some], *network[1:]), atol=2e-6)
    ours = timed_on(card, lambda: neural_forward(*arrays))
    cpu = time_steadily(host_ms(lambda: proof_cpu.neural_forward(*network)), CPU_RULE)
    where = {"backend": "custom", "kernel": "neural_forward", "samples": 65_536, "device": card.runtime.name}
    ours.put(measure, "kernel.latency", "us", where, convert=to_us)
    measure("kernel.speedup", cpu.samples.estimate / ours.samples.estimate, "x", conditions={**where, "against": "cpu"})


@pytest.mark.requirement("KL-2")
@pytest.mark.measures("kernel.launch_overhead", way=["checked", "driver alone", "cupy.RawKernel"], device=...)
def test_what_a_launch_costs_the_host(card: Card, measure: Measure) -> None:
    """Host time per launch of an empty kernel with three arrays and a number, beside the driver alone and CuPy."""
    import cupy

    from burstproof.compile.entry import Entry
    from burstproof.compile.parameters import ArgumentBlock
    from burstproof.compile.source import CudaSource

    entry = Entry(CudaSource("empty.cu", EMPTY), "nothing", "float32[] float32[] float32[] uint32")
    kernel, raw = entry.on(0), cupy.RawKernel(EMPTY, "nothing")
    a, device = cupy.zeros(8, cupy.float32), cupy.cuda.Device(0)
    block, arguments = ArgumentBlock(entry.declared), (a, a, a, np.uint32(8))
    block.fill(*([a.data.ptr] * 3), 8)
    ways: dict[str, Callable[[], object]] = {
        "checked": lambda: kernel(1, 32, a, a, a, 8),
        "driver alone": lambda: cupy.cuda.driver.launchKernel(
            kernel.function, 1, 1, 1, 32, 1, 1, 0, 0, block.addresses, 0
        ),
        "cupy.RawKernel": lambda: raw((1,), (32,), arguments),
    }
    for way, launch in ways.items():

        def sample(launch: Callable[[], object] = launch) -> float:
            device.synchronize()
            start = time.perf_counter()
            for _ in range(LAUNCHES):
                launch()
            return 1e6 * (time.perf_counter() - start) / LAUNCHES

        timed = time_steadily(sample, RULE, card.watch)
        where = {"way": way, "parameters": 4, "device": card.runtime.name}
        note = f"{LAUNCHES} launches in a row after the device was idle"
        timed.put(measure, "kernel.launch_overhead", "us", where, note)
