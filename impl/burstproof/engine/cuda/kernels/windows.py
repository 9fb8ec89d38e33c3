"""Windows: a block loads the entries of many rows in batches of a fixed size, independent of where rows begin.

A *part* is what one row delivers in a burst: all its entries, or those of one delay. The parts of a block are numbered
through as one sequence of *places*; a *window* is a range of places that the block loads at once. A place is a *vector*
of one, two or four consecutive entries, which a thread loads by one instruction. Vectors are aligned in memory, parts
need not be: the first and the last vector of a part may hold entries that are not its own, which are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Ids, Recall, Rows
from burstproof.engine.cuda.kernels.places import make_read_several
from burstproof.engine.cuda.kernels.queue_entries import needs_source_amount
from burstproof.engine.cuda.kernels.rows import make_bounds
from burstproof.engine.cuda.plan.block_size import WARP
from burstproof.engine.cuda.plan.variant import OwnerQueues, Variant, in_columns

_WIDEST = 4
"""Most entries of a vector: 16 bytes of targets. A thread loads one such vector per window: two were slower."""
_PER_THREAD = {16: 8, 32: 6, 64: 4}
"""Entries that a thread loads per window in narrower vectors, by bits of a queue entry; one less where a row has a part
for each delay. More would keep more loads in flight, but take more registers, of which a thread may have 64."""
_FILLED = 0.96
_STRETCHES = 4
"""Stretches of places whose part a thread searches for, once for all windows of a block's parts."""


class Parts(NamedTuple):
    """The parts of a block, in shared memory.

    Part i ends before place ``ends[i]``. The vector at a ``place`` of it begins at entry ``firsts[i] + width * place``
    of the columns, rounded down to a multiple of the width; ``tails[i]`` entries of its last vector are not its own.
    ``amounts[i]`` is the contribution of all its entries, if ``needs_source_amount``.
    """

    firsts: Any
    ends: Ids
    tails: Any
    amounts: Any


def parts_at_once(variant: Variant, queues: OwnerQueues, threads: int) -> int:
    """Parts that a block takes at a time: on average they nearly fill a whole number of windows."""
    per_window = _FILLED * threads * entries_per_thread(variant, queues) / queues.part
    windows = max(1, int(queues.most_parts / per_window))
    return max(1, min(int(windows * per_window), queues.most_parts))


def parts_are_equal(variant: Variant) -> bool:
    """Whether all parts are whole rows of one length: the part of a place is then a quotient."""
    return variant.recalled == 1 and variant.row_length > 0


def vector_width(variant: Variant, queues: OwnerQueues, whole: bool = False) -> int:
    """Entries of a place: 1 if parts are short, since many vectors would then hold few entries of a part."""
    if whole:
        return _WIDEST
    if parts_are_equal(variant):
        return math.gcd(variant.row_length, _WIDEST)
    return 1 if queues.notes_parts else _WIDEST


def entries_per_thread(variant: Variant, queues: OwnerQueues, whole: bool = False) -> int:
    """Entries of a window that a thread loads."""
    width = vector_width(variant, queues, whole)
    if width == _WIDEST:
        return width
    return (_PER_THREAD[queues.entry_bits] - int(variant.recalled > 1)) // width * width


