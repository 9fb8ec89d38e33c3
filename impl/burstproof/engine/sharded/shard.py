"""The ``Shard`` protocol, and the values that shards exchange: firings and parts of the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from burstproof.engine.feature_state import FEATURES_BY_NEURON
from burstproof.engine.packing import PackedStimulus
from burstproof.engine.state import BY_NEURON, EngineState


@dataclass(frozen=True, eq=False)
class Fired:
    """Firings of a burst in one shard or several.

    ``ids`` (F,) uint32 are those of the whole network, ascending within a shard; ``potentials`` (F,) float32 are those
    before the reset. ``candidates`` counts the neurons in the FCL.
    """

    ids: npt.NDArray[np.uint32]
    potentials: npt.NDArray[np.float32]
    candidates: int


def merged(parts: Sequence[Fired]) -> Fired:
    """The fired lists of several shards as one, ids ascending."""
    if len(parts) == 1:
        return parts[0]
    ids = np.concatenate([part.ids for part in parts])
    potentials = np.concatenate([part.potentials for part in parts])
    candidates = sum(part.candidates for part in parts)
    if bool((ids[1:] > ids[:-1]).all()):
        return Fired(ids, potentials, candidates)
    order = np.argsort(ids, kind="stable")
    return Fired(ids[order], potentials[order], candidates)


@dataclass(frozen=True, eq=False)
class StatePart:
    """The part of an ``EngineState`` that one shard of n neurons holds.

    Attributes
    ----------
    members : uint32 (n,) or slice
        Ids of its neurons, ascending.
    rows : int64 (k,)
        Rows of the network's synapse table whose weight or psp can change.
    state : EngineState
        The state of these neurons and synapses; its fired list is not used.
    """

    members: npt.NDArray[np.uint32] | slice
    rows: npt.NDArray[np.int64]
    state: EngineState


def joined_state(
    parts: Sequence[StatePart],
    weights: npt.NDArray[np.float32],
    eligibility: npt.NDArray[np.float32],
    fired: tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]],
    psps: npt.NDArray[np.float32] | None = None,
) -> EngineState:
    """The state of the whole network from the ``parts`` of all its shards.

    ``weights``, ``eligibility`` and ``psps`` (S,) are columns of all synapses; the state gets copies of them in which
    the rows of the parts are replaced. ``fired`` is the last fired list. ``psps`` is not needed without features.
    """
    weights, eligibility = weights.copy(), eligibility.copy()
    for part in parts:
        weights[part.rows], eligibility[part.rows] = part.state.weights, part.state.eligibility_traces
    first = parts[0].state
    count = sum(len(part.state.membrane_potentials) for part in parts)

    def whole(name: str, of: Callable[[StatePart], Any] = lambda part: part.state) -> npt.NDArray[Any]:
        own: npt.NDArray[Any] = getattr(of(parts[0]), name)
        if len(parts) == 1:
            return own
        result = np.empty((*own.shape[:-1], count), own.dtype)
        for part in parts:
            result[..., part.members] = getattr(of(part), name)
        return result

    columns: dict[str, Any] = {name: whole(name) for name in BY_NEURON}
    features = first.features
    if features is not None and psps is not None:
        changed: dict[str, Any] = {name: whole(name, lambda part: part.state.features) for name in FEATURES_BY_NEURON}
        psps = psps.copy()
        for part in parts:
            psps[part.rows] = getattr(part.state.features, "postsynaptic_potentials")  # noqa: B009
        features = replace(features, **changed, postsynaptic_potentials=psps)
    return replace(
        first,
        features=features,
        **columns,
        weights=weights,
        eligibility_traces=eligibility,
        fired_ids=fired[0],
        fired_potentials=fired[1],
        clamped=any(part.state.clamped for part in parts),
    )


@dataclass(frozen=True, eq=False)
class Twin:
    """A dense neuron that is added while a network runs, in the room reserved for twins.

    Attributes
    ----------
    place : int
        Its id.
    template : int
        Id of a neuron of the room in the same shard with the parameters of the twin's area.
    parameters : dict
        Its ``Parameters``, one value each.
    leak : float32
        Its leak at load.
    trains : bool
        Whether its firings start a spike train.
    driver : int
        Number + 1 of its driver area, 0 for none.
    """

    place: int
    template: int
    parameters: Mapping[str, Any]
    leak: np.float32
    trains: bool
    driver: int


class Shard(Protocol):
    """One shard of a network. A burst has two halves: ``fire`` for its own neurons, ``receive`` for all firings.

    Stimulus has local neuron numbers instead of ids.
    """

    def waiting(self, number: int, stimulus: PackedStimulus | None) -> int:
        """Candidates of burst ``number`` in this shard; called before ``fire`` if the batch path may be emulated."""

    def fire(self, number: int, stimulus: PackedStimulus | None, batch: bool) -> Fired:
        """Steps 2 to 8 of burst ``number``; ``batch``: whether the batch path is emulated in it."""

    def receive(self, number: int, ids: npt.NDArray[np.uint32], potentials: npt.NDArray[np.float32]) -> None:
        """Propagation and plasticity of burst ``number``, in which ``ids`` (of the network, any order) fired."""

    def state(self, burst_count: int) -> StatePart:
        """A copy of the shard's part of the state after burst ``burst_count``."""

    def restore(self, state: EngineState) -> None:
        """Continue from the shard's part of ``state``."""

    def signals(self, burst: int) -> npt.NDArray[np.float32]:
        """Signals (M,) in force in ``burst``: that of the last ``receive``, or the next one."""

    def drive(self, driver: int, neuron: int, potential: np.float32) -> None:
        """The first memory neuron of driver area ``driver`` that fires in the coming burst is ``neuron``."""

    def set_weights(self, rows: npt.NDArray[np.int64], weights: npt.NDArray[np.float32]) -> None:
        """Set the weights of ``rows`` of the network's synapse table; rows of other shards are ignored."""

    def set_divisors(self, sources: npt.NDArray[np.int64], divisors: npt.NDArray[np.float32]) -> None:
        """Set the divisors of the contributions of ``sources``, ids in the network."""

    def add_twin(self, twin: Twin) -> None:
        """Turn a neuron of the room into ``twin``; it may belong to another shard."""

    def close(self) -> None:
        """Release memory and devices; closing twice is allowed."""
