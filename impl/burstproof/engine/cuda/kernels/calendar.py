"""Contributions that arrive later than in the next burst wait in queues, by burst and by tile of their targets.

A block appends what its firings contribute with delays above 1; rows are read once, when they fire. The kernel of a
burst adds the queues of the next burst to the slot, tile after tile, beside its own contributions of delay 1: nothing
can be appended to those queues any more. So two slots of the FCL are enough, no entry of a row is looked for, and most
additions go to one tile, which stays in the L2 cache. Rows are sorted by delay and tile, so that neighbouring threads
append to the same queue. A word holds amount and target within the tile.

What a queue has no room for goes to a slot that its burst has behind the two, and so does what a restored state has
under way; the kernel that adds the burst's queues adds that slot as well, if anything is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Amount, Exchange, Fcl, Ids, Longs, Recall, Rows, Words
from burstproof.engine.cuda.kernels.cells import make_deliver
from burstproof.engine.cuda.kernels.control import CLAMPED
from burstproof.engine.cuda.kernels.packet import make_list_packet
from burstproof.engine.cuda.kernels.rows import make_bounds, make_read_once
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.buffers import FIRST_SPARE
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant

_AT_ONCE = 4


def _turns(variant: Variant) -> tuple[np.uint32, np.uint32]:
    """What burst numbers are masked with for the queues, and for their counts."""
    bursts = max(1, variant.calendar)
    return np.uint32(bursts - 1), np.uint32(2 * bursts - 1)


def _make_deliver_spare(variant: Variant) -> Callable[..., Any]:
    """``deliver_spare(coming, following, fcl)``: the slot that burst ``coming`` has for itself; it is empty then.

    Whole words are added, whatever cells they hold. All threads of the grid call it.
    """
    (turns, _), spare = _turns(variant), np.uint32(FIRST_SPARE)
    per_word, elements = np.uint64(max(1, 32 // variant.word.bits)), np.uint64(variant.word.elements)
    nothing = variant.word.added(0)

    def deliver_spare(coming: np.uint32, following: np.uint64, fcl: Fcl) -> None:
        slot = np.uint64(np.uint64(np.uint32(spare + (coming & turns))) * np.uint64(fcl.stride))
        source, target = np.uint64(slot * elements // per_word), np.uint64(following * elements // per_word)
        words, item = np.uint64(np.uint64(fcl.stride) * elements // per_word), np.uint64(cuda.grid(1))
        while item < words:
            word = fcl.sums[np.uint64(source + item)]
            if word != nothing:
                fcl.sums[np.uint64(source + item)] = nothing
                cuda.atomic.add(fcl.sums, np.uint64(target + item), word)
            item = np.uint64(item + np.uint64(cuda.gridsize(1)))

    return cuda.jit(device=True)(deliver_spare)  # type: ignore[no-any-return]


def make_deliver_due(variant: Variant) -> Callable[..., Any]:
    """``deliver_due(burst, slot, recall, fcl)``: what waits for the burst after ``burst`` into the slot after ``slot``.

    All threads of the grid call it. Each block takes a part of all words, in order, so that blocks that run at a time
    add to the same tile. Queues take turns; twice as many counts do, so that one can be cleared.
    """
    turns, count_turns = _turns(variant)
    deliver, deliver_spare = make_deliver(variant), _make_deliver_spare(variant)
    number, noted, tiles = variant.accumulator, variant.noted, variant.calendar_tiles
    per_burst, none, zero, one = np.uint32(tiles), variant.noted(0), np.uint32(0), np.uint32(1)

    def clear(burst: np.uint32, recall: Recall) -> None:
        """One thread: the counts of a burst whose queues are empty."""
        turn = np.uint32(burst & count_turns)
        for tile in range(tiles):
            recall.calendar_counts[np.uint32(turn * per_burst + np.uint32(tile))] = zero
        recall.calendar_spares[turn] = zero

    clear = cuda.jit(device=True)(clear)

    def deliver_due(burst: np.uint32, slot: np.uint32, recall: Recall, fcl: Fcl) -> None:
        words = cuda.local.array(_AT_ONCE, noted)
        coming, shift, room = np.uint32(burst + one), recall.calendar_shift, np.uint32(recall.calendar_room)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        mask, step = np.uint32(np.uint32(one << shift) - one), np.uint32(cuda.blockDim.x)
        counts, queue = np.uint32((coming & count_turns) * per_burst), np.uint32((coming & turns) * per_burst)
        if cuda.grid(1) == 0:
            clear(burst, recall)
        total, before = zero, zero
        for tile in range(tiles):
            total = np.uint32(total + min(recall.calendar_counts[np.uint32(counts + np.uint32(tile))], room))
        share = np.uint32((total + np.uint32(cuda.gridDim.x) - one) // np.uint32(cuda.gridDim.x))
        low = np.uint32(share * np.uint32(cuda.blockIdx.x))
        for tile in range(tiles):
            ends = np.uint32(before + min(recall.calendar_counts[np.uint32(counts + np.uint32(tile))], room))
            end = min(ends, np.uint32(low + share))
            first = np.uint64(np.uint64(np.uint32(queue + np.uint32(tile))) * np.uint64(room) - np.uint64(before))
            base = np.uint64(following + (np.uint64(tile) << np.uint64(shift)))
            item = np.uint32(max(low, before) + np.uint32(cuda.threadIdx.x))
            while item < end:
                for turn in range(_AT_ONCE):
                    at = np.uint32(item + np.uint32(turn) * step)
                    words[turn] = recall.calendar_words[np.uint64(first + np.uint64(at))] if at < end else none
                for turn in range(_AT_ONCE):
                    if np.uint32(item + np.uint32(turn) * step) < end:
                        word = words[turn]
                        deliver(np.uint64(base + np.uint64(np.uint32(word) & mask)), number(word >> shift), fcl)
                item = np.uint32(item + np.uint32(_AT_ONCE) * step)
            before = ends
        if recall.calendar_spares[coming & count_turns] != zero:
            deliver_spare(coming, following, fcl)

    return cuda.jit(device=True)(deliver_due)  # type: ignore[no-any-return]


def _make_bin_of(variant: Variant) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``bin_of(delay, target, shift)``, and ``bin_at(entry, shift, rows)`` of an entry: where a block counts it."""
    tiles, by_tile = np.uint32(variant.calendar_tiles), variant.calendar_tiles > 1

    def bin_of(delay: np.uint32, target: np.uint32, shift: np.uint32) -> Any:
        if by_tile:
            return np.uint32(delay * tiles + (target >> shift))
        return delay

    bin_of = cuda.jit(device=True)(bin_of)

    def bin_at(entry: np.unsignedinteger, shift: np.uint32, rows: Rows) -> Any:
        if by_tile:
            return bin_of(np.uint32(rows.delays[entry]), np.uint32(rows.targets[entry]), shift)
        return np.uint32(rows.delays[entry])

    return bin_of, cuda.jit(device=True)(bin_at)


