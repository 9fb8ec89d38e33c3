"""One burst of a network with queues per owner (``kernels.queues``): each block adds up the sums of its neurons.

A block adds up the queue of an owner in shared memory, then computes the dynamics of the owner's neurons from these
sums. The FCL is read and cleared only for owners whose queue overflowed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Amount,
    Chunks,
    Counting,
    Exchange,
    Fcl,
    Identity,
    Log,
    Network,
    Neurons,
    Queues,
    Recall,
    Steering,
    Turn,
)
from burstproof.engine.cuda.exchange.words import MOST_SHARDS
from burstproof.engine.cuda.kernels.cells import make_is_candidate
from burstproof.engine.cuda.kernels.classes import make_classes
from burstproof.engine.cuda.kernels.consume import Moment, OwnerTask, make_consume
from burstproof.engine.cuda.kernels.control import BURST
from burstproof.engine.cuda.kernels.features import Traits, make_advance_classes
from burstproof.engine.cuda.kernels.fetch import Loaded, make_fetch_neuron, make_hand_over
from burstproof.engine.cuda.kernels.identity import make_seed
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.neuron import make_ready
from burstproof.engine.cuda.kernels.neuron_values import make_record
from burstproof.engine.cuda.kernels.owned_lists import make_add_up_owned, make_keep_owned, make_listing_of
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.kernels.queue_entries import make_unpack_entry
from burstproof.engine.cuda.kernels.sleepers import Columns, make_consume_sleepers, make_fetch_group
from burstproof.engine.cuda.kernels.steer import make_enter, make_halt, make_steer
from burstproof.engine.cuda.kernels.warp import make_append, make_block_tally
from burstproof.engine.cuda.plan.block_size import GROUP, WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import SPACING, OwnerQueues, Variant

_AT_ONCE = {16: 8, 32: 4, 64: 4}
"""Entries that a thread loads before it adds the first, by bits of an entry."""


def make_shared_sums(variant: Variant, queues: OwnerQueues) -> tuple[Callable[..., Any], ...]:
    """``put(sums, local, word)``, ``add(sums, local, word)`` and ``word_at(sums, local)``: the sums of an owner.

    ``sums`` are int32 words in shared memory. A sum of 64 bits takes two of them, ``span`` apart: the first adds up the
    low bits of each arrival, the second the high bits. Neither overflows with as many arrivals as a neuron can get.
    """
    word, bits, span = variant.word.added, np.int64(queues.low_bits), np.uint32(queues.span)
    low, wide_span = np.int64((1 << queues.low_bits) - 1), np.uint64(queues.span)

    def put_one(sums: Any, local: np.uint32, value: Any) -> None:
        sums[local] = value

    def add_one(sums: Any, local: np.uint32, value: Any) -> None:
        cuda.atomic.add(sums, local, value)

    def one_at(sums: Any, local: np.uint64) -> Any:
        return word(sums[local])

    def put_two(sums: Any, local: np.uint32, value: Any) -> None:
        sums[local] = np.int32(value & low)
        sums[np.uint32(local + span)] = np.int32(value >> bits)

    def add_two(sums: Any, local: np.uint32, value: Any) -> None:
        cuda.atomic.add(sums, local, np.int32(value & low))
        high = np.int32(value >> bits)
        if high != np.int32(0):
            cuda.atomic.add(sums, np.uint32(local + span), high)

    def two_at(sums: Any, local: np.uint64) -> Any:
        return word((np.int64(sums[np.uint64(local + wide_span)]) << bits) + np.int64(sums[local]))

    made = (put_two, add_two, two_at) if queues.low_bits else (put_one, add_one, one_at)
    return tuple(cuda.jit(device=True)(function) for function in made)


def make_arrival(variant: Variant) -> Callable[..., Any]:
    """``arrival(amount)``: the number that one contribution adds to a sum, with its mark if sums are marked."""
    added, mark_bits = variant.word.added, np.uint32(variant.word.mark_bits)

    def plain(amount: Amount) -> Any:
        return added(amount)

    def counted(amount: Amount) -> Any:
        return added((added(amount) << mark_bits) + added(1))

    return cuda.jit(device=True)(counted if variant.word.marked else plain)  # type: ignore[no-any-return]


def make_clear_sums(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``clear_sums(sums)``: clear the sums of an owner's neurons."""
    put, _, _ = make_shared_sums(variant, queues)
    span, block, nothing = np.uint32(queues.span), np.uint32(threads), variant.word.added(0)

    def clear_sums(sums: Any) -> None:
        local = np.uint32(cuda.threadIdx.x)
        while local < span:
            put(sums, local, nothing)
            local = np.uint32(local + block)

    return cuda.jit(device=True)(clear_sums)  # type: ignore[no-any-return]


