"""What each thread of the CPU engine does for its range of neurons in a batch of bursts, and where the threads meet.

The threads stay in compiled code for a whole batch and meet when everybody's fired list is complete. Where there are
queues, they meet again when everything that these lists send is in them. Between batches a helper waits on the board
for a while, and then leaves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burstproof.engine.atomics import atomic_add, atomic_exchange_if, atomic_load, atomic_store, relax
from burstproof.engine.compiler import compiler, inner_compiler
from burstproof.engine.cpu.arrays import Array, Floats, Ids, Model, Output, Scalars
from burstproof.engine.cpu.deliver import Deliver, make_deliver
from burstproof.engine.cpu.held import Held, content_of
from burstproof.engine.cpu.intrinsics import on_stack, yield_core
from burstproof.engine.cpu.key import KernelKey
from burstproof.engine.cpu.lines import LINE
from burstproof.engine.cpu.parts import Parts
from burstproof.engine.cpu.queues import Queues
from burstproof.engine.cpu.recall import RecallParts
from burstproof.engine.profile import BATCH_PATH_CANDIDATES
from burstproof.engine.rules import Compiled

NUMBER, BURSTS, ROOM = 0, 1, 2
"""Places on the board: first burst, number of bursts and room for firings of the batch."""

HELPERS = 4 * LINE
"""Place on the board of the state of thread t: ``HELPERS + t * LINE``."""

IDLE, HELD, AT_WORK, LEAVE, LEFT = 0, 1, 2, 3, 4
"""States of a helper: waiting, waiting and not to leave, in a batch, told to leave, not in compiled code."""

FIRED, CANDIDATES, WAITING, FULL = 0, 1, 2, 3
"""Columns of the tally."""

NOT_STARTED = -1
"""What ``share`` returns to the leader when a helper has left."""

_ARRIVED, _RELEASED, _TAKEN = LINE, 2 * LINE, 3 * LINE
_SPINS = 1000
_SOURCES = 64
_PATIENCE = 4000


class Shared(NamedTuple):
    """What T threads exchange, and what belongs to each of them.

    Attributes
    ----------
    board : int64 (B,)
        The batch, the meetings and the states of the helpers, see the places above.
    bounds
        As in ``Regions``.
    queues : Queues or empty
        Empty where rows are recalled (``recall.py``).
    fired, before : uint32 and float32 (2, N)
        Fired lists of this burst and the last one, by the parity of their numbers: thread t's starts at its bound.
    tally : int64 (2, T, LINE)
        Numbers of the same bursts: firings, candidates, neurons waiting to be candidates, whether a queue is full.
    counters : int64 (T, LINE)
        Sticky clamp flag and bursts of known history, each thread's own.
    """

    board: Array
    bounds: Array
    queues: Queues | tuple[()]
    fired: Array
    before: Array
    tally: Array
    counters: Array


def _make_meet() -> Compiled:
    @inner_compiler
    def meet(board: Array, parts: int) -> None:
        """Wait until all threads are here; what they wrote before is visible afterwards."""
        ticket = atomic_add(board, _ARRIVED, 1)
        turn = ticket // parts + 1
        if ticket == turn * parts - 1:
            atomic_store(board, _RELEASED, turn)
            return
        spins = 0
        while atomic_load(board, _RELEASED) < turn:
            spins += 1
            if spins < _SPINS:
                relax()
            else:
                yield_core()

    return meet


def _make_gather() -> Compiled:
    @inner_compiler
    def gather(part: int, slot: int, shared: Shared, out: Output, used: int) -> None:
        """Put one thread's fired list where it belongs in the output, whose firings before this burst are ``used``."""
        to, start = used, shared.bounds[part]
        for other in range(part):
            to += shared.tally[slot, other, FIRED]
        for j in range(shared.tally[slot, part, FIRED]):
            out.ids[to + j] = shared.fired[slot, start + j]
            out.potentials[to + j] = shared.before[slot, start + j]

    return gather


def _make_total() -> Compiled:
    @inner_compiler
    def total(slot: int, column: int, tally: Array) -> int:
        """Sum of a column of the tally over all threads."""
        found = 0
        for part in range(tally.shape[1]):
            found += tally[slot, part, column]
        return found

    return total


