"""Partitions of a network's neurons over shards, by the strategies of requirement MG-1."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.errors import EnvironmentInvalidError, InputError
from burstproof.network.model import Network

MOST_SHARDS = 1 << 12
"""Most shards of a partition, so that owner ids and tables by shard and source stay small."""

EXPECTED_RATE = 0.01
"""Assumed fraction of the neurons that fire in a burst, if it was not measured."""

EVENT_COST = 2.0
"""Cost of an arriving contribution in units of one neuron's dynamics, as for the threads of the CPU engine."""

_PIECES_PER_SHARE = 4
_COST_STEPS = 100.0


@dataclass(frozen=True, eq=False)
class Partition:
    """A partition of neurons 0 ... N - 1 into shards; a shard owns its neurons and all synapses onto them.

    Attributes
    ----------
    owner : uint16 (N,)
        Shard of each neuron.
    shards : int
    strategy : str
        The strategy that made it.
    """

    owner: npt.NDArray[np.uint16]
    shards: int
    strategy: str

    @property
    def neuron_count(self) -> int:
        """Number of neurons N."""
        return len(self.owner)

    def check(self, network: Network) -> None:
        """Raise an ``InputError`` if this is a partition of another number of neurons."""
        if self.neuron_count != network.neuron_count:
            raise InputError(
                "a partition of another network",
                where="partition",
                got=self.neuron_count,
                allowed=f"{network.neuron_count} neurons",
            )

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """Neurons of each shard, (shards,) int64."""
        return np.bincount(self.owner, minlength=self.shards)

    @cached_property
    def _grouped(self) -> npt.NDArray[np.uint32]:
        """All ids by shard, ascending within a shard, (N,) uint32."""
        return np.argsort(self.owner, kind="stable").astype(np.uint32)

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        """Index in ``_grouped`` of the first neuron of each shard, (shards + 1,) int64."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    def members(self, shard: int) -> npt.NDArray[np.uint32]:
        """Global ids of the neurons of ``shard``, ascending, uint32."""
        return self._grouped[self._starts[shard] : self._starts[shard + 1]]

    @cached_property
    def local_ids(self) -> npt.NDArray[np.uint32]:
        """Local number of each neuron: its index among the members of its shard, (N,) uint32."""
        local = np.empty(self.neuron_count, np.uint32)
        places = np.arange(self.neuron_count, dtype=np.int64) - np.repeat(self._starts[:-1], self.sizes)
        local[self._grouped] = places
        return local


def partition_of(owner: npt.NDArray[Any], shards: int, strategy: str) -> Partition:
    """A partition with the given owners in 0 ... shards - 1."""
    return Partition(np.ascontiguousarray(owner, np.uint16), shards, strategy)


def make_partition(network: Network, shards: int, strategy: str, activity: npt.NDArray[Any] | None = None) -> Partition:
    """Split ``network`` over ``shards`` shards.

    Parameters
    ----------
    network : Network
    shards : int
        1 or more, no more than there are neurons.
    strategy : str
        ``contiguous`` (ranges of equal length), ``round_robin`` (id modulo shards), ``by_cortical_area`` (whole areas;
        one that costs more than a shard's fair share is split into ranges), ``dynamic`` (ranges of equal cost, of
        dynamics and of arrivals at the expected or measured activity) or ``metis`` (fewest synapses between shards at
        balanced cost, by METIS).
    activity : array (N,), optional
        Measured firings of each neuron per burst, 0...1; for the strategies that balance a cost.

    Raises
    ------
    InputError
        An unknown strategy, a number of shards that the network does not admit, or activity of another shape or outside
        0...1.
    EnvironmentInvalidError
        ``metis`` without its package.
    """
    if strategy not in _OWNERS:
        raise InputError("unknown sharding strategy", where="strategy", got=strategy, allowed=", ".join(STRATEGIES))
    most = min(max(network.neuron_count, 1), MOST_SHARDS)
    if not 1 <= shards <= most:
        raise InputError(
            "a number of shards that this network does not admit",
            where="shards",
            got=shards,
            allowed=f"1...{most} ({network.neuron_count} neurons)",
        )
    return partition_of(_OWNERS[strategy](network, shards, activity), shards, strategy)


def neuron_cost(network: Network, activity: npt.NDArray[Any] | None = None) -> npt.NDArray[np.float64]:
    """Cost of each neuron in a burst, (N,) float64: 1 for its dynamics, and ``EVENT_COST`` for every arrival.

    Arrivals come from all valid synapses onto the neuron: at ``EXPECTED_RATE``, or, with ``activity`` (firings per
    burst), each as often as its source fired.

    Raises
    ------
    InputError
        Activity that is not (N,) numbers from 0 to 1.
    """
    synapses, count = network.synapses, network.neuron_count
    targets, valid = synapses.target_neurons, synapses.valid_mask
    everything = bool(valid.all())
    targets = targets if everything else targets[valid]
    if activity is None:
        return np.asarray(1.0 + EVENT_COST * EXPECTED_RATE * np.bincount(targets, minlength=count), np.float64)
    rates = np.asarray(activity, np.float64)
    if rates.shape != (count,) or not np.isfinite(rates).all() or bool(((rates < 0) | (rates > 1)).any()):
        raise InputError(
            "activity must be one number per neuron, its firings per burst",
            where="activity",
            got=(rates.dtype.name, rates.shape),
            allowed=f"({count},) from 0 to 1",
        )
    sources = synapses.source_neurons if everything else synapses.source_neurons[valid]
    return np.asarray(1.0 + EVENT_COST * np.bincount(targets, weights=rates[sources], minlength=count), np.float64)


def balanced_ranges(cost: npt.NDArray[np.float64], shards: int) -> npt.NDArray[np.int64]:
    """Owner (n,) of each of n consecutive items, in ``shards`` ranges of about equal cost.

    Every range has at least one item if there are enough.
    """
    count = len(cost)
    cumulated = np.concatenate(([0.0], np.cumsum(cost)))
    cuts = np.searchsorted(cumulated, cumulated[-1] * np.arange(1, shards) / shards)
    earliest = np.arange(1, shards)  # cut k leaves at least one item for each range before it
    cuts = np.maximum.accumulate(np.maximum(cuts - earliest, 0)) + earliest
    cuts = np.minimum(cuts, count - shards + earliest) if count >= shards else np.minimum(cuts, count)
    return np.searchsorted(cuts, np.arange(count), side="right")


def _contiguous(network: Network, shards: int, _: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    count = network.neuron_count
    bounds = np.arange(1, shards, dtype=np.int64) * count // shards
    return np.searchsorted(bounds, np.arange(count), side="right")


def _round_robin(network: Network, shards: int, _: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    return np.arange(network.neuron_count, dtype=np.int64) % shards


def _by_cost(network: Network, shards: int, activity: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    return balanced_ranges(neuron_cost(network, activity), shards)


def _by_area(network: Network, shards: int, activity: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Assign whole areas, the costliest first, to the shard with the least load; areas that cost too much are split."""
    cost = neuron_cost(network, activity)
    areas, area_of = np.unique(network.neurons.cortical_areas, return_inverse=True)
    fair = cost.sum() / shards
    piece_of = np.empty(network.neuron_count, np.int64)
    weights: list[float] = []
    for area in range(len(areas)):
        ids = np.flatnonzero(area_of == area)
        weight = cost[ids].sum()
        pieces = 1 if weight <= fair else min(int(np.ceil(_PIECES_PER_SHARE * weight / fair)), len(ids))
        ranges = balanced_ranges(cost[ids], pieces)
        piece_of[ids] = len(weights) + ranges
        weights += np.bincount(ranges, weights=cost[ids]).tolist()
    load = np.zeros(shards)
    shard_of = np.empty(len(weights), np.int64)
    for piece in np.argsort(-np.array(weights), kind="stable"):
        shard_of[piece] = int(np.argmin(load))
        load[shard_of[piece]] += weights[piece]
    return shard_of[piece_of]


