"""A kernel that stays on the device between the bursts of a closed loop: a call needs no launch, copy or wait.

The first block polls the host's mail, takes in the stimulus and lets the other blocks begin. They consume what has
arrived, and each answers for its own chunks as soon as it knows their firings. Only then do they send the rows of what
fired, while the host has its answer. When all blocks have done so, the first block listens again. The fired list on the
device is put in order when the kernel ends. All blocks must be resident at once, so the launch is cooperative. The
kernel ends when the host says so, or after a while without a call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import (
    Chunks,
    Fcl,
    Gathering,
    Identity,
    Log,
    Longs,
    Mailbox,
    Network,
    Neurons,
    Recall,
    Rows,
    Steering,
    Turn,
    Window,
)
from burstproof.engine.cuda.kernels.burst import make_first_item
from burstproof.engine.cuda.kernels.calendar import make_deliver_due
from burstproof.engine.cuda.kernels.calls import make_begin_turn, make_slot
from burstproof.engine.cuda.kernels.chunk import make_add_up, make_count_chunk, make_keep_chunk, make_send_fired
from burstproof.engine.cuda.kernels.consume import FOUND, Fired, Moment, make_consume_chunk, make_consume_part
from burstproof.engine.cuda.kernels.control import BURST, COUNT, FRESH
from burstproof.engine.cuda.kernels.features import Traits
from burstproof.engine.cuda.kernels.fetch import Loaded, make_fetch_chunk
from burstproof.engine.cuda.kernels.gather import make_gather
from burstproof.engine.cuda.kernels.long_rows import make_clear_progress, make_send_noted
from burstproof.engine.cuda.kernels.mailbox import (
    ARRIVED,
    CALL_NUMBERS,
    ENDED,
    GO_CALL_SHIFT,
    GO_ON,
    LAST,
    NUMBER_SHIFT,
    STATUS,
    STUCK,
    STUCK_NS,
)
from burstproof.engine.cuda.kernels.recall import make_send_recalled
from burstproof.engine.cuda.kernels.relay import make_relay
from burstproof.engine.cuda.kernels.replies import make_reply, make_sort_fired
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.kernels.steer import make_enter
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.shard_variant import ShardVariant, whole
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.features.key import NO_KEY, ExtrasKey

_TIMES = 4
"""Chunks are so many times larger than in a batch: the host reads an answer for each."""
_WORDS_AT_ONCE = 4
"""Words of a bucket that a thread loads at once: there are fewer threads than in a batch."""
_SMALL_BLOCK = 256
"""Largest block whose threads have registers for all their neurons at once."""
_LARGE_CHUNK, _MOST_PLACES = 1024, 5 << 10
"""For chunks of at least so many neurons: most bytes of places in buckets that fit into shared memory beside one."""

_ONE_KERNEL_EXTRAS = (NO_KEY, ExtrasKey(replays=True))


def can_persist(variant: Variant) -> bool:
    """Whether bursts of ``variant`` can be turns of one kernel: one kernel a burst, and rows on the device, untiled.

    Features of genomes need several kernels, except for replays. A chunk and its places in a calendar must fit into
    shared memory.
    """
    shape = variant.fused
    if shape is None or variant.extras not in _ONE_KERNEL_EXTRAS or variant.queues is not None:
        return False
    places = 0 if variant.calendar_tiles else (variant.calendar + 1) * (shape.threads // WARP) * 8
    if shape.chunk >= _LARGE_CHUNK and places > _MOST_PLACES:
        return False
    return shape.threads >= variant.recalled and not variant.tiles and not variant.streamed


def persistent_variant(variant: Variant) -> ShardVariant:
    """The whole network of ``variant`` for such a kernel: with larger chunks, and no overlapping launches."""
    shape = variant.fused
    assert shape is not None
    larger = replace(shape, per_thread=_TIMES * shape.per_thread)
    return replace(whole(replace(variant, overlapped=False, fused=larger)), persistent=True)


def make_following_item() -> Callable[..., Any]:
    """``following_item(item)``: a block's next chunk after ``item``; it may be beyond the last."""

    def next_of_all(item: np.uint32) -> Any:
        return np.uint32(item + np.uint32(1))

    def next_of_block(item: np.uint32) -> Any:
        return np.uint32(item + np.uint32(cuda.gridDim.x) - np.uint32(1))

    return cuda.jit(device=True)(next_of_all if SIMULATED else next_of_block)  # type: ignore[no-any-return]


