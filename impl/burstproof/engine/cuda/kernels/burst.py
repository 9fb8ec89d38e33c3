"""One burst in one kernel: a block does the dynamics of a chunk of neurons, and at once the rows of those that fired.

The FCL has a slot more than the largest delay, so that no contribution of a burst can reach the slot that the burst
consumes: dynamics and propagation of different blocks need no order, and none waits for another, except for those that
help with long rows (``kernels.long_rows``) and have no chunk. No fence is used anywhere: it would turn the reductions
into atomics that read back. What the burst counted is left to the next kernel of the batch (``kernels.steer``). Where
the device can, that kernel's blocks come up while this one's last ones run.

Between shards that have a device each, a block also sends its chunk's packet to all shards (``kernels.packet``), then
takes the packets of a chunk from the others: the same chunk, or where there are many one that is ``lag`` chunks behind
and has had time to arrive. Blocks come up in their order and a block waits for no chunk behind its own, so that the
first chunk that is missing anywhere is always under way. Without an exchange all of that compiles away.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Chunks,
    Exchange,
    Fcl,
    Identity,
    Log,
    Modulation,
    Network,
    Neurons,
    Recall,
    Rows,
    Steering,
    Turn,
    Words,
)
from burstproof.engine.cuda.exchange.words import HEADER_WORDS, MOST_SHARDS, packet_words
from burstproof.engine.cuda.kernels.calendar import make_deliver_due
from burstproof.engine.cuda.kernels.chunk import (
    make_add_up,
    make_collect_rows,
    make_count_chunk,
    make_keep_chunk,
    make_log_chunk,
    make_send_fired,
)
from burstproof.engine.cuda.kernels.classes import make_classes
from burstproof.engine.cuda.kernels.consume import FOUND, Fired, Moment, make_consume_chunk
from burstproof.engine.cuda.kernels.control import BURST, LISTS, SLOT
from burstproof.engine.cuda.kernels.features import Traits, make_advance_classes
from burstproof.engine.cuda.kernels.fetch import Loaded, make_fetch_chunk, make_fetch_early, make_fetch_elsewhere
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.long_rows import make_help
from burstproof.engine.cuda.kernels.modulators import make_clear_drives
from burstproof.engine.cuda.kernels.packet import make_publish, make_take_row
from burstproof.engine.cuda.kernels.steer import make_agree, make_enter, make_halt, make_log_start, make_steer
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


def make_first_item() -> Callable[..., Any]:
    """``first_item()``: the chunk of a block; the first block has none, it keeps the books beside the others."""

    def first_of_all() -> Any:
        return np.uint32(0)

    def own_item() -> Any:
        return np.uint32(np.uint32(cuda.blockIdx.x) - np.uint32(1))

    return cuda.jit(device=True)(first_of_all if SIMULATED else own_item)  # type: ignore[no-any-return]


def make_following_item(strides: bool) -> Callable[..., Any]:
    """``following_item(item, items)``: what the block takes after ``item``, ``items`` if that was its last."""

    def next_of_all(item: np.uint32, items: np.uint32) -> Any:
        return np.uint32(item + np.uint32(1))

    def next_of_block(item: np.uint32, items: np.uint32) -> Any:
        return np.uint32(item + np.uint32(cuda.gridDim.x) - np.uint32(1))

    def none(item: np.uint32, items: np.uint32) -> Any:
        return items

    following = next_of_all if SIMULATED else next_of_block if strides else none
    return cuda.jit(device=True)(following)  # type: ignore[no-any-return]


def make_keep_routes() -> Callable[..., Any]:
    """``keep_routes(exchange, thread, sinks, boxes)``: the ways to all mailboxes, into shared memory."""
    keep = make_link().keep

    def keep_routes(exchange: Exchange, thread: np.uint32, sinks: Words, boxes: Words) -> None:
        if thread < np.uint32(exchange.inboxes.size):
            keep(exchange.inboxes, thread, boxes)
        if thread < np.uint32(exchange.sinks.size):
            keep(exchange.sinks, thread, sinks)

    return cuda.jit(device=True)(keep_routes)  # type: ignore[no-any-return]


def make_end_exchange() -> Callable[..., Any]:
    """``end_exchange(steering, exchange, network, turn, ...)``, one thread: what a shard's next burst has to know."""
    agree, log_start = make_agree(), make_log_start()

    def end_exchange(
        steering: Steering,
        exchange: Exchange,
        network: Network,
        turn: Turn,
        sequence: np.uint32,
        burst: np.uint32,
        slot: np.uint32,
        is_last: bool,
    ) -> None:
        steering.control[BURST] += 1
        steering.control[SLOT] = np.int64(slot)
        if turn.mode == np.uint32(LISTS) and not is_last:
            side = np.uint64(np.uint64(sequence & np.uint32(1)) * np.uint64(exchange.words))
            agree(steering, exchange, network, side, sequence, burst, log_start(steering, turn, burst))

    return cuda.jit(device=True)(end_exchange)  # type: ignore[no-any-return]


