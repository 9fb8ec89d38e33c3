"""Columns of synapses in pieces that stay in a core's cache; all cores share the work on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from burstproof.engine.cores import usable_cores

_CACHED = 1 << 16

Result = TypeVar("Result")


def spans(first: int, last: int, length: int) -> Iterator[slice]:
    """Consecutive slices of ``length`` items from ``first`` to ``last``; the last one may be shorter."""
    for start in range(first, last, length):
        yield slice(start, min(start + length, last))


def on_spans(first: int, last: int, work: Callable[[slice], Result]) -> list[Result]:
    """What ``work`` makes of the spans from ``first`` to ``last``, in order; all usable cores share them.

    An error of the first span that raises one is raised.
    """
    parts = list(spans(first, last, _CACHED))
    if len(parts) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(min(len(parts), usable_cores()), thread_name_prefix="burstproof") as pool:
        return list(pool.map(work, parts))
