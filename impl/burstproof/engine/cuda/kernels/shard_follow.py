"""How a merged burst of a shard knows whether it is done, and which: words of the report, and its place in it.

The host says in ``ORIGIN`` which burst and which exchange the train begins after. Where lists are kept, all shards must
stop before the same burst if the log of one is full. A shard learns only from the next burst what one counted, so it
says one burst ahead that it may have no room for another: all then stop after the burst in which it says so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Exchange, Fcl, Longs, Network, Steering, Turn
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FAILED, FULL_BIT
from burstproof.engine.cuda.kernels.control import HALTED, LAST_SLOT, LIMIT, LISTS, ORIGIN, STARTS
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.steer import make_fired_of


@cache
def make_follow(delayed: bool) -> Callable[..., Any]:
    """``follow(steering, exchange, fcl, turn)``.

    Returns whether the burst of the turn is done, its number, that of its exchange, the slot that it consumes, and
    whether it is the train's last. ``control[HALTED]`` is the first burst that is not done any more, or 0. An exchange
    in which a shard was waited for in vain is the last: late blocks still publish theirs, since all threads of a burst
    must find the same. The host says in ``LAST_SLOT`` where the ring is, for burst numbers are here those mod 2^32;
    without delays it has two slots, and the number says it.
    """
    one, half = np.uint32(1), np.uint64(32)

    def slot_of_ring(report: Longs, burst: np.uint32, place: np.uint32, fcl: Fcl) -> Any:
        return np.uint32(np.uint32(np.uint32(report[LAST_SLOT]) + place + one) % fcl.ring)

    def slot_of_two(report: Longs, burst: np.uint32, place: np.uint32, fcl: Fcl) -> Any:
        return np.uint32(burst & one)

    slot_of = cuda.jit(device=True)(slot_of_ring if delayed else slot_of_two)

    def follow(steering: Steering, exchange: Exchange, fcl: Fcl, turn: Turn) -> Any:
        report, place, failed = steering.report, turn.place, np.uint64(exchange.link[FAILED])
        limit, origin = np.int32(report[LIMIT]), np.uint64(report[ORIGIN])
        burst = np.uint32(np.uint32(origin) + place + one)
        sequence = np.uint32(np.uint32(origin >> half) + place + one)
        done = np.int32(place) < limit and (failed == np.uint64(0) or np.uint32(failed >> half) == sequence)
        if turn.mode == np.uint32(LISTS):
            halted = steering.control[HALTED]
            done = done and (halted == 0 or np.int32(burst - np.uint32(halted)) < np.int32(0))
        return done, burst, sequence, slot_of(report, burst, place, fcl), np.int32(place) + np.int32(1) == limit

    return cuda.jit(device=True)(follow)  # type: ignore[no-any-return]


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

    Tells all shards whether this one may have no room for two more bursts, and waits for what they tell; ``side`` is
    the first word of the mailboxes' side. ``start``: where the burst's list begins.
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
