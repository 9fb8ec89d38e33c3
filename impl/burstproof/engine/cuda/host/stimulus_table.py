"""The stimulus of a batch as one table per shard; the table also says how many bursts the batch covers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.plan.shard_pack import PackedShard, places_among
from burstproof.engine.packing import PackedStimulus


@dataclass(frozen=True, eq=False)
class StimulusTable:
    """Stimulus of consecutive bursts, concatenated (CSR).

    ``offsets`` and ``forced_offsets`` (batch length + 1,) int64, padded with their last value; ``ids`` uint32 with
    ``amounts`` in units of 2^-k; ``forced`` uint32. ``clamped`` are the places of bursts with a clamped amount.
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
        """Whether no burst has any stimulus."""
        return not len(self.ids) and not len(self.forced)


def batch_table(
    stimuli: Mapping[int, PackedStimulus], first: int, bursts: int, length: int, capacity: int, dtype: np.dtype[Any]
) -> StimulusTable:
    """The table of at most ``bursts`` bursts from burst number ``first`` on, for a batch of ``length``.

    The batch ends before the first burst whose stimulus no longer fits into ``capacity`` ids; it has at least one
    burst.
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


@dataclass(frozen=True, eq=False)
class Places:
    """Maps ids to places in a shard; its stimulus buffers hold ``capacity`` ids."""

    shard: PackedShard
    ids: npt.NDArray[np.uint32] | None
    capacity: int

    @classmethod
    def of(cls, shard: PackedShard) -> Places:
        """The places of ``shard``."""
        return cls(shard, shard.ids() if shard.spaced is None else None, shard.packed.batch.stimulus)

    def find(self, ids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint32]]:
        """Which of ascending ``ids`` belong to the shard, and their places in it."""
        if self.ids is not None:
            places, own = places_among(self.ids, ids)
            return own, places[own].astype(np.uint32)
        spaced = self.shard.spaced
        assert spaced is not None
        distance = ids.astype(np.int64) - spaced.first
        places = distance // spaced.step
        own = (distance >= 0) & (distance % spaced.step == 0) & (places < self.shard.neurons)
        return own, places[own].astype(np.uint32)

    def part(self, stimulus: PackedStimulus) -> PackedStimulus:
        """The shard's part of ``stimulus``, with places instead of ids."""
        if not self.shard.shard.exchanges:
            return stimulus
        own, ids = self.find(stimulus.ids)
        _, forced = self.find(stimulus.forced)
        return stimulus._replace(ids=ids, amounts=stimulus.amounts[own], forced=forced)


def shard_tables(
    stimuli: Mapping[int, PackedStimulus],
    first: int,
    bursts: int,
    length: int,
    places: Sequence[Places],
    dtype: np.dtype[Any],
) -> tuple[StimulusTable, ...]:
    """One table per shard, for at most ``bursts`` bursts from burst ``first`` on; all cover the same bursts."""
    coming = {number: stimuli[number] for number in range(first, first + bursts) if number in stimuli}
    parts = [{number: place.part(given) for number, given in coming.items()} for place in places]

    def tables(count: int) -> tuple[StimulusTable, ...]:
        given = zip(parts, places, strict=True)
        return tuple(batch_table(part, first, count, length, place.capacity, dtype) for part, place in given)

    longest = tables(bursts)
    fewest = min(table.bursts for table in longest)
    return longest if fewest == bursts else tables(fewest)
