"""The executable specification over networks too large to be held: rows are drawn again whenever a neuron fires."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from burstproof.engine.options import EngineOptions
from burstproof.engine.reference import ReferenceEngine
from burstproof.engine.state import EngineState
from burstproof.errors import InputError
from burstproof.network.fixed_point import FixedPoint
from burstproof.network.synthetic.build import synthesize
from burstproof.network.synthetic.counter_random import make_counter_random
from burstproof.network.synthetic.laws import (
    TYPE_STREAM,
    end_parameters,
    integer_law,
    make_end,
    make_values,
    probability_bound,
)
from burstproof.network.synthetic.spec import SyntheticSpec
from hardware.host import take_host
from suites.support.parity.large import slim

_LARGEST_SPAN = 1 << 16
"""Most different weights; their contributions in units are looked up."""


class DrawnReference(ReferenceEngine):
    """Steps the network of a specification by the rules of ``ReferenceEngine``, without its synapses.

    Parameters
    ----------
    spec : SyntheticSpec
        Out-degree fixed; at most 65 536 different weights.
    point : FixedPoint
        Scale of the engine that it judges.
    threads : int
        0 takes all usable cores.

    Raises
    ------
    InputError
        More weights.
    """

    backend = "drawn"

    def __init__(self, spec: SyntheticSpec, point: FixedPoint, threads: int = 0) -> None:
        super().__init__(synthesize(replace(spec, synapses_per_neuron=0)), EngineOptions())
        self.fixed_point = point
        values = _weights(spec)
        self.spec = spec
        self.pending = np.zeros((spec.longest_delay, spec.neurons), np.int64)
        self.pending_candidate = np.zeros(self.pending.shape, np.bool_)
        self._units, _ = point.quantise(values * np.float32(spec.postsynaptic_potential))
        self._threads = threads

    def _propagate(self) -> None:
        """Draw the rows of what fired, then let each thread add what arrives in its span of neurons."""
        draw, add = _loops(self.spec.connectivity)
        ids, fan = self.fired_ids, self.spec.synapses_per_neuron
        entries = len(ids) * fan
        targets, units, slots = np.empty(entries, np.uint32), np.empty(entries, np.int64), np.empty(entries, np.uint8)
        numbers, drawn = _numbers(self.spec), (self._units, fan, targets, units, slots)
        _spread(self._threads, len(ids), lambda first, last: draw(numbers, ids, first, last, *drawn))
        under_way = self.pending, self.pending_candidate
        spans = self._threads, self.spec.neurons
        _spread(*spans, lambda low, high: add(targets, units, slots, low, high, *under_way))

    def restore(self, state: EngineState) -> None:
        """Continue from ``state`` of an engine over the same specification, whether it holds synapses or not."""
        super().restore(slim(state))


def draw_rows(spec: SyntheticSpec, threads: int = 0) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.float32]]:
    """Targets and signed weights of all synapses of ``spec``, (N, K) each, drawn by ``threads`` (0: all cores)."""
    draw, _ = _loops(spec.connectivity)
    shape = spec.neurons, spec.synapses_per_neuron
    targets, weights, slots = np.empty(shape, np.uint32), np.empty(shape, np.float32), np.empty(shape, np.uint8)
    values, ids = _weights(spec), np.arange(spec.neurons)
    numbers, drawn = _numbers(spec), (values, shape[1], targets.reshape(-1), weights.reshape(-1), slots.reshape(-1))
    _spread(threads, spec.neurons, lambda first, last: draw(numbers, ids, first, last, *drawn))
    return targets, weights


def _weights(spec: SyntheticSpec) -> npt.NDArray[np.float32]:
    """Every weight that a synapse can have, ascending."""
    low, high = spec.weights if isinstance(spec.weights, tuple) else (spec.weights, spec.weights)
    if high - low >= _LARGEST_SPAN:
        raise InputError("too many different weights", where="SyntheticSpec.weights", got=spec.weights)
    return np.arange(low, high + 1, dtype=np.float32) if low < high else np.array([low], np.float32)


def _spread(threads: int, items: int, work: Callable[[int, int], Any]) -> None:
    """``work`` on equal spans of ``items``, one for each of ``threads`` (0: all cores)."""
    parts = threads or take_host().usable_cores
    ends = [items * part // parts for part in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(lambda span: work(*span), pairwise(ends)))


def _numbers(spec: SyntheticSpec) -> tuple[Any, ...]:
    """The laws of the synapses as numbers, so that one compiled loop serves every network of a connectivity."""
    bound = np.uint64(probability_bound(spec.inhibitory_fraction))
    delays = integer_law(spec.delays) if isinstance(spec.delays, tuple) else (np.uint64(spec.delays), np.uint64(0))
    return np.uint32(spec.seed), *end_parameters(spec), integer_law(spec.weights)[1], *delays, bound


@lru_cache(maxsize=4)
def _loops(connectivity: str) -> tuple[Callable[..., None], Callable[..., None]]:
    """``draw`` writes the rows of a span of what fired, ``add`` puts what arrives in a span of neurons under way."""
    import numba

    compiler = numba.njit(nogil=True)
    random = make_counter_random(compiler)
    end, values = make_end(connectivity, random, compiler), make_values(random, compiler)
    integer, chosen = values.integer, values.chosen
    types, weight, delay, zero, none = np.uint32(TYPE_STREAM), np.uint32(0), np.uint32(1), np.uint32(0), np.uint64(0)

    def draw(
        numbers: Any, ids: Any, first: int, last: int, table: Any, fan: int, targets: Any, units: Any, slots: Any
    ) -> None:
        seed, neurons, one, two, weights, shortest, delays, bound = numbers
        for place in range(first, last):
            source = np.uint32(ids[place])
            sign = -1 if chosen(seed, types, bound, source, zero) else 1
            for item in range(fan):
                at, number = place * fan + item, np.uint32(item)
                targets[at] = end(seed, neurons, one, two, source, number)
                units[at] = sign * table[np.int64(integer(seed, weight, none, weights, source, number))]
                slots[at] = integer(seed, delay, shortest, delays, source, number) - np.uint64(1)

    def add(targets: Any, units: Any, slots: Any, low: int, high: int, pending: Any, candidate: Any) -> None:
        for at in range(targets.size):
            target = targets[at]
            if low <= target < high:
                pending[slots[at], target] += units[at]
                candidate[slots[at], target] = True

    return compiler(draw), compiler(add)
