"""Synthetic networks whose out-degrees follow a power law: many short rows, and a few sources that reach many."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError
from burstproof.network.model import Network, SynapseTable
from burstproof.network.synthetic.build import Array, Offsets, Words, synthesize
from burstproof.network.synthetic.counter_random import LARGEST_ITEM, make_counter_random
from burstproof.network.synthetic.laws import FAN_STREAM, end_parameters, make_end
from burstproof.network.synthetic.spec import SyntheticSpec

_HALVINGS = 60


class _Fillers(NamedTuple):
    degrees: Callable[..., None]
    rows: Callable[..., None]


@lru_cache(maxsize=1)
def _fillers() -> _Fillers:
    """Loops for the CPU; compiled once per process."""
    import numba

    compiler = numba.njit(nogil=True)
    random = make_counter_random(compiler)
    words, end = random.words, make_end("uniform", random, compiler)
    stream, first = np.uint32(FAN_STREAM), np.uint32(0)
    up, down, unit = np.uint64(21), np.uint64(11), 2.0**-53

    def degrees(seed: np.uint32, low: float, high: float, result: Array) -> None:
        kept = 1.0 - low / high
        for row in range(result.size):
            one, two = words(seed, stream, np.uint32(row), first)
            uniform = np.float64((np.uint64(one) << up) | (np.uint64(two) >> down)) * unit
            result[row] = np.int64(low / (1.0 - uniform * kept))

    def rows(
        seed: np.uint32,
        numbers: tuple[np.uint64, np.uint64, np.uint64],
        offsets: Offsets,
        sources: Words,
        targets: Words,
    ) -> None:
        neurons, one, two = numbers
        for row in range(offsets.size - 1):
            for place in range(offsets[row], offsets[row + 1]):
                sources[place] = row
                targets[place] = end(seed, neurons, one, two, np.uint32(row), np.uint32(place - offsets[row]))

    return _Fillers(compiler(degrees), compiler(rows))


def power_law_network(spec: SyntheticSpec, largest_fan: int) -> Network:
    """The network of ``spec`` with out-degrees drawn from a power law around the same mean.

    Parameters
    ----------
    spec : SyntheticSpec
        Connectivity ``uniform``, one weight, one delay, no inhibition; ``synapses_per_neuron`` is the mean out-degree.
    largest_fan : int
        Largest out-degree.

    Returns
    -------
    Network
        Synapses grouped by ascending source. The specification and ``largest_fan`` are in ``provenance["spec"]``.

    Raises
    ------
    NetworkError
        A specification with other laws, or a largest out-degree that cannot have this mean.

    Notes
    -----
    The probability of an out-degree k falls as k^-2 between a least one, which the mean determines, and the largest:
    each decade of out-degrees holds the same share of all synapses. An out-degree is a function of seed and source
    alone, computed by additions, multiplications and divisions of float64, hence equal on every machine. In-degrees
    are as those of uniform targets, so that a driven specification keeps its rate.
    """
    _check(spec)
    low, high = _bounds(spec.synapses_per_neuron, largest_fan)
    degrees = np.empty(spec.neurons, np.int64)
    _fillers().degrees(np.uint32(spec.seed), low, high, degrees)
    sources, targets = _rows(spec, degrees)
    bare = synthesize(replace(spec, synapses_per_neuron=0))
    described = {**dataclasses.asdict(spec), "largest_fan": largest_fan}
    return bare.replace(
        synapses=SynapseTable.build(
            sources,
            targets,
            weights=spec.weights,
            delay_bursts=spec.delays,
            postsynaptic_potentials=spec.postsynaptic_potential,
        ),
        provenance={"source": "power law", "spec": json.dumps(described, default=lambda value: value.item())},
    )


def _rows(spec: SyntheticSpec, degrees: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    offsets = np.zeros(spec.neurons + 1, np.int64)
    np.cumsum(degrees, out=offsets[1:])
    sources, targets = np.empty(int(offsets[-1]), np.uint32), np.empty(int(offsets[-1]), np.uint32)
    _fillers().rows(np.uint32(spec.seed), tuple(end_parameters(spec)), offsets, sources, targets)
    return sources, targets


def check_fans(mean_fan: int, largest_fan: int) -> None:
    """Refuse a largest out-degree that cannot have this mean, as ``power_law_network`` does."""
    _bounds(mean_fan, largest_fan)


def share_of_short_rows(mean_fan: int, largest_fan: int, longest: int) -> float:
    """Share of all synapses that belong to sources with at most ``longest`` targets, 0...1."""
    low, high = _bounds(mean_fan, largest_fan)
    return min(1.0, max(0.0, math.log(longest / low) / math.log(high / low)))


@lru_cache(maxsize=64)
def _bounds(mean_fan: int, largest_fan: int) -> tuple[float, float]:
    """The continuous law's ends: cut to integers, it has this mean and largest value."""
    high = float(largest_fan + 1)
    steps = np.arange(1, largest_fan + 1, dtype=np.float64)

    def mean(low: float) -> float:
        return float(np.minimum((low / steps - low / high) / (1.0 - low / high), 1.0).sum())

    if not 1 <= mean_fan < largest_fan <= LARGEST_ITEM or mean(1.0) > mean_fan:
        raise NetworkError(
            "no power law has this mean and this largest out-degree",
            where="SyntheticSpec.synapses_per_neuron",
            got=f"mean {mean_fan}, largest {largest_fan}",
            allowed=f"a mean of {mean(1.0):.1f} or more, below the largest" if 1 < largest_fan <= LARGEST_ITEM else "",
            cure="Correct the mean, or the largest out-degree: of seeded networks a tenth of the neurons",
        )
    below, above = 1.0, high - 0.5
    for _ in range(_HALVINGS):
        middle = (below + above) / 2
        below, above = (middle, above) if mean(middle) < mean_fan else (below, middle)
    return below, high


def _check(spec: SyntheticSpec) -> None:
    plain = {
        "connectivity": spec.connectivity == "uniform",
        "weights": not isinstance(spec.weights, tuple),
        "delays": not isinstance(spec.delays, tuple),
        "inhibitory_fraction": spec.inhibitory_fraction == 0,
    }
    for name, fine in plain.items():
        if not fine:
            raise NetworkError(
                "a power-law network has uniform targets and one weight, delay and type",
                where=f"SyntheticSpec.{name}",
                got=getattr(spec, name),
                cure="Leave this at its default",
            )
