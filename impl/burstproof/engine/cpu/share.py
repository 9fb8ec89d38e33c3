"""One thread's part of a batch of bursts on the CPU, and the barriers between the threads.

The threads stay in compiled code for a whole batch. They synchronise once per burst, when all fired lists are
complete, and with queues a second time, when all contributions are queued. The calling thread (0) leads; the others
are helpers. Between batches a helper polls its state on the board for a while, and then returns to Python.
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
"""Indices of the board: first burst, number of bursts, and room for firings of the batch."""

HELPERS = 4 * LINE
"""The state of thread t is at index ``HELPERS + t * LINE`` of the board."""

IDLE, CLAIMED, WORKING, LEAVE, LEFT = 0, 1, 2, 3, 4
"""States of a helper: polling; polling and not allowed to leave; in a batch; told to leave; not in compiled code."""

FIRED, CANDIDATES, WAITING, FULL = 0, 1, 2, 3
"""Columns of the tally."""

NOT_STARTED = -1
"""Result of ``run_thread`` for the leader if a helper has left."""

_ARRIVED, _RELEASED, _TAKEN = LINE, 2 * LINE, 3 * LINE
"""Indices of the board: tickets and releases of the barrier, and the number of firings handed out to threads."""

_SPINS, _PATIENCE = 1000, 4000
"""Polls before a waiting thread yields its core, and before a helper without work leaves."""

_SOURCES = 64
"""Sources that a thread takes at a time."""


class Shared(NamedTuple):
    """Data shared by T threads, with the part of each thread.

    Attributes
    ----------
    board : int64 (B,)
        The batch, the barrier and the states of the helpers; see the indices above.
    bounds
        As in ``Regions``.
    queues : Queues or empty
        Empty where rows are recalled (``recall.py``).
    fired, potentials : uint32 and float32 (2, N)
        Fired ids, and potentials before the reset, of this burst and the last one: row = burst number mod 2. The list
        of thread t starts at ``bounds[t]``.
    tally : int64 (2, T, LINE)
        Counts of the same bursts: firings, candidates, candidates before the burst, and whether a queue is full.
    counters : int64 (T, LINE)
        Each thread's copy of the sticky clamp flag and the number of bursts of known history.
    """

    board: Array
    bounds: Array
    queues: Queues | tuple[()]
    fired: Array
    potentials: Array
    tally: Array
    counters: Array


def _make_barrier() -> Compiled:
    @inner_compiler
    def barrier(board: Array, threads: int) -> None:
        """Wait until all threads have arrived; what they wrote before is visible afterwards."""
        ticket = atomic_add(board, _ARRIVED, 1)
        turn = ticket // threads + 1
        if ticket == turn * threads - 1:
            atomic_store(board, _RELEASED, turn)
            return
        spins = 0
        while atomic_load(board, _RELEASED) < turn:
            spins += 1
            if spins < _SPINS:
                relax()
            else:
                yield_core()

    return barrier


def _make_gather() -> Compiled:
    @inner_compiler
    def gather(thread: int, row: int, shared: Shared, out: Output, used: int) -> None:
        """Copy one thread's fired list to its place in the output, which holds ``used`` firings of earlier bursts."""
        to, start = used, shared.bounds[thread]
        for other in range(thread):
            to += shared.tally[row, other, FIRED]
        for j in range(shared.tally[row, thread, FIRED]):
            out.ids[to + j] = shared.fired[row, start + j]
            out.potentials[to + j] = shared.potentials[row, start + j]

    return gather


def _make_total() -> Compiled:
    @inner_compiler
    def total(row: int, column: int, tally: Array) -> int:
        """Sum of a column of the tally over all threads."""
        count = 0
        for thread in range(tally.shape[1]):
            count += tally[row, thread, column]
        return count

    return total


