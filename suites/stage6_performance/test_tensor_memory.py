"""The pool against allocation per call, host-device copies against the link and against lists, overlap (TO-6, TO-7)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from burstproof.device.memory import copy, observe
from burstproof.tensor.array import transfers
from burstproof.tensor.array.backend import backend
from burstproof.tensor.array.dtypes import COMPLEX128, FLOAT32
from burstproof.tensor.array.protocol import Array, Backend
from burstproof.tensor.ops import elementwise
from stages.measuring import Measure
from suites.support.bench.card_limits import Card
from suites.support.bench.steady import Rule, time_steadily
from suites.support.bench.tensor_bench import RULE
from suites.support.bench.timers import device_ms, host_ms

pytestmark = [pytest.mark.requirement("ST-6"), pytest.mark.gate("gpu")]

BLOCK_SIZES = (1 << 12, 1 << 20, 10_000_000, 1 << 26, 3_000_001)
LINK_ELEMENTS = 1 << 24
LISTED_ELEMENTS = 1 << 19
STREAMED_ELEMENTS = 1 << 26
PIECE = 1 << 23
CHAIN_LENGTH = 40
WALL_RULE = Rule(warmup=1, min_samples=8, max_samples=40, max_seconds=0.6, relative_noise=0.01)
ONCE = Rule(warmup=1, min_samples=3, max_samples=6, max_seconds=0.5, relative_noise=0.05)


@pytest.fixture(scope="module")
def place() -> Backend:
    return backend("cupy")


@pytest.mark.requirement("TO-6")
@pytest.mark.measures("pool.driver_allocations", requests=len(BLOCK_SIZES), device=...)
@pytest.mark.measures("pool.request_time", way=["pool", "driver"], device=...)
@pytest.mark.measures(
    "pool.speedup",
    backend="cuda",
    against="allocation per call",
    device=...,
)
@pytest.mark.measures(
    "pool.speedup",
    backend="cuda",
    against="allocation per call",
    scope="the pool's malloc and free",
    device=...,
)
def test_pool_against_allocation_per_call(card: Card, place: Backend, measure: Measure) -> None:
    """Blocks of 4 KB to 64 MB taken and returned in turn; whether the driver was asked is counted in the same run."""
    runtime = place.xp.cuda.runtime

    def pooled() -> None:
        for size in BLOCK_SIZES:
            place.empty(size, np.int8)

    def per_call() -> None:
        for size in BLOCK_SIZES:
            runtime.free(runtime.malloc(size))

    pooled()
    with observe(place.device) as found:
        pooled()
    assert found.requests == len(BLOCK_SIZES)
    where = {"backend": "cuda", "device": card.runtime.name, "requests": found.requests}
    measure("pool.driver_allocations", found.driver_allocations, "1", conditions=where)
    times = {name: time_steadily(host_ms(call), RULE) for name, call in (("pool", pooled), ("driver", per_call))}
    for name, timed in times.items():
        note = "the whole call that makes an array" if name == "pool" else "cudaMalloc and cudaFree alone"
        way = {**where, "way": name}
        timed.put(measure, "pool.request_time", "us", way, note, lambda ms: 1e3 * ms / len(BLOCK_SIZES))
    speedup = times["driver"].samples.estimate / times["pool"].samples.estimate
    measure("pool.speedup", speedup, "x", conditions={**where, "against": "allocation per call"})
    inner = partial(_take_and_return, place.xp.get_default_memory_pool().malloc)
    alone = time_steadily(host_ms(inner), RULE).samples.estimate
    measure(
        "pool.speedup",
        times["driver"].samples.estimate / alone,
        "x",
        conditions={**where, "against": "allocation per call", "scope": "the pool's malloc and free"},
    )


def _take_and_return(malloc: Callable[[int], object]) -> None:
    for size in BLOCK_SIZES:
        malloc(size)


@pytest.mark.requirement("TO-7")
@pytest.mark.measures("transfer.rate", "transfer.link_fraction", backend="cuda", dtype="complex128", device=...)
def test_link(card: Card, place: Backend, measure: Measure) -> None:
    """256 MiB of complex128 from and to pinned memory, against the driver's plain copy of as many bytes."""
    host, back = (transfers.pinned(place, LINK_ELEMENTS, COMPLEX128) for _ in range(2))
    host.real[...] = np.arange(LINK_ELEMENTS)
    host.imag[...] = -1.5
    there = place.empty(LINK_ELEMENTS, COMPLEX128)
    copy(there, host)
    copy(back, there)
    place.synchronize()
    assert np.array_equal(back, host)
    plain = place.xp.cuda.alloc_pinned_memory(host.nbytes)
    driver_copy, stream = place.xp.cuda.runtime.memcpyAsync, place.xp.cuda.get_current_stream()
    ways: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "to device": (
            lambda: copy(there, host),
            lambda: driver_copy(there.data.ptr, plain.ptr, host.nbytes, 1, stream.ptr),
        ),
        "to host": (
            lambda: copy(back, there),
            lambda: driver_copy(plain.ptr, there.data.ptr, host.nbytes, 2, stream.ptr),
        ),
    }
    for direction, (ours, driver) in ways.items():
        timed = time_steadily(device_ms(ours), WALL_RULE, card.watch)
        link = time_steadily(device_ms(driver), WALL_RULE, card.watch)
        where = {"backend": "cuda", "direction": direction, "dtype": "complex128", "device": card.runtime.name}
        whole = host.nbytes / link.samples.estimate / 1e6
        rate = timed.put(measure, "transfer.rate", "GB/s", where, convert=lambda ms: host.nbytes / ms / 1e6)
        measure(
            "transfer.link_fraction", rate / whole, "1", conditions=where, note=f"the driver's copy: {whole:.1f} GB/s"
        )


