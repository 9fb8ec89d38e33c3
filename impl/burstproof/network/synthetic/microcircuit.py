"""The microcircuit: eight populations under one square millimetre of cortex, with their sizes and connections.

Source of sizes, connection probabilities, synaptic strengths and delays: T. C. Potjans and M. Diesmann, "The cell-type
specific cortical microcircuit: relating structure and activity in a full-scale spiking network model", Cerebral Cortex
24(3), 2014, tables 4 and 5. The neurons are those of this package, driven by their excitability; a burst is 0.1 ms.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.network.model import FIRST_OWN_AREA_INDEX, Area, Network, NeuronTable, SynapseTable
from burstproof.network.synthetic.counter_random import make_counter_random
from burstproof.network.synthetic.laws import DELAY_STREAM, END_STREAM
from burstproof.network.synthetic.spec import SyntheticSpec

NAME = "microcircuit"
POPULATIONS = {
    "L2/3E": 20683,
    "L2/3I": 5834,
    "L4E": 21915,
    "L4I": 5479,
    "L5E": 4850,
    "L5I": 1065,
    "L6E": 14395,
    "L6I": 2948,
}
"""Neurons by layer and type, E excitatory, I inhibitory."""

PROBABILITIES = (
    (0.1009, 0.1689, 0.0437, 0.0818, 0.0323, 0.0, 0.0076, 0.0),
    (0.1346, 0.1371, 0.0316, 0.0515, 0.0755, 0.0, 0.0042, 0.0),
    (0.0077, 0.0059, 0.0497, 0.135, 0.0067, 0.0003, 0.0453, 0.0),
    (0.0691, 0.0029, 0.0794, 0.1597, 0.0033, 0.0, 0.1057, 0.0),
    (0.1004, 0.0622, 0.0505, 0.0057, 0.0831, 0.3726, 0.0204, 0.0),
    (0.0548, 0.0269, 0.0257, 0.0022, 0.06, 0.3158, 0.0086, 0.0),
    (0.0156, 0.0066, 0.0211, 0.0166, 0.0572, 0.0197, 0.0396, 0.2252),
    (0.0364, 0.001, 0.0034, 0.0005, 0.0277, 0.008, 0.0658, 0.1443),
)
"""Probability that a pair of neurons is connected at least once: target population by row, source by column."""

FIRINGS = 25
"""Of a burst, 3.2 per second and neuron."""

DELAYS = {"E": (15.0, 7.5), "I": (8.0, 4.0)}
"""Mean and standard deviation in bursts of the synapses of excitatory and inhibitory neurons."""

WEIGHTS = {"E": 1.0, "I": 4.0}
_LONGEST_DELAY = 64
_REFRACTORY_BURSTS = 20
_LEAK = 0.01
"""Per burst: a membrane's time constant of 10 ms."""

_OUT_OF_WINDOW = 1.033
"""Factor on the excitability: what refractory periods and potentials below the threshold take away."""

_SETTLING = 200


def microcircuit_spec(seed: int = 0) -> SyntheticSpec:
    """Size, seed and rate; the network that belongs to them is :func:`microcircuit_network`."""
    neurons = sum(POPULATIONS.values())
    synapses = round(synapse_counts().sum() / neurons)
    return SyntheticSpec(
        neurons,
        synapses,
        seed,
        delays=(1, _LONGEST_DELAY),
        leak=_LEAK,
        refractory_period=_REFRACTORY_BURSTS,
        excitability=_OUT_OF_WINDOW * _excitability(),
        initial_firing=FIRINGS / neurons,
    )


def synapse_counts() -> npt.NDArray[np.int64]:
    """Synapses from population (column) to population (row), (8, 8); 298.9 million in all.

    So many, drawn with replacement, connect a pair at least once with its probability.
    """
    sizes = np.array(list(POPULATIONS.values()), np.float64)
    pairs = np.outer(sizes, sizes)
    counts: npt.NDArray[np.int64] = np.rint(np.log1p(-np.array(PROBABILITIES)) / np.log1p(-1.0 / pairs)).astype(
        np.int64
    )
    return counts


def _excitability() -> float:
    """The excitability at which ``FIRINGS`` neurons fire per burst, by the fixed point of the mean rates.

    A neuron is a candidate with probability 1 - exp(-inputs) and fires with the excitability if it is.
    """
    sizes = np.array(list(POPULATIONS.values()), np.float64)
    in_degrees = synapse_counts() / sizes[:, None]
    rates = np.full(len(sizes), FIRINGS / sizes.sum())
    excitability = 0.0
    for _ in range(_SETTLING):
        candidates = -np.expm1(-(in_degrees @ rates))
        excitability = FIRINGS / float(sizes @ candidates)
        rates = excitability * candidates
    return excitability