def _make_advance_range(
    parts: Parts, recall: RecallParts, deliver: Deliver, key: KernelKey, barrier: Compiled, total: Compiled
) -> Compiled:
    begin, count_candidates, dynamics, finish = parts.begin, parts.count_candidates, parts.dynamics, parts.finish
    join_trains, advance_trains, trains = parts.join_trains, parts.advance_trains, key.extras.trains
    emulate, recalled = key.features.emulate_batch_path, key.recalled
    collect = recall.collect if recalled else deliver.collect

    @inner_compiler
    def advance_range(thread: int, number: int, k: int, shared: Shared, model: Model) -> None:
        """Arrivals, stimulus and dynamics of one thread's range; writes its fired list and its tally."""
        tally, plan, neurons, s = shared.tally, model.plan, model.neurons, model.scalars
        lo, hi, row = shared.bounds[thread], shared.bounds[thread + 1], number & 1
        incoming: Any = model.recall if recalled else shared.queues
        sums = incoming.sums
        own, own_v = shared.fired[row, lo:hi], shared.potentials[row, lo:hi]
        last = shared.fired[1 - row, lo : lo + tally[1 - row, thread, FIRED]]
        collect(thread, number, incoming, model.ring, s)
        begin(k, sums, plan, model.parameters, neurons, last, s, lo, hi)
        batch = False
        if emulate and s.emulate_batch:
            tally[row, thread, WAITING] = count_candidates(sums[lo:hi])
            barrier(shared.board, tally.shape[1])
            batch = total(row, WAITING, tally) >= BATCH_PATH_CANDIDATES
        count, candidates = dynamics(lo, hi, number, batch, sums, model.parameters, neurons, s.unit, own, own_v)
        if trains:
            count = join_trains(count, own, own_v, last, model.extras, neurons)
        count = finish(number, k, count, own, own_v, plan, neurons, s, lo, hi)
        if trains:
            advance_trains(own[:count], own_v[:count], model.extras, model.parameters, neurons)
        tally[row, thread, FIRED] = count
        tally[row, thread, CANDIDATES] = candidates

    return advance_range


def _make_copy_firings() -> Compiled:
    @inner_compiler
    def copy_firings(first: int, end: int, row: int, shared: Shared, ids: Ids, potentials: Floats) -> None:
        """Copy firings ``first`` ... ``end - 1``, counted over the concatenated lists of all threads."""
        other, before = 0, 0
        for j in range(first, end):
            while j >= before + shared.tally[row, other, FIRED]:
                before += shared.tally[row, other, FIRED]
                other += 1
            place = shared.bounds[other] + j - before
            ids[j - first], potentials[j - first] = shared.fired[row, place], shared.potentials[row, place]

    return copy_firings


def _make_queue_share(deliver: Deliver, barrier: Compiled, total: Compiled) -> Compiled:
    send, spill, reset, copy_firings = deliver.send, deliver.spill, deliver.reset, _make_copy_firings()

    @inner_compiler
    def queue_share(thread: int, number: int, queues: Queues, shared: Shared, model: Model) -> None:
        """Queue the contributions of one thread's share of all firings; ends with a barrier.

        Threads take ``_SOURCES`` sources at a time from a common counter. If a queue becomes full, all threads stop,
        each spills the queues of its range into the ring, and all continue.
        """
        row, threads, s = number & 1, shared.tally.shape[1], model.scalars
        regions, arrived = len(queues.regions) - 1, number % s.slots
        fired = total(row, FIRED, shared.tally)
        ids, potentials = on_stack(_SOURCES, np.uint32), on_stack(_SOURCES, np.float32)
        at, count, done = 0, 0, 0
        reset(thread, arrived * regions, (arrived + 1) * regions, queues)
        if thread == 0:
            queues.in_ring[arrived] = 0
        while True:
            full = False
            while not full:
                if at == count:
                    first = atomic_add(shared.board, _TAKEN, _SOURCES)
                    at, count = 0, max(min(first + _SOURCES, fired) - first, 0)
                    if count == 0:
                        break
                    copy_firings(first, first + count, row, shared, ids, potentials)
                sent, done, full = send(
                    thread,
                    number,
                    count - at,
                    done,
                    ids[at:],
                    potentials[at:],
                    queues,
                    model.static,
                    model.computed,
                    s,
                    shared.counters[thread],
                )
                at += sent
            shared.tally[row, thread, FULL] = full
            barrier(shared.board, threads)
            if total(row, FULL, shared.tally) == 0:
                return
            spill(thread, queues, model.ring, s)
            barrier(shared.board, threads)
            reset(thread, 0, queues.per_thread, queues)

    return queue_share


