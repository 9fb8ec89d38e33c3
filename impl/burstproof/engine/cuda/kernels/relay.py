"""Words by which the blocks of a kernel and the host communicate while the kernel runs.

Stores and additions release, loads acquire: what a block did before is visible to whoever waited for the word. There is
no separate fence: next to one, ptxas turns the reductions into atomics that read back. The CUDA simulator runs one
block, and the host before and after it: there these are plain accesses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Ids, Longs
from burstproof.engine.cuda.kernels.link import CLOCK_POLLS, make_link


class Relay(NamedTuple):
    """Device functions over an int64 word, ``words[place]``, for one thread of a block after a barrier of the block.

    ``store(words, place, value)``: release for the device; ``answer(words, place, value)``: release for the host.
    ``load(words, place)``: acquire what the host stored; ``glance(words, place)``: the same word, without ordering.
    ``reply(words, place, first, ...)``, ``pair(words, place, first, second)``: one store of four uint32 or of two
    int64, without ordering. ``add(words, place)``: add 1, release for the device.
    ``reaches(words, place, value, patience)``: wait until the word is at least ``value``, for at most ``patience``
    nanoseconds, and return it; acquire for the device.
    ``look(polls, began, passed)`` -> nanoseconds: when a wait began, and how long ago; few polls read the clock.
    """

    store: Callable[..., Any]
    answer: Callable[..., Any]
    load: Callable[..., Any]
    glance: Callable[..., Any]
    reply: Callable[..., Any]
    pair: Callable[..., Any]
    add: Callable[..., Any]
    reaches: Callable[..., Any]
    look: Callable[..., Any]


@cache
def make_relay() -> Relay:
    """The functions for a device, or for the simulator."""
    load, load_of_host, glance, store, answer, add, reply, pair = _simulated() if SIMULATED else _on_device()
    now, per_look, jit = make_link().now, np.uint32(CLOCK_POLLS - 1), cuda.jit(device=True)

    def look(polls: np.uint32, began: np.uint64, passed: np.uint64) -> Any:
        if (polls & per_look) == np.uint32(0):
            if began == np.uint64(0):
                began = np.uint64(now(began))
            passed = np.uint64(np.uint64(now(np.uint64(began + passed))) - began)
        return began, passed

    look = jit(look)

    def reaches(words: Longs, place: int, value: np.int64, patience: np.uint64) -> Any:
        began, passed, polls = np.uint64(0), np.uint64(0), np.uint32(0)
        found = load(words, place)
        while found < value and passed <= patience:
            polls = np.uint32(polls + np.uint32(1))
            began, passed = look(polls, began, passed)
            found = load(words, place)
        return found

    return Relay(store, answer, load_of_host, glance, reply, pair, add, jit(reaches), look)


def _simulated() -> tuple[Callable[..., Any], ...]:
    def load(words: Longs, place: int) -> Any:
        return words[place]

    def store(words: Longs, place: int, value: np.int64) -> None:
        words[place] = value

    def add(words: Longs, place: int) -> None:
        cuda.atomic.add(words, place, 1)

    def reply(words: Ids, place: int, first: np.uint32, second: np.uint32, third: np.uint32, fourth: np.uint32) -> None:
        words[place], words[place + 1], words[place + 2], words[place + 3] = first, second, third, fourth

    def pair(words: Longs, place: int, first: np.int64, second: np.int64) -> None:
        words[place], words[place + 1] = first, second

    jit = cuda.jit(device=True)
    load, store = jit(load), jit(store)
    return load, load, load, store, store, jit(add), jit(reply), jit(pair)


def _on_device() -> tuple[Callable[..., Any], ...]:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types

    long, void = ir.IntType(64), ir.VoidType()

    def assembled(
        builder: Any, context: Any, signature: Any, args: Any, result: Any, text: str, constraints: str
    ) -> Any:
        """``text`` with the address of the word as its first operand after the result; values follow."""
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        operands = [builder.ptrtoint(builder.gep(data, [args[1]]), long), *args[2:]]
        kind = ir.FunctionType(result, [value.type for value in operands])
        return builder.call(ir.InlineAsm(kind, text, f"{constraints},~{{memory}}", True), operands)

    def loading(order: str) -> Callable[..., Any]:
        def load(typingctx: Any, words: Any, place: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                text = f"ld.{order}.global.u64 $0, [$1];"
                return assembled(builder, context, signature, args, long, text, "=l,l")

            return types.int64(words, types.intp), code

        return cuda.extending.intrinsic(load)  # type: ignore[no-any-return]

    def storing(order: str) -> Callable[..., Any]:
        def store(typingctx: Any, words: Any, place: Any, value: Any) -> Any:
            def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                assembled(builder, context, signature, args, void, f"st.{order}.global.u64 [$0], $1;", "l,l")
                return context.get_dummy_value()

            return types.void(words, types.intp, types.int64), code

        return cuda.extending.intrinsic(store)  # type: ignore[no-any-return]

    def add(typingctx: Any, words: Any, place: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            assembled(builder, context, signature, args, void, "red.release.gpu.global.add.u64 [$0], 1;", "l")
            return context.get_dummy_value()

        return types.void(words, types.intp), code

    def reply(typingctx: Any, words: Any, place: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            text = "st.relaxed.sys.global.v4.u32 [$0], {$1, $2, $3, $4};"
            assembled(builder, context, signature, args, void, text, "l,r,r,r,r")
            return context.get_dummy_value()

        return types.void(words, types.intp, *4 * (types.uint32,)), code

    def pair(typingctx: Any, words: Any, place: Any, first: Any, second: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            text = "st.relaxed.sys.global.v2.u64 [$0], {$1, $2};"
            assembled(builder, context, signature, args, void, text, "l,l,l")
            return context.get_dummy_value()

        return types.void(words, types.intp, types.int64, types.int64), code

    loads = (loading(order) for order in ("acquire.gpu", "acquire.sys", "relaxed.sys"))
    stores = (storing(order) for order in ("release.gpu", "release.sys"))
    return (*loads, *stores, *(cuda.extending.intrinsic(made) for made in (add, reply, pair)))
