"""Which neurons fired in the last bursts, on the host: for networks none of whose own synapses learns."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint32]


class Firings:
    """Fired lists of so many bursts that a window and the longest streak in it can be told.

    Parameters
    ----------
    longest_window : int
        W of all plastic mappings.
    """

    def __init__(self, longest_window: int) -> None:
        self._window = longest_window
        self._lists: deque[Words] = deque(maxlen=2 * longest_window)

    def add(self, ids: Words) -> None:
        """What fired in the burst after the last one."""
        self._lists.append(ids)

    def restore(self, burst: int, last_fired: Ids, streaks: npt.NDArray[np.uint16]) -> None:
        """Continue after ``burst`` from the columns of a state, (N,)."""
        self._lists.clear()
        for number in range(max(burst - 2 * self._window + 1, 1), burst + 1):
            fired = (last_fired >= number) & (number > last_fired - streaks)
            self._lists.append(np.flatnonzero(fired).astype(np.uint32))

    def columns(self, burst: int, neurons: int) -> tuple[Ids, npt.NDArray[np.uint16]]:
        """``EngineState.last_fired`` and ``fire_streak`` after ``burst``, (N,)."""
        last, streaks = np.zeros(neurons, np.int64), np.zeros(neurons, np.uint16)
        for number, ids in self._numbered(burst):
            unbroken = np.where(last[ids] == number - 1, streaks[ids], 0)
            streaks[ids] = np.minimum(unbroken + 1, self._window)
            last[ids] = number
        lost = last <= max(0, burst - (self._window - 1))
        last[lost], streaks[lost] = 0, 0
        return last, streaks

    def _numbered(self, burst: int) -> Iterator[tuple[int, Words]]:
        return enumerate(self._lists, burst - len(self._lists) + 1)
