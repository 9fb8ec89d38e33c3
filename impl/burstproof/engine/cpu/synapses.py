"""Kernels of the numba CPU engine that go along synapses: propagation and plasticity (SEMANTICS sections 2 and 5)."""

from __future__ import annotations

import numpy as np

from burstproof.engine.cpu.arrays import Computed, Counters, Floats, Ids, Neurons, Plastic, Ring, Rows, Scalars, Static
from burstproof.engine.cpu.compile import CLAMPED, HISTORY, KernelKey, inner_compiler
from burstproof.engine.cpu.intrinsics import prefetch
from burstproof.engine.cpu.ranges import HEADER_BYTES, Ranges
from burstproof.engine.features.rules import make_feature_rules
from burstproof.engine.rules import Compiled

_BYTE_MAX = np.float32(255)

_ROWS_AHEAD = 2
_PREFETCHED_SYNAPSES = 512
_LINE_BYTES = 64


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
        """Integer of a float32 contribution, 0 for NaN, and whether it was clamped."""
        scaled = np.rint(np.float64(contribution) * s.scale)
        if scaled > s.clamp_float:
            return np.int64(s.clamp), True
        if scaled < -s.clamp_float:
            return np.int64(-s.clamp), True
        if scaled != scaled:
            return np.int64(0), False
        return np.int64(scaled), False

    return quantised


def _make_send_computed(key: KernelKey) -> Compiled:
    delayed, flagged = key.delayed, key.flagged
    driven, quantised = _make_driven(key.round_mp_driven), _make_quantised()
    transmits, degenerates = key.extras.transmits, key.extras.degenerates
    degenerated = make_feature_rules(inner_compiler).degenerated

    @inner_compiler
    def send_computed(
        burst: int, source: int, v: np.float32, ring: Ring, rows: Computed, s: Scalars, lo: int, hi: int
    ) -> bool:
        """Contributions of one source's computed synapses onto targets lo ... hi - 1; whether one was clamped."""
        any_clamped = False
        mp_driven = rows.mp_driven[source]
        potential, loss = driven(v), rows.degeneration[source]
        for j in range(rows.offsets[source], rows.offsets[source + 1]):
            target = np.int64(rows.targets[j])
            if target < lo or target >= hi:
                continue
            psp = potential if mp_driven else rows.psps[j]
            if degenerates and loss > 0:
                rows.psps[j] = degenerated(rows.psps[j], loss)
            if rows.signs[j] == 0:
                continue
            contribution = rows.weights[j] * psp / rows.divisors[source]
            if transmits:
                contribution = contribution * rows.transmission[burst & 1, rows.rules[j]]
            amount, clamped = quantised(contribution, s)
            any_clamped |= clamped
            slot = (burst + (np.int64(rows.delays[j]) if delayed else 1)) % s.slots
            place = np.uint64(slot * s.neurons + target)
            ring.sums[place] += amount * rows.signs[j]
            if flagged:
                ring.flags[place] = True
        return any_clamped

    return send_computed


def _make_send_static(key: KernelKey) -> Compiled:
    delayed, flagged = key.delayed, key.flagged

    @inner_compiler
    def send_static(burst: int, first: int, end: int, ring: Ring, static: Static, s: Scalars) -> None:
        """Add the static synapses ``first`` ... ``end - 1`` to the ring."""
        if delayed:
            own_slot = burst % s.slots
            for j in range(first, end):
                slot = own_slot + np.int64(static.delays[j])
                slot = slot - s.slots if slot >= s.slots else slot
                place = np.uint64(slot * s.neurons) + np.uint64(static.targets[j])
                ring.sums[place] += static.contributions[j]
                if flagged:
                    ring.flags[place] = True
        else:
            base = ((burst + 1) % s.slots) * s.neurons
            sums = ring.sums[base : base + s.neurons]
            flags = ring.flags[base : base + s.neurons]
            for j in range(first, end):
                target = np.uint64(static.targets[j])
                sums[target] += static.contributions[j]
                if flagged:
                    flags[target] = True

    return send_static


