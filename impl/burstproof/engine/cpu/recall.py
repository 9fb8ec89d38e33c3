"""Propagation of one thread over sums that fit its cache: fired lists are kept, and rows are read as they arrive.

A burst adds up what arrives in it: of each of the last D fired lists, the synapses of one delay. So nothing waits in a
queue, and all sums are those of one burst. Rows are sorted by delay. A synapse is a word: its target, and above that
the place of its contribution in the palette.

A state that is saved has all that is under way in the ring (``arrays.Ring``), and one that is restored too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burstproof.engine.cpu.arrays import Array, Counters, Ids, Recall, Ring, Scalars, Static
from burstproof.engine.cpu.compile import CLAMPED, KernelKey, compiler, inner_compiler
from burstproof.engine.cpu.deliver import make_take_ring
from burstproof.engine.cpu.disk import keep_on_disk
from burstproof.engine.cpu.intrinsics import on_stack, prefetch
from burstproof.engine.cpu.palette import find, palette_of
from burstproof.engine.cpu.rows_ahead import LINE_BYTES, MOST_SYNAPSES
from burstproof.engine.layout import Layout
from burstproof.engine.rules import Compiled

CACHED_BYTES = 1 << 20
"""Most bytes of sums that one thread adds to wherever they lie: they fit a second-level cache."""

_WORD_BITS = 32
_MOST_DELAYS, _DELAYS = 255, 256
_LONGEST_ROW = (1 << 16) - 1
_FEWEST_PART = 3
"""Synapses of a source that have the same delay, in the mean, from which on lists are faster than queues."""
_AHEAD = 16
"""Turns ahead that what a source delivers is asked for, and where it begins twice as many."""


class RecallParts(NamedTuple):
    """Kernels over fired lists; the signatures are those of the functions that they come from."""

    collect: Compiled
    note: Compiled
    put_ahead: Compiled


def can_recall(layout: Layout, sums: np.dtype[Any]) -> bool:
    """Whether rows of ``layout`` may be recalled: all are static and, divided by delays, long enough."""
    if layout.computed is not None or layout.plastic is not None:
        return False
    lengths, delays = np.diff(layout.static.offsets), layout.max_delay
    short = delays > 1 and lengths.sum() < _FEWEST_PART * delays * len(lengths)
    countable = delays == 1 or (delays <= _MOST_DELAYS and int(lengths.max(initial=0)) <= _LONGEST_ROW)
    return countable and not short and layout.neuron_count * (sums.itemsize + 1) <= CACHED_BYTES


def recall_of(static: Static, neurons: int, slots: int, sums: np.dtype[Any]) -> Recall | None:
    """``static`` as words, with room for fired lists.

    ``None`` if there are no synapses, or too many different contributions.
    """
    bits = max(1, (neurons - 1).bit_length())
    palette = palette_of(static.contributions, 1 << (_WORD_BITS - bits))
    if not len(palette.values):
        return None
    sources = len(static.offsets) - 1
    words = np.empty(len(static.targets), np.uint32)
    starts = np.zeros(sources * (slots + 1) if slots > 1 else 0, np.uint16)
    _pack(static, palette.values, palette.numbers, np.uint32(bits), slots, words, starts)
    return Recall(
        static.offsets,
        words,
        palette.values,
        bits,
        starts,
        static.clamped_sources,
        np.empty(slots * neurons, np.uint32),
        np.zeros(slots, np.int64),
        np.zeros(neurons, sums),
        np.zeros(neurons, np.bool_),
        np.zeros(slots, np.int64),
    )


@compiler
def _pack(
    static: Static, values: Array, numbers: Array, bits: np.uint32, slots: int, words: Array, starts: Array
) -> None:
    """Words of all synapses, each row by delay, and where each delay begins in it."""
    ends = on_stack(_DELAYS, np.int64)
    delayed = len(starts) > 0
    for row in range(len(static.offsets) - 1):
        first, end = static.offsets[row], static.offsets[row + 1]
        if delayed:
            ends[: slots + 1] = 0
            for j in range(first, end):
                ends[static.delays[j]] += 1
            for delay in range(1, slots + 1):
                ends[delay] += ends[delay - 1]
                starts[row * (slots + 1) + delay] = ends[delay]
        for j in range(first, end):
            at = j
            if delayed:
                shorter = np.int64(static.delays[j]) - 1
                at = first + ends[shorter]
                ends[shorter] += 1
            place = np.uint32(numbers[find(static.contributions[j], values, numbers)] - 1)
            words[at] = (place << bits) | np.uint32(static.targets[j])


keep_on_disk(_pack, "recall")


def make_recall(key: KernelKey) -> RecallParts:
    """The kernels for ``key``."""
    add_list = _make_add_list(key)
    return RecallParts(_make_collect(key, add_list), _make_note(key), _make_put_ahead(add_list))


def _make_add_list(key: KernelKey) -> Compiled:
    flagged, delayed = key.flagged, key.delayed
    line = LINE_BYTES // 4

    @inner_compiler
    def part_of(source: int, delay: int, slots: int, recall: Recall) -> tuple[int, int]:
        """Where the synapses of one delay begin and end."""
        first = recall.offsets[source]
        if delayed:
            at = source * (slots + 1) + delay
            return first + recall.starts[at - 1], first + recall.starts[at]
        return first, recall.offsets[source + 1]

    @inner_compiler
    def look_ahead(turn: int, ids: Ids, delay: int, slots: int, recall: Recall) -> None:
        """Ask for what is read some turns after ``turn``."""
        if turn + 2 * _AHEAD < len(ids):
            source = np.int64(ids[turn + 2 * _AHEAD])
            prefetch(recall.offsets, source)
            if delayed:
                prefetch(recall.starts, source * (slots + 1) + delay)
        if 0 <= turn + _AHEAD < len(ids):
            first, end = part_of(np.int64(ids[turn + _AHEAD]), delay, slots, recall)
            for j in range(first, min(end, first + MOST_SYNAPSES), line):
                prefetch(recall.words, j)
            prefetch(recall.words, end - 1)

    @inner_compiler
    def add_list(ids: Ids, delay: int, slots: int, recall: Recall, sums: Array, flags: Array) -> None:
        """Add what the sources ``ids`` deliver after ``delay`` bursts."""
        words, palette = recall.words, recall.palette
        bits, mask = np.uint32(recall.target_bits), np.uint32((1 << recall.target_bits) - 1)
        for turn in range(-2 * _AHEAD, len(ids)):
            look_ahead(turn, ids, delay, slots, recall)
            if turn < 0:
                continue
            first, end = part_of(np.int64(ids[turn]), delay, slots, recall)
            for j in range(first, end):
                word = words[np.uint64(j)]
                target = np.uint64(word & mask)
                sums[target] += palette[np.uint64(word >> bits)]
                if flagged:
                    flags[target] = True

    return add_list


def _make_collect(key: KernelKey, add_list: Compiled) -> Compiled:
    take_ring = make_take_ring(key)

    @inner_compiler
    def collect(burst: int, recall: Recall, ring: Ring, s: Scalars) -> None:
        """All contributions that arrive in ``burst``, from the ring and the lists."""
        slot, sums, flags = burst % s.slots, recall.sums, recall.flags
        if recall.ahead[slot]:
            recall.ahead[slot] = 0
            take_ring(slot, 0, s.neurons, ring, sums, flags, s)
        for delay in range(1, s.slots + 1):
            sent = (burst - delay) % s.slots
            first = sent * s.neurons
            add_list(recall.lists[first : first + recall.counts[sent]], delay, s.slots, recall, sums, flags)

    return collect


def _make_note(key: KernelKey) -> Compiled:
    static_clamps = key.static_clamps

    @inner_compiler
    def note(burst: int, ids: Ids, recall: Recall, s: Scalars, counters: Counters) -> None:
        """Keep the fired list of ``burst``, over that of D bursts ago."""
        slot = burst % s.slots
        first = slot * s.neurons
        for k in range(len(ids)):
            recall.lists[first + k] = ids[k]
            if static_clamps and recall.clamped_sources[ids[k]]:
                counters[CLAMPED] = 1
        recall.counts[slot] = len(ids)

    return note


def _make_put_ahead(add_list: Compiled) -> Compiled:
    @compiler
    def put_ahead(burst: int, recall: Recall, ring: Ring, s: Scalars) -> None:
        """After ``burst``: move all that is under way into the ring, and forget the lists."""
        for age in range(s.slots):
            sent = (burst - age) % s.slots
            ids = recall.lists[sent * s.neurons : sent * s.neurons + recall.counts[sent]]
            for delay in range(age + 1, s.slots + 1):
                slot = (sent + delay) % s.slots
                first, end = slot * s.neurons, (slot + 1) * s.neurons
                add_list(ids, delay, s.slots, recall, ring.sums[first:end], ring.flags[first:end])
                recall.ahead[slot] = 1
        for slot in range(s.slots):
            recall.counts[slot] = 0

    return put_ahead
