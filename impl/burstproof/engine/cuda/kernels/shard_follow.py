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
from burstproof.engine.cuda.exchange.words import COUNT_WORD, FAILED, FULL_BIT
from burstproof.engine.cuda.kernels.control import HALTED, LAST_SLOT, LIMIT, LISTS, ORIGIN, STARTS
from burstproof.engine.cuda.kernels.link import make_link
from burstproof.engine.cuda.kernels.steer import make_fired_of


@cache
def make_follow(delayed: bool) -> Callable[..., Any]:
    """``follow(control, report, link, place, ring, mode)``.

    Returns whether the burst at ``place`` is done, its number, that of its exchange, the slot that it consumes, and
    whether it is the train's last. ``control[HALTED]`` is the first burst that is not done any more, or 0. An exchange
    in which a shard was waited for in vain is the last: late blocks still publish theirs, since all threads of a burst
    must find the same. The host says in ``LAST_SLOT`` where the ring is, for burst numbers are here those mod 2^32;
    without delays it has two slots, and the number says it.
    """
    one, half = np.uint32(1), np.uint64(32)

    def slot_of_ring(report: Any, burst: Any, place: Any, ring: Any) -> Any:
        return np.uint32(np.uint32(np.uint32(report[LAST_SLOT]) + place + one) % ring)

    def slot_of_two(report: Any, burst: Any, place: Any, ring: Any) -> Any:
        return np.uint32(burst & one)

    slot_of = cuda.jit(device=True)(slot_of_ring if delayed else slot_of_two)

    def follow(control: Any, report: Any, link: Any, place: Any, ring: Any, mode: Any) -> Any:
        limit, origin, failed = np.int32(report[LIMIT]), np.uint64(report[ORIGIN]), np.uint64(link[FAILED])
        burst = np.uint32(np.uint32(origin) + place + one)
        sequence = np.uint32(np.uint32(origin >> half) + place + one)
        done = np.int32(place) < limit and (failed == np.uint64(0) or np.uint32(failed >> half) == sequence)
        if mode == np.uint32(LISTS):
            halted = control[HALTED]
            done = done and (halted == 0 or np.int32(burst - np.uint32(halted)) < np.int32(0))
        return done, burst, sequence, slot_of(report, burst, place, ring), np.int32(place) + np.int32(1) == limit

    return cuda.jit(device=True)(follow)  # type: ignore[no-any-return]


@cache
def make_log_start() -> Callable[..., Any]:
    """``log_start(report, tallies, place, burst, mode)`` -> int64: where the burst's list begins in the log."""
    fired_of = make_fired_of()

    def log_start(report: Any, tallies: Any, place: Any, burst: Any, mode: Any) -> Any:
        start = np.int64(0)
        if mode == np.uint32(LISTS) and place > np.uint32(0):
            before = np.uint32(np.uint32(place + np.uint32(1)) & np.uint32(1))
            fired = fired_of(tallies, np.uint32(burst - np.uint32(1)))
            start = report[np.uint32(STARTS) + before] + np.int64(fired)
        return start

    return cuda.jit(device=True)(log_start)  # type: ignore[no-any-return]


@cache
def make_agree() -> Callable[..., Any]:
    """``agree(control, report, link, sinks, inboxes, side, ...)``, one thread of a burst that keeps its list.

    Tells all shards whether this one may have no room for two more bursts, and waits for what they tell; ``side`` is
    the first word of the mailboxes' side. ``start``: where the burst's list begins.
    """
    link_to = make_link()
    store, word, wait = link_to.store, link_to.word, link_to.wait
    full = np.uint32(FULL_BIT)

    def agree(
        control: Any,
        report: Any,
        link: Any,
        sinks: Any,
        inboxes: Any,
        side: Any,
        sequence: Any,
        burst: Any,
        start: Any,
        neurons: Any,
        capacity: Any,
        patience: Any,
    ) -> None:
        at = np.uint64(side + np.uint64(COUNT_WORD))
        value = np.uint32(0)
        if start + np.int64(2) * np.int64(neurons) > capacity:
            value = full
        for sink in range(sinks.size):
            store(sinks, sink, at, word(sequence, value))
        for box in range(inboxes.size):
            if wait(inboxes, box, at, sequence, patience, link) != np.uint32(0):
                control[HALTED] = np.int64(burst) + np.int64(1)

    return cuda.jit(device=True)(agree)  # type: ignore[no-any-return]