@pytest.mark.requirement("TO-7")
@pytest.mark.measures("transfer.speedup", dtype="complex128", against="list", device=...)
@pytest.mark.parametrize("source", ["pinned", "pageable"])
def test_against_lists(card: Card, place: Backend, source: str, measure: Measure) -> None:
    """Half a million complex128 to the device: as bytes, and through a list of Python numbers."""
    values = transfers.pinned(place, LISTED_ELEMENTS, COMPLEX128)
    generator = np.random.default_rng(1)
    values[...] = generator.standard_normal(LISTED_ELEMENTS) + 1j * generator.standard_normal(LISTED_ELEMENTS)
    host = values if source == "pinned" else np.array(values)
    there = place.empty(LISTED_ELEMENTS, COMPLEX128)

    def directly() -> None:
        copy(there, host)
        place.synchronize()

    def through_a_list() -> Array:
        array = place.from_host(host.tolist(), COMPLEX128)
        place.synchronize()
        return array

    directly()
    assert np.array_equal(place.to_host(through_a_list()), place.to_host(there))
    ours, listed = time_steadily(host_ms(directly), WALL_RULE), time_steadily(host_ms(through_a_list), ONCE)
    measure(
        "transfer.speedup",
        listed.samples.estimate / ours.samples.estimate,
        "x",
        conditions={"dtype": "complex128", "against": "list", "source": source, "device": card.runtime.name},
        note=f"list {listed.samples.estimate:.2f} ms, directly {ours.samples.estimate:.3f} ms, wall time",
    )


@pytest.mark.requirement("TO-7")
@pytest.mark.measures("transfer.overlap", "transfer.overlap_floor_fraction", backend="cuda", device=...)
def test_overlap(card: Card, place: Backend, measure: Measure) -> None:
    """256 MiB in, worked on, 256 MiB out: one after the other and in pieces on three streams, with equal results."""
    source, target = (transfers.pinned(place, STREAMED_ELEMENTS, FLOAT32) for _ in range(2))
    source[...] = np.arange(STREAMED_ELEMENTS, dtype=np.float32)
    there, worked = place.empty(STREAMED_ELEMENTS), place.empty(STREAMED_ELEMENTS)

    def work(piece: Array, out: Array) -> None:
        elementwise.evaluate("a * 0.5 + 1", {"a": piece}, out)
        for _ in range(CHAIN_LENGTH - 1):
            elementwise.evaluate("a * 0.5 + 1", {"a": out}, out)

    def one_after_the_other() -> float:
        start = time.perf_counter()
        copy(there, source)
        work(there, worked)
        copy(target, worked)
        place.synchronize()
        return 1e3 * (time.perf_counter() - start)

    def overlapped() -> float:
        start = time.perf_counter()
        transfers.stream_through(source, target, work, place, PIECE)
        return 1e3 * (time.perf_counter() - start)

    one_after_the_other()
    expected = target.copy()
    target.fill(0)
    overlapped()
    assert np.array_equal(target, expected)
    serial, piecewise = (time_steadily(call, WALL_RULE) for call in (one_after_the_other, overlapped))
    steps = {
        "copy in": lambda: copy(there, source),
        "work": lambda: work(there, worked),
        "copy out": lambda: copy(target, worked),
    }
    alone = {name: time_steadily(device_ms(step), WALL_RULE).samples.estimate for name, step in steps.items()}
    where = {"backend": "cuda", "device": card.runtime.name, "piece_bytes": 4 * PIECE}
    note = ", ".join(f"{name} {value:.2f} ms" for name, value in alone.items())
    measure(
        "transfer.overlap",
        serial.samples.estimate / piecewise.samples.estimate,
        "x",
        conditions=where,
        note=f"in turn {serial.samples.estimate:.2f} ms, in pieces {piecewise.samples.estimate:.2f} ms; {note}",
    )
    measure(
        "transfer.overlap_floor_fraction",
        max(alone.values()) / piecewise.samples.estimate,
        "1",
        conditions=where,
        note="the longest of the three steps over the whole; 1 means that the others cost nothing",
    )