def _of_a_block(shard: ShardVariant) -> tuple[Callable[..., Any], ...]:
    """How a block finds its chunks, waits for the kernel before it and lets the next one start."""
    wait, start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped and shard.early)
    return make_first_item(), make_following_item(shard.strides), wait, start


def _of_a_fetch(shard: ShardVariant, threads: int) -> tuple[Callable[..., Any], ...]:
    """What a block fetches of its chunk: before the burst is known, before a bucket is emptied, and then.

    A simulated block takes several chunks, and so fetches each of them last.
    """
    per_thread = shard.chunk // threads
    early, fetch = make_fetch_early(shard, threads, per_thread), make_fetch_chunk(shard, threads, per_thread)
    elsewhere = make_fetch_elsewhere()
    return (early, fetch, elsewhere) if shard.words_ahead and not SIMULATED else (early, elsewhere, fetch)


def _of_a_chunk(shard: ShardVariant, threads: int, share: int) -> tuple[Callable[..., Any], ...]:
    """What a block does with a chunk that it has fetched: step it; send, keep, log what fired."""
    return (
        make_consume_chunk(shard, threads, shard.chunk // threads),
        make_send_fired(shard, threads, share),
        make_keep_chunk(shard.variant, threads),
        make_log_chunk(shard, threads),
    )


def _of_an_exchange(shard: ShardVariant, threads: int, share: int) -> tuple[Callable[..., Any], ...]:
    """What a block does for other shards: keep the ways to them, publish its packets, take in theirs."""
    return make_keep_routes(), make_publish(make_id_of(shard)), make_take_row(shard, threads, share)


def _of_a_turn(shard: ShardVariant) -> tuple[Callable[..., Any], ...]:
    """What begins a burst, adds up what fired in it, and ends it."""
    begin = make_steer(shard), make_enter(), make_halt(), make_log_start()
    return (*begin, make_add_up(shard), make_count_chunk(), make_end_exchange())


def make_burst(shard: ShardVariant) -> Callable[..., None]:
    """``burst(...)``: one burst, as mode and place of the turn say, whose ``stimulated`` is 1 where marks may be set.

    Without an exchange what fired is left in ``chunks``. With one, it is logged in any order where lists are kept, and
    in the last burst of a batch; all shards send as many packets, and ``lag`` more blocks only take some.
    """
    variant, exchanges, word = shard.variant, shard.exchanges, shard.variant.word.added
    threads, chunk = WARP if SIMULATED else shard.threads, shard.chunk
    share, per_thread, size = 1 if SIMULATED and exchanges else shard.share, chunk // threads, np.uint32(chunk)
    first_item, following_item, wait_for_last, let_next_start = _of_a_block(shard)
    fetch_early, fetch_ahead, fetch_chunk = _of_a_fetch(shard, threads)
    consume_chunk, send_fired, keep_chunk, log_chunk = _of_a_chunk(shard, threads, share)
    keep_routes, publish, take_row = _of_an_exchange(shard, threads, share)
    steer, enter, halt, log_start, add_up, count_chunk, end_exchange = _of_a_turn(shard)
    deliver_due, collect_rows, help_out = make_deliver_due(shard), make_collect_rows(shard, threads), make_help(shard)
    classes_of, clear_drives, advance_classes = make_classes(shard), make_clear_drives(shard), make_advance_classes()
    has_calendar, in_tiles, several = variant.calendar > 0, shard.strides, SIMULATED or shard.strides
    record_words, list_room, homeostats = max(1, per_thread * shard.record.words), 2 * chunk, shard.extras.homeostats
    header, packet, one = np.uint64(HEADER_WORDS), np.uint64(packet_words(chunk)), np.uint32(1)

    def burst(
        steering: Steering,
        exchange: Exchange,
        identity: Identity,
        fcl: Fcl,
        neurons: Neurons,
        log: Log,
        chunks: Chunks,
        recall: Recall,
        rows: Rows,
        network: Network,
        modulation: Modulation,
        turn: Turn,
    ) -> None:
        fired = Fired(
            cuda.shared.array(chunk, np.uint32),
            cuda.shared.array(chunk, np.float32),
            cuda.shared.array(FOUND, np.int32),
        )
        words, v = cuda.local.array(per_thread, word), cuda.local.array(per_thread, np.float32)
        rc, cc = cuda.local.array(per_thread, np.int32), cuda.local.array(per_thread, np.int32)
        rate, leak = cuda.local.array(per_thread, np.float32), cuda.local.array(per_thread, np.float32)
        traits = Traits(cuda.local.array(per_thread, np.uint32), rate, leak)
        marks, record = cuda.local.array(per_thread, np.uint32), cuda.local.array(record_words, np.uint32)
        decays = cuda.local.array(per_thread, np.float32)
        loaded = Loaded(words, cuda.local.array(per_thread, word), v, rc, cc, marks, decays, traits, record)
        control, thread, item = steering.control, np.uint32(cuda.threadIdx.x), first_item()
        first_place = cuda.shared.array(1, np.int64)
        if in_tiles:
            ids, held = cuda.shared.array(list_room, np.uint32), np.uint32(0)
        if exchanges:
            sinks = cuda.shared.array(MOST_SHARDS, np.uint64)
            boxes = cuda.shared.array(MOST_SHARDS, np.uint64)
            keep_routes(exchange, thread, sinks, boxes)
            own_items, lag = exchange.chunks, exchange.lag
            items = np.uint32(own_items + lag)
        else:
            items = np.uint32((np.uint64(network.neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
            own_items = items
        let_next_start()
        wait_for_last()
        fetch_early(np.uint32(item * size), fcl, neurons, network, loaded)
        done, burst_number, sequence, slot, is_last = steer(steering, exchange, fcl, network, turn)
        if not done:
            if cuda.grid(1) == 0 and not exchanges:
                halt(steering, turn)
            return
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        lists = is_last or turn.mode == np.uint32(LISTS)
        if exchanges:
            side = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words) + header)
        if has_calendar:
            fetch_ahead(np.uint32(item * size), base, fcl, neurons, network, loaded)
            deliver_due(burst_number, slot, recall, rows, fcl)
        while item < items:
            count, first = np.uint32(0), np.uint32(item * size)
            if item < own_items:
                fetch_chunk(first, base, fcl, neurons, network, loaded)
                classes = classes_of(burst_number, turn, neurons.extras, modulation)
                moment = Moment(base, burst_number, False, turn.stimulated, classes)
                count, candidates = consume_chunk(first, moment, loaded, fired, fcl, neurons, network, identity)
                if exchanges:
                    at = np.uint64(side + np.uint64(item) * packet)
                    publish(exchange, sinks, at, sequence, count, fired.ids, identity)
                if thread == np.uint32(0):
                    first_place[0] = add_up(burst_number, count, candidates, lists, steering)
                    if not exchanges:
                        count_chunk(item, burst_number, count, items, chunks)
                send_fired(count, slot, burst_number, fired, identity, steering, recall, rows, chunks, fcl)
                if in_tiles:
                    last = following_item(item, items) >= items
                    held = collect_rows(ids, held, count, last, slot, burst_number, fired, steering, recall, rows, fcl)
            if exchanges:
                if item >= own_items:
                    cuda.syncthreads()
                if item >= lag:
                    arrived = np.uint64(side + np.uint64(np.uint32(item - lag)) * packet)
                    take_row(exchange, boxes, arrived, sequence, slot, control, rows, fcl)
                if lists and count > np.uint32(0):
                    cuda.syncthreads()
                    log_chunk(log_start(steering, turn, burst_number) + first_place[0], count, fired, identity, log)
            else:
                keep_chunk(first, first_place, burst_number, count, fired, chunks, recall)
            item = np.uint32(following_item(item, items))
            if several:
                cuda.syncthreads()
        help_out(burst_number, slot, items, rows, chunks, fcl)
        if cuda.grid(1) == 0:
            enter(steering, turn, burst_number, slot)
            if exchanges:
                end_exchange(steering, exchange, network, turn, sequence, burst_number, slot, is_last)
        if cuda.blockIdx.x == 0:
            clear_drives(burst_number, modulation)
            if homeostats:
                advance_classes(burst_number, neurons.extras)

    return burst
