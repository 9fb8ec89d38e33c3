"""Features of a neuron in a burst: parameters in force, homeostats, spike trains (FEATURES sections 1 to 3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from burstproof.device.numba_cuda import SIMULATED, cuda
from burstproof.engine.cuda.args import Extras, Neurons, Parameters
from burstproof.engine.cuda.kernels.neuron_values import make_value
from burstproof.engine.cuda.plan.features import (
    CLASS_SHIFT,
    HOMEOSTAT_NUMBERS,
    HOMEOSTATIC,
    IN_TRAIN,
    LEAKS,
    REGULATED,
    UPDATES,
)
from burstproof.engine.cuda.plan.variant import Variant
from burstproof.engine.features.rules import FeatureRules, make_feature_rules
from burstproof.engine.features.tables import EXCITABILITY, LEAK, THRESHOLD

_ONE, _ZERO, _FULL = np.float32(1), np.float32(0), np.float32(255)


@cache
def rules_of_features() -> FeatureRules:
    """The rules compiled for a device; an instruction of its own rounds each product before it is added."""

    def rounded(a: np.float32, b: np.float32) -> Any:
        return cuda.libdevice.fmul_rn(a, b)

    compiler = cuda.jit(device=True)
    return make_feature_rules(compiler, None if SIMULATED else compiler(rounded))


class Traits(NamedTuple):
    """What is stored of a neuron with features: class and flags, average and leak of its homeostat."""

    kind: Any
    rate: Any
    leak: Any


def make_find_traits(variant: Variant) -> Callable[..., Any]:
    """``find_traits(neuron, extras)`` -> ``Traits``; arrays that the features do not use are not read."""
    key, homeostats, none = variant.extras, variant.extras.homeostats, np.uint32(0)
    kinds = key.adapts or key.trains or key.modulators

    def find_traits(neuron: np.uint32, extras: Extras) -> Any:
        kind, rate, leak = none, _ZERO, _ZERO
        if kinds:
            kind = np.uint32(extras.kinds[neuron])
        if homeostats:
            rate, leak = extras.firing_rates[neuron], extras.homeostat_leaks[neuron]
        return Traits(kind, rate, leak)

    return cuda.jit(device=True)(find_traits)  # type: ignore[no-any-return]


class Adapted(NamedTuple):
    """A neuron with changing parameters in a burst: its row in ``kernels.classes``, flags, its homeostat's state."""

    row: Any
    flags: Any
    rate: Any
    leak: Any


def make_adapt(variant: Variant) -> Callable[..., Any]:
    """``adapt(traits, classes)`` -> ``Adapted``."""
    adapts, homeostats, shift = variant.extras.adapts, variant.extras.homeostats, np.uint32(CLASS_SHIFT)

    def adapt(traits: Traits, classes: Any) -> Any:
        row, flags = np.uint32(0), np.uint8(0)
        if adapts:
            row = np.uint32(classes.first + (traits.kind >> shift))
        if homeostats:
            flags = classes.states[row]
        return Adapted(row, flags, traits.rate, traits.leak)

    return cuda.jit(device=True)(adapt)  # type: ignore[no-any-return]


def base_leaks_serve(variant: Variant) -> bool:
    """Whether leaks are read from ``base_leaks``, which has none of twins, and ``decays`` is not read."""
    extras, columns = variant.extras, variant.features.decays and "decays" not in variant.uniform
    return columns and extras.area_modulators and not extras.replays