def _make_fetch() -> Compiled:
    @inner_compiler
    def fetch(first: int, end: int, static: Static) -> None:
        """Ask for the beginning of a row that comes soon: rows lie anywhere in memory, waiting for each costs most."""
        end = min(end, first + _PREFETCHED_SYNAPSES)
        for j in range(first, end, _LINE_BYTES // static.targets.itemsize):
            prefetch(static.targets, j)
        for j in range(first, end, _LINE_BYTES // static.contributions.itemsize):
            prefetch(static.contributions, j)

    return fetch


def make_propagate(key: KernelKey) -> Compiled:
    """``propagate``: everything that fired contributes through all its synapses."""
    static_clamps, computed_rows = key.static_clamps, key.computed
    fetch, send_static, send_computed = _make_fetch(), _make_send_static(key), _make_send_computed(key)

    @inner_compiler
    def propagate(
        burst: int,
        ids: Ids,
        potentials: Floats,
        ring: Ring,
        static: Static,
        computed: Computed,
        s: Scalars,
        counters: Counters,
    ) -> None:
        for j in range(len(ids)):
            if j + _ROWS_AHEAD < len(ids):
                soon = np.int64(ids[j + _ROWS_AHEAD])
                fetch(static.offsets[soon], static.offsets[soon + 1], static)
            source = np.int64(ids[j])
            send_static(burst, static.offsets[source], static.offsets[source + 1], ring, static, s)
            if static_clamps and static.clamped_sources[source]:
                counters[CLAMPED] = 1
            if computed_rows and send_computed(burst, source, potentials[j], ring, computed, s, 0, s.neurons):
                counters[CLAMPED] = 1

    return propagate


def make_propagate_range(key: KernelKey) -> Compiled:
    """``propagate_range``: the same onto the target range of one thread, whose part of each row lies together.

    A row has few synapses in a range, so everything is written out in one loop: arrays that are passed on or sliced
    per row have their references counted. The line of a row in the table of ranges is fetched twice as far ahead as
    the part of the row that it leads to.
    """
    delayed, flagged, static_clamps, computed_rows = key.delayed, key.flagged, key.static_clamps, key.computed
    send_computed = _make_send_computed(key)

    @inner_compiler
    def propagate_range(
        burst: int,
        part: int,
        ranges: Ranges,
        count: int,
        ids: Ids,
        potentials: Floats,
        ring: Ring,
        static: Rows,
        computed: Computed,
        s: Scalars,
        counters: Counters,
    ) -> None:
        rows, ends, ahead = ranges.rows, ranges.ends, ranges.rows_ahead
        row_width, end_width = rows.shape[1], ends.shape[1]
        own_end = np.uint64(HEADER_BYTES // ends.itemsize + part)
        end_before, not_first = own_end - np.uint64(1), np.int64(-1) if part > 0 else np.int64(0)
        lo, hi = ranges.bounds[part], ranges.bounds[part + 1]
        synapses, in_line = static.synapses, _LINE_BYTES // static.synapses.itemsize
        sums, flags = ring.sums, ring.flags
        slots, neurons, own_slot = s.slots, s.neurons, burst % s.slots
        next_base = np.uint64(((burst + 1) % slots) * neurons)
        for j in range(-2 * ahead, count):
            if j + 2 * ahead < count:
                far = np.int64(ids[j + 2 * ahead])
                prefetch(rows, far * row_width)
                prefetch(ends, far * end_width + np.int64(own_end))
            if 0 <= j + ahead < count:
                soon = np.uint64(ids[j + ahead])
                base = rows[soon, 0]
                first = base + (np.int64(ends[soon, end_before]) & not_first)
                last = min(base + np.int64(ends[soon, own_end]), first + _PREFETCHED_SYNAPSES) - 1
                prefetch(synapses, first)
                for line in range(first + in_line, last, in_line):
                    prefetch(synapses, line)
                prefetch(synapses, last)
            if j < 0:
                continue
            source = np.uint64(ids[j])
            base = rows[source, 0]
            first = base + (np.int64(ends[source, end_before]) & not_first)
            for at in range(first, base + np.int64(ends[source, own_end])):
                synapse = synapses[np.uint64(at)]
                if delayed:
                    slot = own_slot + np.int64(synapse.delay)
                    slot = slot - slots if slot >= slots else slot
                    place = np.uint64(slot * neurons) + np.uint64(synapse.target)
                else:
                    place = next_base + np.uint64(synapse.target)
                sums[place] += synapse.contribution
                if flagged:
                    flags[place] = True
            if static_clamps and static.clamped_sources[source]:
                counters[CLAMPED] = 1
            if not computed_rows or computed.offsets[source] == computed.offsets[source + np.uint64(1)]:
                continue
            if send_computed(burst, source, potentials[j], ring, computed, s, lo, hi):
                counters[CLAMPED] = 1

    return propagate_range


def make_learn(key: KernelKey) -> Compiled:
    """``learn``: one of ``parts`` parts of a burst's plasticity, after which the history is one burst longer."""
    all_window, zero = key.plastic_all_window, np.float32(0)

    @inner_compiler
    def learn(
        burst: int,
        rules: Plastic,
        computed: Computed,
        neurons: Neurons,
        s: Scalars,
        counters: Counters,
        part: int,
        parts: int,
    ) -> None:
        last, streak = neurons.last_fired, neurons.fire_streak
        for rule in range(len(rules.windows)):
            window = rules.windows[rule]
            if counters[HISTORY] < window - 1:
                continue
            oldest = max(burst - window, 0)
            first, count = rules.starts[rule], rules.starts[rule + 1] - rules.starts[rule]
            for j in range(first + part * count // parts, first + (part + 1) * count // parts):
                source, target = rules.sources[j], rules.targets[j]
                before, after = last[source] > oldest, last[target] > oldest
                both = before and after
                if all_window:
                    both = last[source] == burst and last[target] == burst
                    both = both and streak[source] >= window and streak[target] >= window
                weight = computed.weights[rules.positions[j]]
                change = zero
                if both:
                    change = rules.potentiations[rule]
                    weight = weight + change
                elif (before or after) and rules.depressions[rule] > zero:
                    change = -rules.depressions[rule]
                    weight = weight + change
                    weight = zero if weight < zero else weight
                if all_window:
                    weight = min(max(weight, zero), _BYTE_MAX)
                computed.weights[rules.positions[j]] = weight
                rules.eligibility[j] = change
        counters[HISTORY] = min(counters[HISTORY] + 1, s.longest_window - 1)

    return learn
