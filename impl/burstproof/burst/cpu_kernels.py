"""Kernels of the numba CPU engine, compiled for what a network uses.

``train`` runs whole bursts in one call. The parts that it is made of are kept too: the threaded engine calls them one
by one, each thread over its own range of neurons or targets.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numba

from burstproof.burst.cpu_disk import keep_on_disk
from burstproof.burst.cpu_dynamics import make_dense
from burstproof.burst.cpu_synapses import Compiler, make_learn, make_propagate, make_propagate_range
from burstproof.burst.profile import BATCH_PATH_CANDIDATES
from burstproof.burst.rules import Features
from burstproof.burst.stimulus import FORCED_POTENTIAL

Compiled = Callable[..., Any]

CLAMPED, HISTORY = 0, 1
"""Places in the ``counters`` array (2,) int64: the sticky flag, and the number of past bursts that are known."""


@dataclass(frozen=True)
class KernelKey:
    """What the kernels are compiled for.

    Attributes
    ----------
    features : Features
    flagged : bool
        Candidates carry a flag beside the sum.
    delayed : bool
        Some delay is above 1.
    static_clamps : bool
        Some static contribution was clamped.
    computed, plastic : bool
        There are computed rows, plastic mappings.
    round_mp_driven, plastic_all_window : bool
        Switches of the profile.
    restart_fired : bool
        Only the non-accumulating neurons of the last fired list restart (feagi-beta, large networks).
    """

    features: Features
    flagged: bool
    delayed: bool
    static_clamps: bool
    computed: bool
    plastic: bool
    round_mp_driven: bool
    plastic_all_window: bool
    restart_fired: bool

    @property
    def learns_first(self) -> bool:
        """Whether plasticity comes before propagation: so in feagi-beta, whose propagation is the next burst's."""
        return self.plastic_all_window

    def general(self) -> KernelKey:
        """The key of kernels that serve every network under the same profile: everything is compiled in."""
        features = dataclasses.replace(
            self.features,
            threshold_limits=True,
            fire_limits=True,
            snooze=True,
            refractory=True,
            excitability=True,
            leak=True,
            restarts=True,
            accumulates=True,
            emulate_batch_path=True,
        )
        return dataclasses.replace(
            self, features=features, flagged=True, delayed=True, static_clamps=True, computed=True, plastic=True
        )


class Kernels(NamedTuple):
    """Compiled kernels; the signatures are those of the functions below."""

    begin: Compiled
    is_batch: Compiled
    dense: Compiled
    finish: Compiled
    learn: Compiled
    propagate_range: Compiled
    train: Compiled


def compiler(function: Compiled) -> Compiled:
    """Compile ``function`` with IEEE arithmetic, outside the interpreter's lock."""
    compiled: Compiled = numba.njit(nogil=True, error_model="numpy", fastmath=False, no_cfunc_wrapper=True)(function)
    return compiled


def inner_compiler(function: Compiled) -> Compiled:
    """Compile as ``compiler`` does, but for other kernels only: without the entry from Python, which takes long."""
    compiled: Compiled = numba.njit(
        nogil=True, error_model="numpy", fastmath=False, no_cfunc_wrapper=True, no_cpython_wrapper=True
    )(function)
    return compiled


@cache
def kernels_for(key: KernelKey, threaded: bool) -> Kernels:
    """The kernels for ``key``; numba compiles each at its first call.

    Without ``threaded`` only ``train`` can be called from Python.
    """
    compile_part = compiler if threaded else inner_compiler
    begin = _make_begin(key, compile_part)
    is_batch = _make_is_batch(key, compile_part)
    dense = make_dense(key.features, key.flagged, key.restart_fired, inner_compiler, compile_part)
    finish = _make_finish(key, compile_part)
    learn = make_learn(key.plastic_all_window, compile_part)
    sends = key.delayed, key.flagged, key.static_clamps, key.computed, key.round_mp_driven
    ranged = make_propagate_range(*sends, inner_compiler, compile_part)
    train = _make_train(key, begin, is_batch, dense, finish, make_propagate(*sends, inner_compiler), learn)
    kernels = Kernels(begin, is_batch, dense, finish, learn, ranged, train)
    for kernel in kernels if threaded else (train,):
        keep_on_disk(kernel, key)
    return kernels


