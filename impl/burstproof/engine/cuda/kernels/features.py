"""What features add to a burst on the device: trains, homeostats, modulators (FEATURES sections 1 to 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.dependent_launch import make_let_next_start, make_wait_for_last
from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Extras, Floats, Modulation, Neurons, Parameters, Steering, Turn
from burstproof.engine.cuda.kernels.control import ACTIVE, BURST, INDEX, ORIGIN
from burstproof.engine.cuda.kernels.neuron_values import make_value
from burstproof.engine.cuda.plan.features import (
    CAN_TRAIN,
    DRIVE_ROWS,
    HOMEOSTAT_NUMBERS,
    HOMEOSTATIC,
    IN_TRAIN,
    LEAKS,
    NOT_FIRED,
    REGULATED,
    UPDATES,
)
from burstproof.engine.cuda.plan.shard_variant import ShardVariant
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.features.rules import FeatureRules, make_feature_rules
from burstproof.engine.features.tables import EXCITABILITY, LEAK, THRESHOLD
from burstproof.engine.rules import CERTAIN

_ONE, _ZERO, _FULL = np.float32(1), np.float32(0), np.float32(255)


@cache
def rules_of_features() -> FeatureRules:
    """The rules compiled for a device, where a product that is added to something is rounded by its instruction."""

    def rounded(a: np.float32, b: np.float32) -> Any:
        return cuda.libdevice.fmul_rn(a, b)

    compiler = cuda.jit(device=True)
    return make_feature_rules(compiler, None if SIMULATED else compiler(rounded))


class Adapted(NamedTuple):
    """What a burst finds of a neuron whose parameters change: class, its flags, and the homeostat's state."""

    kind: Any
    flags: Any
    rate: Any
    leak: Any


def make_find_adapted(variant: Variant) -> Callable[..., Any]:
    """``find_adapted(neuron, burst, extras)`` -> ``Adapted``; the loads are under way before anything is decided."""
    adapts, homeostats, one = variant.extras.adapts, variant.extras.homeostats, np.uint32(1)

    def find_adapted(neuron: np.uint32, burst: np.uint32, extras: Extras) -> Any:
        kind, flags, rate, leak = np.uint32(0), np.uint8(0), _ZERO, _ZERO
        if adapts:
            kind = np.uint32(extras.classes[neuron])
        if homeostats:
            rate, leak = extras.firing_rates[neuron], extras.homeostat_leaks[neuron]
            flags = extras.class_states[np.uint32((burst & one) * extras.class_count + kind)]
        return Adapted(kind, flags, rate, leak)

    return cuda.jit(device=True)(find_adapted)  # type: ignore[no-any-return]


def make_in_force(variant: Variant) -> Callable[..., Any]:
    """``in_force(own, adapted, neuron, force, extras)`` -> ``Parameters``: a neuron's under ``force``."""
    key, clamps, rules = variant.extras, variant.features.clamp_potentials, rules_of_features()
    homeostats, modulated = key.homeostats, key.area_modulators
    threshold_of, share_of, bounded = rules.modulated_threshold, rules.modulated_share, rules.bounded
    homeostatic, leaks, none = np.uint8(HOMEOSTATIC), np.uint8(LEAKS), np.uint8(0)
    three = np.uint32(3)

    def in_force(own: Parameters, adapted: Adapted, neuron: np.uint32, force: Any, extras: Extras) -> Any:
        threshold, decay, excitability = own.thresholds, own.decays, own.excitabilities
        if homeostats and (adapted.flags & leaks) != none:
            decay = _ONE - adapted.leak
        if modulated:
            at = np.uint32(np.uint32(force.first + adapted.kind) * three)
            first = force.factors[np.uint32(at + np.uint32(THRESHOLD))]
            second = force.factors[np.uint32(at + np.uint32(LEAK))]
            third = force.factors[np.uint32(at + np.uint32(EXCITABILITY))]
            if first == first:
                threshold = threshold_of(threshold, first)
                if clamps:
                    threshold = bounded(threshold, _ZERO, _FULL)
            if second == second:
                g = adapted.leak
                if not homeostats or (adapted.flags & homeostatic) == none:
                    g = extras.base_leaks[neuron]
                decay = _ONE - share_of(g, second)
            if third == third:
                excitability = share_of(excitability, third)
        return Parameters(
            threshold,
            own.threshold_limits,
            decay,
            own.refractory_periods,
            own.consecutive_fire_limits,
            own.snooze_periods,
            excitability,
            own.mp_charge_accumulation,
        )

    return cuda.jit(device=True)(in_force)  # type: ignore[no-any-return]


