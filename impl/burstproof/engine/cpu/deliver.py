"""Kernels over the queues of ``queues.py``: send contributions, and add up those that arrive."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array, Computed, Counters, Rows, Scalars
from burstproof.engine.cpu.key import CLAMPED, KernelKey
from burstproof.engine.cpu.queues import Queues
from burstproof.engine.cpu.regions import ALIGNED
from burstproof.engine.cpu.rows_ahead import ROWS_AHEAD, make_look_ahead
from burstproof.engine.cpu.sums import make_add, make_read
from burstproof.engine.cpu.synapses import make_amount
from burstproof.engine.rules import Compiled


class Deliver(NamedTuple):
    """Kernels over queues; for the signatures see the functions of the same names."""

    collect: Compiled
    spill: Compiled
    reset: Compiled
    send: Compiled


def make_deliver(key: KernelKey) -> Deliver:
    """The kernels for ``key``."""
    drain = _make_drain()
    return Deliver(_make_collect(drain), _make_spill(drain), _make_reset(), _make_send(key))


def make_drain_ring() -> Compiled:
    """``drain_ring``: add a slot of the ring to the sums of the current burst, and clear it."""
    add, read = make_add(), make_read()

    @inner_compiler
    def drain_ring(slot: int, first: int, end: int, ring: Array, sums: Array, s: Scalars) -> None:
        """Move ``slot`` of the ring to ``sums`` for neurons ``first`` ... ``end - 1``."""
        base = slot * s.neurons
        for i in range(first, end):
            if ring[base + i] != 0:
                add(sums, i, read(ring, base + i))
                ring[base + i] = 0

    return drain_ring


def _make_drain() -> Compiled:
    add = make_add()

    @inner_compiler
    def drain(queue: int, queues: Queues, sums: Array) -> None:
        """Add what all threads have sent to ``queue``; ``sums`` are those of its region."""
        words, palette = queues.words, queues.palette
        threads, count = len(queues.ends), queues.per_thread
        for thread in range(threads):
            first = (thread * count + queue) * queues.capacity
            end = queues.ends[thread, queue]
            if len(palette):
                for j in range(first, end):
                    word = words[np.uint64(j)]
                    add(sums, np.uint64(word.target), palette[np.uint64(word.contribution)])
            else:
                for j in range(first, end):
                    word = words[np.uint64(j)]
                    add(sums, np.uint64(word.target), word.contribution)

    return drain


def _make_collect(drain: Compiled) -> Compiled:
    drain_ring = make_drain_ring()

    @inner_compiler
    def collect(thread: int, burst: int, queues: Queues, ring: Array, s: Scalars) -> None:
        """Add all contributions that arrive in ``burst`` in one thread's range, from the ring and the queues."""
        slot, regions = burst % s.slots, len(queues.regions) - 1
        if queues.in_ring[slot]:
            drain_ring(slot, queues.bounds[thread], queues.bounds[thread + 1], ring, queues.sums, s)
        for region in range(queues.owned[thread], queues.owned[thread + 1]):
            first, end = queues.regions[region], queues.regions[region + 1]
            drain(slot * regions + region, queues, queues.sums[first:end])

    return collect


def _make_spill(drain: Compiled) -> Compiled:
    @inner_compiler
    def spill(thread: int, queues: Queues, ring: Array, s: Scalars) -> None:
        """Add all queues onto one thread's range to the ring; the queues keep their contents until ``reset``."""
        regions = len(queues.regions) - 1
        for slot in range(s.slots):
            queues.in_ring[slot] = 1
            for region in range(queues.owned[thread], queues.owned[thread + 1]):
                first, end = slot * s.neurons + queues.regions[region], slot * s.neurons + queues.regions[region + 1]
                drain(slot * regions + region, queues, ring[first:end])

    return spill


def _make_reset() -> Compiled:
    @inner_compiler
    def reset(thread: int, first: int, end: int, queues: Queues) -> None:
        """Empty queues ``first`` ... ``end - 1`` of one sending thread."""
        count = queues.per_thread
        for queue in range(first, end):
            queues.ends[thread, queue] = (thread * count + queue) * queues.capacity

    return reset


