"""The synapses that one associative mapping made: columns with free rows, found by source (FEATURES section 8).

A burst touches the rows of what fired, appeared or went; only learning passes over whole columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

T = TypeVar("T", bound=np.generic)

_NO_IDS: Ids = np.empty(0, np.int64)
_FIRST_ROOM = 64
_DENSE = -1
"""Row of a synapse that the network has from the start."""


class _Row(NamedTuple):
    """Synapses of one source: the row of each target, and the rows alone."""

    places: dict[int, int]
    rows: array[int]


class Synapses(NamedTuple):
    """Made synapses in any order: ids int64 (S,), the rest float32 (S,)."""

    sources: Ids
    targets: Ids
    weights: Floats
    psps: Floats
    traces: Floats


class MadeColumns:
    """Columns of synapses that appear and go.

    Attributes
    ----------
    sources, targets : int64 (room,)
        -1 where no synapse is.
    weights, psps, traces : float32 (room,)
    """

    def __init__(self, sources: Ids, targets: Ids) -> None:
        """``sources`` and ``targets``: ends (K,) of the synapses that the network has from the start."""
        self._dense = sources, targets
        self.clear()

    def clear(self) -> None:
        """Take all away."""
        self.sources, self.targets = np.full(_FIRST_ROOM, -1, np.int64), np.full(_FIRST_ROOM, -1, np.int64)
        self.weights, self.psps, self.traces = (np.zeros(_FIRST_ROOM, np.float32) for _ in range(3))
        self._free = list(range(_FIRST_ROOM))
        self._by_source: dict[int, _Row] = {}
        self._by_target: dict[int, set[int]] = {}
        for source, target in zip(*(ends.tolist() for ends in self._dense), strict=True):
            self._row(source).places[target] = _DENSE

    def __len__(self) -> int:
        return len(self.sources) - len(self._free)

    def _row(self, source: int) -> _Row:
        if source not in self._by_source:
            self._by_source[source] = _Row({}, array("q"))
        return self._by_source[source]

    def all(self) -> Synapses:
        """A copy of every synapse."""
        here = np.flatnonzero(self.sources >= 0)
        ends = self.sources[here], self.targets[here]
        return Synapses(*ends, self.weights[here], self.psps[here], self.traces[here])

    def sending(self, fired: npt.NDArray[np.uint32]) -> tuple[Ids, Ids]:
        """Rows of the synapses whose sources are in ``fired`` (F,), and the place in it of each source."""
        if not len(self):
            return _NO_IDS, _NO_IDS
        found = [(at, row) for at, one in enumerate(fired.tolist()) if (row := self._by_source.get(one)) and row.rows]
        if not found:
            return _NO_IDS, _NO_IDS
        rows = np.concatenate([np.frombuffer(row.rows, np.int64) for _, row in found])
        return rows, np.repeat([at for at, _ in found], [len(row.rows) for _, row in found])

    def missing(self, sources: Ids, targets: Ids) -> tuple[Ids, Ids]:
        """Ends of all pairs of ``sources`` and ``targets`` between which there is no synapse."""
        reached = targets.tolist()
        found: list[int] = []
        counts: list[int] = []
        for source in sources.tolist():
            row = self._by_source.get(source)
            before = len(found)
            found += reached if row is None else [one for one in reached if one not in row.places]
            counts.append(len(found) - before)
        if not found:
            return _NO_IDS, _NO_IDS
        return np.repeat(sources, counts), np.array(found, np.int64)

    def add(self, made: Synapses) -> None:
        """Add synapses; those of a source follow each other."""
        rows = self._room(len(made.sources))
        places = np.array(rows, np.int64)
        self.sources[places], self.targets[places] = made.sources, made.targets
        self.weights[places], self.psps[places], self.traces[places] = made.weights, made.psps, made.traces
        ends = zip(made.sources.tolist(), made.targets.tolist(), rows, strict=True)
        for source, target, place in ends:
            row = self._row(source)
            row.places[target] = place
            row.rows.append(place)
            self._by_target.setdefault(target, set()).add(source)

    def _room(self, count: int) -> list[int]:
        """``count`` free rows, which are so no longer."""
        size = len(self.sources)
        if len(self._free) < count:
            wanted = max(2 * size, size + count)
            self._free += range(size, wanted)
            self.sources, self.targets = (_longer(one, wanted, -1) for one in (self.sources, self.targets))
            self.weights, self.psps, self.traces = (
                _longer(one, wanted, 0) for one in (self.weights, self.psps, self.traces)
            )
        rows = self._free[len(self._free) - count :]
        del self._free[len(self._free) - count :]
        return rows

    def remove(self, gone: Iterable[int]) -> tuple[Ids, Ids]:
        """Take away the synapses of neurons that are ``gone``; returns their ends."""
        sources: list[int] = []
        targets: list[int] = []
        for one in gone:
            row = self._by_source.pop(one, None)
            if row is not None:
                sources += [one] * len(row.places)
                targets += row.places
                self._give_back(list(row.rows))
                for target in row.places:
                    self._by_target[target].discard(one)
            senders = sorted(self._by_target.pop(one, ()))
            sources += senders
            targets += [one] * len(senders)
            self._give_back([self._forget(sender, one) for sender in senders])
        return np.array(sources, np.int64), np.array(targets, np.int64)

    def _forget(self, source: int, target: int) -> int:
        row = self._by_source[source]
        place = row.places.pop(target)
        row.rows.remove(place)
        return place

    def _give_back(self, rows: Sequence[int]) -> None:
        self._free += rows
        self.sources[np.array(rows, np.int64)] = -1


def _longer(column: npt.NDArray[T], length: int, value: int) -> npt.NDArray[T]:
    found = np.full(length, value, column.dtype)
    found[: len(column)] = column
    return found
