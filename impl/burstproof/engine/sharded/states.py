"""The canonical state of a network, put together from the pieces of its shards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from burstproof.engine.sharded.partition import Partition
from burstproof.engine.sharded.shard import Fired, StatePiece
from burstproof.engine.state import EngineState
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.model import Network
from burstproof.network.schema import STATE_FIELDS

_OTHERS = ("was_candidate", "last_fired", "fire_streak", "pending", "pending_candidate")
"""What else a shard knows of its neurons; the last axis is the neurons'."""


def joined_state(
    network: Network,
    fixed_point: FixedPoint,
    partition: Partition,
    pieces: Sequence[StatePiece],
    burst_count: int,
    last: Fired,
) -> EngineState:
    """The state after burst ``burst_count``, in which ``last`` fired; ``pieces`` are those of all shards."""
    count, slots = network.neuron_count, pieces[0].pending.shape[0]
    state = EngineState(
        burst_count=burst_count,
        membrane_potentials=np.empty(count, np.float32),
        refractory_countdowns=np.empty(count, np.uint16),
        consecutive_fire_counts=np.empty(count, np.uint16),
        weights=network.synapses.weights.copy(),
        eligibility_traces=network.synapses.eligibility_traces.copy(),
        was_candidate=np.empty(count, np.bool_),
        pending=np.empty((slots, count), np.int64),
        pending_candidate=np.empty((slots, count), np.bool_),
        fired_ids=last.ids.copy(),
        fired_potentials=last.potentials.copy(),
        last_fired=np.empty(count, np.int64),
        fire_streak=np.empty(count, np.uint16),
        history_bursts=pieces[0].history_bursts,
        clamped=any(piece.clamped for piece in pieces),
        fixed_point=fixed_point,
    )
    for piece in pieces:
        _put(state, piece, partition)
    invalid = ~network.neurons.valid_mask
    state.refractory_countdowns[invalid] = network.neurons.refractory_countdowns[invalid]
    return state


def _put(state: EngineState, piece: StatePiece, partition: Partition) -> None:
    """Write one piece into the arrays of ``state``."""
    members = partition.members(piece.shard)
    for name in (*STATE_FIELDS, *_OTHERS):
        getattr(state, name)[..., members] = getattr(piece, name)
    state.weights[piece.weight_rows] = piece.weights
    state.eligibility_traces[piece.eligibility_rows] = piece.eligibility_traces
