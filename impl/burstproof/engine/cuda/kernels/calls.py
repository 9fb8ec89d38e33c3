"""A call of a closed loop: the first block waits for it, takes in its stimulus and lets the other blocks begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Amount, Fcl, Longs, Mailbox, Outside, Steering
from burstproof.engine.cuda.kernels.control import BURST, CONSUMED, ORIGIN, SLOT
from burstproof.engine.cuda.kernels.mailbox import (
    AMOUNTS_SHIFT,
    ARRIVED,
    BESIDE,
    GO,
    GO_CALL_SHIFT,
    GO_ON,
    GO_STIMULATED,
    GO_TURN_SHIFT,
    LEAVE,
    MAIL_HEAD,
    MOST_ENTRIES,
    MOST_TURNS,
    NUMBER_SHIFT,
    STUCK_NS,
)
from burstproof.engine.cuda.kernels.relay import make_relay
from burstproof.engine.cuda.kernels.steer import make_slot_of
from burstproof.engine.cuda.kernels.stimulus import cancelled, make_admit
from burstproof.engine.cuda.plan.shard_variant import ShardVariant

_POLLED, _MOST_POLLED = 1024, 4
"""Most words of the mail that the first block reads with a call, and most that each of its threads reads."""


def make_reach(shard: ShardVariant) -> Callable[..., Any]:
    """``reach(call, mailbox)`` -> uint32: words of amounts that ``call`` wrote, as their sign bit says.

    The next call writes the opposite sign bit.
    """
    narrow, most = shard.variant.accumulator_bits == 32, np.int64(MOST_ENTRIES)

    def reach(call: np.int64, mailbox: Mailbox) -> Any:
        if not narrow:
            return np.uint32(0)
        amounts = np.uint32((call >> np.int64(AMOUNTS_SHIFT)) & most)
        return max(amounts, min(np.uint32(BESIDE), mailbox.mail_room))

    return cuda.jit(device=True)(reach)  # type: ignore[no-any-return]


def polled_words(threads: int) -> int:
    """Words of the mail that each thread of a block of ``threads`` threads reads with a call."""
    return 2 if SIMULATED else max(1, min(_MOST_POLLED, _POLLED // threads))


def make_put(shard: ShardVariant) -> Callable[..., Any]:
    """``put(neuron, amount, base, outside, fcl)``: add an amount to the slot if it fits there, else to ``outside``.

    Returns the new sum if the cell has no mark, so that a sum of 0 shows no candidate; otherwise a number above 0.
    """
    number, added, admit = shard.variant.accumulator, shard.variant.word.added, make_admit(shard)

    def plain(neuron: np.uint32, amount: Amount, base: np.uint64, outside: Outside, fcl: Fcl) -> Any:
        before = cuda.atomic.add(fcl.sums, np.uint64(base + np.uint64(neuron)), added(amount))
        return number(number(before) + amount)

    def blind(neuron: np.uint32, amount: Amount, base: np.uint64, outside: Outside, fcl: Fcl) -> Any:
        admit(neuron, number(0), amount, base, outside, fcl)
        return number(1)

    return cuda.jit(device=True)(blind if shard.apart or shard.variant.word.marked else plain)  # type: ignore[no-any-return]


def make_take_in(shard: ShardVariant) -> Callable[..., Any]:
    """``take_in(call, reached, words, slot, mailbox, outside, fcl)``, one block: add a call's stimulus to ``slot``.

    ``words`` are the ``polled_words`` that a thread read with the call. The sign bits of the first ``reached`` say
    whether they had been written by then. All others are read now, as many at once to save round trips to host memory.
    """
    put, zero_sum, number = make_put(shard), cancelled(shard.variant), shard.variant.accumulator
    narrow, most, head = shard.variant.accumulator_bits == 32, np.int64(MOST_ENTRIES), np.uint32(MAIL_HEAD)
    upper, neuron_bits, sign, polled = np.int64(32), np.int64((1 << 31) - 1), np.int64(63), polled_words(shard.threads)

    def take_in(
        call: np.int64,
        reached: np.uint32,
        words: Longs,
        slot: np.uint32,
        mailbox: Mailbox,
        outside: Outside,
        fcl: Fcl,
    ) -> None:
        found = cuda.local.array(polled, number)
        mail, room, step = mailbox.mail, mailbox.mail_room, np.uint32(cuda.blockDim.x)
        amounts, forced = np.uint32((call >> np.int64(AMOUNTS_SHIFT)) & most), np.uint32(call & most)
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        parity = (call >> np.int64(NUMBER_SHIFT)) & np.int64(1)
        first = np.uint32(cuda.threadIdx.x)
        while first <= amounts:
            for k in range(polled):
                place = np.uint32(first + np.uint32(k) * step)
                late = place > reached or (words[k] >> sign) & np.int64(1) != parity
                if late and head <= place <= amounts:
                    words[k] = mail[place]
                    if not narrow:
                        found[k] = number(mail[np.uint32(place + room)])
            for k in range(polled):
                place = np.uint32(first + np.uint32(k) * step)
                if head <= place <= amounts:
                    if narrow:
                        found[k], words[k] = number(words[k]), (words[k] >> upper) & neuron_bits
                    found[k] = put(np.uint32(words[k]), found[k], base, outside, fcl)
            for k in range(polled):
                place = np.uint32(first + np.uint32(k) * step)
                if head <= place <= amounts and found[k] == number(0):
                    fcl.cells[np.uint64(base + np.uint64(words[k]))] = zero_sum
            first, reached = np.uint32(first + np.uint32(polled) * step), np.uint32(0)
        entry = np.uint32(cuda.threadIdx.x)
        while entry < forced:
            outside.forced[np.uint32(mail[np.uint32(head + room + room + entry)])] = np.uint8(1)
            entry = np.uint32(entry + step)

    return cuda.jit(device=True)(take_in)  # type: ignore[no-any-return]


def make_listen(shard: ShardVariant) -> Callable[..., Any]:
    """``listen(turn, reached, words, shared, mailbox)``: the first block waits for the next call, or the end.

    With every poll of the call it also reads the ``reached`` words behind it, as far as ``words`` has room. Then
    ``shared`` holds what a thread has to tell the other blocks; see ``make_begin_turn``.
    """
    relay = make_relay()
    load, glance, look, polled = relay.load, relay.glance, relay.look, polled_words(shard.threads)
    entries = np.int64((1 << NUMBER_SHIFT) - 1)

    def go_of(turn: np.int64, call: np.int64, last: np.int64) -> Any:
        go = np.int64(turn << np.int64(GO_TURN_SHIFT))
        if call != last and call != np.int64(LEAVE) and turn < np.int64(MOST_TURNS):
            number = np.int64(call >> np.int64(NUMBER_SHIFT))
            go = np.int64(go | np.int64(number << np.int64(GO_CALL_SHIFT)) | np.int64(GO_ON))
            if call & entries != np.int64(0):
                go = np.int64(go | np.int64(GO_STIMULATED))
        return go

    go_of = cuda.jit(device=True)(go_of)

    def listen(turn: np.int64, reached: np.uint32, words: Longs, shared: Longs, mailbox: Mailbox) -> None:
        thread, step, last = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x), np.int64(LEAVE)
        began, passed, polls = np.uint64(0), np.uint64(0), np.uint32(0)
        if thread == np.uint32(0) and turn > np.int64(1):
            last = shared[0]
        waits = True
        while waits:
            for k in range(1, polled):
                place = np.uint32(thread + np.uint32(k) * step)
                if place <= reached:
                    words[k] = glance(mailbox.mail, place)
            if thread <= reached:
                words[0] = load(mailbox.mail, thread)
            if thread == np.uint32(0):
                polls = np.uint32(polls + np.uint32(1))
                began, passed = look(polls, began, passed)
                shared[1] = np.int64(1) if words[0] == last and passed <= mailbox.idle else np.int64(0)
            cuda.syncthreads()
            waits = shared[1] != np.int64(0)
            cuda.syncthreads()
        if thread == np.uint32(0):
            shared[0], shared[1] = words[0], go_of(turn, words[0], last)

    return cuda.jit(device=True)(listen)  # type: ignore[no-any-return]


def make_settle_turn() -> Callable[..., Any]:
    """``settle_turn(turn, arrivals, steering, mailbox)`` -> whether all blocks have finished the turn before ``turn``.

    One thread of the first block calls it. It also writes that burst's number and slot to control.
    """
    reaches, patience = make_relay().reaches, np.uint64(STUCK_NS)

    def settle_turn(turn: np.int64, arrivals: np.int64, steering: Steering, mailbox: Mailbox) -> Any:
        if turn == np.int64(1):
            return True
        expected = np.int64(np.int64(turn - np.int64(1)) * arrivals)
        if reaches(mailbox.relay, ARRIVED, expected, patience) < expected:
            return False
        steering.control[BURST] = steering.report[ORIGIN] + 1
        steering.control[SLOT] = steering.report[CONSUMED]
        return True

    return cuda.jit(device=True)(settle_turn)  # type: ignore[no-any-return]


def make_begin_turn(shard: ShardVariant) -> Callable[..., Any]:
    """``begin_turn(turn, arrivals, shared, ...)`` -> the word ``GO`` of turn number ``turn``.

    Without ``GO_ON`` the loop ends; 0: some block never arrived. ``arrivals`` is their number in each turn. The first
    block waits for a call and takes it in; the others wait for the first. ``shared`` is shared memory for three words:
    the call that the first block read last, ``GO``, and whether all blocks arrived.
    """
    relay, settle_turn, slot_of = make_relay(), make_settle_turn(), make_slot(shard)
    store, reaches = relay.store, relay.reaches
    listen, take_in, reach = make_listen(shard), make_take_in(shard), make_reach(shard)
    turn_shift, one, polled = np.int64(GO_TURN_SHIFT), np.uint32(1), polled_words(shard.threads)

    def follow(turn: np.int64, shared: Longs, mailbox: Mailbox) -> None:
        """One thread of another block: wait for the first block's ``GO``."""
        go = reaches(mailbox.relay, GO, np.int64(turn << turn_shift), np.uint64(STUCK_NS))
        shared[1] = go if go >> turn_shift == turn else np.int64(0)

    follow = cuda.jit(device=True)(follow)

    def begin_turn(
        turn: np.int64,
        arrivals: np.int64,
        shared: Longs,
        mailbox: Mailbox,
        steering: Steering,
        outside: Outside,
        fcl: Fcl,
    ) -> Any:
        words, reached = cuda.local.array(polled, np.int64), np.uint32(0)
        first, thread = cuda.blockIdx.x == 0, cuda.threadIdx.x
        if first:
            if thread == 0:
                shared[2] = np.int64(1) if settle_turn(turn, arrivals, steering, mailbox) else np.int64(0)
            cuda.syncthreads()
            if shared[2] == np.int64(0):
                return np.int64(0)
            reached = reach(shared[0] if turn > np.int64(1) else np.int64(0), mailbox)
            listen(turn, reached, words, shared, mailbox)
        elif thread == 0:
            follow(turn, shared, mailbox)
        cuda.syncthreads()
        go = shared[1]
        if first:
            if go & np.int64(GO_STIMULATED):
                burst = np.uint32(np.uint32(steering.control[BURST]) + one)
                take_in(shared[0], reached, words, slot_of(steering, burst, fcl), mailbox, outside, fcl)
                cuda.syncthreads()
            if thread == 0:
                store(mailbox.relay, GO, go)
        return go

    return cuda.jit(device=True)(begin_turn)  # type: ignore[no-any-return]


def make_slot(shard: ShardVariant) -> Callable[..., Any]:
    """``slot_of(steering, burst, fcl)``: index of the slot that ``burst`` consumes, the burst after that of control."""
    of_control, one = make_slot_of(shard.variant.delays and not shard.calendar), np.uint32(1)

    def slot_of(steering: Steering, burst: np.uint32, fcl: Fcl) -> Any:
        return of_control(steering.control, SLOT, one, burst, fcl)

    return cuda.jit(device=True)(slot_of)  # type: ignore[no-any-return]
