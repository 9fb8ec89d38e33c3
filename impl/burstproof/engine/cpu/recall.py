"""Propagation of one thread over sums that fit its cache: fired lists are kept, and rows are read as they arrive.

A burst adds up what arrives in it: of each of the last D fired lists, the synapses of one delay. So nothing waits in a
queue, and all sums are those of one burst. Rows are sorted by delay. A synapse is a word: its target, and above that
the place of its contribution in the palette.

A state that is saved has all that is under way in the ring (``arrays.Model``), and one that is restored too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from burstproof.engine.cpu.arrays import Array, Counters, Ids, Recall, Scalars, Static
from burstproof.engine.cpu.compile import CLAMPED, KernelKey, compiler, inner_compiler
from burstproof.engine.cpu.deliver import make_take_ring
from burstproof.engine.cpu.disk import keep_on_disk
from burstproof.engine.cpu.intrinsics import on_stack, prefetch
from burstproof.engine.cpu.lines import SUMS, zeros_at
from burstproof.engine.cpu.palette import find, palette_of
from burstproof.engine.cpu.rows_ahead import LINE_BYTES, MOST_SYNAPSES
from burstproof.engine.cpu.sums import make_add
from burstproof.engine.layout import Layout
from burstproof.engine.rules import Compiled

CACHED_BYTES = 1 << 20
"""Most bytes of sums that one thread adds to wherever they lie: they fit a second-level cache."""

_WORD_BITS = 32
_MOST_NARROW = (1 << 32) - 1
"""Synapses that offsets of 32 bits count at most."""
_MOST_DELAYS, _DELAYS = 255, 256
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
    return delays <= _MOST_DELAYS and not short and layout.neuron_count * sums.itemsize <= CACHED_BYTES


def recall_of(static: Static, neurons: int, slots: int, sums: np.dtype[Any]) -> Recall | None:
    """``static`` as words, with room for fired lists.

    ``None`` if there are no synapses, or too many different contributions.
    """
    bits = max(1, (neurons - 1).bit_length())
    palette = palette_of(static.contributions, 1 << (_WORD_BITS - bits))
    if not len(palette.values):
        return None
    words = np.empty(len(static.targets), np.uint32)
    offsets = np.zeros((len(static.offsets) - 1) * slots + 1, np.uint32 if len(words) <= _MOST_NARROW else np.int64)
    _pack(static, palette.values, palette.numbers, np.uint32(bits), slots, words, offsets)
    return Recall(
        offsets,
        words,
        palette.values,
        bits,
        static.clamped_sources,
        np.empty(slots * neurons, np.uint32),
        np.zeros(slots, np.int64),
        zeros_at(SUMS, neurons, sums),
        np.zeros(slots, np.int64),
    )


@compiler
def _pack(
    static: Static, values: Array, numbers: Array, bits: np.uint32, slots: int, words: Array, offsets: Array
) -> None:
    """Words of all synapses, each row by delay, and where each delay begins."""
    ends = on_stack(_DELAYS, np.int64)
    delayed = len(static.delays) > 0
    for row in range(len(static.offsets) - 1):
        first, end = static.offsets[row], static.offsets[row + 1]
        ends[: slots + 1] = 0
        for j in range(first, end):
            ends[static.delays[j] if delayed else 1] += 1
        ends[0] = first
        for delay in range(1, slots + 1):
            ends[delay] += ends[delay - 1]
            offsets[row * slots + delay] = ends[delay]
        for j in range(first, end):
            shorter = np.int64(static.delays[j]) - 1 if delayed else 0
            place = np.uint32(numbers[find(static.contributions[j], values, numbers)] - 1)
            words[ends[shorter]] = (place << bits) | np.uint32(static.targets[j])
            ends[shorter] += 1


keep_on_disk(_pack, "recall")


def make_recall(key: KernelKey) -> RecallParts:
    """The kernels for ``key``."""
    add_list = _make_add_list()
    return RecallParts(_make_collect(add_list), _make_note(key), _make_put_ahead(add_list))


def _make_add_list() -> Compiled:
    add, line = make_add(), LINE_BYTES // 4

    @inner_compiler
    def look_ahead(turn: int, ids: Ids, delay: int, slots: int, recall: Recall) -> None:
        """Ask for what is read some turns after ``turn``."""
        if turn + 2 * _AHEAD < len(ids):
            prefetch(recall.offsets, np.int64(ids[turn + 2 * _AHEAD]) * slots + delay)
        if 0 <= turn + _AHEAD < len(ids):
            at = np.int64(ids[turn + _AHEAD]) * slots + delay
            first, end = np.int64(recall.offsets[at - 1]), np.int64(recall.offsets[at])
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
    def add_list(ids: Ids, delay: int, slots: int, recall: Recall, sums: Array) -> None:
        """Add what the sources ``ids`` deliver after ``delay`` bursts.

        Unrolled by two by hand: the compiler's unrolling adds exits, and mispredicted exits dominate short rows.
        """
        for turn in range(-2 * _AHEAD, len(ids)):
            look_ahead(turn, ids, delay, slots, recall)
            if turn < 0:
                continue
            at = np.int64(ids[turn]) * slots + delay
            j, end = np.int64(recall.offsets[at - 1]), np.int64(recall.offsets[at])
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
    def collect(burst: int, recall: Recall, ring: Array, s: Scalars) -> None:
        """All contributions that arrive in ``burst``, from the ring and the lists."""
        slot, sums = burst % s.slots, recall.sums
        if recall.ahead[slot]:
            recall.ahead[slot] = 0
            take_ring(slot, 0, s.neurons, ring, sums, s)
        for delay in range(1, s.slots + 1):
            sent = (burst - delay) % s.slots
            first = sent * s.neurons
            add_list(recall.lists[first : first + recall.counts[sent]], delay, s.slots, recall, sums)

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
    def put_ahead(burst: int, recall: Recall, ring: Array, s: Scalars) -> None:
        """After ``burst``: move all that is under way into the ring, and forget the lists."""
        for age in range(s.slots):
            sent = (burst - age) % s.slots
            ids = recall.lists[sent * s.neurons : sent * s.neurons + recall.counts[sent]]
            for delay in range(age + 1, s.slots + 1):
                slot = (sent + delay) % s.slots
                first, end = slot * s.neurons, (slot + 1) * s.neurons
                add_list(ids, delay, s.slots, recall, ring[first:end])
                recall.ahead[slot] = 1
        for slot in range(s.slots):
            recall.counts[slot] = 0

    return put_ahead
