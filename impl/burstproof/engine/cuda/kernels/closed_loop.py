"""A kernel that stays on the device between the bursts of a closed loop: a call takes no launch, no copy, no wait.

The first block reads the host's mail: it takes in what comes from outside and lets the others begin. They do the burst
and order its list as the kernels of a batch do, phase by phase, with a word of the relay where a batch has the boundary
between two kernels. Every block that orders a part of the list answers by itself; the host begins the next turn, when
it has all answers. All blocks have to be on the device at once, so the kernel is launched cooperatively. It ends when
the host says so, or without a call for a while.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import (
    Chunks,
    Exchange,
    Fcl,
    Gathering,
    Identity,
    Log,
    Longs,
    Mailbox,
    Network,
    Neurons,
    Outside,
    Recall,
    Rows,
    Steering,
    Turn,
    Window,
)
from burstproof.engine.cuda.kernels.burst import make_burst
from burstproof.engine.cuda.kernels.control import COUNT, FRESH, IDS
from burstproof.engine.cuda.kernels.gather import make_gather
from burstproof.engine.cuda.kernels.mailbox import (
    AMOUNTS_SHIFT,
    ANSWERS_HEAD,
    ARRIVED,
    BESIDE,
    CALL_NUMBERS,
    ENDED,
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
    STATUS,
    STUCK,
    STUCK_NS,
)
from burstproof.engine.cuda.kernels.recall import make_send_recalled
from burstproof.engine.cuda.kernels.relay import make_relay
from burstproof.engine.cuda.kernels.rows import make_send_long, make_send_piece
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec
from burstproof.engine.cuda.kernels.steer import make_steer
from burstproof.engine.cuda.kernels.stimulus import make_admit, make_peek
from burstproof.engine.cuda.plan.shard_variant import ShardVariant, whole
from burstproof.engine.cuda.plan.variant import Variant

_TRIES = 1 << 20
"""How often a thread reads a word again that was written before the call: once at most."""


def can_stay(variant: Variant) -> bool:
    """Whether bursts of ``variant`` can be turns of one kernel: one kernel a burst, and rows on the device, untiled.

    Features of genomes take more than one.
    """
    shape = variant.fused
    if shape is None or variant.extras or variant.queues is not None:
        return False
    return shape.threads >= variant.recalled and not variant.tiles and not variant.streamed


def staying(variant: Variant) -> ShardVariant:
    """The whole network of ``variant`` as the turns of such a kernel see it."""
    return replace(whole(replace(variant, overlapped=False)), stays=True)


def make_take_in(shard: ShardVariant) -> Callable[..., Any]:
    """``take_in(call, word, mailbox, steering, exchange, outside, fcl, network)``, one block: the stimulus of a call.

    ``word`` is what a thread read beside the call. Of other amounts four are loaded before the first is added: what
    counts is how often the host's memory answers.
    """
    admit, peek, steer, number = make_admit(shard), make_peek(shard), make_steer(shard), shard.variant.accumulator
    load, narrow = make_relay().load, shard.variant.accumulator_bits == 32
    most, head, one, beside = np.int64(MOST_ENTRIES), np.uint32(MAIL_HEAD), np.uint32(1), np.uint32(BESIDE)
    upper, neuron_bits, parity = np.int64(32), np.int64((1 << 31) - 1), np.int64(1)

    def entry_of(mail: Longs, entry: np.uint32, count: np.uint32, room: np.uint32) -> Any:
        """Neuron and amount; zeros beyond the last."""
        word, amount = np.int64(0), number(0)
        if entry < count:
            at = np.uint32(head + entry)
            word = np.int64(mail[at])
            if narrow:
                amount = number(word)
                word = np.int64(word >> upper)
            else:
                amount = number(mail[np.uint32(at + room)])
        return np.uint32(word), amount

    def of_call(word: np.int64, call: np.int64, mail: Longs) -> Any:
        """The word beside the call, which the host wrote before the call, even if this thread read it before that."""
        odd, tries = (call >> np.int64(NUMBER_SHIFT)) & parity, np.uint32(0)
        while (np.int64(word >> np.int64(63)) & parity) != odd and tries < np.uint32(_TRIES):
            word = np.int64(load(mail, cuda.threadIdx.x))
            tries = np.uint32(tries + one)
        return word

    entry_of, of_call = cuda.jit(device=True)(entry_of), cuda.jit(device=True)(of_call)

    def take_in(
        call: np.int64,
        word: np.int64,
        mailbox: Mailbox,
        steering: Steering,
        exchange: Exchange,
        outside: Outside,
        fcl: Fcl,
        network: Network,
    ) -> None:
        mail, room, step = mailbox.mail, mailbox.mail_room, np.uint32(cuda.blockDim.x)
        amounts, forced = np.uint32((call >> np.int64(AMOUNTS_SHIFT)) & most), np.uint32(call & most)
        _, _, _, slot, _ = steer(steering, exchange, fcl, network, Turn(one, np.uint32(FRESH), np.uint32(0)))
        base = np.uint64(np.uint64(slot) * np.uint64(fcl.stride))
        entry = np.uint32(cuda.threadIdx.x)
        if narrow:
            if entry != np.uint32(0) and entry <= beside and entry <= amounts:
                word = of_call(word, call, mail)
                neuron = np.uint32((word >> upper) & neuron_bits)
                admit(neuron, peek(neuron, base, fcl), number(word), base, outside, fcl)
            entry = np.uint32(entry + beside)
        while entry < amounts:
            second = np.uint32(entry + step)
            third = np.uint32(second + step)
            fourth = np.uint32(third + step)
            neuron, amount = entry_of(mail, entry, amounts, room)
            neuron_2, amount_2 = entry_of(mail, second, amounts, room)
            neuron_3, amount_3 = entry_of(mail, third, amounts, room)
            neuron_4, amount_4 = entry_of(mail, fourth, amounts, room)
            before, before_2 = peek(neuron, base, fcl), peek(neuron_2, base, fcl)
            before_3, before_4 = peek(neuron_3, base, fcl), peek(neuron_4, base, fcl)
            admit(neuron, before, amount, base, outside, fcl)
            if second < amounts:
                admit(neuron_2, before_2, amount_2, base, outside, fcl)
            if third < amounts:
                admit(neuron_3, before_3, amount_3, base, outside, fcl)
            if fourth < amounts:
                admit(neuron_4, before_4, amount_4, base, outside, fcl)
            entry = np.uint32(fourth + step)
        entry = np.uint32(cuda.threadIdx.x)
        while entry < forced:
            outside.forced[np.uint32(mail[np.uint32(head + room + room + entry)])] = np.uint8(1)
            entry = np.uint32(entry + step)

    return cuda.jit(device=True)(take_in)  # type: ignore[no-any-return]


def make_listen() -> Callable[..., Any]:
    """``listen(turn, told, mailbox)`` -> a word beside the call: the first block waits for the next call, or the end.

    Afterwards one thread has to say to the others what ``told`` holds; see ``make_begin_turn``.
    """
    _, _, load, _, _, look = make_relay()
    entries, threads = np.int64((1 << NUMBER_SHIFT) - 1), np.uint32(BESIDE + 1)

    def go_of(turn: np.int64, call: np.int64, last: np.int64) -> Any:
        go = np.int64(turn << np.int64(GO_TURN_SHIFT))
        if call != last and call != np.int64(LEAVE) and turn < np.int64(MOST_TURNS):
            number = np.int64(call >> np.int64(NUMBER_SHIFT))
            go = np.int64(go | np.int64(number << np.int64(GO_CALL_SHIFT)) | np.int64(GO_ON))
            if call & entries != np.int64(0):
                go = np.int64(go | np.int64(GO_STIMULATED))
        return go

    go_of = cuda.jit(device=True)(go_of)

    def listen(turn: np.int64, told: Longs, mailbox: Mailbox) -> Any:
        thread, word, last = np.uint32(cuda.threadIdx.x), np.int64(0), np.int64(LEAVE)
        began, passed, polls = np.uint64(0), np.uint64(0), np.uint32(0)
        if thread == np.uint32(0) and turn > np.int64(1):
            last = told[0]
        waits = True
        while waits:
            if thread < threads:
                word = np.int64(load(mailbox.mail, thread))
            if thread == np.uint32(0):
                polls = np.uint32(polls + np.uint32(1))
                began, passed = look(polls, began, passed)
                told[1] = np.int64(1) if word == last and passed <= mailbox.idle else np.int64(0)
            cuda.syncthreads()
            waits = told[1] != np.int64(0)
            cuda.syncthreads()
        if thread == np.uint32(0):
            told[0], told[1] = word, go_of(turn, word, last)
        return word

    return cuda.jit(device=True)(listen)  # type: ignore[no-any-return]


def make_begin_turn(shard: ShardVariant) -> Callable[..., Any]:
    """``begin_turn(turn, told, mailbox, ...)`` -> what ``GO`` says of turn number ``turn``; without ``GO_ON``: the end.

    The first block waits for a call and takes it in; the others wait for the first. ``told`` is shared memory for two
    words: the call that the first block heard last, and ``GO``.
    """
    store, _, _, _, reaches, _ = make_relay()
    listen, take_in, of_turn = make_listen(), make_take_in(shard), np.int64(GO_TURN_SHIFT)

    def follow(turn: np.int64, told: Longs, mailbox: Mailbox) -> None:
        """One thread of another block: what the first says."""
        go = reaches(mailbox.relay, GO, np.int64(turn << of_turn), np.uint64(STUCK_NS))
        told[1] = go if go >> of_turn == turn else np.int64(0)

    follow = cuda.jit(device=True)(follow)

    def begin_turn(
        turn: np.int64,
        told: Longs,
        mailbox: Mailbox,
        steering: Steering,
        exchange: Exchange,
        outside: Outside,
        fcl: Fcl,
        network: Network,
    ) -> Any:
        first, thread, word = cuda.blockIdx.x == 0, cuda.threadIdx.x, np.int64(0)
        if first:
            word = listen(turn, told, mailbox)
        elif thread == 0:
            follow(turn, told, mailbox)
        cuda.syncthreads()
        go = told[1]
        if first:
            if go & np.int64(GO_STIMULATED):
                take_in(told[0], word, mailbox, steering, exchange, outside, fcl, network)
                cuda.syncthreads()
            if thread == 0:
                store(mailbox.relay, GO, go)
        return go

    return cuda.jit(device=True)(begin_turn)  # type: ignore[no-any-return]


def make_end_turn() -> Callable[..., Any]:
    """``end_turn(go, steering, mailbox)``, one thread of a block that has ordered its part of the list: the answer."""
    answer = make_relay().answer
    of_call, numbers = np.int64(GO_CALL_SHIFT), np.int64(CALL_NUMBERS - 1)

    def end_turn(go: np.int64, steering: Steering, mailbox: Mailbox) -> None:
        block = np.uint32(cuda.blockIdx.x)
        found = np.int64(np.int64((go >> of_call) & numbers) << np.int64(NUMBER_SHIFT))
        if block == np.uint32(0):
            found = np.int64(found | steering.control[COUNT])
        answer(mailbox.answers, np.uint32(np.uint32(ANSWERS_HEAD) + block), found)

    return cuda.jit(device=True)(end_turn)  # type: ignore[no-any-return]


def make_closed_loop(variant: Variant) -> Callable[..., None]:
    """``closed_loop(...)``: a burst for every call in the mail, until told to leave or ``idle`` ns without one."""
    shard, device = staying(variant), cuda.jit(device=True)
    _, answer, _, add, reaches, _ = make_relay()
    begin_turn, end_turn = make_begin_turn(shard), make_end_turn()
    burst, gather = device(make_burst(shard)), device(make_gather(shard.variant, shard.threads))
    send_long, long_rows = device(make_send_long(shard.variant, make_send_piece(variant))), variant.long_rows
    send_recalled, recalls = device(make_send_recalled(variant)), variant.recalled > 0
    chunk, one, none = np.uint32(shard.chunk), np.uint32(1), np.uint32(0)

    def closed_loop(
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
        window: Window,
        mailbox: Mailbox,
    ) -> None:
        told = cuda.shared.array(2, np.int64)
        thread, block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
        items = np.uint32((np.uint64(network.neurons) + np.uint64(chunk - one)) // np.uint64(chunk))
        order, status = Gathering(np.uint32(IDS), none, none), np.int64(ENDED)
        number = np.int64(1)
        go = begin_turn(number, told, mailbox, steering, exchange, neurons.outside, fcl, network)
        while go & np.int64(GO_ON):
            turn = Turn(np.uint32((go >> np.int64(1)) & np.int64(1)), np.uint32(FRESH), none)
            burst(steering, exchange, identity, fcl, neurons, log, chunks, recall, rows, network, (), turn)
            cuda.syncthreads()
            if thread == none:
                add(mailbox.relay, ARRIVED)
            if block < mailbox.answering:
                if thread == none:
                    arrived = reaches(mailbox.relay, ARRIVED, np.int64(number * blocks), np.uint64(STUCK_NS))
                    if arrived < np.int64(number * blocks):
                        status = np.int64(STUCK)
                cuda.syncthreads()
                gather(steering, chunks, log, window, items, order)
                if recalls:
                    send_recalled(steering, network, recall, rows, fcl, turn)
                if long_rows:
                    send_long(steering, chunks, rows, fcl, turn)
                cuda.syncthreads()
                if thread == none and status == np.int64(ENDED):
                    end_turn(go, steering, mailbox)
            number += np.int64(1)
            go = begin_turn(number, told, mailbox, steering, exchange, neurons.outside, fcl, network)
        if thread == none and (block == none or status == np.int64(STUCK)):
            answer(mailbox.answers, STATUS, status)

    return closed_loop


def closed_loop_spec(variant: Variant) -> KernelSpec:
    """The kernel to compile for ``variant``."""
    return kernel_spec("closed_loop", make_closed_loop(variant), staying(variant))
