"""Kernels for a CPU engine that holds a shard of a network: a burst in two halves, with an exchange between them.

``fire`` is what a shard does for its own neurons; what fired in all shards then comes back through ``receive``. Neurons
have places in the shard, sources their ids in the whole network.
"""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any, NamedTuple

from burstproof.engine.cpu.compile import Compiled, KernelKey, compiler, inner_compiler, names_of
from burstproof.engine.cpu.disk import keep_on_disk
from burstproof.engine.cpu.parts import Parts, make_parts
from burstproof.engine.cpu.synapses import make_propagate


class ShardKernels(NamedTuple):
    """Compiled kernels; the signatures are those of the functions that they come from."""

    fire: Compiled
    receive: Compiled


@cache
def shard_kernels_for(key: KernelKey) -> ShardKernels:
    """The kernels for ``key``; numba compiles each at its first call."""
    name = ("shard", key)
    with names_of(name):
        parts = make_parts(dataclasses.replace(key, plastic=False), mapped=True)
        kernels = ShardKernels(_make_fire(parts), _make_receive(key, parts))
    for kernel in kernels:
        keep_on_disk(kernel, name)
    return kernels


def _make_fire(parts: Parts) -> Compiled:
    begin, dense, finish = parts.begin, parts.dense, parts.finish

    @compiler
    def fire(
        number: Any,
        batch: Any,
        ring: Any,
        plan: Any,
        parameters: Any,
        neurons: Any,
        last: Any,
        s: Any,
        ids: Any,
        v_fired: Any,
    ) -> Any:
        """Dynamics of the shard in burst ``number``: places of the neurons that fired or were forced to, ascending.

        ``batch`` says that the batch path is emulated; ``last`` are the places that fired in the burst before. Returns
        the number of firings in ``ids`` and ``v_fired``, and the number of candidates.
        """
        begin(number, 0, ring, plan, parameters, neurons, last, s, 0, s.neurons)
        base = (number % s.slots) * s.neurons
        sums = ring.sums[base : base + s.neurons]
        flags = ring.flags[base : base + s.neurons]
        count, candidates = dense(0, s.neurons, number, batch, sums, flags, parameters, neurons, s.unit, ids, v_fired)
        return finish(number, 0, count, ids, v_fired, plan, neurons, s, 0, s.neurons), candidates

    return fire


def _make_receive(key: KernelKey, parts: Parts) -> Compiled:
    learn, plastic, learn_first = parts.learn, key.plastic, key.learns_first
    sends = key.delayed, key.flagged, key.static_clamps, key.computed, key.round_mp_driven
    propagate = make_propagate(*sends, inner_compiler)

    @inner_compiler
    def remember(number: Any, ids: Any, neurons: Any, longest_window: Any) -> None:
        """Keep the history of the sources and targets of plastic synapses."""
        for neuron in ids:
            going_on = neurons.last_fired[neuron] == number - 1
            streak = neurons.streak[neuron] + 1 if going_on else 1
            neurons.streak[neuron] = min(streak, longest_window)
            neurons.last_fired[neuron] = number

    @compiler
    def receive(
        number: Any,
        ids: Any,
        v_fired: Any,
        ring: Any,
        neurons: Any,
        static: Any,
        computed: Any,
        rules: Any,
        s: Any,
        counters: Any,
    ) -> None:
        """What fired anywhere in burst ``number`` reaches the shard: ids in the whole network, in any order."""
        if plastic:
            remember(number, ids, neurons, s.longest_window)
        if plastic and learn_first:
            learn(number, rules, computed, neurons, s, counters, 0, 1)
        propagate(number, ids, v_fired, ring, static, computed, s, counters)
        if plastic and not learn_first:
            learn(number, rules, computed, neurons, s, counters, 0, 1)

    return receive
