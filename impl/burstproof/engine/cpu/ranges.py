"""Target ranges of the threads of the CPU engine: where they end, and the static rows in their order.

Each thread owns a range of neurons. It does their dynamics and adds all that arrives at them, so no two threads write
to one place, nothing is added atomically and the result cannot depend on who comes first.

A row, the synapses of one source, stays together and has them in the order of the ranges. So all threads read the same
lines of a row that fired: memory delivers it once, however many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.engine.cpu.arrays import Array, Rows, Static
from burstproof.engine.cpu.compile import compiler
from burstproof.engine.cpu.disk import keep_on_disk

_ALIGNED = 64
_LINE_BYTES = 64
_EXPECTED_RATE = 0.01
_EVENT_COST = 2.0

HEADER_BYTES = 8
"""Bytes that a line of the table of ``Ranges`` has before the ends."""


class Ranges(NamedTuple):
    """Ranges of T threads over N neurons, and where the rows have them.

    ``bounds`` (T + 1,) int64: thread t owns the neurons ``bounds[t]:bounds[t + 1]``. ``rows`` (N, W) int64 and ``ends``
    (N, E) of unsigned integers are two views of one table with a line per source s: ``rows[s, 0]`` is where its row
    begins among the static synapses. Counted from there, thread t's part of it ends before ``ends[s, H + t]``, where H
    is the number of ends that ``HEADER_BYTES`` would hold, and begins where that of thread t - 1 ends. ``rows_ahead``:
    how many rows to fetch before they are needed.
    """

    bounds: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    ends: npt.NDArray[Any]
    rows_ahead: int


def balanced_bounds(targets: npt.NDArray[np.uint32], neurons: int, threads: int) -> npt.NDArray[np.int64]:
    """Bounds (threads + 1,) of ranges that take about the same time: dynamics, and what arrives at a 1 % firing rate.

    They are multiples of 64, so that no two threads write to one cache line.
    """
    cost = 1.0 + _EVENT_COST * _EXPECTED_RATE * np.bincount(targets, minlength=neurons)
    reached = np.concatenate(([0.0], np.cumsum(cost)))
    cuts = np.searchsorted(reached, reached[-1] * np.arange(threads + 1) / threads)
    bounds: npt.NDArray[np.int64] = np.minimum((cuts + _ALIGNED // 2) // _ALIGNED * _ALIGNED, neurons).astype(np.int64)
    bounds[0], bounds[-1] = 0, neurons
    return bounds


@compiler
def _order_rows(
    first: int,
    end: int,
    owners: Array,
    static: Static,
    rows: Array,
    ends: Array,
    targets: Array,
    contributions: Array,
    delays: Array,
) -> None:
    """Lines of the table for sources first ... end - 1, and their synapses in the order of the ranges.

    ``owners``: the range of every 64 neurons. Within a range synapses keep their order.
    """
    place = HEADER_BYTES // ends.itemsize
    threads = owners[-1] + 1
    found = np.zeros(threads + 1, np.int64)
    for source in range(first, end):
        start, stop = static.offsets[source], static.offsets[source + 1]
        rows[source, 0] = start
        found[:] = 0
        for j in range(start, stop):
            found[owners[static.targets[j] // _ALIGNED] + 1] += 1
        for part in range(threads):
            found[part + 1] += found[part]
            ends[source, place + part] = found[part + 1]
        for j in range(start, stop):
            owner = owners[static.targets[j] // _ALIGNED]
            at = start + found[owner]
            found[owner] += 1
            targets[at], contributions[at] = static.targets[j], static.contributions[j]
            if len(static.delays):
                delays[at] = static.delays[j]


keep_on_disk(_order_rows, "order_rows")


def order_by_range(
    static: Static, neurons: int, threads: int, pool: Executor, narrow: bool = True
) -> tuple[Ranges, Rows]:
    """Ranges for ``threads`` threads, and ``static`` with every row in the order of the ranges.

    ``narrow``: the table has the narrowest integers that hold the longest row, each of which kernels are compiled for.
    """
    bounds = balanced_bounds(static.targets, neurons, threads)
    owners = np.searchsorted(bounds[1:], np.arange(0, neurons, _ALIGNED), side="right")
    owners = np.append(owners, threads - 1)
    longest = int(np.diff(static.offsets).max(initial=0))
    rows, ends = _table(neurons, threads, np.min_scalar_type(longest) if narrow else np.dtype(np.uint32))
    columns = {"target": static.targets, "contribution": static.contributions, "delay": static.delays}
    fields = [(name, column.dtype) for name, column in columns.items() if len(column) == len(static.targets)]
    synapses = np.empty(len(static.targets), fields)
    targets, contributions = synapses["target"], synapses["contribution"]
    delays = synapses["delay"] if len(fields) == len(columns) else np.empty(0, np.uint8)
    cuts = np.linspace(0, neurons, threads + 1).astype(np.int64)
    _for_all(
        pool,
        lambda t: _order_rows(cuts[t], cuts[t + 1], owners, static, rows, ends, targets, contributions, delays),
        threads,
    )
    rows_ahead = _rows_ahead(len(targets), neurons, threads)
    return Ranges(bounds, rows, ends, rows_ahead), Rows(synapses, static.clamped_sources)


def _table(neurons: int, threads: int, kind: np.dtype[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    """``Ranges.rows`` and ``Ranges.ends``: no line of the table crosses more cache lines than it has to."""
    wanted = HEADER_BYTES + threads * kind.itemsize
    width = -(-wanted // _LINE_BYTES) * _LINE_BYTES if wanted > _LINE_BYTES else 1 << (wanted - 1).bit_length()
    room = np.empty(neurons * width + _LINE_BYTES, np.uint8)
    skip = -room.ctypes.data % _LINE_BYTES
    table = room[skip : skip + neurons * width].reshape(neurons, width)
    return table.view(np.int64), table.view(kind)


def _for_all(pool: Executor, work: Callable[[int], None], threads: int) -> None:
    """``work`` of every thread; the first one alone, so that it is compiled once."""
    work(0)
    jobs = [pool.submit(work, thread) for thread in range(1, threads)]
    wait(jobs)
    for job in jobs:
        job.result()


def _rows_ahead(synapses: int, neurons: int, threads: int) -> int:
    """Rows to fetch ahead: about 100 synapses of work, in which memory answers."""
    mean = synapses / max(1, neurons * threads)
    return int(np.clip(100 / max(mean, 1.0), 2, 8))
