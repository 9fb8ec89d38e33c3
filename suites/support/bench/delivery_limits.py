"""What a card allows each way to deliver contributions: wide and grouped reductions, queues per owner, gather."""

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
_BIN = Entry(_SOURCE, "bin_targets", "uint32[] uint16[] uint32[] int32 int32 uint32")
_OWN = Entry(_SOURCE, "own_targets", "uint16[] uint32[] uint32[] int32 uint32")
_GATHER = Entry(_SOURCE, "gather_sources", "uint32[] uint32[] uint32[] int64 int32")

NEURONS = 1_000_000
ADDED = 1 << 25
QUEUED = (1 << 17, 1 << 20, 1 << 23, 1 << 25)
"""Contributions of a burst that are queued: of 100 thousand neurons up to several millions."""

GATHERED = 100 * NEURONS
_CHUNK, _SHIFT = 8192, 13
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


def measure_queues(card: Card) -> dict[int, Timed]:
    """Contributions sorted into a queue per owner, then added up by the owners: ms by how many, checked."""
    import cupy

    bins = -(-NEURONS >> _SHIFT) + (1 if NEURONS % (1 << _SHIFT) else 0)
    found = {}
    for count in QUEUED:
        targets, capacity = _targets(count), 2 * count // bins
        queues, lengths = cupy.empty(bins * capacity, np.uint16), cupy.zeros(128, np.uint32)
        sums = cupy.zeros(bins << _SHIFT, np.uint32)
        chunks = count // _CHUNK
        sort = partial(
            _BIN.on(cupy.cuda.Device().id),
            min(chunks, 4 * card.runtime.multiprocessors),
            512,
            targets,
            queues,
            lengths,
            chunks,
            _SHIFT,
            capacity,
        )
        own = partial(_OWN.on(cupy.cuda.Device().id), bins, 1024, queues, lengths, sums, _SHIFT, capacity)

        def deliver(stream: Any, sort: Callable[..., None] = sort, own: Callable[..., None] = own) -> None:
            sort(stream=stream)
            own(shared_bytes=4 << _SHIFT, stream=stream)

        deliver(None)
        _require(bool((sums[:NEURONS] == cupy.bincount(targets, minlength=NEURONS)).all()), "queues")
        found[count] = _timed(card, deliver)
    return found


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
