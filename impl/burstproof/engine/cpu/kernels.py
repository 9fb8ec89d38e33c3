"""Kernels of the numba CPU engine that Python calls, compiled for what a network uses.

``train`` runs whole bursts in one call on one core; ``share`` is what each of several threads does of them.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from burstproof.engine.cpu.compile import Compiled, KernelKey, compiler, inner_compiler, names_of
from burstproof.engine.cpu.disk import keep_on_disk
from burstproof.engine.cpu.parts import Parts, make_parts
from burstproof.engine.cpu.share import make_share
from burstproof.engine.cpu.synapses import make_propagate
from burstproof.engine.profile import BATCH_PATH_CANDIDATES


class Kernels(NamedTuple):
    """Compiled kernels; the signatures are those of the functions that they come from."""

    train: Compiled
    share: Compiled


@cache
def kernels_for(key: KernelKey) -> Kernels:
    """The kernels for ``key``; numba compiles each at its first call."""
    with names_of(key):
        parts = make_parts(key)
        kernels = Kernels(_make_train(key, parts), make_share(key, parts))
    for kernel in kernels:
        keep_on_disk(kernel, key)
    return kernels


def _make_train(key: KernelKey, parts: Parts) -> Compiled:
    begin, waiting, dense, finish, learn = parts.begin, parts.waiting, parts.dense, parts.finish, parts.learn
    sends = key.delayed, key.flagged, key.static_clamps, key.computed, key.round_mp_driven
    propagate = make_propagate(*sends, inner_compiler)
    emulate, plastic, learn_first = key.features.emulate_batch_path, key.plastic, key.learns_first

    @compiler
    def train(
        burst: Any,
        bursts: Any,
        ring: Any,
        plan: Any,
        parameters: Any,
        neurons: Any,
        static: Any,
        computed: Any,
        rules: Any,
        s: Any,
        counters: Any,
        last: Any,
        ids: Any,
        v_fired: Any,
        ends: Any,
        candidates: Any,
    ) -> Any:
        """Run up to ``bursts`` bursts from number ``burst`` on, while the output has room for N more firings.

        ``ends`` (bursts,) gets the end of each burst's firings in ``ids`` and ``v_fired``; returns the number done.
        """
        used = 0
        for k in range(bursts):
            if len(ids) - used < s.neurons:
                return k
            number = burst + k
            base = (number % s.slots) * s.neurons
            sums = ring.sums[base : base + s.neurons]
            flags = ring.flags[base : base + s.neurons]
            begin(number, k, ring, plan, parameters, neurons, last, s, 0, s.neurons)
            batch = False
            if emulate and s.emulate_batch:
                batch = waiting(sums, flags) >= BATCH_PATH_CANDIDATES
            count, candidates[k] = dense(
                0, s.neurons, number, batch, sums, flags, parameters, neurons, s.unit, ids[used:], v_fired[used:]
            )
            count = finish(number, k, count, ids[used:], v_fired[used:], plan, neurons, s, 0, s.neurons)
            last = ids[used : used + count]
            if plastic and learn_first:
                learn(number, rules, computed, neurons, s, counters, 0, 1)
            propagate(number, last, v_fired[used : used + count], ring, static, computed, s, counters)
            if plastic and not learn_first:
                learn(number, rules, computed, neurons, s, counters, 0, 1)
            used += count
            ends[k] = used
        return bursts

    return train
