"""Words that shards exchange: 64 bits, the upper 32 of which are the sequence number of the exchange.

A word is stored and loaded as a whole, so whoever reads the right sequence number has the right value: no fence is
needed, and no flag beside the data. A reader gives up after a time limit and says which shard it waited for.

Mailboxes are named by address, since they lie on other devices or in host memory. The CUDA simulator has no addresses:
there a table of mailboxes is a list of arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Exchange, Words
from burstproof.engine.cuda.exchange.words import FAILED

CLOCK_POLLS = 256
"""Polls between two reads of the clock, a power of two: all waiting threads read the same clock, which is slow."""
_SPINS = 1_000_000_000
"""Nanoseconds between two reads of the clock in the simulator, which has none."""


class Link(NamedTuple):
    """Device functions. ``boxes`` is a table of mailboxes, or a copy of its addresses in shared memory.

    ``load(boxes, which, place)`` -> uint64, never from a cache; ``store(boxes, which, place, word)``.
    ``keep(boxes, which, copies)`` copies an address; ``near(boxes, copies)`` -> the copies, in the simulator the table.
    ``word(sequence, value)`` -> uint64. ``wait(boxes, which, place, sequence, exchange)`` -> the lower 32 bits of the
    word once its sequence number is right; after ``patience`` nanoseconds it sets ``link[FAILED]`` and returns 0.
    ``now(last)`` -> uint64 nanoseconds (without a clock: a second more than ``last``).
    """

    load: Callable[..., Any]
    store: Callable[..., Any]
    word: Callable[..., Any]
    wait: Callable[..., Any]
    now: Callable[..., Any]
    keep: Callable[..., Any]
    near: Callable[..., Any]


@cache
def make_link() -> Link:
    """The functions for a device, or for the simulator."""
    load, store, now, keep, near = _simulated() if SIMULATED else _on_device()
    high_shift, low, per_look = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint32(CLOCK_POLLS - 1)
    failure = make_failure()

    def word(sequence: np.uint32, value: np.uint32) -> Any:
        return np.uint64((np.uint64(sequence) << high_shift) | np.uint64(value))

    def wait(boxes: Words, which: np.uint32, place: np.uint64, sequence: np.uint32, exchange: Exchange) -> Any:
        link = exchange.link
        found = np.uint64(load(boxes, which, place))
        began, passed, polls = np.uint64(0), np.uint64(0), np.uint32(0)
        while np.uint32(found >> high_shift) != sequence:
            polls = np.uint32(polls + np.uint32(1))
            if (polls & per_look) == np.uint32(0):
                if began == np.uint64(0):
                    began = np.uint64(now(began))
                passed = np.uint64(now(np.uint64(began + passed)) - began)
                if passed > exchange.patience and link[FAILED] == 0:
                    link[FAILED] = failure(sequence, which)
                if link[FAILED] != 0:
                    return np.uint32(0)
            found = np.uint64(load(boxes, which, place))
        return np.uint32(found & low)

    jit = cuda.jit(device=True)
    return Link(load, store, jit(word), jit(wait), now, keep, near)


@cache
def make_tell() -> Callable[..., Any]:
    """``tell(exchange, sinks, place, sequence, value)``, one thread: send a word to all shards."""
    link_to = make_link()
    store, word, near = link_to.store, link_to.word, link_to.near

    def tell(exchange: Exchange, sinks: Words, place: np.uint64, sequence: np.uint32, value: np.uint32) -> None:
        for sink in range(exchange.sinks.size):
            store(near(exchange.sinks, sinks), sink, place, word(sequence, value))

    return cuda.jit(device=True)(tell)  # type: ignore[no-any-return]


@cache
def make_failure() -> Callable[..., Any]:
    """``failure(sequence, which)`` -> int64 for ``FAILED``: the exchange, and the shard that was waited for in vain."""
    high_shift = np.uint64(32)

    def failure(sequence: np.uint32, which: np.uint32) -> Any:
        return np.int64((np.uint64(sequence) << high_shift) | (np.uint64(which) + np.uint64(1)))

    return cuda.jit(device=True)(failure)  # type: ignore[no-any-return]


def _simulated() -> tuple[Callable[..., Any], ...]:
    def load(boxes: Any, which: np.uint32, place: np.uint64) -> Any:
        return boxes[which][place]

    def store(boxes: Any, which: np.uint32, place: np.uint64, word: np.uint64) -> None:
        boxes[which][place] = word

    def now(last: np.uint64) -> Any:
        return np.uint64(last + np.uint64(_SPINS))

    def keep(boxes: Words, which: np.uint32, copies: Words) -> None:
        return

    def near(boxes: Words, copies: Words) -> Any:
        return boxes

    return tuple(cuda.jit(device=True)(function) for function in (load, store, now, keep, near))


def _on_device() -> tuple[Callable[..., Any], ...]:
    load_at, store_at, clock = _instructions()
    size = np.uint64(8)

    def load(boxes: Any, which: np.uint32, place: np.uint64) -> Any:
        return load_at(np.uint64(boxes[which] + np.uint64(place) * size))

    def store(boxes: Any, which: np.uint32, place: np.uint64, word: np.uint64) -> None:
        store_at(np.uint64(boxes[which] + np.uint64(place) * size), word)

    def now(last: np.uint64) -> Any:
        return clock()

    def keep(boxes: Words, which: np.uint32, copies: Words) -> None:
        copies[which] = boxes[which]

    def near(boxes: Words, copies: Words) -> Any:
        return copies

    return tuple(cuda.jit(device=True)(function) for function in (load, store, now, keep, near))


def _instructions() -> tuple[Any, Any, Any]:
    """Load and store of a 64-bit word, atomic for the whole system, and the global timer in nanoseconds."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    long = ir.IntType(64)

    def assembled(builder: Any, kind: Any, text: str, constraints: str, args: Any) -> Any:
        return builder.call(ir.InlineAsm(kind, text, constraints, True), list(args))

    def load_at(typingctx: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(long, [long])
            return assembled(builder, kind, "ld.relaxed.sys.global.u64 $0, [$1];", "=l,l,~{memory}", args)

        return types.uint64(types.uint64), code

    def store_at(typingctx: Any, address: Any, word: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.FunctionType(ir.VoidType(), [long, long])
            assembled(builder, kind, "st.relaxed.sys.global.u64 [$0], $1;", "l,l,~{memory}", args)
            return context.get_dummy_value()

        return types.void(types.uint64, types.uint64), code

    def clock(typingctx: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return assembled(builder, ir.FunctionType(long, []), "mov.u64 $0, %globaltimer;", "=l,~{memory}", args)

        return types.uint64(), code

    intrinsic = cuda.extending.intrinsic
    return intrinsic(load_at), intrinsic(store_at), intrinsic(clock)
