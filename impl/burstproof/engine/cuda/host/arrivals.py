"""Contributions under way in a restored state, delivered as stimulus if the device has no slots for them.

With a calendar, or delays on the sender's side, the device cannot hold contributions from before the restored state.
Stimulus has the same effect: it adds an amount to a neuron and makes it a candidate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from burstproof.engine.cuda.plan.shard_pack import places_among
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import EngineState


class Arrivals:
    """Contributions under way, by the number of the burst in which they arrive."""

    def __init__(self) -> None:
        self._by_burst: dict[int, PackedStimulus] = {}

    def __bool__(self) -> bool:
        """Whether contributions may still arrive."""
        return bool(self._by_burst)

    def take(
        self, state: EngineState, valid: npt.NDArray[np.bool_], dtype: np.dtype[np.signedinteger], slots: int = 1
    ) -> EngineState:
        """Take over what arrives in ``state`` after the next ``slots`` (0 or 1) bursts; return the rest of it."""
        self._by_burst.clear()
        for row, (sums, candidates) in enumerate(zip(state.pending, state.pending_candidate, strict=True)):
            ids = np.flatnonzero(candidates & valid).astype(np.uint32)
            if row >= slots and len(ids):
                arriving = PackedStimulus(ids, sums[ids].astype(dtype), ids[:0], False, True)
                self._by_burst[state.burst_count + 1 + row] = arriving
        kept = state.pending_candidate[:1] & (slots > 0)
        return replace(state, pending=np.where(kept, state.pending[:1], 0), pending_candidate=kept)

    def among(self, ids: npt.NDArray[np.uint32]) -> Arrivals:
        """The contributions to the neurons ``ids`` (n,), ascending; their ids become indices into ``ids``."""
        own = Arrivals()
        for burst, given in self._by_burst.items():
            places, mine = places_among(ids, given.ids)
            own._by_burst[burst] = given._replace(ids=places[mine].astype(np.uint32), amounts=given.amounts[mine])
        return own

    def forget(self, burst: int) -> None:
        """Drop everything if all of it arrived before ``burst``."""
        if burst > max(self._by_burst, default=burst):
            self._by_burst.clear()

    def beside(self, stimuli: Mapping[int, PackedStimulus]) -> Mapping[int, PackedStimulus]:
        """``stimuli``, by burst number, with the arriving contributions added."""
        if not self._by_burst:
            return stimuli
        together = {burst: _sum(given, stimuli.get(burst)) for burst, given in self._by_burst.items()}
        return {**stimuli, **together}

    def add_to(self, burst: int, sums: npt.NDArray[np.int64], candidates: npt.NDArray[np.bool_]) -> None:
        """Add the contributions that arrive after ``burst`` to the pending rows (D, N) of the state after ``burst``."""
        for number, given in self._by_burst.items():
            if number > burst:
                row = number - burst - 1
                sums[row, given.ids] += given.amounts
                candidates[row, given.ids] = True


def _sum(arriving: PackedStimulus, given: PackedStimulus | None) -> PackedStimulus:
    if given is None:
        return arriving
    ids, places = np.unique(np.concatenate((arriving.ids, given.ids)), return_inverse=True)
    amounts = np.zeros(len(ids), arriving.amounts.dtype)
    np.add.at(amounts, places, np.concatenate((arriving.amounts, given.amounts)))
    return PackedStimulus(ids, amounts, given.forced, given.clamped, True)
