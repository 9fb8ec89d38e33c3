"""What fired anywhere, sent along the rows that end in this shard: waits for every shard's list of the burst."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FULL_BIT, HEADER_WORDS, MOST_SHARDS, SEQUENCE, WAITED
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, CLAMPED, COUNT, HALTED, HISTORY, SLOT, START
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.rows import make_send_part
from burstproof.engine.cuda.kernels.stimulus import make_note_firing
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


@cache
def make_lists() -> Callable[..., Any]:
    """``lists(sequence, control, link, inboxes, words, patience, counts)`` -> (firings of all shards, first word).

    All threads of a block call it; ``counts`` in shared memory takes the firings of each shard. Waits until every shard
    has published; if one has no room for another burst, no shard does another.
    """
    wait, now = make_link().wait, make_link().now
    full, most = np.uint32(FULL_BIT), np.uint32(FULL_BIT - 1)

    def lists(sequence: Any, control: Any, link: Any, inboxes: Any, words: Any, patience: Any, counts: Any) -> Any:
        spent = cuda.shared.array(2, np.int64)
        side = np.uint64(np.uint64(sequence & np.uint32(1)) * np.uint64(words))
        box = np.uint32(cuda.threadIdx.x)
        timed = cuda.blockIdx.x == 0
        began = np.uint64(0)
        if timed:
            if box == np.uint32(0):
                spent[0] = 0
                spent[1] = 0
            began = now(began)
            cuda.syncthreads()
        while box < np.uint32(inboxes.size):
            found = wait(inboxes, box, np.uint64(side + np.uint64(COUNT_WORD)), sequence, patience, link)
            counts[box] = np.uint32(found & most)
            if timed and (found & full) != np.uint32(0):
                spent[1] = 1
            if timed:
                cuda.atomic.max(spent, 0, np.int64(np.uint64(now(began)) - began))
            box = np.uint32(box + np.uint32(cuda.blockDim.x))
        cuda.syncthreads()
        if timed and cuda.threadIdx.x == 0:
            link[WAITED] += spent[0]
            if spent[1] != 0:  # only now has every block of this shard read what its burst depends on
                control[HALTED] = 1
        total = np.uint32(0)
        for sender in range(inboxes.size):
            total = np.uint32(total + counts[sender])
        return total, np.uint64(side + np.uint64(HEADER_WORDS))

    return cuda.jit(device=True)(lists)  # type: ignore[no-any-return]


@cache
def make_find() -> Callable[..., Any]:
    """``find(item, counts)`` -> (shard, place in its list) of the ``item``-th firing of all."""

    def find(item: Any, counts: Any) -> Any:
        box, place = np.uint32(0), np.uint32(item)
        while place >= counts[box]:
            place = np.uint32(place - counts[box])
            box = np.uint32(box + np.uint32(1))
        return box, place

    return cuda.jit(device=True)(find)  # type: ignore[no-any-return]


def make_deliver_all(shard: ShardVariant) -> Callable[..., Any]:
    """``deliver_all(sequence, slot, ...)``: static contributions of all that fired in exchange ``sequence``.

    All threads of the grid call it; ``share`` of them take one row at a time. ``slot`` is that of the burst.
    """
    variant = shard.variant
    lists, find, link_to = make_lists(), make_find(), make_link()
    wait, keep_route, near = link_to.wait, link_to.keep, link_to.near
    send_part, offset, clamps = make_send_part(variant), variant.offset, variant.clamps
    share = np.uint32(1 if SIMULATED else shard.share)

    def deliver_all(
        sequence: Any,
        slot: Any,
        control: Any,
        link: Any,
        inboxes: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        clamped_sources: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
        words: Any,
        patience: Any,
    ) -> None:
        counts = cuda.shared.array(MOST_SHARDS, np.uint32)
        routes = cuda.shared.array(MOST_SHARDS, np.uint64)
        thread = np.uint32(cuda.grid(1))
        lane = np.uint32(thread & np.uint32(share - np.uint32(1)))
        item = np.uint32(thread // share)
        items = np.uint32(np.uint32(cuda.gridsize(1)) // share)
        if np.uint32(cuda.threadIdx.x) < np.uint32(inboxes.size):
            keep_route(inboxes, np.uint32(cuda.threadIdx.x), routes)
        total, first = lists(sequence, control, link, inboxes, words, patience, counts)
        while item < total:
            box, place = find(item, counts)
            at = np.uint64(first + np.uint64(place))
            source = wait(near(inboxes, routes), box, at, sequence, patience, link)
            entry = offset(offsets[source] + offset(lane))
            end = offsets[np.uint32(source + np.uint32(1))]
            send_part(source, entry, end, share, slot, targets, contributions, delays, sums, flags, stride, ring)
            if clamps and lane == np.uint32(0) and clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item = np.uint32(item + items)

    return cuda.jit(device=True)(deliver_all)  # type: ignore[no-any-return]


def make_send(shard: ShardVariant) -> Callable[..., None]:
    """``send(...)``: ``deliver_all`` as a kernel behind the dynamics."""
    deliver_all = make_deliver_all(shard)
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)

    def send(
        control: Any,
        link: Any,
        inboxes: Any,
        offsets: Any,
        targets: Any,
        contributions: Any,
        delays: Any,
        clamped_sources: Any,
        sums: Any,
        flags: Any,
        stride: Any,
        ring: Any,
        words: Any,
        patience: Any,
    ) -> None:
        wait_for_last()
        slot, active, sequence = np.uint32(control[SLOT]), control[ACTIVE], np.uint32(link[SEQUENCE])
        let_next_start()
        if active == 0:
            return
        deliver_all(
            sequence,
            slot,
            control,
            link,
            inboxes,
            offsets,
            targets,
            contributions,
            delays,
            clamped_sources,
            sums,
            flags,
            stride,
            ring,
            words,
            patience,
        )

    return send


def make_collect(shard: ShardVariant) -> Callable[..., None]:
    """``collect(...)``: everything that fired in one list, for kernels that go through it several times.

    ``all_ids``, ``all_potentials`` (N,); the history that plasticity needs is kept for all N neurons.
    """
    lists, find, wait = make_lists(), make_find(), make_link().wait
    carries, plastic, note_firing = shard.carries_potentials, shard.variant.plastic, make_note_firing()

    def collect(
        control: Any,
        link: Any,
        inboxes: Any,
        all_ids: Any,
        all_potentials: Any,
        last_fired: Any,
        streaks: Any,
        longest: Any,
        rooms: Any,
        words: Any,
        patience: Any,
    ) -> None:
        counts = cuda.shared.array(MOST_SHARDS, np.uint32)
        if control[ACTIVE] == 0:
            return
        sequence = np.uint32(link[SEQUENCE])
        total, first = lists(sequence, control, link, inboxes, words, patience, counts)
        item = np.uint32(cuda.grid(1))
        while item < total:
            box, place = find(item, counts)
            at = np.uint64(first + np.uint64(place))
            source = wait(inboxes, box, at, sequence, patience, link)
            all_ids[item] = source
            if carries:
                bits = wait(inboxes, box, np.uint64(at + np.uint64(rooms)), sequence, patience, link)
                all_potentials[item] = np.uint32(bits).view(np.float32)
            if plastic:
                note_firing(source, control[BURST], longest, last_fired, streaks)
            item = np.uint32(item + np.uint32(cuda.gridsize(1)))
        if cuda.grid(1) == 0:
            control[START] = 0
            control[COUNT] = np.int64(total)

    return collect


def make_age() -> Callable[..., None]:
    """``age(control, history)``, one thread, after a burst: one more past burst that plasticity can look back on."""

    def age(control: Any, history: Any) -> None:
        if cuda.grid(1) == 0 and control[ACTIVE] != 0 and control[HISTORY] < history:
            control[HISTORY] += 1

    return age
