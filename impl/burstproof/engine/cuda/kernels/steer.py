"""How a fused burst knows whether it is done, and which: from its place in the train and what the last burst left.

Nobody finishes a burst. Its blocks add what they counted to one number, and the next kernel of the train, which starts
when all have, works out the rest for itself: whether the log has room for another burst, and where its list begins.
Two places of the report take turns, so that nothing is read that the same kernel writes. The numbers, *tallies*, are
four that take turns with the burst number: the last burst's is read, this one's added to, the next one's cleared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Fcl, Longs, Network, Steering, Turn, Words
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


@cache
def make_tally_of() -> Callable[..., Any]:
    """``tally_of(tallies, burst)`` -> uint64: what burst number ``burst`` counted."""

    def tally_of(tallies: Words, burst: np.uint32) -> Any:
        return tallies[np.uint32(burst) & np.uint32(TALLIES - 1)]

    return cuda.jit(device=True)(tally_of)  # type: ignore[no-any-return]


@cache
def make_fired_of() -> Callable[..., Any]:
    """``fired_of(tallies, burst)`` -> uint32: firings of burst number ``burst``.

    All four numbers are read at once: which it is depends on a number that is itself just being read.
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
def make_steer(delayed: bool) -> Callable[..., Any]:
    """``steer(steering, fcl, network, turn)``.

    Returns whether the burst of the turn is done, its number, and the slot that it consumes. Every thread asks, so
    what a ``mode`` does not need is not read. Burst numbers are here those mod 2^32, of which the slots of a ring need
    be no divisor: with delays the slot is counted on from the last one consumed before the train. Without delays the
    ring has two slots, and the number says it.
    """
    fired_of = make_fired_of()
    one = np.uint32(1)

    def slot_of_ring(words: Longs, last: int, bursts: np.uint32, burst: np.uint32, fcl: Fcl) -> Any:
        return np.uint32(np.uint32(np.uint32(words[last]) + bursts) % fcl.ring)

    def slot_of_two(words: Longs, last: int, bursts: np.uint32, burst: np.uint32, fcl: Fcl) -> Any:
        return np.uint32(burst & one)

    slot_of = cuda.jit(device=True)(slot_of_ring if delayed else slot_of_two)

    def steer(steering: Steering, fcl: Fcl, network: Network, turn: Turn) -> Any:
        control, report, place = steering.control, steering.report, turn.place
        if turn.mode == np.uint32(FRESH):
            burst = np.uint32(np.uint32(control[BURST]) + one)
            return True, burst, slot_of(control, SLOT, one, burst, fcl)
        limit, origin = np.int32(report[LIMIT]), np.uint32(report[ORIGIN])
        burst = np.uint32(origin + place + one)
        done = np.int32(place) < limit
        if turn.mode == np.uint32(LISTS):
            before = np.uint32(np.uint32(place + one) & one)
            stopped, start = np.int32(report[STOPPED]), report[np.uint32(STARTS) + before]
            fired = fired_of(steering.tallies, np.uint32(burst - one))
            if place > np.uint32(0):
                start += np.int64(fired)
            done = done and stopped == 0 and start + np.int64(network.neurons) <= steering.capacity
        return done, burst, slot_of(report, LAST_SLOT, np.uint32(place + one), burst, fcl)

    return cuda.jit(device=True)(steer)  # type: ignore[no-any-return]


@cache
def make_enter() -> Callable[..., Any]:
    """``enter(steering, turn, burst, slot)``, one thread of a burst that is done.

    Leaves what the next burst has to know, and the counts of the last one for the host.
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
    """``halt(steering, turn)``, one thread of a burst that is not done: if the log is full, stop the train.

    The train behind is held up as well, until the host has taken in this one's list.
    """

    def halt(steering: Steering, turn: Turn) -> None:
        if np.int64(turn.place) < steering.report[LIMIT]:
            steering.report[STOPPED] = 1
            steering.control[HALTED] = 1

    return cuda.jit(device=True)(halt)  # type: ignore[no-any-return]
