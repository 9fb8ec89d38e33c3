"""The firings of all shards, as each published them: their rows are sent, or they are collected in one list."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Exchange, Extras, Fcl, History, Ids, Log, Longs, Rows, Steering
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FULL_BIT, HEADER_WORDS, MOST_SHARDS, SEQUENCE, WAITED
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, COUNT, HALTED, SLOT, START
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.modulators import make_drive
from burstproof.engine.cuda.kernels.plastic import make_note_firing
from burstproof.engine.cuda.kernels.send import make_send
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


@cache
def make_lists() -> Callable[..., Any]:
    """``lists(sequence, halt, control, exchange, counts)`` -> (firings of all shards, place of a list's first word).

    All threads of a block call it; ``counts``, shared memory, receives the firings of each shard. Waits until every
    shard has published. If one has no room for another burst, no shard does another: ``control[HALTED]`` is ``halt``.
    """
    wait, now = make_link().wait, make_link().now
    full, most = np.uint32(FULL_BIT), np.uint32(FULL_BIT - 1)

    def lists(sequence: np.uint32, halt: np.int64, control: Longs, exchange: Exchange, counts: Ids) -> Any:
        link, inboxes = exchange.link, exchange.inboxes
        spent = cuda.shared.array(2, np.int64)
        side = np.uint64(np.uint64(sequence & np.uint32(1)) * np.uint64(exchange.words))
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
            found = wait(inboxes, box, np.uint64(side + np.uint64(COUNT_WORD)), sequence, exchange)
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
                control[HALTED] = halt
        total = np.uint32(0)
        for sender in range(inboxes.size):
            total = np.uint32(total + counts[sender])
        return total, np.uint64(side + np.uint64(HEADER_WORDS))

    return cuda.jit(device=True)(lists)  # type: ignore[no-any-return]


@cache
def make_find() -> Callable[..., Any]:
    """``find(item, counts)`` -> (shard, place in its list) of the ``item``-th firing of all."""

    def find(item: np.uint32, counts: Ids) -> Any:
        box, place = np.uint32(0), np.uint32(item)
        while place >= counts[box]:
            place = np.uint32(place - counts[box])
            box = np.uint32(box + np.uint32(1))
        return box, place

    return cuda.jit(device=True)(find)  # type: ignore[no-any-return]


def make_send_lists(shard: ShardVariant) -> Callable[..., None]:
    """``send_lists(...)``: add the constant contributions of all firings; ``share`` threads take a row."""
    share = 1 if SIMULATED else shard.share
    lists, find, link_to, send = make_lists(), make_find(), make_link(), make_send(shard, share)
    wait, copy_address, near = link_to.wait, link_to.keep, link_to.near
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    shares = np.uint32(share)

    def send_lists(steering: Steering, exchange: Exchange, rows: Rows, fcl: Fcl) -> None:
        control, inboxes = steering.control, exchange.inboxes
        wait_for_last()
        slot, active, sequence = np.uint32(control[SLOT]), control[ACTIVE], np.uint32(exchange.link[SEQUENCE])
        let_next_start()
        if active == 0:
            return
        counts = cuda.shared.array(MOST_SHARDS, np.uint32)
        addresses = cuda.shared.array(MOST_SHARDS, np.uint64)
        thread = np.uint32(cuda.grid(1))
        part = np.uint32(thread & np.uint32(shares - np.uint32(1)))
        item = np.uint32(thread // shares)
        items = np.uint32(np.uint32(cuda.gridsize(1)) // shares)
        if np.uint32(cuda.threadIdx.x) < np.uint32(inboxes.size):
            copy_address(inboxes, np.uint32(cuda.threadIdx.x), addresses)
        total, first = lists(sequence, np.int64(1), control, exchange, counts)
        while item < total:
            box, place = find(item, counts)
            at = np.uint64(first + np.uint64(place))
            source = wait(near(inboxes, addresses), box, at, sequence, exchange)
            send(source, part, slot, control, rows, fcl)
            item = np.uint32(item + items)

    return send_lists


def make_collect(shard: ShardVariant) -> Callable[..., None]:
    """``collect(...)``: collect all firings in one list, for kernels that read it several times.

    Log, history and drivers cover all N neurons: each shard computes all signals itself.
    """
    lists, find, wait = make_lists(), make_find(), make_link().wait
    carries, plastic, note_firing = shard.carries_potentials, shard.variant.plastic, make_note_firing(shard.variant)
    drives, drive, silent = shard.extras.modulators, make_drive(), np.float32(0)

    def collect(steering: Steering, exchange: Exchange, log: Log, history: History, extras: Extras) -> None:
        control, inboxes = steering.control, exchange.inboxes
        counts = cuda.shared.array(MOST_SHARDS, np.uint32)
        if control[ACTIVE] == 0:
            return
        sequence = np.uint32(exchange.link[SEQUENCE])
        total, first = lists(sequence, np.int64(1), control, exchange, counts)
        item = np.uint32(cuda.grid(1))
        while item < total:
            box, place = find(item, counts)
            at = np.uint64(first + np.uint64(place))
            source = wait(inboxes, box, at, sequence, exchange)
            log.log_ids[item] = source
            potential = silent
            if carries:
                bits = wait(inboxes, box, np.uint64(at + np.uint64(exchange.room)), sequence, exchange)
                potential = np.uint32(bits).view(np.float32)
                log.log_potentials[item] = potential
            if drives:
                drive(source, potential, np.uint32(control[BURST]), extras)
            if plastic:
                note_firing(source, control[BURST], history)
            item = np.uint32(item + np.uint32(cuda.gridsize(1)))
        if cuda.grid(1) == 0:
            control[START] = 0
            control[COUNT] = np.int64(total)

    return collect
