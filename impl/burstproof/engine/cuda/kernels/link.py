"""Words that cross between shards: 64 bits, of which the upper 32 say which burst they belong to.

A word is stored and loaded as a whole, so that whoever reads the right sequence number has the right contents: no fence
is needed, and no flag beside the data. A reader that waits gives up after a time and says whom it waited for.

Mailboxes are named by address on a device, since they lie on other devices or in host memory. The CUDA simulator has no
addresses: there a table of mailboxes is a list of arrays.
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
"""Polls, a power of two, between two looks at the clock: all that wait at once look at the same one, which is slow."""
_SPINS = 1_000_000_000
"""Nanoseconds that a reading stands for where there is no clock: in the simulator."""


class Link(NamedTuple):
    """Device functions.

    ``load(boxes, which, place)`` -> uint64, never from a cache; ``store(boxes, which, place, word)``; both take a
    table of mailboxes, or the copy of its addresses in shared memory that ``keep(boxes, which, kept)`` makes;
    ``word(sequence, value)`` -> uint64; ``wait(boxes, which, place, sequence, exchange)`` -> the lower 32 bits of the
    word once its sequence number is right, or 0 and ``link[FAILED]`` set after ``patience`` nanoseconds;
    ``now(last)`` -> uint64 nanoseconds (where there is no clock: a second more than ``last``);
    ``near(boxes, kept)`` -> whichever of both the two first take: the copy, or the table in the simulator.
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
    half, low, per_look = np.uint64(32), np.uint64(0xFFFFFFFF), np.uint32(CLOCK_POLLS - 1)
    failure = make_failure()

    def word(sequence: np.uint32, value: np.uint32) -> Any:
        return np.uint64((np.uint64(sequence) << half) | np.uint64(value))

    def wait(boxes: Words, which: np.uint32, place: np.uint64, sequence: np.uint32, exchange: Exchange) -> Any:
        link = exchange.link
        found = np.uint64(load(boxes, which, place))
        began, passed, polls = np.uint64(0), np.uint64(0), np.uint32(0)
        while np.uint32(found >> half) != sequence:
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
    """``tell(exchange, kept, place, sequence, value)``, one thread: a word to all shards."""
    link_to = make_link()
    store, word, near = link_to.store, link_to.word, link_to.near

    def tell(exchange: Exchange, kept: Words, place: np.uint64, sequence: np.uint32, value: np.uint32) -> None:
        for sink in range(exchange.sinks.size):
            store(near(exchange.sinks, kept), sink, place, word(sequence, value))

    return cuda.jit(device=True)(tell)  # type: ignore[no-any-return]


@cache
def make_failure() -> Callable[..., Any]:
    """``failure(sequence, which)`` -> int64 for ``FAILED``: which shard was waited for in vain, in which exchange."""
    half = np.uint64(32)

    def failure(sequence: np.uint32, which: np.uint32) -> Any:
        return np.int64((np.uint64(sequence) << half) | (np.uint64(which) + np.uint64(1)))

    return cuda.jit(device=True)(failure)  # type: ignore[no-any-return]


def _simulated() -> tuple[Callable[..., Any], ...]:
    def load(boxes: Any, which: np.uint32, place: np.uint64) -> Any:
        return boxes[which][place]

    def store(boxes: Any, which: np.uint32, place: np.uint64, word: np.uint64) -> None:
        boxes[which][place] = word

    def now(last: np.uint64) -> Any:
        return np.uint64(last + np.uint64(_SPINS))

    def keep(boxes: Words, which: np.uint32, kept: Words) -> None:
        return

    def near(boxes: Words, kept: Words) -> Any:
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

    def keep(boxes: Words, which: np.uint32, kept: Words) -> None:
        kept[which] = boxes[which]

    def near(boxes: Words, kept: Words) -> Any:
        return kept

    return tuple(cuda.jit(device=True)(function) for function in (load, store, now, keep, near))


def _instructions() -> tuple[Any, Any, Any]:
    """Load and store of a 64-bit word that the whole system sees as one, and the global timer in nanoseconds."""
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
