"""What each thread of the CPU engine does for its range of neurons in a batch of bursts, and where the threads meet.

The threads stay in compiled code for a whole batch and meet once per burst, when everybody's fired list is complete;
that of the next burst goes to other memory. Between batches a helper waits on the board for a while, and then leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from burstproof.engine.atomics import atomic_add, atomic_exchange_if, atomic_load, atomic_store, relax
from burstproof.engine.cpu.arrays import Array, Model, Output
from burstproof.engine.cpu.compile import KernelKey, compiler, inner_compiler
from burstproof.engine.cpu.intrinsics import yield_core
from burstproof.engine.cpu.parts import Parts
from burstproof.engine.cpu.ranges import Ranges
from burstproof.engine.cpu.synapses import make_propagate_range
from burstproof.engine.profile import BATCH_PATH_CANDIDATES
from burstproof.engine.rules import Compiled

LINE = 8
"""Entries of the board that share a cache line; what different threads write lies on lines of its own."""

NUMBER, BURSTS, ROOM = 0, 1, 2
"""Places on the board: first burst, number of bursts and room for firings of the batch."""

HELPERS = 3 * LINE
"""Place on the board of the state of thread t: ``HELPERS + t * LINE``."""

IDLE, HELD, AT_WORK, LEAVE, LEFT = 0, 1, 2, 3, 4
"""States of a helper: waiting, waiting and not to leave, in a batch, told to leave, not in compiled code."""

FIRED, CANDIDATES, WAITING = 0, 1, 2
"""Columns of the tally."""

NOT_STARTED = -1
"""What ``share`` returns to the leader when a helper has left."""

_ARRIVED, _RELEASED = LINE, 2 * LINE
_SPINS = 1000
_JOINED = 2048
_PATIENCE = 4000


class Shared(NamedTuple):
    """What T threads exchange, and what belongs to each of them.

    Attributes
    ----------
    board : int64 (B,)
        The batch, the meetings and the states of the helpers, see the places above.
    ranges : Ranges
    fired, before : uint32 and float32 (2, N)
        Fired lists of this burst and the last one, by the parity of their numbers: thread t's starts at its bound.
    tally : int64 (2, T, LINE)
        Numbers of the same bursts: firings, candidates, neurons waiting to be candidates.
    counters : int64 (T, LINE)
        Sticky clamp flag and bursts of known history, each thread's own.
    """

    board: Array
    ranges: Ranges
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
        to, start = used, shared.ranges.bounds[part]
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


def _make_own_burst(key: KernelKey, parts: Parts, meet: Compiled, total: Compiled) -> Compiled:
    begin, waiting, dense, finish = parts.begin, parts.waiting, parts.dense, parts.finish
    emulate = key.features.emulate_batch_path

    @inner_compiler
    def own_burst(part: int, number: int, k: int, shared: Shared, model: Model) -> None:
        """Stimulus and dynamics of one thread's range: its fired list and tally of burst ``number``."""
        tally, plan, neurons, s = shared.tally, model.plan, model.neurons, model.scalars
        lo, hi, slot = shared.ranges.bounds[part], shared.ranges.bounds[part + 1], number & 1
        base = (number % s.slots) * s.neurons
        sums = model.ring.sums[base : base + s.neurons]
        flags = model.ring.flags[base : base + s.neurons]
        own, own_v = shared.fired[slot, lo:hi], shared.before[slot, lo:hi]
        last = shared.fired[1 - slot, lo : lo + tally[1 - slot, part, FIRED]]
        begin(number, k, model.ring, plan, model.parameters, neurons, last, s, lo, hi)
        batch = False
        if emulate and s.emulate_batch:
            tally[slot, part, WAITING] = waiting(sums[lo:hi], flags[lo:hi])
            meet(shared.board, tally.shape[1])
            batch = total(slot, WAITING, tally) >= BATCH_PATH_CANDIDATES
        count, touched = dense(lo, hi, number, batch, sums, flags, model.parameters, neurons, s.unit, own, own_v)
        tally[slot, part, FIRED] = finish(number, k, count, own, own_v, plan, neurons, s, lo, hi)
        tally[slot, part, CANDIDATES] = touched

    return own_burst


def _make_own_sends(key: KernelKey) -> Compiled:
    send, computed = make_propagate_range(key), key.computed

    @inner_compiler
    def own_sends(part: int, number: int, shared: Shared, model: Model) -> None:
        """Everything that fired anywhere contributes to one thread's range.

        Lists are read from the thread's own one on, so that no two threads ask memory for the same row first. They are
        joined before, since the first rows of a list come unfetched.
        """
        slot, bounds, threads = number & 1, shared.ranges.bounds, shared.tally.shape[1]
        ids, potentials = np.empty(_JOINED, np.uint32), np.empty(_JOINED, np.float32)
        turn, taken = 0, 0
        while turn < threads:
            count = 0
            while turn < threads and count < _JOINED:
                other = part + turn - (threads if part + turn >= threads else 0)
                start = bounds[other] + taken
                more = min(shared.tally[slot, other, FIRED] - taken, _JOINED - count)
                for j in range(more):
                    ids[count + j] = shared.fired[slot, start + j]
                    if computed:
                        potentials[count + j] = shared.before[slot, start + j]
                count, taken = count + more, taken + more
                if taken == shared.tally[slot, other, FIRED]:
                    turn, taken = turn + 1, 0
            send(
                number,
                part,
                shared.ranges,
                count,
                ids,
                potentials,
                model.ring,
                model.static,
                model.computed,
                model.scalars,
                shared.counters[part],
            )

    return own_sends


def _make_own_batch(key: KernelKey, parts: Parts, meet: Compiled) -> Compiled:
    gather, total, own_sends = _make_gather(), _make_total(), _make_own_sends(key)
    own_burst = _make_own_burst(key, parts, meet, total)
    learn, plastic, learns_first = parts.learn, key.plastic, key.learns_first

    @inner_compiler
    def own_batch(part: int, shared: Shared, model: Model, out: Output) -> int:
        """One thread's share of the batch on the board. Returns the bursts done."""
        board, s, counters = shared.board, model.scalars, shared.counters[part]
        threads = shared.tally.shape[1]
        used = 0
        for k in range(board[BURSTS]):
            if board[ROOM] - used < s.neurons:
                return k
            number = board[NUMBER] + k
            own_burst(part, number, k, shared, model)
            meet(board, threads)
            if plastic and learns_first:
                learn(number, model.plastic, model.computed, model.neurons, s, counters, part, threads)
                meet(board, threads)
            gather(part, number & 1, shared, out, used)
            used += total(number & 1, FIRED, shared.tally)
            if part == 0:
                out.ends[k], out.candidates[k] = used, total(number & 1, CANDIDATES, shared.tally)
            own_sends(part, number, shared, model)
            if plastic and not learns_first:
                meet(board, threads)
                learn(number, model.plastic, model.computed, model.neurons, s, counters, part, threads)
                meet(board, threads)
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


def make_share(key: KernelKey, parts: Parts) -> Compiled:
    """``share``: for the leader (part 0) one batch, for a helper all batches until it leaves.

    A batch is called in one place only, since the compiler writes it out wherever it is called.
    """
    meet, hold, wait_for_work = _make_meet(), _make_hold(), _make_wait_for_work()
    own_batch = _make_own_batch(key, parts, meet)

    @compiler
    def share(part: int, number: int, bursts: int, shared: Shared, model: Model, out: Output) -> int:
        """The leader returns the number of bursts done, or ``NOT_STARTED`` and nothing has happened; a helper 0."""
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
