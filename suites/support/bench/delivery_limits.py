"""What a card allows the ways to deliver contributions: wide and grouped reductions, shared memory, gather."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burstproof.compile.entry import Entry
from burstproof.compile.source import CudaSource
from suites.support.bench.card import Card
from suites.support.bench.steady import Rule, Timed
from suites.support.bench.timers import DeviceTimer

_SOURCE = CudaSource.beside(__file__, "deliver.cu")
_WIDE = Entry(_SOURCE, "add_wide", "uint32[] uint64[] int64")
_FOUR = Entry(_SOURCE, "add_four", "uint32[] uint32[] int64")
_SHARED = Entry(_SOURCE, "add_shared", "uint16[] uint32[] int64 int32")
_GATHER = Entry(_SOURCE, "gather_sources", "uint32[] uint32[] uint32[] int64 int32")

NEURONS = 1_000_000
ADDED = 1 << 25
GATHERED = 100 * NEURONS
_OWNED, _BLOCKS = 8192, 2
"""Sums of a block in shared memory, and such blocks on a multiprocessor."""
_REPEATS = 10
_RULE = Rule(min_samples=10, max_samples=50, max_seconds=0.3)


def measure_adding(card: Card) -> dict[str, Timed]:
    """``ADDED`` additions into ``NEURONS`` places by other forms of the kernel, checked, in ms."""
    import cupy

    places = _targets(ADDED)
    want = cupy.bincount(places, minlength=NEURONS)
    grid = card.runtime.multiprocessors * 8
    found = {}
    for name, entry, dtype in (("64-bit", _WIDE, np.uint64), ("four a thread", _FOUR, np.uint32)):
        sums = cupy.zeros(NEURONS, dtype)
        add = partial(entry.on(cupy.cuda.Device().id), grid, 256, places, sums, ADDED)
        add()
        _require(bool((sums == want).all()), "additions")
        found[name] = _timed(card, lambda stream, add=add: add(stream=stream))  # type: ignore[misc]
    return found


def measure_shared(card: Card) -> Timed:
    """``ADDED`` additions to random places in shared memory, one array for each block, in ms, checked."""
    import cupy

    places = cupy.random.RandomState(7).randint(0, _OWNED, ADDED, dtype=np.uint16)
    sums = cupy.zeros(_OWNED, np.uint32)
    grid = card.runtime.multiprocessors * _BLOCKS
    add = partial(_SHARED.on(cupy.cuda.Device().id), grid, 1024, places, sums, ADDED, _OWNED)
    add(shared_bytes=4 * _OWNED)
    _require(bool((sums == cupy.bincount(places, minlength=_OWNED)).all()), "additions in shared memory")
    return _timed(card, lambda stream: add(shared_bytes=4 * _OWNED, stream=stream))


def measure_gather(card: Card) -> Timed:
    """``GATHERED`` lookups of whether a source fired, in ms, checked."""
    import cupy

    sources, words = _targets(GATHERED), -(-NEURONS // 32)
    fired = cupy.random.RandomState(5).randint(0, 1 << 32, words, dtype=np.uint32)
    grid = card.runtime.multiprocessors
    sums = cupy.zeros(grid * 1024, np.uint32)
    look = partial(_GATHER.on(cupy.cuda.Device().id), grid, 1024, sources, fired, sums, GATHERED, words)
    look(shared_bytes=4 * words)
    want = int((fired[sources >> 5] >> (sources & 31) & 1).sum(dtype=np.uint64))
    _require(int(sums.sum(dtype=np.uint64)) == want, "lookups")
    return _timed(card, lambda stream: look(shared_bytes=4 * words, stream=stream))


def _targets(count: int) -> Any:
    import cupy

    return cupy.random.RandomState(7).randint(0, NEURONS, count, dtype=np.uint32)


def _timed(card: Card, launch: Callable[[Any], None]) -> Timed:
    """Device time of one ``launch``, as part of a graph of ten."""

    def repeated(stream: Any) -> None:
        for _ in range(_REPEATS):
            launch(stream)

    graph = card.runtime.capture(repeated)
    whole = DeviceTimer(card.runtime, card.stream, graph.launch)
    return card.timed(lambda: whole() / _REPEATS, _RULE)


def _require(right: bool, what: str) -> None:
    if not right:
        raise AssertionError(f"the {what} did not come out right, so their time means nothing")
