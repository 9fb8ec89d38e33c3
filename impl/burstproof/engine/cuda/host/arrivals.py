"""What a restored state says will arrive, where the device has no slots for it: it comes in as stimulus.

Delays are then in a calendar or on the sender's side, which know nothing from before the state. An arrival is an
amount for its neuron, which is a candidate: that is what stimulus is.
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
    """Contributions by the burst that they arrive in."""

    def __init__(self) -> None:
        self._by_burst: dict[int, PackedStimulus] = {}

    def __bool__(self) -> bool:
        """Whether something may still arrive."""
        return bool(self._by_burst)

    def take(
        self, state: EngineState, valid: npt.NDArray[np.bool_], dtype: np.dtype[np.signedinteger], slots: int = 1
    ) -> EngineState:
        """Take what ``state`` says of later bursts than the next ``slots`` (0 or 1), and return the rest."""
        self._by_burst.clear()
        for later, (sums, candidates) in enumerate(zip(state.pending, state.pending_candidate, strict=True)):
            ids = np.flatnonzero(candidates & valid).astype(np.uint32)
            if later >= slots and len(ids):
                arrived = PackedStimulus(ids, sums[ids].astype(dtype), ids[:0], False, True)
                self._by_burst[state.burst_count + 1 + later] = arrived
        kept = state.pending_candidate[:1] & (slots > 0)
        return replace(state, pending=np.where(kept, state.pending[:1], 0), pending_candidate=kept)

    def among(self, ids: npt.NDArray[np.uint32]) -> Arrivals:
        """Those of the neurons ``ids`` (n,), ascending, each by its place among them."""
        own = Arrivals()
        for burst, given in self._by_burst.items():
            places, mine = places_among(ids, given.ids)
            own._by_burst[burst] = given._replace(ids=places[mine].astype(np.uint32), amounts=given.amounts[mine])
        return own

    def forget(self, burst: int) -> None:
        """Let go of everything, once all of it is over before ``burst``."""
        if burst > max(self._by_burst, default=burst):
            self._by_burst.clear()

    def beside(self, stimuli: Mapping[int, PackedStimulus]) -> Mapping[int, PackedStimulus]:
        """``stimuli`` by burst, with what arrives."""
        if not self._by_burst:
            return stimuli
        together = {burst: _sum(given, stimuli.get(burst)) for burst, given in self._by_burst.items()}
        return {**stimuli, **together}

    def add_to(self, burst: int, sums: npt.NDArray[np.int64], candidates: npt.NDArray[np.bool_]) -> None:
        """Add what arrives after ``burst`` to the rows (D, N) of the state after it."""
        for number, given in self._by_burst.items():
            if number > burst:
                row = number - burst - 1
                sums[row, given.ids] += given.amounts
                candidates[row, given.ids] = True


def _sum(arrived: PackedStimulus, given: PackedStimulus | None) -> PackedStimulus:
    if given is None:
        return arrived
    ids, places = np.unique(np.concatenate((arrived.ids, given.ids)), return_inverse=True)
    amounts = np.zeros(len(ids), arrived.amounts.dtype)
    np.add.at(amounts, places, np.concatenate((arrived.amounts, given.amounts)))
    return PackedStimulus(ids, amounts, given.forced, given.clamped, True)
