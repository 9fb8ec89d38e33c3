"""The dense pass over all neurons, for bursts of several kernels: consume the slot, list and publish the firings.

Between shards a block sends each firing to all of them at once; the last block to finish sends the count after them. On
one device the last block writes where the list lies, and whether the log has room for another burst.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Counting,
    Exchange,
    Fcl,
    History,
    Identity,
    Log,
    Longs,
    Network,
    Neurons,
    Outside,
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
from burstproof.engine.cuda.kernels.cells import make_is_candidate, make_load
from burstproof.engine.cuda.kernels.classes import make_classes
from burstproof.engine.cuda.kernels.consume import FOUND, Fired, Moment, make_consume_chunk
from burstproof.engine.cuda.kernels.control import (
    ACTIVE,
    BATCH,
    BURST,
    COUNT,
    HALTED,
    INDEX,
    KEEP,
    LIMIT,
    REPORT_HEAD,
    SLOT,
    START,
    USED,
)
from burstproof.engine.cuda.kernels.features import Traits, make_advance_classes
from burstproof.engine.cuda.kernels.fetch import Loaded, make_fetch_chunk
from burstproof.engine.cuda.kernels.identity import make_id_of
from burstproof.engine.cuda.kernels.link import make_link, make_tell
from burstproof.engine.cuda.kernels.plastic import make_note_firing
from burstproof.engine.cuda.kernels.stimulus import make_going
from burstproof.engine.cuda.kernels.warp import make_block_tally
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.profile import BATCH_PATH_CANDIDATES


def make_slot_after(delayed: bool) -> Callable[..., Any]:
    """``slot_after(control, fcl)`` -> uint32: index of the slot that the coming burst consumes; 0 without delays."""

    def slot_after(control: Longs, fcl: Fcl) -> Any:
        slot = np.uint32(0)
        if delayed:
            slot = np.uint32(np.uint32(control[SLOT]) + np.uint32(1))
            if slot == fcl.ring:
                slot = np.uint32(0)
        return slot

    return cuda.jit(device=True)(slot_after)  # type: ignore[no-any-return]


def make_count_ahead(shard: ShardVariant) -> Callable[..., None]:
    """``count_ahead(...)``: count the coming burst's candidates, for the batch path; shards tell each other theirs."""
    exchanges, slot_after = shard.exchanges, make_slot_after(shard.variant.delays)
    load, holds_candidate = make_load(shard.variant), make_is_candidate(shard.variant)
    going, block_tally, tell = make_going(exchanges), make_block_tally(), make_tell()
    zero = shard.variant.accumulator(0)
    lanes, low, one = np.uint32(WARP - 1), np.uint64(0xFFFFFFFF), np.uint32(1)

    def count_ahead(
        steering: Steering, exchange: Exchange, fcl: Fcl, outside: Outside, network: Network, counting: Counting
    ) -> None:
        tallies = cuda.shared.array(1, np.int32)
        if not going(steering, exchange):
            return
        done, thread = counting.done, np.uint32(cuda.threadIdx.x)
        if thread == np.uint32(0):
            tallies[0] = 0
        cuda.syncthreads()
        base = np.uint64(np.uint64(slot_after(steering.control, fcl)) * np.uint64(fcl.stride))
        neuron = np.uint64(cuda.grid(1))
        candidates = np.int32(0)
        while neuron < np.uint64(network.neurons):
            place = np.uint64(base + neuron)
            is_candidate = holds_candidate(load(place, fcl), place, fcl)
            if is_candidate or outside.outside[neuron] != zero or np.int64(neuron) == network.power_neuron:
                candidates = np.int32(candidates + 1)
            neuron = np.uint64(neuron + np.uint64(cuda.gridsize(1)))
        block_tally(candidates, np.uint32(thread & lanes), tallies, 0)
        cuda.syncthreads()
        if thread == np.uint32(0):
            mine = np.uint64((np.uint64(1) << np.uint64(32)) + np.uint64(tallies[0]))
            before = np.uint64(cuda.atomic.add(done, 1, mine))
            if np.uint64(before >> np.uint64(32)) == np.uint64(cuda.gridDim.x) - np.uint64(1):
                done[1] = np.uint64(0)
                total = np.uint32((before + mine) & low)
                if exchanges:
                    sequence = np.uint32(exchange.link[SEQUENCE] + 1)
                    side = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words))
                    tell(exchange, exchange.sinks, np.uint64(side + np.uint64(CENSUS_WORD)), sequence, total)
                else:
                    steering.control[BATCH] = np.int64(total)

    return count_ahead


def make_counted_ahead(shard: ShardVariant) -> Callable[..., Any]:
    """``counted_ahead(steering, exchange, side, sequence)`` -> int64, one thread: candidates of all shards."""
    wait = make_link().wait

    def alone(steering: Steering, exchange: Exchange, side: np.uint64, sequence: np.uint32) -> Any:
        return np.int64(steering.control[BATCH])

    def together(steering: Steering, exchange: Exchange, side: np.uint64, sequence: np.uint32) -> Any:
        total = np.int64(0)
        for box in range(exchange.inboxes.size):
            place = np.uint64(side + np.uint64(CENSUS_WORD))
            total += np.int64(wait(exchange.inboxes, box, place, sequence, exchange))
        return total

    return cuda.jit(device=True)(together if shard.exchanges else alone)  # type: ignore[no-any-return]


