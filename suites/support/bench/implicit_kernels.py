"""Compiled loops of the implicit reference: the rules of SEMANTICS.md for driven networks, written for this alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from burstproof.network.synthetic.counter_random import make_counter_random
from burstproof.network.synthetic.laws import make_end


class Loops(NamedTuple):
    """``dynamics`` steps a span of neurons, ``targets`` writes the rows of who fired, ``add`` counts what arrives."""

    dynamics: Callable[..., tuple[int, int]]
    targets: Callable[..., None]
    add: Callable[..., None]


@lru_cache(maxsize=4)
def loops(connectivity: str) -> Loops:
    """The loops for one connectivity; compiled once per process, and free of the interpreter's lock."""
    import numba

    plain = numba.njit(nogil=True)
    end = make_end(connectivity, make_counter_random(plain), plain)

    @plain
    def draw(neuron: Any, burst: Any) -> Any:
        """The excitability draw: float32 in [0, 1]."""
        seed = np.uint32(np.uint64(neuron) * np.uint64(2654435761) + np.uint64(burst) * np.uint64(1597334677))
        state = np.uint32(np.uint64(seed) * np.uint64(747796405) + np.uint64(2891336453))
        shifted = np.uint32(state >> np.uint32((state >> np.uint32(28)) + np.uint32(4)))
        word = np.uint32(np.uint64(np.uint32(shifted ^ state)) * np.uint64(277803737))
        mixed = np.uint32(np.uint32(word >> np.uint32(22)) ^ word)
        return np.float32(mixed) / np.float32(4294967296)

    @plain
    def dynamics(rule: Any, burst: Any, first: Any, last: Any, arriving: Any, state: Any, fired: Any) -> Any:
        """Step neurons ``first`` to ``last``; ``fired`` is written from ``first`` on. Returns firings, candidates."""
        unit, threshold, limit, keep, excitability, refractory = rule
        potentials, countdowns, counts = state
        ids, before = fired
        found, candidates = 0, 0
        for neuron in range(first, last):
            here = arriving[neuron]
            candidates += here > 0
            if countdowns[neuron] > 0:
                countdowns[neuron] -= np.uint16(1)
            elif here > 0:
                v = np.float32(potentials[neuron] + np.float32(here * unit))
                drawn = excitability > 0 and draw(neuron, burst) < excitability
                if threshold <= v <= limit and counts[neuron] == 65535:
                    potentials[neuron], counts[neuron] = v, 0
                elif threshold <= v <= limit and (excitability >= np.float32(0.999) or drawn):
                    ids[first + found], before[first + found] = neuron, v
                    found += 1
                    potentials[neuron] = 0
                    counts[neuron] += np.uint16(1)
                    countdowns[neuron] = refractory
                else:
                    potentials[neuron] = np.float32(v * keep)
        return found, candidates

    @plain
    def targets(numbers: Any, fan: Any, ids: Any, first: Any, last: Any, result: Any) -> None:
        """The targets of ``ids[first:last]``, ``fan`` of each in a row of ``result``."""
        seed, neurons, one, two = numbers
        for place in range(first, last):
            for item in range(fan):
                result[place * fan + item] = end(seed, neurons, one, two, np.uint32(ids[place]), np.uint32(item))

    @plain
    def add(reached: Any, low: Any, high: Any, arriving: Any) -> None:
        """Count every place of ``reached`` in low...high - 1, so that threads share nothing they write."""
        for place in range(reached.size):
            target = reached[place]
            if low <= target < high:
                arriving[target] += np.int32(1)

    return Loops(dynamics, targets, add)
