"""Fired lists as they come from the devices, put into the order of a recording."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.devices import NOTHING, BatchReport, FiredList
from burstproof.engine.state import Record, Recording


def ascending(lists: Sequence[FiredList], counts: npt.NDArray[np.int64]) -> FiredList:
    """The lists of all shards as one: burst by burst, ids ascending; ``counts`` (shards, bursts) are their firings."""
    ids, potentials = (np.concatenate([part[column] for part in lists]) for column in (0, 1))
    bursts = np.concatenate([np.repeat(np.arange(counts.shape[1], dtype=np.uint64), row) for row in counts])
    order = np.argsort((bursts << np.uint64(32)) | ids)
    return ids[order], potentials[order]


class Collector:
    """Gathers the batches of one run into a recording."""

    def __init__(self, first: int, record: Record) -> None:
        self._first = first
        self._record = record
        self._reports: list[BatchReport] = []
        self._fired: list[FiredList] = []

    @property
    def wants_fired(self) -> bool:
        """Whether fired lists are recorded."""
        return self._record is Record.FIRED

    def add(self, report: BatchReport, fired: FiredList | None) -> None:
        """Take in a batch, with all its ordered fired lists if they are recorded."""
        if self._record is not Record.NONE:
            self._reports.append(report)
        if fired is not None:
            self._fired.append(fired)

    def recording(self) -> Recording:
        """Everything gathered."""
        none = np.empty(0, np.int64)
        fired = np.concatenate([none, *(report.fired.sum(axis=0) for report in self._reports)])
        lists = [NOTHING, *self._fired]
        return Recording(
            bursts=np.arange(self._first, self._first + len(fired), dtype=np.int64),
            fired_counts=fired,
            candidate_counts=np.concatenate([none, *(report.candidates for report in self._reports)]),
            fired_ids=np.concatenate([ids for ids, _ in lists]),
            fired_potentials=np.concatenate([potentials for _, potentials in lists]),
        )
