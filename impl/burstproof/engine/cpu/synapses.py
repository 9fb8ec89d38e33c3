"""CPU kernels over synapses: propagation into the ring, and plasticity (SEMANTICS sections 2 and 5)."""

from __future__ import annotations

import numpy as np

from burstproof.engine.compiler import inner_compiler
from burstproof.engine.cpu.arrays import Array, Computed, Counters, Floats, Ids, Neurons, Plastic, Scalars, Static, Turn
from burstproof.engine.cpu.key import CLAMPED, HISTORY, KernelKey
from burstproof.engine.cpu.modes import make_change_modes
from burstproof.engine.cpu.rows_ahead import ROWS_AHEAD, make_look_ahead
from burstproof.engine.cpu.sums import make_add
from burstproof.engine.features.rules import make_feature_rules
from burstproof.engine.rules import Compiled

_BYTE_MAX = np.float32(255)


def _make_driven(rounded: bool) -> Compiled:
    @inner_compiler
    def driven(v: np.float32) -> np.float32:
        """psp of an mp-driven source that fired with potential ``v``."""
        if v < np.float32(0):
            v = np.float32(0)
        if rounded:
            v = min(np.float32(np.floor(np.float64(v) + 0.5)), _BYTE_MAX)
        return v

    return driven


def _make_quantised() -> Compiled:
    @inner_compiler
    def quantised(contribution: np.float32, s: Scalars) -> tuple[np.int64, bool]:
        """A float32 contribution in units of 2^-k, 0 for NaN, and whether it was clamped."""
        scaled = np.rint(np.float64(contribution) * s.scale)
        if scaled > s.clamp_float:
            return np.int64(s.clamp), True
        if scaled < -s.clamp_float:
            return np.int64(-s.clamp), True
        if scaled != scaled:
            return np.int64(0), False
        return np.int64(scaled), False

    return quantised


def make_amount(key: KernelKey) -> Compiled:
    """``amount``: what a computed synapse contributes, in units of 2^-k."""
    driven, quantised = _make_driven(key.round_mp_driven), _make_quantised()
    transmits, degenerates = key.extras.transmits, key.extras.degenerates
    degenerated = make_feature_rules(inner_compiler).degenerated

    @inner_compiler
    def amount(burst: int, source: int, v: np.float32, j: int, rows: Computed, s: Scalars) -> tuple[np.int64, bool]:
        """Contribution of synapse ``j`` of ``source``, which fired with potential ``v``, and whether it was clamped.

        Also degenerates the synapse's psp. So it must be called exactly once per burst for each synapse of a source
        that fired, even if the sign is 0.
        """
        psp = driven(v) if rows.mp_driven[source] else rows.psps[j]
        contribution = rows.weights[j] * psp / rows.divisors[source]
        if transmits:
            contribution = contribution * rows.transmission[burst & 1, rows.rules[j]]
        size, clamped = quantised(contribution, s)
        if degenerates and rows.degeneration[source] > 0:
            rows.psps[j] = degenerated(rows.psps[j], rows.degeneration[source])
        return size * rows.signs[j], clamped

    return amount


def _make_send_computed(key: KernelKey) -> Compiled:
    delayed, add, amount = key.delayed, make_add(), make_amount(key)

    @inner_compiler
    def send_computed(burst: int, source: int, v: np.float32, ring: Array, rows: Computed, s: Scalars) -> bool:
        """Add the computed synapses of one source to the ring; returns whether one was clamped."""
        any_clamped = False
        for j in range(rows.offsets[source], rows.offsets[source + 1]):
            size, clamped = amount(burst, source, v, j, rows, s)
            if rows.signs[j] == 0:
                continue
            any_clamped |= clamped
            slot = (burst + (np.int64(rows.delays[j]) if delayed else 1)) % s.slots
            add(ring, np.uint64(slot * s.neurons + np.int64(rows.targets[j])), size)
        return any_clamped

    return send_computed