def make_finish(shard: ShardVariant) -> Callable[..., Any]:
    """``finish(steering, exchange, sinks, ..., fired, candidates)``, one thread of the last block.

    Writes the burst's counts to the report, and to control what the following kernels and the next burst need. Only
    this thread may write what others read at their start: all blocks are done.
    """
    exchanges, tell = shard.exchanges, make_tell()

    def finish(
        steering: Steering,
        exchange: Exchange,
        sinks: Words,
        network: Network,
        slot: np.uint32,
        sequence: np.uint32,
        fired: np.int64,
        candidates: np.int64,
    ) -> None:
        control, report = steering.control, steering.report
        index, start, full = report[INDEX] + 1, np.int64(0), False
        if report[KEEP] != 0:
            start = report[USED]
            report[USED] = start + fired
            full = index + 1 < report[LIMIT] and start + fired + np.int64(network.neurons) > steering.capacity
        if exchanges:
            value = np.uint32(fired)
            if full:
                value = np.uint32(value | np.uint32(FULL_BIT))
            side = np.uint64(np.uint64(sequence & np.uint32(1)) * np.uint64(exchange.words))
            tell(exchange, sinks, np.uint64(side + np.uint64(COUNT_WORD)), sequence, value)
            exchange.link[SEQUENCE] += 1
        else:
            control[START] = start
            control[COUNT] = fired
            if full:
                control[HALTED] = 1
        report[REPORT_HEAD + 2 * index] = fired
        report[REPORT_HEAD + 2 * index + 1] = candidates
        report[INDEX] = index
        control[BURST] += 1
        control[SLOT] = np.int64(slot)
        control[ACTIVE] = 1

    return cuda.jit(device=True)(finish)  # type: ignore[no-any-return]


def make_list_firing(shard: ShardVariant) -> Callable[..., Any]:
    """``list_firing(place, start, source, potential, ...)``: write one firing to the log, and send it to all shards.

    On one device plasticity notes it at once; shards note the firings that they collect (``kernels.lists``).
    """
    link_to, note_firing = make_link(), make_note_firing(shard.variant)
    store, word, near = link_to.store, link_to.word, link_to.near
    exchanges, carries, plastic = shard.exchanges, shard.carries_potentials, shard.variant.plastic
    header = np.uint64(HEADER_WORDS)

    def list_firing(
        place: np.uint64,
        start: np.int64,
        source: np.uint32,
        potential: np.float32,
        exchange: Exchange,
        sinks: Words,
        side: np.uint64,
        sequence: np.uint32,
        log: Log,
        history: History,
        burst: np.int64,
    ) -> None:
        if exchanges:
            published = np.uint64(side + header + place)
            for sink in range(exchange.sinks.size):
                store(near(exchange.sinks, sinks), sink, published, word(sequence, source))
                if carries:
                    bits_of = np.float32(potential).view(np.uint32)
                    at = np.uint64(published + np.uint64(exchange.room))
                    store(near(exchange.sinks, sinks), sink, at, word(sequence, bits_of))
        elif plastic:
            note_firing(source, burst, history)
        log.log_ids[np.uint64(np.uint64(start) + place)] = source
        log.log_potentials[np.uint64(np.uint64(start) + place)] = potential

    return cuda.jit(device=True)(list_firing)  # type: ignore[no-any-return]


def make_add_up(shard: ShardVariant) -> Callable[..., Any]:
    """``add_up(steering, exchange, sinks, ..., count, candidates, ends)`` -> int64, one thread of a block.

    Adds a chunk's firings and candidates to the totals, and returns the index of its first firing in the list: the
    firings counted before. ``ends``: the block has no other chunk. The thread of the last block finishes the burst.
    """
    finish, one = make_finish(shard), np.uint64(1)

    def add_up(
        steering: Steering,
        exchange: Exchange,
        sinks: Words,
        network: Network,
        counting: Counting,
        slot: np.uint32,
        sequence: np.uint32,
        count: np.uint32,
        candidates: np.int32,
        ends: bool,
    ) -> Any:
        width = np.uint64(counting.bits)
        twice, mask = np.uint64(width + width), np.uint64((one << width) - one)
        mine = np.uint64((np.uint64(count) << width) + np.uint64(candidates))
        if ends:
            mine = np.uint64(mine + (one << twice))
        before = np.uint64(cuda.atomic.add(counting.done, 0, mine))
        if ends and np.uint64(before >> twice) + one == np.uint64(cuda.gridDim.x):
            after = np.uint64(before + mine)
            counting.done[0] = np.uint64(0)
            total, tested = np.int64(np.uint64(after >> width) & mask), np.int64(after & mask)
            finish(steering, exchange, sinks, network, slot, sequence, total, tested)
        return np.int64(np.uint64(before >> width) & mask)

    return cuda.jit(device=True)(add_up)  # type: ignore[no-any-return]


