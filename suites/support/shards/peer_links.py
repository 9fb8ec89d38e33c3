"""Rate and latency of the link between two devices, through the copy engine and through stores of a kernel (MG-6)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource

BYTES = 1 << 28
ROUNDS = 2000
COPIES = 64
_REPEATS = 5
_PATIENCE = 1 << 24
_BLOCKS, _THREADS = 264, 512

_SOURCE = CudaSource.beside(__file__, "peer_links.cu")
PUSH = Entry(_SOURCE, "push_pieces", "uint64 uint64 uint64")
BOUNCE = Entry(_SOURCE, "bounce", "uint64 uint64 uint32 uint32 uint32 uint64")
CATALOGUE: tuple[Entry, ...] = (PUSH, BOUNCE)


@dataclass(frozen=True)
class LinkFigures:
    """From ``source`` to ``target``: GB/s (10**9) and microseconds; ``intact`` if all data arrived as they were sent.

    Attributes
    ----------
    copy_gb_per_s, store_gb_per_s : tuple of float
        Samples of 256 MiB through the copy engine, and stored by a kernel.
    copy_us : float
        Of one copy of 16 bytes in a row of them.
    store_us : float
        From a kernel's store until a kernel on the other device has read it: half of a round trip.
    """

    source: int
    target: int
    intact: bool
    copy_gb_per_s: tuple[float, ...]
    store_gb_per_s: tuple[float, ...]
    copy_us: float
    store_us: float


def measure_link(source: int, target: int) -> LinkFigures:
    """Measure from device ``source`` to ``target``, which have peer access to each other."""
    import cupy

    count = BYTES // 4
    with cupy.cuda.Device(target):
        there = cupy.zeros(count, cupy.uint32)
        cupy.cuda.Device().synchronize()
    with cupy.cuda.Device(source):
        here = cupy.arange(count, dtype=cupy.uint32) * cupy.uint32(2654435761)
        stream = cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
        copy = cupy.cuda.runtime.memcpyPeerAsync

        def by_engine(size: int) -> None:
            copy(there.data.ptr, target, here.data.ptr, source, size, stream.ptr)

        def by_stores() -> None:
            PUSH.on(source)(_BLOCKS, _THREADS, here.data.ptr, there.data.ptr, BYTES // 16, stream=stream)

        copied = _rates(cupy, stream, lambda: by_engine(BYTES))
        intact = _equal(cupy, here, there, target)
        with cupy.cuda.Device(target):
            there.fill(0)
            cupy.cuda.Device().synchronize()
        stored = _rates(cupy, stream, by_stores)
        intact = intact and _equal(cupy, here, there, target)
        few = _milliseconds(cupy, stream, lambda: [by_engine(16) for _ in range(COPIES)])
    return LinkFigures(source, target, intact, copied, stored, 1e3 * min(few) / COPIES, _bounced(cupy, source, target))


def _rates(cupy: Any, stream: Any, work: Callable[[], object]) -> tuple[float, ...]:
    return tuple(BYTES / ms / 1e6 for ms in _milliseconds(cupy, stream, work))


def _milliseconds(cupy: Any, stream: Any, work: Callable[[], object]) -> list[float]:
    work()
    stream.synchronize()
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    found = []
    for _ in range(_REPEATS):
        begin.record(stream)
        work()
        end.record(stream)
        end.synchronize()
        found.append(float(cupy.cuda.get_elapsed_time(begin, end)))
    return found


def _equal(cupy: Any, here: Any, there: Any, target: int) -> bool:
    with cupy.cuda.Device(target):
        received = there.get()
    return bool(np.array_equal(here.get(), received))


def _bounced(cupy: Any, source: int, target: int) -> float:
    """Microseconds one way; the mean of ``ROUNDS`` round trips, halved. ``inf`` if a side gave up."""
    sides = []
    for device in (source, target):
        with cupy.cuda.Device(device):
            cells = cupy.zeros(64, cupy.uint32)
            sides.append((device, cells, cupy.cuda.Stream(non_blocking=True)))
            cupy.cuda.Device().synchronize()

    def trips(rounds: int) -> float:
        for _, cells, _ in sides:
            with cells.device:
                cells.fill(0)
                cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        launch(1, rounds)
        launch(0, rounds)
        for _, _, stream in sides:
            stream.synchronize()
        return time.perf_counter() - began

    def launch(place: int, rounds: int) -> None:
        device, cells, stream = sides[place]
        theirs, done = sides[1 - place][1].data.ptr, cells.data.ptr + 128
        with cupy.cuda.Device(device):
            BOUNCE.on(device)(1, 1, cells.data.ptr, theirs, 1 - place, rounds, _PATIENCE, done, stream=stream)

    trips(10)
    few, many = min(trips(ROUNDS // 10) for _ in range(3)), min(trips(ROUNDS) for _ in range(3))
    for _, cells, _ in sides:
        with cells.device:
            if int(cells[32]) != ROUNDS:
                return float("inf")
    return 1e6 * (many - few) / (ROUNDS - ROUNDS // 10) / 2
