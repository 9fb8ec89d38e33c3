"""One burst in one kernel: a block computes the dynamics of a chunk of neurons, then sends the rows of its firings.

The FCL has one slot more than the largest delay, so no contribution of a burst can reach the slot that the burst
consumes. Dynamics and propagation of different blocks therefore need no order, and no block waits for another, except
for blocks without a chunk that help with long rows (``kernels.long_rows``). No fence is used anywhere: it would turn
the reductions into atomics that read back. The next kernel of the batch works out the totals of the burst
(``kernels.steer``). If the device can, that kernel's blocks come up while the last blocks of this one run.

Between shards with a device each, a block also sends its chunk's packet to all shards (``kernels.packet``). It then
takes the packets of one chunk from the other shards: of the same chunk or, if there are many, of one ``lag`` chunks
earlier, which has had time to arrive. Blocks come up in order and no block waits for a later chunk than its own, so the
first chunk that is missing anywhere is always under way. Without an exchange all of this compiles away.
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
from burstproof.engine.cuda.kernels.calendar import make_deliver_halves
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
    """``first_item()``: index of a block's first chunk. The first block has none: it does the bookkeeping."""

    def first_of_all() -> Any:
        return np.uint32(0)

    def own_item() -> Any:
        return np.uint32(np.uint32(cuda.blockIdx.x) - np.uint32(1))

    return cuda.jit(device=True)(first_of_all if SIMULATED else own_item)  # type: ignore[no-any-return]


def make_following_item(strides: bool) -> Callable[..., Any]:
    """``following_item(item, items)``: the block's next chunk after ``item``; at least ``items`` if there is none."""

    def next_of_all(item: np.uint32, items: np.uint32) -> Any:
        return np.uint32(item + np.uint32(1))

    def next_of_block(item: np.uint32, items: np.uint32) -> Any:
        return np.uint32(item + np.uint32(cuda.gridDim.x) - np.uint32(1))

    def none(item: np.uint32, items: np.uint32) -> Any:
        return items

    following = next_of_all if SIMULATED else next_of_block if strides else none
    return cuda.jit(device=True)(following)  # type: ignore[no-any-return]


def make_copy_addresses() -> Callable[..., Any]:
    """``copy_addresses(exchange, thread, sinks, boxes)``: copy the addresses of all mailboxes to shared memory."""
    keep = make_link().keep

    def copy_addresses(exchange: Exchange, thread: np.uint32, sinks: Words, boxes: Words) -> None:
        if thread < np.uint32(exchange.inboxes.size):
            keep(exchange.inboxes, thread, boxes)
        if thread < np.uint32(exchange.sinks.size):
            keep(exchange.sinks, thread, sinks)

    return cuda.jit(device=True)(copy_addresses)  # type: ignore[no-any-return]


def make_end_exchange() -> Callable[..., Any]:
    """``end_exchange(steering, exchange, network, turn, ...)``, one thread: write what a shard's next burst needs."""
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


def _block_functions(shard: ShardVariant) -> tuple[Callable[..., Any], ...]:
    """How a block finds its chunks, waits for the kernel before it and lets the next one start."""
    wait, start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped and shard.early)
    return make_first_item(), make_following_item(shard.strides), wait, start


def _fetch_functions(shard: ShardVariant, threads: int) -> tuple[Callable[..., Any], ...]:
    """Three times at which a block fetches: before the slot is known, before a bucket is emptied, after that.

    A simulated block takes several chunks, so it fetches each of them last.
    """
    per_thread = shard.chunk // threads
    early, fetch = make_fetch_early(shard, threads, per_thread), make_fetch_chunk(shard, threads, per_thread)
    elsewhere = make_fetch_elsewhere()
    return (early, fetch, elsewhere) if shard.words_ahead and not SIMULATED else (early, elsewhere, fetch)