def _make_own_burst(
    parts: Parts, recall: RecallParts, deliver: Deliver, key: KernelKey, meet: Compiled, total: Compiled
) -> Compiled:
    begin, waiting, dense, finish = parts.begin, parts.waiting, parts.dense, parts.finish
    join_trains, advance_trains, trains = parts.join_trains, parts.advance_trains, key.extras.trains
    emulate, recalled = key.features.emulate_batch_path, key.recalled
    collect = recall.collect if recalled else deliver.collect

    @inner_compiler
    def own_burst(part: int, number: int, k: int, shared: Shared, model: Model) -> None:
        """Arrivals, stimulus and dynamics of one thread's range: its fired list and tally of burst ``number``."""
        tally, plan, neurons, s = shared.tally, model.plan, model.neurons, model.scalars
        lo, hi, slot = shared.bounds[part], shared.bounds[part + 1], number & 1
        sent: Any = model.recall if recalled else shared.queues
        sums = sent.sums
        own, own_v = shared.fired[slot, lo:hi], shared.before[slot, lo:hi]
        last = shared.fired[1 - slot, lo : lo + tally[1 - slot, part, FIRED]]
        collect(part, number, sent, model.ring, s)
        begin(k, sums, plan, model.parameters, neurons, last, s, lo, hi)
        batch = False
        if emulate and s.emulate_batch:
            tally[slot, part, WAITING] = waiting(sums[lo:hi])
            meet(shared.board, tally.shape[1])
            batch = total(slot, WAITING, tally) >= BATCH_PATH_CANDIDATES
        count, touched = dense(lo, hi, number, batch, sums, model.parameters, neurons, s.unit, own, own_v)
        if trains:
            count = join_trains(count, own, own_v, last, model.extras, neurons)
        count = finish(number, k, count, own, own_v, plan, neurons, s, lo, hi)
        if trains:
            advance_trains(own[:count], own_v[:count], model.extras, model.parameters, neurons)
        tally[slot, part, FIRED] = count
        tally[slot, part, CANDIDATES] = touched

    return own_burst


def _make_own_list() -> Compiled:
    @inner_compiler
    def own_list(first: int, end: int, slot: int, shared: Shared, ids: Ids, potentials: Floats) -> None:
        """Firings ``first`` ... ``end - 1`` of the lists of all threads, one after another."""
        other, before = 0, 0
        for j in range(first, end):
            while j >= before + shared.tally[slot, other, FIRED]:
                before += shared.tally[slot, other, FIRED]
                other += 1
            place = shared.bounds[other] + j - before
            ids[j - first], potentials[j - first] = shared.fired[slot, place], shared.before[slot, place]

    return own_list


def _make_own_sends(deliver: Deliver, meet: Compiled, total: Compiled) -> Compiled:
    send, empty, restart, own_list = deliver.send, deliver.empty, deliver.restart, _make_own_list()

    @inner_compiler
    def own_sends(part: int, number: int, queues: Queues, shared: Shared, model: Model) -> None:
        """Put one thread's share of what fired anywhere into its queues; afterwards all threads have met.

        A thread takes some sources at a time, as it comes to them. If a queue becomes full, all threads stop, move
        what is in the queues onto their ranges to the ring, and go on.
        """
        slot, threads, s = number & 1, shared.tally.shape[1], model.scalars
        regions, arrived = len(queues.regions) - 1, number % s.slots
        fired = total(slot, FIRED, shared.tally)
        ids, potentials = on_stack(_SOURCES, np.uint32), on_stack(_SOURCES, np.float32)
        at, count, done = 0, 0, 0
        restart(part, arrived * regions, (arrived + 1) * regions, queues)
        if part == 0:
            queues.ahead[arrived] = 0
        while True:
            full = False
            while not full:
                if at == count:
                    first = atomic_add(shared.board, _TAKEN, _SOURCES)
                    at, count = 0, max(min(first + _SOURCES, fired) - first, 0)
                    if count == 0:
                        break
                    own_list(first, first + count, slot, shared, ids, potentials)
                sent, done, full = send(
                    part,
                    number,
                    count - at,
                    done,
                    ids[at:],
                    potentials[at:],
                    queues,
                    model.static,
                    model.computed,
                    s,
                    shared.counters[part],
                )
                at += sent
            shared.tally[slot, part, FULL] = full
            meet(shared.board, threads)
            if total(slot, FULL, shared.tally) == 0:
                return
            empty(part, queues, model.ring, s)
            meet(shared.board, threads)
            restart(part, 0, queues.per_thread, queues)

    return own_sends