def make_places_of(variant: Variant, queues: OwnerQueues, whole: bool = False) -> Callable[..., Any]:
    """``places_of(first, length)`` -> (uint32 places of a part, uint8 entries of the last that are not its own)."""
    width, zero = np.uint32(vector_width(variant, queues, whole)), np.uint32(0)
    low_bits = np.uint32(width - np.uint32(1))

    def places_of(first: np.unsignedinteger, length: np.uint32) -> Any:
        if length == zero:
            return zero, np.uint8(0)
        end = np.uint32(np.uint32(np.uint32(first) & low_bits) + length)
        places = np.uint32(np.uint32(end + low_bits) // width)
        return places, np.uint8(places * width - end)

    return cuda.jit(device=True)(places_of)  # type: ignore[no-any-return]


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
    """``note_all(total, count, ends, noted)`` -> uint32 ``shift``, which ``make_find`` needs.

    If parts are long and of unequal lengths, it notes the part of the first place of each *stretch* of 2^``shift``
    places, for all windows; otherwise it does nothing. All threads of the block call it.
    """
    zero, one, block = np.uint32(0), np.uint32(1), np.uint32(threads)
    widest = np.uint32(1 << (parts_at_once(variant, queues, threads).bit_length() - 1))
    most = np.uint32(noted_places(variant, queues, threads, whole))

    def note_nothing(total: np.uint32, count: np.uint32, ends: Ids, noted: Any) -> Any:
        return zero

    def note_stretches(total: np.uint32, count: np.uint32, ends: Ids, noted: Any) -> Any:
        shift, last = zero, np.uint32(total - one)
        while np.uint32(last >> shift) >= most:
            shift = np.uint32(shift + one)
        stretch = np.uint32(cuda.threadIdx.x)
        while stretch <= np.uint32(last >> shift):
            place, part, step = np.uint32(stretch << shift), zero, widest
            while step > zero:
                if np.uint32(part + step) <= count and ends[np.uint32(part + step - one)] <= place:
                    part = np.uint32(part + step)
                step = np.uint32(step >> one)
            noted[stretch] = np.uint16(part)
            stretch = np.uint32(stretch + block)
        cuda.syncthreads()
        return shift

    needless = whole or parts_are_equal(variant) or queues.notes_parts
    return cuda.jit(device=True)(note_nothing if needless else note_stretches)  # type: ignore[no-any-return]


def make_find(variant: Variant, queues: OwnerQueues, threads: int, whole: bool) -> tuple[Callable[..., Any], ...]:
    """``note(base, end, count, ends, noted)`` and ``find(place, base, shift, ends, noted)``.

    ``find`` returns the index of the part that holds ``place``. It is computed if all parts are of one length, or if
    there is a single one (``whole``). If parts are short, ``note`` notes those of all places from ``base`` to ``end``,
    for one window; all threads of the block call it. Otherwise ``find`` starts from the part that ``make_note_all``
    noted for the stretch of the place.
    """
    zero, one, block = np.uint32(0), np.uint32(1), np.uint32(threads)
    length = np.uint32(max(1, variant.row_length // vector_width(variant, queues, whole)))

    def note_nothing(base: np.uint32, end: np.uint32, count: np.uint32, ends: Ids, noted: Any) -> None:
        """``find`` needs nothing of a single window."""

    def note_window(base: np.uint32, end: np.uint32, count: np.uint32, ends: Ids, noted: Any) -> None:
        cuda.syncthreads()  # all threads have read ``noted`` for the last window
        part = np.uint32(cuda.threadIdx.x)
        while part < count:
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
    """``load_window(base, total, ...)`` -> bit mask of the entries that a thread loaded of the window from ``base`` on.

    ``total`` counts the places of all ``count`` parts, or of a single one if ``whole``; ``shift`` and ``noted`` are
    those of ``make_find``. No branch stands between the loads, so all are in flight at once; threads beyond the last
    place load it again.
    """
    offset, columns, of_sources = variant.offset, in_columns(variant), needs_source_amount(variant, queues)
    width, per_thread = vector_width(variant, queues, whole), entries_per_thread(variant, queues, whole)
    trimmed = width > 1 and (whole or not parts_are_equal(variant))
    vectors, read = per_thread // width, make_read_several(width)
    warp, window, one, zero = np.uint32(WARP), np.uint32(threads * vectors), np.uint32(1), np.uint32(0)
    wide, low_bits, full = offset(width), offset(width - 1), np.uint32((1 << width) - 1)
    note, find = make_find(variant, queues, threads, whole)

    def own_entries(place: np.uint32, part: np.uint32, entry: np.unsignedinteger, parts: Parts) -> Any:
        """Bit mask of the entries of the vector at ``place`` that belong to ``part``."""
        mask, before = full, zero
        if part > zero:
            before = parts.ends[np.uint32(part - one)]
        if place == before:
            mask = np.uint32(np.uint32(full << np.uint32(entry & low_bits)) & full)
        if np.uint32(place + one) == parts.ends[part]:
            mask = np.uint32(mask & np.uint32(full >> np.uint32(parts.tails[part])))
        return mask

    own_entries = cuda.jit(device=True)(own_entries)

    def load_window(
        base: np.uint32,
        total: np.uint32,
        count: np.uint32,
        parts: Parts,
        shift: np.uint32,
        noted: Any,
        targets: Any,
        contributions: Any,
        words: Any,
        values: Any,
    ) -> Any:
        at = cuda.local.array(vectors, offset)
        thread, loaded = np.uint32(cuda.threadIdx.x), zero
        own_first = np.uint32(base + np.uint32(thread // warp) * np.uint32(WARP * vectors) + thread % warp)
        last = np.uint32(min(np.uint32(base + window), total) - one)
        note(base, np.uint32(last + one), count, parts.ends, noted)
        for i in range(vectors):
            own = np.uint32(own_first + np.uint32(i) * warp)
            place, mask = min(own, last), full
            part = find(place, base, shift, parts.ends, noted)
            entry = offset(parts.firsts[part] + wide * offset(place))
            if trimmed:
                mask, entry = own_entries(place, part, entry, parts), offset(entry & ~low_bits)
            if own <= last:
                loaded = np.uint32(loaded | np.uint32(mask << np.uint32(i * width)))
            at[i] = entry
            if of_sources:
                for k in range(width):
                    values[i * width + k] = parts.amounts[part]
        for i in range(vectors):
            several = read(targets, np.uint64(at[i]))
            for k in range(width):
                words[i * width + k] = several[k]
            if columns:
                several_values = read(contributions, np.uint64(at[i]))
                for k in range(width):
                    values[i * width + k] = several_values[k]
        return loaded

    return cuda.jit(device=True)(load_window)  # type: ignore[no-any-return]
