"""Kernel that changes single elements of a column, which a record in host memory lists."""

from __future__ import annotations

from functools import cache

import numpy as np

from burstproof.device.numba_cuda import cuda
from burstproof.engine.cuda.args import Floats, Ids
from burstproof.engine.cuda.kernels.spec import KernelSpec, kernel_spec

RECORD = 2
"""Words of a change: the index of the element, and the bits of its value."""


@cache
def scatter_kernel() -> KernelSpec:
    """``scatter(record, column, first, count)``: ``count`` changes from word ``first`` of the record on."""

    def scatter(record: Ids, column: Floats, first: np.uint32, count: np.uint32) -> None:
        item = np.uint32(cuda.grid(1))
        while item < count:
            at = np.uint32(first + np.uint32(RECORD) * item)
            column[record[at]] = np.uint32(record[np.uint32(at + np.uint32(1))]).view(np.float32)
            item = np.uint32(item + np.uint32(cuda.gridsize(1)))

    return kernel_spec("scatter", scatter)