def _by_metis(network: Network, shards: int, activity: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """Partition by METIS (Karypis and Kumar) of ``_graph``; vertex weights are costs in hundredths."""
    if not metis_available():
        raise EnvironmentInvalidError(
            "the strategy metis needs the package pymetis, which is not installed",
            where="strategy",
            cure="pip install '.[metis]' in the folder of the clone, or use the strategy dynamic",
        )
    if shards == 1:
        return np.zeros(network.neuron_count, np.int64)
    import pymetis

    cost = neuron_cost(network, activity)
    starts, neighbours, weights = _graph(network)
    _, owner = pymetis.part_graph(
        shards,
        adjacency=pymetis.CSRAdjacency(starts, neighbours),
        vweights=np.maximum(np.rint(cost * _COST_STEPS), 1).astype(np.int64).tolist(),
        eweights=weights.tolist(),
        recursive=shards <= 8,
    )
    return np.asarray(owner, np.int64)


def metis_available() -> bool:
    """Whether pymetis is installed."""
    return importlib.util.find_spec("pymetis") is not None


def _graph(network: Network) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """The undirected graph of the valid synapses in CSR form: starts (N + 1,), neighbours and weights (E,).

    An edge connects two neurons with a valid synapse between them; its weight is their number. Self-loops are omitted.
    """
    synapses, count = network.synapses, network.neuron_count
    kept = synapses.valid_mask & (synapses.source_neurons != synapses.target_neurons)
    sources = synapses.source_neurons[kept].astype(np.int64)
    targets = synapses.target_neurons[kept].astype(np.int64)
    edges = np.concatenate([sources * count + targets, targets * count + sources])
    joined, weights = np.unique(edges, return_counts=True)
    starts = np.searchsorted(joined // count, np.arange(count + 1)) if count else np.zeros(1, np.int64)
    return starts, joined % count if count else joined, weights


_Owners = Callable[[Network, int, npt.NDArray[Any] | None], npt.NDArray[Any]]

_OWNERS: dict[str, _Owners] = {
    "contiguous": _contiguous,
    "round_robin": _round_robin,
    "by_cortical_area": _by_area,
    "dynamic": _by_cost,
    "metis": _by_metis,
}

STRATEGIES = tuple(_OWNERS)
"""Names of the strategies."""