def microcircuit_network(spec: SyntheticSpec) -> Network:
    """The microcircuit with the laws of the neurons of ``spec``, its synapses from the seed.

    Parameters
    ----------
    spec : SyntheticSpec
        Of :func:`microcircuit_spec`.

    Returns
    -------
    Network
        An area for each population. 298.9 M synapses, grouped by ascending source: the neurons of a population have
        equally many, up to one, to each other population, and each target of it is equally likely. Delays are normal,
        rounded and clipped to 1...64 bursts.

    Raises
    ------
    OutOfMemoryError
        The arrays do not fit the host's memory.
    """
    sizes = np.array(list(POPULATIONS.values()), np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    degrees = _out_degrees(sizes)
    offsets = np.concatenate([[0], np.cumsum(degrees.sum(axis=1))])
    targets, delays = np.empty(offsets[-1], np.uint32), np.empty(offsets[-1], np.uint8)
    inhibitory = np.array([name.endswith("I") for name in POPULATIONS]).repeat(sizes)
    tables = np.stack([_delay_table(*DELAYS[kind]) for kind in "EI"])
    rows, numbers = _rows(), (np.uint32(spec.seed), bounds, degrees, offsets)
    ends = np.linspace(0, spec.neurons, 65).astype(np.int64)
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda span: rows(*numbers, *span, inhibitory, tables, targets, delays), pairwise(ends)))
    lengths = np.diff(offsets)
    weights = np.where(inhibitory, np.float32(WEIGHTS["I"]), np.float32(WEIGHTS["E"]))
    return Network(
        NeuronTable.build(
            spec.neurons,
            thresholds=spec.threshold,
            leak_coefficients=spec.leak,
            refractory_periods=spec.refractory_period,
            excitabilities=spec.excitability,
            cortical_areas=(FIRST_OWN_AREA_INDEX + np.arange(len(sizes), dtype=np.uint32)).repeat(sizes),
        ),
        SynapseTable.build(
            np.arange(spec.neurons, dtype=np.uint32).repeat(lengths),
            targets,
            weights=weights.repeat(lengths),
            delay_bursts=delays,
            postsynaptic_potentials=1.0,
            types=inhibitory.view(np.uint8).repeat(lengths),
        ),
        tuple(_populations()),
        provenance={"source": NAME, "seed": str(spec.seed)},
    )


def _populations() -> Iterator[Area]:
    for number, (name, size) in enumerate(POPULATIONS.items()):
        cortical_id = base64.b64encode(f"cmic{number:04x}".encode("ascii")).decode("ascii")
        yield Area(FIRST_OWN_AREA_INDEX + number, cortical_id, name=name, neurons_per_voxel=size)


def _out_degrees(sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Synapses of each neuron to each population, (N, 8): those of a pair of populations split evenly."""
    counts = synapse_counts()
    columns = []
    for source, size in enumerate(sizes):
        ends = np.arange(size + 1)[:, None] * counts[None, :, source] // size
        columns.append(np.diff(ends, axis=0))
    return np.concatenate(columns)


def _delay_table(mean: float, deviation: float) -> npt.NDArray[np.uint64]:
    """Bounds (63,) of 32-bit words: a word below the first has delay 1, one not below the last 64."""
    edges = (np.arange(1, _LONGEST_DELAY) + 0.5 - mean) / (deviation * math.sqrt(2.0))
    return np.array([round(2.0**31 * (1.0 + math.erf(edge))) for edge in edges], np.uint64)


@lru_cache(maxsize=1)
def _rows() -> Callable[..., None]:
    """Fills targets and delays of a span of neurons; compiled once per process."""
    import numba

    compiler = numba.njit(nogil=True)
    random = make_counter_random(compiler)
    words, below = random.words, random.below
    end_stream, delay_stream = np.uint32(END_STREAM), np.uint32(DELAY_STREAM)

    def rows(
        seed: np.uint32,
        bounds: Any,
        degrees: Any,
        offsets: Any,
        first: int,
        last: int,
        inhibitory: Any,
        tables: Any,
        targets: Any,
        delays: Any,
    ) -> None:
        for source in range(first, last):
            place, start = offsets[source], offsets[source]
            table = tables[1 if inhibitory[source] else 0]
            for population in range(degrees.shape[1]):
                low = np.uint32(bounds[population])
                size = np.uint64(bounds[population + 1] - bounds[population])
                for _ in range(degrees[source, population]):
                    item = np.uint32(place - start)
                    one, two = words(seed, end_stream, np.uint32(source), item)
                    targets[place] = low + np.uint32(below(one, two, size))
                    word, _two = words(seed, delay_stream, np.uint32(source), item)
                    delays[place] = 1 + np.searchsorted(table, np.uint64(word), side="right")
                    place += 1

    compiled: Callable[..., None] = compiler(rows)
    return compiled
