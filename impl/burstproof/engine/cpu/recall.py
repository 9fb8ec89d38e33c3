"""Propagation over sums that fit a core's cache: fired lists are kept, and rows are read as they arrive.

Neurons are cut into regions whose sums fit (``regions.py``). In each burst the thread that owns a region adds up what
arrives there: of each of the last D fired lists, the synapses of one delay. So nothing waits in a queue, no thread
writes what another one reads but fired lists, and all sums are those of one burst. A row is divided into parts, one for
each region and delay. A synapse is a word: its target, and above that the place of its contribution in the palette.

A state that is saved has all that is under way in the ring (``arrays.Model``), and one that is restored too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burstproof.engine.compiler import compiler, inner_compiler
from burstproof.engine.cpu.arrays import Array, Counters, Ids, Recall, Scalars, Static
from burstproof.engine.cpu.deliver import make_take_ring
from burstproof.engine.cpu.intrinsics import on_stack, prefetch
from burstproof.engine.cpu.key import CLAMPED, KernelKey
from burstproof.engine.cpu.lines import LINE, SUMS, lines, zeros_at
from burstproof.engine.cpu.palette import find, palette_of
from burstproof.engine.cpu.regions import ALIGNED, Regions, balanced_bounds, cut
from burstproof.engine.cpu.rows_ahead import LINE_BYTES, MOST_SYNAPSES
from burstproof.engine.cpu.sums import make_add
from burstproof.engine.disk import keep_on_disk
from burstproof.engine.layout import Layout
from burstproof.engine.rules import Compiled
from burstproof.engine.spans import on_spans

CACHED_BYTES = 1 << 20
"""Most bytes of sums that a thread adds to wherever they lie: they fit a second-level cache."""

_WORD_BITS = 32
_MOST_NARROW = (1 << 32) - 1
"""Synapses that offsets of 32 bits count at most."""
_MOST_COLUMNS, _COLUMNS = 1023, 1024
"""Parts that a row is divided into at most, and room for their ends."""
_FEWEST_PART, _FEWEST_OF_REGION = 3, 6
"""Synapses of a part of a row, in the mean, from which on lists are faster than queues: with one region, or several."""
_AHEAD = 16
"""Turns ahead that what a source delivers is asked for, and where it begins twice as many."""


class RecallParts(NamedTuple):
    """Kernels over fired lists; the signatures are those of the functions that they come from."""

    collect: Compiled
    note: Compiled
    put_ahead: Compiled


def recall_of(layout: Layout, static: Static, sums: np.dtype[Any], threads: int) -> Recall | None:
    """The rows ``static`` of ``layout`` as words for ``threads`` threads, with room for fired lists.

    ``None`` where rows cannot be recalled: some are computed, there are none, parts are too short, or contributions too
    many.
    """
    neurons, slots, synapses = layout.neuron_count, layout.max_delay, len(static.targets)
    if layout.computed is not None or layout.plastic is not None or not synapses:
        return None
    most, sources = max(CACHED_BYTES // sums.itemsize // ALIGNED, 1) * ALIGNED, len(static.offsets) - 1
    if not _pays(-(-neurons // most), slots, synapses / sources):
        return None
    cuts = cut(balanced_bounds(static.targets, neurons, threads), most)
    regions = len(cuts.regions) - 1
    columns = regions * slots
    if not _pays(regions, slots, synapses / sources):
        return None
    bits = max(1, (int(np.diff(cuts.regions).max()) - 1).bit_length())
    palette = palette_of(static.contributions, 1 << (_WORD_BITS - bits))
    if not len(palette.values):
        return None
    words = np.empty(synapses, np.uint32)
    offsets = np.zeros(sources * columns + 1, np.uint32 if synapses <= _MOST_NARROW else np.int64)
    packing = palette.values, palette.numbers, np.uint32(bits), slots, words, offsets
    _pack(0, 0, static, cuts, *packing)  # compiled once, before all cores begin
    on_spans(0, sources, lambda span: _pack(span.start, span.stop, static, cuts, *packing))
    return Recall(
        cuts.bounds,
        cuts.owned,
        cuts.regions,
        offsets,
        words,
        palette.values,
        bits,
        static.clamped_sources,
        np.empty((slots + 1, neurons), np.uint32),
        lines(slots + 1, threads, LINE),
        zeros_at(SUMS, neurons, sums),
        np.zeros((regions, slots), np.int64),
    )


def _pays(regions: int, slots: int, synapses: float) -> bool:
    """Whether rows of so many ``synapses``, in the mean, are long enough to be divided by regions and delays."""
    columns, fewest = regions * slots, _FEWEST_PART if regions == 1 else _FEWEST_OF_REGION
    return columns <= _MOST_COLUMNS and (columns == 1 or synapses >= fewest * columns)


@inner_compiler
def _column(j: int, static: Static, cuts: Regions, slots: int, delayed: bool) -> int:
    """Part of its row that synapse ``j`` belongs to."""
    region: int = cuts.region_of[static.targets[j] // ALIGNED]
    delay: int = static.delays[j] if delayed else 1
    return region * slots + delay - 1


@compiler
def _pack(
    first: int,
    last: int,
    static: Static,
    cuts: Regions,
    values: Array,
    numbers: Array,
    bits: np.uint32,
    slots: int,
    words: Array,
    offsets: Array,
) -> None:
    """Words of rows ``first`` ... ``last - 1``, each by region and delay, and where each of these parts ends."""
    ends = on_stack(_COLUMNS, np.int64)
    columns, delayed = slots * (len(cuts.regions) - 1), len(static.delays) > 0
    for row in range(first, last):
        ends[: columns + 1] = 0
        for j in range(static.offsets[row], static.offsets[row + 1]):
            ends[_column(j, static, cuts, slots, delayed) + 1] += 1
        ends[0] = static.offsets[row]
        for column in range(1, columns + 1):
            ends[column] += ends[column - 1]
            offsets[row * columns + column] = ends[column]
        for j in range(static.offsets[row], static.offsets[row + 1]):
            column = _column(j, static, cuts, slots, delayed)
            place = np.uint32(numbers[find(static.contributions[j], values, numbers)] - 1)
            words[ends[column]] = (place << bits) | np.uint32(static.targets[j] - cuts.regions[column // slots])
            ends[column] += 1


keep_on_disk(_pack, "recall")


def make_recall(key: KernelKey) -> RecallParts:
    """The kernels for ``key``."""
    add_list = _make_add_list()
    return RecallParts(_make_collect(add_list), _make_note(key), _make_put_ahead(add_list))


def _make_add_list() -> Compiled:
    add, line = make_add(), LINE_BYTES // 4

    @inner_compiler
    def look_ahead(turn: int, ids: Ids, column: int, columns: int, recall: Recall) -> None:
        """Ask for what is read some turns after ``turn``."""
        if turn + 2 * _AHEAD < len(ids):
            prefetch(recall.offsets, np.int64(ids[turn + 2 * _AHEAD]) * columns + column)
        if 0 <= turn + _AHEAD < len(ids):
            at = np.int64(ids[turn + _AHEAD]) * columns + column
            first, end = np.int64(recall.offsets[at]), np.int64(recall.offsets[at + 1])
            prefetch(recall.words, first)
            for j in range(first + line, min(end, first + MOST_SYNAPSES), line):
                prefetch(recall.words, j)
            prefetch(recall.words, end - 1)

    @inner_compiler
    def add_word(place: int, recall: Recall, sums: Array) -> None:
        """Add what one synapse contributes."""
        word, mask = recall.words[np.uint64(place)], np.uint32((1 << recall.target_bits) - 1)
        add(sums, np.uint64(word & mask), recall.palette[np.uint64(word >> np.uint32(recall.target_bits))])

    @inner_compiler
    def add_list(ids: Ids, column: int, columns: int, recall: Recall, sums: Array) -> None:
        """Add part ``column`` of the ``columns`` of each row of ``ids`` to the sums of its region.

        Unrolled by two by hand: the compiler's unrolling adds exits, and mispredicted exits dominate short rows.
        """
        if len(ids) == 0:
            return
        for turn in range(-2 * _AHEAD, len(ids)):
            look_ahead(turn, ids, column, columns, recall)
            if turn < 0:
                continue
            at = np.int64(ids[turn]) * columns + column
            j, end = np.int64(recall.offsets[at]), np.int64(recall.offsets[at + 1])
            while j < end:
                add_word(j, recall, sums)
                if j + 1 == end:
                    break
                add_word(j + 1, recall, sums)
                j += 2

    return add_list


def _make_collect(add_list: Compiled) -> Compiled:
    take_ring = make_take_ring()

    @inner_compiler
    def collect(part: int, burst: int, recall: Recall, ring: Array, s: Scalars) -> None:
        """All contributions that arrive in ``burst`` in the range of thread ``part``, from the ring and the lists."""
        slot, kept, columns = burst % s.slots, len(recall.lists), s.slots * len(recall.ahead)
        for region in range(recall.owned[part], recall.owned[part + 1]):
            first, end = recall.regions[region], recall.regions[region + 1]
            if recall.ahead[region, slot]:
                recall.ahead[region, slot] = 0
                take_ring(slot, first, end, ring, recall.sums, s)
            for delay in range(1, s.slots + 1):
                row, column = (burst - delay) % kept, region * s.slots + delay - 1
                for sender in range(recall.counts.shape[1]):
                    start = recall.bounds[sender]
                    ids = recall.lists[row, start : start + recall.counts[row, sender, 0]]
                    add_list(ids, column, columns, recall, recall.sums[first:end])

    return collect


def _make_note(key: KernelKey) -> Compiled:
    static_clamps = key.static_clamps

    @inner_compiler
    def note(part: int, burst: int, ids: Ids, recall: Recall, counters: Counters) -> None:
        """Keep the fired list of thread ``part`` in ``burst``, over that of D + 1 bursts ago, which all have read."""
        row, first = burst % len(recall.lists), recall.bounds[part]
        for k in range(len(ids)):
            recall.lists[row, first + k] = ids[k]
            if static_clamps and recall.clamped_sources[ids[k]]:
                counters[CLAMPED] = 1
        recall.counts[row, part, 0] = len(ids)

    return note


def _make_put_ahead(add_list: Compiled) -> Compiled:
    @compiler
    def put_ahead(burst: int, recall: Recall, ring: Array, s: Scalars) -> None:
        """After ``burst``: move all that is under way into the ring, and forget the lists."""
        kept, columns = len(recall.lists), s.slots * len(recall.ahead)
        for age in range(s.slots):
            row = (burst - age) % kept
            for sender in range(recall.counts.shape[1]):
                start = recall.bounds[sender]
                ids = recall.lists[row, start : start + recall.counts[row, sender, 0]]
                for region in range(len(recall.ahead)):
                    for delay in range(age + 1, s.slots + 1):
                        slot = (burst - age + delay) % s.slots
                        base, column = slot * s.neurons, region * s.slots + delay - 1
                        first, end = base + recall.regions[region], base + recall.regions[region + 1]
                        add_list(ids, column, columns, recall, ring[first:end])
                        recall.ahead[region, slot] = 1
        recall.counts[:] = 0

    return put_ahead
