"""The kernels around fused bursts: one begins a batch, the other gathers a burst's fired list in ascending order."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Chunks, Gathering, Ids, Log, Longs, Start, Steering, Window
from burstproof.engine.cuda.kernels.control import (
    ACTIVE,
    BURST,
    CONSUMED,
    COUNT,
    HALTED,
    INDEX,
    KEEP,
    LAST_SLOT,
    LIMIT,
    ORIGIN,
    REPORT_HEAD,
    SLOT,
    START,
    STARTS,
    STOPPED,
)
from burstproof.engine.cuda.kernels.steer import make_tally_of
from burstproof.engine.cuda.plan.block_size import CHUNKS_PER_SPAN, WARP
from burstproof.engine.cuda.plan.variant import Variant

GATHER_THREADS = 256
_SPAN = 8192
"""Neurons whose firings a block sorts at a time."""
_STAGED = 1024
"""Most firings that it stages in shared memory, so that it writes whole lines: over a link, only these matter."""


def make_begin() -> Callable[..., None]:
    """``begin(...)``, one thread: start a batch of ``start.limit`` bursts, or of ``head[0]`` if that is 0.

    If the batch before it has halted, this one does no bursts.
    """

    def begin(steering: Steering, head: Longs, start: Start) -> None:
        control, report = steering.control, steering.report
        if cuda.grid(1) != 0:
            return
        limit = start.limit
        if limit == 0:
            limit = head[0]
        if control[HALTED] != 0:
            limit = np.int64(0)
        report[LIMIT] = limit
        report[KEEP] = start.keep
        report[INDEX] = -1
        report[STOPPED] = 0
        report[ORIGIN] = control[BURST]
        report[LAST_SLOT] = control[SLOT]
        report[STARTS + 1] = 0
        control[ACTIVE] = 0

    return begin


@cache
def make_sum_of() -> Callable[..., Any]:
    """``sum_of(values, entry, end, step)``: sum of the values at ``entry``, ``entry + step``, ... below ``end``."""

    def sum_of(values: Ids, entry: np.uint32, end: np.uint32, step: np.uint32) -> Any:
        total = np.int32(0)
        while entry < end:
            total = np.int32(total + np.int32(values[entry]))
            entry = np.uint32(entry + step)
        return total

    return cuda.jit(device=True)(sum_of)  # type: ignore[no-any-return]


@cache
def make_put() -> Callable[..., Any]:
    """``put(source, potential, rank, start, shown, log, window)``: write to the log, and if ``shown`` to the window."""
    none = np.uint32(0)

    def put(
        source: np.uint32,
        potential: np.float32,
        rank: np.int64,
        start: np.int64,
        shown: np.uint32,
        log: Log,
        window: Window,
    ) -> None:
        log.log_ids[start + rank] = source
        log.log_potentials[start + rank] = potential
        if shown != none:
            window.window_ids[rank] = source
            window.window_potentials[rank] = potential

    return cuda.jit(device=True)(put)  # type: ignore[no-any-return]


@cache
def make_settle() -> Callable[..., Any]:
    """``settle(steering, answer, order, burst, start, tally)``, one thread: write control and the last counts."""

    def settle(
        steering: Steering, answer: Longs, order: Gathering, burst: np.int64, start: np.int64, tally: np.uint64
    ) -> None:
        control, last = steering.control, np.int64(steering.report[INDEX])
        fired = np.int64(tally >> np.uint64(32))
        control[BURST] = burst
        control[SLOT] = steering.report[CONSUMED]
        control[START] = start
        control[COUNT] = fired
        control[ACTIVE] = 1 if last == np.int64(order.place) else 0
        if order.final != 0:
            answer[np.int64(REPORT_HEAD) + 2 * last] = fired
            answer[np.int64(REPORT_HEAD) + 2 * last + 1] = np.int64(tally & np.uint64(0xFFFFFFFF))

    return cuda.jit(device=True)(settle)  # type: ignore[no-any-return]


@cache
def make_rank() -> Callable[..., Any]:
    """``rank(inside, low, present)`` -> uint32 set bits of ``present`` from word ``low`` on, before bit ``inside``."""
    one, low_bits, word_bits = np.uint32(1), np.uint32(31), np.uint32(5)

    def rank(inside: np.uint32, low: np.uint32, present: Ids) -> Any:
        end = np.uint32(low + (inside >> word_bits))
        bit = np.uint32(one << (inside & low_bits))
        found = np.uint32(cuda.popc(np.uint32(present[end] & np.uint32(bit - one))))
        while low < end:
            found = np.uint32(found + np.uint32(cuda.popc(present[low])))
            low = np.uint32(low + one)
        return found

    return cuda.jit(device=True)(rank)  # type: ignore[no-any-return]


def _group(variant: Variant, threads: int) -> int:
    """Chunks whose firings a block sorts at a time."""
    assert variant.fused is not None
    return max(1, min(_SPAN // variant.fused.chunk, WARP if SIMULATED else threads))


def make_gather(variant: Variant, threads: int = GATHER_THREADS) -> Callable[..., None]:
    """``gather(...)``: write the last burst's fired list to the log, ascending, with its number and counts.

    ``order.place`` is the place in the batch of the burst queued before this kernel, which may not have run. Control is
    brought up to date for kernels that send from the list. A block takes a group of chunks at a time and sets a bit for
    each firing: a neuron's rank is the number of set bits before it. Unless there are too many, firings are staged in
    shared memory, so that consecutive threads write consecutive words. A window in host memory is complete when the
    kernel ends.
    """
    assert variant.fused is not None
    chunk, group = variant.fused.chunk, _group(variant, threads)
    threads = WARP if SIMULATED else threads
    words, share = chunk // 32, np.uint32(threads // group)
    cells = group * words
    block, in_group, size = np.uint32(threads), np.uint32(group), np.uint32(chunk)
    per_span = np.uint32(CHUNKS_PER_SPAN)
    one, zero, low_bits, lane_bits = np.uint32(1), np.uint32(0), np.uint32(31), np.int64(WARP - 1)
    tally_of, settle, sum_of, put = make_tally_of(), make_settle(), make_sum_of(), make_put()
    rank_of = make_rank()
    wait_for_last, let_next_start = make_wait_for_last(variant.overlapped), make_let_next_start(variant.overlapped)

    def gather(
        steering: Steering, fired_in: Chunks, log: Log, window: Window, chunks: np.uint32, order: Gathering
    ) -> None:
        report, answer = steering.report, window.answer
        chunk_counts, chunk_ids = fired_in.chunk_counts, fired_in.chunk_ids
        present = cuda.shared.array(cells, np.uint32)
        counts = cuda.shared.array(group, np.uint32)
        starts = cuda.shared.array(group, np.int32)
        staged_ids = cuda.shared.array(_STAGED, np.uint32)
        staged_potentials = cuda.shared.array(_STAGED, np.float32)
        before = cuda.shared.array(1, np.int32)
        thread = np.uint32(cuda.threadIdx.x)
        let_next_start()
        wait_for_last()
        last = np.int64(report[INDEX])
        burst = np.int64(report[ORIGIN] + last + np.int64(1))
        tally = tally_of(steering.tallies, np.uint32(burst))
        start = report[np.uint32(STARTS) + np.uint32(last & np.int64(1))]
        shown = order.direct
        if np.int64(tally >> np.uint64(32)) > window.window:
            shown = zero
        if order.final != 0 and cuda.blockIdx.x == 0:
            item = np.int64(thread)
            while item < np.int64(REPORT_HEAD) + 2 * last:
                answer[item] = report[item]
                item += np.int64(threads)
        if last < 0:
            return
        if cuda.grid(1) == 0:
            settle(steering, answer, order, burst, start, tally)
        if last < np.int64(order.place) and report[KEEP] != 0:
            return
        spans = np.uint32((chunks + per_span - one) // per_span)
        current = np.uint32(spans if burst & np.int64(1) else zero)
        low = np.uint32(np.uint32(cuda.blockIdx.x) * in_group)
        while low < chunks:
            span = np.uint32(low // per_span)
            earlier = sum_of(fired_in.span_counts, np.uint32(current + thread), np.uint32(current + span), block)
            earlier = np.int32(earlier + sum_of(chunk_counts, np.uint32(span * per_span + thread), low, block))
            if thread == zero:
                before[0] = 0
            if thread < in_group:
                own = np.uint32(low + thread)
                starts[thread] = np.int32(0)
                counts[thread] = chunk_counts[own] if own < chunks else zero
            entry = thread
            while entry < np.uint32(cells):
                present[entry] = zero
                entry = np.uint32(entry + block)
            cuda.syncthreads()
            if earlier != 0:
                cuda.atomic.add(before, 0, earlier)
            own_chunk = np.uint32(thread // share)
            part = np.uint32(thread - own_chunk * share)
            count = zero
            if own_chunk < in_group:
                count = counts[own_chunk]
                earlier = sum_of(counts, part, own_chunk, share)
                if earlier != 0:
                    cuda.atomic.add(starts, own_chunk, earlier)
            first = np.uint32(np.uint32(low + own_chunk) * size)
            entry = part
            while entry < count:
                inside = np.uint32(chunk_ids[np.uint32(first + entry)] - first)
                word = np.uint32(own_chunk * np.uint32(words) + (inside >> np.uint32(5)))
                cuda.atomic.or_(present, word, np.uint32(one << (inside & low_bits)))
                entry = np.uint32(entry + share)
            cuda.syncthreads()
            base, last_one = np.int64(before[0]), np.uint32(in_group - one)
            firing_count = np.uint32(np.uint32(starts[last_one]) + counts[last_one])
            staged = firing_count <= np.uint32(_STAGED)
            if count > zero:
                rank_base = np.uint32(starts[own_chunk])
                entry = part
                while entry < count:
                    source = chunk_ids[np.uint32(first + entry)]
                    potential = fired_in.chunk_potentials[np.uint32(first + entry)]
                    inside = np.uint32(source - first)
                    rank = np.uint32(rank_base + rank_of(inside, np.uint32(own_chunk * np.uint32(words)), present))
                    if staged:
                        staged_ids[rank] = source
                        staged_potentials[rank] = potential
                    else:
                        put(source, potential, base + np.int64(rank), start, shown, log, window)
                    entry = np.uint32(entry + share)
            cuda.syncthreads()
            if staged:
                item = np.int64(thread) - (base & lane_bits)
                while item < np.int64(firing_count):
                    if item >= 0:
                        put(staged_ids[item], staged_potentials[item], base + item, start, shown, log, window)
                    item += np.int64(threads)
                cuda.syncthreads()
            low = np.uint32(low + np.uint32(cuda.gridDim.x) * in_group)

    return gather
