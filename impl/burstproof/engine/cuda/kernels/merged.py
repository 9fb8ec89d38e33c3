"""A shard's burst in one kernel, where every shard has a device of its own: exchange chunk by chunk.

A block does the dynamics of a chunk, sends its packet to all shards (``kernels.packet``) and goes along the rows of its
own firings at once; then it takes the packets of a chunk from the other shards: the same chunk, or where there are many
one that is ``lag`` chunks behind and has had time to arrive. Nothing is counted or gathered in between, and no block
waits for another of its own device. Blocks come up in their order and a block waits for no chunk behind its own, so
that the first chunk that is missing anywhere is always under way.

The FCL has one slot more than the longest delay, so that what arrives early finds its place while other blocks still
consume. As in the burst of one device, nobody finishes it (``kernels.steer``): block 0 keeps the books.
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
    Longs,
    Network,
    Outside,
    Packets,
    Parameters,
    Rows,
    State,
    Steering,
    Turn,
)
from burstproof.engine.cuda.exchange.words import HEADER_WORDS, MOST_SHARDS, packet_words
from burstproof.engine.cuda.kernels.consume import make_consume, make_fetch
from burstproof.engine.cuda.kernels.control import BURST, CLAMPED, LISTS, SLOT, TALLIES
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.neuron import Found
from burstproof.engine.cuda.kernels.packet import make_publish, make_source, make_take
from burstproof.engine.cuda.kernels.padded import make_padded_row
from burstproof.engine.cuda.kernels.rows import make_send_part
from burstproof.engine.cuda.kernels.shard import make_id_of, make_shard_seed
from burstproof.engine.cuda.kernels.shard_follow import make_agree, make_follow, make_log_start
from burstproof.engine.cuda.kernels.steer import make_enter
from burstproof.engine.cuda.kernels.warp import WARP, make_append, make_block_count
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


def make_row(shard: ShardVariant) -> Callable[..., Any]:
    """``row(source, part, slot, control, rows, fcl)``: send a source's row; this is thread ``part`` of its share."""
    if shard.row_words:
        return make_padded_row(shard)
    variant = shard.variant
    send_part, offset, clamps = make_send_part(variant), variant.offset, variant.clamps
    share = np.uint32(1 if SIMULATED else shard.share)

    def row(source: np.uint32, part: np.uint32, slot: np.uint32, control: Longs, rows: Rows, fcl: Fcl) -> None:
        entry = offset(rows.offsets[source] + offset(part))
        end = rows.offsets[np.uint32(source + np.uint32(1))]
        send_part(source, entry, end, share, slot, rows, fcl)
        if clamps and part == np.uint32(0) and rows.clamped_sources[source] != 0:
            control[CLAMPED] = 1

    return cuda.jit(device=True)(row)  # type: ignore[no-any-return]


