"""Windows: a block loads the entries of many rows in batches of a fixed size, independent of where rows begin.

A *part* is what one row delivers in a burst: all its entries, or those of one delay. The parts of a block are numbered
through as one sequence of *places*; a *window* is a range of places that the block loads at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Ids, Recall, Rows
from burstproof.engine.cuda.kernels.places import make_read_once
from burstproof.engine.cuda.kernels.queue_entries import needs_source_amount
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, in_columns

_PER_THREAD = {16: 8, 32: 6, 64: 4}
"""Entries that a thread loads per window, by bits of a queue entry; one less where a row has a part for each delay.

More would keep more loads in flight, but take more registers, of which a thread may have 64.
"""
_FILLED, _MOST_PARTS, _MOST_WIDE_PARTS = 0.96, 2048, 1024
_STRETCHES = 4
"""Stretches of places whose part a thread searches for, once for all windows of a block's parts."""


def parts_at_once(variant: Variant, queues: OwnerQueues, threads: int) -> int:
    """Parts that a block takes at a time: on average they nearly fill a whole number of windows."""
    most = _MOST_WIDE_PARTS if variant.uniform_rows or variant.offset_bits > 32 else _MOST_PARTS
    per_window = _FILLED * threads * entries_per_thread(variant, queues) / queues.part
    windows = max(1, int(most / per_window))
    return max(1, min(int(windows * per_window), most))


def parts_are_equal(variant: Variant) -> bool:
    """Whether all parts are whole rows of one length: the part of a place is then a quotient."""
    return variant.recalled == 1 and variant.row_length > 0


def entries_per_thread(variant: Variant, queues: OwnerQueues) -> int:
    """Entries of a window that a thread loads."""
    return _PER_THREAD[queues.entry_bits] - int(variant.recalled > 1)


def stored_type(variant: Variant) -> type[np.integer]:
    """Scalar type of a contribution as loaded: it is widened on use, since a conversion would wait for the load."""
    return variant.accumulator if variant.uniform_rows else variant.read_contribution


def make_part_of(variant: Variant) -> Callable[..., Any]:
    """``part_of(source, age, rows, recall)`` -> (first entry, length) of the part of delay ``age + 1`` of a row."""
    bounds, offset, places = make_bounds(variant), variant.offset, np.uint64(variant.recalled + 1)
    one = np.uint64(1)

    def whole(source: np.uint32, age: np.uint32, rows: Rows, recall: Recall) -> Any:
        start, end = bounds(source, rows)
        return start, np.uint32(end - start)

    def one_delay(source: np.uint32, age: np.uint32, rows: Rows, recall: Recall) -> Any:
        start, _ = bounds(source, rows)
        at = np.uint64(np.uint64(source) * places + np.uint64(age))
        low, high = recall.delay_starts[at], recall.delay_starts[np.uint64(at + one)]
        return offset(start + offset(low)), np.uint32(np.uint32(high) - np.uint32(low))

    return cuda.jit(device=True)(one_delay if variant.recalled > 1 else whole)  # type: ignore[no-any-return]


def noted_places(variant: Variant, queues: OwnerQueues, threads: int, whole: bool) -> int:
    """Elements of ``noted``, in which ``make_note_all`` or ``make_find`` notes parts; 1 if neither does."""
    if whole or parts_are_equal(variant):
        return 1
    return threads * (entries_per_thread(variant, queues) if queues.notes_parts else _STRETCHES)


def make_note_all(variant: Variant, queues: OwnerQueues, threads: int, whole: bool) -> Callable[..., Any]:
    """``note_all(total, parts, ends, noted)`` -> uint32 ``shift``, which ``make_find`` needs.

    If parts are long and of unequal lengths, it notes the part of the first place of each *stretch* of 2^``shift``
    places, for all windows; otherwise it does nothing. All threads of the block call it.
    """
    zero, one, block = np.uint32(0), np.uint32(1), np.uint32(threads)
    widest = np.uint32(1 << (parts_at_once(variant, queues, threads).bit_length() - 1))
    most = np.uint32(noted_places(variant, queues, threads, whole))

    def note_nothing(total: np.uint32, parts: np.uint32, ends: Ids, noted: Any) -> Any:
        return zero

    def note_stretches(total: np.uint32, parts: np.uint32, ends: Ids, noted: Any) -> Any:
        shift, last = zero, np.uint32(total - one)
        while np.uint32(last >> shift) >= most:
            shift = np.uint32(shift + one)
        stretch = np.uint32(cuda.threadIdx.x)
        while stretch <= np.uint32(last >> shift):
            place, part, step = np.uint32(stretch << shift), zero, widest
            while step > zero:
                if np.uint32(part + step) <= parts and ends[np.uint32(part + step - one)] <= place:
                    part = np.uint32(part + step)
                step = np.uint32(step >> one)
            noted[stretch] = np.uint16(part)
            stretch = np.uint32(stretch + block)
        cuda.syncthreads()
        return shift

    needless = whole or parts_are_equal(variant) or queues.notes_parts
    return cuda.jit(device=True)(note_nothing if needless else note_stretches)  # type: ignore[no-any-return]