def _make_send_static(key: KernelKey) -> Compiled:
    delayed = key.delayed

    @inner_compiler
    def send_static(
        first: int, end: int, shift: int, static: Rows, words: Array, ends: Array, last: int
    ) -> tuple[int, bool]:
        """Queue synapses ``first`` ... ``end - 1`` until a queue is full; returns where it stopped, and whether one is.

        ``shift``: number of the first queue of the next burst. ``last``: capacity - 1, a mask, as the capacity is a
        power of two.
        """
        rows, bins, count = static.words, static.bins, len(ends)
        for j in range(first, end):
            queue = shift + np.int64(bins[np.uint64(j)])
            if delayed:
                queue = queue - count if queue >= count else queue
            at = ends[np.uint64(queue)]
            words[np.uint64(at)] = rows[np.uint64(j)]
            ends[np.uint64(queue)] = at + 1
            if ((at + 1) & last) == 0:
                return j + 1, True
        return end, False

    return send_static


def _make_send_computed(key: KernelKey) -> Compiled:
    delayed, amount = key.delayed, make_amount(key)

    @inner_compiler
    def send_computed(
        first: int,
        end: int,
        source: int,
        v: np.float32,
        burst: int,
        queues: Queues,
        ends: Array,
        rows: Computed,
        s: Scalars,
        counters: Counters,
    ) -> tuple[int, bool]:
        """``send_static`` for the computed synapses of a source that fired with ``v`` in ``burst``."""
        regions, last, slot = len(queues.regions) - 1, queues.capacity - 1, burst % s.slots
        for j in range(first, end):
            size, clamped = amount(burst, source, v, j, rows, s)
            if rows.signs[j] == 0:
                continue
            if clamped:
                counters[CLAMPED] = 1
            region = queues.region_of[rows.targets[j] // np.uint32(ALIGNED)]
            arrival = (slot + (np.int64(rows.delays[j]) if delayed else 1)) % s.slots
            queue = arrival * regions + region
            at = ends[queue]
            queues.words[at].contribution = size
            queues.words[at].target = np.int64(rows.targets[j]) - queues.regions[region]
            ends[queue] = at + 1
            if ((at + 1) & last) == 0:
                return j + 1, True
        return end, False

    return send_computed


def _make_send(key: KernelKey) -> Compiled:
    static_clamps, computed_rows = key.static_clamps, key.computed
    send_static, send_computed, look_ahead = _make_send_static(key), _make_send_computed(key), make_look_ahead()

    @inner_compiler
    def send(
        thread: int,
        burst: int,
        count: int,
        done: int,
        ids: Array,
        potentials: Array,
        queues: Queues,
        static: Rows,
        computed: Computed,
        s: Scalars,
        counters: Counters,
    ) -> tuple[int, int, bool]:
        """Queue the synapses of ``count`` sources that fired in ``burst``, without the first ``done`` of the first one.

        Returns the number of sources done, the number of synapses done of the next one, and whether a queue is full.
        """
        slot, ends, last = burst % s.slots, queues.ends[thread, : queues.per_thread], queues.capacity - 1
        shift = (slot + 1) % s.slots * (len(queues.regions) - 1)
        for k in range(-2 * ROWS_AHEAD, count):
            look_ahead(k, count, ids, static.offsets, static.words, static.bins)
            if k < 0:
                continue
            source = np.int64(ids[k])
            first, end = static.offsets[source], static.offsets[source + 1]
            static_count, full = end - first, False
            if static_clamps and static.clamped_sources[source]:
                counters[CLAMPED] = 1
            if done < static_count:
                place, full = send_static(first + done, end, shift, static, queues.words, ends, last)
                done = place - first
            if computed_rows and not full:
                start, stop = computed.offsets[source], computed.offsets[source + 1]
                place, full = send_computed(
                    start + done - static_count, stop, source, potentials[k], burst, queues, ends, computed, s, counters
                )
                done = static_count + place - start
            if full:
                return k, done, True
            done = 0
        return count, 0, False

    return send
