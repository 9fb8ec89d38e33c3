"""Queues of contributions under way: one per sending thread, burst to come and region of neurons.

Each thread owns a range of neurons, divided into regions whose sums stay in a core's cache. A sender appends each
contribution to the queue of the target's region and of the burst in which it arrives. In that burst the owner of the
region adds up the queues of all senders. So sums are written in cache and by their owner only: no addition is atomic,
and a delay costs no more than the queue itself.

Queues have a fixed capacity. Once one is full, all are spilled into the ring (``arrays.Model``); a slot of the ring is
added to the sums when its burst comes. States are saved and restored with everything under way in the ring.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.compiler import compiler
from burstproof.engine.costs import USUAL_RATE
from burstproof.engine.cpu.arrays import Array, Rows, Static
from burstproof.engine.cpu.lines import SUMS, lines, zeros_at
from burstproof.engine.cpu.palette import NO_PALETTE, Palette, find
from burstproof.engine.cpu.regions import ALIGNED, cut
from burstproof.engine.disk import keep_on_disk

REGION_NEURONS = 1 << 16
"""Most neurons of a region: their numbers in it fit 16 bits, and their sums an L2 cache of 1 MB."""

LEAST_CAPACITY = 64
"""Least capacity of a queue in contributions; capacities are powers of two."""

_SPARE = 4.0
"""Room of a queue, in multiples of what a 1 % firing rate puts there."""

_LEAST_BYTES = 1 << 22
"""Bytes that all queues together may take where synapses are few."""


class Queues(NamedTuple):
    """Queues of T threads onto N neurons in R regions over D slots: Q = D R of each thread, with room for C each.

    Attributes
    ----------
    bounds, owned, regions, region_of
        As in ``Regions``.
    words : (T * Q * C,)
        Fields ``target``, the neuron's number in the region, and ``contribution``: the amount, or its index in the
        ``palette`` if there is one. Queue s R + r of thread t, for the bursts of slot s and region r, starts at
        (t Q + s R + r) C.
    palette : int64 (P,)
        The different contributions, if they are few and none is computed; empty if words hold the amounts.
    ends : int64 (T, a multiple of 8)
        ``ends[t, q]``: end of queue q of thread t in ``words``. Rows are padded, so that threads share no cache line;
        the first Q entries are used.
    per_thread, capacity : int
        Q and C.
    sums : (N,)
        FCL of the current burst, see ``sums.py``.
    in_ring : int64 (D,)
        Whether a slot of the ring may hold contributions.
    """

    bounds: npt.NDArray[np.int64]
    owned: npt.NDArray[np.int64]
    regions: npt.NDArray[np.int64]
    region_of: npt.NDArray[np.int64]
    words: npt.NDArray[np.void]
    palette: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    per_thread: int
    capacity: int
    sums: Array
    in_ring: npt.NDArray[np.int64]


def capacity_for(synapses: int, queues: int, slots: int, word_bytes: int) -> int:
    """Capacity of each of ``queues`` queues over ``slots`` slots: four times what a 1 % firing rate puts there.

    All queues together take at most as many bytes as the ``synapses``, or ``_LEAST_BYTES`` if that is more.
    """
    expected = _SPARE * USUAL_RATE * synapses * slots / queues
    affordable = max(synapses * word_bytes, _LEAST_BYTES) / (queues * word_bytes)
    wanted = max(int(min(expected, affordable)), LEAST_CAPACITY)
    return 1 << (wanted.bit_length() - 1)


def make_queues(
    bounds: npt.NDArray[np.int64],
    synapses: int,
    contributions: np.dtype[Any],
    sums: np.dtype[Any],
    slots: int,
    palette: Palette = NO_PALETTE,
) -> Queues:
    """Empty queues onto the ranges that end at ``bounds``.

    ``contributions`` is the type of an amount in a word, if there is no ``palette``; ``sums`` is the type of the sums.
    """
    threads, neurons = len(bounds) - 1, int(bounds[-1])
    ranges = cut(bounds, REGION_NEURONS)
    per_thread = slots * (len(ranges.regions) - 1)
    amount = np.dtype(np.uint16) if len(palette.values) else contributions
    word = np.dtype([("contribution", amount), ("target", np.uint16)])
    queues = threads * per_thread
    capacity = capacity_for(synapses, max(queues, 1), slots, word.itemsize)
    ends = lines(threads, per_thread)
    ends[:, :per_thread] = np.arange(queues).reshape(threads, per_thread) * capacity
    return Queues(
        *ranges,
        words=np.empty(queues * capacity, word),
        palette=palette.values,
        ends=ends,
        per_thread=per_thread,
        capacity=capacity,
        sums=zeros_at(SUMS, neurons, sums),
        in_ring=np.ones(slots, np.int64),
    )


@compiler
def _pack(first: int, end: int, static: Static, queues: Queues, numbers: Array, words: Array, bins: Array) -> None:
    """Pack synapses ``first`` ... ``end - 1`` into ``words`` and ``bins``; bin 0 is for the burst after the firing."""
    regions = len(queues.regions) - 1
    for j in range(first, end):
        target = static.targets[j]
        region = queues.region_of[target // ALIGNED]
        if len(numbers):
            place = find(static.contributions[j], queues.palette, numbers)
            words[j].contribution = numbers[place] - 1
        else:
            words[j].contribution = static.contributions[j]
        words[j].target = target - queues.regions[region]
        bins[j] = region + ((static.delays[j] - 1) * regions if len(static.delays) else 0)


keep_on_disk(_pack, "pack")


def bin_type(queues: Queues, narrow: bool) -> np.dtype[Any]:
    """Type of queue numbers: the narrowest, for kernels compiled for the network, else uint32."""
    return np.min_scalar_type(queues.per_thread) if narrow else np.dtype(np.uint32)


def pack_rows(
    static: Static, queues: Queues, pool: Executor, palette: Palette = NO_PALETTE, narrow: bool = True
) -> Rows:
    """``static`` packed for ``queues`` with their ``palette``, by the threads of ``pool``; see ``bin_type``."""
    count, threads = len(static.targets), len(queues.bounds) - 1
    words = np.empty(count, queues.words.dtype)
    bins = np.empty(count, bin_type(queues, narrow))
    cuts = np.linspace(0, count, threads + 1).astype(np.int64)
    _for_all(pool, lambda t: _pack(cuts[t], cuts[t + 1], static, queues, palette.numbers, words, bins), threads)
    return Rows(static.offsets, words, bins, static.clamped_sources)


def _for_all(pool: Executor, work: Callable[[int], None], threads: int) -> None:
    """Call ``work`` for every thread; for the first one alone before, so that it is compiled once."""
    work(0)
    jobs = [pool.submit(work, thread) for thread in range(1, threads)]
    wait(jobs)
    for job in jobs:
        job.result()
