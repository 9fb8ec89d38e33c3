"""Packets: the firings of one chunk of a shard, their count first, at a fixed place in every mailbox.

Nothing has to be counted before a packet can leave, and a reader needs no other packet. Warps read it: one load takes
the count and the first ids together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Exchange, Fcl, Identity, Ids, Longs, Rows, Words
from burstproof.engine.cuda.exchange.words import FAILED
from burstproof.engine.cuda.kernels.link import CLOCK_POLLS, make_failure, make_link
from burstproof.engine.cuda.kernels.send import make_send
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant

_ALL = 0xFFFFFFFF


def make_publish(id_of: Callable[..., Any]) -> Callable[..., Any]:
    """``publish(exchange, addresses, at, sequence, count, fired_ids, identity)``, all threads of a block.

    Stores the packet of ``count`` firings, from word ``at`` on, into every sink except the shard's own, and into that
    one if it is the only one.
    """
    link_to = make_link()
    store, word, near = link_to.store, link_to.word, link_to.near
    one = np.uint32(1)

    def publish(
        exchange: Exchange,
        addresses: Words,
        at: np.uint64,
        sequence: np.uint32,
        count: np.uint32,
        fired_ids: Ids,
        identity: Identity,
    ) -> None:
        sinks = exchange.sinks
        boxes = np.uint32(sinks.size)
        others = np.uint32(max(boxes, np.uint32(2)) - one)
        length = np.uint32(count + one)
        item = np.uint32(cuda.threadIdx.x)
        while item < np.uint32(length * others):
            sink = np.uint32(item // length)
            entry = np.uint32(item - sink * length)
            if boxes > one and sink >= exchange.own:
                sink = np.uint32(sink + one)
            value = np.uint32(count)
            if entry > np.uint32(0):
                value = np.uint32(id_of(fired_ids[np.uint32(entry - one)], identity))
            store(near(sinks, addresses), sink, np.uint64(at + np.uint64(entry)), word(sequence, value))
            item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(publish)  # type: ignore[no-any-return]


@cache
def make_take() -> Callable[..., Any]:
    """``take(exchange, addresses, box, at, sequence, lane)``, all lanes of a warp.

    Waits for the packet at word ``at`` of mailbox ``box``. Returns its count and the word that this lane holds, for
    ``make_source``. After ``patience`` nanoseconds it sets ``link[FAILED]`` and returns a count of 0.
    """
    link_to = make_link()
    load, wait, now, near = link_to.load, link_to.wait, link_to.now, link_to.near
    high_shift, one, full, last = np.uint64(32), np.uint32(1), np.uint32(_ALL), np.uint32(WARP - 1)
    per_look, failure = np.uint32(CLOCK_POLLS - 1), make_failure()

    def by_thread(
        exchange: Exchange, addresses: Words, box: np.uint32, at: np.uint64, sequence: np.uint32, lane: np.uint32
    ) -> Any:
        return wait(exchange.inboxes, box, at, sequence, exchange), np.int32(0)

    def by_warp(
        exchange: Exchange, addresses: Words, box: np.uint32, at: np.uint64, sequence: np.uint32, lane: np.uint32
    ) -> Any:
        boxes, link = exchange.inboxes, exchange.link
        place = np.uint64(at + np.uint64(lane))
        began, polls = np.uint64(0), np.uint32(0)
        while True:
            found = np.uint64(load(near(boxes, addresses), box, place))
            here = np.uint32(cuda.ballot_sync(_ALL, np.uint32(found >> high_shift) == sequence))
            held = np.int32(np.uint32(found))
            count = np.uint32(cuda.shfl_sync(_ALL, held, 0))
            if here & one:
                needed = full if count >= last else np.uint32((np.uint32(2) << count) - one)
                if (here & needed) == needed:
                    return count, held
            polls = np.uint32(polls + one)
            if (polls & per_look) == np.uint32(0):
                time = np.uint64(now(began))
                if began == np.uint64(0):
                    began = time
                if time - began > exchange.patience and link[FAILED] == 0:
                    link[FAILED] = failure(sequence, box)
                if cuda.ballot_sync(_ALL, link[FAILED] != 0) != 0:
                    return np.uint32(0), held

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


@cache
def make_source() -> Callable[..., Any]:
    """``source(exchange, addresses, box, at, sequence, entry, count, held)``, all lanes of a warp.

    Returns the id of firing ``entry`` of a packet that ``take`` found, for each lane its own ``entry``. Beyond the last
    firing the result has no meaning.
    """
    link_to = make_link()
    wait, near = link_to.wait, link_to.near
    one, last = np.uint32(1), np.uint32(WARP - 1)

    def waited(
        exchange: Exchange, addresses: Words, box: np.uint32, at: np.uint64, sequence: np.uint32, entry: np.uint32
    ) -> Any:
        return wait(near(exchange.inboxes, addresses), box, np.uint64(at + np.uint64(entry + one)), sequence, exchange)

    waited = cuda.jit(device=True)(waited)

    def by_thread(
        exchange: Exchange,
        addresses: Words,
        box: np.uint32,
        at: np.uint64,
        sequence: np.uint32,
        entry: np.uint32,
        count: np.uint32,
        held: np.int32,
    ) -> Any:
        if entry >= count:
            return np.uint32(0)
        return waited(exchange, addresses, box, at, sequence, entry)

    def by_warp(
        exchange: Exchange,
        addresses: Words,
        box: np.uint32,
        at: np.uint64,
        sequence: np.uint32,
        entry: np.uint32,
        count: np.uint32,
        held: np.int32,
    ) -> Any:
        found = np.uint32(cuda.shfl_sync(_ALL, held, np.int32(np.uint32(entry + one) & last)))
        if entry >= last and entry < count:
            found = np.uint32(waited(exchange, addresses, box, at, sequence, entry))
        return found

    return cuda.jit(device=True)(by_thread if SIMULATED else by_warp)  # type: ignore[no-any-return]


def make_take_row(shard: ShardVariant, threads: int, share: int) -> Callable[..., Any]:
    """``take_row(exchange, addresses, at, sequence, slot, control, rows, fcl)``, all threads of a block.

    Takes the packets at word ``at`` from all other shards, and sends the rows of their firings.
    """
    take, source_of, send = make_take(), make_source(), make_send(shard, share)
    one, lanes, shares = np.uint32(1), np.uint32(WARP - 1), np.uint32(share)
    warps, per_warp = np.uint32(threads // WARP), np.uint32(WARP // share)

    def take_row(
        exchange: Exchange,
        addresses: Words,
        at: np.uint64,
        sequence: np.uint32,
        slot: np.uint32,
        control: Longs,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        boxes, thread = np.uint32(exchange.inboxes.size), np.uint32(cuda.threadIdx.x)
        if boxes <= one:
            return
        lane, own_warp = np.uint32(thread & lanes), np.uint32(thread // np.uint32(WARP))
        part = np.uint32(lane & np.uint32(shares - one))
        others = np.uint32(boxes - one)
        box = np.uint32(own_warp % others)
        warps_per_box = np.uint32(max(one, np.uint32((warps + others - one - box) // others)))
        while box < others:
            sender = np.uint32(box + one) if box >= exchange.own else box
            count, held = take(exchange, addresses, sender, at, sequence, lane)
            low = np.uint32((own_warp // others) * per_warp)
            while low < count:
                entry = np.uint32(low + lane // shares)
                source = source_of(exchange, addresses, sender, at, sequence, entry, count, held)
                if entry < count:
                    send(np.uint32(source), part, slot, control, rows, fcl)
                low = np.uint32(low + warps_per_box * per_warp)
            box = np.uint32(box + warps)

    return cuda.jit(device=True)(take_row)  # type: ignore[no-any-return]
