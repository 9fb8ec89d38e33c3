"""Helpers of ``Engine.run``: recordings, a loop of steps, and progress reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields

import numpy as np
import numpy.typing as npt

from burstproof.engine.protocol import Progress
from burstproof.engine.state import Burst, Record, Recording

FiredList = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]
"""Ids and potentials of firings."""


class Recorder:
    """Records consecutive bursts, as much of them as ``record`` says."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self._counts: list[tuple[int, int, int]] = []
        self._lists: list[FiredList] = [(np.empty(0, np.uint32), np.empty(0, np.float32))]

    def add(self, number: int, fired: int, candidates: int, *lists: FiredList) -> None:
        """Add a burst, with counts of ``fired`` and ``candidates``; ``lists`` are its fired list in pieces."""
        if self.record is not Record.NONE:
            self._counts.append((number, fired, candidates))
        if self.record is Record.FIRED:
            self._lists += lists

    def recording(self) -> Recording:
        """The recording so far."""
        counts = np.array(self._counts, np.int64).reshape(-1, 3).T.copy()
        return Recording(*counts, *(np.concatenate(column) for column in zip(*self._lists, strict=True)))


def record_steps(coming: range, step: Callable[[int], Burst], record: Record, progress: Progress | None) -> Recording:
    """Call ``step`` with the number of each burst ``coming``, and record the results."""
    recorder = Recorder(record)
    for number in coming:
        _add(recorder, step(number))
        if progress is not None:
            progress(1)
    return recorder.recording()


def recording_of(bursts: list[Burst], record: Record) -> Recording:
    """The recording of ``bursts``."""
    recorder = Recorder(record)
    for burst in bursts:
        _add(recorder, burst)
    return recorder.recording()


def _add(recorder: Recorder, burst: Burst) -> None:
    fired = burst.fired_ids, burst.fired_potentials
    recorder.add(burst.number, len(burst.fired_ids), burst.candidates, fired)


def joined(pieces: Sequence[Recording]) -> Recording:
    """Consecutive recordings as one; a single one is not copied."""
    if len(pieces) == 1:
        return pieces[0]
    parts = [recording_of([], Record.NONE), *pieces]
    columns = ([getattr(part, item.name) for part in parts] for item in fields(Recording))
    return Recording(*(np.concatenate(column) for column in columns))


def tell(progress: Progress | None, bursts: int, settle: Callable[[], None]) -> None:
    """Call ``progress`` with ``bursts``; if it raises, ``settle`` what is under way and re-raise."""
    if progress is None:
        return
    try:
        progress(bursts)
    except BaseException:
        settle()
        raise
