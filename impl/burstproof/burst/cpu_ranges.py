"""Target ranges of the threads of the CPU engine: where they end, and the static rows grouped by them.

Each thread owns a range of neurons. It does their dynamics and adds all that arrives at them, so no two threads write
to one place, nothing is added atomically and the result cannot depend on who comes first. The synapses of a range lie
together in memory, in the order of their sources.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.burst.cpu_arrays import Static
from burstproof.burst.cpu_compile import compiler
from burstproof.burst.cpu_disk import keep_on_disk

_ALIGNED = 64
_EXPECTED_RATE = 0.01
_EVENT_COST = 2.0


class Ranges(NamedTuple):
    """Ranges of T threads over N neurons.

    ``bounds`` (T + 1,) int64: thread t owns the neurons ``bounds[t]:bounds[t + 1]``. ``bases`` (T + 1,) int64 and
    ``starts`` (T, N + 1) uint32 or int64: its synapses of source s are ``starts[t, s]:starts[t, s + 1]``, counted from
    ``bases[t]``. ``rows_ahead``: how many rows to fetch before they are needed.
    """

    bounds: npt.NDArray[np.int64]
    bases: npt.NDArray[np.int64]
    starts: npt.NDArray[Any]
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
def _count_rows(first: Any, end: Any, static: Any, starts: Any) -> None:
    """Offsets of the rows restricted to targets first ... end - 1."""
    starts[0] = 0
    for source in range(len(starts) - 1):
        found = starts[source]
        for j in range(static.offsets[source], static.offsets[source + 1]):
            found += first <= static.targets[j] < end
        starts[source + 1] = found


@compiler
def _move_rows(first: Any, end: Any, base: Any, static: Any, targets: Any, contributions: Any, delays: Any) -> None:
    """Copy the synapses onto targets first ... end - 1, from place ``base`` on."""
    place = base
    for j in range(len(static.targets)):
        if first <= static.targets[j] < end:
            targets[place] = static.targets[j]
            contributions[place] = static.contributions[j]
            if len(static.delays):
                delays[place] = static.delays[j]
            place += 1


keep_on_disk(_count_rows, "count_rows")
keep_on_disk(_move_rows, "move_rows")


def group_by_range(static: Static, neurons: int, threads: int, pool: Executor) -> tuple[Ranges, Static]:
    """Ranges for ``threads`` threads, and ``static`` with the synapses of each range together."""
    bounds = balanced_bounds(static.targets, neurons, threads)
    wide = len(static.targets) > np.iinfo(np.uint32).max
    starts = np.empty((threads, neurons + 1), np.int64 if wide else np.uint32)
    pieces = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    _for_all(pool, lambda t: _count_rows(*pieces[t], static, starts[t]), threads)
    bases = np.concatenate(([0], np.cumsum(starts[:, -1].astype(np.int64))))
    targets, contributions = np.empty_like(static.targets), np.empty_like(static.contributions)
    delays = np.empty_like(static.delays)
    _for_all(pool, lambda t: _move_rows(*pieces[t], bases[t], static, targets, contributions, delays), threads)
    for column in (targets, contributions, delays):
        column.flags.writeable = False
    moved = static._replace(targets=targets, contributions=contributions, delays=delays)
    return Ranges(bounds, bases, starts, _rows_ahead(len(targets), neurons, threads)), moved


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
