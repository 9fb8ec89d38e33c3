"""The stimulus of a train: which bursts it covers and what comes in from outside in each, as one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.stimulus import PackedStimulus


@dataclass(frozen=True, eq=False)
class StimulusTable:
    """Stimulus of consecutive bursts, packed one after another.

    ``offsets`` and ``forced_offsets`` (train length + 1,) int64, the last value repeated; ``ids`` uint32 with
    ``amounts`` in units of 2^-k; ``forced`` uint32. ``clamped`` holds the places of bursts with a clamped amount.
    """

    bursts: int
    offsets: npt.NDArray[np.int64]
    ids: npt.NDArray[np.uint32]
    amounts: npt.NDArray[Any]
    forced_offsets: npt.NDArray[np.int64]
    forced: npt.NDArray[np.uint32]
    clamped: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing comes from outside in any burst."""
        return not len(self.ids) and not len(self.forced)


def train_table(
    stimuli: Mapping[int, PackedStimulus], first: int, bursts: int, length: int, capacity: int, dtype: np.dtype[Any]
) -> StimulusTable:
    """The table of at most ``bursts`` bursts from burst number ``first`` on, for a train of ``length``.

    The train ends early before a burst whose stimulus does not fit into ``capacity`` ids any more; the first burst is
    always taken.
    """
    taken: list[PackedStimulus | None] = []
    used = forced = 0
    for number in range(first, first + bursts):
        packed = stimuli.get(number)
        if packed is not None:
            used, forced = used + len(packed.ids), forced + len(packed.forced)
            if taken and max(used, forced) > capacity:
                break
        taken.append(packed)
    return _table(taken, length, dtype)


def _table(taken: Sequence[PackedStimulus | None], length: int, dtype: np.dtype[Any]) -> StimulusTable:
    given = [p for p in taken if p is not None]
    return StimulusTable(
        bursts=len(taken),
        offsets=_offsets([0 if p is None else len(p.ids) for p in taken], length),
        ids=np.concatenate([np.empty(0, np.uint32), *(p.ids for p in given)]),
        amounts=np.concatenate([np.empty(0, dtype), *(p.amounts for p in given)]),
        forced_offsets=_offsets([0 if p is None else len(p.forced) for p in taken], length),
        forced=np.concatenate([np.empty(0, np.uint32), *(p.forced for p in given)]),
        clamped=tuple(place for place, p in enumerate(taken) if p is not None and p.clamped),
    )


def _offsets(counts: Sequence[int], length: int) -> npt.NDArray[np.int64]:
    offsets = np.zeros(length + 1, np.int64)
    np.cumsum(counts, out=offsets[1 : len(counts) + 1])
    offsets[len(counts) + 1 :] = offsets[len(counts)]
    return offsets
