"""The stimulus of a train, cut for the shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.host.stimulus_table import StimulusTable, train_table
from burstproof.engine.cuda.plan.shard_pack import PackedShard
from burstproof.engine.stimulus import PackedStimulus


@dataclass(frozen=True, eq=False)
class Places:
    """Which ids belong to a shard, and where they are in it; ``capacity`` ids fit into its buffers."""

    shard: PackedShard
    ids: npt.NDArray[np.uint32] | None
    capacity: int

    @classmethod
    def of(cls, shard: PackedShard) -> Places:
        """The places of ``shard``."""
        return cls(shard, shard.ids() if shard.spaced is None else None, shard.packed.train.stimulus)

    def find(self, ids: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.uint32]]:
        """Which of ascending ``ids`` are the shard's, and their places."""
        if self.ids is None:
            spaced = self.shard.spaced
            assert spaced is not None
            distance = ids.astype(np.int64) - spaced.first
            places = distance // spaced.step
            own = (distance >= 0) & (distance % spaced.step == 0) & (places < self.shard.neurons)
            return own, places[own].astype(np.uint32)
        places = np.searchsorted(self.ids, ids)
        own = places < len(self.ids)
        own[own] = self.ids[places[own]] == ids[own]
        return own, places[own].astype(np.uint32)

    def part(self, stimulus: PackedStimulus) -> PackedStimulus:
        """The shard's part, with places instead of ids."""
        own, ids = self.find(stimulus.ids)
        _, forced = self.find(stimulus.forced)
        return replace(stimulus, ids=ids, amounts=stimulus.amounts[own], forced=forced)


def shard_tables(
    stimuli: Mapping[int, PackedStimulus],
    first: int,
    bursts: int,
    length: int,
    places: Sequence[Places],
    dtype: np.dtype[Any],
) -> tuple[StimulusTable, ...]:
    """The tables of all shards for at most ``bursts`` bursts from number ``first`` on: equally many for each."""
    coming = {number: stimuli[number] for number in range(first, first + bursts) if number in stimuli}
    parts = [{number: place.part(given) for number, given in coming.items()} for place in places]

    def tables(count: int) -> tuple[StimulusTable, ...]:
        given = zip(parts, places, strict=True)
        return tuple(train_table(part, first, count, length, place.capacity, dtype) for part, place in given)

    made = tables(bursts)
    least = min(table.bursts for table in made)
    return made if least == bursts else tables(least)
