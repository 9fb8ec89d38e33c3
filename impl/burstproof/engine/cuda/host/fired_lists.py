"""Fired lists as they come from the device, put into the order of a recording."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.batch import TrainResult
from burstproof.engine.state import Record, Recording

FiredList = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]


def ordered(fired: FiredList, counts: npt.NDArray[np.int64], already: bool) -> FiredList:
    """Ascending ids within each burst; ``counts`` firings per burst, in burst order. ``already``: they are so."""
    ids, potentials = fired
    if already:
        return fired
    keys = np.repeat(np.arange(len(counts), dtype=np.uint64) << np.uint64(32), counts) | ids
    order = np.argsort(keys)
    return ids[order], potentials[order]


class Collector:
    """Gathers the trains of one run into a recording."""

    def __init__(self, first: int, record: Record) -> None:
        self._first = first
        self._record = record
        self._results: list[TrainResult] = []
        self._fired: list[FiredList] = []

    @property
    def wants_fired(self) -> bool:
        """Whether fired lists are recorded."""
        return self._record is Record.FIRED

    def add(self, result: TrainResult, fired: FiredList | None) -> None:
        """Take in a train, with all its ordered fired lists if they are recorded."""
        if self._record is not Record.NONE:
            self._results.append(result)
        if fired is not None:
            self._fired.append(fired)

    def recording(self) -> Recording:
        """Everything gathered."""
        none = np.empty(0, np.int64)
        fired = np.concatenate([none, *(r.fired for r in self._results)])
        return Recording(
            bursts=np.arange(self._first, self._first + len(fired), dtype=np.int64),
            fired_counts=fired,
            candidate_counts=np.concatenate([none, *(r.candidates for r in self._results)]),
            fired_ids=np.concatenate([np.empty(0, np.uint32), *(ids for ids, _ in self._fired)]),
            fired_potentials=np.concatenate([np.empty(0, np.float32), *(mps for _, mps in self._fired)]),
        )
