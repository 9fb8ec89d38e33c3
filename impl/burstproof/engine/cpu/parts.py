"""The phases of a burst, compiled for what a network uses; each works on a range of neurons."""

from __future__ import annotations

from typing import NamedTuple

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array, Floats, Ids, Neurons, Scalars, StimulusTable
from burstproof.engine.cpu.dynamics import make_dynamics
from burstproof.engine.cpu.features import make_feature_parts
from burstproof.engine.cpu.key import KernelKey
from burstproof.engine.cpu.regions import ALIGNED
from burstproof.engine.cpu.sums import make_add
from burstproof.engine.cpu.synapses import make_learn
from burstproof.engine.rules import Compiled
from burstproof.network.schema import Parameters


class Parts(NamedTuple):
    """Kernels called by other kernels; for the signatures see the functions of the same names."""

    begin: Compiled
    count_candidates: Compiled
    dynamics: Compiled
    finish: Compiled
    learn: Compiled
    remember: Compiled
    join_trains: Compiled
    advance_trains: Compiled
    read_signals: Compiled
    derive: Compiled
    adapt: Compiled


def make_parts(key: KernelKey) -> Parts:
    """The phases of a burst for ``key``, apart from propagation."""
    remember = _make_remember()
    return Parts(
        _make_begin(key),
        _make_count_candidates(),
        make_dynamics(key),
        _make_finish(key, remember),
        make_learn(key),
        remember,
        *make_feature_parts(key),
    )


def _make_begin(key: KernelKey) -> Compiled:
    restart_fired, add = key.restart_fired, make_add()

    @inner_compiler
    def begin(
        k: int,
        sums: Array,
        plan: StimulusTable,
        parameters: Parameters,
        neurons: Neurons,
        last: Ids,
        s: Scalars,
        lo: int,
        hi: int,
    ) -> None:
        """Add stimulus and power of neurons lo ... hi - 1 to the FCL; ``k`` is the index of the burst in the plan.

        Countdowns and counts of forced neurons are saved in the plan, because they do not tick (see ``finish``).
        """
        for j in range(plan.starts[k], plan.starts[k + 1]):
            if lo <= plan.ids[j] < hi:
                add(sums, plan.ids[j], plan.amounts[j])
        if s.power_neuron >= lo and s.power_neuron < hi:
            add(sums, s.power_neuron, s.power_amount)
        if restart_fired:
            for neuron in last:
                if not parameters.mp_charge_accumulation[neuron]:
                    neurons.membrane_potentials[neuron] = 0
        for j in range(plan.forced_starts[k], plan.forced_starts[k + 1]):
            if lo <= plan.forced[j] < hi:
                plan.forced_rc[j] = neurons.refractory_countdowns[plan.forced[j]]
                plan.forced_cc[j] = neurons.consecutive_fire_counts[plan.forced[j]]

    return begin


def _make_count_candidates() -> Compiled:
    @inner_compiler
    def count_candidates(sums: Array) -> int:
        """Number of ``sums`` in which something has arrived."""
        count = 0
        for code in sums:
            count += code != 0
        return count

    return count_candidates


def _make_remember() -> Compiled:
    @inner_compiler
    def remember(burst: int, ids: Ids, neurons: Neurons, longest_window: int) -> None:
        """Update the firing history that plasticity reads."""
        for neuron in ids:
            fired_before = neurons.last_fired[neuron] == burst - 1
            streak = neurons.fire_streak[neuron] + 1 if fired_before else 1
            neurons.fire_streak[neuron] = min(streak, longest_window)
            neurons.last_fired[neuron] = burst

    return remember


def _make_finish(key: KernelKey, remember: Compiled) -> Compiled:
    remembers = key.plastic and not key.shard

    @inner_compiler
    def finish(
        burst: int,
        k: int,
        count: int,
        ids: Ids,
        potentials: Floats,
        plan: StimulusTable,
        neurons: Neurons,
        s: Scalars,
        lo: int,
        hi: int,
    ) -> int:
        """Merge the forced firings of lo ... hi - 1 into the first ``count`` fired ids; return the new count.

        Forced neurons that are refractory get back their countdown and count; none restarts in the next burst.
        """
        first = plan.forced_starts[k]
        while first < plan.forced_starts[k + 1] and plan.forced[first] < lo:
            first += 1
        end = first
        while end < plan.forced_starts[k + 1] and plan.forced[end] < hi:
            neuron = plan.forced[end]
            if plan.forced_rc[end] > 0:
                neurons.refractory_countdowns[neuron] = plan.forced_rc[end]
                neurons.consecutive_fire_counts[neuron] = plan.forced_cc[end]
            neurons.was_candidate[neuron] = False
            neurons.settled[neuron // ALIGNED] = False
            end += 1
        forced, forced_potentials = plan.forced[first:end], plan.forced_potentials[first:end]
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
                ids[write], potentials[write] = ids[read], potentials[read]
                read -= 1
            else:
                ids[write], potentials[write] = forced[take], forced_potentials[take]
                take -= 1
            write -= 1
        count += extra
        if remembers:
            remember(burst, ids[:count], neurons, s.longest_window)
        return count

    return finish
