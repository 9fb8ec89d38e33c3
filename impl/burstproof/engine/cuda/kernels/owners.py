"""One burst of a network with queues per owner (``kernels.queues``): each block adds up what its own neurons get.

A block takes the queue of an owner in shared memory, then does the dynamics of the owner's neurons from there. So no
word of the FCL is read or cleared but for owners whose queue was full.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numba import types

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Amount,
    Chunks,
    Exchange,
    Fcl,
    Identity,
    Ids,
    Network,
    Neurons,
    Queues,
    Recall,
    State,
    Steering,
    Turn,
)
from burstproof.engine.cuda.kernels.burst import make_count_chunk, make_keep_chunk
from burstproof.engine.cuda.kernels.classes import make_classes
from burstproof.engine.cuda.kernels.consume import Fired, Loaded, Moment, make_consume_chunk
from burstproof.engine.cuda.kernels.control import TALLIES
from burstproof.engine.cuda.kernels.features import Traits, make_advance_classes
from burstproof.engine.cuda.kernels.queues import make_unpack_entry
from burstproof.engine.cuda.kernels.rows import make_read_once
from burstproof.engine.cuda.kernels.steer import make_enter, make_halt, make_steer
from burstproof.engine.cuda.kernels.storage import make_widen
from burstproof.engine.cuda.kernels.warp import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, lists_kept


def make_word_in(variant: Variant, queues: OwnerQueues) -> tuple[Callable[..., Any], ...]:
    """``put(own, local, word)``, ``add(own, local, word)`` and ``word_at(own, local)``: words of an owner's neurons.

    ``own`` is int32 in shared memory. A word of 64 bits lies in two: the low bits of each arrival add up in the first,
    what is left in the one ``span`` further on; there are bits enough for as many arrivals as a neuron can get.
    """
    word, bits, span = variant.word.added, np.int64(queues.low_bits), np.uint32(queues.span)
    low = np.int64((1 << queues.low_bits) - 1)

    def put_one(own: Any, local: np.uint32, value: Any) -> None:
        own[local] = value

    def add_one(own: Any, local: np.uint32, value: Any) -> None:
        cuda.atomic.add(own, local, value)

    def one_at(own: Any, local: np.uint32) -> Any:
        return word(own[local])

    def put_two(own: Any, local: np.uint32, value: Any) -> None:
        own[local] = np.int32(value & low)
        own[np.uint32(local + span)] = np.int32(value >> bits)

    def add_two(own: Any, local: np.uint32, value: Any) -> None:
        cuda.atomic.add(own, local, np.int32(value & low))
        high = np.int32(value >> bits)
        if high != np.int32(0):
            cuda.atomic.add(own, np.uint32(local + span), high)

    def two_at(own: Any, local: np.uint32) -> Any:
        return word((np.int64(own[np.uint32(local + span)]) << bits) + np.int64(own[local]))

    made = (put_two, add_two, two_at) if queues.low_bits else (put_one, add_one, one_at)
    return tuple(cuda.jit(device=True)(function) for function in made)


def make_arrival(variant: Variant) -> Callable[..., Any]:
    """``arrival(amount)``: what one contribution adds to a word."""
    added, mark_bits = variant.word.added, np.uint32(variant.word.mark_bits)

    def plain(amount: Amount) -> Any:
        return added(amount)

    def counted(amount: Amount) -> Any:
        return added((added(amount) << mark_bits) + added(1))

    return cuda.jit(device=True)(counted if variant.word.marked else plain)  # type: ignore[no-any-return]


def make_empty(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``empty(own)``: nothing has arrived for an owner's neurons; each thread clears words that it alone may load."""
    put, _, _ = make_word_in(variant, queues)
    span, block, nothing = np.uint32(queues.span), np.uint32(threads), variant.word.added(0)

    def empty(own: Any) -> None:
        local = np.uint32(cuda.threadIdx.x)
        while local < span:
            put(own, local, nothing)
            local = np.uint32(local + block)

    return cuda.jit(device=True)(empty)  # type: ignore[no-any-return]


