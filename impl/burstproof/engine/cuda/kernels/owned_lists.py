"""How owners (``kernels.owners``) list what fired: in the burst's list, or in the mailboxes of all shards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Chunks,
    Counting,
    Exchange,
    Identity,
    Ids,
    Log,
    Longs,
    Network,
    Recall,
    Steering,
    Turn,
    Words,
)
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FULL_BIT, HEADER_WORDS
from burstproof.engine.cuda.kernels.chunk import make_count_chunk
from burstproof.engine.cuda.kernels.control import LISTS, TALLIES
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.kernels.link import make_link, make_tell
from burstproof.engine.cuda.kernels.steer import make_log_start
from burstproof.engine.cuda.kernels.warp import Counters
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues, lists_kept

_OWNERS_SHIFT = 40
"""Bit from which on ``Counting.done`` counts the owners that have finished; the bits below count firings."""


class Listing(NamedTuple):
    """Where a burst's firings are listed.

    Attributes
    ----------
    burst, sequence : uint32
        Number of the burst, and of its exchange.
    side : uint64
        First word of the side of the mailboxes that this burst uses.
    start : int64
        Start of the burst's list in the log; negative: not logged.
    may_fill : uint32
        Whether the log needs room for another burst after this one.
    sinks : uint64
        Routes to the mailboxes, in shared memory.
    """

    burst: np.uint32
    sequence: np.uint32
    side: np.uint64
    start: np.int64
    may_fill: np.uint32
    sinks: Words


def make_listing_of(shard: ShardVariant) -> Callable[..., Any]:
    """``listing_of(burst, sequence, is_last, sinks, steering, exchange, turn)`` -> ``Listing``.

    With an exchange the lists of all bursts of a batch are logged if they are to be kept, else only the last one.
    """
    log_start, exchanges, one, zero = make_log_start(), shard.exchanges, np.uint32(1), np.uint32(0)

    def listing_of(
        burst: np.uint32,
        sequence: np.uint32,
        is_last: bool,
        sinks: Words,
        steering: Steering,
        exchange: Exchange,
        turn: Turn,
    ) -> Any:
        side, start, may_fill = np.uint64(0), np.int64(-1), zero
        if exchanges:
            lists = turn.mode == np.uint32(LISTS)
            side = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words))
            if lists or is_last:
                start = log_start(steering, turn, burst)
            if lists and not is_last:
                may_fill = one
        return Listing(burst, sequence, side, start, may_fill, sinks)

    return cuda.jit(device=True)(listing_of)  # type: ignore[no-any-return]


def make_list_one(shard: ShardVariant) -> Callable[..., Any]:
    """``list_one(local, place, listing, ...)``: write entry ``local`` of ``chunks`` to ``place`` of the burst's list.

    With an exchange it is written to the mailboxes of all shards instead, and to the log if the burst is logged.
    """
    list_mask, link_to, id_of = np.uint32(lists_kept(shard.variant) - 1), make_link(), make_id_of(shard)
    store, word, near, header = link_to.store, link_to.word, link_to.near, np.uint64(HEADER_WORDS)
    exchanges = shard.exchanges

    def list_one(
        local: np.uint32,
        place: np.uint64,
        listing: Listing,
        exchange: Exchange,
        identity: Identity,
        chunks: Chunks,
        recall: Recall,
        log: Log,
    ) -> None:
        if exchanges:
            source = np.uint32(id_of(chunks.chunk_ids[local], identity))
            message, at = word(listing.sequence, source), np.uint64(listing.side + header + place)
            for sink in range(exchange.sinks.size):
                store(near(exchange.sinks, listing.sinks), sink, at, message)
            if listing.start >= np.int64(0):
                logged = np.uint64(np.uint64(listing.start) + place)
                log.log_ids[logged], log.log_potentials[logged] = source, chunks.chunk_potentials[local]
        else:
            kept = np.uint64(np.uint64(listing.burst & list_mask) * recall.list_room + place)
            recall.recalled_ids[kept] = chunks.chunk_ids[local]

    return cuda.jit(device=True)(list_one)  # type: ignore[no-any-return]


def make_keep_owned(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``keep_owned(owner, place, starts, listing, ...)``: copy an owner's firings from ``chunks`` to the burst's list.

    Those of the owner's i-th chunk go to places from ``place + starts[i]`` on.
    """
    per_owner, size, list_one = np.uint32(queues.span // shard.chunk), np.uint32(shard.chunk), make_list_one(shard)
    team = 1 if SIMULATED else WARP
    lanes, teams = np.uint32(team), np.uint32(threads // team)

    def keep_owned(
        owner: np.uint32,
        place: np.int64,
        starts: Ids,
        listing: Listing,
        exchange: Exchange,
        identity: Identity,
        chunks: Chunks,
        recall: Recall,
        log: Log,
    ) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        part = np.uint32(thread // lanes)
        while part < per_owner:
            first = np.uint32((owner * per_owner + part) * size)
            start, end = starts[part], starts[np.uint32(part + np.uint32(1))]
            entry = np.uint32(start + thread % lanes)
            while entry < end:
                local, at = np.uint32(first + np.uint32(entry - start)), np.uint64(np.uint64(place) + np.uint64(entry))
                list_one(local, at, listing, exchange, identity, chunks, recall, log)
                entry = np.uint32(entry + lanes)
            part = np.uint32(part + teams)

    return cuda.jit(device=True)(keep_owned)  # type: ignore[no-any-return]


def make_count_owned(queues: OwnerQueues) -> Callable[..., Any]:
    """``count_owned(fired, listing, steering, exchange, network, counting)``: add an owner's firings to its shard's.

    One thread of an owner calls it. The last owner to finish tells all shards how many neurons fired, and whether the
    log has no room for another burst.
    """
    tell, owners, one, shift = make_tell(), np.uint64(queues.owners), np.uint64(1), np.uint64(_OWNERS_SHIFT)
    low, full = np.uint64((1 << _OWNERS_SHIFT) - 1), np.uint32(FULL_BIT)

    def count_owned(
        fired: np.uint32,
        listing: Listing,
        steering: Steering,
        exchange: Exchange,
        network: Network,
        counting: Counting,
    ) -> None:
        mine = np.uint64((one << shift) + np.uint64(fired))
        after = np.uint64(np.uint64(cuda.atomic.add(counting.done, 0, mine)) + mine)
        if np.uint64(after >> shift) != owners:
            return
        counting.done[0] = np.uint64(0)
        total = np.uint32(after & low)
        end = listing.start + np.int64(total) + np.int64(network.neurons)
        if listing.may_fill != np.uint32(0) and end > steering.capacity:
            total = np.uint32(total | full)
        tell(exchange, listing.sinks, np.uint64(listing.side + np.uint64(COUNT_WORD)), listing.sequence, total)

    return cuda.jit(device=True)(count_owned)  # type: ignore[no-any-return]


def make_add_up_owned(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``add_up_owned(owner, first_end, candidates, ends, starts, list_place, ...)``: add up an owner's counts.

    All threads of the block call it. Adding to the burst's counts also reserves places from ``list_place[0]`` on in the
    burst's list. ``ends`` say, from ``first_end`` on, where each chunk's firings end; ``starts`` gets their places.
    """
    per_owner, chunk, count_chunk = queues.span // shard.chunk, shard.chunk, make_count_chunk()
    count_owned, exchanges, tally_places = make_count_owned(queues), shard.exchanges, np.uint32(TALLIES - 1)
    parts, size, block, zero = np.uint32(per_owner), np.uint32(chunk), np.uint32(threads), np.uint32(0)

    def add_up_owned(
        owner: np.uint32,
        first_end: np.uint32,
        candidates: np.int32,
        ends: Counters,
        starts: Ids,
        list_place: Longs,
        listing: Listing,
        steering: Steering,
        exchange: Exchange,
        network: Network,
        chunks: Chunks,
        counting: Counting,
    ) -> None:
        part, first = np.uint32(cuda.threadIdx.x), np.uint32(owner * parts)
        items = np.uint32((np.uint64(network.neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        while part <= parts:
            start = zero
            for earlier in range(part):
                end = np.uint32(ends[np.uint32(first_end + np.uint32(earlier))])
                start = np.uint32(start + end - np.uint32(first + np.uint32(earlier)) * size)
            starts[part] = start
            item = np.uint32(first + part)
            if not exchanges and part < parts and item < items:
                fired = np.uint32(np.uint32(ends[np.uint32(first_end + part)]) - item * size)
                count_chunk(item, listing.burst, fired, items, chunks)
            if part == parts:
                counted = np.uint64((np.uint64(start) << np.uint64(32)) + np.uint64(candidates))
                before = np.uint64(cuda.atomic.add(steering.tallies, listing.burst & tally_places, counted))
                list_place[0] = np.int64(before >> np.uint64(32))
                if exchanges:
                    count_owned(start, listing, steering, exchange, network, counting)
            part = np.uint32(part + block)

    return cuda.jit(device=True)(add_up_owned)  # type: ignore[no-any-return]