def make_merged(shard: ShardVariant) -> Callable[..., None]:
    """``merged(...)``: one burst.

    ``packets.chunks`` are those of the shard that has most: others send empty packets, too. ``packets.lag`` blocks more
    than that only take packets. Mode and place of the turn steer the burst (``shard_follow``). What fired is logged
    where lists are kept, and in the last burst of a train; the order of a log within a burst is arbitrary.
    """
    variant = shard.variant
    threads = WARP if SIMULATED else shard.threads
    chunk = shard.chunk
    per_thread = chunk // threads
    fetch, id_of = make_fetch(variant), make_id_of(shard.spaced_ids)
    consume = make_consume(variant, True, lambda: make_shard_seed(shard.spaced_ids))
    publish, take, source_of, row = make_publish(id_of), make_take(), make_source(), make_row(shard)
    keep_route = make_link().keep
    append, block_count = make_append(), make_block_count()
    follow, agree, enter, log_start = make_follow(variant.delays), make_agree(), make_enter(), make_log_start()
    wait_for_last, let_next_start = make_wait_for_last(shard.overlapped), make_let_next_start(shard.overlapped)
    number, silent, one = variant.accumulator, np.float32(0), np.uint32(1)
    lanes, block, size = np.uint32(WARP - 1), np.uint32(threads), np.uint32(chunk)
    share = np.uint32(1 if SIMULATED else shard.share)
    per_warp, warps = np.uint32(np.uint32(WARP) // share), np.uint32(threads // WARP)
    header, packet, tally_places = np.uint64(HEADER_WORDS), np.uint64(packet_words(chunk)), np.uint32(TALLIES - 1)

    def first_of_all() -> Any:
        return np.uint32(0)

    def own_item() -> Any:
        return np.uint32(np.uint32(cuda.blockIdx.x) - one)

    first_item = cuda.jit(device=True)(first_of_all if SIMULATED else own_item)

    def merged(
        steering: Steering,
        exchange: Exchange,
        identity: Identity,
        outside: Outside,
        fcl: Fcl,
        state: State,
        parameters: Parameters,
        log: Log,
        rows: Rows,
        network: Network,
        packets: Packets,
        turn: Turn,
    ) -> None:
        fired_ids = cuda.shared.array(chunk, np.uint32)
        fired_potentials = cuda.shared.array(chunk, np.float32)
        found = cuda.shared.array(2, np.int32)
        first_place = cuda.shared.array(1, np.int64)
        sink_routes = cuda.shared.array(MOST_SHARDS, np.uint64)
        box_routes = cuda.shared.array(MOST_SHARDS, np.uint64)
        total = cuda.local.array(per_thread, number)
        v = cuda.local.array(per_thread, np.float32)
        rc = cuda.local.array(per_thread, np.int32)
        control, neurons, chunks, lag = steering.control, network.neurons, packets.chunks, packets.lag
        sinks, inboxes = exchange.sinks, exchange.inboxes
        thread = np.uint32(cuda.threadIdx.x)
        lane, own_warp = np.uint32(thread & lanes), np.uint32(thread // np.uint32(WARP))
        item = first_item()
        items = np.uint32(chunks + lag)
        boxes = np.uint32(inboxes.size)
        if thread < boxes:
            keep_route(inboxes, thread, box_routes)
        if thread < np.uint32(sinks.size):
            keep_route(sinks, thread, sink_routes)
        let_next_start()
        wait_for_last()
        done, burst, sequence, slot, is_last = follow(steering, exchange, fcl, turn)
        if not done:
            return
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        side_start = np.uint64(np.uint64(sequence & one) * np.uint64(exchange.words) + header)
        lists = is_last or turn.mode == np.uint32(LISTS)
        part = np.uint32(lane & np.uint32(share - one))
        while item < items:
            count = np.uint32(0)
            if item < chunks:
                first = np.uint32(item * size)
                for p in range(per_thread):
                    neuron = np.uint32(first + thread + np.uint32(p) * block)
                    total[p], v[p], rc[p] = fetch(neuron, neurons, base, fcl, state)
                if thread < np.uint32(2):
                    found[thread] = 0
                cuda.syncthreads()
                for p in range(per_thread):
                    neuron = np.uint32(first + thread + np.uint32(p) * block)
                    joins, potential, is_candidate = False, silent, False
                    if neuron < neurons:
                        joins, potential, is_candidate = consume(
                            neuron,
                            base,
                            burst,
                            False,
                            turn.stimulated,
                            Found(total[p], v[p], rc[p]),
                            fcl,
                            outside,
                            state,
                            parameters,
                            network,
                            identity,
                        )
                    append(joins, lane, found, 0, neuron, potential, fired_ids, fired_potentials)
                    block_count(is_candidate, lane, found, 1)
                cuda.syncthreads()
                count = np.uint32(found[0])
                at = np.uint64(side_start + np.uint64(item) * packet)
                publish(exchange, sink_routes, at, sequence, count, thread, block, fired_ids, identity)
                if thread == np.uint32(0):
                    counted = np.uint64((np.uint64(count) << np.uint64(32)) + np.uint64(found[1]))
                    tally = np.uint32(burst & tally_places)
                    if lists and count > np.uint32(0):
                        first_place[0] = np.int64(
                            np.uint64(cuda.atomic.add(steering.tallies, tally, counted)) >> np.uint64(32)
                        )
                    elif counted != np.uint64(0):
                        cuda.atomic.add(steering.tallies, tally, counted)
                entry = np.uint32(own_warp * per_warp + lane // share)
                while entry < count:
                    source = np.uint32(id_of(fired_ids[entry], identity))
                    row(source, part, slot, control, rows, fcl)
                    entry = np.uint32(entry + warps * per_warp)
            else:
                cuda.syncthreads()
            if item >= lag and boxes > one:
                others = np.uint32(boxes - one)
                arrived = np.uint64(side_start + np.uint64(np.uint32(item - lag)) * packet)
                box = np.uint32(own_warp % others)
                teams = np.uint32(max(one, np.uint32((warps + others - one - box) // others)))
                while box < others:
                    sender = np.uint32(box + one) if box >= exchange.own else box
                    fired, held = take(exchange, box_routes, sender, arrived, sequence, lane)
                    low = np.uint32((own_warp // others) * per_warp)
                    while low < fired:
                        entry = np.uint32(low + lane // share)
                        source = source_of(exchange, box_routes, sender, arrived, sequence, entry, fired, held)
                        if entry < fired:
                            row(np.uint32(source), part, slot, control, rows, fcl)
                        low = np.uint32(low + teams * per_warp)
                    box = np.uint32(box + warps)
            if lists and count > np.uint32(0):
                cuda.syncthreads()
                start = log_start(steering, turn, burst)
                entry = thread
                while entry < count:
                    logged = np.uint64(np.uint64(start + first_place[0]) + np.uint64(entry))
                    log.log_ids[logged] = id_of(fired_ids[entry], identity)
                    log.log_potentials[logged] = fired_potentials[entry]
                    entry = np.uint32(entry + block)
            item = np.uint32(item + one) if SIMULATED else items
            if SIMULATED:
                cuda.syncthreads()
        if cuda.grid(1) == 0:
            enter(steering, turn, burst, slot)
            control[BURST] += 1
            control[SLOT] = np.int64(slot)
            if turn.mode == np.uint32(LISTS) and not is_last:
                start = log_start(steering, turn, burst)
                agree(steering, exchange, network, np.uint64(side_start - header), sequence, burst, start)

    return merged