def make_regulate() -> Callable[..., Any]:
    """``regulate(neuron, fires, adapted, extras)``: the homeostat after a burst in which its neuron fired or not."""
    average, leak = rules_of_features().average, rules_of_features().leak
    homeostatic, updates, none = np.uint8(HOMEOSTATIC), np.uint8(UPDATES), np.uint8(0)
    size = np.uint32(HOMEOSTAT_NUMBERS)

    def number(area: np.uint32, place: int, extras: Extras) -> Any:
        return extras.homeostats[np.uint32(area * size + np.uint32(place))]

    number = cuda.jit(device=True)(number)

    def regulate(neuron: np.uint32, fires: bool, adapted: Adapted, extras: Extras) -> None:
        area, before = adapted.kind, adapted.leak
        if (adapted.flags & homeostatic) == none:
            return
        r = average(adapted.rate, fires, number(area, 0, extras), number(area, 1, extras))
        extras.firing_rates[neuron] = r
        if (adapted.flags & updates) != none:
            after = leak(
                before,
                r,
                number(area, 2, extras),
                number(area, 3, extras),
                number(area, 4, extras),
                number(area, 5, extras),
            )
            if after != before:  # most are at a bound
                extras.homeostat_leaks[neuron] = after

    return cuda.jit(device=True)(regulate)  # type: ignore[no-any-return]


