"""Prefetch of synapse rows: fired sources are scattered, so the latency of their rows would dominate propagation."""

from __future__ import annotations

import numpy as np

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array, Ids
from burstproof.engine.cpu.intrinsics import prefetch
from burstproof.engine.rules import Compiled

ROWS_AHEAD = 8
"""Prefetch distance in rows: for the synapses of a row; for its offsets it is twice as long."""

MOST_SYNAPSES = 512
"""Most synapses of a row that are prefetched, from the first on."""

LINE_BYTES = 64
"""Bytes of a cache line."""


def make_look_ahead() -> Compiled:
    """``look_ahead``: called before each row; for the first rows the calls begin at turn -2 ``ROWS_AHEAD``."""

    @inner_compiler
    def prefetch_row(first: int, end: int, column: Array) -> None:
        for j in range(first, end, LINE_BYTES // column.itemsize):
            prefetch(column, j)
        prefetch(column, end - 1)

    @inner_compiler
    def look_ahead(turn: int, count: int, ids: Ids, offsets: Array, one: Array, other: Array) -> None:
        """At row ``turn`` of ``count`` sources ``ids``: prefetch later rows, in two columns, and their ``offsets``."""
        next_row = turn + ROWS_AHEAD
        if next_row + ROWS_AHEAD < count:
            prefetch(offsets, np.int64(ids[next_row + ROWS_AHEAD]))
        if 0 <= next_row < count:
            source = np.int64(ids[next_row])
            first = offsets[source]
            end = min(offsets[source + 1], first + MOST_SYNAPSES)
            prefetch_row(first, end, one)
            prefetch_row(first, end, other)

    return look_ahead