def _make_own_batch(key: KernelKey, parts: Parts, recall: RecallParts, meet: Compiled) -> Compiled:
    gather, total, deliver = _make_gather(), _make_total(), make_deliver(key)
    own_burst = _make_own_burst(parts, recall, deliver, key, meet, total)
    own_sends, note, recalled = _make_own_sends(deliver, meet, total), recall.note, key.recalled
    learn, plastic, learns_first = parts.learn, key.plastic, key.learns_first
    read_signals, adapt, modulators, adapts = parts.read_signals, parts.adapt, key.extras.modulators, key.extras.adapts

    @inner_compiler
    def own_batch(part: int, shared: Shared, model: Model, out: Output) -> int:
        """One thread's share of the batch on the board. Returns the bursts done."""
        board, s, counters = shared.board, model.scalars, shared.counters[part]
        threads, bounds = shared.tally.shape[1], shared.bounds
        used = 0
        for k in range(board[BURSTS]):
            if board[ROOM] - used < s.neurons:
                return k
            number = board[NUMBER] + k
            if part == 0:
                atomic_store(board, _TAKEN, 0)
            own_burst(part, number, k, shared, model)
            own = shared.fired[number & 1, bounds[part] : bounds[part] + shared.tally[number & 1, part, FIRED]]
            if recalled:
                note(part, number, own, model.recall, counters)
            meet(board, threads)
            if plastic and learns_first:
                learn(number, model.plastic, model.computed, model.neurons, s, counters, part, threads)
                meet(board, threads)
            gather(part, number & 1, shared, out, used)
            before, used = used, used + total(number & 1, FIRED, shared.tally)
            if part == 0:
                out.ends[k], out.candidates[k] = used, total(number & 1, CANDIDATES, shared.tally)
            if not recalled:
                own_sends(part, number, shared.queues, shared, model)
            elif modulators:
                meet(board, threads)
            if plastic and not learns_first:
                learn(number, model.plastic, model.computed, model.neurons, s, counters, part, threads)
                meet(board, threads)
            if modulators:
                if part == 0:
                    read_signals(number, out.ids[before:used], out.potentials[before:used], model.extras)
                meet(board, threads)
            if adapts:
                adapt(number, own, model.extras, model.parameters, bounds[part], bounds[part + 1])
        return int(board[BURSTS])

    return own_batch


def _make_hold() -> Compiled:
    @inner_compiler
    def hold(board: Array, threads: int) -> bool:
        """Keep every helper from leaving; if one has left already, keep none. Returns whether all are held."""
        for part in range(1, threads):
            if atomic_exchange_if(board, HELPERS + part * LINE, IDLE, HELD) != IDLE:
                for held in range(1, part):
                    atomic_store(board, HELPERS + held * LINE, IDLE)
                return False
        return True

    return hold


def _make_wait_for_work() -> Compiled:
    @inner_compiler
    def wait_for_work(board: Array, part: int) -> bool:
        """Whether a batch has come for a helper: not if it is told to leave, or leaves since nothing came for long."""
        state = HELPERS + part * LINE
        waited = 0
        while True:
            now = atomic_load(board, state)
            if now == AT_WORK:
                return True
            if now == LEAVE:
                return False
            waited += 1
            if waited < _SPINS:
                relax()
            elif waited < _PATIENCE:
                yield_core()
            elif atomic_exchange_if(board, state, IDLE, LEFT) == IDLE:
                return False

    return wait_for_work


def make_share(key: KernelKey, parts: Parts, recall: RecallParts) -> Compiled:
    """``share``: for the leader (part 0) one batch, for a helper all batches until it leaves.

    A batch is called in one place only, since the compiler writes it out wherever it is called.
    """
    meet, hold, wait_for_work = _make_meet(), _make_hold(), _make_wait_for_work()
    own_batch = _make_own_batch(key, parts, recall, meet)

    @compiler
    def share(held: Held, part: int, number: int, bursts: int, out: Output) -> int:
        """The leader returns the number of bursts done, or ``NOT_STARTED`` and nothing has happened; a helper 0.

        ``held`` has a ``Shared`` and a ``Model``.
        """
        shared, model = content_of(held)
        board, threads = shared.board, shared.tally.shape[1]
        if part == 0:
            if not hold(board, threads):
                return NOT_STARTED
            board[NUMBER], board[BURSTS], board[ROOM] = number, bursts, len(out.ids)
            for helper in range(1, threads):
                atomic_store(board, HELPERS + helper * LINE, AT_WORK)
        while part == 0 or wait_for_work(board, part):
            done: int = own_batch(part, shared, model, out)
            if part != 0:
                atomic_store(board, HELPERS + part * LINE, IDLE)
            meet(board, threads)
            if part == 0:
                return done
        return 0

    return share


def make_settle(key: KernelKey) -> Compiled:
    """``settle``: between batches, by the caller: everything that is under way moves into the ring."""
    deliver = make_deliver(key)
    empty, restart = deliver.empty, deliver.restart

    @compiler
    def settle(queues: Queues, ring: Array, s: Scalars) -> None:
        threads, count = len(queues.ends), queues.per_thread
        for part in range(threads):
            empty(part, queues, ring, s)
        for part in range(threads):
            restart(part, 0, count, queues)

    return settle
