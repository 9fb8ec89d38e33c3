"""Kernels that put contributions into the queues of ``queues.py`` and add up what has arrived."""

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
    """Kernels over queues; the signatures are those of the functions that they come from."""

    collect: Compiled
    empty: Compiled
    restart: Compiled
    send: Compiled


def make_deliver(key: KernelKey) -> Deliver:
    """The kernels for ``key``."""
    take = _make_take()
    return Deliver(_make_collect(take), _make_empty(take), _make_restart(), _make_send(key))


def make_take_ring() -> Compiled:
    """``take_ring``: what a slot of the ring holds, into the sums of the burst under way."""
    add, read = make_add(), make_read()

    @inner_compiler
    def take_ring(slot: int, first: int, end: int, ring: Array, sums: Array, s: Scalars) -> None:
        """Move what ``slot`` holds for the neurons ``first`` ... ``end - 1``."""
        base = slot * s.neurons
        for i in range(first, end):
            if ring[base + i] != 0:
                add(sums, i, read(ring, base + i))
                ring[base + i] = 0

    return take_ring


def _make_take() -> Compiled:
    add = make_add()

    @inner_compiler
    def take(queue: int, queues: Queues, sums: Array) -> None:
        """Add what all threads have put into ``queue``; places in ``sums`` are those in its region."""
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

    return take


def _make_collect(take: Compiled) -> Compiled:
    take_ring = make_take_ring()

    @inner_compiler
    def collect(part: int, burst: int, queues: Queues, ring: Array, s: Scalars) -> None:
        """All contributions of ``burst`` onto one thread's range, from the ring and the queues, into their sums."""
        slot, regions = burst % s.slots, len(queues.regions) - 1
        if queues.ahead[slot]:
            take_ring(slot, queues.bounds[part], queues.bounds[part + 1], ring, queues.sums, s)
        for region in range(queues.owned[part], queues.owned[part + 1]):
            first, end = queues.regions[region], queues.regions[region + 1]
            take(slot * regions + region, queues, queues.sums[first:end])

    return collect


def _make_empty(take: Compiled) -> Compiled:
    @inner_compiler
    def empty(part: int, queues: Queues, ring: Array, s: Scalars) -> None:
        """Move what is under way to one thread's range into the ring; the queues still have it until ``restart``."""
        regions = len(queues.regions) - 1
        for slot in range(s.slots):
            queues.ahead[slot] = 1
            for region in range(queues.owned[part], queues.owned[part + 1]):
                first, end = slot * s.neurons + queues.regions[region], slot * s.neurons + queues.regions[region + 1]
                take(slot * regions + region, queues, ring[first:end])

    return empty


def _make_restart() -> Compiled:
    @inner_compiler
    def restart(part: int, first: int, end: int, queues: Queues) -> None:
        """Forget what one thread has put into its queues ``first`` ... ``end - 1``."""
        count = queues.per_thread
        for queue in range(first, end):
            queues.ends[part, queue] = (part * count + queue) * queues.capacity

    return restart


def _make_send_static(key: KernelKey) -> Compiled:
    delayed = key.delayed

    @inner_compiler
    def send_static(
        first: int, end: int, shift: int, static: Rows, words: Array, ends: Array, last: int
    ) -> tuple[int, bool]:
        """Queue the synapses ``first`` ... ``end - 1``, until a queue is full: where it ended, and whether one is.

        ``shift``: number of the first queue of the next burst. ``last``: capacity - 1.
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
        part: int,
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
        """Queue all synapses of ``count`` sources that fired in ``burst``, but the first ``done`` of the first one.

        Returns how many sources are done, how many synapses of the next one, and whether it stopped at a full queue.
        """
        slot, ends, last = burst % s.slots, queues.ends[part, : queues.per_thread], queues.capacity - 1
        shift = (slot + 1) % s.slots * (len(queues.regions) - 1)
        for k in range(-2 * ROWS_AHEAD, count):
            look_ahead(k, count, ids, static.offsets, static.words, static.bins)
            if k < 0:
                continue
            source = np.int64(ids[k])
            first, end = static.offsets[source], static.offsets[source + 1]
            constant, full = end - first, False
            if static_clamps and static.clamped_sources[source]:
                counters[CLAMPED] = 1
            if done < constant:
                place, full = send_static(first + done, end, shift, static, queues.words, ends, last)
                done = place - first
            if computed_rows and not full:
                start, finish = computed.offsets[source], computed.offsets[source + 1]
                place, full = send_computed(
                    start + done - constant, finish, source, potentials[k], burst, queues, ends, computed, s, counters
                )
                done = constant + place - start
            if full:
                return k, done, True
            done = 0
        return count, 0, False

    return send