def _make_run_own_batch(key: KernelKey, parts: Parts, recall: RecallParts, barrier: Compiled) -> Compiled:
    gather, total, deliver = _make_gather(), _make_total(), make_deliver(key)
    advance_range = _make_advance_range(parts, recall, deliver, key, barrier, total)
    queue_share, keep_list, recalled = _make_queue_share(deliver, barrier, total), recall.keep_list, key.recalled
    learn, plastic, learns_first = parts.learn, key.plastic, key.learns_first
    read_signals, adapt, modulators, adapts = parts.read_signals, parts.adapt, key.extras.modulators, key.extras.adapts

    @inner_compiler
    def run_own_batch(thread: int, shared: Shared, model: Model, out: Output) -> int:
        """One thread's part of the batch that the board describes. Returns the number of bursts done."""
        board, s, counters = shared.board, model.scalars, shared.counters[thread]
        threads, bounds = shared.tally.shape[1], shared.bounds
        used = 0
        for k in range(board[BURSTS]):
            if board[ROOM] - used < s.neurons:
                return k
            number = board[NUMBER] + k
            if thread == 0:
                atomic_store(board, _TAKEN, 0)
            advance_range(thread, number, k, shared, model)
            own = shared.fired[number & 1, bounds[thread] : bounds[thread] + shared.tally[number & 1, thread, FIRED]]
            if recalled:
                keep_list(thread, number, own, model.recall, counters)
            barrier(board, threads)
            if plastic and learns_first:
                learn(number, model.plastic, model.computed, model.neurons, s, counters, thread, threads)
                barrier(board, threads)
            gather(thread, number & 1, shared, out, used)
            before, used = used, used + total(number & 1, FIRED, shared.tally)
            if thread == 0:
                out.ends[k], out.candidates[k] = used, total(number & 1, CANDIDATES, shared.tally)
            if not recalled:
                queue_share(thread, number, shared.queues, shared, model)
            elif modulators:
                barrier(board, threads)
            if plastic and not learns_first:
                learn(number, model.plastic, model.computed, model.neurons, s, counters, thread, threads)
                barrier(board, threads)
            if modulators:
                if thread == 0:
                    read_signals(number, out.ids[before:used], out.potentials[before:used], model.extras)
                barrier(board, threads)
            if adapts:
                adapt(number, own, model.extras, model.parameters, bounds[thread], bounds[thread + 1])
        return int(board[BURSTS])

    return run_own_batch


def _make_claim_helpers() -> Compiled:
    @inner_compiler
    def claim_helpers(board: Array, threads: int) -> bool:
        """Claim all helpers, so that none leaves, or none if one has left already. Returns whether they are claimed."""
        for thread in range(1, threads):
            if atomic_exchange_if(board, HELPERS + thread * LINE, IDLE, CLAIMED) != IDLE:
                for claimed in range(1, thread):
                    atomic_store(board, HELPERS + claimed * LINE, IDLE)
                return False
        return True

    return claim_helpers


def _make_wait_for_work() -> Compiled:
    @inner_compiler
    def wait_for_work(board: Array, thread: int) -> bool:
        """Poll until a batch begins (True), or until the helper is told to leave or has waited too long (False)."""
        place = HELPERS + thread * LINE
        waited = 0
        while True:
            state = atomic_load(board, place)
            if state == WORKING:
                return True
            if state == LEAVE:
                return False
            waited += 1
            if waited < _SPINS:
                relax()
            elif waited < _PATIENCE:
                yield_core()
            elif atomic_exchange_if(board, place, IDLE, LEFT) == IDLE:
                return False

    return wait_for_work


def make_run_thread(key: KernelKey, parts: Parts, recall: RecallParts) -> Compiled:
    """``run_thread``: one batch for the leader (thread 0); for a helper all batches until it leaves.

    ``run_own_batch`` has a single call site, because the compiler inlines it at each.
    """
    barrier, claim_helpers, wait_for_work = _make_barrier(), _make_claim_helpers(), _make_wait_for_work()
    run_own_batch = _make_run_own_batch(key, parts, recall, barrier)

    @compiler
    def run_thread(held: Held, thread: int, number: int, bursts: int, out: Output) -> int:
        """The leader returns the number of bursts done, or ``NOT_STARTED`` if nothing was done; a helper returns 0.

        ``held`` contains a ``Shared`` and a ``Model``.
        """
        shared, model = content_of(held)
        board, threads = shared.board, shared.tally.shape[1]
        if thread == 0:
            if not claim_helpers(board, threads):
                return NOT_STARTED
            board[NUMBER], board[BURSTS], board[ROOM] = number, bursts, len(out.ids)
            for helper in range(1, threads):
                atomic_store(board, HELPERS + helper * LINE, WORKING)
        while thread == 0 or wait_for_work(board, thread):
            done: int = run_own_batch(thread, shared, model, out)
            if thread != 0:
                atomic_store(board, HELPERS + thread * LINE, IDLE)
            barrier(board, threads)
            if thread == 0:
                return done
        return 0

    return run_thread


def make_flush_queues(key: KernelKey) -> Compiled:
    """``flush_queues``: move the contents of all queues into the ring; called between batches, by one thread."""
    deliver = make_deliver(key)
    spill, reset = deliver.spill, deliver.reset

    @compiler
    def flush_queues(queues: Queues, ring: Array, s: Scalars) -> None:
        threads, count = len(queues.ends), queues.per_thread
        for thread in range(threads):
            spill(thread, queues, ring, s)
        for thread in range(threads):
            reset(thread, 0, count, queues)

    return flush_queues
