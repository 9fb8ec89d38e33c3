"""How a kernel of rows.cuh is built for a row length and element type: vector width, threads, items per thread."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from burstproof.tensor.array.dtypes import FLOAT64
from burstproof.tensor.ops.kernels import VECTOR_BYTES, vector_width

_WARP = 32
_LARGEST_BLOCK = 1024
_HELD_WORDS = 32
"""Most 32-bit registers that one row may take per thread."""


@dataclass(frozen=True)
class RowPlan:
    """Macros of one build of rows.cuh.

    Attributes
    ----------
    vector : int
        Elements per memory access.
    items : int
        Accesses per thread and row.
    threads : int
        Threads per row, a power of two from 32 on.
    rows : int
        Rows per block; more than one only for rows of one warp.
    staged : bool
        Whether rows come through shared memory, the next under way while a group of threads works on one.
    hoist : bool
        Whether parameters along the columns stay in registers for all rows of a group of threads.
    """

    vector: int
    items: int
    threads: int
    rows: int = 1
    staged: bool = False
    hoist: bool = False

    @property
    def block(self) -> int:
        """Threads per block."""
        return self.threads * self.rows

    def staged_bytes(self, sets: int) -> int:
        """Shared memory per block in which ``sets`` rows wait."""
        return sets * self.items * self.block * VECTOR_BYTES

    @property
    def persistent(self) -> bool:
        """Whether a group of threads works on more than one row."""
        return self.staged or self.hoist

    def macros(self, sets: int) -> dict[str, int]:
        """Macros for the compiler; ``sets`` rows are staged at a time."""
        return {
            "VEC": self.vector,
            "ITEMS": self.items,
            "THREADS": self.threads,
            "ROWS": self.rows,
            "STAGED": self.staged,
            "SETS": sets,
            "HOIST": self.hoist,
        }


@lru_cache(maxsize=1024)
def plan_rows(
    dtype: np.dtype[Any], columns: int, misaligned_by: int, held_rows: int, preferred_items: int
) -> RowPlan | None:
    """The build for rows of ``columns`` elements, or ``None`` if a row does not fit into registers.

    Parameters
    ----------
    dtype : dtype
        Element type of the rows.
    columns : int
        Elements per row, at least 1.
    misaligned_by : int
        Bitwise or of the addresses of all arrays of rows, modulo the bytes of an access.
    held_rows : int
        Rows (or parameters as long as a row) that a thread holds at once.
    preferred_items : int
        Accesses per thread that are aimed at, before a block is full.
    """
    vector = vector_width(dtype, columns, misaligned_by)
    accesses = -(-columns // vector)
    threads = _WARP
    while threads < _LARGEST_BLOCK and threads * preferred_items < accesses:
        threads *= 2
    items = -(-accesses // threads)
    words = items * vector * (2 if dtype == FLOAT64 else 1)
    if (words * held_rows > 2 * _HELD_WORDS and threads == _LARGEST_BLOCK) or words > _HELD_WORDS:
        return None
    return RowPlan(vector, items, threads, rows=4 if threads == _WARP else 1)
