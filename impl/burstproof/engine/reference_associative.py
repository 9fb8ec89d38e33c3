"""Associative mappings of the reference: FEATURES.md section 8, synapses that appear while the network runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from burstproof.engine.reference_features import ZERO
from burstproof.engine.reference_plasticity import decay_of, decayed, weighed
from burstproof.errors import NetworkError
from burstproof.network.plasticity import PlasticMapping

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]

ROOM = 1 << 16
"""Synapses that one neuron may gain beyond the network's largest in-degree."""


def associated(
    weights: Floats, traces: Floats, mapping: PlasticMapping, factor: np.float32, rise: np.float32, active: bool
) -> tuple[Floats, Floats]:
    """Weights and traces of a pair of areas after a burst; ``active``: both areas fired within the window."""
    traces = decayed(traces, decay_of(mapping))
    if not active:
        return weights, traces
    traces = traces + rise
    return weighed(weights, traces, mapping, factor), traces


class MadeSynapses:
    """Synapses that mappings made, in order of appearance; ``mappings`` are indices of ``Features.associative``."""

    def __init__(self) -> None:
        self.sources: Ids = np.empty(0, np.int64)
        self.targets: Ids = np.empty(0, np.int64)
        self.mappings: Ids = np.empty(0, np.int64)
        self.weights: Floats = np.empty(0, np.float32)
        self.psps: Floats = np.empty(0, np.float32)
        self.traces: Floats = np.empty(0, np.float32)

    def __len__(self) -> int:
        return len(self.sources)

    def of_mapping(self, mapping: int) -> Ids:
        """Rows of the synapses made by a mapping."""
        return np.flatnonzero(self.mappings == mapping)

    def outgoing(self, neurons: Ids) -> Ids:
        """Number of these synapses that each neuron is the source of."""
        ids, counts = np.unique(self.sources, return_counts=True)
        found = dict(zip(ids.tolist(), counts.tolist(), strict=True))
        return np.array([found.get(one, 0) for one in neurons.tolist()], np.int64)

    def make(self, mapping: int, sources: Ids, targets: Ids, weight: np.float32, psp: np.float32) -> None:
        """Add a synapse for each pair of ends."""
        count = len(sources)
        self.sources = np.concatenate([self.sources, sources])
        self.targets = np.concatenate([self.targets, targets])
        self.mappings = np.concatenate([self.mappings, np.full(count, mapping)])
        self.weights = np.concatenate([self.weights, np.full(count, weight)])
        self.psps = np.concatenate([self.psps, np.full(count, psp)])
        self.traces = np.concatenate([self.traces, np.full(count, ZERO)])

    def keep(self, rows: npt.NDArray[np.bool_] | Ids) -> None:
        """Keep only the synapses in ``rows``, in that order."""
        for name, column in vars(self).items():
            setattr(self, name, column[rows])


def missing_pairs(sources: Ids, targets: Ids, there: tuple[Ids, Ids]) -> tuple[Ids, Ids]:
    """All pairs of a source and a target, except those ``there``."""
    ends = np.repeat(sources, len(targets)), np.tile(targets, len(sources))
    new = ~np.isin((ends[0] << 32) | ends[1], (there[0] << 32) | there[1])
    return ends[0][new], ends[1][new]


def check_room(targets: Ids, static: Ids, made: MadeSynapses) -> None:
    """Refuse more synapses onto a neuron than the scale has room for; ``static``: in-degrees in the network.

    Raises
    ------
    NetworkError
        Names the neuron.
    """
    most = int(static.max(initial=0)) + ROOM
    ids, counts = np.unique(made.targets, return_counts=True)
    dense = ids < len(static)
    degrees = counts + np.where(dense, static[np.where(dense, ids, 0)], 0)
    beyond = np.isin(ids, targets) & (degrees > most)
    if beyond.any():
        neuron = int(ids[beyond][0])
        raise NetworkError(
            "an associative mapping made more synapses onto a neuron than its sums have room for",
            where=f"neuron {neuron}",
            got=int(degrees[beyond][0]),
            allowed=f"{most}",
            cure="Make the areas of the mapping smaller, or its window shorter",
        )