def make_consume_at_once(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``consume_at_once(first, moment, fired, ...)`` -> uint32 firings: step a chunk, all of it in registers."""
    per_thread, word = shard.chunk // threads, shard.variant.word.added
    fetch = make_fetch_chunk(shard, threads, per_thread)
    consume = make_consume_chunk(shard, threads, per_thread, keeps_count=True)

    def consume_at_once(
        first: np.uint32, moment: Moment, fired: Fired, fcl: Fcl, neurons: Neurons, network: Network, identity: Identity
    ) -> Any:
        words, v = cuda.local.array(per_thread, word), cuda.local.array(per_thread, np.float32)
        rc, cc = cuda.local.array(per_thread, np.int32), cuda.local.array(per_thread, np.int32)
        kind, marks = cuda.local.array(per_thread, np.uint32), cuda.local.array(per_thread, np.uint32)
        loaded = Loaded(words, words, v, rc, cc, marks, v, Traits(kind, v, v), marks)
        fetch(first, moment.base, fcl, neurons, network, loaded)
        count, _ = consume(first, moment, loaded, fired, fcl, neurons, network, identity)
        return count

    return cuda.jit(device=True)(consume_at_once)  # type: ignore[no-any-return]


def make_consume_in_parts(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``consume_in_parts(first, moment, fired, ...)`` -> uint32 firings: step a chunk, part by part, in a large block.

    Its threads have registers for as many neurons at a time as in a batch, and for the loads of the next ones.
    """
    per_thread = shard.chunk // threads // _TIMES
    fetch, consume = make_fetch_chunk(shard, threads, per_thread), make_consume_part(shard, threads, per_thread)
    word, step, size = shard.variant.word.added, np.uint32(threads * per_thread), np.uint32(shard.chunk)
    counters = np.uint32(FOUND)

    def consume_in_parts(
        first: np.uint32, moment: Moment, fired: Fired, fcl: Fcl, neurons: Neurons, network: Network, identity: Identity
    ) -> Any:
        words, v = cuda.local.array(per_thread, word), cuda.local.array(per_thread, np.float32)
        next_words, next_v = cuda.local.array(per_thread, word), cuda.local.array(per_thread, np.float32)
        rc, next_rc = cuda.local.array(per_thread, np.int32), cuda.local.array(per_thread, np.int32)
        kind, marks = cuda.local.array(per_thread, np.uint32), cuda.local.array(per_thread, np.uint32)
        traits = Traits(kind, v, v)
        loaded = Loaded(words, words, v, rc, rc, marks, v, traits, marks)
        coming = Loaded(next_words, next_words, next_v, next_rc, next_rc, marks, next_v, traits, marks)
        thread, end = np.uint32(cuda.threadIdx.x), np.uint32(first + size)
        fetch(first, moment.base, fcl, neurons, network, coming)
        if thread < counters:
            fired.found[thread] = 0
        cuda.syncthreads()
        while first < end:
            following = np.uint32(first + step)
            for p in range(per_thread):
                words[p], v[p], rc[p] = next_words[p], next_v[p], next_rc[p]
            if following < end:
                fetch(following, moment.base, fcl, neurons, network, coming)
            consume(first, moment, loaded, fired, fcl, neurons, network, identity)
            first = following
        cuda.syncthreads()
        return np.uint32(fired.found[0])

    return cuda.jit(device=True)(consume_in_parts)  # type: ignore[no-any-return]


def make_answer_turn(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``answer_turn(call, moment, ...)`` -> uint32: step the chunks of a block and send their answers.

    Returns the number of firings of the last chunk, which are left in ``fired``.
    """
    variant, chunk, size, zero = shard.variant, shard.chunk, np.uint32(shard.chunk), np.uint32(0)
    small = shard.threads <= _SMALL_BLOCK
    consume = make_consume_at_once(shard, threads) if small else make_consume_in_parts(shard, threads)
    sort_fired, reply = make_sort_fired(chunk, threads), make_reply(threads)
    add_up, count_chunk, keep_chunk = make_add_up(shard), make_count_chunk(), make_keep_chunk(variant, threads)
    first_item, following_item = make_first_item(), make_following_item()

    def answer_turn(
        call: np.uint32,
        moment: Moment,
        items: np.uint32,
        fired: Fired,
        steering: Steering,
        identity: Identity,
        fcl: Fcl,
        neurons: Neurons,
        chunks: Chunks,
        recall: Recall,
        network: Network,
        mailbox: Mailbox,
    ) -> Any:
        list_offset, count, item = cuda.shared.array(1, np.int64), zero, first_item()
        while item < items:
            first = np.uint32(item * size)
            count = consume(first, moment, fired, fcl, neurons, network, identity)
            sort_fired(first, count, fired)
            reply(item, items, call, count, fired, mailbox)
            if cuda.threadIdx.x == 0:
                list_offset[0] = add_up(moment.burst, count, fired.found[1], True, steering)
                count_chunk(item, moment.burst, count, items, chunks)
            keep_chunk(first, list_offset, moment.burst, count, fired, chunks, recall)
            cuda.syncthreads()
            item = np.uint32(following_item(item))
        return count

    return cuda.jit(device=True)(answer_turn)  # type: ignore[no-any-return]


def make_send_turn(shard: ShardVariant, threads: int) -> Callable[..., Any]:
    """``send_turn(count, slot, burst, ...)``: send the rows of what fired in the chunks of a block.

    If the block has one chunk, ``fired`` holds its ``count`` firings; if several, all are read from ``chunks`` again.
    """
    variant, size, block = shard.variant, np.uint32(shard.chunk), np.uint32(threads)
    send_fired = make_send_fired(shard, threads, 1 if SIMULATED else shard.share)
    deliver_due = make_deliver_due(variant, at_once=_WORDS_AT_ONCE)
    has_calendar, first_item, following_item = variant.calendar > 0, make_first_item(), make_following_item()

    def send_turn(
        count: np.uint32,
        slot: np.uint32,
        burst: np.uint32,
        items: np.uint32,
        fired: Fired,
        identity: Identity,
        steering: Steering,
        recall: Recall,
        rows: Rows,
        chunks: Chunks,
        fcl: Fcl,
    ) -> None:
        item = first_item()
        several = following_item(item) < items
        if has_calendar:
            deliver_due(burst, slot, recall, rows, fcl)
        while item < items:
            if several:
                count, entry = chunks.chunk_counts[item], np.uint32(cuda.threadIdx.x)
                while entry < count:
                    fired.ids[entry] = chunks.chunk_ids[np.uint32(item * size + entry)]
                    entry = np.uint32(entry + block)
                cuda.syncthreads()
            send_fired(count, slot, burst, fired, identity, steering, recall, rows, chunks, fcl)
            cuda.syncthreads()
            item = np.uint32(following_item(item))

    return cuda.jit(device=True)(send_turn)  # type: ignore[no-any-return]


def make_send_listed(shard: ShardVariant) -> Callable[..., Any]:
    """``send_listed(burst, slot, due, shared, ...)`` -> whether all blocks arrived.

    Sends what has to wait until all blocks know what fired; there are ``due`` arrivals by then.
    """
    relay, variant = make_relay(), shard.variant
    send_noted, send_recalled = make_send_noted(variant), cuda.jit(device=True)(make_send_recalled(variant))
    add, reaches, long_rows, recalls = relay.add, relay.reaches, variant.long_rows, variant.recalled > 0

    def send_listed(
        burst: np.uint32,
        slot: np.uint32,
        due: np.int64,
        shared: Longs,
        steering: Steering,
        chunks: Chunks,
        recall: Recall,
        rows: Rows,
        fcl: Fcl,
        turn: Turn,
        mailbox: Mailbox,
    ) -> Any:
        if cuda.threadIdx.x == 0:
            add(mailbox.relay, ARRIVED)
            shared[2] = np.int64(1) if reaches(mailbox.relay, ARRIVED, due, np.uint64(STUCK_NS)) >= due else np.int64(0)
        cuda.syncthreads()
        if shared[2] == np.int64(0):
            return False
        if recalls:
            send_recalled(steering, recall, rows, fcl, turn)
        if long_rows:
            send_noted(burst, slot, rows, chunks, fcl)
        cuda.syncthreads()
        return True

    return cuda.jit(device=True)(send_listed)  # type: ignore[no-any-return]


def make_closed_loop(variant: Variant) -> Callable[..., None]:
    """``closed_loop(...)``: a burst for every call in the mail, until told to leave, or after ``idle`` ns without."""
    shard, device, relay = persistent_variant(variant), cuda.jit(device=True), make_relay()
    threads, chunk = WARP if SIMULATED else shard.threads, shard.chunk
    answer, add, slot_of, enter = relay.answer, relay.add, make_slot(shard), make_enter()
    begin_turn, answer_turn = make_begin_turn(shard), make_answer_turn(shard, threads)
    send_turn, send_listed = make_send_turn(shard, threads), make_send_listed(shard)
    gather, clear_progress = device(make_gather(shard.variant, threads)), make_clear_progress()
    long_rows, two_phases = variant.long_rows, variant.long_rows or variant.recalled > 0
    phases, one, zero = 2 if two_phases else 1, np.uint32(1), np.uint32(0)
    call_shift, numbers, size = np.int64(GO_CALL_SHIFT), np.int64(CALL_NUMBERS - 1), np.uint64(chunk)

    def closed_loop(
        steering: Steering,
        identity: Identity,
        fcl: Fcl,
        neurons: Neurons,
        log: Log,
        chunks: Chunks,
        recall: Recall,
        rows: Rows,
        network: Network,
        window: Window,
        mailbox: Mailbox,
    ) -> None:
        shared, outside = cuda.shared.array(3, np.int64), neurons.outside
        fired = Fired(
            cuda.shared.array(chunk, np.uint32),
            cuda.shared.array(chunk, np.float32),
            cuda.shared.array(FOUND, np.int32),
        )
        thread, block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
        is_leader, arrivals = thread == zero and block == zero, np.int64(np.int64(phases) * blocks)
        items = np.uint32((np.uint64(network.neurons) + size - np.uint64(1)) // size)
        turn_number, call, origin = np.int64(1), np.int64(0), np.uint32(steering.control[BURST])
        go = begin_turn(turn_number, arrivals, shared, mailbox, steering, outside, fcl)
        while go & np.int64(GO_ON):
            call = np.int64((go >> call_shift) & numbers)
            turn = Turn(np.uint32((go >> np.int64(1)) & np.int64(1)), np.uint32(FRESH), zero)
            burst = np.uint32(origin + np.uint32(turn_number))
            slot = slot_of(steering, burst, fcl)
            if is_leader and long_rows:
                clear_progress(np.uint32(burst + one), chunks)
            base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
            moment = Moment(base, burst, False, turn.stimulated, ())
            count = answer_turn(
                np.uint32(call),
                moment,
                items,
                fired,
                steering,
                identity,
                fcl,
                neurons,
                chunks,
                recall,
                network,
                mailbox,
            )
            if is_leader:
                enter(steering, turn, burst, slot)
            send_turn(count, slot, burst, items, fired, identity, steering, recall, rows, chunks, fcl)
            cuda.syncthreads()
            if two_phases:
                due = np.int64(turn_number * arrivals - blocks)
                if not send_listed(burst, slot, due, shared, steering, chunks, recall, rows, fcl, turn, mailbox):
                    break
            if thread == zero:
                add(mailbox.relay, ARRIVED)
            turn_number += np.int64(1)
            go = begin_turn(turn_number, arrivals, shared, mailbox, steering, outside, fcl)
        lost = go == np.int64(0) or (go & np.int64(GO_ON)) != np.int64(0)
        if not lost and call != np.int64(0):
            gather(steering, chunks, log, window, items, Gathering(zero, zero, zero))
            if is_leader:
                answer(
                    mailbox.answers, LAST, np.int64(np.int64(call << np.int64(NUMBER_SHIFT)) | steering.control[COUNT])
                )
        if is_leader or (lost and thread == zero):
            answer(mailbox.answers, STATUS, np.int64(STUCK) if lost else np.int64(ENDED))

    return closed_loop


def closed_loop_spec(variant: Variant) -> KernelSpec:
    """The kernel to compile for ``variant``."""
    return kernel_spec("closed_loop", make_closed_loop(variant), persistent_variant(variant))