def _make_send_static(key: KernelKey) -> Compiled:
    delayed, add = key.delayed, make_add()

    @inner_compiler
    def send_static(burst: int, first: int, end: int, ring: Array, static: Static, s: Scalars) -> None:
        """Add the static synapses ``first`` ... ``end - 1`` to the ring, which has one slot without delays."""
        if delayed and s.slots > 1:
            own_slot = burst % s.slots
            for j in range(first, end):
                slot = own_slot + np.int64(static.delays[j])
                slot = slot - s.slots if slot >= s.slots else slot
                place = np.uint64(slot * s.neurons) + np.uint64(static.targets[j])
                add(ring, place, static.contributions[j])
        else:
            for j in range(first, end):
                add(ring, np.uint64(static.targets[j]), static.contributions[j])

    return send_static


def make_propagate(key: KernelKey) -> Compiled:
    """``propagate``: add the contributions of all synapses of the neurons that fired to the ring."""
    static_clamps, computed_rows = key.static_clamps, key.computed
    look_ahead, send_static, send_computed = make_look_ahead(), _make_send_static(key), _make_send_computed(key)

    @inner_compiler
    def propagate(
        burst: int,
        ids: Ids,
        potentials: Floats,
        ring: Array,
        static: Static,
        computed: Computed,
        s: Scalars,
        counters: Counters,
    ) -> None:
        for j in range(-2 * ROWS_AHEAD, len(ids)):
            look_ahead(j, len(ids), ids, static.offsets, static.targets, static.contributions)
            if j < 0:
                continue
            source = np.int64(ids[j])
            send_static(burst, static.offsets[source], static.offsets[source + 1], ring, static, s)
            if static_clamps and static.clamped_sources[source]:
                counters[CLAMPED] = 1
            if computed_rows and send_computed(burst, source, potentials[j], ring, computed, s):
                counters[CLAMPED] = 1

    return propagate


def make_learn(key: KernelKey) -> Compiled:
    """``learn``: one thread's share of a burst's plasticity; then the known history is one burst longer."""
    change = make_change_modes() if key.extras.modes else _make_change_steps(key)

    @inner_compiler
    def learn(
        burst: int,
        rules: Plastic,
        computed: Computed,
        neurons: Neurons,
        s: Scalars,
        counters: Counters,
        thread: int,
        threads: int,
    ) -> None:
        for rule in range(len(rules.windows)):
            window = rules.windows[rule]
            if counters[HISTORY] < window - 1:
                continue
            first, count = rules.starts[rule], rules.starts[rule + 1] - rules.starts[rule]
            begin, end = first + thread * count // threads, first + (thread + 1) * count // threads
            change(Turn(burst, rule, window, begin, end), rules, computed, neurons)
        counters[HISTORY] = min(counters[HISTORY] + 1, s.longest_window - 1)

    return learn


def _make_change_steps(key: KernelKey) -> Compiled:
    all_window, zero = key.plastic_all_window, np.float32(0)

    @inner_compiler
    def change(turn: Turn, rules: Plastic, computed: Computed, neurons: Neurons) -> None:
        burst, rule, window = turn.burst, turn.rule, turn.window
        last, streak = neurons.last_fired, neurons.fire_streak
        oldest = max(burst - window, 0)
        for j in range(turn.first, turn.end):
            source, target = rules.sources[j], rules.targets[j]
            before, after = last[source] > oldest, last[target] > oldest
            both = before and after
            if all_window:
                both = last[source] == burst and last[target] == burst
                both = both and streak[source] >= window and streak[target] >= window
            weight = computed.weights[rules.positions[j]]
            step = zero
            if both:
                step = rules.potentiations[rule]
                weight = weight + step
            elif (before or after) and rules.depressions[rule] > zero:
                step = -rules.depressions[rule]
                weight = weight + step
                weight = zero if weight < zero else weight
            if all_window:
                weight = min(max(weight, zero), _BYTE_MAX)
            computed.weights[rules.positions[j]] = weight
            rules.eligibility[j] = step

    return change
