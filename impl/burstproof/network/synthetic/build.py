"""Synthetic networks from a seed (requirement BE-3): built on the CPU in one pass, grouped by source."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from burstproof.errors import NetworkError, OutOfMemoryError
from burstproof.network.model import FIRST_OWN_AREA_INDEX, Area, Network, NeuronTable, SynapseTable
from burstproof.network.synthetic.counter_random import make_counter_random
from burstproof.network.synthetic.laws import (
    PARAMETER_STREAM,
    START_STREAM,
    TYPE_STREAM,
    SynapseGenerator,
    end_parameters,
    integer_law,
    make_end,
    make_generator,
    make_values,
    probability_bound,
)
from burstproof.network.synthetic.spec import (
    CONNECTIVITIES,
    FLOAT_LAWS,
    INTEGER_LAWS,
    SyntheticSpec,
    driven_spec,
)

__all__ = [
    "CONNECTIVITIES",
    "SynapseGenerator",
    "SyntheticSpec",
    "driven_network",
    "driven_spec",
    "initial_stimulus",
    "make_generator",
    "synthesize",
]

Words = npt.NDArray[np.uint32]
Offsets = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


class _Fillers(NamedTuple):
    """Compiled loops for the CPU."""

    ends: Callable[..., None]
    integers: Callable[..., None]
    choices: Callable[..., None]
    numbers: Callable[..., None]


@lru_cache(maxsize=len(CONNECTIVITIES))
def _fillers(connectivity: str) -> _Fillers:
    """The loops for one connectivity; compiled once per process."""
    import numba

    compiler = numba.njit(nogil=True)
    random = make_counter_random(compiler)
    end, values = make_end(connectivity, random, compiler), make_values(random, compiler)
    integer, chosen = values.integer, values.chosen

    def ends(
        seed: np.uint32, neurons: np.uint64, first: np.uint64, second: np.uint64, fan: int, rows: Words, others: Words
    ) -> None:
        for row in range(np.int64(neurons)):
            for item in range(fan):
                rows[row * fan + item] = row
                others[row * fan + item] = end(seed, neurons, first, second, np.uint32(row), np.uint32(item))

    def integers(
        seed: np.uint32, which: np.uint32, low: np.uint64, span: np.uint64, offsets: Offsets, result: Array
    ) -> None:
        for row in range(offsets.size - 1):
            for place in range(offsets[row], offsets[row + 1]):
                item = np.uint32(place - offsets[row])
                result[place] = integer(seed, which, low, span, np.uint32(row), item)

    def choices(seed: np.uint32, stream: np.uint32, bound: np.uint64, item: np.uint32, result: Array) -> None:
        for row in range(result.size):
            result[row] = chosen(seed, stream, bound, np.uint32(row), item)

    words = random.words

    def numbers(seed: np.uint32, stream: np.uint32, item: np.uint32, result: Words) -> None:
        for row in range(result.size):
            result[row] = words(seed, stream, np.uint32(row), item)[0]

    return _Fillers(compiler(ends), compiler(integers), compiler(choices), compiler(numbers))


@lru_cache(maxsize=1)
def _group_by() -> Callable[..., None]:
    """Counting sort of synapses given in the order of their targets."""
    import numba

    def group(sources: Words, targets: Words, offsets: Offsets, grouped_sources: Words, grouped_targets: Words) -> None:
        following = offsets[:-1].copy()
        for place in range(sources.size):
            source = sources[place]
            grouped_sources[following[source]] = source
            grouped_targets[following[source]] = targets[place]
            following[source] += 1

    compiled: Callable[..., None] = numba.njit(nogil=True)(group)
    return compiled


def synthesize(spec: SyntheticSpec) -> Network:
    """Build the network of ``spec``; synapses are grouped by ascending source.

    Parameters
    ----------
    spec : SyntheticSpec
        Checked by its own construction.

    Returns
    -------
    Network
        Columns of one value are zero-stride. One area (one per block with ``block``), without flags. The specification
        is in ``provenance["spec"]`` as JSON.

    Raises
    ------
    OutOfMemoryError
        The arrays do not fit the host's memory.

    Notes
    -----
    Synapse ``item`` of a source carries weight, delay and type of ``make_generator``, with ``fixed_in_degree`` too,
    where ``item`` counts the synapses of a source by ascending target. 10 million synapses took 0.3...0.8 s on one idle
    core of a small server, besides one second for the compiler once per process and connectivity.
    """
    try:
        return _synthesize(spec)
    except MemoryError as error:
        synapses = spec.neurons * spec.synapses_per_neuron
        raise OutOfMemoryError(
            f"the synapses of this network do not fit the host's memory: {error}",
            where="synthesize",
            got=f"{synapses} synapses, at least {8 * synapses} bytes",
            cure="Ask for fewer neurons or synapses; from Python, CudaEngine.from_spec makes them on the device",
        ) from error


def _synthesize(spec: SyntheticSpec) -> Network:
    sources, targets, offsets = _ends(spec)
    inhibitory = _chosen(spec, TYPE_STREAM, spec.inhibitory_fraction, 0)
    types: npt.ArrayLike = np.repeat(inhibitory.view(np.uint8), np.diff(offsets)) if spec.inhibitory_fraction > 0 else 0
    synapses = SynapseTable.build(
        sources,
        targets,
        weights=_values(spec, spec.weights, 0, np.float32, offsets),
        delay_bursts=_values(spec, spec.delays, 1, np.uint8, offsets),
        postsynaptic_potentials=spec.postsynaptic_potential,
        types=types,
    )
    provenance = {
        "source": "synthetic",
        "spec": json.dumps(dataclasses.asdict(spec), default=lambda value: value.item()),
    }
    return Network(_neurons(spec), synapses, _areas(spec), provenance=provenance)


def _ends(spec: SyntheticSpec) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Sources, targets (S,) grouped by source, and the offset of each source's row (N + 1,)."""
    neurons, fan = spec.neurons, spec.synapses_per_neuron
    rows, others = np.empty(neurons * fan, np.uint32), np.empty(neurons * fan, np.uint32)
    _fillers(spec.connectivity).ends(np.uint32(spec.seed), *end_parameters(spec), fan, rows, others)
    if spec.connectivity != "fixed_in_degree":
        return rows, others, np.arange(neurons + 1, dtype=np.int64) * fan
    offsets = np.zeros(neurons + 1, np.int64)
    np.cumsum(np.bincount(others, minlength=neurons), out=offsets[1:])
    sources, targets = np.empty_like(others), np.empty_like(rows)
    _group_by()(others, rows, offsets, sources, targets)
    return sources, targets, offsets