def _chunk_functions(shard: ShardVariant, threads: int, share: int) -> tuple[Callable[..., Any], ...]:
    """What a block does with a chunk that it has fetched: step its neurons; send, keep and log the firings."""
    return (
        make_consume_chunk(shard, threads, shard.chunk // threads),
        make_send_fired(shard, threads, share),
        make_keep_chunk(shard.variant, threads),
        make_log_chunk(shard, threads),
    )


def _exchange_functions(shard: ShardVariant, threads: int, share: int) -> tuple[Callable[..., Any], ...]:
    """What a block does for the exchange: copy mailbox addresses, publish its packets, take those of other shards."""
    return make_copy_addresses(), make_publish(make_id_of(shard)), make_take_row(shard, threads, share)


def _turn_functions(shard: ShardVariant) -> tuple[Callable[..., Any], ...]:
    """What begins a burst, adds up its firings, and ends it."""
    begin = make_steer(shard), make_enter(), make_halt(), make_log_start()
    return (*begin, make_add_up(shard), make_count_chunk(), make_end_exchange())


def make_burst(shard: ShardVariant) -> Callable[..., None]:
    """``burst(...)``: one burst, as mode and place of the turn say; ``turn.stimulated``: 1 if there may be stimulus.

    Without an exchange firings are left in ``chunks``. With one, they are logged in any order if lists are kept, and in
    the last burst of a batch. All shards send the same number of packets; ``lag`` more blocks only take packets.
    """
    variant, exchanges, word = shard.variant, shard.exchanges, shard.variant.word.added
    threads, chunk = WARP if SIMULATED else shard.threads, shard.chunk
    share, per_thread, size = 1 if SIMULATED and exchanges else shard.share, chunk // threads, np.uint32(chunk)
    first_item, following_item, wait_for_last, let_next_start = _block_functions(shard)
    fetch_early, fetch_ahead, fetch_chunk = _fetch_functions(shard, threads)
    consume_chunk, send_fired, keep_chunk, log_chunk = _chunk_functions(shard, threads, share)
    copy_addresses, publish, take_row = _exchange_functions(shard, threads, share)
    steer, enter, halt, log_start, add_up, count_chunk, end_exchange = _turn_functions(shard)
    deliver_early, deliver_late = make_deliver_halves(shard)
    collect_rows, help_out = make_collect_rows(shard, threads), make_help(shard)
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
        list_offset = cuda.shared.array(1, np.int64)
        if in_tiles:
            ids, held = cuda.shared.array(list_room, np.uint32), np.uint32(0)
        if exchanges:
            sinks = cuda.shared.array(MOST_SHARDS, np.uint64)
            boxes = cuda.shared.array(MOST_SHARDS, np.uint64)
            copy_addresses(exchange, thread, sinks, boxes)
            own_items, lag = exchange.chunks, exchange.lag
            items = np.uint32(own_items + lag)
        else:
            items = np.uint32((np.uint64(network.neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
            own_items = items
        let_next_start()
        wait_for_last()
        fetch_early(np.uint32(item * size), fcl, neurons, network, loaded)
        runs, burst_number, sequence, slot, is_last = steer(steering, exchange, fcl, network, turn)
        if not runs:
            if cuda.grid(1) == 0 and not exchanges:
                halt(steering, turn)
            return
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        keeps_list = is_last or turn.mode == np.uint32(LISTS)
        if exchanges:
            side = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words) + header)
        if has_calendar:
            fetch_ahead(np.uint32(item * size), base, fcl, neurons, network, loaded)
            deliver_early(burst_number, slot, recall, rows, fcl)
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
                    list_offset[0] = add_up(burst_number, count, candidates, keeps_list, steering)
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
                if keeps_list and count > np.uint32(0):
                    cuda.syncthreads()
                    log_chunk(log_start(steering, turn, burst_number) + list_offset[0], count, fired, identity, log)
            else:
                keep_chunk(first, list_offset, burst_number, count, fired, chunks, recall)
            item = np.uint32(following_item(item, items))
            if several:
                cuda.syncthreads()
        if has_calendar:
            deliver_late(burst_number, slot, recall, rows, fcl)
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
