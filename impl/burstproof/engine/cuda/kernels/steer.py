"""How a fused burst knows whether it runs, and which it is: from its place in the batch and what the last burst left.

No block finishes a burst. All add their counts to one word, and the next kernel of the batch, which starts when all
have, works out the rest itself: whether the log has room for another burst, and where its list begins. Two places of
the report are double-buffered, so no kernel reads what it writes. The words, *tallies*, are a ring of four by burst
number: the last burst's is read, this one's is added to, the next one's is cleared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Exchange, Fcl, Longs, Network, Steering, Turn, Words
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FAILED, FULL_BIT
from burstproof.engine.cuda.kernels.control import (
    BURST,
    CONSUMED,
    FRESH,
    HALTED,
    INDEX,
    LAST_SLOT,
    LIMIT,
    LISTS,
    ORIGIN,
    REPORT_HEAD,
    SLOT,
    STARTS,
    STOPPED,
    TALLIES,
)
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.plan.shard_variant import ShardVariant


@cache
def make_tally_of() -> Callable[..., Any]:
    """``tally_of(tallies, burst)`` -> uint64: the tally of burst number ``burst``."""

    def tally_of(tallies: Words, burst: np.uint32) -> Any:
        return tallies[np.uint32(burst) & np.uint32(TALLIES - 1)]

    return cuda.jit(device=True)(tally_of)  # type: ignore[no-any-return]


@cache
def make_fired_of() -> Callable[..., Any]:
    """``fired_of(tallies, burst)`` -> uint32: firings of burst number ``burst``.

    All four tallies are loaded at once, because the index depends on a number that is still being loaded.
    """
    shift = np.uint64(32)

    def fired_of(tallies: Words, burst: np.uint32) -> Any:
        first, second = np.uint32(tallies[0] >> shift), np.uint32(tallies[1] >> shift)
        third, fourth = np.uint32(tallies[2] >> shift), np.uint32(tallies[3] >> shift)
        which = np.uint32(burst) & np.uint32(TALLIES - 1)
        low = second if which & np.uint32(1) else first
        high = fourth if which & np.uint32(1) else third
        return np.uint32(high if which & np.uint32(2) else low)

    return cuda.jit(device=True)(fired_of)  # type: ignore[no-any-return]


@cache
def make_slot_of(delayed: bool) -> Callable[..., Any]:
    """``slot_of(words, last, bursts, burst, fcl)``: index of the slot that ``burst`` consumes.

    ``burst`` is the burst number mod 2^32, which the length of a ring need not divide. With delays the slot is
    therefore ``bursts`` slots after ``words[last]``. Without delays the ring has two slots: the parity of ``burst``.
    """
    one = np.uint32(1)

    def of_ring(words: Longs, last: int, bursts: np.uint32, burst: np.uint32, fcl: Fcl) -> Any:
        return np.uint32(np.uint32(np.uint32(words[last]) + bursts) % fcl.ring)

    def of_two(words: Longs, last: int, bursts: np.uint32, burst: np.uint32, fcl: Fcl) -> Any:
        return np.uint32(burst & one)

    return cuda.jit(device=True)(of_ring if delayed else of_two)  # type: ignore[no-any-return]


def make_steer(shard: ShardVariant) -> Callable[..., Any]:
    """``steer(steering, exchange, fcl, network, turn)``.

    Returns whether the burst of the turn runs, its number, the number of its exchange, the slot that it consumes, and
    whether it is the batch's last, which is only known with an exchange. Every thread calls it, so it reads only what
    the ``mode`` needs.

    With an exchange the host writes the burst and the exchange before the batch to ``ORIGIN``, and the position in the
    ring to ``LAST_SLOT``. If lists are kept, all shards must stop before the same burst when the log of one is full:
    ``control[HALTED]`` is the first burst that does not run, or 0 (``make_agree``, ``kernels.lists``). An exchange in
    which a shard was waited for in vain is the last. Late blocks still publish their packets of it, because all threads
    of a burst must get the same result.
    """
    fired_of, slot_of = make_fired_of(), make_slot_of(shard.variant.delays and not shard.calendar)
    one, zero, high_shift = np.uint32(1), np.uint32(0), np.uint64(32)

    def alone(steering: Steering, exchange: Exchange, fcl: Fcl, network: Network, turn: Turn) -> Any:
        control, report, place = steering.control, steering.report, turn.place
        if turn.mode == np.uint32(FRESH):
            burst = np.uint32(np.uint32(control[BURST]) + one)
            return True, burst, zero, slot_of(control, SLOT, one, burst, fcl), False
        limit, origin = np.int32(report[LIMIT]), np.uint32(report[ORIGIN])
        burst = np.uint32(origin + place + one)
        runs = np.int32(place) < limit
        if turn.mode == np.uint32(LISTS):
            before = np.uint32(np.uint32(place + one) & one)
            stopped, start = np.int32(report[STOPPED]), report[np.uint32(STARTS) + before]
            fired = fired_of(steering.tallies, np.uint32(burst - one))
            if place > np.uint32(0):
                start += np.int64(fired)
            runs = runs and stopped == 0 and start + np.int64(network.neurons) <= steering.capacity
        return runs, burst, zero, slot_of(report, LAST_SLOT, np.uint32(place + one), burst, fcl), False

    def together(steering: Steering, exchange: Exchange, fcl: Fcl, network: Network, turn: Turn) -> Any:
        report, place, failed = steering.report, turn.place, np.uint64(exchange.link[FAILED])
        limit, origin = np.int32(report[LIMIT]), np.uint64(report[ORIGIN])
        burst = np.uint32(np.uint32(origin) + place + one)
        sequence = np.uint32(np.uint32(origin >> high_shift) + place + one)
        runs = np.int32(place) < limit and (failed == np.uint64(0) or np.uint32(failed >> high_shift) == sequence)
        if turn.mode == np.uint32(LISTS):
            halted = steering.control[HALTED]
            runs = runs and (halted == 0 or np.int32(burst - np.uint32(halted)) < np.int32(0))
        slot = slot_of(report, LAST_SLOT, np.uint32(place + one), burst, fcl)
        return runs, burst, sequence, slot, np.int32(place) + np.int32(1) == limit

    return cuda.jit(device=True)(together if shard.exchanges else alone)  # type: ignore[no-any-return]


@cache
def make_enter() -> Callable[..., Any]:
    """``enter(steering, turn, burst, slot)``, one thread of a burst that runs.

    Writes what the next burst needs, and the counts of the last one for the host.
    """
    tally_of = make_tally_of()

    def enter(steering: Steering, turn: Turn, burst: np.uint32, slot: np.uint32) -> None:
        control, report, tallies = steering.control, steering.report, steering.tallies
        place, mode = turn.place, turn.mode
        now = np.uint32(place & np.uint32(1))
        report[INDEX] = np.int64(place)
        report[CONSUMED] = np.int64(slot)
        start = np.int64(0)
        if mode == np.uint32(FRESH):
            report[ORIGIN] = control[BURST]
        if place > np.uint32(0):
            tally = tally_of(tallies, np.uint32(burst - np.uint32(1)))
            if mode == np.uint32(LISTS):
                start = report[np.uint32(STARTS) + np.uint32(np.uint32(1) - now)] + np.int64(tally >> np.uint64(32))
            row = np.uint32(np.uint32(REPORT_HEAD) + np.uint32(2) * np.uint32(place - np.uint32(1)))
            report[row] = np.int64(tally >> np.uint64(32))
            report[np.uint32(row + np.uint32(1))] = np.int64(tally & np.uint64(0xFFFFFFFF))
        report[np.uint32(STARTS) + now] = start
        tallies[np.uint32(burst + np.uint32(1)) & np.uint32(TALLIES - 1)] = np.uint64(0)

    return cuda.jit(device=True)(enter)  # type: ignore[no-any-return]


@cache
def make_halt() -> Callable[..., Any]:
    """``halt(steering, turn)``, one thread of a burst that does not run: if the log is full, stop the batch.

    The next batch is held up as well, until the host has taken this one's lists.
    """

    def halt(steering: Steering, turn: Turn) -> None:
        if np.int64(turn.place) < steering.report[LIMIT]:
            steering.report[STOPPED] = 1
            steering.control[HALTED] = 1

    return cuda.jit(device=True)(halt)  # type: ignore[no-any-return]


@cache
def make_log_start() -> Callable[..., Any]:
    """``log_start(steering, turn, burst)`` -> int64: where the burst's list begins in the log."""
    fired_of = make_fired_of()

    def log_start(steering: Steering, turn: Turn, burst: np.uint32) -> Any:
        place = turn.place
        start = np.int64(0)
        if turn.mode == np.uint32(LISTS) and place > np.uint32(0):
            before = np.uint32(np.uint32(place + np.uint32(1)) & np.uint32(1))
            fired = fired_of(steering.tallies, np.uint32(burst - np.uint32(1)))
            start = steering.report[np.uint32(STARTS) + before] + np.int64(fired)
        return start

    return cuda.jit(device=True)(log_start)  # type: ignore[no-any-return]


