"""Measures what the card itself allows: copies, random reductions, graph nodes, launch to download."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from burstproof.device.protocol import DeviceRuntime, DeviceStream
from suites.support.bench.card import Card
from suites.support.bench.delivery_limits import (
    ADDED,
    GATHERED,
    NEURONS,
    measure_adding,
    measure_gather,
    measure_shared,
)
from suites.support.bench.floors import CardLimits
from suites.support.bench.steady import Timed
from suites.support.bench.timers import DeviceTimer

COPIED_BYTES = 1 << 30
REDUCTIONS = 1 << 25
NODES = 200
DOWNLOADED_WORDS = 1024

_DEVICE_TO_DEVICE = 3
_BLOCK = 256
_BLOCKS_PER_MULTIPROCESSOR = 8


@dataclass(frozen=True)
class Limits:
    """All limits as they were measured; times in ms per unit of work.

    ``copy``: one copy of 1 GiB; ``reductions``: 2**25 additions by number of entries, ``adding``: as many by other
    forms of the kernel, ``shared``: as many in shared memory; ``gather``: 100 million lookups; ``graph_node``: one
    node; ``launch_to_download``: one round trip; ``single_launch`` and ``graph_launch``: host time per kernel queued.
    """

    copy: Timed
    reductions: dict[int, Timed]
    graph_node: Timed
    launch_to_download: Timed
    single_launch: Timed
    graph_launch: Timed
    adding: dict[str, Timed]
    shared: Timed
    gather: Timed

    def card(self, runtime: DeviceRuntime) -> CardLimits:
        """The best sample of each, in the units of the floors."""
        reductions = {entries: g_per_s(timed.fastest) for entries, timed in self.reductions.items()}
        forms = [g_per_s(timed.fastest, ADDED) for timed in self.adding.values()]
        reductions[NEURONS] = max(reductions.get(NEURONS, 0.0), *forms)
        return CardLimits(
            runtime.name,
            runtime.l2_bytes,
            copy_gb_per_s=gb_per_s(self.copy.fastest),
            reductions_g_per_s=reductions,
            graph_node_us=1e3 * self.graph_node.fastest,
            launch_to_download_us=1e3 * self.launch_to_download.fastest,
            shared_additions_g_per_s=g_per_s(self.shared.fastest, ADDED),
            gathered_g_per_s=g_per_s(self.gather.fastest, GATHERED),
        )


def gb_per_s(copy_ms: float) -> float:
    """Rate of the copy, bytes read and written."""
    return 2 * COPIED_BYTES / copy_ms / 1e6


def g_per_s(ms: float, count: int = REDUCTIONS) -> float:
    """10**9 reductions, or others of ``count``, per second."""
    return count / ms / 1e6


def measure_limits(card: Card, entries: Sequence[int]) -> Limits:
    """Measure every limit of the card; reductions into arrays of each number of entries."""
    single, graph = _launch_costs(card)
    return Limits(
        copy=_copy(card),
        reductions={count: _reductions(card, count) for count in entries},
        graph_node=_graph_node(card),
        launch_to_download=_launch_to_download(card),
        single_launch=single,
        graph_launch=graph,
        adding=measure_adding(card),
        shared=measure_shared(card),
        gather=measure_gather(card),
    )


def _copy(card: Card) -> Timed:
    import cupy

    source, target = (card.buffer(name, COPIED_BYTES, np.uint8) for name in ("source", "target"))
    card.runtime.fill(source, 7, card.stream)

    def launch(stream: Any) -> None:
        pointers = target.array.data.ptr, source.array.data.ptr
        cupy.cuda.runtime.memcpyAsync(*pointers, COPIED_BYTES, _DEVICE_TO_DEVICE, stream.cupy_stream.ptr)

    timed = card.timed(DeviceTimer(card.runtime, card.stream, launch))
    last = card.runtime.pinned(1, np.uint8)
    card.runtime.download(last, target, card.stream, COPIED_BYTES - 1)
    card.stream.synchronize()
    if last[0] != 7:
        raise AssertionError("the copy did not arrive, so its time means nothing")
    return timed


def _reductions(card: Card, entries: int) -> Timed:
    from suites.support.bench.limit_kernels import REDUCE

    runtime, stream = card.runtime, card.stream
    kernel = runtime.kernel(REDUCE)
    places, sums = card.buffer("places", REDUCTIONS, np.uint32), card.buffer("sums", entries, np.int32)
    chosen = np.random.default_rng(entries).integers(0, entries, REDUCTIONS, np.uint32)
    runtime.upload(places, chosen, stream)
    stream.synchronize()
    grid = runtime.multiprocessors * _BLOCKS_PER_MULTIPROCESSOR

    def launch(stream: DeviceStream) -> None:
        runtime.launch(kernel, grid, _BLOCK, stream, (places, sums, np.int64(REDUCTIONS)))

    launch(stream)
    got = runtime.pinned(entries, np.int32)
    runtime.download(got, sums, stream)
    stream.synchronize()
    if not np.array_equal(got, np.bincount(chosen, minlength=entries)):
        raise AssertionError("the reductions were not all done, so their time means nothing")
    return card.timed(DeviceTimer(runtime, stream, launch))


def _empty_kernels(card: Card, count: int) -> Callable[[DeviceStream], None]:
    """Queues ``count`` empty kernels one by one."""
    from suites.support.bench.limit_kernels import NOTHING

    runtime = card.runtime
    kernel, buffer = runtime.kernel(NOTHING), card.buffer("nothing", 1, np.int32)

    def launch(stream: DeviceStream) -> None:
        for _ in range(count):
            runtime.launch(kernel, 1, 32, stream, (buffer,))

    launch(card.stream)
    card.stream.synchronize()
    return launch


def _graph_node(card: Card) -> Timed:
    graph = card.runtime.capture(_empty_kernels(card, NODES))
    whole = DeviceTimer(card.runtime, card.stream, graph.launch)
    return card.timed(lambda: whole() / NODES)


def _launch_to_download(card: Card) -> Timed:
    runtime, stream = card.runtime, card.stream
    graph = runtime.capture(_empty_kernels(card, 2))
    buffer = card.buffer("words", DOWNLOADED_WORDS, np.int32)
    host = runtime.pinned(DOWNLOADED_WORDS, np.int32)

    def sample() -> float:
        start = time.perf_counter()
        graph.launch(stream)
        runtime.download(host, buffer, stream)
        stream.synchronize()
        return 1e3 * (time.perf_counter() - start)

    return card.timed(sample)


def _launch_costs(card: Card) -> tuple[Timed, Timed]:
    """Host time per kernel: queued one by one, and as nodes of one graph."""
    one_by_one = _empty_kernels(card, NODES)
    graph = card.runtime.capture(one_by_one)

    def host_ms(launch: Callable[[DeviceStream], None]) -> float:
        start = time.perf_counter()
        launch(card.stream)
        elapsed = time.perf_counter() - start
        card.stream.synchronize()
        return 1e3 * elapsed / NODES

    return card.timed(lambda: host_ms(one_by_one)), card.timed(lambda: host_ms(graph.launch))