def make_take_queue(variant: Variant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``take_queue(owner, own, neurons, queue, fcl)``: all that has arrived for an owner's neurons, added up.

    ``own`` is empty; the queue will be. All threads of the block call it; four entries are loaded before the first is
    added.
    """
    put, add, _ = make_word_in(variant, queues)
    unpack, arrival, read_once = make_unpack_entry(variant, queues), make_arrival(variant), make_read_once()
    span, block = np.uint32(queues.span), np.uint32(threads)
    zero, added, cleared = np.uint32(0), variant.word.added, variant.word.cell(0)

    def add_entry(own: Any, entry: Any) -> None:
        local, amount = unpack(entry)
        add(own, local, arrival(amount))

    add_entry = cuda.jit(device=True)(add_entry)

    def take_queue(owner: np.uint32, own: Any, neurons: np.uint32, queue: Queues, fcl: Fcl) -> None:
        entries, thread = queue.queue_entries, np.uint32(cuda.threadIdx.x)
        length, spilled = queue.queue_lengths[owner], queue.queue_spills[owner]
        base, local = np.uint64(np.uint64(owner) * np.uint64(queue.queue_room)), thread
        while spilled != zero and local < span:
            cell = np.uint32(owner * span + local)
            if cell < neurons:
                put(own, local, added(fcl.cells[cell]))
                fcl.cells[cell] = cleared
            local = np.uint32(local + block)
        cuda.syncthreads()
        if thread == zero:
            queue.queue_lengths[owner], queue.queue_spills[owner] = zero, zero
        end = np.uint64(base + np.uint64(min(length, queue.queue_room)))
        step = np.uint64(block)
        at = np.uint64(base + np.uint64(thread))
        while at < end:
            second = np.uint64(at + step)
            third = np.uint64(second + step)
            fourth = np.uint64(third + step)
            entry = read_once(entries, at)
            entry_2, entry_3, entry_4 = entry, entry, entry
            if second < end:
                entry_2 = read_once(entries, second)
            if third < end:
                entry_3 = read_once(entries, third)
            if fourth < end:
                entry_4 = read_once(entries, fourth)
            add_entry(own, entry)
            if second < end:
                add_entry(own, entry_2)
            if third < end:
                add_entry(own, entry_3)
            if fourth < end:
                add_entry(own, entry_4)
            at = np.uint64(fourth + step)
        cuda.syncthreads()

    return cuda.jit(device=True)(take_queue)  # type: ignore[no-any-return]


def make_fetch(
    shard: ShardVariant, queues: OwnerQueues, threads: int, per_thread: int
) -> tuple[Callable[..., Any], ...]:
    """``fetch_state(first, ...)`` and ``fetch_words(local, own, loaded)``: the chunk of the neurons from ``first`` on.

    Within the owner they begin at ``local``. What lies in device memory is fetched ahead of the words.
    """
    variant, block = shard.variant, np.uint32(threads)
    refractory, widen = variant.features.refractory_periods, make_widen(variant.features.storage)
    _, _, word_at = make_word_in(variant, queues)

    def fetch_state(first: np.uint32, state: State, network: Network, loaded: Loaded) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        for p in range(per_thread):
            neuron = np.uint32(first + thread + np.uint32(p) * block)
            if neuron < network.neurons:
                loaded.v[p] = widen(state.potentials[neuron])
                if refractory:
                    loaded.rc[p] = np.int32(state.countdowns[neuron])
                else:
                    loaded.rc[p] = np.int32(0)

    def fetch_words(local: np.uint32, own: Any, loaded: Loaded) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        for p in range(per_thread):
            loaded.word[p] = word_at(own, np.uint32(local + thread + np.uint32(p) * block))

    return cuda.jit(device=True)(fetch_state), cuda.jit(device=True)(fetch_words)


def make_keep_owned(variant: Variant, queues: OwnerQueues, chunk: int, threads: int) -> Callable[..., Any]:
    """``keep_owned(owner, place, burst, starts, network, chunks, recall)``: an owner's firings into the burst's list.

    They lie in ``chunks``; those of the owner's i-th chunk go ``starts[i]`` behind ``place``.
    """
    turns, per_owner, size = np.uint32(lists_kept(variant) - 1), np.uint32(queues.span // chunk), np.uint32(chunk)
    team = 1 if SIMULATED else WARP
    lanes, teams = np.uint32(team), np.uint32(threads // team)

    def keep_owned(
        owner: np.uint32,
        place: np.int64,
        burst: np.uint32,
        starts: Ids,
        network: Network,
        chunks: Chunks,
        recall: Recall,
    ) -> None:
        thread = np.uint32(cuda.threadIdx.x)
        at = np.uint64(np.uint64(burst & turns) * np.uint64(network.neurons) + np.uint64(place))
        own = np.uint32(thread // lanes)
        while own < per_owner:
            first = np.uint32((owner * per_owner + own) * size)
            start, end = starts[own], starts[np.uint32(own + np.uint32(1))]
            entry = np.uint32(start + thread % lanes)
            while entry < end:
                source = chunks.chunk_ids[np.uint32(first + np.uint32(entry - start))]
                recall.recalled_ids[np.uint64(at + np.uint64(entry))] = source
                entry = np.uint32(entry + lanes)
            own = np.uint32(own + teams)

    return cuda.jit(device=True)(keep_owned)  # type: ignore[no-any-return]


def make_owners_burst(shard: ShardVariant) -> Callable[..., None]:
    """``burst(...)``: one burst but for its sending, as ``kernels.burst`` does it; a block takes an owner."""
    variant, queues = shard.variant, shard.variant.queues
    assert queues is not None
    threads, chunk = WARP if SIMULATED else shard.threads, shard.chunk
    per_thread, word = chunk // threads, variant.word.added
    per_owner = queues.span // chunk
    fences = per_owner + 1
    empty, take_queue = make_empty(variant, queues, threads), make_take_queue(variant, queues, threads)
    fetch_state, fetch_words = make_fetch(shard, queues, threads, per_thread)
    consume_chunk = make_consume_chunk(shard, threads, per_thread)
    count_chunk, keep_chunk = make_count_chunk(), make_keep_chunk(replace(variant, recalled=0), threads)
    keep_owned = make_keep_owned(variant, queues, chunk, threads)
    steer, enter, halt = make_steer(shard), make_enter(), make_halt()
    homeostats, advance_classes = variant.extras.homeostats, make_advance_classes()
    classes_of = make_classes(shard)
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    owners, span, size = np.uint32(queues.owners), np.uint32(queues.span), np.uint32(chunk)
    tally_places, zero, half_word = np.uint32(TALLIES - 1), np.uint32(0), types.int32

    def burst(
        steering: Steering,
        exchange: Exchange,
        identity: Identity,
        fcl: Fcl,
        neurons: Neurons,
        chunks: Chunks,
        recall: Recall,
        network: Network,
        queue: Queues,
        turn: Turn,
    ) -> None:
        own = cuda.shared.array(0, half_word)
        fired = Fired(
            cuda.shared.array(chunk, np.uint32),
            cuda.shared.array(chunk, np.float32),
            cuda.shared.array(2, np.int32),
        )
        starts = cuda.shared.array(fences, np.uint32)
        list_place = cuda.shared.array(1, np.int64)
        words, v = cuda.local.array(per_thread, word), cuda.local.array(per_thread, np.float32)
        rc, cc = cuda.local.array(per_thread, np.int32), cuda.local.array(per_thread, np.int32)
        unused = cuda.local.array(per_thread, np.uint8)
        loaded = Loaded(
            words, cuda.local.array(per_thread, word), v, rc, cc, unused, unused, Traits(unused, unused, v, v)
        )
        thread = np.uint32(cuda.threadIdx.x)
        items = np.uint32((np.uint64(network.neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        let_next_start()
        empty(own)
        wait_for_last()
        done, burst_number, _, _, _ = steer(steering, exchange, fcl, network, turn)
        if not done:
            if cuda.grid(1) == 0:
                halt(steering, turn)
            return
        classes = classes_of(burst_number, turn, neurons.extras, ())
        moment = Moment(np.uint64(0), burst_number, False, turn.stimulated, classes)
        owner = np.uint32(cuda.blockIdx.x)
        while owner < owners:
            begin = np.uint32(owner * span)
            fetch_state(begin, neurons.state, network, loaded)
            take_queue(owner, own, network.neurons, queue, fcl)
            candidates = np.uint32(0)
            for part in range(per_owner):
                local, count = np.uint32(np.uint32(part) * size), zero
                first = np.uint32(begin + local)
                item = np.uint32(first // size)
                if item < items:
                    fetch_words(local, own, loaded)
                    count = consume_chunk(first, moment, loaded, fired, fcl, neurons, network, identity)
                    if part + 1 < per_owner:
                        fetch_state(np.uint32(first + size), neurons.state, network, loaded)
                    keep_chunk(first, list_place, burst_number, count, fired, chunks, network, recall)
                if thread == zero:
                    if part == 0:
                        starts[0] = zero
                    starts[part + 1] = np.uint32(starts[part] + count)
                    if item < items:
                        candidates = np.uint32(candidates + np.uint32(fired.found[1]))
                        count_chunk(item, burst_number, count, items, chunks)
                cuda.syncthreads()
            if thread == zero:
                counted = np.uint64((np.uint64(starts[per_owner]) << np.uint64(32)) + np.uint64(candidates))
                before = np.uint64(cuda.atomic.add(steering.tallies, burst_number & tally_places, counted))
                list_place[0] = np.int64(before >> np.uint64(32))
            cuda.syncthreads()
            keep_owned(owner, list_place[0], burst_number, starts, network, chunks, recall)
            owner = np.uint32(owner + np.uint32(cuda.gridDim.x))
            empty(own)
            cuda.syncthreads()
        if cuda.grid(1) == 0:
            enter(steering, turn, burst_number, zero)
        if homeostats and cuda.blockIdx.x == 0:
            advance_classes(burst_number, neurons.extras)

    return burst