def _make_begin(key: KernelKey, compile_part: Compiler) -> Compiled:
    flagged, restart_fired = key.flagged, key.restart_fired

    @compile_part
    def begin(burst: Any, k: Any, ring: Any, plan: Any, parameters: Any, neurons: Any, last: Any, s: Any) -> Any:
        """Stimulus and power go into the slot of ``burst``; ``k`` is its place in the plan."""
        base = (burst % s.slots) * s.neurons
        for j in range(plan.starts[k], plan.starts[k + 1]):
            ring.sums[base + plan.ids[j]] += plan.amounts[j]
            if flagged:
                ring.flags[base + plan.ids[j]] = True
        if s.power_neuron >= 0:
            ring.sums[base + s.power_neuron] += s.power_amount
            if flagged:
                ring.flags[base + s.power_neuron] = True
        if restart_fired:
            for neuron in last:
                if not parameters.accumulates[neuron]:
                    neurons.v[neuron] = 0

    return begin


def _make_is_batch(key: KernelKey, compile_part: Compiler) -> Compiled:
    flagged, emulate = key.flagged, key.features.emulate_batch_path

    @compile_part
    def is_batch(sums: Any, flags: Any, wanted: Any) -> Any:
        """Whether the real engine would take its batch path in this burst (SEMANTICS section 3b)."""
        if not (emulate and wanted):
            return False
        count = 0
        for i in range(len(sums)):
            count += flags[i] if flagged else sums[i] != 0
        return count >= BATCH_PATH_CANDIDATES

    return is_batch


def _make_finish(key: KernelKey, compile_part: Compiler) -> Compiled:
    plastic = key.plastic

    @compile_part
    def finish(burst: Any, count: Any, ids: Any, v_fired: Any, forced: Any, neurons: Any, longest_window: Any) -> Any:
        """Merge ``forced`` (ascending) into the first ``count`` fired ids; keep the history; return the new count."""
        extra = 0
        at = 0
        for neuron in forced:
            while at < count and ids[at] < neuron:
                at += 1
            if at == count or ids[at] != neuron:
                extra += 1
        read, write, take = count - 1, count + extra - 1, len(forced) - 1
        while take >= 0:
            if read >= 0 and ids[read] >= forced[take]:
                if ids[read] == forced[take]:
                    take -= 1
                ids[write], v_fired[write] = ids[read], v_fired[read]
                read -= 1
            else:
                ids[write], v_fired[write] = forced[take], FORCED_POTENTIAL
                take -= 1
            write -= 1
        count += extra
        if plastic:
            for j in range(count):
                neuron = ids[j]
                going_on = neurons.last_fired[neuron] == burst - 1
                streak = neurons.streak[neuron] + 1 if going_on else 1
                neurons.streak[neuron] = min(streak, longest_window)
                neurons.last_fired[neuron] = burst
        return count

    return finish


def _make_train(
    key: KernelKey,
    begin: Compiled,
    is_batch: Compiled,
    dense: Compiled,
    finish: Compiled,
    propagate: Compiled,
    learn: Compiled,
) -> Compiled:
    plastic, learn_first = key.plastic, key.learns_first

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
            begin(number, k, ring, plan, parameters, neurons, last, s)
            batch = is_batch(sums, flags, s.emulate_batch)
            count, candidates[k] = dense(
                0, s.neurons, number, batch, sums, flags, parameters, neurons, s.unit, ids[used:], v_fired[used:]
            )
            forced = plan.forced[plan.forced_starts[k] : plan.forced_starts[k + 1]]
            count = finish(number, count, ids[used:], v_fired[used:], forced, neurons, s.longest_window)
            last = ids[used : used + count]
            if plastic and learn_first:
                learn(number, rules, computed, neurons, s, counters)
            propagate(number, last, v_fired[used : used + count], ring, static, computed, s, counters)
            if plastic and not learn_first:
                learn(number, rules, computed, neurons, s, counters)
            used += count
            ends[k] = used
        return bursts

    return train
