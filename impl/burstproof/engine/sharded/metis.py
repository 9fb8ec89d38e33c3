"""Partitions by METIS (Karypis and Kumar), which looks for the fewest synapses between shards at balanced cost."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import EnvironmentInvalidError
from burstproof.network.model import Network

_COST_STEPS = 100.0


def metis_available() -> bool:
    """Whether pymetis is installed."""
    return importlib.util.find_spec("pymetis") is not None


def metis_owner(network: Network, shards: int, cost: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Shard of each neuron, (N,) int64.

    The graph has an edge between two neurons that any valid synapse joins, weighted by how many do; vertices weigh
    their cost in hundredths.

    Raises
    ------
    EnvironmentInvalidError
        pymetis is not installed.
    """
    if not metis_available():
        raise EnvironmentInvalidError(
            "the strategy metis needs the package pymetis, which is not installed",
            where="strategy",
            cure="pip install '.[metis]' in the folder of the clone, or use the strategy dynamic",
        )
    if shards == 1:
        return np.zeros(network.neuron_count, np.int64)
    import pymetis

    starts, neighbours, weights = _graph(network)
    _, owner = pymetis.part_graph(
        shards,
        adjacency=pymetis.CSRAdjacency(starts, neighbours),
        vweights=np.maximum(np.rint(cost * _COST_STEPS), 1).astype(np.int64).tolist(),
        eweights=weights.tolist(),
        recursive=shards <= 8,
    )
    return np.asarray(owner, np.int64)


def _graph(network: Network) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """The undirected graph of the valid synapses, without loops: starts (N + 1,), neighbours and weights (E,)."""
    synapses, count = network.synapses, network.neuron_count
    kept = synapses.valid_mask & (synapses.source_neurons != synapses.target_neurons)
    sources = synapses.source_neurons[kept].astype(np.int64)
    targets = synapses.target_neurons[kept].astype(np.int64)
    edges = np.concatenate([sources * count + targets, targets * count + sources])
    joined, weights = np.unique(edges, return_counts=True)
    starts = np.searchsorted(joined // count, np.arange(count + 1)) if count else np.zeros(1, np.int64)
    return starts, joined % count if count else joined, weights