def make_dynamics(shard: ShardVariant) -> Callable[..., None]:
    """``dynamics(...)``: one pass over the neurons, chunk by chunk, which lists the firings.

    ``counting`` packs three counters into one word: finished blocks, firings and candidates, the last two in ``bits``
    bits each. So one atomic addition also says where a chunk's firings go in the list.
    """
    variant, exchanges = shard.variant, shard.exchanges
    threads = WARP if SIMULATED else shard.threads
    per_thread = shard.per_thread
    chunk = threads * per_thread
    fetch_chunk = make_fetch_chunk(shard, threads, per_thread)
    consume_chunk = make_consume_chunk(shard, threads, per_thread)
    add_up, list_firing, counted_ahead = make_add_up(shard), make_list_firing(shard), make_counted_ahead(shard)
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    copy_address, id_of, slot_after = make_link().keep, make_id_of(shard), make_slot_after(variant.delays)
    homeostats, advance_classes = variant.extras.homeostats, make_advance_classes()
    classes_of = make_classes(shard)
    count_ahead, word, one = variant.count_ahead, variant.word.added, np.uint32(1)
    block, size, batch_from = np.uint32(threads), np.uint32(chunk), np.int64(BATCH_PATH_CANDIDATES)

    def dynamics(
        steering: Steering,
        exchange: Exchange,
        identity: Identity,
        fcl: Fcl,
        neurons: Neurons,
        log: Log,
        history: History,
        network: Network,
        counting: Counting,
        turn: Turn,
    ) -> None:
        fired = Fired(
            cuda.shared.array(chunk, np.uint32),
            cuda.shared.array(chunk, np.float32),
            cuda.shared.array(FOUND, np.int32),
        )
        words, v = cuda.local.array(per_thread, word), cuda.local.array(per_thread, np.float32)
        rc = cuda.local.array(per_thread, np.int32)
        unused = cuda.local.array(per_thread, np.uint32)
        loaded = Loaded(words, words, v, rc, rc, unused, v, Traits(unused, v, v), unused)
        shared = cuda.shared.array(2, np.int64)
        sinks = cuda.shared.array(MOST_SHARDS if exchanges else 1, np.uint64)
        control, report = steering.control, steering.report
        thread, item = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x)
        wait_for_last()
        burst, slot = control[BURST] + 1, slot_after(control, fcl)
        index, limit, halted, used, keeps = (
            report[INDEX] + 1,
            report[LIMIT],
            control[HALTED],
            report[USED],
            report[KEEP],
        )
        sequence, side, start = np.uint32(0), np.uint64(0), np.int64(0)
        failed = np.int64(0)
        if exchanges:
            sequence, failed = np.uint32(exchange.link[SEQUENCE] + 1), exchange.link[FAILED]
            side = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words))
            if thread < np.uint32(exchange.sinks.size):
                copy_address(exchange.sinks, thread, sinks)
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        fetch_chunk(np.uint32(item * size), base, fcl, neurons, network, loaded)
        let_next_start()
        if keeps != 0:
            start = used
        if (np.int32(index >= limit) | np.int32(halted) | np.int32(failed)) != 0:
            if cuda.grid(1) == 0:
                control[ACTIVE] = 0
            return
        batch = False
        if count_ahead:
            if thread == np.uint32(0):
                shared[1] = counted_ahead(steering, exchange, side, sequence)
            cuda.syncthreads()
            batch = shared[1] >= batch_from
        classes = classes_of(np.uint32(burst), turn, neurons.extras, ())
        moment = Moment(base, np.uint32(burst), batch, turn.stimulated, classes)
        items = np.uint32((np.uint64(network.neurons) + np.uint64(chunk - 1)) // np.uint64(chunk))
        going_on = True
        if homeostats and cuda.blockIdx.x == 0:
            advance_classes(np.uint32(burst), neurons.extras)
        while going_on:
            first = np.uint32(item * size)
            count, candidates = consume_chunk(first, moment, loaded, fired, fcl, neurons, network, identity)
            item = np.uint32(item + np.uint32(cuda.gridDim.x))
            going_on = bool(item < items)
            if going_on:
                fetch_chunk(np.uint32(item * size), base, fcl, neurons, network, loaded)
            if thread == np.uint32(0):
                ends = not going_on
                shared[0] = add_up(
                    steering, exchange, sinks, network, counting, slot, sequence, count, candidates, ends
                )
            cuda.syncthreads()
            entry = thread
            while entry < count:
                place, source = np.uint64(np.uint64(shared[0]) + np.uint64(entry)), id_of(fired.ids[entry], identity)
                potential = fired.potentials[entry]
                list_firing(place, start, source, potential, exchange, sinks, side, sequence, log, history, burst)
                entry = np.uint32(entry + block)
            if going_on:
                cuda.syncthreads()

    return dynamics