def make_open_queue(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``open_queue(owner, sums, neurons, queue, fcl)`` -> uint32 entries in the owner's queue, whose length is reset.

    What the queue had no room for is moved from the FCL to the sums, which are 0 before. All threads of the block call
    it; its barrier separates what they did before from what they do after.
    """
    put, _, _ = make_shared_sums(variant, queues)
    span, block, spacing = np.uint32(queues.span), np.uint32(threads), np.uint32(SPACING)
    zero, added, cleared = np.uint32(0), variant.word.added, variant.word.cell(0)

    def open_queue(owner: np.uint32, sums: Any, neurons: np.uint32, queue: Queues, fcl: Fcl) -> Any:
        thread, length_at = np.uint32(cuda.threadIdx.x), np.uint32(owner * spacing)
        length, spilled = queue.queue_lengths[length_at], queue.queue_spills[owner]
        local = thread
        while spilled != zero and local < span:
            cell = np.uint32(owner * span + local)
            if cell < neurons:
                put(sums, local, added(fcl.cells[cell]))
                fcl.cells[cell] = cleared
            local = np.uint32(local + block)
        cuda.syncthreads()
        if thread == zero:
            queue.queue_lengths[length_at], queue.queue_spills[owner] = zero, zero
        return min(length, queue.queue_room)

    return cuda.jit(device=True)(open_queue)  # type: ignore[no-any-return]


def make_sum_queue(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``sum_queue(owner, length, sums, queue)``: add the ``length`` entries of an owner's queue to its sums.

    All threads of the block call it; it ends with a barrier.
    """
    add_whole, add_rest = (_make_add_entries(variant, queues, threads, all_there) for all_there in (True, False))
    at_once = _AT_ONCE[queues.entry_bits]
    last, group = np.uint64((at_once - 1) * threads), np.uint64(at_once * threads)

    def sum_queue(owner: np.uint32, length: np.uint32, sums: Any, queue: Queues) -> None:
        base = np.uint64(np.uint64(owner) * np.uint64(queue.queue_room))
        end, at = np.uint64(base + np.uint64(length)), np.uint64(base + np.uint64(cuda.threadIdx.x))
        while np.uint64(at + last) < end:
            add_whole(sums, at, end, queue)
            at = np.uint64(at + group)
        add_rest(sums, at, end, queue)
        cuda.syncthreads()

    return cuda.jit(device=True)(sum_queue)  # type: ignore[no-any-return]


def _make_add_entries(variant: Variant, queues: OwnerQueues, threads: int, all_there: bool) -> Callable[..., Any]:
    """``add_entries(sums, at, end, queue)``: add a thread's next entries, at most as many as ``_AT_ONCE`` says.

    With ``all_there`` none is compared with ``end``. All are loaded before the first is added.
    """
    _, add, _ = make_shared_sums(variant, queues)
    unpack, arrival, read_once = make_unpack_entry(variant, queues), make_arrival(variant), make_read_once()
    entry_type, nothing, step = variant.queued, variant.queued(0), np.uint64(threads)
    at_once = _AT_ONCE[queues.entry_bits]

    def add_entries(sums: Any, at: np.uint64, end: np.uint64, queue: Queues) -> None:
        entries = cuda.local.array(at_once, entry_type)
        for i in range(at_once):
            place = np.uint64(at + np.uint64(i) * step)
            entries[i] = nothing
            if all_there or place < end:
                entries[i] = read_once(queue.queue_entries, place)
        for i in range(at_once):
            if all_there or np.uint64(at + np.uint64(i) * step) < end:
                local, amount = unpack(entries[i], queue)
                add(sums, local, arrival(amount))

    return cuda.jit(device=True)(add_entries)  # type: ignore[no-any-return]


def make_consume_owned(
    shard: ShardVariant, queues: OwnerQueues, threads: int, *, usual: bool = False
) -> Callable[..., Any]:
    """``consume_owned(begin, side, task)``: an owner's neurons, from ``begin`` on.

    ``side`` is 0 or 1. Sums are cleared for the next owner as they are read. There is no barrier: while a warp waits
    for its loads, others go on.

    Loads are double-buffered: the second half of ``loaded`` has a thread's neurons of this chunk. Those of the next
    chunk are all loaded into the first half before any of this chunk is consumed, since the assembler waits for all
    such loads at once. Indices have 64 bits, so that each column needs one address per chunk. The ``usual`` version is
    for bursts without stimulus where all neurons of the owner, and of the chunk behind them, exist.
    """
    per_thread, parts = shard.chunk // threads, np.uint32(queues.span // shard.chunk)
    consume = make_consume(shard, stimulable=not usual)
    fetch, (put, _, word_at) = make_fetch_neuron(shard, bounded=not usual), make_shared_sums(shard.variant, queues)
    append, block_tally, hand_over = make_append(), make_block_tally(), make_hand_over()
    lanes, silent, none, (_, no_record) = np.uint32(WARP - 1), np.float32(0), np.int32(0), make_record(shard.variant)
    block, size, nothing = np.uint64(threads), np.uint64(shard.chunk), shard.variant.word.added(0)

    def consume_owned(begin: np.uint32, side: np.uint32, task: OwnerTask) -> None:
        sums, ends, chunks, moment, loaded, fcl = task.sums, task.ends, task.chunks, task.moment, task.loaded, task.fcl
        neurons, network, identity = task.neurons, task.network, task.identity
        thread, candidates = np.uint32(cuda.threadIdx.x), none
        lane = np.uint32(thread & lanes)
        part, local = np.uint32(side * parts), np.uint64(thread)
        first, after = np.uint64(np.uint64(begin) + local), np.uint32(part + parts)
        while part < after:
            for p in range(per_thread):
                hand_over(p, per_thread + p, loaded)
            for p in range(per_thread):
                fetch(np.uint64(first + size + np.uint64(p) * block), p, neurons, network, loaded)
            for p in range(per_thread):
                place = np.uint64(local + np.uint64(p) * block)
                loaded.word[per_thread + p] = word_at(sums, place)
                put(sums, np.uint32(place), nothing)
            for p in range(per_thread):
                own_place, beyond = per_thread + p, np.uint64(np.uint64(p) * block)
                neuron, joins, potential, is_candidate = np.uint64(first + beyond), False, silent, False
                if usual or neuron < network.neurons:
                    joins, potential, is_candidate = consume(
                        neuron, own_place, no_record, moment, loaded, fcl, neurons, network, identity
                    )
                candidates = np.int32(candidates + np.int32(is_candidate))
                append(joins, lane, ends, part, np.uint32(neuron), potential, chunks.chunk_ids, chunks.chunk_potentials)
            part, local, first = np.uint32(part + np.uint32(1)), np.uint64(local + size), np.uint64(first + size)
        block_tally(candidates, lane, task.found, side)

    return cuda.jit(device=True)(consume_owned)  # type: ignore[no-any-return]


def make_consume_recorded(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """The ``usual`` version of ``make_consume_owned`` for neurons whose records are loaded ahead.

    The next two neurons of each thread behind the owner's must exist. ``loaded`` is a pipeline: entry 0 is the current
    neuron; entry 1 the thread's next one, with its state loaded and its record in flight; entry 2 the one after that,
    with its state in flight.
    """
    variant, last = shard.variant, np.uint32(queues.span - 1)
    consume, ready = make_consume(shard, stimulable=False, records_ahead=True), make_ready(variant)
    fetch, (put, _, word_at) = make_fetch_neuron(shard, bounded=False), make_shared_sums(variant, queues)
    append, block_tally, hand_over = make_append(), make_block_tally(), make_hand_over()
    has_arrival, seed_of = make_is_candidate(variant), make_seed(shard)
    lanes, none = np.uint32(WARP - 1), np.int32(0)
    block, wide_block = np.uint32(threads), np.uint64(threads)
    size, span = np.uint32(shard.chunk), np.uint32(queues.span)
    powered, nothing, parts = variant.powered, variant.word.added(0), np.uint32(queues.span // shard.chunk)

    def record_ahead(neuron: np.uint64, local: np.uint32, task: OwnerTask) -> Any:
        loaded, network = task.loaded, task.network
        word = word_at(task.sums, np.uint64(min(local, last)))
        loaded.word[1] = word
        is_candidate = has_arrival(word, neuron, task.fcl) or (powered and np.int64(neuron) == network.power_neuron)
        seed = seed_of(neuron, task.moment.burst, task.identity)
        return ready(neuron, seed, is_candidate, loaded.rc[1], loaded.cc[1], task.neurons.parameters, network)

    record_ahead = cuda.jit(device=True)(record_ahead)

    def consume_recorded(begin: np.uint32, side: np.uint32, task: OwnerTask) -> None:
        sums, ends, chunks, moment, loaded, fcl = task.sums, task.ends, task.chunks, task.moment, task.loaded, task.fcl
        neurons, network, identity = task.neurons, task.network, task.identity
        thread, candidates = np.uint32(cuda.threadIdx.x), none
        lane, local = np.uint32(thread & lanes), thread
        neuron = np.uint64(np.uint64(begin) + np.uint64(local))
        hand_over(1, 2, loaded)
        hand_over(0, 1, loaded)
        next_record = record_ahead(neuron, local, task)
        while local < span:
            hand_over(1, 0, loaded)
            hand_over(2, 1, loaded)
            loaded.word[0], record = loaded.word[1], next_record
            put(sums, local, nothing)
            beyond = np.uint32(local + block)
            next_record = record_ahead(np.uint64(neuron + wide_block), beyond, task)
            fetch(np.uint64(neuron + wide_block + wide_block), 2, neurons, network, loaded)
            joins, potential, is_candidate = consume(neuron, 0, record, moment, loaded, fcl, neurons, network, identity)
            candidates = np.int32(candidates + np.int32(is_candidate))
            part = np.uint32(side * parts + local // size)
            append(joins, lane, ends, part, np.uint32(neuron), potential, chunks.chunk_ids, chunks.chunk_potentials)
            local, neuron = beyond, np.uint64(neuron + wide_block)
        block_tally(candidates, lane, task.found, side)

    return cuda.jit(device=True)(consume_recorded)  # type: ignore[no-any-return]


def _make_usual(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """The version of ``make_consume_owned`` for bursts without stimulus, and owners with neurons behind theirs."""
    if shard.sleepers:
        return make_consume_sleepers(shard, queues, threads)
    if shard.records_ahead:
        return make_consume_recorded(shard, queues, threads)
    return make_consume_owned(shard, queues, threads, usual=True)


def _make_fetch(shard: ShardVariant, threads: int, at_first: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """``fetch_ahead(begin, usual, neurons, network, loaded)`` and ``fetch_late``, before and after sums are added up.

    One of them loads each thread's first group if owners have sleepers and the burst is ``usual``, else its
    ``at_first`` first neurons. Registers would not do for both ahead.
    """
    fetch, fetch_group, group, block = make_fetch_neuron(shard), make_fetch_group(shard), np.uint64(GROUP), threads

    def fetch_first(begin: np.uint32, usual: bool, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        for p in range(at_first):
            neuron = np.uint32(begin + np.uint32(p * block) + np.uint32(cuda.threadIdx.x))
            fetch(neuron, p, neurons, network, loaded)

    def fetch_usual(begin: np.uint32, usual: bool, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        if usual:
            fetch_group(np.uint64(np.uint64(begin) + np.uint64(cuda.threadIdx.x) * group), neurons, loaded.record)

    def fetch_nothing(begin: np.uint32, usual: bool, neurons: Neurons, network: Network, loaded: Loaded) -> None:
        """All was loaded ahead."""

    made = (fetch_usual, fetch_first) if shard.sleepers else (fetch_first, fetch_nothing)
    fetch_ahead, fetch_late = (cuda.jit(device=True)(one) for one in made)
    return fetch_ahead, fetch_late


def make_owners_burst(shard: ShardVariant) -> Callable[..., None]:
    """``burst(...)``: one burst as in ``kernels.burst``, but without the sending of rows; a block takes an owner.

    While it opens the queue of its next owner, it lists the firings of the last one in the burst's list, or tells them
    to all shards (``kernels.latest_list``).
    """
    variant, queues = shard.variant, shard.variant.queues
    assert queues is not None
    threads, chunk = WARP if SIMULATED else shard.threads, shard.chunk
    per_thread, per_owner = chunk // threads, queues.span // chunk
    at_first = max(per_thread, 2) if shard.records_ahead else per_thread
    reach, group_words = np.uint32(queues.span + max(GROUP, at_first) * threads), Columns(shard).words
    start_count, end_count, kept = per_owner + 1, 2 * per_owner, at_first + per_thread
    clear_sums, open_queue = make_clear_sums(variant, queues, threads), make_open_queue(variant, queues, threads)
    sum_queue = make_sum_queue(variant, queues, threads)
    fetch_ahead, fetch_late = _make_fetch(shard, threads, at_first)
    consume_owned, consume_usual = make_consume_owned(shard, queues, threads), _make_usual(shard, queues, threads)
    keep_owned, add_up_owned = make_keep_owned(shard, queues, threads), make_add_up_owned(shard, queues, threads)
    exchanges, keep_route, listing_of = shard.exchanges, make_link().keep, make_listing_of(shard)
    steer, enter, halt = make_steer(shard), make_enter(), make_halt()
    homeostats, advance_classes = variant.extras.homeostats, make_advance_classes()
    classes_of = make_classes(shard)
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    word = variant.word.added
    owners, span, size = np.uint32(queues.owners), np.uint32(queues.span), np.uint32(chunk)
    parts, block = np.uint32(per_owner), np.uint32(threads)
    zero, one, half_word = np.uint32(0), np.uint32(1), types.int32

    def burst(
        steering: Steering,
        exchange: Exchange,
        identity: Identity,
        fcl: Fcl,
        neurons: Neurons,
        log: Log,
        chunks: Chunks,
        recall: Recall,
        network: Network,
        queue: Queues,
        counting: Counting,
        turn: Turn,
    ) -> None:
        sums = cuda.shared.array(0, half_word)
        ends = cuda.shared.array(end_count, np.int32)
        starts = cuda.shared.array(start_count, np.uint32)
        found = cuda.shared.array(2, np.int32)
        list_place = cuda.shared.array(1, np.int64)
        sinks = cuda.shared.array(MOST_SHARDS if exchanges else 1, np.uint64)
        words, v = cuda.local.array(kept, word), cuda.local.array(kept, np.float32)
        rc, cc = cuda.local.array(kept, np.int32), cuda.local.array(kept, np.int32)
        rate, leak = cuda.local.array(kept, np.float32), cuda.local.array(kept, np.float32)
        traits = Traits(cuda.local.array(kept, np.uint32), rate, leak)
        marks, decays = cuda.local.array(kept, np.uint32), cuda.local.array(kept, np.float32)
        group = cuda.local.array(group_words, np.uint32)
        loaded = Loaded(words, words, v, rc, cc, marks, decays, traits, group)
        thread = np.uint32(cuda.threadIdx.x)
        let_next_start()
        clear_sums(sums)
        if exchanges and thread < np.uint32(exchange.sinks.size):
            keep_route(exchange.sinks, thread, sinks)
        wait_for_last()
        done, burst_number, sequence, _, is_last = steer(steering, exchange, fcl, network, turn)
        if not done:
            if cuda.grid(1) == 0 and not exchanges:
                halt(steering, turn)
            return
        listing = listing_of(burst_number, sequence, is_last, sinks, steering, exchange, turn)
        classes = classes_of(burst_number, turn, neurons.extras, ())
        moment = Moment(np.uint64(0), burst_number, False, turn.stimulated, classes)
        task = OwnerTask(sums, ends, found, moment, loaded, fcl, neurons, chunks, network, identity)
        owner, last, side = np.uint32(cuda.blockIdx.x), owners, zero
        while owner < owners:
            begin = np.uint32(owner * span)
            beyond = np.uint64(np.uint64(begin) + np.uint64(reach))
            usual = turn.stimulated == zero and beyond <= np.uint64(network.neurons)
            fetch_ahead(begin, usual, neurons, network, loaded)
            part = thread
            while part < parts:
                ends[np.uint32(side * parts + part)] = np.int32(begin + part * size)
                part = np.uint32(part + block)
            if thread == zero:
                found[side] = 0
            length = open_queue(owner, sums, network.neurons, queue, fcl)
            if last < owners:
                keep_owned(last, list_place[0], starts, listing, exchange, identity, chunks, recall, log)
            sum_queue(owner, length, sums, queue)
            if usual:
                consume_usual(begin, side, task)
            else:
                fetch_late(begin, usual, neurons, network, loaded)
                consume_owned(begin, side, task)
            cuda.syncthreads()
            add_up_owned(
                owner,
                np.uint32(side * parts),
                found[side],
                ends,
                starts,
                list_place,
                listing,
                steering,
                exchange,
                network,
                chunks,
                counting,
            )
            owner, last, side = np.uint32(owner + np.uint32(cuda.gridDim.x)), owner, np.uint32(one - side)
        cuda.syncthreads()
        if last < owners:
            keep_owned(last, list_place[0], starts, listing, exchange, identity, chunks, recall, log)
        if cuda.grid(1) == 0:
            enter(steering, turn, burst_number, zero)
            if exchanges:
                steering.control[BURST] += 1
        if homeostats and cuda.blockIdx.x == 0:
            advance_classes(burst_number, neurons.extras)

    return burst
