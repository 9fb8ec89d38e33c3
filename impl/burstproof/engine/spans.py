"""Columns of synapses in pieces that stay in a core's cache; all cores share the work on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from threading import Thread
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

    The calling thread takes spans, too; when it is interrupted, it waits for those that other threads have begun. Of
    several errors, that of the first span is raised.
    """
    parts = list(spans(first, last, _CACHED))
    waiting = deque(enumerate(parts))
    made: dict[int, Result] = {}
    failed: dict[int, Exception] = {}

    def share() -> None:
        while waiting:
            try:
                place, part = waiting.popleft()
            except IndexError:  # another thread took the last one
                return
            try:
                made[place] = work(part)
            except Exception as error:
                failed[place] = error
                waiting.clear()

    helpers = [Thread(target=share, daemon=True) for _ in range(min(len(parts), usable_cores()) - 1)]
    try:
        with suppress(RuntimeError):  # no more threads can start: those that did share the work
            for helper in helpers:
                helper.start()
        share()
    finally:
        waiting.clear()
        for helper in helpers:
            if helper.is_alive():
                helper.join()
    if failed:
        raise failed[min(failed)]
    return [made[place] for place in range(len(parts))]