def _values(
    spec: SyntheticSpec,
    law: float | tuple[int, int],
    which: int,
    dtype: type[np.float32] | type[np.uint8],
    offsets: npt.NDArray[np.int64],
) -> npt.ArrayLike:
    if not isinstance(law, tuple):
        return law
    result = np.empty(int(offsets[-1]), dtype)
    integers = _fillers(spec.connectivity).integers
    integers(np.uint32(spec.seed), np.uint32(which), *integer_law(law), offsets, result)
    return result


def _chosen(spec: SyntheticSpec, stream: int, probability: float, item: int) -> npt.NDArray[np.bool_]:
    """Which neurons a draw with this probability picks, (N,)."""
    result = np.zeros(spec.neurons, np.bool_)
    if probability > 0:
        bound = np.uint64(probability_bound(probability))
        _fillers(spec.connectivity).choices(np.uint32(spec.seed), np.uint32(stream), bound, np.uint32(item), result)
    return result


def _neurons(spec: SyntheticSpec) -> NeuronTable:
    single = spec.block_size >= spec.neurons
    blocks: int | Words = 0 if single else np.arange(spec.neurons, dtype=np.uint32) // np.uint32(spec.block_size)
    laws = {field: _parameters(spec, field) for field in (*FLOAT_LAWS, *INTEGER_LAWS)}
    return NeuronTable.build(
        spec.neurons,
        thresholds=laws["threshold"],
        threshold_limits=laws["threshold_limit"],
        leak_coefficients=laws["leak"],
        refractory_periods=laws["refractory_period"],
        excitabilities=laws["excitability"],
        cortical_areas=FIRST_OWN_AREA_INDEX + blocks,
        consecutive_fire_limits=laws["consecutive_fire_limit"],
        snooze_periods=laws["snooze_period"],
        mp_charge_accumulation=_accumulating(spec),
    )


def _parameters(spec: SyntheticSpec, field: str) -> npt.ArrayLike:
    """The values of a law of the neurons: one for all, or (N,) of them."""
    law = getattr(spec, field)
    if not isinstance(law, tuple):
        return float(law) if field in FLOAT_LAWS else int(law)
    words = np.empty(spec.neurons, np.uint32)
    item = np.uint32((*FLOAT_LAWS, *INTEGER_LAWS).index(field))
    _fillers(spec.connectivity).numbers(np.uint32(spec.seed), np.uint32(PARAMETER_STREAM), item, words)
    low, high = law
    if field in FLOAT_LAWS:
        return np.float32(low + (high - low) * (words * 2.0**-32))
    values: npt.NDArray[np.uint16] = (low + (words * np.uint64(high - low + 1) >> np.uint64(32))).astype(np.uint16)
    return values


def _accumulating(spec: SyntheticSpec) -> npt.ArrayLike:
    if isinstance(spec.accumulates, bool):
        return spec.accumulates
    item = len(FLOAT_LAWS) + len(INTEGER_LAWS)
    return _chosen(spec, PARAMETER_STREAM, spec.accumulates, item)


def _areas(spec: SyntheticSpec) -> tuple[Area, ...]:
    """One area per block: a single voxel that holds all its neurons."""
    size = spec.block_size
    return tuple(
        Area(
            FIRST_OWN_AREA_INDEX + block,
            base64.b64encode(f"csyn{block:04x}".encode("ascii")).decode("ascii"),
            name=f"synthetic {block}",
            neurons_per_voxel=min(size, spec.neurons - block * size),
        )
        for block in range(-(-spec.neurons // size))
    )


def driven_network(neurons: int, synapses_per_neuron: int, firing_rate: float, seed: int = 0) -> Network:
    """The network of ``driven_spec``; start it by forcing ``initial_stimulus`` of the same specification.

    Raises
    ------
    NetworkError
        The rate cannot be held.
    """
    return synthesize(driven_spec(neurons, synapses_per_neuron, firing_rate, seed))


def initial_stimulus(spec: SyntheticSpec, burst: int = 1) -> npt.NDArray[np.uint32]:
    """Ids to force in burst number ``burst`` so that the network starts at ``spec.initial_firing``, ascending.

    Every neuron is chosen with that probability in each of the bursts 1...longest delay; none in later ones.

    Raises
    ------
    NetworkError
        A burst number below 1.
    """
    if burst < 1:
        raise NetworkError("burst numbers start at 1", where="burst", got=burst, allowed="1 or more")
    if burst > spec.longest_delay:
        return np.empty(0, np.uint32)
    return np.flatnonzero(_chosen(spec, START_STREAM, spec.initial_firing, burst)).astype(np.uint32)
