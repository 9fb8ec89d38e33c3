"""Asks for synapses of sources ahead of their turn: rows lie anywhere in memory, and waiting for each costs most."""

from __future__ import annotations

import numpy as np

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array, Ids
from burstproof.engine.cpu.intrinsics import prefetch
from burstproof.engine.rules import Compiled

ROWS_AHEAD = 8
"""A row is asked for so many turns ahead, and where it begins twice as many."""

MOST_SYNAPSES = 512
"""Most synapses of a row that are asked for, from its first on."""

LINE_BYTES = 64
"""Bytes of a cache line: what is asked for comes with all of its line."""


def make_look_ahead() -> Compiled:
    """``look_ahead``, to be called at each turn, and for the first rows at the turns from -2 ``ROWS_AHEAD`` on."""

    @inner_compiler
    def ask(first: int, end: int, column: Array) -> None:
        for j in range(first, end, LINE_BYTES // column.itemsize):
            prefetch(column, j)
        prefetch(column, end - 1)

    @inner_compiler
    def look_ahead(turn: int, count: int, ids: Ids, offsets: Array, one: Array, other: Array) -> None:
        """At ``turn`` of ``count`` sources ``ids``: what is read soon of their rows, two columns behind ``offsets``."""
        next_row = turn + ROWS_AHEAD
        if next_row + ROWS_AHEAD < count:
            prefetch(offsets, np.int64(ids[next_row + ROWS_AHEAD]))
        if 0 <= next_row < count:
            source = np.int64(ids[next_row])
            first = offsets[source]
            end = min(offsets[source + 1], first + MOST_SYNAPSES)
            ask(first, end, one)
            ask(first, end, other)

    return look_ahead
