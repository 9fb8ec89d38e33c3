"""A shard's part of a burst: the dynamics, which publish.

Every firing goes to all shards the moment its block knows it; the last block to finish sends the count after them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Exchange,
    Fcl,
    Identity,
    Log,
    Network,
    Outside,
    Parameters,
    State,
    Steering,
    Turn,
    Words,
)
from burstproof.engine.cuda.exchange.words import (
    CENSUS_WORD,
    COUNT_WORD,
    FAILED,
    FULL_BIT,
    HEADER_WORDS,
    MOST_SHARDS,
    SEQUENCE,
)
from burstproof.engine.cuda.kernels.consume import make_consume, make_fetch
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, HALTED, INDEX, KEEP, LIMIT, REPORT_HEAD, SLOT, USED
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.neuron import Found
from burstproof.engine.cuda.kernels.tally import make_block_tally
from burstproof.engine.cuda.kernels.warp import WARP, make_append
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.profile import BATCH_PATH_CANDIDATES

_DRAW_STEP = (2654435761 * pow(1597334677, -1, 1 << 32)) % (1 << 32)
"""A draw depends on id * 2654435761 + burst * 1597334677 mod 2^32: so much more burst stands for one more id."""


def make_id_of(spaced: bool) -> Callable[..., Any]:
    """``id_of(neuron, identity)``: id in the network."""

    def listed(neuron: np.uint32, identity: Identity) -> Any:
        return identity.members[neuron]

    def computed(neuron: np.uint32, identity: Identity) -> Any:
        return np.uint32(identity.first_id + neuron * identity.id_step)

    return cuda.jit(device=True)(computed if spaced else listed)  # type: ignore[no-any-return]


def make_shard_seed(spaced: bool) -> Callable[..., Any]:
    """``seed(neuron, burst_seed, identity)``: draws go by ids, not by places in the shard."""
    id_of, draw_step = make_id_of(spaced), np.uint32(_DRAW_STEP)

    def seed(neuron: np.uint32, burst_seed: np.uint32, identity: Identity) -> Any:
        distance = np.uint32(id_of(neuron, identity) - neuron)
        return np.uint32(burst_seed + np.uint32(distance * draw_step))

    return cuda.jit(device=True)(seed)  # type: ignore[no-any-return]


def make_dynamics(shard: ShardVariant) -> Callable[..., None]:
    """``dynamics(...)``: one pass over the shard's neurons; what fires is published to all ``sinks`` and logged.

    ``done`` counts, in one number, blocks that are finished, and firings and candidates in ``bits`` bits each: where a
    chunk's firings go follows from what was counted before it.
    """
    variant = shard.variant
    threads = WARP if SIMULATED else shard.threads
    per_thread = shard.per_thread
    chunk = threads * per_thread
    fetch, link_to = make_fetch(variant), make_link()
    consume = make_consume(variant, True, lambda: make_shard_seed(shard.spaced_ids))
    store, word, wait, keep_route, near = link_to.store, link_to.word, link_to.wait, link_to.keep, link_to.near
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    append, block_tally = make_append(), make_block_tally()
    id_of = make_id_of(shard.spaced_ids)
    carries, count_ahead, delayed = shard.carries_potentials, variant.count_ahead, variant.delays
    number, silent, one, lanes = variant.accumulator, np.float32(0), np.uint32(1), np.uint32(WARP - 1)
    block, size = np.uint32(threads), np.uint32(chunk)
    batch_from, header = np.int64(BATCH_PATH_CANDIDATES), np.uint64(HEADER_WORDS)

    def dynamics(
        steering: Steering,
        exchange: Exchange,
        identity: Identity,
        outside: Outside,
        fcl: Fcl,
        state: State,
        parameters: Parameters,
        log: Log,
        network: Network,
        done: Words,
        bits: np.uint32,
        turn: Turn,
    ) -> None:
        fired_ids = cuda.shared.array(chunk, np.uint32)
        fired_potentials = cuda.shared.array(chunk, np.float32)
        tallies = cuda.shared.array(4, np.int32)
        places = cuda.shared.array(2, np.int64)
        total = cuda.local.array(per_thread, number)
        v = cuda.local.array(per_thread, np.float32)
        rc = cuda.local.array(per_thread, np.int32)
        control, report, neurons = steering.control, steering.report, network.neurons
        link, sinks, inboxes = exchange.link, exchange.sinks, exchange.inboxes
        routes = cuda.shared.array(MOST_SHARDS, np.uint64)
        thread = np.uint32(cuda.threadIdx.x)
        lane = np.uint32(thread & lanes)
        item = np.uint32(cuda.blockIdx.x)
        wait_for_last()
        index, limit, used, keeps = report[INDEX] + 1, report[LIMIT], report[USED], report[KEEP]
        burst, last_slot, halted = control[BURST] + 1, control[SLOT], control[HALTED]
        number_of, failed = link[SEQUENCE] + 1, link[FAILED]
        if thread < np.uint32(sinks.size):
            keep_route(sinks, thread, routes)
        slot = np.uint32(0)
        if delayed:
            slot = np.uint32(np.uint32(last_slot) + one)
            if slot == fcl.ring:
                slot = np.uint32(0)
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        for p in range(per_thread):
            neuron = np.uint32(np.uint32(item * size) + thread + np.uint32(p) * block)
            total[p], v[p], rc[p] = fetch(neuron, neurons, base, fcl, state)
        let_next_start()
        if (np.int32(index >= limit) | np.int32(halted) | np.int32(failed)) != 0:
            if cuda.grid(1) == 0:
                control[ACTIVE] = 0
            return
        burst_seed, sequence = np.uint32(burst), np.uint32(number_of)
        side = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words))
        start = np.int64(0)
        if keeps != 0:
            start = used
        batch = False
        if count_ahead:
            if thread == np.uint32(0):
                everywhere = np.int64(0)
                for box in range(inboxes.size):
                    place = np.uint64(side + np.uint64(CENSUS_WORD))
                    everywhere += np.int64(wait(inboxes, box, place, sequence, exchange))
                places[1] = everywhere
            cuda.syncthreads()
            batch = places[1] >= batch_from
        items = np.uint32((np.uint64(neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        going_on = True
        while going_on:
            first = np.uint32(item * size)
            if thread < np.uint32(4):
                tallies[thread] = 0
            cuda.syncthreads()
            seen = np.int32(0)
            for p in range(per_thread):
                neuron = np.uint32(first + thread + np.uint32(p) * block)
                joins, potential, is_candidate = False, silent, False
                if neuron < neurons:
                    joins, potential, is_candidate = consume(
                        neuron,
                        base,
                        burst_seed,
                        batch,
                        turn.stimulated,
                        Found(total[p], v[p], rc[p]),
                        fcl,
                        outside,
                        state,
                        parameters,
                        network,
                        identity,
                    )
                    if is_candidate:
                        seen = np.int32(seen + 1)
                append(joins, lane, tallies, 0, neuron, potential, fired_ids, fired_potentials)
            block_tally(seen, lane, tallies, 1)
            cuda.syncthreads()
            count = np.uint32(tallies[0])
            item = np.uint32(item + np.uint32(cuda.gridDim.x))
            going_on = bool(item < items)
            if going_on:
                for p in range(per_thread):
                    neuron = np.uint32(np.uint32(item * size) + thread + np.uint32(p) * block)
                    total[p], v[p], rc[p] = fetch(neuron, neurons, base, fcl, state)
            if thread == np.uint32(0):
                width = np.uint64(bits)
                mask = np.uint64((np.uint64(1) << width) - np.uint64(1))
                mine = np.uint64((np.uint64(count) << width) + np.uint64(tallies[1]))
                if not going_on:
                    mine = np.uint64(mine + (np.uint64(1) << np.uint64(width + width)))
                before = np.uint64(cuda.atomic.add(done, 0, mine))
                places[0] = np.int64(np.uint64(before >> width) & mask)
                finished = np.uint64(before >> np.uint64(width + width)) + np.uint64(1)
                if not going_on and finished == np.uint64(cuda.gridDim.x):
                    after = np.uint64(before + mine)
                    done[0] = np.uint64(0)
                    fired = np.int64(np.uint64(after >> width) & mask)
                    value = np.uint32(fired)
                    if keeps != 0:
                        report[USED] = start + fired
                        if index + 1 < limit and start + fired + np.int64(neurons) > steering.capacity:
                            value = np.uint32(value | np.uint32(FULL_BIT))
                    for sink in range(sinks.size):
                        place = np.uint64(side + np.uint64(COUNT_WORD))
                        store(near(sinks, routes), sink, place, word(sequence, value))
                    report[REPORT_HEAD + 2 * index] = fired
                    report[REPORT_HEAD + 2 * index + 1] = np.int64(after & mask)
                    report[INDEX] = index
                    control[BURST] = burst
                    control[SLOT] = np.int64(slot)
                    control[ACTIVE] = 1
                    link[SEQUENCE] = number_of
            cuda.syncthreads()
            entry = thread
            while entry < count:
                place_in_list = np.uint64(np.uint64(places[0]) + np.uint64(entry))
                potential = fired_potentials[entry]
                source = id_of(fired_ids[entry], identity)
                published = np.uint64(side + header + place_in_list)
                for sink in range(sinks.size):
                    store(near(sinks, routes), sink, published, word(sequence, source))
                    if carries:
                        bits_of = np.float32(potential).view(np.uint32)
                        at = np.uint64(published + np.uint64(exchange.room))
                        store(near(sinks, routes), sink, at, word(sequence, bits_of))
                log.log_ids[np.uint64(np.uint64(start) + place_in_list)] = source
                log.log_potentials[np.uint64(np.uint64(start) + place_in_list)] = potential
                entry = np.uint32(entry + block)
            if going_on:
                cuda.syncthreads()

    return dynamics
