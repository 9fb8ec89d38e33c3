"""Propagation by recall: the last D fired lists are kept, and a contribution is added in the burst in which it arrives.

Neurons are divided into regions whose sums fit a core's cache (``regions.py``). In each burst the thread that owns a
region reads, for each delay d, the fired list of d bursts ago, and adds the synapses with that delay onto its region.
So nothing is queued, threads share nothing but fired lists, and there are sums for one burst only. A row is divided
into columns, one per region and delay. A synapse is one word: the target in the low bits, the palette index above.

States are saved and restored with everything under way in the ring (``arrays.Model``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burstproof.engine.compiler import compiler, inner_compiler
from burstproof.engine.cpu.arrays import Array, Counters, Ids, Recall, Scalars, Static
from burstproof.engine.cpu.deliver import make_drain_ring
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
"""Most bytes of sums to which a thread adds in random order: they fit the L2 cache."""

_WORD_BITS = 32
_MOST_NARROW = (1 << 32) - 1
"""Most synapses for which 32-bit offsets suffice."""
_MOST_COLUMNS, _COLUMNS = 1023, 1024
"""Most columns of a row, and room for their ends."""
_FEWEST_PART, _FEWEST_OF_REGION = 3, 6
"""Mean synapses per column from which recall is faster than queues: with one region, and with several."""
_AHEAD = 16
"""Prefetch distance in sources: for the synapses of a row; for its offsets it is twice as long."""


class RecallParts(NamedTuple):
    """Kernels over fired lists; for the signatures see the functions of the same names."""

    collect: Compiled
    keep_list: Compiled
    flush_lists: Compiled


def recall_of(layout: Layout, static: Static, sums: np.dtype[Any], threads: int) -> Recall | None:
    """The rows ``static`` of ``layout`` packed for ``threads`` threads, with room for fired lists.

    ``None`` if recall is not possible: a contribution is computed, there are no synapses, columns are too short, or
    there are too many different contributions.
    """
    neurons, slots, synapses = layout.neuron_count, layout.max_delay, len(static.targets)
    if layout.computed is not None or layout.plastic is not None or not synapses:
        return None
    sources = len(static.offsets) - 1
    region_neurons = max(CACHED_BYTES // sums.itemsize // ALIGNED, 1) * ALIGNED
    if not _pays(-(-neurons // region_neurons), slots, synapses / sources):
        return None
    ranges = cut(balanced_bounds(static.targets, neurons, threads), region_neurons)
    regions = len(ranges.regions) - 1
    columns = regions * slots
    if not _pays(regions, slots, synapses / sources):
        return None
    bits = max(1, (int(np.diff(ranges.regions).max()) - 1).bit_length())
    palette = palette_of(static.contributions, 1 << (_WORD_BITS - bits))
    if not len(palette.values):
        return None
    words = np.empty(synapses, np.uint32)
    offsets = np.zeros(sources * columns + 1, np.uint32 if synapses <= _MOST_NARROW else np.int64)
    packing = palette.values, palette.numbers, np.uint32(bits), slots, words, offsets
    _pack(0, 0, static, ranges, *packing)  # compile once, before several threads call it
    on_spans(0, sources, lambda span: _pack(span.start, span.stop, static, ranges, *packing))
    return Recall(
        bounds=ranges.bounds,
        owned=ranges.owned,
        regions=ranges.regions,
        offsets=offsets,
        words=words,
        palette=palette.values,
        target_bits=bits,
        clamped_sources=static.clamped_sources,
        lists=np.empty((slots + 1, neurons), np.uint32),
        counts=lines(slots + 1, threads, LINE),
        sums=zeros_at(SUMS, neurons, sums),
        in_ring=np.zeros((regions, slots), np.int64),
    )


def _pays(regions: int, slots: int, synapses: float) -> bool:
    """Whether rows with a mean of ``synapses`` synapses are long enough to be divided by region and delay."""
    columns, fewest = regions * slots, _FEWEST_PART if regions == 1 else _FEWEST_OF_REGION
    return columns <= _MOST_COLUMNS and (columns == 1 or synapses >= fewest * columns)


@inner_compiler
def _column(j: int, static: Static, ranges: Regions, slots: int, delayed: bool) -> int:
    """Column of synapse ``j`` in its row."""
    region: int = ranges.region_of[static.targets[j] // ALIGNED]
    delay: int = static.delays[j] if delayed else 1
    return region * slots + delay - 1


@compiler
def _pack(
    first: int,
    last: int,
    static: Static,
    ranges: Regions,
    values: Array,
    numbers: Array,
    bits: np.uint32,
    slots: int,
    words: Array,
    offsets: Array,
) -> None:
    """Pack rows ``first`` ... ``last - 1``: words sorted by region and delay, and the end of each column."""
    ends = on_stack(_COLUMNS, np.int64)
    columns, delayed = slots * (len(ranges.regions) - 1), len(static.delays) > 0
    for row in range(first, last):
        ends[: columns + 1] = 0
        for j in range(static.offsets[row], static.offsets[row + 1]):
            ends[_column(j, static, ranges, slots, delayed) + 1] += 1
        ends[0] = static.offsets[row]
        for column in range(1, columns + 1):
            ends[column] += ends[column - 1]
            offsets[row * columns + column] = ends[column]
        for j in range(static.offsets[row], static.offsets[row + 1]):
            column = _column(j, static, ranges, slots, delayed)
            place = np.uint32(numbers[find(static.contributions[j], values, numbers)] - 1)
            words[ends[column]] = (place << bits) | np.uint32(static.targets[j] - ranges.regions[column // slots])
            ends[column] += 1


keep_on_disk(_pack, "recall")


def make_recall(key: KernelKey) -> RecallParts:
    """The kernels for ``key``."""
    add_list = _make_add_list()
    return RecallParts(_make_collect(add_list), _make_keep_list(key), _make_flush_lists(add_list))


def _make_add_list() -> Compiled:
    add, line = make_add(), LINE_BYTES // 4

    @inner_compiler
    def look_ahead(turn: int, ids: Ids, column: int, columns: int, recall: Recall) -> None:
        """Prefetch both offsets, which may lie in two cache lines, and the synapses of later sources of the list."""
        if turn + 2 * _AHEAD < len(ids):
            at = np.int64(ids[turn + 2 * _AHEAD]) * columns + column
            prefetch(recall.offsets, at)
            prefetch(recall.offsets, at + 1)
        if 0 <= turn + _AHEAD < len(ids):
            at = np.int64(ids[turn + _AHEAD]) * columns + column
            first, end = np.int64(recall.offsets[at]), np.int64(recall.offsets[at + 1])
            prefetch(recall.words, first)
            for j in range(first + line, min(end, first + MOST_SYNAPSES), line):
                prefetch(recall.words, j)
            prefetch(recall.words, end - 1)

    @inner_compiler
    def add_word(place: int, recall: Recall, sums: Array) -> None:
        """Add the contribution of one synapse."""
        word, mask = recall.words[np.uint64(place)], np.uint32((1 << recall.target_bits) - 1)
        add(sums, np.uint64(word & mask), recall.palette[np.uint64(word >> np.uint32(recall.target_bits))])

    @inner_compiler
    def add_list(ids: Ids, column: int, columns: int, recall: Recall, sums: Array) -> None:
        """Add column ``column`` (of ``columns``) of the row of each of ``ids`` to the sums of its region.

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
    drain_ring = make_drain_ring()

    @inner_compiler
    def collect(thread: int, burst: int, recall: Recall, ring: Array, s: Scalars) -> None:
        """Add all contributions that arrive in ``burst`` in one thread's range, from the ring and the fired lists."""
        slot, kept, columns = burst % s.slots, len(recall.lists), s.slots * len(recall.in_ring)
        for region in range(recall.owned[thread], recall.owned[thread + 1]):
            first, end = recall.regions[region], recall.regions[region + 1]
            if recall.in_ring[region, slot]:
                recall.in_ring[region, slot] = 0
                drain_ring(slot, first, end, ring, recall.sums, s)
            for delay in range(1, s.slots + 1):
                row, column = (burst - delay) % kept, region * s.slots + delay - 1
                for sender in range(recall.counts.shape[1]):
                    start = recall.bounds[sender]
                    ids = recall.lists[row, start : start + recall.counts[row, sender, 0]]
                    add_list(ids, column, columns, recall, recall.sums[first:end])

    return collect