def make_in_force(variant: Variant) -> Callable[..., Any]:
    """``in_force(own, adapted, sleeps, neuron, ...)`` -> ``Parameters`` in force, from a neuron's ``own``.

    Of a neuron that ``sleeps``, only the leak matters. A factor of NaN changes nothing.
    """
    key, clamps, rules = variant.extras, variant.features.clamp_potentials, rules_of_features()
    homeostats, modulated, from_base = key.homeostats, key.area_modulators, base_leaks_serve(variant)
    threshold_of, share_of, bounded = rules.modulated_threshold, rules.modulated_share, rules.bounded
    homeostatic, leaks, none = np.uint8(HOMEOSTATIC), np.uint8(LEAKS), np.uint8(0)
    three = np.uint32(3)

    def in_force(
        own: Parameters, adapted: Adapted, sleeps: bool, neuron: np.uint32, classes: Any, extras: Extras
    ) -> Any:
        threshold, decay, excitability = own.thresholds, own.decays, own.excitabilities
        scaled, leak_factor = False, _ONE
        if modulated:
            at = np.uint32(adapted.row * three)
            leak_factor = classes.factors[np.uint32(at + np.uint32(LEAK))]
            scaled = leak_factor == leak_factor
            if not sleeps:
                threshold_factor = classes.factors[np.uint32(at + np.uint32(THRESHOLD))]
                excitability_factor = classes.factors[np.uint32(at + np.uint32(EXCITABILITY))]
                if threshold_factor == threshold_factor:
                    threshold = threshold_of(threshold, threshold_factor)
                    if clamps:
                        threshold = bounded(threshold, _ZERO, _FULL)
                if excitability_factor == excitability_factor:
                    excitability = share_of(excitability, excitability_factor)
        regulated = homeostats and (adapted.flags & (homeostatic if scaled else leaks)) != none
        if regulated or scaled or from_base:
            leak = adapted.leak
            if modulated and not regulated:
                leak = extras.base_leaks[neuron]
            if scaled:
                leak = share_of(leak, leak_factor)
            decay = _ONE - leak
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
    """``regulate(neuron, fires, adapted, classes, extras)``: update a neuron's homeostat after its burst."""
    average, leak = rules_of_features().average, rules_of_features().leak
    homeostatic, updates, none = np.uint8(HOMEOSTATIC), np.uint8(UPDATES), np.uint8(0)
    size = np.uint32(HOMEOSTAT_NUMBERS)

    def regulate(neuron: np.uint32, fires: bool, adapted: Adapted, classes: Any, extras: Extras) -> None:
        if (adapted.flags & homeostatic) == none:
            return
        numbers, before = classes.numbers, adapted.leak
        at = np.uint32(np.uint32(adapted.row - classes.first) * size)
        rate = average(adapted.rate, fires, numbers[at], numbers[np.uint32(at + np.uint32(1))])
        extras.firing_rates[neuron] = rate
        if (adapted.flags & updates) != none:
            after = leak(
                before,
                rate,
                numbers[np.uint32(at + np.uint32(2))],
                numbers[np.uint32(at + np.uint32(3))],
                numbers[np.uint32(at + np.uint32(4))],
                numbers[np.uint32(at + np.uint32(5))],
            )
            if after != before:  # most are at a bound
                extras.homeostat_leaks[neuron] = after

    return cuda.jit(device=True)(regulate)  # type: ignore[no-any-return]


@cache
def make_advance_classes() -> Callable[..., Any]:
    """``advance_classes(burst, extras)``, one block: write the next burst's phases and flags to the other row."""
    one, none = np.uint32(1), np.uint64(0)
    regulated, low = np.uint64(REGULATED), np.uint64(REGULATED - 1)
    homeostatic, leaks, updates, nothing = np.uint8(HOMEOSTATIC), np.uint8(LEAKS), np.uint8(UPDATES), np.uint8(0)

    def advance_classes(burst: np.uint32, extras: Extras) -> None:
        count = extras.class_count
        here = np.uint32((burst & one) * count)
        there = np.uint32(count - here)
        item = np.uint32(cuda.threadIdx.x)
        while item < count:
            word = extras.class_phases[np.uint32(here + item)]
            phase = np.uint64(word & low)
            flag = np.uint64(word & regulated)
            if phase == none:
                flag = regulated
            phase = np.uint64(phase + np.uint64(1))
            if phase == extras.homeostat_periods[item]:
                phase = none
            extras.class_phases[np.uint32(there + item)] = np.uint64(phase | flag)
            state = np.uint8(extras.class_states[np.uint32(here + item)] & homeostatic)
            if state != nothing:
                if flag != none:
                    state = np.uint8(state | leaks)
                if phase == none:
                    state = np.uint8(state | updates)
            extras.class_states[np.uint32(there + item)] = state
            item = np.uint32(item + np.uint32(cuda.blockDim.x))

    return cuda.jit(device=True)(advance_classes)  # type: ignore[no-any-return]


def make_advance_train(variant: Variant) -> Callable[..., Any]:
    """``advance_train(neuron, kind, potential, ...)``: FEATURES section 3, for a ``CAN_TRAIN`` neuron that fired."""
    rule, snoozes = rules_of_features().train, variant.features.snooze_periods
    limit_of, period_of = make_value(variant, "consecutive_fire_limits"), make_value(variant, "refractory_periods")
    snooze_of, inside, none = make_value(variant, "snooze_periods"), np.uint32(IN_TRAIN), np.uint32(0)
    stored = variant.kind

    def advance_train(neuron: np.uint32, kind: np.uint32, potential: np.float32, neurons: Neurons) -> None:
        state, parameters, extras = neurons.state, neurons.parameters, neurons.extras
        was_active, cc = (kind & inside) != none, np.int32(state.counts[neuron])
        limit = np.int32(limit_of(parameters.consecutive_fire_limits, neuron))
        period, snooze = np.int32(period_of(parameters.refractory_periods, neuron)), np.int32(0)
        if snoozes:
            snooze = np.int32(snooze_of(parameters.snooze_periods, neuron))
        active, count, rc = rule(was_active, cc, limit, period, snooze)
        if active != was_active:
            extras.kinds[neuron] = stored(kind ^ inside)
            if active:
                extras.held_potentials[neuron] = potential
        if count != cc:
            state.counts[neuron] = np.uint16(count)
        if rc >= np.int32(0):
            state.countdowns[neuron] = np.uint16(rc)

    return cuda.jit(device=True)(advance_train)  # type: ignore[no-any-return]