@cache
def make_advance_classes() -> Callable[..., Any]:
    """``advance_classes(burst, extras)``, one block: phases and flags of the next burst, in the other row."""
    one, none = np.uint32(1), np.uint64(0)
    regulated, low = np.uint64(REGULATED), np.uint64(REGULATED - 1)
    homeostatic, leaks, updates, nothing = np.uint8(HOMEOSTATIC), np.uint8(LEAKS), np.uint8(UPDATES), np.uint8(0)

    def advance_classes(burst: np.uint32, extras: Extras) -> None:
        count = extras.class_count
        here = np.uint32((burst & one) * count)
        there = np.uint32(count - here)
        area = np.uint32(cuda.threadIdx.x)
        while area < count:
            word = extras.class_phases[np.uint32(here + area)]
            phase = np.uint64(word & low)
            flag = np.uint64(word & regulated)
            if phase == none:
                flag = regulated
            phase = np.uint64(phase + np.uint64(1))
            if phase == extras.homeostat_periods[area]:
                phase = none
            extras.class_phases[np.uint32(there + area)] = np.uint64(phase | flag)
            state = np.uint8(extras.class_states[np.uint32(here + area)] & homeostatic)
            if state != nothing:
                if flag != none:
                    state = np.uint8(state | leaks)
                if phase == none:
                    state = np.uint8(state | updates)
            extras.class_states[np.uint32(there + area)] = state
            area = np.uint32(area + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(advance_classes)  # type: ignore[no-any-return]


def make_advance_train(variant: Variant) -> Callable[..., Any]:
    """``advance_train(neuron, train, potential, ...)``: section 3 for a neuron with ``CAN_TRAIN`` that fired."""
    rule, snoozes = rules_of_features().train, variant.features.snooze_periods
    limit_of, period_of = make_value(variant, "consecutive_fire_limits"), make_value(variant, "refractory_periods")
    snooze_of, inside, none = make_value(variant, "snooze_periods"), np.uint8(IN_TRAIN), np.uint8(0)
    able, both = np.uint8(CAN_TRAIN), np.uint8(CAN_TRAIN | IN_TRAIN)

    def advance_train(neuron: np.uint32, train: np.uint8, potential: np.float32, neurons: Neurons) -> None:
        state, parameters, extras = neurons.state, neurons.parameters, neurons.extras
        was_active, cc = (train & inside) != none, np.int32(state.counts[neuron])
        limit = np.int32(limit_of(parameters.consecutive_fire_limits, neuron))
        period, snooze = np.int32(period_of(parameters.refractory_periods, neuron)), np.int32(0)
        if snoozes:
            snooze = np.int32(snooze_of(parameters.snooze_periods, neuron))
        active, count, rc = rule(was_active, cc, limit, period, snooze)
        if active != was_active:
            extras.trains[neuron] = both if active else able
            if active:
                extras.held_potentials[neuron] = potential
        if count != cc:
            state.counts[neuron] = np.uint16(count)
        if rc >= np.int32(0):
            state.countdowns[neuron] = np.uint16(rc)

    return cuda.jit(device=True)(advance_train)  # type: ignore[no-any-return]


@cache
def make_drive(turns: bool = False) -> Callable[..., Any]:
    """``drive(neuron, potential, burst, extras)``: leave a driver's firing, unless one of lower id is there.

    Bursts have rows in ``turns``, or one for all.
    """
    none, one, half, last_row = np.uint32(0), np.uint32(1), np.uint64(32), np.uint32(DRIVE_ROWS - 1)

    def drive(neuron: np.uint32, potential: np.float32, burst: np.uint32, extras: Extras) -> None:
        driver = np.uint32(extras.driver_of[neuron])
        if driver != none:
            bits = np.uint64(np.float32(potential).view(np.uint32))
            word = np.uint64((np.uint64(neuron) << half) | bits)
            first = none
            if turns:
                count = np.uint32(np.uint32(extras.drives.size) // np.uint32(DRIVE_ROWS))
                first = np.uint32(np.uint32(burst & last_row) * count)
            cuda.atomic.min(extras.drives, np.uint32(first + driver - one), word)

    return cuda.jit(device=True)(drive)  # type: ignore[no-any-return]


@cache
def make_product() -> Callable[..., Any]:
    """``product(signals, first, modulation, at)``: the factor of a list."""
    one = np.uint32(1)

    def product(signals: Floats, first: np.uint32, modulation: Modulation, at: np.uint32) -> Any:
        """((1 (1 + s1)) (1 + s2))... over list ``at``."""
        factor = _ONE
        for item in range(modulation.list_starts[at], modulation.list_starts[np.uint32(at + one)]):
            share = _ONE + signals[np.uint32(first + modulation.list_items[item])]
            factor = factor * share
        return factor

    return cuda.jit(device=True)(product)  # type: ignore[no-any-return]


def _make_transmit() -> Callable[..., Any]:
    product, one = make_product(), np.uint32(1)

    def transmit(first: np.uint32, m: Modulation, rule: np.uint32) -> Any:
        """Section 2.3: the factor T of a rule."""
        gains = np.uint32(np.uint32(3) * m.class_count + rule)
        gates = np.uint32(gains + m.rule_count)
        factor = product(m.signals, first, m, gains)
        start, end = m.list_starts[gates], m.list_starts[np.uint32(gates + one)]
        if start < end:
            strongest = _ZERO
            for item in range(start, end):
                strongest = max(strongest, m.signals[np.uint32(first + m.list_items[item])])
            factor = factor * strongest
        return factor

    return cuda.jit(device=True)(transmit)  # type: ignore[no-any-return]


def _make_teach() -> Callable[..., Any]:
    product, one, two, three = make_product(), np.uint32(1), np.uint32(2), np.uint32(3)

    def teach(first: np.uint32, m: Modulation, pair: np.uint32) -> Any:
        """Section 4: reward and learning factor of a plastic pair."""
        rates = np.uint32(three * m.class_count + two * m.rule_count + pair)
        rewards = np.uint32(rates + m.pair_count)
        factor = product(m.signals, first, m, rates)
        if m.rewarded[pair] != np.uint8(0):
            reward = _ZERO
            for item in range(m.list_starts[rewards], m.list_starts[np.uint32(rewards + one)]):
                reward = reward + m.signals[np.uint32(first + m.list_items[item])]
            factor = reward * factor
        return factor

    return cuda.jit(device=True)(teach)  # type: ignore[no-any-return]


@cache
def make_bound_of() -> Callable[..., Any]:
    """``bound_of(largest, factor)``: as ``FeaturePlan.factors`` makes ``sleep_bounds``."""
    share_of, endless, certain = rules_of_features().modulated_share, np.float32(np.inf), CERTAIN

    def bound_of(largest: np.float32, factor: np.float32) -> Any:
        bound = largest
        if factor == factor and largest < endless:
            bound = share_of(largest, factor)
        return bound if bound < certain else endless

    return cuda.jit(device=True)(bound_of)  # type: ignore[no-any-return]


def _make_burst_done(shard: ShardVariant) -> Callable[..., Any]:
    """``burst_done(steering, turn)`` -> whether the burst of the turn was done, and its number, uint32.

    Where blocks make the factors, it is the last one of the batch that was.
    """

    def last_of_batch(steering: Steering, turn: Turn) -> Any:
        last = steering.report[INDEX]
        return last >= 0, np.uint32(steering.report[ORIGIN] + last + np.int64(1))

    def by_turn(steering: Steering, turn: Turn) -> Any:
        burst = np.uint32(np.uint32(steering.report[ORIGIN]) + turn.place + np.uint32(1))
        return steering.report[INDEX] == np.int64(turn.place), burst

    def by_control(steering: Steering, turn: Turn) -> Any:
        return steering.control[ACTIVE] != 0, np.uint32(steering.control[BURST])

    found = last_of_batch if shard.makes_factors else by_turn if shard.merged else by_control
    return cuda.jit(device=True)(found)  # type: ignore[no-any-return]


def make_modulate(shard: ShardVariant) -> Callable[..., None]:
    """``modulate(...)``, one block: the signals of the drivers that fired in the burst are the next one's factors."""
    burst_done, strength = _make_burst_done(shard), rules_of_features().strength
    product, transmit, teach, bound_of = make_product(), _make_transmit(), _make_teach(), make_bound_of()
    silence = np.float32(np.nan)
    one, three, silent = np.uint32(1), np.uint32(3), np.uint64(NOT_FIRED)
    overlapped, turns, none = shard.merged and shard.overlapped, shard.makes_factors, np.uint32(0)
    wait_for_last, let_next_start = make_wait_for_last(overlapped), make_let_next_start(overlapped)

    def modulate(steering: Steering, modulation: Modulation, turn: Turn) -> None:
        m = modulation
        let_next_start()
        wait_for_last()
        done, burst = burst_done(steering, turn)
        if not done:
            return
        thread, step = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockDim.x)
        row = np.uint32(np.uint32(burst + one) & one)
        first, item, drives = np.uint32(row * m.modulator_count), thread, none
        if turns:
            count = np.uint32(np.uint32(m.drives.size) // np.uint32(DRIVE_ROWS))
            drives = np.uint32(np.uint32(burst & np.uint32(DRIVE_ROWS - 1)) * count)
        while item < m.modulator_count:
            word, share = m.drives[np.uint32(drives + m.modulator_drivers[item])], _ZERO
            if word != silent:
                share = strength(np.uint32(word & np.uint64(0xFFFFFFFF)).view(np.float32), m.full_scales[item])
            m.signals[np.uint32(first + item)] = m.magnitudes[item] * share
            item = np.uint32(item + step)
        cuda.syncthreads()
        item = thread
        while item < np.uint32(m.drives.size) and not turns:
            m.drives[item] = silent
            item = np.uint32(item + step)
        item, count = thread, np.uint32(three * m.class_count)
        while item < count:
            factor = silence
            if m.list_starts[item] < m.list_starts[np.uint32(item + one)]:
                factor = product(m.signals, first, m, item)
            m.area_factors[np.uint32(row * count + item)] = factor
            if item % three == np.uint32(EXCITABILITY):
                area = np.uint32(item // three)
                bound = bound_of(m.largest_excitabilities[area], factor)
                m.sleep_bounds[np.uint32(row * m.class_count + area)] = bound
            item = np.uint32(item + step)
        item = thread
        while item < m.rule_count:
            m.transmission[np.uint32(row * m.rule_count + item)] = transmit(first, m, item)
            item = np.uint32(item + step)
        item = thread
        while item < m.pair_count:
            m.learning[np.uint32(row * m.pair_count + item)] = teach(first, m, item)
            item = np.uint32(item + step)

    return modulate