def _make_keep_list(key: KernelKey) -> Compiled:
    static_clamps = key.static_clamps

    @inner_compiler
    def keep_list(thread: int, burst: int, ids: Ids, recall: Recall, counters: Counters) -> None:
        """Keep one thread's fired list of ``burst``; it replaces that of D + 1 bursts ago, which all have read."""
        row, first = burst % len(recall.lists), recall.bounds[thread]
        for k in range(len(ids)):
            recall.lists[row, first + k] = ids[k]
            if static_clamps and recall.clamped_sources[ids[k]]:
                counters[CLAMPED] = 1
        recall.counts[row, thread, 0] = len(ids)

    return keep_list


def _make_flush_lists(add_list: Compiled) -> Compiled:
    @compiler
    def flush_lists(burst: int, recall: Recall, ring: Array, s: Scalars) -> None:
        """After ``burst``: add everything under way to the ring, and forget the lists."""
        kept, columns = len(recall.lists), s.slots * len(recall.in_ring)
        for age in range(s.slots):
            row = (burst - age) % kept
            for sender in range(recall.counts.shape[1]):
                start = recall.bounds[sender]
                ids = recall.lists[row, start : start + recall.counts[row, sender, 0]]
                for region in range(len(recall.in_ring)):
                    for delay in range(age + 1, s.slots + 1):
                        slot = (burst - age + delay) % s.slots
                        base, column = slot * s.neurons, region * s.slots + delay - 1
                        first, end = base + recall.regions[region], base + recall.regions[region + 1]
                        add_list(ids, column, columns, recall, ring[first:end])
                        recall.in_ring[region, slot] = 1
        recall.counts[:] = 0

    return flush_lists
