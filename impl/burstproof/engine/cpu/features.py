"""CPU kernels for FEATURES sections 1 to 3: spike trains, signals and factors, and the parameters they change."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from burstproof.engine.compiler import compiler, inner_compiler
from burstproof.engine.cpu.arrays import Floats, Ids, Neurons
from burstproof.engine.cpu.extras import Extras
from burstproof.engine.cpu.key import KernelKey
from burstproof.engine.cpu.regions import ALIGNED
from burstproof.engine.features.rules import make_feature_rules
from burstproof.engine.features.tables import EXCITABILITY, LEAK, THRESHOLD, Lists
from burstproof.engine.rules import Compiled, Compiler
from burstproof.network.schema import Parameters


class FeatureParts(NamedTuple):
    """Kernels called by other kernels; ``derive`` is also called from Python."""

    join_trains: Compiled
    advance_trains: Compiled
    read_signals: Compiled
    derive: Compiled
    adapt: Compiled


def make_feature_parts(key: KernelKey) -> FeatureParts:
    """The kernels for ``key``."""
    derive = _make_derive(inner_compiler)
    return FeatureParts(
        _make_join_trains(),
        _make_advance_trains(),
        _make_read_signals(derive),
        _make_derive(compiler),
        _make_adapt(key),
    )


def _make_join_trains() -> Compiled:
    @inner_compiler
    def join_trains(count: int, ids: Ids, potentials: Floats, last: Ids, x: Extras, neurons: Neurons) -> int:
        """Merge the firings that spike trains force into the first ``count`` fired ids; return the new count.

        A neuron in a train fired in the last burst, so it is among ``last``. It is refractory, so it is not yet in
        the list.
        """
        joining = 0
        for neuron in last:
            if x.trains[neuron]:
                neurons.was_candidate[neuron] = False
                joining += 1
        read, write = count - 1, count + joining - 1
        for j in range(len(last)):
            neuron = last[len(last) - 1 - j]
            if not x.trains[neuron]:
                continue
            while read >= 0 and ids[read] > neuron:
                ids[write], potentials[write] = ids[read], potentials[read]
                read, write = read - 1, write - 1
            ids[write], potentials[write] = neuron, x.held[neuron]
            write -= 1
        return count + joining

    return join_trains


def _make_advance_trains() -> Compiled:
    train = make_feature_rules(inner_compiler).train

    @inner_compiler
    def advance_trains(ids: Ids, potentials: Floats, x: Extras, p: Parameters, n: Neurons) -> None:
        """Section 3: start, continue or end the trains of the neurons that fired; sets their counts and countdowns."""
        for j in range(len(ids)):
            i = ids[j]
            if not x.can_train[i]:
                continue
            was_active = x.trains[i]
            active, cc, rc = train(
                was_active,
                np.int32(n.consecutive_fire_counts[i]),
                np.int32(p.consecutive_fire_limits[i]),
                np.int32(p.refractory_periods[i]),
                np.int32(p.snooze_periods[i]),
            )
            x.trains[i] = active
            if active and not was_active:
                x.held[i] = potentials[j]
            n.consecutive_fire_counts[i] = np.uint16(cc)
            if rc >= 0:
                n.refractory_countdowns[i] = np.uint16(rc)
                n.settled[i // ALIGNED] = False

    return advance_trains


def _make_read_signals(derive: Compiled) -> Compiled:
    strength, zero = make_feature_rules(inner_compiler).strength, np.float32(0)

    @inner_compiler
    def read_signals(burst: int, ids: Ids, potentials: Floats, x: Extras) -> None:
        """Section 2.1: the next signals, from what fired in ``burst`` (ids in the whole network, in any order)."""
        following, m = (burst + 1) & 1, x.modulators
        first = x.first_fired
        first[:] = -1
        for j in range(len(ids)):
            driver = x.driver_of[ids[j]]
            if driver != 0 and (first[driver] < 0 or ids[j] < ids[first[driver]]):
                first[driver] = j
        for k in range(len(m.magnitudes)):
            driver = m.drivers[k] + 1
            at, share = first[driver], zero
            if at >= 0:
                share = strength(potentials[at], m.full_scales[k])
            elif x.memory_fired[driver]:
                share = strength(x.memory_potentials[driver], m.full_scales[k])
            x.signals[following, k] = m.magnitudes[k] * share
        derive(following, x)

    return read_signals


def _make_derive(compile_with: Compiler) -> Compiled:
    zero, one = np.float32(0), np.float32(1)

    @inner_compiler
    def product(signals: Floats, lists: Lists, at: int) -> np.float32:
        """Product of 1 + signal over list ``at``."""
        factor = one
        for j in range(lists.starts[at], lists.starts[at + 1]):
            share = one + signals[lists.items[j]]
            factor = factor * share
        return factor

    @compile_with
    def derive(row: int, x: Extras) -> None:
        """Compute the factors of ``row`` from its signals: of areas (2.2), rules (2.3) and plastic pairs (4)."""
        signals, m = x.signals[row], x.modulators
        for c in range(x.area_factors.shape[1]):
            for kind in range(3):
                x.area_factors[row, c, kind] = product(signals, m.area_factors, 3 * c + kind)
        for r in range(x.transmission.shape[1]):
            factor = product(signals, m.gains, r)
            if m.gates.starts[r] < m.gates.starts[r + 1]:
                strongest = zero
                for j in range(m.gates.starts[r], m.gates.starts[r + 1]):
                    strongest = max(strongest, signals[m.gates.items[j]])
                factor = factor * strongest
            x.transmission[row, r] = factor
        for r in range(x.learning.shape[1]):
            factor = product(signals, m.learning_rates, r)
            if m.rewarded[r]:
                reward = zero
                for j in range(m.rewards.starts[r], m.rewards.starts[r + 1]):
                    reward = reward + signals[m.rewards.items[j]]
                factor = reward * factor
            x.learning[row, r] = factor

    return derive


def _make_homeostat() -> Compiled:
    leak, zero, one = make_feature_rules(inner_compiler).leak, np.float32(0), np.float32(1)

    @inner_compiler
    def homeostat(burst: int, c: int, first: int, end: int, x: Extras) -> bool:
        """Section 1 for neurons ``first`` ... ``end - 1`` of area class ``c``; returns whether their g was updated."""
        areas = x.areas
        decay, alpha = areas.keeps[c], areas.alphas[c]
        target, gain, least, most = areas.targets[c], areas.gains[c], areas.leak_mins[c], areas.leak_maxs[c]
        for i in range(first, end):
            old, new = decay * x.rates[i], alpha * (one if x.fired[i] else zero)
            x.rates[i] = old + new
        if burst % areas.update_every[c] != 0:
            return False
        for i in range(first, end):
            x.leaks[i] = leak(x.leaks[i], x.rates[i], target, gain, least, most)
        return True

    return homeostat


def _make_adapt(key: KernelKey) -> Compiled:
    homeostats, modulated, clamps = key.extras.homeostats, key.extras.area_modulators, key.features.clamp_potentials
    rules, homeostat = make_feature_rules(inner_compiler), _make_homeostat()
    bounded, threshold_of, share_of = rules.bounded, rules.modulated_threshold, rules.modulated_share
    zero, one, full = np.float32(0), np.float32(1), np.float32(255)

    @inner_compiler
    def scale(burst: int, c: int, first: int, end: int, updated: bool, x: Extras, p: Parameters) -> None:
        """Section 2.2 for neurons ``first`` ... ``end - 1`` of class ``c``; writes only what has changed."""
        before, after = x.area_factors[burst & 1, c], x.area_factors[(burst + 1) & 1, c]
        subscribes, homeostatic = x.areas.subscribes[c], homeostats and x.areas.homeostatic[c]
        if subscribes[THRESHOLD] and before[THRESHOLD] != after[THRESHOLD]:
            for i in range(first, end):
                level = threshold_of(x.base_thresholds[i], after[THRESHOLD])
                p.thresholds[i] = bounded(level, zero, full) if clamps else level
        if subscribes[LEAK] and (updated or before[LEAK] != after[LEAK]):
            for i in range(first, end):
                leak = share_of(x.leaks[i] if homeostatic else x.base_leaks[i], after[LEAK])
                x.leaks_in_force[i], p.decays[i] = leak, one - leak
        elif updated:
            for i in range(first, end):
                x.leaks_in_force[i], p.decays[i] = x.leaks[i], one - x.leaks[i]
        if subscribes[EXCITABILITY] and before[EXCITABILITY] != after[EXCITABILITY]:
            for i in range(first, end):
                p.excitabilities[i] = share_of(x.base_excitabilities[i], after[EXCITABILITY])

    @inner_compiler
    def adapt(burst: int, ids: Ids, x: Extras, p: Parameters, lo: int, hi: int) -> None:
        """Update the parameters of neurons lo ... hi - 1 for the next burst; ``ids`` are those that fired."""
        if homeostats:
            for neuron in ids:
                x.fired[neuron] = True
        for segment in range(len(x.starts)):
            first, end, c = max(x.starts[segment], lo), min(x.ends[segment], hi), x.classes[segment]
            if first >= end:
                continue
            updated = False
            if homeostats and x.areas.homeostatic[c]:
                updated = homeostat(burst, c, first, end, x)
            if modulated:
                scale(burst, c, first, end, updated, x, p)
            elif updated:
                for i in range(first, end):
                    x.leaks_in_force[i], p.decays[i] = x.leaks[i], one - x.leaks[i]
        if homeostats:
            for neuron in ids:
                x.fired[neuron] = False

    return adapt