def _make_put(variant: Variant) -> Callable[..., Any]:
    """``put(target, amount, own, burst, places, recall, fcl)``: a contribution to its queue."""
    turns, count_turns = _turns(variant)
    deliver, noted, tiles, one = make_deliver(variant), variant.noted, np.uint32(variant.calendar_tiles), np.uint32(1)
    spare = np.uint32(FIRST_SPARE)

    def put(
        target: np.uint32, amount: Amount, own: np.uint32, burst: np.uint32, places: Ids, recall: Recall, fcl: Fcl
    ) -> None:
        place, shift = cuda.atomic.add(places, own, one), recall.calendar_shift
        delay = np.uint32(own // tiles)
        due = np.uint32(burst + delay)
        if np.uint64(place) < recall.calendar_room:
            queue = np.uint32((due & turns) * tiles + np.uint32(own - delay * tiles))
            local = np.uint32(target & np.uint32(np.uint32(one << shift) - one))
            at = np.uint64(np.uint64(queue) * recall.calendar_room + np.uint64(place))
            recall.calendar_words[at] = noted(noted(noted(amount) << shift) | noted(local))
        else:
            slot = np.uint64(np.uint32(spare + (due & turns)))
            deliver(np.uint64(slot * np.uint64(fcl.stride) + np.uint64(target)), amount, fcl)
            recall.calendar_spares[due & count_turns] = one

    return cuda.jit(device=True)(put)  # type: ignore[no-any-return]


def make_put_off(variant: Variant, threads: int) -> Callable[..., Any]:
    """``put_off(count, slot, burst, sources, control, ...)``: the rows of ``sources``, shared memory, a warp to each.

    Contributions of delay 1 go to the slot after ``slot``, all others to queues. Entries are counted by queue, so that
    the block asks for its places in each queue once. All threads of the block call it.
    """
    (_, count_turns), (bin_of, bin_at), put = _turns(variant), _make_bin_of(variant), _make_put(variant)
    bounds, offset, read_once, deliver = make_bounds(variant), variant.offset, make_read_once(), make_deliver(variant)
    uniform_rows, clamps, number = variant.uniform_rows, variant.clamps, variant.accumulator
    lanes, warp, warps = np.uint32(WARP - 1), np.uint32(WARP), np.uint32(max(1, threads // WARP))
    tiles, room = np.uint32(variant.calendar_tiles), variant.calendar_tiles * (variant.calendar + 1)
    bins, queued, block = np.uint32(room), np.uint32(2 * tiles), np.uint32(threads)
    zero, one = np.uint32(0), np.uint32(1)

    def count_row(source: np.uint32, places: Ids, shift: np.uint32, rows: Rows) -> None:
        found = cuda.local.array(_AT_ONCE, np.uint32)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                found[turn] = bin_at(at, shift, rows) if at < end else zero
            for turn in range(_AT_ONCE):
                if found[turn] >= queued:
                    cuda.atomic.add(places, found[turn], one)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    def send_row(
        source: np.uint32, slot: np.uint32, burst: np.uint32, places: Ids, recall: Recall, rows: Rows, fcl: Fcl
    ) -> None:
        target = cuda.local.array(_AT_ONCE, np.uint32)
        amount = cuda.local.array(_AT_ONCE, number)
        found = cuda.local.array(_AT_ONCE, np.uint32)
        following = np.uint64(np.uint64(one - slot) * np.uint64(fcl.stride))
        shared = number(rows.contributions[source]) if uniform_rows else number(0)
        start, end = bounds(source, rows)
        entry = offset(start + offset(np.uint32(cuda.threadIdx.x) & lanes))
        while entry < end:
            for turn in range(_AT_ONCE):
                at = offset(entry + offset(turn * WARP))
                target[turn], found[turn], amount[turn] = zero, zero, shared
                if at < end:
                    target[turn] = read_once(rows.targets, at)
                    found[turn] = bin_of(np.uint32(rows.delays[at]), target[turn], recall.calendar_shift)
                    if not uniform_rows:
                        amount[turn] = number(read_once(rows.contributions, at))
            for turn in range(_AT_ONCE):
                if found[turn] >= queued:
                    put(target[turn], amount[turn], found[turn], burst, places, recall, fcl)
                elif found[turn] != zero:
                    deliver(np.uint64(following + np.uint64(target[turn])), amount[turn], fcl)
            entry = offset(entry + offset(_AT_ONCE * WARP))

    count_row, send_row = cuda.jit(device=True)(count_row), cuda.jit(device=True)(send_row)

    def put_off(
        count: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        sources: Ids,
        control: Longs,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        places = cuda.shared.array(room, np.uint32)
        thread = np.uint32(cuda.threadIdx.x)
        if count == zero:
            return
        own = thread
        while own < bins:
            places[own] = zero
            own = np.uint32(own + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        while item < count:
            source = sources[item]
            count_row(source, places, recall.calendar_shift, rows)
            if clamps and (thread & lanes) == zero and rows.clamped_sources[source] != 0:
                control[CLAMPED] = 1
            item = np.uint32(item + warps)
        cuda.syncthreads()
        own = np.uint32(thread + queued)
        while own < bins:
            entries = places[own]
            if entries != zero:
                delay = np.uint32(own // tiles)
                due = np.uint32(np.uint32(burst + delay) & count_turns)
                queue = np.uint32(due * tiles + np.uint32(own - delay * tiles))
                places[own] = cuda.atomic.add(recall.calendar_counts, queue, entries)
            own = np.uint32(own + block)
        cuda.syncthreads()
        item = np.uint32(thread // warp)
        while item < count:
            send_row(sources[item], slot, burst, places, recall, rows, fcl)
            item = np.uint32(item + warps)

    return cuda.jit(device=True)(put_off)  # type: ignore[no-any-return]


def make_put_off_packets(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``put_off_packets(exchange, kept, at, sequence, slot, burst, ...)``, all threads of a block.

    Takes the packets at word ``at`` from all other shards, one after another, and puts off what fired in them.
    """
    put_off, list_packet, size = make_put_off(shard.variant, threads), make_list_packet(), shard.chunk
    room, one = size + 1, np.uint32(1)

    def put_off_packets(
        exchange: Exchange,
        kept: Words,
        at: np.uint64,
        sequence: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        control: Longs,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
    ) -> None:
        listed = cuda.shared.array(room, np.uint32)
        for box in range(np.uint32(exchange.inboxes.size) - one):
            sender = np.uint32(box + one) if box >= exchange.own else np.uint32(box)
            cuda.syncthreads()
            list_packet(exchange, kept, sender, at, sequence, listed)
            cuda.syncthreads()
            put_off(listed[size], slot, burst, listed, control, recall, rows, fcl)

    return cuda.jit(device=True)(put_off_packets)  # type: ignore[no-any-return]
