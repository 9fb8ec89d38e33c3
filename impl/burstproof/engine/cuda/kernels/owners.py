"""One burst of a network with queues per owner (``kernels.queues``): each block adds up what its own neurons get.

A block takes the queue of an owner in shared memory, then does the dynamics of the owner's neurons from there. So no
word of the FCL is read or cleared but for owners whose queue was full.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import types

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Chunks,
    Exchange,
    Fcl,
    Identity,
    Ids,
    Network,
    Neurons,
    Queues,
    Recall,
    Steering,
    Turn,
)
from burstproof.engine.cuda.kernels.awake import TEAM, make_put_aside, make_take_aside, make_wakes, places_aside
from burstproof.engine.cuda.kernels.burst import make_count_chunk
from burstproof.engine.cuda.kernels.classes import make_classes
from burstproof.engine.cuda.kernels.consume import (
    Loaded,
    Moment,
    make_consume,
    make_fetch_neuron,
    make_hand_over,
    make_prefetch_state,
)
from burstproof.engine.cuda.kernels.control import TALLIES
from burstproof.engine.cuda.kernels.features import Traits, make_advance_classes
from burstproof.engine.cuda.kernels.own_sums import make_empty, make_take_queue, make_word_in
from burstproof.engine.cuda.kernels.steer import make_enter, make_halt, make_steer
from burstproof.engine.cuda.kernels.warp import WARP, Counters, make_append, make_block_tally
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, lists_kept

_PARTS_AHEAD = 4
"""Of so many of its next chunks a block has what it will load of their neurons in the L2 cache."""


def make_consume_owned(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``consume_owned(begin, moment, own, ends, found, ...)``: the dynamics of an owner's neurons, from ``begin`` on.

    What fires goes into ``chunks``; of the owner's i-th chunk it ends before ``ends[i]``, at first the chunk's first
    neuron. ``found[0]`` counts candidates. No barrier: while a warp waits for what it has loaded, others go on, and
    each thread loads the neurons of its next chunk before it goes on to those of this one. Entry ``per_thread`` of what
    is ``loaded`` is that of the neuron at hand. In ``aside`` warps note what they put off.
    """
    variant, block = shard.variant, np.uint32(threads)
    per_thread, per_owner, size = shard.chunk // threads, queues.span // shard.chunk, np.uint32(shard.chunk)
    fetch, consume, (_, _, word_at) = make_fetch_neuron(shard), make_consume(shard), make_word_in(variant, queues)
    append, block_tally, hand_over = make_append(), make_block_tally(), make_hand_over()
    prefetch_state, zero = make_prefetch_state(shard), np.uint32(0)
    lanes, silent, none = np.uint32(WARP - 1), np.float32(0), np.int32(0)

    def consume_owned(
        begin: np.uint32,
        moment: Moment,
        own: Any,
        ends: Counters,
        found: Counters,
        aside: Ids,
        loaded: Loaded,
        fcl: Fcl,
        neurons: Neurons,
        chunks: Chunks,
        network: Network,
        identity: Identity,
    ) -> None:
        thread, candidates = np.uint32(cuda.threadIdx.x), none
        lane = np.uint32(thread & lanes)
        for part in range(per_owner):
            if thread == zero:
                prefetch_state(np.uint32(begin + np.uint32(part + _PARTS_AHEAD) * size), size, neurons, network)
            for p in range(per_thread):
                local = np.uint32(np.uint32(part) * size + np.uint32(p) * block + thread)
                neuron = np.uint32(begin + local)
                hand_over(p, per_thread, loaded)
                fetch(np.uint32(neuron + size), p, neurons, network, loaded)
                joins, potential = False, silent
                if neuron < network.neurons:
                    loaded.word[per_thread] = word_at(own, local)
                    joins, potential, is_candidate = consume(
                        neuron, per_thread, moment, loaded, fcl, neurons, network, identity
                    )
                    if is_candidate:
                        candidates = np.int32(candidates + 1)
                append(joins, lane, ends, part, neuron, potential, chunks.chunk_ids, chunks.chunk_potentials)
        block_tally(candidates, lane, found, 0)

    return cuda.jit(device=True)(consume_owned)  # type: ignore[no-any-return]