def make_find(variant: Variant, queues: OwnerQueues, threads: int, whole: bool) -> tuple[Callable[..., Any], ...]:
    """``note(base, end, parts, ends, noted)`` and ``find(place, base, shift, ends, noted)``.

    ``find`` returns the index of the part that holds ``place``. It is computed if all parts are of one length, or if
    there is a single one (``whole``). If parts are short, ``note`` notes those of all places from ``base`` to ``end``,
    for one window; all threads of the block call it. Otherwise ``find`` starts from the part that ``make_note_all``
    noted for the stretch of the place.
    """
    zero, one, block = np.uint32(0), np.uint32(1), np.uint32(threads)
    length = np.uint32(max(1, variant.row_length))

    def note_nothing(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, noted: Any) -> None:
        """``find`` needs nothing of a single window."""

    def note_window(base: np.uint32, end: np.uint32, parts: np.uint32, ends: Ids, noted: Any) -> None:
        cuda.syncthreads()  # all threads have read ``noted`` for the last window
        part = np.uint32(cuda.threadIdx.x)
        while part < parts:
            place, after = base, min(ends[part], end)
            if part > zero:
                place = max(base, ends[np.uint32(part - one)])
            while place < after:
                noted[np.uint32(place - base)] = np.uint16(part)
                place = np.uint32(place + one)
            part = np.uint32(part + block)
        cuda.syncthreads()

    def only(place: np.uint32, base: np.uint32, shift: np.uint32, ends: Ids, noted: Any) -> Any:
        return zero

    def divide(place: np.uint32, base: np.uint32, shift: np.uint32, ends: Ids, noted: Any) -> Any:
        return np.uint32(place // length)

    def look_up(place: np.uint32, base: np.uint32, shift: np.uint32, ends: Ids, noted: Any) -> Any:
        return np.uint32(noted[np.uint32(place - base)])

    def go_on(place: np.uint32, base: np.uint32, shift: np.uint32, ends: Ids, noted: Any) -> Any:
        part = np.uint32(noted[np.uint32(place >> shift)])
        while ends[part] <= place:
            part = np.uint32(part + one)
        return part

    if whole:
        made = note_nothing, only
    elif parts_are_equal(variant):
        made = note_nothing, divide
    elif queues.notes_parts:
        made = note_window, look_up
    else:
        made = note_nothing, go_on
    return tuple(cuda.jit(device=True)(function) for function in made)


def make_load_window(variant: Variant, queues: OwnerQueues, threads: int, whole: bool) -> Callable[..., Any]:
    """``load_window(base, total, ...)``: load a thread's targets and contributions of the window from ``base`` on.

    ``total`` counts the places of all parts, or of a single one if ``whole``. Part i ends before place ``ends[i]``; its
    ``place`` is entry ``firsts[i] + place`` of the columns. ``shift`` and ``noted`` are those of ``make_find``. No
    branch stands between the loads, so all are in flight at once; threads beyond the last place load it again.
    """
    offset, columns = variant.offset, in_columns(variant)
    of_sources = needs_source_amount(variant, queues)
    per_thread, read_once = entries_per_thread(variant, queues), make_read_once()
    warp, window, one = np.uint32(WARP), np.uint32(threads * per_thread), np.uint32(1)
    note, find = make_find(variant, queues, threads, whole)

    def load_window(
        base: np.uint32,
        total: np.uint32,
        parts: np.uint32,
        shift: np.uint32,
        firsts: Any,
        ends: Ids,
        amounts: Any,
        noted: Any,
        targets: Any,
        contributions: Any,
        words: Any,
        values: Any,
    ) -> None:
        at = cuda.local.array(per_thread, offset)
        thread = np.uint32(cuda.threadIdx.x)
        own_first = np.uint32(base + np.uint32(thread // warp) * np.uint32(WARP * per_thread) + thread % warp)
        last = np.uint32(min(np.uint32(base + window), total) - one)
        note(base, np.uint32(last + one), parts, ends, noted)
        for i in range(per_thread):
            place = min(np.uint32(own_first + np.uint32(i) * warp), last)
            part = find(place, base, shift, ends, noted)
            at[i] = offset(firsts[part] + offset(place))
            if of_sources:
                values[i] = amounts[part]
        for i in range(per_thread):
            words[i] = read_once(targets, at[i])
            if columns:
                values[i] = read_once(contributions, at[i])

    return cuda.jit(device=True)(load_window)  # type: ignore[no-any-return]
