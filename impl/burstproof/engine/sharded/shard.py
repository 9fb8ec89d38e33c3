"""The protocol of one shard's engine, and what passes between shards in a burst."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.state import EngineState
from burstproof.engine.stimulus import PackedStimulus


@dataclass(frozen=True, eq=False)
class Fired:
    """What fired in a burst, in one shard or in several.

    ``ids`` (F,) uint32 in the whole network and ``potentials`` (F,) float32 before the reset; ascending within a shard.
    ``candidates`` counts the neurons in the FCL.
    """

    ids: npt.NDArray[np.uint32]
    potentials: npt.NDArray[np.float32]
    candidates: int


@dataclass(frozen=True, eq=False)
class StatePiece:
    """What one shard of n neurons knows of an ``EngineState``; fields of the same name have the same meaning.

    Attributes
    ----------
    shard : int
    membrane_potentials, refractory_countdowns, consecutive_fire_counts, was_candidate, last_fired, fire_streak
        (n,) each, of the shard's neurons in ascending order of id.
    pending, pending_candidate : (D, n)
    weight_rows, eligibility_rows : int64 (k,)
        Rows of the network's synapse table whose value may differ from the network's.
    weights, eligibility_traces : float32 (k,)
        Their values.
    history_bursts : int
    clamped : bool
        Whether a contribution was clamped in this shard.
    """

    shard: int
    membrane_potentials: npt.NDArray[np.float32]
    refractory_countdowns: npt.NDArray[np.uint16]
    consecutive_fire_counts: npt.NDArray[np.uint16]
    was_candidate: npt.NDArray[np.bool_]
    last_fired: npt.NDArray[np.int64]
    fire_streak: npt.NDArray[np.uint16]
    pending: npt.NDArray[np.int64]
    pending_candidate: npt.NDArray[np.bool_]
    weight_rows: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float32]
    eligibility_rows: npt.NDArray[np.int64]
    eligibility_traces: npt.NDArray[np.float32]
    history_bursts: int
    clamped: bool


class Shard(Protocol):
    """One shard of a network, stepped in halves: ``fire`` says what fired in it, ``receive`` hears of all shards.

    Stimulus has places in the shard instead of ids.
    """

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """Candidates that burst ``number`` will have in this shard; asked before where their sum decides its rules."""
        ...

    def fire(self, number: int, stimulus: PackedStimulus | None, batch: bool) -> Fired:
        """Steps 2 to 8 of burst ``number``; ``batch`` says that the batch path is emulated in it."""
        ...

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """Propagation and plasticity of burst ``number``, in which ``ids`` (of the network, any order) fired."""
        ...

    def piece(self, burst_count: int) -> StatePiece:
        """A copy of the shard's part of the state after burst ``burst_count``."""
        ...

    def restore(self, state: EngineState) -> None:
        """Continue from the shard's part of ``state``."""
        ...

    def close(self) -> None:
        """Give back memory and devices; closing twice is allowed."""
        ...