@cache
def make_agree() -> Callable[..., Any]:
    """``agree(steering, exchange, network, side, ...)``, one thread of a burst that keeps its list.

    Tells all shards whether this one may lack room for two more bursts, and waits for what they tell. The counts of a
    burst are known only in the next one, so a shard says so one burst ahead. ``side`` is the first word of the
    mailboxes' side, ``start`` the place where the burst's list begins.
    """
    link_to = make_link()
    store, word, wait = link_to.store, link_to.word, link_to.wait
    full = np.uint32(FULL_BIT)

    def agree(
        steering: Steering,
        exchange: Exchange,
        network: Network,
        side: np.uint64,
        sequence: np.uint32,
        burst: np.uint32,
        start: np.int64,
    ) -> None:
        sinks, inboxes = exchange.sinks, exchange.inboxes
        at = np.uint64(side + np.uint64(COUNT_WORD))
        value = np.uint32(0)
        if start + np.int64(2) * np.int64(network.neurons) > steering.capacity:
            value = full
        for sink in range(sinks.size):
            store(sinks, sink, at, word(sequence, value))
        for box in range(inboxes.size):
            if wait(inboxes, box, at, sequence, exchange) != np.uint32(0):
                steering.control[HALTED] = np.int64(burst) + np.int64(1)

    return cuda.jit(device=True)(agree)  # type: ignore[no-any-return]
