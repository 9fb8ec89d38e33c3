"""Parallel work on columns of synapses, in pieces that fit a core's cache."""

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
    """Results of ``work`` for the spans from ``first`` to ``last``, in order, computed on all usable cores.

    The calling thread works too. If it is interrupted, it waits until other threads have finished their current spans.
    If several spans fail, the error of the first one is raised.
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