def make_consume_awake(shard: ShardVariant, queues: OwnerQueues, threads: int) -> Callable[..., Any]:
    """``consume_awake(begin, ...)``: as ``consume_owned``, where those that are awake wait until they fill a warp."""
    per_thread, per_owner, size = shard.chunk // threads, queues.span // shard.chunk, np.uint32(shard.chunk)
    fetch, word_at = make_fetch_neuron(shard), make_word_in(shard.variant, queues)[2]
    consume, consume_quiet, wakes = make_consume(shard), make_consume(shard, quiet=True), make_wakes(shard)
    put_aside, take_aside = make_put_aside(per_thread), make_take_aside(per_thread)
    block_tally, hand_over, last = make_block_tally(), make_hand_over(), per_owner - 1
    prefetch_state = make_prefetch_state(shard)
    block, team, lanes, zero, none = np.uint32(threads), np.uint32(TEAM), np.uint32(WARP - 1), np.uint32(0), np.int32(0)

    def consume_awake(
        begin: np.uint32,
        moment: Moment,
        own: Any,
        ends: Counters,
        found: Counters,
        aside: Ids,
        loaded: Loaded,
        fcl: Fcl,
        neurons: Neurons,
        chunks: Chunks,
        network: Network,
        identity: Identity,
    ) -> None:
        thread, candidates, waiting = np.uint32(cuda.threadIdx.x), none, zero
        for part in range(per_owner):
            if thread == zero:
                prefetch_state(np.uint32(begin + np.uint32(part + _PARTS_AHEAD) * size), size, neurons, network)
            for p in range(per_thread):
                local = np.uint32(np.uint32(part) * size + np.uint32(p) * block + thread)
                neuron, wake = np.uint32(begin + local), False
                hand_over(p, per_thread, loaded)
                fetch(np.uint32(neuron + size), p, neurons, network, loaded)
                if neuron < network.neurons:
                    loaded.word[per_thread] = word_at(own, local)
                    wake = wakes(neuron, per_thread, moment, loaded, network, identity)
                    if not wake:
                        _, _, is_candidate = consume_quiet(
                            neuron, per_thread, moment, loaded, fcl, neurons, network, identity
                        )
                        if is_candidate:
                            candidates = np.int32(candidates + 1)
                waiting = put_aside(wake, local, waiting, aside)
            while waiting >= team or (part == last and waiting > zero):
                local, exists = take_aside(waiting, aside)
                neuron = np.uint32(begin + local)
                waiting = np.uint32(waiting - min(waiting, team))
                if exists:
                    fetch(neuron, per_thread, neurons, network, loaded)
                    loaded.word[per_thread] = word_at(own, local)
                    joins, potential, is_candidate = consume(
                        neuron, per_thread, moment, loaded, fcl, neurons, network, identity
                    )
                    if is_candidate:
                        candidates = np.int32(candidates + 1)
                    if joins:
                        place = cuda.atomic.add(ends, np.uint32(local // size), np.int32(1))
                        chunks.chunk_ids[place] = neuron
                        chunks.chunk_potentials[place] = potential
        block_tally(candidates, np.uint32(thread & lanes), found, 0)

    return cuda.jit(device=True)(consume_awake)  # type: ignore[no-any-return]


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
    per_thread, per_owner = chunk // threads, queues.span // chunk
    fences, kept = per_owner + 1, per_thread + 1
    prefetch_state = make_prefetch_state(shard)
    empty, take_queue = make_empty(variant, queues, threads), make_take_queue(variant, queues, threads)
    make_dynamics = make_consume_awake if shard.gathers_awake else make_consume_owned
    fetch, consume_owned = make_fetch_neuron(shard), make_dynamics(shard, queues, threads)
    aside_places = places_aside(threads, per_thread) if shard.gathers_awake else 1
    count_chunk = make_count_chunk()
    keep_owned = make_keep_owned(variant, queues, chunk, threads)
    steer, enter, halt = make_steer(shard), make_enter(), make_halt()
    homeostats, advance_classes = variant.extras.homeostats, make_advance_classes()
    classes_of = make_classes(shard)
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    word = variant.word.added
    owners, span, size = np.uint32(queues.owners), np.uint32(queues.span), np.uint32(chunk)
    parts, block = np.uint32(per_owner), np.uint32(threads)
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
        ends = cuda.shared.array(per_owner, np.int32)
        starts = cuda.shared.array(fences, np.uint32)
        found = cuda.shared.array(1, np.int32)
        aside = cuda.shared.array(aside_places, np.uint16)
        list_place = cuda.shared.array(1, np.int64)
        words, v = cuda.local.array(kept, word), cuda.local.array(kept, np.float32)
        rc, cc = cuda.local.array(kept, np.int32), cuda.local.array(kept, np.int32)
        rate, leak = cuda.local.array(kept, np.float32), cuda.local.array(kept, np.float32)
        traits = Traits(cuda.local.array(kept, np.uint32), rate, leak)
        marks, decays = cuda.local.array(kept, np.uint8), cuda.local.array(kept, np.float32)
        loaded = Loaded(words, words, v, rc, cc, marks, decays, traits)
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
            for p in range(per_thread):
                fetch(np.uint32(begin + np.uint32(p) * block + thread), p, neurons, network, loaded)
            part = thread
            while part < parts:
                ends[part] = np.int32(begin + part * size)
                part = np.uint32(part + block)
            if thread == zero:
                found[0] = 0
                prefetch_state(np.uint32(begin + size), np.uint32(size * np.uint32(_PARTS_AHEAD - 1)), neurons, network)
            take_queue(owner, own, network.neurons, queue, fcl)
            consume_owned(begin, moment, own, ends, found, aside, loaded, fcl, neurons, chunks, network, identity)
            cuda.syncthreads()
            part = thread
            while part <= parts:
                start = zero
                for earlier in range(part):
                    start = np.uint32(start + np.uint32(ends[earlier]) - np.uint32(begin + np.uint32(earlier) * size))
                starts[part] = start
                item = np.uint32(owner * parts + part)
                if part < parts and item < items:
                    count_chunk(item, burst_number, np.uint32(np.uint32(ends[part]) - item * size), items, chunks)
                if part == parts:
                    counted = np.uint64((np.uint64(start) << np.uint64(32)) + np.uint64(found[0]))
                    before = np.uint64(cuda.atomic.add(steering.tallies, burst_number & tally_places, counted))
                    list_place[0] = np.int64(before >> np.uint64(32))
                part = np.uint32(part + block)
            cuda.syncthreads()
            keep_owned(owner, list_place[0], burst_number, starts, network, chunks, recall)
            owner = np.uint32(owner + np.uint32(cuda.gridDim.x))
            if owner < owners:
                empty(own)
                cuda.syncthreads()
        if cuda.grid(1) == 0:
            enter(steering, turn, burst_number, zero)
        if homeostats and cuda.blockIdx.x == 0:
            advance_classes(burst_number, neurons.extras)

    return burst
