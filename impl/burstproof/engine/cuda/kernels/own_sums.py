"""Sums of an owner's neurons in shared memory: what its queue (``kernels.queues``) and the FCL hold, added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.device.prefetch import make_prefetch
from burstproof.engine.cuda.args import Amount, Fcl, Queues
from burstproof.engine.cuda.kernels.queues import make_unpack_entry
from burstproof.engine.cuda.kernels.rows import make_read_once
from burstproof.engine.cuda.plan.variant import SPACING, OwnerQueues, Variant


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
    prefetch, spacing = make_prefetch(variant.overlapped), np.uint32(SPACING)
    zero, added, cleared = np.uint32(0), variant.word.added, variant.word.cell(0)

    def add_entry(own: Any, entry: Any, queue: Queues) -> None:
        local, amount = unpack(entry, queue)
        add(own, local, arrival(amount))

    add_entry = cuda.jit(device=True)(add_entry)

    def take_queue(owner: np.uint32, own: Any, neurons: np.uint32, queue: Queues, fcl: Fcl) -> None:
        entries, thread = queue.queue_entries, np.uint32(cuda.threadIdx.x)
        own_length = np.uint32(owner * spacing)
        length, spilled = queue.queue_lengths[own_length], queue.queue_spills[owner]
        base, local = np.uint64(np.uint64(owner) * np.uint64(queue.queue_room)), thread
        while spilled != zero and local < span:
            cell = np.uint32(owner * span + local)
            if cell < neurons:
                put(own, local, added(fcl.cells[cell]))
                fcl.cells[cell] = cleared
            local = np.uint32(local + block)
        cuda.syncthreads()
        end = np.uint64(base + np.uint64(min(length, queue.queue_room)))
        if thread == zero:
            prefetch(entries, base, min(length, queue.queue_room))
            queue.queue_lengths[own_length], queue.queue_spills[owner] = zero, zero
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
            add_entry(own, entry, queue)
            if second < end:
                add_entry(own, entry_2, queue)
            if third < end:
                add_entry(own, entry_3, queue)
            if fourth < end:
                add_entry(own, entry_4, queue)
            at = np.uint64(fourth + step)
        cuda.syncthreads()

    return cuda.jit(device=True)(take_queue)  # type: ignore[no-any-return]
